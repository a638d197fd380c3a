"""Aval: the abstract value of an array, its shape and dtype; and Literal, a constant compared by bits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, final

import numpy as np

from graphc.ops.dims import shown
from graphc.ops.dtypes import SHORT_NAMES


class Aval(NamedTuple):
    """Shape and dtype of an array whose values are not looked at."""

    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return size_of(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def __str__(self) -> str:
        extents = f"[{','.join(map(shown, self.shape))}]" if self.shape else ""
        return SHORT_NAMES[self.dtype] + extents


def types_text(avals: Sequence[Aval]) -> str:
    """The types of an operation's results, as a graph prints them: `f32[3]`, or `(f32[3], i64[3])` of several."""
    return str(avals[0]) if len(avals) == 1 else f"({', '.join(map(str, avals))})"


def size_of(shape: tuple[int, ...]) -> int:
    """The number of elements of an array of this shape."""
    return math.prod(shape)


def same_shape(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """Whether two shapes are equal: of shapes of other ranks, symbolic sizes are not even compared."""
    return len(a) == len(b) and a == b


def aval_of(array: np.ndarray) -> Aval:
    """The Aval of a concrete array."""
    return Aval(array.shape, array.dtype)


def results_of(value: Any) -> tuple[Any, ...]:
    """The arrays that an operation has given, one or a tuple of several."""
    return value if isinstance(value, tuple) else (value,)


def type_of(value: Any) -> Any:
    """What a shape rule says of this value of an operation: its Aval, or those of several in a tuple."""
    return tuple(map(aval_of, value)) if isinstance(value, tuple) else aval_of(value)


@final
class Literal:
    """An immutable constant array. Two are equal only bit for bit: 0.0 is not -0.0, and 1 is not True.

    `number` is that of an array with one element, as Python's; None for others.
    """

    __slots__ = ("_hash", "array", "number")

    def __init__(self, array: np.ndarray):
        self.array = np.array(array, order="C")
        self.array.flags.writeable = False
        self.number = self.array.item() if self.array.size == 1 else None
        self._hash = hash((self.array.shape, self.array.dtype, self.array.tobytes()))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Literal):
            return NotImplemented
        a, b = self.array, other.array
        return a is b or (a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes())

    def __repr__(self) -> str:
        return f"Literal({self.array!r})"
