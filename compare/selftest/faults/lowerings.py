"""Wrong forms of ops under XLA, and a wrong translation of what surrounds them."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from compare.selftest import mutants
from compare.selftest.fault import Expected, Fault, Trials
from compare.selftest.mutants import Mutant, ignoring, instead
from compare.selftest.planting import Plant, attribute, entry
from compare.selftest.trials import calls, in_turn, numbers, program, samples
from eager.core.tensor import Tensor
from eager.engine.language import E
from graphc.execution.prechecks import Prechecks
from graphc.lowering import program_devices
from graphc.lowering.constant_operands import WRITERS as BY_NUMBERS
from graphc.lowering.loading import jax
from graphc.lowering.overrides import OVERRIDES
from graphc.lowering.source import Source, jax_kernel
from graphc.ops import OPS
from graphc.ops.dtypes import FLOAT32, FLOAT64, INT64

LAYER = "lowerings"


def _fault(what: str, mutant: Mutant, name: str, *more: Trials) -> Fault:
    op = OPS[name]
    plant: Plant = lambda: entry(OVERRIDES, name, mutant(jax.numpy, op, jax_kernel(op)[1]))
    expected = Expected(name, "lowering")
    return Fault(f"lowering of {name}: {what}", LAYER, plant, expected, in_turn(samples(name), *more), name)


_TABLE: tuple[tuple[str, Mutant, tuple[str, ...]], ...] = (
    ("off by 1e-3", mutants.scaled, ("cos", "sqrt", "sum", "log_softmax", "special_erfcx", "conv2d_input", "solve")),
    ("one element off", mutants.last_element_off, ("add", "cumsum", "gather")),
    ("a wrong sign", mutants.negated, ("remainder", "digamma")),
    ("operands swapped", mutants.swapped, ("floor_divide", "pow", "ge", "fmod")),
    ("the operand returned", mutants.identity, ("trunc", "conj", "flip")),
    ("through float32", mutants.narrow, ("tan", "mean", "erf")),
    ("one place further", mutants.one_higher, ("argmin",)),
    ("transposed", mutants.transposed, ("cholesky",)),
)  # fmt: skip


def _scatter(xp: Any, x: Any, index: Any, src: Any, axis: int, distinct: bool) -> Any:
    places = list(xp.meshgrid(*map(xp.arange, index.shape), indexing="ij"))
    places[axis] = xp.flip(index, axis)
    return x.at[tuple(places)].set(xp.flip(src, axis))


_large = program(lambda x: E.softmax(x, axis=0), np.array([1000.0, 0.0, 999.0], FLOAT32))
_nans = program(lambda x, y: E.minimum(x, y), np.array([1.0, np.nan], FLOAT32), np.array([np.nan, 2.0], FLOAT32))
_large_integers = program(
    lambda x: E.cast(x.detach(), dtype=np.dtype(np.int32)), np.array([3e9, -1.5, np.nan, 2.5], FLOAT32)
)
_equal = program(lambda x: E.argsort(x, axis=0, descending=False), np.tile(np.array([1.0, 0.0], FLOAT32), 20))
_twice = program(
    lambda x, i, v: E.scatter(x, i, v, axis=0), numbers(4), np.array([1, 1, 3]), np.array([1.0, 2.0, 3.0], FLOAT32)
)
_signed = np.array([-0.0, 0.0, 2.0], FLOAT32)
_unsigned = mutants.result(lambda xp, r: xp.where(r == 0, xp.zeros_like(r), r))
_zeros = program(lambda x: E.relu(x), np.array([-1.0, np.nan, 2.0], FLOAT32))
# integers that are given are asked about before the program runs, others by the program
_outside = program(lambda x, i: x[i], numbers(3), np.array([0, 5]))
_outside_inside = program(lambda x, i: x[i.long()], numbers(3), np.array([0.0, 5.0]))
_by_zero = program(lambda x, y: x // y, np.array([4, 5]), np.array([2, 0]))
_by_zero_inside = program(lambda x, y: x // y.long(), np.array([4, 5]), np.array([2.0, 0.0]))
_cubes = program(lambda x: x**3, numbers(4))
_doubles = program(lambda x: (x * (1 + 1e-12) - x).sum(), numbers(4, dtype=FLOAT64))
_ints = program(lambda x: x * 2**40, np.array([1, 2, 3], INT64))


def _unstable(xp: Any, x: Any, axis: int, descending: bool) -> Any:
    order = xp.argsort(xp.flip(x, axis), axis=axis, stable=True, descending=descending)
    return (x.shape[axis] - 1 - order).astype(xp.int64)


def _without_checks() -> AbstractContextManager[None]:
    return attribute(Source, "_asks_anew", lambda self, node: False)


def _without_prechecks() -> AbstractContextManager[None]:
    return attribute(Prechecks, "lines", lambda self, *args: [])


FAULTS: tuple[Fault, ...] = (
    *(_fault(what, mutant, name) for what, mutant, names in _TABLE for name in names),
    _fault("`keepdims` ignored", ignoring("keepdims"), "sum"),
    _fault("`correction` ignored", ignoring("correction"), "var"),
    _fault("`diagonal` ignored", ignoring("diagonal"), "tril"),
    _fault("`stride` ignored", ignoring("stride"), "conv2d"),
    _fault("in bfloat16", instead(
        lambda xp, x, y: (x.astype(xp.bfloat16) @ y.astype(xp.bfloat16)).astype(x.dtype)), "matmul"),
    _fault("overflows", instead(
        lambda xp, x, axis: xp.exp(x) / xp.sum(xp.exp(x), axis=axis, keepdims=True)), "softmax", _large),
    _fault("the first of repeated indices wins", instead(_scatter), "scatter", _twice),
    _fault("saturates", instead(lambda xp, x, dtype: jax.lax.convert_element_type(x, dtype)), "cast", _large_integers),
    _fault("unstable", instead(_unstable), "argsort", _equal),
    _fault("nan lost", instead(lambda xp, x, y: xp.fmin(x, y)), "minimum", _nans),
    _fault("nan lost", instead(lambda xp, x: xp.where(x > 0, x, 0)), "relu", _zeros),
    _fault("signs of zeros lost", _unsigned, "mul", program(lambda x, y: 1 / (x * y), _signed, numbers(3))),
    _fault("signs of zeros lost", _unsigned, "add", calls(
        lambda x, y: 1 / (x + y), *[(Tensor._wrap(_signed.copy()), Tensor._wrap(_signed.copy()))] * 2)),
    _fault("in float32", mutants.result(lambda xp, r: r.astype(FLOAT32)), "log"),
    Fault("lowering: a whole power, one factor missing", LAYER, lambda: entry(BY_NUMBERS, "pow",
        lambda node, names, avals, found: f"lax.integer_pow({names[0]}, {int(found[1]) - 1})"),
          Expected(), _cubes, "pow"),
    Fault("lowering: indices clamped, no error", LAYER, _without_checks, Expected("index"), _outside_inside, "index"),
    Fault("lowering: no error for a zero divisor", LAYER, _without_checks, Expected("floor_divide"), _by_zero_inside,
          "floor_divide"),
    Fault("prechecks: indices not asked about", LAYER, _without_prechecks, Expected("index"), _outside, "index"),
    Fault("prechecks: divisors not asked about", LAYER, _without_prechecks, Expected("floor_divide"), _by_zero,
          "floor_divide"),
    Fault("lowering: 64-bit types lost", LAYER,
          lambda: attribute(program_devices, "setting", lambda wide, device=None: nullcontext()),
          Expected(part="lowering"), in_turn(_doubles, _ints)),
)  # fmt: skip
