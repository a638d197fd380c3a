"""Which values an op's parameters may have: what a checker asks of parameters that come from a file.

The kinds of values are those of the declaration: the default and the samples. What numbers mean is said by the
parameter's name, which is the same wherever it means the same.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from graphc.errors import GraphError
from graphc.ops.aval import Aval, Literal
from graphc.ops.dims import plain
from graphc.ops.interpret import with_defaults
from graphc.ops.spec import Op

LARGEST = 2**63 - 1  # an extent, or the bytes of an array
DIMENSIONS = 64  # of NumPy's arrays

_NUMBERS = frozenset("value start step exponent correction order eps".split())  # where any number will do
_DTYPES = frozenset({"dtype"})
_SPEC = "spec"  # a number for an index array, nothing for a whole axis
_AXES = frozenset("axis axes dims dim1 dim2".split())  # dims of the first operand, counted from the front
_NEVER_NEGATIVE = frozenset("shape size low high interior kernel stride padding dilation groups n offset".split())
_POSITIVE = frozenset("kernel dilation groups".split())
_SLICES = frozenset("start stop step".split())  # where they are tuples: from the front, forwards
_FREE = frozenset("message equation".split())  # any text; elsewhere a text is one of those that the declaration shows
_FACTS = frozenset({"fact"})  # a name and numbers, which the op's shape rule looks at


def check_aval(aval: Aval) -> None:
    """Raise GraphError for a type that no array can have."""
    size = aval.dtype.itemsize
    if len(aval.shape) > DIMENSIONS:
        raise GraphError(f"an array of {len(aval.shape)} dimensions; there are at most {DIMENSIONS}")
    for extent in map(plain, aval.shape):
        if type(extent) is not int or not 0 <= extent <= LARGEST:
            raise GraphError(f"the extent {extent!r}; it must be an integer from 0 to 2**63 - 1")
        size *= max(extent, 1)
    if size > LARGEST:
        raise GraphError(f"an array of {size:.3g} bytes; none has more than 2**63 - 1")


def check_parameters(op: Op, operands: list[Aval], params: Mapping[str, Any]) -> None:
    """Raise GraphError for a parameter that no declaration, sample or operand of `op` allows."""
    for name, value in params.items():
        known = _patterns(op)[name]
        if known and not _matches(value, known):
            raise GraphError(f"parameter {name}={_short(value)}: expected {' or '.join(sorted(known))}")
        if name in _AXES and operands:
            _check_axes(name, value, operands[0].ndim)
        is_slice = name in _SLICES and isinstance(value, tuple)
        if name in _NEVER_NEGATIVE or is_slice:
            least = 1 if name in _POSITIVE or (is_slice and name == "step") else 0
            if any(not least <= n <= LARGEST for n in _integers(value)):
                raise GraphError(f"parameter {name}={_short(value)}: expected integers from {least} to 2**63 - 1")
        elif any(abs(n) > LARGEST + 1 for n in _integers(value)):
            raise GraphError(f"parameter {name}={_short(value)}: an integer of more than 64 bits")


def _check_axes(name: str, value: Any, rank: int) -> None:
    axes = value if isinstance(value, tuple) else (value,)
    bound = max(rank, 1)
    if any(not -bound <= axis < bound for axis in axes):
        raise GraphError(f"parameter {name}={_short(value)}: the operand has {rank} dimensions")
    if len({axis % bound for axis in axes}) != len(axes):
        raise GraphError(f"parameter {name}={_short(value)}: a dimension twice")


def _integers(value: Any) -> list[int]:
    if isinstance(value, tuple):
        return [n for element in value for n in _integers(element)]
    return [value] if type(value) is int else []


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


# kinds of values: "integer", "tuple of integer", ...
@functools.lru_cache(maxsize=1024)
def _patterns(op: Op) -> dict[str, frozenset[str]]:
    """For each parameter of `op` the kinds of values it may have; none if the declaration does not tell."""
    found: dict[str, set[str]] = {name: set() for name in op.params}
    for sample in op.samples:
        for name, value in with_defaults(op, sample.params).items():
            found[name] |= _kinds(value)
    for name, default in op.params.items():
        if default is not None:
            found[name] |= _kinds(default)
        if name in _FREE:
            found[name] = {"text"}
        if name in _FACTS:
            found[name] = {"tuple of text", "tuple of integer", "tuple of number"}
        if name in _DTYPES:
            found[name] = {"dtype"}
        elif name == _SPEC:
            found[name].add("tuple of nothing")
        elif name in _NUMBERS and not any(map(_is_tuple, found[name])) and "constant" not in found[name]:
            found[name] |= {"integer", "number", "truth value"}
    return {name: frozenset(kinds) for name, kinds in found.items()}


def _is_tuple(kind: str) -> bool:
    return kind.startswith("tuple")


def _matches(value: Any, known: frozenset[str]) -> bool:
    if isinstance(value, tuple):
        inner = frozenset(kind.removeprefix("tuple of ") for kind in known if _is_tuple(kind))
        return any(map(_is_tuple, known)) and all(_matches(element, inner) for element in value)
    return _kinds(value) <= known or (isinstance(value, str) and "text" in known)


def _kinds(value: Any) -> set[str]:
    if isinstance(value, tuple):
        return {f"tuple of {kind}" for element in value for kind in _kinds(element)} or {"tuple of integer"}
    if isinstance(value, (bool, np.bool_)):
        return {"truth value"}
    if isinstance(value, (int, np.integer)):
        return {"integer"}
    if isinstance(value, (float, complex, np.inexact)):
        return {"number"}
    if isinstance(value, str):
        return {repr(value)}
    named = {np.dtype: "dtype", Literal: "constant", type(None): "nothing"}
    return {next((name for kind, name in named.items() if isinstance(value, kind)), type(value).__name__)}
