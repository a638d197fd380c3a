"""From one layout to another: `to_dense`, `to_sparse`, `to_sparse_csr` and their like. As in PyTorch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from eager.core.layouts import layout as Layout
from eager.core.sparse import Sparse, is_sparse, tensor
from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.engine.node_names import named
from eager.functional.arguments import shape_of
from eager.sparse.parts import (
    BLOCKS,
    BY_ROWS,
    added,
    as_coo,
    block_of,
    coalesced,
    coo,
    elements,
    known,
    linear,
    made,
    row,
    stacked,
    taken,
)
from graphc.ops.dtypes import INT32, INT64

_SHORT = {"sparse_coo": "", "sparse_csr": "_csr", "sparse_csc": "_csc", "sparse_bsr": "_bsr", "sparse_bsc": "_bsc"}


def to_dense(self: Tensor, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
    """The strided tensor of the same values; gradients flow to the elements that are stored. As in PyTorch."""
    if not is_sparse(self):
        return self if dtype is None else self.to(dtype)
    places, values = elements(self)
    dense = named(added(self._d.shape, values, *places), "ToDenseBackward0")
    return dense if dtype is None else dense.to(dtype)


def to_sparse(
    self: Tensor, sparse_dim: Any = None, *, layout: Any = None, blocksize: Any = None, dense_dim: int | None = None
) -> Tensor:
    """A sparse tensor of the elements that are not zero, in `layout` (COO by default). As `torch.Tensor.to_sparse`.

    sparse_dim: the number of dims, from the first, that have indices; the rest are dense, stored whole. RuntimeError
    for a number out of range, and for a block size that does not divide the matrix.
    """
    if isinstance(sparse_dim, Layout):
        sparse_dim, layout = None, sparse_dim
    name = "sparse_coo" if layout is None else layout.name
    if name not in _SHORT:
        raise RuntimeError(f"to_sparse: unexpected layout {layout}")
    if blocksize is not None and name not in BLOCKS:
        raise RuntimeError(
            "to_sparse: conversion from Strided to Sparse with blocksize is not supported"
            if name == "sparse_coo" else f"to_sparse: blocksize is not supported for layout {layout}"
        )  # fmt: skip
    if name == "sparse_coo":
        return _to_coo(self, sparse_dim)
    return _to_compressed(self, name, blocksize, dense_dim)


def to_sparse_coo(self: Tensor) -> Tensor:
    """`self` in COO. As `torch.Tensor.to_sparse_coo`."""
    return _to_coo(self, None)


def to_sparse_csr(self: Tensor, dense_dim: int | None = None) -> Tensor:
    """`self`, a matrix or a batch of them, in CSR: row by row. As `torch.Tensor.to_sparse_csr`."""
    return _to_compressed(self, "sparse_csr", None, dense_dim)


def to_sparse_csc(self: Tensor, dense_dim: int | None = None) -> Tensor:
    """`self`, a matrix or a batch of them, in CSC: column by column. As `torch.Tensor.to_sparse_csc`."""
    return _to_compressed(self, "sparse_csc", None, dense_dim)


def to_sparse_bsr(self: Tensor, blocksize: Any, dense_dim: int | None = None) -> Tensor:
    """`self` in CSR of dense blocks. As `torch.Tensor.to_sparse_bsr`. RuntimeError unless they fit."""
    return _to_compressed(self, "sparse_bsr", blocksize, dense_dim)


def to_sparse_bsc(self: Tensor, blocksize: Any, dense_dim: int | None = None) -> Tensor:
    """`self` in CSC of dense blocks. As `torch.Tensor.to_sparse_bsc`. RuntimeError unless they fit."""
    return _to_compressed(self, "sparse_bsc", blocksize, dense_dim)


def _to_coo(x: Tensor, sparse_dim: Any) -> Tensor:
    if is_sparse(x):
        if sparse_dim is not None and sparse_dim != x._d.sparse_dim:
            raise RuntimeError(
                "to_sparse: conversion from Sparse to Sparse with sparse_dim argument !=self.sparse_dim() is not "
                "supported"
            )
        return x if x._d.layout == "sparse_coo" else coalesced(as_coo(x))
    shape = shape_of(x, "to_sparse")
    ndim = len(shape)
    count = ndim if sparse_dim is None else sparse_dim
    if not (0 < count <= ndim or count == ndim == 0):
        raise RuntimeError(
            f"dense_to_sparse: sparse_dim argument must be in [0,{ndim}] range, but {sparse_dim} is given"
        )
    array = known(x) != 0
    where = np.stack(np.nonzero(array.any(tuple(range(count, ndim))))) if count else np.zeros((0, int(array)), np.int64)
    indices = made(where)
    if count:
        values = E.index(x, *[row(indices, k) for k in range(count)], spec=tuple(range(count)))
    else:
        values = E.reshape(x, shape=(1,)) if where.shape[1] else E.full(shape=(0,), value=0, dtype=x._dtype())
    return coo(indices, named(values, "ToSparseBackward0"), shape, True)


def _to_compressed(x: Tensor, name: str, blocksize: Any, dense_dim: int | None) -> Tensor:
    shape = shape_of(x, f"to_sparse{_SHORT[name]}")
    if is_sparse(x) and x._d.layout == name and (blocksize is None or tuple(blocksize) == block_of(x._d)):
        return x
    if name in BLOCKS and blocksize is None:
        raise RuntimeError(f"to_sparse{_SHORT[name]}: blocksize must be given")
    source = x
    if not is_sparse(x):
        dense = dense_dim or 0
        if len(shape) - dense < 2:
            raise RuntimeError(
                f"dense_to_sparse{_SHORT[name]}: expected a tensor with 2 or more sparse dims, but got {len(shape)}D"
            )
        source = _to_coo(x, len(shape) - dense)
    block = tuple(blocksize) if name in BLOCKS else ()
    source = coalesced(as_coo(source))
    lead = source._d.sparse_dim - 2
    if lead < 0:
        raise RuntimeError(
            f"sparse_coo_to_sparse{_SHORT[name]}: conversion from Sparse to {name} for input tensors with "
            "sparse_dim()!=2 is not supported"
        )
    if block and any(n % b for n, b in zip(shape[lead : lead + 2], block, strict=True)):
        sizes = ",".join(map(str, shape[lead : lead + 2]))
        raise RuntimeError(
            f"dense_to_sparse{_SHORT[name]}: tensor sparse size ({sizes}) must be divisible by given blocksize "
            f"({block[0]},{block[1]})"
        )
    return compressed(source, name, block)


def starts_of(rows: Tensor, lines: int) -> Tensor:
    """Where each of `lines` rows begins among elements whose rows are in order, and where the last one ends."""
    return E.searchsorted(rows, made(np.arange(lines + 1)), right=False)


def coo_to_csr(input: Tensor, size: int, *, out_int32: bool = False) -> Tensor:
    """`starts_of` the sorted rows `input` of a matrix of `size` rows. As `torch._convert_indices_from_coo_to_csr`."""
    if input.dim() != 1:
        raise RuntimeError(f"Input is supposed to be a vector, but got {input.dim()} dimensional tensor.")
    return E.cast(starts_of(input, size), dtype=INT32 if out_int32 else INT64)


def csr_to_coo(
    crow_indices: Tensor, col_indices: Tensor, *, out_int32: bool = False, transpose: bool = False
) -> Tensor:
    """Rows and columns, below batches, the other way round if `transpose`. As `_convert_indices_from_csr_to_coo`."""
    matrix = tensor(Sparse("sparse_csr", (crow_indices, col_indices, col_indices), crow_indices.shape))
    *ahead, rows, columns = elements(matrix)[0]
    found = stacked([*ahead, *((columns, rows) if transpose else (rows, columns))])
    return E.cast(found, dtype=INT32 if out_int32 else INT64)


def compressed(source: Tensor, name: str, block: tuple[int, ...] = ()) -> Tensor:
    """A coalesced COO tensor, the last two sparse dims of which are those of matrices, in a compressed layout."""
    indices, values = source._d.parts
    lead = indices._d.shape[0] - 2
    shape = source._d.shape
    lines = shape[lead if name in BY_ROWS else lead + 1]
    if name == "sparse_csr" and not lead:  # in order as it is, which a trace needs no values for
        starts = starts_of(row(indices, 0), lines)
        return tensor(Sparse(name, (starts, row(indices, 1), values), shape))
    where = known(indices)
    rows, columns = where[lead:]
    if block:
        where, values = _blocked(where, values, shape, block)
        rows, columns = where[lead:]
        lines //= block[0 if name in BY_ROWS else 1]
    major, minor = (rows, columns) if name in BY_ROWS else (columns, rows)
    batch = shape[:lead]
    groups = linear(list(where[:lead]), batch) if lead else np.zeros(len(major), np.int64)
    order = np.lexsort((minor, major, groups))
    count = math.prod(batch)
    per_line = np.bincount(groups * lines + major, minlength=count * lines).reshape(count, lines)
    sizes = per_line.sum(1)
    if (sizes != sizes[:1]).any():
        raise RuntimeError("Expect the same number of specified elements per batch.")
    n = int(sizes[0]) if count else 0
    starts = np.concatenate([np.zeros((count, 1), np.int64), per_line.cumsum(1)], 1).reshape(*batch, lines + 1)
    if (order[1:] < order[:-1]).any():
        values = taken(values, made(order))
    if lead:
        values = E.reshape(values, shape=(*batch, n, *values._d.shape[1:]))
    return tensor(Sparse(name, (made(starts), made(minor[order].reshape(*batch, n)), values), shape))


def _blocked(where: np.ndarray, values: Tensor, shape: tuple[int, ...], block: tuple[int, ...]) -> Any:
    """The indices of the blocks that hold elements, and the blocks."""
    lead = len(where) - 2
    outer = np.concatenate([where[:lead], where[lead:] // np.array(block)[:, None]])
    inner = where[lead:] % np.array(block)[:, None]
    sizes = (*shape[:lead], *(n // b for n, b in zip(shape[lead:], block, strict=False)))
    _, first, inverse = np.unique(linear(list(outer), sizes), return_index=True, return_inverse=True)
    blocks = added((len(first), *block, *values._d.shape[1:]), values, made(inverse), *map(made, inner))
    return outer[:, first], blocks


def swapped(x: Tensor) -> Tensor:
    """The transpose of matrices in a compressed layout: CSR becomes CSC, with the same parts."""
    data: Sparse = x._d
    other = {"sparse_csr": "sparse_csc", "sparse_csc": "sparse_csr", "sparse_bsr": "sparse_bsc",
             "sparse_bsc": "sparse_bsr"}[data.layout]  # fmt: skip
    batch = len(data.parts[0]._d.shape) - 1
    shape = list(data.shape)
    shape[batch], shape[batch + 1] = shape[batch + 1], shape[batch]
    values = data.values
    if data.layout in BLOCKS:
        order = list(range(len(values._d.shape)))
        order[batch + 1], order[batch + 2] = batch + 2, batch + 1
        values = E.permute(values, dims=tuple(order))
    return tensor(Sparse(other, (*data.pattern, values), shape))


def like(x: Tensor, data: Sparse) -> Tensor:
    """A COO tensor `x` in the layout of `data`."""
    if data.layout == "sparse_coo":
        return x
    return compressed(coalesced(x), data.layout, block_of(data))
