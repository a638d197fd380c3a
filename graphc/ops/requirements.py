"""An array, on a condition that only the data decide: how a graph keeps a check of values."""

from __future__ import annotations

from graphc.errors import LinAlgError
from graphc.ops.index_maps import itself
from graphc.ops.samples import Ints, Sample
from graphc.ops.spec import Check, Op, Rule, Trait, op


def _requirement(name: str, error: type[Exception]) -> Op:
    return op(
        name, "input condition", params={"message": None}, impl=lambda xp, x, condition, message: x,
        numpy=lambda x, condition, message: x.copy(), rule=Rule(lambda op, avals, params: avals[0]),
        ref=itself, traits=Trait.MOVES, passes=True,
        check=Check(lambda xp, x, condition, message: xp.all(condition), error, lambda params: params["message"]),
        samples=(Sample((3, 2), Ints((4,), 5, 1), message="all must be positive"),), vjp=dict(input=lambda F, g: g),
    )  # fmt: skip


required = _requirement("required", RuntimeError)
valid = _requirement("valid", ValueError)  # of arguments that have a set to lie in
regular = _requirement("regular", LinAlgError)  # of matrices that must not be singular
