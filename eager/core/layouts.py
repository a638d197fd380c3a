"""`layout` and `memory_format`: how the elements of a tensor lie in memory."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any, final

import numpy as np

from eager.core.shown import Shown
from eager.core.sparse import Sparse
from graphc.ops.strides import row_major


class _Named(metaclass=Shown):
    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str:
        return self.name


@final
class layout(_Named):
    """How elements are stored. As `torch.layout`."""

    __slots__ = ()


@final
class memory_format(_Named):
    """The order of dims in memory. As `torch.memory_format`."""

    __slots__ = ()


strided, sparse_coo, sparse_csr = layout("strided"), layout("sparse_coo"), layout("sparse_csr")
sparse_csc, sparse_bsr, sparse_bsc = layout("sparse_csc"), layout("sparse_bsr"), layout("sparse_bsc")
LAYOUTS = {each.name: each for each in (sparse_coo, sparse_csr, sparse_csc, sparse_bsr, sparse_bsc)}
preserve_format, contiguous_format = memory_format("preserve_format"), memory_format("contiguous_format")
channels_last, channels_last_3d = memory_format("channels_last"), memory_format("channels_last_3d")

TILE = 64  # rows and columns of a large matrix that are copied at a time
RANKS = {channels_last: 4, channels_last_3d: 5}


def check_layout(wanted: Any, name: str) -> None:
    """TypeError unless `wanted` is a layout (or None), NotImplementedError unless it is `strided`."""
    if wanted is None or wanted is strided:
        return
    if not isinstance(wanted, layout):
        raise TypeError(f"{name}(): argument 'layout' must be torch.layout, not {type(wanted).__name__}")
    raise NotImplementedError(f"Could not run 'aten::{name}' with arguments from the 'SparseCPU' backend.")


def allocated(
    make: Callable[..., np.ndarray], shape: tuple[int, ...], dtype: np.dtype, order: Any, like: np.ndarray | None = None
) -> np.ndarray:
    """`make(shape, dtype)` with the dims in memory as the memory format `order` has them, or as they are in `like`."""
    if order in RANKS:
        moved = channels_last_order(shape, order)
    elif like is not None and order is not contiguous_format and not like.flags.c_contiguous:
        if is_dense(like):
            steps = [step // like.itemsize * dtype.itemsize for step in like.strides]
            return np.ndarray(shape, dtype, make(like.size, dtype), 0, steps)
        moved = dims_in_order(shape, like.strides)
    else:
        return make(shape, dtype)
    return make(tuple(shape[i] for i in moved), dtype).transpose(np.argsort(moved))


def is_dense(array: np.ndarray) -> builtins.bool:
    """Whether the elements fill their memory without gaps, in whatever order."""
    step = array.itemsize
    for own, n in sorted((s, n) for s, n in zip(array.strides, array.shape, strict=True) if n > 1):
        if own != step:
            return False
        step *= n
    return True


def laid_out(g: np.ndarray, like: Any, copy: builtins.bool) -> np.ndarray:
    """`g` laid out as PyTorch does it for a leaf with the data `like`: as the leaf, if that has no gaps, else by rows.

    copy: in memory of its own, even if it lies so already.
    """
    if like.__class__ is not np.ndarray or like.flags.c_contiguous or not is_dense(like):
        return (g.copy() if copy else g) if g.flags.c_contiguous else by_rows(g)
    if g.strides == like.strides and not copy:
        return g
    result = allocated(np.empty, g.shape, g.dtype, preserve_format, like)
    result[...] = g
    return result


def by_rows(array: np.ndarray) -> np.ndarray:
    """A row-major copy; tile by tile if `array` is large: NumPy, row by row, would miss the cache at each element."""
    result = np.empty(array.shape, array.dtype)
    if array.ndim != 2 or array.size <= TILE * TILE:
        result[...] = array
        return result
    rows, columns = array.shape
    for i in range(0, rows, TILE):
        for j in range(0, columns, TILE):
            result[i : i + TILE, j : j + TILE] = array[i : i + TILE, j : j + TILE]
    return result


def memory_order(tensor: Any) -> tuple[int, ...] | None:
    """The dims of `tensor` from the longest step in memory to the shortest; None if they are in order."""
    data = tensor._d
    if len(data.shape) < 2:
        return None
    if data.__class__ is np.ndarray:
        strides = None if data.flags.c_contiguous else data.strides
    else:
        strides = data.strides(tensor)
    if strides is None or strides == row_major(data.shape):  # strides of symbolic sizes are not compared in vain
        return None
    order = tuple(dims_in_order(data.shape, strides))
    return None if order == tuple(range(len(strides))) else order


def dims_in_order(shape: tuple[int, ...], strides: tuple[int, ...]) -> list[int]:
    """The dims from the longest step in memory to the shortest; those without a step stay where they are."""
    order = list(range(len(shape)))
    for i in range(len(order) - 2, -1, -1):
        at = i
        for k in range(i + 1, len(order)):
            step, after = abs(strides[order[at]]), abs(strides[order[k]])
            if not step or not after:
                continue
            if step > after or (step == after and shape[order[at]] >= shape[order[k]]):
                break
            order[at], order[k] = order[k], order[at]
            at = k
    return order


def channels_last_order(shape: tuple[int, ...], order: Any) -> list[int]:
    """The dims, from the outermost one in memory. RuntimeError for another number of dims."""
    rank = RANKS[order]
    if len(shape) != rank:
        raise RuntimeError(f"required rank {rank} tensor to use {order.name} format")
    return [0, *range(2, rank), 1]


def arranged(array: np.ndarray, order: Any) -> np.ndarray:
    """`array`, or a copy of it that lies in memory as the memory format `order` has it."""
    if lies_in(array, order):
        return array
    result = allocated(np.empty, array.shape, array.dtype, order)
    result[...] = array
    return result


def lies_in(array: np.ndarray, order: Any) -> builtins.bool:
    """Whether `array` lies in memory as the memory format `order` has it."""
    if order not in RANKS:
        return array.flags.c_contiguous
    return array.ndim == RANKS[order] and array.transpose(channels_last_order(array.shape, order)).flags.c_contiguous


def strides_lie_in(shape: tuple[int, ...], strides: tuple[int, ...], order: Any) -> builtins.bool:
    """`lies_in` for a tensor of which only the shape and the strides, in elements, are known."""
    if order in RANKS:
        if len(shape) != RANKS[order]:
            return False
        dims = channels_last_order(shape, order)
        shape, strides = tuple(shape[i] for i in dims), tuple(strides[i] for i in dims)
    plain = row_major(shape)
    return strides == plain or all(n == 1 or a == b for n, a, b in zip(shape, strides, plain, strict=True))


def layout_of(tensor: Any) -> layout:
    """How elements are stored: `strided`, or a sparse layout. As `torch.Tensor.layout`."""
    return LAYOUTS[tensor._d.layout] if tensor._d.__class__ is Sparse else strided


def is_coo(tensor: Any) -> bool:
    """Whether the layout is COO. As `torch.Tensor.is_sparse`."""
    return layout_of(tensor) is sparse_coo


def is_csr(tensor: Any) -> bool:
    """Whether the layout is CSR. As `torch.Tensor.is_sparse_csr`."""
    return layout_of(tensor) is sparse_csr


def element_size(tensor: Any) -> int:
    """Bytes in an element. As `torch.Tensor.element_size`."""
    return tensor._dtype().itemsize
