"""Regions of tensors: replaced, cut out, copied; sums back to a shape; places by flat index."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from eager.core import dtypes, operands
from eager.core.interpreter import on_arrays
from eager.core.tensor import Tensor
from eager.core.views import geometry, not_a_view
from eager.engine.conversion import converted
from eager.engine.language import E
from eager.engine.node_names import whole
from eager.functional import joining, shapes, strides
from eager.functional.arguments import axis_of, shape_of, sizes_of
from eager.functional.casts import detach
from eager.functional.complexes import view_as_complex, view_as_real
from eager.functional.joining import narrow, select, split
from eager.functional.naming import called, signature_of
from eager.functional.outputs import with_out
from eager.functional.reductions import sum as sum_over
from eager.functional.shapes import diagonal, permute, unsqueeze, view
from eager.functional.slices import index_copy
from graphc.ops.dtypes import INT64, is_inexact
from graphc.ops.strides import row_major

SIZES = "expected src to have a size equal to the slice of self. src size = {src}, slice size = {region}"


def _fitting(input: Tensor, src: Tensor, region: Sequence[int]) -> Tensor:
    """`src` in the dtype of `input`. RuntimeError unless it has the shape of the region."""
    if tuple(operands.shape(src)) != tuple(region):
        raise RuntimeError(SIZES.format(src=list(src._d.shape), region=list(region)))
    return src if src._dtype() == input._dtype() else E.cast(src, dtype=input._dtype())


@whole("SelectScatterBackward0")
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """`input` with slice number `index` along `dim` replaced by `src`. As `torch.select_scatter`."""
    axis = axis_of(dim, len(shape_of(input, "select_scatter")))
    shape = tuple(input._d.shape)
    select(input, dim, index)  # its errors
    source = _fitting(input, src, shape[:axis] + shape[axis + 1 :])
    return index_copy(input, axis, Tensor._wrap(np.array([index % shape[axis]])), unsqueeze(source, axis))


@whole("SliceScatterBackward0")
def slice_scatter(
    input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """`input` with input[start:end:step] along `dim` replaced by `src`. As `torch.slice_scatter`."""
    axis = axis_of(dim, len(shape_of(input, "slice_scatter")))
    shape = tuple(input._d.shape)
    if not shape:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    places = np.arange(shape[axis])[slice(start, end, step)]
    source = _fitting(input, src, (*shape[:axis], len(places), *shape[axis + 1 :]))
    return index_copy(input, axis, Tensor._wrap(places), source)


@whole("DiagonalScatterBackward0")
def diagonal_scatter(input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """`input` with the diagonal of two dims replaced by `src`. As `torch.diagonal_scatter`."""
    ndim = len(shape_of(input, "diagonal_scatter"))
    region = tuple(diagonal(input, offset, dim1, dim2)._d.shape)
    source = _fitting(input, src, region)
    a, b = axis_of(dim1, ndim), axis_of(dim2, ndim)
    order = (a, b, *(i for i in range(ndim) if i not in (a, b)))
    along = np.arange(region[-1])
    rows, columns = along - min(offset, 0), along + max(offset, 0)
    front = permute(source, (ndim - 2, *range(ndim - 2)))
    places = Tensor._wrap(rows), Tensor._wrap(columns)
    written = E.index_put(permute(input, order), front, *places, spec=(0, 1), accumulate=False)
    return permute(written, tuple(int(i) for i in np.argsort(order)))


@whole("AsStridedScatterBackward0")
def as_strided_scatter(input: Tensor, src: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """`input` with what `as_strided` shows of it replaced by `src`. As `torch.as_strided_scatter`."""
    traced = not on_arrays(input)
    if not traced and 0 in strides.stride(input):  # several elements in one place
        input = E.clone(input)
    view = strides.as_strided(input if traced else E.stop_gradient(input), size, stride, storage_offset)
    source = _fitting(input, src, tuple(view._d.shape))
    if traced:
        at = {"size": sizes_of((size,)), "stride": sizes_of((stride,)), "offset": storage_offset or 0, "layout": None}
    else:
        at = geometry(input._array(), view._array())
    # places of the memory that `input` does not show are not in the result either; some may lie before its start
    shift = max(-at["offset"], 0)
    steps, start = at["layout"] or (row_major(tuple(input._d.shape)), 0)
    at |= {"offset": at["offset"] + shift, "layout": (steps, start + shift)}
    return E.as_strided_scatter(input, source, **at)


@whole("NarrowCopyBackward0")
def narrow_copy(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """A copy of `length` elements along `dim`, from `start` on. As `torch.Tensor.narrow_copy`."""
    return E.clone(narrow(input, dim, start, length))


def split_with_sizes(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Pieces along `dim` of the sizes listed. As `torch.split_with_sizes`. RuntimeError unless they fill it."""
    if min(split_sizes, default=0) < 0:
        raise RuntimeError(
            "split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes="
            f"{list(split_sizes)}"
        )
    return split(input, list(split_sizes), dim)


def sum_to_size(self: Tensor, *size: Any) -> Tensor:
    """`self` summed over the dims along which `size` would have to be expanded. As `torch.Tensor.sum_to_size`."""
    shape, wanted = tuple(shape_of(self, "sum_to_size")), sizes_of(size)
    extra = len(shape) - len(wanted)
    if extra < 0 or any(n not in (1, m) for n, m in zip(wanted, shape[extra:], strict=True)):
        raise RuntimeError(f"size {{{list(wanted)}}} is not expandable to size {{{list(shape)}}}.")
    if not wanted:
        return sum_over(self)
    if shape == wanted:
        return self
    dims = [i for i, n in enumerate(shape) if i < extra or (wanted[i - extra] == 1 and n != 1)]
    total = sum_over(self, dims, keepdim=True)
    return view(total, wanted) if extra else total


def is_same_size(self: Tensor, other: Tensor) -> bool:
    """Whether the two have one shape. As `torch.Tensor.is_same_size`."""
    return shape_of(self, "is_same_size") == shape_of(other, "is_same_size", "other", 2)


def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """The places in a tensor of `shape` of flat `indices`, a tensor for each dim. As `torch.unravel_index`.

    TypeError for indices that are no integers, and for a shape that is not of ints; ValueError for negative sizes.
    """
    if is_inexact(indices._dtype()) or indices._dtype().kind == "b":
        raise TypeError(f"expected 'indices' to be integer dtype, but got {dtypes.of_numpy(indices._dtype())}")
    if not isinstance(shape, (int, Sequence)):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    for n in sizes:
        if not isinstance(n, int):
            raise TypeError(f"expected 'shape' sequence to only contain ints, but got {type(n)}")
    if min(sizes, default=0) < 0:
        raise ValueError(f"'shape' cannot have negative values, but got {sizes}")
    indices = converted(indices, INT64)
    steps = [math.prod(sizes[i + 1 :]) for i in range(len(sizes))]
    return tuple(E.remainder(E.floor_divide(indices, step), n) for step, n in zip(steps, sizes, strict=True))


def _alias(input: Tensor) -> Tensor:
    return input


def _slice(input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    place = [slice(None)] * (dim % len(operands.shape(input))) + [slice(start, end, step)]
    return input[tuple(place)]  # type: ignore[index]


def _expand(input: Tensor, size: Any, *, implicit: bool = False) -> Tensor:
    return shapes.expand(input, size)


_VIEWS = {
    "alias": _alias, "as_strided": strides.as_strided, "detach": detach, "diagonal": shapes.diagonal,
    "expand": _expand, "permute": shapes.permute, "select": joining.select, "slice": _slice,
    "squeeze": shapes.squeeze, "t": shapes.t, "transpose": shapes.transpose, "unfold": strides.unfold,
    "unsqueeze": shapes.unsqueeze, "view": shapes.view, "view_as_complex": view_as_complex,
    "view_as_real": view_as_real,
}  # fmt: skip
_PARTS = {"split": joining.split, "split_with_sizes": split_with_sizes, "unbind": joining.unbind}


def _copy(name: str, view: Any) -> Any:
    @called(f"{name}_copy", f"A copy of what `{name}` shows.", "torch")
    def function(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return E.clone(view(input, *args, **kwargs))

    function.__signature__ = signature_of(view, "input")  # type: ignore[attr-defined]
    return with_out(f"{name}_copy", function)


def _copies(name: str, parts: Any) -> Any:
    @called(f"{name}_copy", f"Copies of what `{name}` shows.", "torch")
    def function(input: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, ...]:
        return tuple(E.clone(part) for part in parts(input, *args, **kwargs))

    function.__signature__ = signature_of(parts, "input")  # type: ignore[attr-defined]
    return function


METHODS = {f"{name}_copy": _copy(name, view) for name, view in _VIEWS.items()}
METHODS |= {f"{name}_copy": _copies(name, parts) for name, parts in _PARTS.items()}


def unsafe_chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """`chunk`; each part may be written in place. As `torch.unsafe_chunk`."""
    return tuple(not_a_view(part) for part in joining.chunk(input, chunks, dim))


def unsafe_split(input: Tensor, split_size_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """`split`; each part may be written in place. As `torch.unsafe_split`."""
    return tuple(not_a_view(part) for part in joining.split(input, split_size_or_sections, dim))


def unsafe_split_with_sizes(input: Tensor, split_sizes: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """`split_with_sizes`; each part may be written in place. As `torch.unsafe_split_with_sizes`."""
    return tuple(not_a_view(part) for part in split_with_sizes(input, split_sizes, dim))


def slice_inverse(
    input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """The tensor of `src`'s memory of which `slice(dim, start, end, step)` is `input`. As `torch.slice_inverse`."""
    return strides.as_strided(input, tuple(operands.shape(src)), src.stride(), src.storage_offset())
