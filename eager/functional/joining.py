"""Putting tensors together and taking them apart: cat, stack, split, chunk, unbind, narrow, repeat, roll."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from eager.core.dtypes import type_name
from eager.core.interpreter import on_arrays
from eager.core.state import sequence
from eager.core.tensor import Tensor
from eager.core.views import not_a_view
from eager.engine.language import E
from eager.engine.multi_output import split_views, unbind_views
from eager.engine.node_names import enclosed, whole
from eager.functional.arguments import axes_of, axis_of, shape_of, sizes_of, unrecorded_arrays
from eager.functional.naming import called
from eager.functional.outputs import into
from eager.functional.parsing import no_overload
from graphc.ops.dtypes import INT64
from graphc.ops.rules import torch_name


def cut(x: Tensor, axis: int, start: int, stop: int, step: int = 1) -> Tensor:
    """x[start:stop:step] along `axis`; all of 0 <= start <= stop <= size holds already."""
    shape = x._d.shape
    n = len(shape)
    before, after = (0,) * axis, (0,) * (n - axis - 1)
    return E.slice(
        x, start=(*before, start, *after), stop=(*shape[:axis], stop, *shape[axis + 1 :]),
        step=(1,) * axis + (step,) + (1,) * (n - axis - 1),
    )  # fmt: skip


def check_tensors(tensors: Sequence[Any]) -> None:
    """Raise PyTorch's TypeError for an element that is no Tensor."""
    for position, x in enumerate(tensors):
        if not isinstance(x, Tensor):
            raise TypeError(f"expected Tensor as element {position} in argument 0, but got {type_name(x)}")


def check_list(tensors: Any, name: str) -> None:
    """Raise PyTorch's TypeError for what is no list or tuple."""
    if not isinstance(tensors, (tuple, list)):
        raise TypeError(f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not {type_name(tensors)}")


def cat(tensors: Sequence[Tensor], dim: int = 0, *, axis: Any = None, out: Any = None) -> Tensor:
    """The tensors one after another along `dim`, in their promoted dtype. As `torch.cat`.

    Raises RuntimeError unless their other sizes agree, ValueError for no tensors. Empty 1-d tensors fit anything.
    """
    if out is not None:
        return into(out, "cat", cat, tensors, dim, axis=axis)
    check_list(tensors, "cat")
    if not tensors:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    check_tensors(tensors)
    shapes = [x._d.shape for x in tensors]
    ndim = max(map(len, shapes))
    for position, shape in enumerate(shapes):
        if not shape:
            raise RuntimeError(f"zero-dimensional tensor (at position {position}) cannot be concatenated")
    along = axis_of(dim if axis is None else axis, ndim)
    if ndim > 1 and (0,) in shapes:  # they have a dtype and a gradient, no more
        other = next(s for s in shapes if s != (0,))
        hollow = (*other[:along], 0, *other[along + 1 :])
        tensors = [E.reshape(x, shape=hollow) if x._d.shape == (0,) else x for x in tensors]
    return joined(tensors, along)


def joined(tensors: Sequence[Tensor], axis: int) -> Tensor:
    """The op `cat`; by NumPy alone where nothing is recorded."""
    arrays = unrecorded_arrays(tensors)
    if arrays is not None:
        try:
            return Tensor._wrap(np.concatenate(arrays, axis))
        except ValueError:
            pass  # the op raises the error that fits
    return E.cat(*tensors, axis=axis)


def stack(tensors: Sequence[Tensor], dim: int = 0, *, axis: Any = None, out: Any = None) -> Tensor:
    """The tensors, of one shape, side by side along a new `dim`. As `torch.stack`. RuntimeError if shapes differ."""
    if out is not None:
        return into(out, "stack", stack, tensors, dim, axis=axis)
    check_list(tensors, "stack")
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    check_tensors(tensors)
    first = tensors[0]._d.shape
    for position, x in enumerate(tensors):
        if x._d.shape != first:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(first)} at entry 0 and "
                f"{list(x._d.shape)} at entry {position}"
            )
    at = axis_of(dim if axis is None else axis, len(first) + 1)
    shape = (*first[:at], 1, *first[at:])
    since = next(sequence)
    return enclosed(joined([E.reshape(x, shape=shape) for x in tensors], at), "StackBackward0", since)


def _stacker(name: str, axis: int, least: int, what: str) -> Any:
    @called(name, f"The tensors joined along {what}.", "torch")
    def function(tensors: Sequence[Tensor]) -> Tensor:
        check_list(tensors, name)
        if not tensors:
            raise RuntimeError(f"{name} expects a non-empty TensorList")
        check_tensors(tensors)
        raised = [_at_least(x, least) for x in tensors]
        along = 0 if name == "hstack" and len(raised[0]._d.shape) == 1 else axis
        return cat(raised, along)

    return function


def _at_least(x: Tensor, ndim: int) -> Tensor:
    shape = x._d.shape
    if len(shape) >= ndim:
        return x
    if ndim == 3 and len(shape) == 2:
        return E.reshape(x, shape=(*shape, 1))
    padded = {1: (1,), 2: (1, *(shape or (1,))), 3: (1, *(shape or (1,)), 1)}[ndim]
    return E.reshape(x, shape=padded)


vstack = _stacker("vstack", 0, 2, "the first dim, vectors as rows")
hstack = _stacker("hstack", 1, 1, "the second dim, vectors along their only one")
dstack = _stacker("dstack", 2, 3, "the third dim")


def split(tensor: Tensor, split_size: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Pieces along `dim`: of `split_size` each (the last may be smaller), or of the sizes listed. As `torch.split`."""
    shape = shape_of(tensor, "split", "tensor")
    if not shape:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    axis = axis_of(dim, len(shape))
    total = shape[axis]
    if isinstance(split_size, (tuple, list)):
        sizes = list(split_size)
        if min(sizes, default=0) < 0:
            raise RuntimeError(
                f"split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes={sizes}"
            )
        if sum(sizes) != total:
            raise RuntimeError(
                f"split_with_sizes expects split_sizes to sum exactly to {total} (input tensor's size at dimension "
                f"{dim}), but got split_sizes={sizes}"
            )
    elif not hasattr(split_size, "__index__"):
        raise TypeError(
            "split_with_sizes(): argument 'split_sizes' (position 2) must be tuple of ints, not "
            f"{type_name(split_size)}"
        )
    elif split_size < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={split_size}")
    elif split_size == 0 and total:
        raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {total}")
    else:
        return _evenly(tensor, axis, split_size)
    edges = (0, *itertools.accumulate(sizes))
    return split_views(tensor, axis, edges, "SplitWithSizes") if on_arrays(tensor) else _pieces(tensor, axis, edges)


def _evenly(x: Tensor, axis: int, size: int) -> tuple[Tensor, ...]:
    """Pieces of `size` each; the last may be smaller."""
    total = x._d.shape[axis]
    edges = (*range(0, total, size), total) if total else (0, 0)
    return split_views(x, axis, edges, "Split") if on_arrays(x) else _pieces(x, axis, edges)


def _pieces(x: Tensor, axis: int, edges: Sequence[int]) -> tuple[Tensor, ...]:
    return tuple(cut(x, axis, start, stop) for start, stop in itertools.pairwise(edges))


def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most `chunks` pieces of equal size along `dim`, the last perhaps smaller. As `torch.chunk`."""
    shape = shape_of(input, "chunk")
    if not shape:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    axis = axis_of(dim, len(shape))
    total = shape[axis]
    return _evenly(input, axis, -(-total // chunks)) if total else split(input, [0] * chunks, dim)


def tensor_split(input: Tensor, indices_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Pieces along `dim`: that many of nearly equal size, or cut at the indices listed. As `torch.tensor_split`."""
    shape = shape_of(input, "tensor_split")
    if not shape:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    axis = axis_of(dim, len(shape))
    total = shape[axis]
    if isinstance(indices_or_sections, Tensor):
        indices_or_sections = _cuts(indices_or_sections)
    if isinstance(indices_or_sections, int):
        n = indices_or_sections
        if n <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {n}")
        edges = [total // n * i + min(i, total % n) for i in range(n + 1)]
        return _pieces(input, axis, edges)
    check_cuts(indices_or_sections, "tensor_split", input)
    bounds = [slice(None, i).indices(total)[1] for i in indices_or_sections]
    return tuple(
        cut(input, axis, min(start, stop) if stop < start else start, stop)
        for start, stop in itertools.pairwise([0, *bounds, total])
    )


def check_cuts(cuts: Any, name: str, input: Tensor) -> None:
    """Raise PyTorch's TypeError for what is no list of places to cut at."""
    if not isinstance(cuts, (tuple, list)):
        raise no_overload(name, (input, cuts))


def _cuts(given: Tensor) -> Any:
    """The number, or the places, that a tensor gives."""
    if given._dtype() != INT64:
        kind = torch_name(given._dtype())
        raise RuntimeError(f"tensor_split expected tensor_indices_or_sections to have dtype of long, but got {kind}")
    if len(given._d.shape) > 1:
        raise RuntimeError(
            "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor, but "
            f"got a tensor with {len(given._d.shape)} dims"
        )
    return given._values_for("tensor_split", python=True).tolist()


def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """The slices along `dim`, without it. As `torch.unbind`."""
    shape = shape_of(input, "unbind")
    if not shape:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    axis = axis_of(dim, len(shape))
    if not on_arrays(input):
        return tuple(select(input, axis, i) for i in range(shape[axis]))
    return unbind_views(input, axis)


def select(input: Tensor, dim: int, index: int) -> Tensor:
    """The slice number `index` along `dim`, without it. As `torch.select`. IndexError if there is none."""
    shape = shape_of(input, "select")
    if not shape:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    axis = axis_of(dim, len(shape))
    if not -shape[axis] <= index < shape[axis]:
        raise IndexError(f"select(): index {index} out of range for tensor of size {list(shape)} at dimension {axis}")
    at = index % shape[axis]
    before, after = (0,) * axis, (0,) * (len(shape) - axis - 1)
    return E.basic_index(
        input, start=(*before, at, *after), stop=(*shape[:axis], at + 1, *shape[axis + 1 :]), step=(1,) * len(shape),
        shape=shape[:axis] + shape[axis + 1 :],
    )  # fmt: skip


def narrow(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    """`length` elements along `dim`, from `start` on. As `torch.narrow`. RuntimeError if there are fewer."""
    shape = shape_of(input, "narrow")
    if not shape:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    axis = axis_of(dim, len(shape))
    if isinstance(start, Tensor):
        if start._d.shape or start._dtype().kind not in "iu":
            raise RuntimeError("start must be an 0-dim integral Tensor.")
        start = int(start)
    elif not hasattr(start, "__index__"):
        raise no_overload("narrow", (input, dim, start, length))
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    total = shape[axis]
    if not -total <= start <= total:
        raise IndexError(f"start out of range (expected to be in range of [-{total}, {total}], but got {start})")
    start = start + total if start < 0 else start
    if start + length > total:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({total}).")
    return cut(input, axis, start, start + length)


def flip(input: Tensor, *axes: Any, dims: Any = None) -> Tensor:
    """The elements in reverse order along `dims`. As `torch.flip`."""
    shape = shape_of(input, "flip")
    order = sizes_of(axes if dims is None else (dims,))
    return E.flip(input, axis=axes_of(order, len(shape)) if order else ())


@whole("RollBackward0")
def roll(input: Tensor, shifts: Any, dims: Any = None) -> Tensor:
    """The elements moved on by `shifts` along `dims`, round the end; flattened if None. As `torch.roll`."""
    shape = shape_of(input, "roll")
    if shifts in ((), []):
        raise RuntimeError("`shifts` required")
    if dims is None or dims in ((), []):
        if not isinstance(shifts, int) and len(shifts) != 1:
            raise RuntimeError(f"shifts and dimensions must align. shifts: {len(shifts)}, dims:0")
        flat = E.reshape(input, shape=(math.prod(shape),))
        return not_a_view(E.reshape(roll(flat, shifts, 0), shape=shape))
    steps, axes = ((x,) if isinstance(x, int) else tuple(x) for x in (shifts, dims))
    if len(steps) != len(axes):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(steps)}, dims:{len(axes)}")
    if not shape:
        raise IndexError(f"Dimension specified as {axes[0]} but tensor has no dimensions")
    result = input
    for shift, d in zip(steps, axes, strict=True):
        axis = axis_of(d, len(shape))
        if shape[axis] and shift % shape[axis]:
            at = shape[axis] - shift % shape[axis]
            result = E.cat(cut(result, axis, at, shape[axis]), cut(result, axis, 0, at), axis=axis)
    return E.clone(input) if result is input else result


@whole("RepeatBackward0")
def repeat(self: Tensor, *counts: Any, repeats: Any = None) -> Tensor:
    """`self` tiled `repeats` times along each dim, new dims in front. As `torch.Tensor.repeat`."""
    counts = counts if repeats is None else (repeats,)
    shape, times = shape_of(self, "repeat"), sizes_of(counts, "repeat(): argument 'repeats'")
    if len(times) < len(shape):
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    shape = (1,) * (len(times) - len(shape)) + tuple(shape)
    if min(times, default=0) < 0:
        sizes = [a * b for a, b in zip(times, shape, strict=True)]
        first = next(n for n, k in zip(sizes, times, strict=True) if k < 0)
        raise RuntimeError(f"Trying to create tensor with negative dimension {first}: {sizes}")
    apart = E.reshape(self, shape=tuple(n for size in shape for n in (1, size)))
    spread = E.broadcast_to(apart, shape=tuple(n for pair in zip(times, shape, strict=True) for n in pair))
    return not_a_view(E.reshape(spread, shape=tuple(a * b for a, b in zip(times, shape, strict=True))))


def tile(input: Tensor, *repeats: Any, dims: Any = None) -> Tensor:
    """As `repeat`, with ones put in front of too few counts. As `torch.tile`."""
    times = sizes_of(repeats if dims is None else (dims,), "tile(): argument 'dims'")
    return repeat(input, (1,) * (len(shape_of(input, "tile")) - len(times)) + times)


def reversed_rows(self: Tensor) -> Tensor:
    """The slices along the first dim in reverse order, as a tensor; a 0-d tensor is returned as it is."""
    return flip(self, 0) if self._d.shape else self


def iterate(self: Tensor) -> Iterator[Tensor]:
    """The slices along the first dim. TypeError for a 0-d tensor."""
    if not self._d.shape:
        raise TypeError("iteration over a 0-d tensor")
    return iter(unbind(self) if type(self) is Tensor else self.unbind(0))  # type: ignore[attr-defined]
