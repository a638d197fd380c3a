"""Ops that move elements without computing: reshape, permute, broadcast, slice, pad, cat, flip, tri; and creation."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from graphc.ops import index_maps, labels, parts, strides
from graphc.ops.aval import Aval, Literal, aval_of, same_shape
from graphc.ops.dims import cached
from graphc.ops.dtypes import promote_types
from graphc.ops.lens import Lens
from graphc.ops.rounding import EXACT
from graphc.ops.rules import full_rule, normalize_axis, reshape_rule, same, torch_name
from graphc.ops.samples import Sample
from graphc.ops.spec import Op, Rule, Trait, op

LINEAR = Trait.LINEAR | Trait.MOVES
VIEW = Trait.VIEW | LINEAR


def _np_broadcast_to(x, shape):
    result = np.empty(shape, x.dtype)  # a fill is 5x faster than np.broadcast_to on small arrays, and is writable
    result[...] = x
    return result


def _permute(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    (x,) = avals
    dims = params["dims"]
    if len(dims) != x.ndim:
        raise RuntimeError(
            f"permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {x.ndim} is not equal to len(dims) = {len(dims)}"
        )
    if sorted(dims) != list(range(x.ndim)):
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return Aval(tuple([x.shape[i] for i in dims]), x.dtype)


def inverse_permutation(dims: tuple[int, ...]) -> tuple[int, ...]:
    """The permutation that undoes `dims`."""
    return tuple(sorted(range(len(dims)), key=dims.__getitem__))


def expanded(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    """The rule of an operand that is repeated along dims of size 1, and new ones in front, to a shape."""
    (x,) = avals
    shape = params["shape"]
    if len(shape) < x.ndim:
        raise RuntimeError(
            f"expand(torch.{torch_name(x.dtype)}Tensor{{{list(x.shape)}}}, size={list(shape)}): the number of sizes "
            f"provided ({len(shape)}) must be greater or equal to the number of dimensions in the tensor ({x.ndim})"
        )
    for axis in range(1, x.ndim + 1):
        if x.shape[-axis] not in (1, shape[-axis]):
            raise RuntimeError(
                f"The expanded size of the tensor ({shape[-axis]}) must match the existing size ({x.shape[-axis]}) at "
                f"non-singleton dimension {len(shape) - axis}.  Target sizes: {list(shape)}.  "
                f"Tensor sizes: {list(x.shape)}"
            )
    return Aval(shape, x.dtype)


def sum_to(F: Any, g: Any, shape: tuple[int, ...]) -> Any:
    """Undo broadcasting: sum `g` over the axes along which `shape` was repeated."""
    if same_shape(g.shape, shape):
        return g
    g = F.sum(g, axis=repeated_axes(g.shape, shape), keepdims=False)
    return g if same_shape(g.shape, shape) else F.reshape(g, shape=shape)


@cached(maxsize=1024)
def repeated_axes(big: tuple[int, ...], small: tuple[int, ...]) -> tuple[int, ...]:
    """The axes along which an array of shape `small` was repeated to get one of shape `big`."""
    extra = len(big) - len(small)
    return (*range(extra), *(i + extra for i, n in enumerate(small) if n == 1 and big[i + extra] != 1))


reshape = op(
    "reshape", "input", parts=parts.RESHAPE, params={"shape": None}, impl="reshape",
    numpy=lambda x, shape: x.reshape(shape), rule=reshape_rule, lifting=lambda N, x, shape: N.reshape(x, shape),
    traits=VIEW, label="View",
    lens=Lens(lambda F, whole, part, shape: F.reshape(part, shape=whole.shape), strides.of_reshaped),
    ref=index_maps.reshaped,
    samples=(Sample((3, 4), shape=(2, 6)), Sample((1,), shape=()), Sample((0, 3), shape=(3, 0))),
    vjp=dict(input=lambda F, g, input_shape: F.reshape(g, shape=input_shape)),
)  # fmt: skip
permute = op("permute", "input", parts=parts.PERMUTE,
             params={"dims": None}, impl=lambda xp, x, dims: xp.transpose(x, dims),
             numpy=lambda x, dims: x.transpose(dims), rule=Rule(_permute), traits=VIEW, ref=index_maps.permuted,
             lens=Lens(lambda F, whole, part, dims: F.permute(part, dims=inverse_permutation(dims)),
                       strides.of_permuted),
             lifting=lambda N, x, dims: N.put(x, [x.shape[d] for d in dims], lambda *i: [i[d] for d in dims]),
             samples=(Sample((2, 3), dims=(1, 0)), Sample((2, 3, 4), dims=(2, 0, 1)), Sample((), dims=())),
             vjp=dict(input=lambda F, g, dims: F.permute(g, dims=inverse_permutation(dims))))  # fmt: skip
broadcast_to = op("broadcast_to", "input", parts=parts.BROADCAST,
                  params={"shape": None}, impl="broadcast_to", numpy=_np_broadcast_to,
                  rule=Rule(expanded), traits=LINEAR, label="Expand",
                  lens=Lens(None, strides.of_repeated, repeats=lambda shape: True, shown_by="expand"),
                  lifting=lambda N, x, shape: N.spread(x, shape),
                  ref=index_maps.repeated,
                  samples=(Sample((3, 1), shape=(2, 3, 4)), Sample((), shape=(2,)), Sample((2, 3), shape=(2, 3))),
                  vjp=dict(input=lambda F, g, input_shape: sum_to(F, g, input_shape)))  # fmt: skip


def _expand(x, shape):
    """A read-only view, whose elements repeat in memory."""
    if not x.flags.c_contiguous:
        return np.broadcast_to(x, shape)
    extra = len(shape) - x.ndim
    if extra < 0 or any(n not in (1, m) for n, m in zip(x.shape, shape[extra:], strict=True)):
        raise ValueError(f"cannot expand {x.shape} to {shape}")
    steps = [0] * extra + [s if n == m else 0 for s, n, m in zip(x.strides, x.shape, shape[extra:], strict=True)]
    result = np.ndarray(shape, x.dtype, x, 0, steps)
    result.flags.writeable = False
    return result


expand = op(
    "expand", "input", params={"shape": None}, impl="broadcast_to", numpy=_expand,
    definition=lambda F, x, shape: F.broadcast_to(x, shape=shape), rule=Rule(expanded), traits=VIEW,
    ref=index_maps.repeated, samples=(Sample((3, 1), shape=(2, 3, 4)), Sample((), shape=(2,))),
    vjp=dict(input=lambda F, g, input_shape: sum_to(F, g, input_shape)),
)  # fmt: skip


def _diagonal(x, offset, dim1, dim2):
    found = np.diagonal(x, offset, dim1, dim2)  # read-only, though it is a view like any other
    found.flags.writeable = x.flags.writeable
    return found


def _moved_last(F, x, dim1, dim2):
    rest = tuple(i for i in range(len(x.shape)) if i not in (dim1, dim2))
    return F.permute(x, dims=(*rest, dim1, dim2))


def diagonal_run(rows: int, columns: int, offset: int) -> tuple[int, int]:
    """(first, length) of a diagonal among the elements of a matrix in row-major order; its step is columns + 1."""
    length = max(min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns), 0)
    return (offset if offset >= 0 else -offset * columns) if length else 0, length


def _diagonal_definition(F, x, offset, dim1, dim2):
    x = _moved_last(F, x, dim1, dim2)
    *batch, rows, columns = x.shape
    first, length = diagonal_run(rows, columns, offset)
    keep, ones = (0,) * len(batch), (1,) * len(batch)
    last = first + (length - 1) * (columns + 1) + 1 if length else first
    flat = F.reshape(x, shape=(*batch, rows * columns))
    return F.slice(flat, start=(*keep, first), stop=(*batch, last), step=(*ones, columns + 1))


def _diagonal_vjp(F, g, input_shape, offset, dim1, dim2):
    order = (*(i for i in range(len(input_shape)) if i not in (dim1, dim2)), dim1, dim2)
    *batch, rows, columns = (input_shape[i] for i in order)
    first, length = diagonal_run(rows, columns, offset)
    used = length + (length - 1) * columns if length else 0
    keep = (0,) * len(batch)
    flat = F.pad_zeros(g, low=(*keep, first), high=(*keep, rows * columns - first - used), interior=(*keep, columns))
    return F.permute(F.reshape(flat, shape=(*batch, rows, columns)), dims=inverse_permutation(order))


diagonal = op(
    "diagonal", "input", params={"offset": 0, "dim1": 0, "dim2": 1},
    impl=lambda xp, x, offset, dim1, dim2: xp.diagonal(x, offset, dim1, dim2), numpy=_diagonal,
    definition=_diagonal_definition,
    rule=Rule(
        lambda op, avals, params: Aval(
            (
                *(n for i, n in enumerate(avals[0].shape) if i not in (params["dim1"], params["dim2"])),
                diagonal_run(avals[0].shape[params["dim1"]], avals[0].shape[params["dim2"]], params["offset"])[1],
            ),
            avals[0].dtype,
        )
    ),
    traits=VIEW, ref=index_maps.diagonal,
    samples=(
        Sample((3, 4), offset=1, dim1=0, dim2=1),
        Sample((4, 3), offset=-1, dim1=0, dim2=1),
        Sample((3, 3), offset=-1, dim1=0, dim2=1),
        Sample((3, 2, 4), offset=0, dim1=2, dim2=0),
    ),
    vjp=dict(input=_diagonal_vjp),
)  # fmt: skip


def _lifted_flip(N, x, axis):
    axes = {k % len(x.shape) for k in axis}

    def where(*places):
        return [i * -1 + (n - 1) if k in axes else i for k, (n, i) in enumerate(zip(x.shape, places, strict=True))]

    return N.put(x, x.shape, where)


flip = op(
    "flip", "input", parts=parts.FLIP, params={"axis": None}, impl="flip",
    numpy=lambda x, axis: np.flip(x, axis).copy(), rule=same, lifting=_lifted_flip, traits=LINEAR,
    ref=index_maps.flipped,
    samples=(Sample((3, 4), axis=(0,)), Sample((2, 3), axis=(0, 1))),
    vjp=dict(input=lambda F, g, axis: F.flip(g, axis=axis)),
)  # fmt: skip


def _take_slices(xp, x, start, stop, step):
    return x[(*map(slice, start, stop, step), ...)]  # the ellipsis makes NumPy give a view of a 0-d array, too


def _slice(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    (x,) = avals
    return Aval(_extents(**params), x.dtype)


def _extents(start, stop, step):
    return tuple([max(0, -(-(b - a) // s)) for a, b, s in zip(start, stop, step, strict=True)])


def _lifted_slice(N, x, start, stop, step):
    def where(*places):
        return [i * s + a for i, a, s in zip(places, start, step, strict=True)]

    return N.take(x, _extents(start, stop, step), where)


def _unslice(F, g, input_shape, start, stop, step):
    last = [b + (m - 1) * s + 1 if m else b for b, m, s in zip(start, g.shape, step, strict=True)]
    high = tuple(n - end for n, end in zip(input_shape, last, strict=True))
    return F.pad_zeros(g, low=start, high=high, interior=tuple(s - 1 for s in step))


# 0 <= start <= stop <= size and step >= 1: eager/functional/indexing.py brings every basic index to this form
slice_ = op(
    "slice", "input", parts=parts.SLICE, params={"start": None, "stop": None, "step": None}, impl=_take_slices,
    rule=Rule(_slice), traits=VIEW, lifting=_lifted_slice,
    lens=Lens(lambda F, whole, part, **region: F.put_slice(whole, part, **region), strides.of_slice),
    ref=index_maps.cut,
    samples=(
        Sample((5, 4), start=(1, 0), stop=(5, 3), step=(2, 1)),
        Sample((3,), start=(1,), stop=(1,), step=(1,)),
        Sample((6,), start=(0,), stop=(6,), step=(4,)),
    ),
    vjp=dict(input=_unslice),
)  # fmt: skip


def _basic_index(x, start, stop, step, shape):
    return _take_slices(None, x, start, stop, step).reshape(shape)


def _basic_index_vjp(F, g, input_shape, start, stop, step):
    region = F.reshape(g, shape=_extents(start, stop, step))
    return _unslice(F, region, input_shape, start, stop, step)


# x[1, None, 2:5]: a slice, of which dims of size 1 are dropped and added
basic_index = op(
    "basic_index", "input", params={"start": None, "stop": None, "step": None, "shape": None},
    impl=lambda xp, *x, **params: _basic_index(*x, **params), numpy=_basic_index,
    definition=lambda F, x, start, stop, step, shape: F.reshape(
        F.slice(x, start=start, stop=stop, step=step), shape=shape
    ),
    rule=Rule(lambda op, avals, params: Aval(params["shape"], avals[0].dtype)), traits=VIEW, label="Select",
    ref=index_maps.indexed,
    samples=(
        Sample((5, 4), start=(1, 0), stop=(2, 3), step=(1, 2), shape=(2,)),
        Sample((3,), start=(2,), stop=(3,), step=(1,), shape=()),
        Sample((3, 2), start=(0, 0), stop=(3, 2), step=(1, 1), shape=(3, 1, 2)),
    ),
    vjp=dict(input=_basic_index_vjp),
)  # fmt: skip


def _padded(size: int, low: int, high: int, interior: int) -> int:
    return low + high + (size + (size - 1) * interior if size else 0)


def _pad_zeros(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    (x,) = avals
    extents = zip(x.shape, params["low"], params["high"], params["interior"], strict=True)
    return Aval(tuple(_padded(*extent) for extent in extents), x.dtype)


def _inside(shape, low, interior):
    return tuple(
        slice(b, b + _padded(n, 0, 0, i) if n else b, i + 1) for n, b, i in zip(shape, low, interior, strict=True)
    )


def _np_pad_zeros(x, low, high, interior):
    result = np.zeros([_padded(*extent) for extent in zip(x.shape, low, high, interior, strict=True)], x.dtype)
    result[_inside(x.shape, low, interior)] = x
    return result


def _unpad(F, g, input_shape, low, interior):
    inside = _inside(input_shape, low, interior)
    return F.slice(g, start=tuple(s.start for s in inside), stop=tuple(s.stop for s in inside),
                   step=tuple(s.step for s in inside))  # fmt: skip


def _lifted_pad(N, x, low, high, interior):
    shape = [_padded(*extent) for extent in zip(x.shape, low, high, interior, strict=True)]
    cut = [max(-n, 0) for n in low]
    if any(cut) or min(high, default=0) < 0:
        if any(interior):
            raise N.Unsolved
        kept = [n - c - max(-h, 0) for n, c, h in zip(x.shape, cut, high, strict=True)]
        x = N.take(x, kept, lambda *i: [k + c for k, c in zip(i, cut, strict=True)])
    moves = list(zip(low, interior, strict=True))
    return N.put(x, shape, lambda *i: [k * (gap + 1) + max(n, 0) for k, (n, gap) in zip(i, moves, strict=True)])


# lowered to lax.pad
pad_zeros = op(
    "pad_zeros", "input", params={"low": None, "high": None, "interior": None}, numpy=_np_pad_zeros, impl="pad",
    rule=Rule(_pad_zeros), lifting=_lifted_pad, traits=LINEAR, label="ConstantPadNd", ref=index_maps.padded,
    samples=(
        Sample((2, 3), low=(1, 0), high=(0, 2), interior=(0, 1)),
        Sample((3,), low=(0,), high=(1,), interior=(2,)),
        Sample((3, 2), low=(0, 1), high=(1, 0), interior=(2, 1)),
    ),
    vjp=dict(input=_unpad),
)  # fmt: skip


def _cat(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    if not avals:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    first = avals[0]
    if not first.ndim:
        raise RuntimeError("zero-dimensional tensor (at position 0) cannot be concatenated")
    axis = normalize_axis(params["axis"], first.ndim)
    total, dtype = 0, first.dtype
    for position, aval in enumerate(avals):
        if aval.ndim != first.ndim:
            raise RuntimeError(f"Tensors must have same number of dimensions: got {first.ndim} and {aval.ndim}")
        for i, (a, b) in enumerate(zip(first.shape, aval.shape, strict=True)):
            if i != axis and a != b:
                raise RuntimeError(
                    f"Sizes of tensors must match except in dimension {axis}. Expected size {a} but got size {b} "
                    f"for tensor number {position} in the list."
                )
        total += aval.shape[axis]
        dtype = promote_types(dtype, aval.dtype)
    return Aval((*first.shape[:axis], total, *first.shape[axis + 1 :]), dtype)


def _cat_vjp(F, g, tensors_shape, axis, position):
    start = [0] * len(g.shape)
    stop = list(g.shape)
    start[axis] = sum(shape[axis] for shape in tensors_shape[:position])
    stop[axis] = start[axis] + tensors_shape[position][axis]
    return F.slice(g, start=tuple(start), stop=tuple(stop), step=(1,) * len(start))


def _lifted_cat(N, *xs, axis):
    first = xs[0].shape
    axis %= len(first)
    shape = [sum(x.shape[k] for x in xs) if k == axis else n for k, n in enumerate(first)]
    ends = itertools.accumulate([x.shape[axis] for x in xs], initial=0)
    return N.join(
        *[
            N.put(x, shape, lambda *i, begin=begin: [k + begin if at == axis else k for at, k in enumerate(i)])
            for x, begin in zip(xs, ends, strict=False)
        ]
    )


cat = op(
    "cat", "*tensors", params={"axis": 0}, impl=lambda xp, *tensors, axis: xp.concatenate(tensors, axis=axis),
    rule=Rule(_cat, "common"), lifting=_lifted_cat, vjp=dict(tensors=_cat_vjp), traits=LINEAR, ref=index_maps.joined,
    samples=(Sample((2, 3), (1, 3), axis=0), Sample((2, 3), (2, 1), (2, 2), axis=1), Sample((2, 3), axis=1)),
)  # fmt: skip


def _triangle(name: str, reference: Any, band: Callable[..., tuple[int, int]]) -> Op:
    def kernel(xp, x, diagonal):
        return getattr(xp, name)(x, diagonal)

    return op(name, "input", params={"diagonal": 0}, impl=kernel, rule=same, dims=labels.TRIANGLES,
              traits=LINEAR, ref=reference, band=band, parts=parts.triangle(name),
              samples=(Sample((3, 4), diagonal=0), Sample((2, 3, 3), diagonal=1), Sample((3, 4), diagonal=-5)),
              vjp=dict(input=lambda F, g, diagonal: getattr(F, name)(g, diagonal=diagonal)))  # fmt: skip


tril = _triangle("tril", index_maps.lower, lambda shape, params, x: (x[0], min(x[1], params["diagonal"])))
triu = _triangle("triu", index_maps.upper, lambda shape, params, x: (min(x[0], -params["diagonal"]), x[1]))

# creation: no array arguments
full = op("full", "", parts=parts.NUMBERS,
          params={"shape": (), "value": 0, "dtype": None}, rule=full_rule, rounding=EXACT,
          lifting=lambda N, shape, value, dtype: N.constant(np.broadcast_to(np.asarray(value, dtype), shape)),
          impl=lambda xp, shape, value, dtype: xp.full(shape, value, dtype),
          samples=(Sample(shape=(2, 3), value=1.5, dtype=np.dtype(np.float32)),),
          ref=lambda shape, value, dtype: np.array([value] * int(np.prod(shape)), dtype).reshape(shape))  # fmt: skip
arange = op(
    "arange", "", params={"shape": (), "start": 0, "step": 1, "dtype": None}, rule=full_rule, rounding=EXACT,
    impl=lambda xp, shape, start, step, dtype: (
        xp.arange(shape[0], dtype=dtype) * xp.asarray(step, dtype) + xp.asarray(start, dtype)
    ),
    samples=(Sample(shape=(5,), start=2, step=3, dtype=np.dtype(np.int64)),),
    ref=lambda shape, start, step, dtype: np.array([start + i * step for i in range(shape[0])], dtype),
)  # fmt: skip


def _extremes(x: np.ndarray) -> tuple[float, float]:
    known = x.size and x.dtype.kind in "iuf" and not np.isnan(x).any()
    return (float(x.min()), float(x.max())) if known else (-math.inf, math.inf)


constant = op(
    "constant", "", params={"value": None}, impl=lambda xp, value: xp.asarray(value.array),
    rule=Rule(lambda op, avals, params: aval_of(params["value"].array)),
    lifting=lambda N, value: N.constant(value.array), image=lambda params: _extremes(params["value"].array),
    traits=Trait.LITERAL, rounding=EXACT, samples=(Sample(value=Literal(np.array([1.5, -0.0]))),),
    ref=lambda value: np.array(value.array.tolist()),
)  # fmt: skip
