"""Sums, softmax, norms, masks and sizes of sparse tensors. As `torch.sparse` has them."""

from __future__ import annotations

from typing import Any

import numpy as np

from eager.core.sparse import Sparse, is_sparse
from eager.core.tensor import Tensor
from eager.engine.conversion import cast_to
from eager.engine.language import E
from eager.functional.arguments import axes_of, axis_of, sizes_of
from eager.sparse import products
from eager.sparse.access import kind_of
from eager.sparse.conversion import to_dense
from eager.sparse.forms import at_elements
from eager.sparse.parts import added, coalesced, coo, give_elements, known, linear, made, row, taken
from eager.sparse.shapes import summed


def sum(input: Tensor, dim: Any = None, dtype: Any = None) -> Tensor:
    """The sum of a COO tensor over `dim`, or over all: dense if no sparse dim is left. As `torch.sparse.sum`."""
    input = cast_to(input, dtype)
    if not is_sparse(input) or input._d.layout != "sparse_coo":
        raise RuntimeError(f"coalesce expected sparse coordinate tensor layout but got {kind_of(input)}")
    return summed(input, axes_of(dim, len(input._d.shape)))


def sparse_mask(self: Tensor, mask: Tensor) -> Tensor:
    """The elements of `self` where the sparse `mask` has elements. As `torch.Tensor.sparse_mask`."""
    if not is_sparse(mask):
        raise NotImplementedError("Could not run 'aten::sparse_mask' with arguments from the 'CPU' backend.")
    if self._d.shape != mask._d.shape:
        raise RuntimeError(
            f"sparse_mask(): operands have incompatible sizes; self has size {list(self._d.shape)} but mask has size "
            f"{list(mask._d.shape)}"
        )
    if is_sparse(self):
        self = to_dense(self)
    return mask._d.with_values(at_elements(mask, self))


def norm(x: Tensor, p: Any) -> Tensor:
    """The norm of all elements of a COO tensor."""
    values = (coalesced(x) if x._d.layout == "sparse_coo" else x)._d.values
    return values.norm(p)  # type: ignore[attr-defined]


def smm(input: Tensor, mat: Tensor) -> Tensor:
    """The product of a sparse and a strided matrix, as a sparse tensor of all its elements. As `torch.smm`."""
    return products.matmul(input, mat).to_sparse()  # type: ignore[attr-defined]


def hspmm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """`mat1 @ mat2` of a COO and a strided matrix, in COO: the rows that are not empty, dense. As `torch.hspmm`."""
    source = coalesced(mat1)
    rows = np.unique(source._d.parts[0]._known()[0])
    product = products.matmul(mat1, mat2)
    values = E.index(product, made(rows), spec=(0,))
    return coo(made(rows[None]), values, product._d.shape, True)


def sspaddmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * input + alpha * (mat1 @ mat2) of sparse `input` and `mat1`, sparse. As `torch.sspaddmm`."""
    return E.add(E.mul(input, beta), E.mul(smm(mat1, mat2), alpha))


def sparse_resize_(self: Tensor, size: Any, sparse_dim: int, dense_dim: int) -> Tensor:
    """Give a COO tensor another shape, larger where it has elements. As `torch.Tensor.sparse_resize_`."""
    return _resized(self, size, sparse_dim, dense_dim, "sparse_resize_", False)


def sparse_resize_and_clear_(self: Tensor, size: Any, sparse_dim: int, dense_dim: int) -> Tensor:
    """Give a COO tensor another shape, and no elements. As `torch.Tensor.sparse_resize_and_clear_`."""
    return _resized(self, size, sparse_dim, dense_dim, "sparse_resize_and_clear_", True)


def resize_as_sparse_(self: Tensor, the_template: Tensor) -> Tensor:
    """`sparse_resize_` to the shape of another COO tensor. As `torch.resize_as_sparse_`."""
    count = the_template._d.sparse_dim
    shape = the_template._d.shape
    return sparse_resize_(self, shape, count, len(shape) - count)


def _resized(x: Tensor, size: Any, sparse_dim: int, dense_dim: int, name: str, clear: bool) -> Tensor:
    shape = sizes_of((size,))
    if not is_sparse(x) or x._d.layout != "sparse_coo":
        raise NotImplementedError(f"Could not run 'aten::{name}' with arguments from the 'CPU' backend.")
    data: Sparse = x._d
    if len(shape) != sparse_dim + dense_dim:
        raise RuntimeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(shape)}, sparse_dim = "
            f"{sparse_dim}, dense_dim = {dense_dim}"
        )
    count = data.sparse_dim
    n = 0 if clear else data.parts[0]._d.shape[1]
    if n and (sparse_dim, dense_dim) != (count, len(data.shape) - count):
        which, now, then = ("sparse", count, sparse_dim) if count != sparse_dim else (
            "dense", len(data.shape) - count, dense_dim)  # fmt: skip
        raise RuntimeError(
            f"changing the number of {which} dimensions (from {now} to {then}) on a non-empty sparse tensor is not "
            "supported."
        )
    if n and any(a < b for a, b in zip(shape, data.shape, strict=True)):
        raise RuntimeError(
            "shrinking the size of sparse dimensions (from "
            f"{list(data.shape[:count])} to {list(shape[:count])}) on a non-empty sparse tensor is not supported."
        )
    if not n:
        empty = np.zeros((0, *shape[sparse_dim:]), data.numpy_dtype)
        parts = made(np.zeros((sparse_dim, 0), np.int64)), Tensor._wrap(empty)
        give_elements(x, Sparse("sparse_coo", parts, shape, clear), name.removesuffix("_"))
    else:
        values = data.values
        if shape[count:] != data.shape[count:]:
            high = (0, *(a - b for a, b in zip(shape[count:], data.shape[count:], strict=True)))
            values = E.pad_zeros(values, low=(0,) * len(high), high=high, interior=(0,) * len(high))
        give_elements(x, Sparse("sparse_coo", (data.parts[0], values), shape, data.coalesced), name.removesuffix("_"))
    x._n = x._d.values._n
    return x


def softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """exp(x) / sum(exp(x)) along `dim`, over the elements that are stored. As `torch.sparse.softmax`."""
    return _along(input, dim, dtype, False)


def log_softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """The logarithm of `softmax`. As `torch.sparse.log_softmax`."""
    return _along(input, dim, dtype, True)


def _along(input: Tensor, dim: int, dtype: Any, log: bool) -> Tensor:
    if not is_sparse(input) or input._d.layout != "sparse_coo":
        backend = input._d.backend if is_sparse(input) else "CPU"
        name = "_sparse_log_softmax" if log else "_sparse_softmax"
        raise NotImplementedError(f"Could not run 'aten::{name}' with arguments from the '{backend}' backend.")
    data: Sparse = coalesced(cast_to(input, dtype))._d
    axis, count = axis_of(dim, len(data.shape)), data.sparse_dim
    if axis >= count:
        function = E.log_softmax if log else E.softmax
        return data.with_values(function(data.values, axis=axis - count + 1))
    others = [k for k in range(count) if k != axis]
    if len(others) == 1:
        at, groups = row(data.parts[0], others[0]), data.shape[others[0]]
    else:
        where = known(data.parts[0])
        keys = linear([where[k] for k in others], tuple(data.shape[k] for k in others)) if others else where[0] * 0
        found, group = np.unique(keys, return_inverse=True)
        at, groups = made(group), len(found)
    values = data.values
    lowest = E.full(shape=(groups, *values._d.shape[1:]), value=-np.inf, dtype=values._dtype())
    index = E.reshape(at, shape=(at._d.shape[0], *(1,) * (len(values._d.shape) - 1)))
    index = E.clone(E.broadcast_to(index, shape=tuple(values._d.shape)))
    most = E.stop_gradient(lowest.scatter_reduce(0, index, E.stop_gradient(values), "amax"))  # type: ignore[attr-defined]
    shifted = E.sub(values, taken(most, at))
    total = taken(added(tuple(lowest._d.shape), E.exp(shifted), at), at)
    return data.with_values(E.sub(shifted, E.log(total)) if log else E.div(E.exp(shifted), total))
