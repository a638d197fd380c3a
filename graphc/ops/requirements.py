"""`required`: an array, on a condition that only the data decide. It is how a graph keeps a check of values."""

from __future__ import annotations

from graphc.ops.places import itself
from graphc.ops.samples import Ints, Sample
from graphc.ops.spec import Check, Rule, Trait, op

required = op(
    "required", "input condition", params={"message": None}, impl=lambda xp, x, condition, message: x,
    numpy=lambda x, condition, message: x.copy(), rule=Rule(lambda op, avals, params: avals[0]),
    ref=itself, traits=Trait.MOVES,
    check=Check(lambda xp, x, condition, message: xp.all(condition), RuntimeError, ""),
    samples=(Sample((3, 2), Ints((4,), 5, 1), message="all must be positive"),), vjp=dict(input=lambda F, g: g),
)  # fmt: skip
