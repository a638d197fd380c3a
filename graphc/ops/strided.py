"""Elements by their place in memory: `as_strided`, its transpose, and writing through it.

An operand lies in a flat memory: row-major from the start (`layout` None), or with `layout` = (strides, offset), in
elements. The result has element [i, j, ...] at offset + i * stride[0] + j * stride[1] + ... of that memory; where the
operand does not reach, the memory holds 0. This is how in-place writes to views are recorded.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from graphc.ops.aval import Aval
from graphc.ops.dims import has_dim
from graphc.ops.lens import Lens
from graphc.ops.references import everywhere
from graphc.ops.rounding import Rounding
from graphc.ops.rules import same
from graphc.ops.samples import Sample
from graphc.ops.spec import Rule, Trait, op
from graphc.ops.strides import Place, Strides, normal, row_major

Layout = tuple[tuple[int, ...], int] | None
MANY_TAPS = 64  # adding up window by window, from which each costs more than it saves
GEOMETRY = {"size": None, "stride": None, "offset": 0, "layout": None}


def places(size: tuple[int, ...], stride: tuple[int, ...], offset: int) -> np.ndarray:
    """The memory place of each element of an array of this geometry."""
    result = np.full(size, offset)
    for axis, (n, step) in enumerate(zip(size, stride, strict=True)):
        result += (np.arange(n) * step).reshape(-1, *(1,) * (len(size) - axis - 1))
    return result


@functools.lru_cache(maxsize=64)
def positions(
    shape: tuple[int, ...], size: tuple[int, ...], stride: tuple[int, ...], offset: int, layout: Layout
) -> np.ndarray:
    """For each element of the result, its row-major position in an operand of `shape`; the operand's size if none."""
    wanted = places(size, stride, offset)
    if layout is None:
        return wanted
    count = math.prod(shape)
    held = places(shape, *layout).reshape(-1)
    memory = np.full(max(held.max(initial=-1), wanted.max(initial=-1)) + 1, count)
    memory[held] = np.arange(count)
    return memory[wanted]


def _window(flat: np.ndarray, size: tuple[int, ...], stride: tuple[int, ...], offset: int) -> np.ndarray:
    """A view into contiguous memory."""
    return np.ndarray(size, flat.dtype, flat, offset * flat.itemsize, tuple(s * flat.itemsize for s in stride))


def overlaps(size: tuple[int, ...], stride: tuple[int, ...]) -> bool:
    """Whether two elements may share a place (as PyTorch decides it: sorted by stride, each must clear the last)."""
    reach = 0
    for step, n in sorted((s, n) for s, n in zip(stride, size, strict=True) if n > 1):
        if step <= reach:
            return True
        reach += step * (n - 1)
    return False


def meeting(size: tuple[int, ...], stride: tuple[int, ...]) -> int:
    """How many elements of a window may stand for one place, at most: all others tell apart those along one dim."""
    apart = max((n for n, step in zip(size, stride, strict=True) if step), default=1)
    return math.prod(size) // max(apart, 1)


def _as_strided(x, size, stride, offset, layout):
    if layout is None:
        return _window(np.ascontiguousarray(x), size, stride, offset)
    return np.append(x.reshape(-1), np.zeros(1, x.dtype))[positions(x.shape, size, stride, offset, layout)]


def _as_strided_add(g, shape, size, stride, offset, layout):
    result = np.zeros(math.prod(shape) + 1, g.dtype)
    if layout is None and not overlaps(size, stride):
        _window(result, size, stride, offset)[...] = g
    elif layout is None and (looped := _looped(size, stride)):
        # windows that overlap: what has one place in them does not
        whole = _window(result, size, stride, offset)
        front, given = (np.moveaxis(a, looped, range(len(looped))) for a in (whole, g))
        for tap in np.ndindex(front.shape[: len(looped)]):
            front[tap] += given[tap]
    else:
        np.add.at(result, positions(shape, size, stride, offset, layout), g)
    return result[:-1].reshape(shape)


def _looped(size: tuple[int, ...], stride: tuple[int, ...]) -> list[int]:
    """The shortest dims without which no places are shared, where few: none else."""
    dims = sorted(range(len(size)), key=size.__getitem__)
    for k in range(1, len(dims)):
        rest = dims[k:]
        if math.prod(size[d] for d in dims[:k]) > MANY_TAPS:
            return []
        if not overlaps(tuple(size[d] for d in rest), tuple(stride[d] for d in rest)):
            return dims[:k]
    return []


def _as_strided_scatter(x, src, size, stride, offset, layout):
    if layout is None:
        result = np.array(x, order="C")
        _window(result, size, stride, offset)[...] = src
        return result
    result = np.append(x.reshape(-1), np.zeros(1, x.dtype))
    result[positions(x.shape, size, stride, offset, layout)] = src
    return result[:-1].reshape(x.shape)


def _layout(layout: Layout, shape: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
    return layout or (row_major(shape), 0)


@everywhere
def _ref_as_strided(x, size, stride, offset, layout):
    memory = dict(zip(places(x.shape, *_layout(layout, x.shape)).flat, x.flat, strict=True))
    return np.array([memory.get(p, 0) for p in places(size, stride, offset).flat], x.dtype).reshape(size)


@everywhere
def _ref_add(g, shape, size, stride, offset, layout):
    totals: dict[int, Any] = {}
    for p, value in zip(places(size, stride, offset).flat, g.flat, strict=True):
        totals[p] = totals.get(p, 0) + value
    return _ref_as_strided_memory(totals, shape, layout, g.dtype)


@everywhere
def _ref_scatter(x, src, size, stride, offset, layout):
    memory = dict(zip(places(x.shape, *_layout(layout, x.shape)).flat, x.flat, strict=True))
    memory.update(zip(places(size, stride, offset).flat, src.flat, strict=True))
    return _ref_as_strided_memory(memory, x.shape, layout, x.dtype)


def _ref_as_strided_memory(memory, shape, layout, dtype):
    held = places(shape, *_layout(layout, shape))
    return np.array([memory.get(p, 0) for p in held.flat], dtype).reshape(shape)


def _lies(whole: Aval, strides: Strides, size: Any, stride: Any, offset: int, layout: Layout) -> Place | None:
    taken, start = _layout(layout, whole.shape)
    return (normal(size, stride), offset - start) if normal(whole.shape, taken) == strides else None


_GEOMETRIES = (
    dict(size=(2, 2), stride=(1, 2), offset=1),
    dict(size=(3, 2), stride=(1, 1)),  # elements that overlap
    dict(size=(3, 2), stride=(4, 1), offset=2, layout=((1, 4), 2)),  # the operand in column order, from place 2 on
)

as_strided = op(
    "as_strided", "input", params=GEOMETRY,
    impl="as_strided", numpy=_as_strided, rule=Rule(lambda op, avals, params: Aval(params["size"], avals[0].dtype)),
    traits=Trait.VIEW | Trait.LINEAR | Trait.MOVES, ref=_ref_as_strided,
    lens=Lens(lambda F, whole, part, **geometry: F.as_strided_scatter(whole, part, **geometry), _lies,
              repeats=lambda size, stride, **_: has_dim((*size, *stride)) or overlaps(size, stride)),
    samples=(Sample((4, 3), **_GEOMETRIES[0]), Sample((4, 3), **_GEOMETRIES[1]), Sample((4, 3), **_GEOMETRIES[2])),
    vjp=dict(input=lambda F, g, input_shape, size, stride, offset, layout: F.as_strided_add(
        g, shape=input_shape, size=size, stride=stride, offset=offset, layout=layout)),
)  # fmt: skip
# the transpose of as_strided: what each place received, added up
as_strided_add = op(
    "as_strided_add", "src", params={"shape": None, **GEOMETRY}, impl="as_strided_add", numpy=_as_strided_add,
    rule=Rule(lambda op, avals, params: Aval(params["shape"], avals[0].dtype)), traits=Trait.LINEAR, ref=_ref_add,
    rounding=Rounding(length=lambda avals, result, params: meeting(params["size"], params["stride"])),
    samples=tuple(Sample(g["size"], shape=(4, 3), **g) for g in _GEOMETRIES),
    vjp=dict(src=lambda F, g, size, stride, offset, layout: F.as_strided(
        g, size=size, stride=stride, offset=offset, layout=layout)),
)  # fmt: skip
# `input` with `src` written to the elements that `as_strided` would read; their places are distinct
as_strided_scatter = op(
    "as_strided_scatter", "input src", params=GEOMETRY, impl="as_strided_scatter", numpy=_as_strided_scatter,
    rule=same, traits=Trait.MOVES, ref=_ref_scatter,
    samples=(Sample((4, 3), (2, 2), **_GEOMETRIES[0]), Sample((4, 3), (3, 2), **_GEOMETRIES[2])),
    vjp=dict(
        input=lambda F, g, src_shape, src_dtype, size, stride, offset, layout: F.as_strided_scatter(
            g, F.full(shape=src_shape, value=0, dtype=src_dtype), size=size, stride=stride, offset=offset,
            layout=layout),
        src=lambda F, g, size, stride, offset, layout: F.as_strided(
            g, size=size, stride=stride, offset=offset, layout=layout),
    ),
)  # fmt: skip
