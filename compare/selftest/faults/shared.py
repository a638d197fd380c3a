"""Faults in what the modes share: a kernel and its lowering alike, or the one gradient rule. No mode differs."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from compare.selftest import mutants
from compare.selftest.fault import Expected, Fault, Trials
from compare.selftest.mutants import Mutant, ignoring, instead, operands, result
from compare.selftest.planting import Plant, declared, entry, together, with_rule
from compare.selftest.trials import call, extremes, in_turn, numbers, program, samples
from eager.engine.language import E
from graphc.lowering.loading import jax
from graphc.lowering.overrides import OVERRIDES
from graphc.lowering.source import jax_kernel
from graphc.ops import OPS
from graphc.ops.dtypes import FLOAT32
from graphc.ops.spec import Vjp

LAYER = "shared declarations"


def _tried(name: str, given: tuple[Any, ...], params: dict[str, Any]) -> Trials:
    """A call of the op on the arrays that are `given`, or trials that are, and then its samples."""
    first = given if not params and all(map(callable, given)) else (call(name, *given, **params),)
    return in_turn(*first, samples(name), extremes(name))


def shared_kernel(what: str, mutant: Mutant, name: str, *given: Any, layer: str = LAYER, **params: Any) -> Fault:
    """The same wrong kernel for NumPy and for XLA. given: trials, or the operands of a call with `params`."""
    op = OPS[name]
    plant: Plant = lambda: both(name, mutant(np, op, op.kernel), mutant(jax.numpy, op, jax_kernel(op)[1]))
    tried = _tried(name, given, params)
    return Fault(f"kernels of {name}: {what}", layer, plant, Expected(name, "kernel"), tried, name)


def both(name: str, kernel: Any, lowered: Any) -> AbstractContextManager[None]:
    return together(lambda: entry(OVERRIDES, name, lowered), lambda: declared(OPS[name], kernel=kernel))()


def shared_rule(what: str, rule: Any, place: str, *given: Any, layer: str = LAYER, **params: Any) -> Fault:
    """Another gradient rule, which asks for what its parameters are called. `given` as of `shared_kernel`."""
    name, _, argument = place.partition(".")
    wrong = Vjp(rule, rule.__code__.co_varnames[1 : rule.__code__.co_argcount])
    plant: Plant = lambda: declared(OPS[name], vjp=with_rule(OPS[name], argument, wrong))
    tried = _tried(name, given, params)
    return Fault(f"rule of {place}: {what}", layer, plant, Expected(name, "gradient rule"), tried, name)


def row(*values: float) -> np.ndarray:
    return np.array(values, FLOAT32)


def _last_of_equals(xp: Any, x: Any, axis: int, keepdims: bool) -> Any:
    back = xp.argmax(xp.flip(x, axis), axis=axis, keepdims=keepdims)
    return (x.shape[axis] - 1 - back).astype(np.int64)


def _exclusive(xp: Any, x: Any, axis: int, reverse: bool) -> Any:
    found = xp.cumsum(x, axis=axis)
    return found - x


def _freely(xp: Any, x: Any, axis: Any, keepdims: bool) -> Any:
    n = x.size // max(1, int(np.prod([m for k, m in enumerate(x.shape) if k not in axis])))
    return xp.sum(x, axis=axis, keepdims=keepdims) / x.dtype.type(max(n - 1, 1))


def _without_zeros(xp: Any, x: Any, axis: Any, keepdims: bool) -> Any:
    return xp.prod(xp.where(x == 0, xp.ones_like(x), x), axis=axis, keepdims=keepdims)


def _inverse(xp: Any, x: Any, dims: Any) -> Any:
    return xp.transpose(x, tuple(int(k) for k in np.argsort(dims)))


def _unsigned(xp: Any, x: Any, y: Any) -> Any:
    return ((x.astype(np.uint64)) >> y.astype(np.uint64)).astype(x.dtype)


_ties = row(1.0, 3.0, 3.0, 0.0)
_halves = row(0.5, 1.5, 2.5, -0.5, 1.2)
_signed = row(-2.5, -1.0, 0.5, 3.0)
_odd = row(1.0, np.nan, np.inf, -np.inf)
_zeros = row(0.0, -0.0, 2.0, -2.0)

_KERNELS = (
    shared_kernel("of equals the last", instead(_last_of_equals), "argmax", _ties, axis=0, keepdims=False),
    shared_kernel("halves away from zero", instead(
        lambda xp, x: xp.sign(x) * xp.floor(abs(x) + 0.5)), "round", _halves),
    shared_kernel("of nan it is nan", instead(lambda xp, x: xp.sign(x)), "sign", _odd),
    shared_kernel("truncates", instead(lambda xp, x, y: xp.trunc(x / y).astype(x.dtype)), "floor_divide",
                  program(lambda x: E.floor_divide(x, x * 0 + 2), _signed)),
    shared_kernel("the sign of the divisor", instead(lambda xp, x, y: abs(xp.fmod(x, y)) * xp.sign(y)), "fmod",
                  _signed, row(2.0, 2.0, -2.0, -2.0)),
    shared_kernel("the operands exchanged", instead(lambda xp, c, x, y: xp.where(c, y, x)), "where",
                  program(lambda x: E.where(x > 0, x, x * 3), _signed)),
    shared_kernel("without the diagonal", instead(lambda xp, x, diagonal: xp.tril(x, diagonal - 1)), "tril",
                  numbers(3, 4), diagonal=0),
    shared_kernel("exclusive", instead(_exclusive), "cumsum", numbers(5), axis=0, reverse=False),
    shared_kernel("the other side", instead(lambda xp, s, v, right: xp.searchsorted(
        s, v, side="left" if right else "right").astype(np.int64)), "searchsorted", row(0, 1, 2), row(1, 2.5),
                  right=True),
    shared_kernel("`correction` ignored", ignoring("correction", 0), "var", numbers(5), axis=(0,), keepdims=False,
                  correction=1),
    shared_kernel("strict", instead(lambda xp, x, y: x < y), "le", program(lambda x, y: x <= y, _ties, _ties)),
    shared_kernel("nan is finite", instead(lambda xp, x: ~xp.isinf(x)), "isfinite", _odd),
    shared_kernel("an or", instead(lambda xp, x, y: xp.logical_or(x, y)), "logical_xor", row(1, 0, 1, 0),
                  row(1, 1, 0, 0)),
    shared_kernel("off by 1e-3", mutants.scaled, "erf", numbers(4)),
    shared_kernel("without the sign", instead(_unsigned), "bitwise_right_shift", np.array([-8, 5]), np.array([1, 1])),
    shared_kernel("a sum of sizes", instead(lambda xp, x, y: abs(x) + abs(y)), "hypot", numbers(4), numbers(4, seed=6)),
    shared_kernel("the next element", instead(
        lambda xp, x, index, axis: xp.take_along_axis(x, (index + 1) % x.shape[axis], axis)), "gather", numbers(4),
                  np.array([0, 2, 2]), axis=0),
    shared_kernel("over n - 1", instead(_freely), "mean", numbers(5), axis=(0,), keepdims=False),
    shared_kernel("the inverse permutation", instead(_inverse), "permute", numbers(3, 3, 3), dims=(1, 2, 0)),
    shared_kernel("zeros left out", instead(_without_zeros), "prod", row(2, 0, 3), axis=(0,), keepdims=False),
    shared_kernel("zeros have no sign", instead(lambda xp, x, y: xp.where(y < 0, -abs(x), abs(x))), "copysign",
                  row(1, 2, 3, 4), _zeros),
    shared_kernel("the sign kept", instead(lambda xp, x: x * abs(x)), "square", _signed),
    shared_kernel("the absolute value", result(lambda xp, r: abs(r)), "det",
                  row(0, 1, 1, 0).reshape(2, 2) + np.eye(2, dtype=FLOAT32) * 0.25),
    shared_kernel("of the transpose", operands(lambda xp, x, y: (xp.swapaxes(x, -1, -2), y)), "solve",
                  numbers(3, 3) + 3 * np.eye(3, dtype=FLOAT32), numbers(3, 2), checked=False),
    shared_kernel("the weight reversed", operands(lambda xp, x, w: (x, xp.flip(w, -1))), "conv1d"),
    shared_kernel("to the other direction", ignoring("inverse", True), "fft"),
)  # fmt: skip


def _first_takes_all(F: Any, g: Any, input: Any, r: Any, input_shape: Any, axis: Any, keepdims: Any) -> Any:
    kept = tuple(1 if k in axis else n for k, n in enumerate(input_shape))
    hit = F.cast(input == F.reshape(r, shape=kept), dtype=np.dtype(getattr(g.dtype, "numpy", g.dtype)))
    first = hit * (F.cumsum(hit, axis=axis[0], reverse=False) == 1)
    return F.reshape(g, shape=kept) * first


def _naive_product(F: Any, g: Any, input: Any, r: Any, input_shape: Any, axis: Any, keepdims: Any) -> Any:
    kept = tuple(1 if k in axis else n for k, n in enumerate(input_shape))
    return F.reshape(g * r, shape=kept) / F.where(input == 0, 1, input)


def _naive_running_product(F: Any, g: Any, r: Any, input: Any, axis: int) -> Any:
    return F.cumsum(g * r, axis=axis, reverse=True) / F.where(input == 0, 1, input)


def _naive_norm(F: Any, g: Any, r: Any, input: Any, input_shape: Any, order: float, axis: Any, keepdims: Any) -> Any:
    kept = tuple(1 if k in axis else n for k, n in enumerate(input_shape))
    share = F.abs(input) / F.reshape(r, shape=kept)
    return F.reshape(g, shape=kept) * F.sgn(input) * F.pow_scalar(share, exponent=order - 1)


_RULES = (
    shared_rule("1 at 0", lambda F, g, input: F.where(input >= 0, g, -g), "abs.input", _zeros),
    shared_rule("1 at 0", lambda F, g, input: F.where(input >= 0, g, 0), "relu.input", _zeros),
    shared_rule("all to the first of equals", _first_takes_all, "amin.input", row(2, 1, 1, 1), axis=(0,),
                keepdims=False),
    shared_rule("nothing on a tie", lambda F, g, input, other: F.where(input < other, g, 0), "minimum.input",
                row(1, 2, 3), row(1, 3, 2)),
    shared_rule("passed on", lambda F, g: g, "floor.input", _halves),
    shared_rule("nan at the powers 0 of 0", lambda F, g, input, other: g * (other * input ** (other - 1)), "pow.input",
                row(0, 2), row(0, 3)),
    shared_rule("nan at the origin", lambda F, g, input, other: g * (other / (input * input + other * other)),
                "atan2.input", row(0, 2), row(0, 3)),
    shared_rule("passed on at 0", lambda F, g, input, other: F.where(F.signbit(input) == F.signbit(other), g, -g),
                "copysign.input", row(0, 1, -2), row(1, -1, 2)),
    shared_rule("0 beside a zero", _naive_product, "prod.input", row(2, 0, 3), axis=(0,), keepdims=False),
    shared_rule("0 behind a zero", _naive_running_product, "cumprod.input", row(2, 0, 3), axis=0),
    shared_rule("nan at 0", _naive_norm, "power_norm.input", row(0, 0, 0), order=3.0, axis=(0,), keepdims=False),
    shared_rule("log(0) at 0", lambda F, g, other: g * F.log(other), "xlogy.input", row(0, 1), row(0, 2)),
    shared_rule("1 at 0", lambda F, g,
        input: F.where(input == 0, g, g * (F.cos(input * np.pi) - F.sin(input * np.pi) / (
        F.where(input == 0, 1, input) * np.pi)) / F.where(input == 0, 1, input)), "sinc.input", row(0, 0.5)),
    shared_rule("passed on where they are equal", lambda F, g: g, "nextafter.input", row(1, 2), row(1, 3)),
    shared_rule("to the other", lambda F, g, condition: F.where(condition, 0, g), "where.input",
                program(lambda x: E.where(x > 0, x, x * 3), _signed)),
)  # fmt: skip

FAULTS: tuple[Fault, ...] = (*_KERNELS, *_RULES)
