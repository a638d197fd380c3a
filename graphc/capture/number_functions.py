"""Functions of Python numbers, as `math.exp` and `np.exp`, of numbers that are traced.

C code takes the number itself, and a program would be for that one only: a schedule that counts its steps would be
compiled anew at each. NumPy asks `Number.__array_ufunc__`; what is in `math` asks nobody, so while a function is traced
other functions stand in its place. What raises, or is not finite, is left to the function itself.
"""

from __future__ import annotations

import bisect
import contextlib
import functools
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from graphc import forking
from graphc.capture.number import Number
from graphc.capture.state.places import Place
from graphc.ops import OPS, Op
from graphc.ops.dtypes import FLOAT64
from graphc.ops.interpret import run_kernel, with_defaults

_SAMPLES = (0.8, 0.3), (1.2, -0.7), (-0.8, 0.3), (2.5, -2.0)
_PLAIN = (bool, int, float)  # NumPy's float64 is a float

_lock = forking.renewed(threading.Lock())
_tracing = 0


def _agrees(function: Callable[..., Any], op: Op | None) -> bool:
    """Whether an op gives the floats that a function gives of floats; of some it may raise."""
    if op is None or not op.rule.pointwise or op.several:
        return False
    params, agreed = with_defaults(op, {}), 0
    for sample in _SAMPLES:
        operands = sample[: len(op.args)]
        try:
            with np.errstate(all="ignore"):
                value = function(*operands)
                if not isinstance(value, float):
                    return False
                known = float(run_kernel(op, [np.asarray(x) for x in operands], params))
        except (TypeError, ValueError):
            continue
        if not math.isclose(value, known) and not (math.isnan(value) and math.isnan(known)):
            return False
        agreed += 1
    return agreed > 0


_OF_UFUNC: dict[Any, Op] = {op.kernel: op for op in OPS.values() if isinstance(op.kernel, np.ufunc)}


@functools.cache
def _op_of(ufunc: np.ufunc) -> Op | None:
    """The op that gives the floats that a function of NumPy gives."""
    op = _OF_UFUNC.get(ufunc) or OPS.get(ufunc.__name__)
    return op if _agrees(ufunc, op) else None


def _traced(op: Op, function: Callable[..., Any], operands: tuple[Any, ...]) -> Any:
    """The result of an op; the number that `function` gives, or what it raises, if that is not finite."""
    found = Number.made(op, operands)
    return found if found.is_finite() else function(*map(_known, operands))


def _of_ufunc(self: Number, ufunc: np.ufunc, method: str, *operands: Any, **options: Any) -> Any:
    """What a function of NumPy gives of numbers, some of which are traced."""
    op = (
        _op_of(ufunc) if method == "__call__" and not options and all(isinstance(x, _PLAIN) for x in operands) else None
    )
    if op is not None and _is_float(ufunc, operands):
        found = _traced(op, ufunc, operands)
        return found.as_of_numpy() if type(found) is Number else found
    return getattr(ufunc, method)(*map(_known, operands), **options)


def _is_float(ufunc: np.ufunc, operands: tuple[Any, ...]) -> bool:
    """Whether the result is one float64."""
    kinds = [np.dtype(x.__class__) for x in operands]
    try:
        return ufunc.resolve_dtypes((*kinds, *[None] * ufunc.nout))[-1] == FLOAT64
    except TypeError:
        return False


def _interpolated(x: Any, xp: Any, fp: Any) -> Any:
    """`np.interp`: the program depends on between which places `x` is."""
    places, values = np.asarray(xp, FLOAT64).tolist(), np.asarray(fp, FLOAT64).tolist()
    k = bisect.bisect_right(places, x)
    if k in (0, len(places)):
        return np.float64(values[min(k, len(places) - 1)])
    slope = (values[k] - values[k - 1]) / (places[k] - places[k - 1])
    return slope * (x - places[k - 1]) + values[k - 1]


def _clipped(x: Any, low: Any, high: Any) -> Any:
    return np.minimum(np.maximum(x, low), high)


_OF_NUMPY: dict[Any, Callable[..., Any]] = {np.interp: _interpolated, np.clip: _clipped}


def _of_function(self: Number, function: Callable[..., Any], types: Any, args: Any, options: Any) -> Any:
    """The same of functions that are none of single elements."""
    if not all(issubclass(kind, (Number, np.ndarray)) for kind in types):
        return NotImplemented
    own = _OF_NUMPY.get(function)
    if own is not None and len(args) == 3 and not options and type(args[0]) is Number:
        others = np.concatenate([np.ravel(np.asarray(x, object)) for x in args[1:]])
        if not any(type(x) is Number for x in others) and args[0].is_finite():
            found = own(*args)
            return found.as_of_numpy() if type(found) is Number else found
    return function(*map(_known, args), **{name: _known(value) for name, value in options.items()})


def _known(value: Any) -> Any:
    """Without traced numbers, in nests of lists and tuples either."""
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(map(_known, value))
    return value.known() if type(value) is Number else value


Number.__array_ufunc__ = _of_ufunc
Number.__array_function__ = _of_function


def _in_place_of(function: Callable[..., Any], op: Op) -> Callable[..., Any]:
    @functools.wraps(function)
    def of_numbers(*operands: Any) -> Any:
        traced = len(operands) == len(op.args) and any(type(x) is Number for x in operands)
        traced = traced and all(isinstance(x, _PLAIN) for x in operands)
        return _traced(op, function, operands) if traced else function(*operands)

    return of_numbers


_PYTHONS = {name: function for name, function in vars(math).items() if _agrees(function, OPS.get(name))}
_TRACING = {name: _in_place_of(function, OPS[name]) for name, function in _PYTHONS.items()}


@contextlib.contextmanager
def functions_of_numbers(places: Sequence[Place]) -> Iterator[None]:
    """Inside the block, in all threads, the functions of `math` take traced numbers; also those imported by name, which
    are in `places`."""
    global _tracing
    own = {id(function): _TRACING[name] for name, function in _PYTHONS.items()}
    imported = [(place, found) for place in places if (found := place.before) is not None and id(found) in own]
    with _lock:
        _tracing += 1
        math.__dict__.update(_TRACING)
    try:
        for place, function in imported:
            place.write(own[id(function)])
        yield
    finally:
        for place, function in imported:
            place.write(function)
        with _lock:
            _tracing -= 1
            if not _tracing:
                math.__dict__.update(_PYTHONS)
