"""The checks themselves: each must catch a declaration with one planted fault, and name the op."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from graphc.ops.aval import Aval
from graphc.ops.lens import Lens
from graphc.ops.rounding import ARITHMETIC, EXACT, Rounding
from graphc.ops.rules import pointwise, pointwise_bool, pointwise_float, same
from graphc.ops.spec import Kink, Op, Rule, Trait
from tests.ops import checks

RNG = np.random.default_rng(0)
X = RNG.uniform(0.5, 2.0, (2, 3))
Y = RNG.uniform(0.5, 2.0, (2, 3))
SOUND: dict[str, Any] = {
    "impl": "square",
    "rule": pointwise,
    "vjp": {"x": lambda F, g, x: g * (2 * x)},
    "ref": lambda x: x * x,
}


def planted(args: str = "x", **changes: Any) -> Op:
    """The square op with some fields changed; it is not registered."""
    return Op("planted", args, **{**SOUND, **changes})


def _writes_to_its_operand(x: np.ndarray) -> np.ndarray:
    x *= x
    return x.copy()


def gradient_check(op: Op) -> None:
    checks.check_gradient(op, [X], {}, np.random.default_rng(1))


def moves_check(op: Op) -> None:
    checks.check_moves(op, [([X], {})])


def rounding_check(op: Op) -> None:
    checks.check_rounding(op, [X.astype(np.float32)], {})


def lens_check(op: Op) -> None:
    checks.check_lens(op, [X], {}, np.random.default_rng(1))


def traits_check(*arrays: np.ndarray) -> Callable[[Op], None]:
    return lambda op: checks.check_traits(op, arrays, {}, np.random.default_rng(1))


def facts_check(*arrays: np.ndarray) -> Callable[[Op], None]:
    return lambda op: checks.check_facts(op, arrays, {})


def _scalar_result(op: Op, avals: list[Aval], params: Any) -> Aval:
    return Aval((), avals[0].dtype)


TRANSPOSING = planted(impl=lambda xp, x: x.T * 2.0, rule=Rule(_scalar_result), vjp={"x": lambda F, g: g * 2.0})
TURNED: dict[str, Any] = {"impl": lambda xp, x: x[::-1], "rule": same, "traits": Trait.VIEW | Trait.MOVES}
NO_VJP: dict[str, Any] = {"vjp": None}
FAULTS: dict[str, tuple[Op, Callable[[Op], None]]] = {
    "wrong gradient constant": (planted(vjp={"x": lambda F, g, x: g * (2.001 * x)}), gradient_check),
    "wrong gradient sign": (planted(vjp={"x": lambda F, g, x: -g * (2 * x)}), gradient_check),
    "gradient that ignores the cotangent": (planted(vjp={"x": lambda F, g, x: 2 * x}), gradient_check),
    "gradient of the wrong shape": (TRANSPOSING, gradient_check),
    "wrong shape": (planted(rule=Rule(_scalar_result)), lambda op: checks.check_rule(op, [X], {})),
    "wrong dtype": (planted(rule=pointwise_bool), lambda op: checks.check_rule(op, [X], {})),
    "writes to its operand": (planted(impl=lambda xp, x: _writes_to_its_operand(x)),
                              lambda op: checks.check_rule(op, [X.copy()], {})),
    "wrong value": (planted(ref=lambda x: x * x * 1.0000001), lambda op: checks.check_reference(op, [X], {})),
    "reference of another shape": (planted(ref=lambda x: (x * x)[:, :1]),
                                   lambda op: checks.check_reference(op, [X], {})),
    "no reference": (planted(ref=None), lambda op: checks.check_reference(op, [X], {})),
    "reference that does not exist": (planted(ref="nowhere.square"), lambda op: checks.check_reference(op, [X], {})),
    "hidden view": (planted(impl=lambda xp, x: x[::-1]), lambda op: checks.check_memory(op, [X], {})),
    "moves that compute": (planted(traits=Trait.MOVES), moves_check),
    "moves that are not declared": (planted(impl=lambda xp, x: x[::-1].copy(), rule=same), moves_check),
    "a choice that has an error": (planted(impl=lambda xp, x: x[::-1].copy(), traits=Trait.MOVES,
                                           rounding=Rounding(1.0)), moves_check),
    "errors that are not declared": (planted(rounding=EXACT), rounding_check),
    "larger errors than declared": (planted(impl=lambda xp, x: x * (x + 4) - 4 * x, rounding=ARITHMETIC),
                                    rounding_check),
    "a write through a view is lost": (planted(**TURNED, lens=Lens(lambda F, whole, part: whole)), lens_check),
    "a write through a view changes more": (
        planted(**TURNED, lens=Lens(lambda F, whole, part: part[::-1] * 2)), lens_check),
    "a view elsewhere": (planted(**TURNED, lens=Lens(lambda F, whole, part: part[::-1])), lens_check),
    "wrong subgradient": (planted(kinks=(Kink((1.0,), (0.5,)),)), lambda op: checks.check_kink(op, op.kinks[0])),
    "not commutative": (planted("x y", impl="subtract", traits=Trait.COMMUTATIVE, **NO_VJP), traits_check(X, Y)),
    "not linear": (planted(traits=Trait.LINEAR), traits_check(X)),
    "affine, not linear": (planted(impl=lambda xp, x: 2 * x + 1, traits=Trait.LINEAR), traits_check(X)),
    "not bilinear": (planted("x y", impl="add", traits=Trait.BILINEAR, **NO_VJP), traits_check(X, Y)),
    "not idempotent": (planted(traits=Trait.IDEMPOTENT), traits_check(X)),
    "not even": (planted(impl=lambda xp, x: x * x + x, traits=Trait.EVEN), traits_check(X)),
    "beyond its image": (planted(image=(0, 3.9)), facts_check(np.full((2, 3), 2.0))),
    "beyond the image of its operand": (planted(image=lambda params, x: x), facts_check(X / 2)),
    "not what it claims": (planted(claims=lambda params, result: (("band", 0, 9),)), facts_check(X)),
    "not symmetric": (planted(claims=lambda params, result: (("symmetric",),)), facts_check(X[:, :2])),
    "not its operand": (planted(passes=True), facts_check(X)),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_is_caught(fault: str):
    op, check = FAULTS[fault]
    with pytest.raises(AssertionError, match="planted"):
        check(op)


def test_sound_declaration_passes():
    op = planted(traits=Trait.NONE, kinks=(Kink((1.0,), (2.0,)),))
    checks.check_rule(op, [X], {})
    checks.check_memory(op, [X], {})
    checks.check_reference(op, [X], {})
    moves_check(op)
    rounding_check(planted(rounding=ARITHMETIC))
    lens_check(planted(impl=lambda xp, x: x.T, rule=same, lens=Lens(lambda F, whole, part: part.T)))
    checks.check_kink(op, op.kinks[0])
    gradient_check(op)


@pytest.mark.parametrize(
    ("where", "wrong"),
    [("input", dict(x=lambda F, g, x, y: g * y * 1.001, y=lambda F, g, x, y: g * x)),
     ("second", dict(x=lambda F, g, x, y: g * y, y=lambda F, g, x, y: g * y))],
)  # fmt: skip
def test_fault_in_one_of_two_gradients_is_caught(where: str, wrong: Any):
    op = planted("x y", impl="multiply", rule=pointwise_float, vjp=wrong)
    with pytest.raises(AssertionError, match=f"gradient of '{'x' if where == 'input' else 'y'}'"):
        checks.check_gradient(op, [X, Y], {}, np.random.default_rng(1))
