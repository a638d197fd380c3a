"""Memory layout: strides, contiguity, and views at any place of a tensor's memory."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from eager.core import dtypes
from eager.core.interpreter import current_interpreter, on_arrays
from eager.core.placed import is_placed
from eager.core.state import grad_enabled, storage_of
from eager.core.tensor import Tensor
from eager.core.views import note_view
from eager.engine.dispatch import record
from eager.engine.language import E
from eager.engine.node_names import named
from eager.functional.arguments import axis_of, shape_of, sizes_of
from graphc.ops.movement import inverse_permutation
from graphc.ops.rules import torch_name
from graphc.ops.spec import OPS
from graphc.ops.strides import row_major


def contiguous(self: Tensor, *, memory_format: Any = None) -> Tensor:
    """`self` if it lies in row-major (or the given) order in memory, else a copy. As `torch.Tensor.contiguous`."""
    if is_contiguous(self, memory_format=memory_format):
        return self
    from eager.core.layouts import RANKS, arranged, channels_last_order

    if self._d.__class__ is not np.ndarray and memory_format in RANKS:
        order = channels_last_order(tuple(self._d.shape), memory_format)
        return E.permute(contiguous(E.permute(self, dims=tuple(order))), dims=inverse_permutation(tuple(order)))
    copied = E.clone(self)
    if copied._d.__class__ is np.ndarray:
        copied._d = arranged(copied._d, memory_format)
    else:
        copied._d.made_plain(copied)
    return copied


def is_contiguous(self: Tensor, *, memory_format: Any = None) -> bool:
    """Whether the elements lie in row-major (or the given) order. As `torch.Tensor.is_contiguous`."""
    data = self._d
    if data.__class__ is not np.ndarray:
        from eager.core.layouts import strides_lie_in

        steps = data.strides(self)
        return steps is None or strides_lie_in(tuple(data.shape), steps, memory_format)
    if memory_format is None:
        return data.flags.c_contiguous
    from eager.core.layouts import lies_in

    return lies_in(data, memory_format)


def stride(self: Tensor, dim: int | None = None) -> Any:
    """The step in elements along each dim, or along `dim`. As `torch.Tensor.stride`."""
    shape = self._d.shape
    if self._d.__class__ is np.ndarray:
        steps = tuple(n // self._d.itemsize for n in self._d.strides)
        if 0 in steps:
            made = self._d.base is None and not self._d.size  # NumPy gives the empty results of its ufuncs no steps
            steps = row_major(shape) if made else _with_new_dims(shape, steps)
    else:
        steps = self._d.strides(self)
        steps = row_major(tuple(shape)) if steps is None else steps
    return steps if dim is None else steps[axis_of(dim, len(shape))]


def _with_new_dims(shape: tuple[int, ...], steps: tuple[int, ...]) -> tuple[int, ...]:
    """PyTorch's strides: that of a dim of size 1 put in by None, which is 0 in NumPy, spans the dims behind it."""
    found = list(steps)
    for k in range(len(shape) - 1, -1, -1):
        if shape[k] == 1 and not found[k]:
            found[k] = shape[k + 1] * found[k + 1] if k + 1 < len(shape) else 1
    return tuple(found)


def storage_offset(self: Tensor) -> int:
    """Where the first element lies in the memory, in elements. As `torch.Tensor.storage_offset`."""
    if self._d.__class__ is not np.ndarray and (known := self._d.storage_offset(self)) is not None:
        return known
    array = self._array()
    return (_address(array) - _address(storage_of(array))) // array.itemsize


def _address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def as_strided(input: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """A view with any strides into the memory of `input`. As `torch.as_strided`.

    Elements that `input` itself does not show get no gradient. RuntimeError for places outside of the memory.
    """
    shape_of(input, "as_strided")
    size, stride = sizes_of((size,)), sizes_of((stride,))
    if len(size) != len(stride):
        raise RuntimeError("mismatch in length of strides and shape")
    if min(stride, default=0) < 0:
        raise RuntimeError(f"as_strided: Negative strides are not supported at the moment, got strides: {list(stride)}")
    if min(size, default=0) < 0:
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(size)} and strides={list(stride)}")
    if storage_offset is not None and storage_offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {storage_offset}")
    params = current_interpreter().window(input, size, stride, storage_offset)
    if params is not None:
        return E.as_strided(input, **params)
    if is_placed(input):
        own, data = input._d.offset, input._d
        offset = own if storage_offset is None else storage_offset
        whole = data.memory.array
        check_within(size, stride, offset, data.numpy_dtype.itemsize, math.prod(whole.shape) * whole.dtype.itemsize)
        return strided_view(input, size, stride, offset - own)
    array = input._array()
    memory = storage_of(array)
    own = (_address(array) - _address(memory)) // array.itemsize
    offset = own if storage_offset is None else storage_offset
    check_within(size, stride, offset, array.itemsize, memory.nbytes)
    return strided_view(input, size, stride, offset - own)


def check_within(size: tuple[int, ...], stride: tuple[int, ...], offset: int, item: int, available: int) -> None:
    """RuntimeError if elements lie outside of `available` bytes of memory; `item` is the size of an element."""
    needed = (offset + sum((n - 1) * s for n, s in zip(size, stride, strict=True)) + 1) * item
    if offset < 0 or (math.prod(size) and needed > available):
        raise RuntimeError(
            f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset}, and itemsize "
            f"{item} requiring a storage size of {needed} are out of bounds for storage of size {available}"
        )


def strided_view(input: Tensor, size: tuple[int, ...], stride: tuple[int, ...], offset: int) -> Tensor:
    """The view of `input` at `offset` elements from its first one, which lies inside its memory."""
    if is_placed(input):
        return _placed_view(input, size, stride, offset)
    array = input._array()
    item = array.itemsize
    flat = storage_of(array).T if storage_of(array).flags.f_contiguous else storage_of(array)
    start = _address(array) - _address(flat) + offset * item if math.prod(size) else 0
    shown = np.ndarray(size, array.dtype, flat, start, tuple(s * item for s in stride))
    if 0 in stride:
        shown.flags.writeable = False  # elements that repeat in memory may not be written one by one
    result = Tensor._wrap(shown)
    if input._n is not None and grad_enabled():
        steps = row_major(input._d.shape) if array.flags.c_contiguous else tuple(s // item for s in array.strides)
        params = window(array.shape, steps, size, stride, offset)
        record(OPS["as_strided"], (input,), params, result)
    note_view(result, input)
    return result


NO_WINDOW = "as_strided of a part of numbers, on a device"


def _placed_view(input: Tensor, size: tuple[int, ...], stride: tuple[int, ...], offset: int) -> Tensor:
    """`strided_view` of a tensor on a device."""
    data = input._d
    whole = data.memory.array
    if np.dtype(whole.dtype) != data.numpy_dtype:
        raise NotImplementedError(NO_WINDOW)
    steps = data.memory.stride or row_major(tuple(whole.shape))
    params = window(tuple(whole.shape), steps, size, stride, data.offset + offset)
    result = Tensor._wrap(data.shown(OPS["as_strided"], params, size, stride, data.offset + offset))
    if input._n is not None and grad_enabled():
        steps = data.stride or row_major(data.shape)
        record(OPS["as_strided"], (input,), window(data.shape, steps, size, stride, offset), result)
    note_view(result, input)
    return result


def window(
    shape: tuple[int, ...], steps: tuple[int, ...], size: tuple[int, ...], stride: tuple[int, ...], offset: int
) -> dict[str, Any]:
    """The parameters of the op `as_strided` for a tensor with strides `steps`, `offset` from its first element on."""
    shift = max(-offset, 0)
    layout = None if steps == row_major(shape) and not shift else (steps, shift)
    return {"size": size, "stride": stride, "offset": offset + shift, "layout": layout}


def plain_window(tensor: Tensor, size: tuple[int, ...], stride: tuple[int, ...], offset: int | None) -> dict[str, Any]:
    """`window` for a tensor that fills its memory, row-major. RuntimeError for places outside of it."""
    shape, item = tuple(tensor._d.shape), tensor._dtype().itemsize
    check_within(size, stride, offset or 0, item, math.prod(shape) * item)
    return window(shape, row_major(shape), size, stride, offset or 0)


def unfold(self: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """All slices of `size` along `dimension`, `step` apart, as a view with the slices in a new last dim.

    As `torch.Tensor.unfold`. RuntimeError if `size` is larger than the dim or `step` is not positive.
    """
    shape = shape_of(self, "unfold")
    axis = axis_of(dimension, len(shape))
    length = shape[axis] if shape else 1
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if size > length:
        raise RuntimeError(f"maximum size for tensor at dimension {axis} is {length} but size is {size}")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    traced = not (on_arrays(self) or is_placed(self))
    steps = stride(self)
    sizes, strides = (size,), (1,)  # a 0-d tensor has no place for a count of slices
    if shape:
        count = (length - size) // step + 1
        sizes = (*shape[:axis], count, *shape[axis + 1 :], size)
        strides = (*steps[:axis], steps[axis] * step, *steps[axis + 1 :], steps[axis])
    if traced:
        return E.as_strided(self, **window(tuple(shape), steps, sizes, strides, 0))
    return named(strided_view(self, sizes, strides, 0), "UnfoldBackward0")


def view_dtype(self: Tensor, dtype: dtypes.dtype) -> Tensor:
    """The same bytes as elements of `dtype`, a view. RuntimeError if they do not make whole elements."""
    have, want = self._dtype(), dtype.numpy
    if have.itemsize != want.itemsize:
        _check_items(tuple(self._d.shape), stride(self), have, want)
    if not current_interpreter().immediate or not on_arrays(self):
        return E.bitcast(self, dtype=want)
    return Tensor._wrap(self._array().view(want))  # which, without a derivative, is no view to autograd


def _check_items(shape: tuple[int, ...], steps: tuple[int, ...], have: np.dtype, want: np.dtype) -> None:
    """RuntimeError unless elements side by side make whole ones of another size."""
    names = torch_name(have), torch_name(want)
    sizes = f"to view {names[0]} as {names[1]} (different element sizes), but got"
    if not shape:
        raise RuntimeError(f"self.dim() cannot be 0 to view {names[0]} as {names[1]} (different element sizes)")
    if steps[-1] != 1:
        raise RuntimeError(f"self.stride(-1) must be 1 {sizes} {steps[-1]}")
    ratio = want.itemsize // have.itemsize
    if ratio:
        if shape[-1] % ratio:
            raise RuntimeError(f"self.size(-1) must be divisible by {ratio} {sizes} {shape[-1]}")
        for axis, step in enumerate(steps[:-1]):
            if step % ratio:
                raise RuntimeError(f"self.stride({axis}) must be divisible by {ratio} {sizes} {step}")
