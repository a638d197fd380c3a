"""Wrong NumPy kernels. Eager and the graph on NumPy share them: who objects is XLA, whose forms are others."""

from __future__ import annotations

from typing import Any

import numpy as np

from compare.selftest import mutants
from compare.selftest.fault import Expected, Fault, Trials
from compare.selftest.mutants import Mutant, ignoring, instead
from compare.selftest.planting import Plant, declared
from compare.selftest.trials import in_turn, numbers, program, samples
from eager.engine.language import E
from graphc.ops import OPS
from graphc.ops.index import along

LAYER = "kernels"


def _fault(what: str, mutant: Mutant, name: str, *more: Trials) -> Fault:
    plant: Plant = lambda: declared(OPS[name], kernel=mutant(np, OPS[name], OPS[name].kernel))
    return Fault(f"kernel of {name}: {what}", LAYER, plant, Expected(name), in_turn(samples(name), *more), name)


_TABLE: tuple[tuple[str, Mutant, tuple[str, ...]], ...] = (
    ("off by 1e-3", mutants.scaled, ("tanh", "exp", "softmax", "erf", "conv1d", "avg_pool2d", "matrix_exp")),
    ("one element off", mutants.last_element_off, ("matmul", "mean", "sinh")),
    ("a wrong sign", mutants.negated, ("dot_along", "angle")),
    ("operands swapped", mutants.swapped, ("sub", "atan2", "copysign", "lt", "nextafter", "fmod")),
    ("the operand returned", mutants.identity, ("floor", "round", "flip", "expm1")),
    ("through float32", mutants.narrow, ("sigmoid", "log1p", "logsumexp", "asinh")),
    ("one place further", mutants.one_higher, ("argmax", "searchsorted")),
    ("transposed", mutants.transposed, ("inv", "cofactor")),
)  # fmt: skip


def _of_equals_the_last(xp: Any, x: Any, axis: int, keepdims: bool) -> Any:
    found = np.argmax(np.flip(x, axis), axis=axis, keepdims=keepdims) if x.ndim else np.argmax(x)
    return (x.shape[axis] if x.ndim else 1) - 1 - found


def _in_place(xp: Any, x: Any) -> Any:
    if x.flags.writeable and x.ndim:
        np.maximum(x, 0, out=x)
    return np.maximum(x, 0)


_ties = program(lambda x: E.argmax(x, axis=0, keepdims=False), np.array([1.0, 3.0, 3.0, 0.0], np.float32))
_halves = program(lambda x: E.round(x), np.array([0.5, 1.5, 2.5, -0.5, 1.2], np.float32))
_nans = program(lambda x, y: E.maximum(x, y), np.array([1.0, np.nan], np.float32), np.array([np.nan, 2.0], np.float32))
_repeated = program(lambda x, i, v: E.scatter_add(x, i, v, axis=0), numbers(4), np.array([1, 1, 3]), numbers(3, seed=7))

_transposed = program(lambda x: (x.T * 2).exp(), numbers(3, 4))
_found = program(lambda s, x: E.searchsorted(s, x, right=True), np.arange(4.0), np.array([1.0, 2.5]))
_negative = program(lambda x: E.relu(x) + x, numbers(4, low=-1, high=1))


def _put(xp: Any, x: Any, index: Any, src: Any, axis: int) -> Any:
    found = x.copy()
    places = along(np, index, axis)
    found[places] = found[places] + src
    return found


FAULTS: tuple[Fault, ...] = (
    *(_fault(what, mutant, name) for what, mutant, names in _TABLE for name in names),
    _fault("`correction` ignored", ignoring("correction"), "var"),
    _fault("`descending` ignored", ignoring("descending"), "argsort"),
    _fault("`reverse` ignored", ignoring("reverse"), "cumsum"),
    _fault("`accumulate` ignored", ignoring("accumulate"), "index_put"),
    _fault("`diagonal` ignored", ignoring("diagonal"), "triu"),
    _fault("`right` ignored", ignoring("right"), "searchsorted", _found),
    _fault("`keepdims` ignored", ignoring("keepdims"), "amax"),
    _fault("of equals the last", instead(_of_equals_the_last), "argmax", _ties),
    _fault("halves away from zero", instead(lambda xp, x: xp.sign(x) * xp.floor(abs(x) + 0.5)), "round", _halves),
    _fault("nan lost", instead(lambda xp, x, y: xp.fmax(x, y)), "maximum", _nans),
    _fault("wrong on operands in another order", mutants.disordered, "exp", _transposed),
    _fault("writes its operand", instead(_in_place), "relu", _negative),
    _fault("last of repeated indices wins", instead(_put), "scatter_add", _repeated),
)  # fmt: skip
