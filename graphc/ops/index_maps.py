"""What ops that move elements mean: for each place of the result the place that its element comes from.

References (see graphc.ops.references), which share nothing with the kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from graphc.ops.references import everywhere

Place = tuple[int, ...]
Shape = tuple[int, ...]
Params = Mapping[str, Any]


def moved(shape: Callable[..., Sequence[int]], source: Callable[..., Place | None]) -> Callable[..., np.ndarray]:
    """A reference from the shape of the result, `shape(x.shape, params)`, and `source(place, x.shape, params)`.

    An element that comes from nowhere is 0.
    """

    def reference(x: np.ndarray, **params: Any) -> np.ndarray:
        size = tuple(int(n) for n in shape(x.shape, params))
        result = np.zeros(size, x.dtype)
        for at in np.ndindex(size):
            place = source(at, x.shape, params)
            if place is not None:
                result[at] = x[place]
        return result

    return everywhere(reference)


@everywhere
def itself(x: np.ndarray, *others: np.ndarray, **params: Any) -> np.ndarray:
    return x


def position(at: Place, shape: Shape) -> int:
    """The number of a place in row-major order."""
    found = 0
    for k, n in zip(at, shape, strict=True):
        found = found * n + k
    return found


def place(number: int, shape: Shape) -> Place:
    """The place of that number."""
    found: list[int] = []
    for n in reversed(shape):
        found.append(number % n)
        number //= n
    return tuple(reversed(found))


def _given(shape: Shape, p: Params) -> Shape:
    return p["shape"]


def _same(shape: Shape, p: Params) -> Shape:
    return shape


def _of_slice(shape: Shape, p: Params) -> Shape:
    return tuple(len(range(*extent)) for extent in zip(p["start"], p["stop"], p["step"], strict=True))


def _from_slice(at: Place, shape: Shape, p: Params) -> Place:
    return tuple(a + k * s for k, a, s in zip(at, p["start"], p["step"], strict=True))


def _from_index(at: Place, shape: Shape, p: Params) -> Place:
    return _from_slice(place(position(at, p["shape"]), _of_slice(shape, p)), shape, p)


def _of_padding(shape: Shape, p: Params) -> Shape:
    extents = zip(shape, p["low"], p["high"], p["interior"], strict=True)
    return tuple(a + b + (n + (n - 1) * gap if n else 0) for n, a, b, gap in extents)


def _from_padding(at: Place, shape: Shape, p: Params) -> Place | None:
    parts = [divmod(k - a, gap + 1) for k, a, gap in zip(at, p["low"], p["interior"], strict=True)]
    inside = all(not rest and 0 <= k < n for (k, rest), n in zip(parts, shape, strict=True))
    return tuple(k for k, _ in parts) if inside else None


def _of_diagonal(shape: Shape, p: Params) -> Shape:
    one, two = p["dim1"], p["dim2"]
    run = sum(0 <= i + p["offset"] < shape[two] for i in range(shape[one]))
    return (*(n for k, n in enumerate(shape) if k not in (one, two)), run)


def _from_diagonal(at: Place, shape: Shape, p: Params) -> Place:
    rest, row = iter(at), max(0, -p["offset"]) + at[-1]
    own = {p["dim1"]: row, p["dim2"]: row + p["offset"]}
    return tuple(own[k] if k in own else next(rest) for k in range(len(shape)))


def _from_repeated(at: Place, shape: Shape, p: Params) -> Place:
    return tuple(0 if n == 1 else k for k, n in zip(at[len(at) - len(shape) :], shape, strict=True))


def _from_flipped(at: Place, shape: Shape, p: Params) -> Place:
    return tuple(n - 1 - k if i in p["axis"] else k for i, (k, n) in enumerate(zip(at, shape, strict=True)))


reshaped = moved(_given, lambda at, shape, p: place(position(at, p["shape"]), shape))
permuted = moved(
    lambda shape, p: [shape[d] for d in p["dims"]],
    lambda at, shape, p: tuple(at[list(p["dims"]).index(k)] for k in range(len(shape))),
)
repeated = moved(_given, _from_repeated)
flipped = moved(_same, _from_flipped)
cut = moved(_of_slice, _from_slice)
indexed = moved(_given, _from_index)
padded = moved(_of_padding, _from_padding)
diagonal = moved(_of_diagonal, _from_diagonal)
lower = moved(_same, lambda at, shape, p: at if at[-1] - at[-2] <= p["diagonal"] else None)
upper = moved(_same, lambda at, shape, p: at if at[-1] - at[-2] >= p["diagonal"] else None)


@everywhere
def joined(*xs: np.ndarray, axis: int) -> np.ndarray:
    """One behind the other along an axis."""
    shape = list(xs[0].shape)
    shape[axis] = sum(x.shape[axis] for x in xs)
    result, start = np.zeros(shape, np.result_type(*xs)), 0
    for x in xs:
        for at in np.ndindex(x.shape):
            result[(*at[:axis], at[axis] + start, *at[axis + 1 :])] = x[at]
        start += x.shape[axis]
    return result
