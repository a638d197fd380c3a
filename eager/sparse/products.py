"""Products of sparse matrices with dense ones, and with each other. As `torch.sparse.mm` and `torch.mm`."""

from __future__ import annotations

from typing import Any

import numpy as np

from eager.core import operands
from eager.core.sparse import Sparse, is_sparse
from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.engine.node_names import named
from eager.functional.linear import sum_of as weighted
from eager.functional.scalars import number_of
from eager.sparse.access import kind_of
from eager.sparse.conversion import compressed, swapped
from eager.sparse.parts import as_coo, coalesced, coo, elements, flat, known, made, taken
from graphc.ops.dtypes import BOOL
from graphc.ops.linalg import matmul_mismatch as mismatch
from graphc.ops.rules import torch_name

_NAMES = ("SparseAddmmBackward0", "MvBackward0")


def matmul(input: Tensor, other: Tensor) -> Tensor:
    """The product of matrices, or of a matrix and a vector, of which one is sparse, or both.

    Dense, but of two sparse matrices sparse, in the layout of the first. RuntimeError for sizes that do not fit, other
    numbers of dims, and different dtypes.
    """
    x, y = operands.shape(input), operands.shape(other)
    for t in (input, other):
        if is_sparse(t) and len(t._d.shape) != t._d.sparse_dim:
            raise RuntimeError(f"matmul: expected a matrix without dense dims, but got {len(t._d.shape)}D {kind_of(t)}")
    if len(x) == len(y) == 3:
        return _batched(input, other)
    if not (1 <= len(x) <= 2 and 1 <= len(y) <= 2):
        wide = input if is_sparse(input) else other
        raise RuntimeError(f"expand is unsupported for {kind_of(wide)} tensors")
    if input._dtype() != other._dtype():
        raise RuntimeError(f"expected scalar type {torch_name(input._dtype())} but found {torch_name(other._dtype())}")
    if input._dtype() == BOOL:
        raise NotImplementedError("\"addmm_sparse_dense\" not implemented for 'Bool'")
    if x[-1] != y[0]:
        if is_sparse(input) and input._d.layout == "sparse_coo" and len(x) == len(y) == 2:
            raise RuntimeError(f"addmm: Argument #3 (dense): Expected dim 0 size {x[-1]}, got {y[0]}")
        raise RuntimeError(mismatch(x, y))
    if is_sparse(input) and is_sparse(other):
        return _both(input, other)
    if not is_sparse(input):  # (other^T input^T)^T
        product = matmul(_turned(other), input if len(x) == 1 else E.permute(input, dims=(1, 0)))
        return product if len(x) == 1 else E.permute(product, dims=(1, 0))
    if len(x) == 1:
        return E.sum(E.mul(elements(input)[1], taken(other, elements(input)[0][0])), axis=(0,), keepdims=False)
    (rows, columns), values = elements(input)
    dense = other if len(y) == 2 else E.reshape(other, shape=(y[0], 1))
    product = E.sparse_mm(rows, columns, values, dense, size=x[0])
    return named(product if len(y) == 2 else E.reshape(product, shape=(x[0],)), _NAMES[len(y) == 1])


def _turned(x: Tensor) -> Tensor:
    if len(x._d.shape) == 1:
        return x
    return swapped(x) if x._d.layout != "sparse_coo" else turned(x, (1, 0))


def turned(x: Tensor, order: tuple[int, ...]) -> Tensor:
    """A COO tensor with its sparse dims in another order."""
    indices, values = x._d.parts
    shape = x._d.shape
    if order == tuple(range(len(order))):
        return x._d.with_values(values)
    return coo(taken(indices, made(np.array(order))), values, (*(shape[k] for k in order), *shape[len(order) :]))


def _batched(input: Tensor, other: Tensor) -> Tensor:
    """The products of two batches of matrices: one product, of a matrix with the batch on its diagonal."""
    if not is_sparse(input):
        turn = lambda t: E.permute(t, dims=(0, 2, 1))
        return turn(_batched(turn(other), turn(input)))
    if is_sparse(other):
        raise RuntimeError("bmm_sparse: Tensor 'mat2' must be dense")
    (batch, rows, inner), y = input._d.shape, other._d.shape
    if y[:2] != (batch, inner):
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{batch}, {inner}] but got: "
            f"[{y[0]}, {y[1]}]."
        )
    if input._dtype() != other._dtype():
        raise RuntimeError(f"expected scalar type {torch_name(input._dtype())} but found {torch_name(other._dtype())}")
    (b, i, j), values = elements(input)
    shifted = [E.add(E.mul(b, n), k) for n, k in ((rows, i), (inner, j))]
    dense = E.reshape(other, shape=(batch * inner, y[2]))
    return E.reshape(E.sparse_mm(*shifted, values, dense, size=batch * rows), shape=(batch, rows, y[2]))


def _both(input: Tensor, other: Tensor) -> Tensor:
    """The product of two sparse matrices: what each element meets in the other, multiplied and added up."""
    (rows, inner), values = elements(coalesced(as_coo(input)))
    (at, columns), factors = elements(coalesced(as_coo(other)))  # row by row
    left, right = input._d.shape, other._d.shape
    if len(right) == 1:
        raise RuntimeError("mv: expected a dense vector, but got a sparse one")
    begins = np.searchsorted(known(at), np.arange(right[0] + 1))
    met = known(inner)
    counts = np.diff(begins)[met]
    first = np.repeat(np.arange(len(met)), counts)
    second = np.arange(len(first)) - np.repeat(counts.cumsum() - counts, counts) + np.repeat(begins[met], counts)
    products = E.mul(taken(values, made(first)), taken(factors, made(second)))
    where = np.stack([known(rows)[first], known(columns)[second]])
    result = coalesced(coo(made(where), products, (left[0], right[1])))
    layout = input._d.layout
    return result if layout == "sparse_coo" else compressed(result, "sparse_csr")


def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * input + alpha * (mat1 @ mat2), for a sparse `mat1` or `mat2`. As `torch.sparse.addmm`."""
    product = matmul(mat1, mat2)
    beta, alpha = (number_of(factor, product._dtype()) for factor in (beta, alpha))
    shape = product._d.shape
    if not is_sparse(product) and input._d.shape != shape:
        input = E.expand(input, shape=shape)
    return weighted(input, product, beta, alpha)


def mm(input: Tensor, mat2: Tensor, reduce: str | None = None) -> Tensor:
    """The product of two matrices, of which one may be sparse, or both. As `torch.sparse.mm`.

    reduce: "sum", "mean", "amax" or "amin", of what each element of the result is the sum of; for a CSR `input`.
    """
    for x, name in ((input, "self"), (mat2, "mat2")):
        if len(x._d.shape) != 2:
            raise RuntimeError(f"{name} must be a matrix")
    if reduce is None or reduce == "sum":
        return E.matmul(input, mat2)
    if not is_sparse(input) or input._d.layout != "sparse_csr" or is_sparse(mat2):
        raise RuntimeError("torch.sparse.mm: `reduce` is for a product of a CSR and a strided matrix")
    reduce = {"max": "amax", "min": "amin"}.get(reduce, reduce)
    if reduce not in ("mean", "amax", "amin"):
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    (rows, columns), values = elements(input)
    terms = E.mul(E.reshape(values, shape=(values._d.shape[0], 1)), taken(mat2, columns))
    shape = (input._d.shape[0], mat2._d.shape[1])
    zeros = E.full(shape=shape, value=0, dtype=terms._dtype())
    at = E.broadcast_to(E.reshape(rows, shape=(rows._d.shape[0], 1)), shape=tuple(terms._d.shape))
    return zeros.scatter_reduce(0, E.clone(at), terms, reduce, include_self=False)  # type: ignore[attr-defined]


def sampled_addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * input + alpha * (mat1 @ mat2) at the elements of a CSR `input`. As `torch.sparse.sampled_addmm`."""
    if not is_sparse(input) or input._d.layout != "sparse_csr":
        backend = input._d.backend if is_sparse(input) else "CPU"
        raise NotImplementedError(
            f"Could not run 'aten::sparse_sampled_addmm' with arguments from the '{backend}' backend."
        )
    data: Sparse = input._d
    x, y = mat1._d.shape, mat2._d.shape
    if x[-1] != y[-2]:
        raise RuntimeError(f"sampled_addmm: mat1 and mat2 shapes cannot be multiplied ({x[-2]}x{x[-1]} and "
                           f"{y[-2]}x{y[-1]})")  # fmt: skip
    if (*x[:-1], y[-1]) != data.shape:
        raise RuntimeError(f"sampled_addmm: self has shape {list(data.shape)}, but mat1 @ mat2 has {[*x[:-1], y[-1]]}")
    places, _ = elements(input)
    ahead = places[:-2]
    pick = lambda m, k: E.index(m, *ahead, places[k], spec=tuple(range(len(ahead) + 1)))
    order = (*range(len(y) - 2), len(y) - 1, len(y) - 2)
    products = E.sum(E.mul(pick(mat1, -2), pick(E.permute(mat2, dims=order), -1)), axis=(1,), keepdims=False)
    products = E.reshape(products, shape=tuple(data.values._d.shape))
    return data.with_values(weighted(data.values, products, beta, alpha))


def spdiags(diagonals: Tensor, offsets: Tensor, shape: Any, layout: Any = None) -> Tensor:
    """The sparse matrix of `shape` with these diagonals, the rows of `diagonals`. As `torch.sparse.spdiags`.

    `offsets` says which diagonal each is; element j of a row stands in column j. RuntimeError for an offset twice.
    """
    if len(diagonals._d.shape) == 1:
        diagonals = E.reshape(diagonals, shape=(1, *diagonals._d.shape))
    if len(diagonals._d.shape) != 2:
        raise RuntimeError("Diagonals must be vector or matrix")
    if len(shape) != 2:
        raise RuntimeError("Output shape must be 2d")
    found = np.atleast_1d(known(offsets))
    if found.ndim != 1:
        raise RuntimeError("Offsets must be scalar or vector")
    if diagonals._d.shape[0] != len(found):
        raise RuntimeError(
            f"Number of diagonals ({diagonals._d.shape[0]}) does not match the number of offsets ({len(found)})"
        )
    if len(set(found.tolist())) != len(found):
        raise RuntimeError("Offset tensor contains duplicate values")
    m, n = shape
    columns = np.broadcast_to(np.arange(diagonals._d.shape[1]), diagonals._d.shape)
    rows = columns - found[:, None]
    inside = (rows >= 0) & (rows < m) & (columns < n)
    values = taken(flat(diagonals), made(np.flatnonzero(inside)))
    result = coo(made(np.stack([rows[inside], columns[inside]])), values, (m, n))
    if layout is None or layout.name == "sparse_coo":
        return result
    if layout.name not in ("sparse_csr", "sparse_csc"):
        raise RuntimeError(f"Only output layouts (Sparse, SparseCsc, and SparseCsr) are supported, got {layout.name}")
    return compressed(coalesced(result), layout.name)
