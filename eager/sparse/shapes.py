"""Sparse tensors in other shapes: transposed, sliced, joined, summed. Values move as they are; places are computed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eager.core.sparse import Sparse, is_sparse, not_implemented
from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.functional.indexing import OUT_OF_BOUNDS
from eager.sparse.conversion import compressed, swapped
from eager.sparse.parts import (
    as_coo,
    coalesced,
    coo,
    elements,
    known,
    made,
    on_indices,
    row,
    stacked,
    taken,
    total,
)
from eager.sparse.products import turned

RESHAPE = "reshape is not implemented for sparse tensors"


def permuted(x: Tensor, order: tuple[int, ...]) -> Tensor:
    """`x` with its dims in another `order`. RuntimeError if sparse and dense dims change places."""
    data: Sparse = x._d
    ndim = len(data.shape)
    if len(order) != ndim:
        raise RuntimeError(
            f"permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {ndim} is not equal to len(dims) = {len(order)}"
        )
    order = tuple(k % max(ndim, 1) for k in order)
    count = data.sparse_dim
    if data.layout != "sparse_coo":
        if order == tuple(range(ndim)):
            return data.with_values(data.values)
        if order != (*range(count - 2), count - 1, count - 2, *range(count, ndim)):
            raise RuntimeError("transpose(): only the two dims of the matrices of a compressed layout can be exchanged")
        return swapped(x)
    if set(order[:count]) != set(range(count)):
        d0 = next(k for k, d in enumerate(order) if d != k)
        d1 = order[d0]
        raise RuntimeError(
            f"sparse transpose: transposed dimensions must be sparse Got sparse_dim: {count}, d0: {d0}, d1: {d1}"
        )
    result = turned(x, order[:count])
    if order[count:] != tuple(range(count, ndim)):
        values = E.permute(result._d.values, dims=(0, *(k - count + 1 for k in order[count:])))
        result = coo(result._d.parts[0], values, tuple(data.shape[k] for k in order))
    return result


def reshaped(x: Tensor, shape: Sequence[int]) -> Tensor:
    """`x` with dims of size 1 put in or left out. RuntimeError for any other change of shape."""
    data: Sparse = x._d
    shape = tuple(shape)
    if shape == data.shape:
        return data.with_values(data.values)
    if data.layout != "sparse_coo" or [n for n in shape if n != 1] != [n for n in data.shape if n != 1]:
        raise RuntimeError(RESHAPE)
    count = data.sparse_dim
    return _resized(x, [row(data.parts[0], k) for k in range(count)], data.values, data.shape, count, shape)


def _resized(
    x: Tensor, places: list[Tensor], values: Tensor, sizes: Sequence[int], count: int, shape: tuple[int, ...]
) -> Tensor:
    """The tensor of `shape` with these elements; of `sizes`, `count` of them sparse, it differs in dims of size 1."""
    dense = tuple(sizes[count:])
    if shape[len(shape) - len(dense) :] == dense:
        cut = len(shape) - len(dense)
    else:
        wanted = [n for n in sizes[:count] if n != 1]
        cut = next(k for k in range(len(shape) + 1) if [n for n in shape[:k] if n != 1] == wanted)
    rest = shape[cut:]
    if rest != dense:
        values = E.reshape(values, shape=(values._d.shape[0], *rest))
    if not cut:  # no dim has indices: what was stored is added up
        return total(values)
    left = [p for p, n in zip(places, sizes, strict=False) if n != 1]
    nothing = made(np.zeros(values._d.shape[0], np.int64))
    rows = [nothing if n == 1 else left.pop(0) for n in shape[:cut]]
    return coo(E.cat(*[E.reshape(r, shape=(1, r._d.shape[0])) for r in rows], axis=0), values, shape, x._d.coalesced)


def basic_part(
    x: Tensor, start: Sequence[int], stop: Sequence[int], step: Sequence[int], shape: Sequence[int] | None = None
) -> Tensor:
    """x[start:stop:step] of every dim, in COO; `shape` leaves out some of the dims of size 1, or puts such in."""
    x = as_coo(x)
    data: Sparse = x._d
    count = data.sparse_dim
    indices, values = data.parts
    sizes = [len(range(*triple)) for triple in zip(start, stop, step, strict=True)]
    where = known(indices)
    inside = np.ones(where.shape[1], bool)
    for k in range(count):
        offset = where[k] - start[k]
        inside &= (offset >= 0) & (where[k] < stop[k]) & (offset % step[k] == 0)
    kept = np.flatnonzero(inside)
    moved = (where[:, kept] - np.array(start[:count], np.int64).reshape(-1, 1)) // np.array(
        step[:count], np.int64
    ).reshape(-1, 1)
    values = taken(values, made(kept))
    if count < len(sizes):
        n = len(kept)
        values = E.slice(values, start=(0, *start[count:]), stop=(n, *stop[count:]), step=(1, *step[count:]))
    result = coo(made(moved), values, sizes, data.coalesced)
    if shape is None or tuple(shape) == tuple(sizes):
        return result
    return _resized(result, [made(m) for m in moved], values, sizes, count, tuple(shape))


def selected(x: Tensor, index: Tensor, axis: int) -> Tensor:
    """The slices of a COO tensor along `axis` that `index`, a vector, lists."""
    data: Sparse = x._d
    if data.layout != "sparse_coo" or len(index._d.shape) > 1:
        raise not_implemented("index_select" if len(index._d.shape) == 1 else "index", data)
    count = data.sparse_dim
    shape = list(data.shape)
    size, shape[axis] = shape[axis], int(np.prod(index._d.shape))
    if axis >= count:
        values = E.index(data.values, index, spec=(*(None,) * (axis - count + 1), 0))
        return coo(data.parts[0], values, shape, data.coalesced)
    wanted, where = np.atleast_1d(known(index)), known(data.parts[0])
    if (outside := (wanted < -size) | (wanted >= size)).any():
        raise IndexError(OUT_OF_BOUNDS.format(index=wanted[outside][0], dim=axis, size=size))
    wanted = wanted + size * (wanted < 0)
    order = np.argsort(where[axis], kind="stable")
    line = where[axis][order]
    begins, ends = np.searchsorted(line, wanted), np.searchsorted(line, wanted, side="right")
    counts = ends - begins
    first = np.arange(counts.sum()) - np.repeat(counts.cumsum() - counts, counts) + np.repeat(begins, counts)
    chosen = order[first]
    moved = where[:, chosen]
    moved[axis] = np.repeat(np.arange(len(wanted)), counts)
    found = coo(made(moved), taken(data.values, made(chosen)), shape)
    return coalesced(found) if data.coalesced or axis == 0 else found


def joined(tensors: Sequence[Tensor], axis: int) -> Tensor:
    """COO tensors side by side along `axis`. RuntimeError if one is not."""
    for position, x in enumerate(tensors):
        if not is_sparse(x):
            raise RuntimeError(f"Concatenating sparse tensors, but a dense tensor was found at position {position}.")
        if x._d.layout != "sparse_coo":
            raise RuntimeError(f"Sparse {x._d.kind[6:].upper()} tensors do not have is_contiguous")
    datas: list[Sparse] = [x._d for x in tensors]
    count = datas[0].sparse_dim
    for position, data in enumerate(datas):
        if data.sparse_dim != count:
            raise RuntimeError(
                "All tensors must have the same sparse_dim and dense_dim: "
                f"{count}, {len(datas[0].shape) - count}, but tensor at position {position} has "
                f"{data.sparse_dim}, {len(data.shape) - data.sparse_dim}."
            )
    total = sum(data.shape[axis] for data in datas)
    shape = (*datas[0].shape[:axis], total, *datas[0].shape[axis + 1 :])
    indices, values, before = [], [], 0
    for data in datas:
        where, own = data.parts
        if axis < count:
            shift = np.zeros((count, 1), np.int64)
            shift[axis] = before
            where = E.add(where, made(shift)) if before else where
        elif own._d.shape[axis - count + 1] != total:
            low, high = ([0] * len(own._d.shape) for _ in range(2))
            low[axis - count + 1], high[axis - count + 1] = before, total - before - data.shape[axis]
            own = E.pad_zeros(own, low=tuple(low), high=tuple(high), interior=(0,) * len(low))
        indices.append(where)
        values.append(own)
        before += data.shape[axis]
    return coo(E.cat(*indices, axis=1), E.cat(*values, axis=0), shape)


def summed(x: Tensor, axes: tuple[int, ...], keepdims: bool = False) -> Tensor:
    """The sum over `axes`: dense if those are all sparse dims, else in the layout of `x`."""
    data: Sparse = x._d
    ndim, count = len(data.shape), data.sparse_dim
    if len(axes) == ndim and not keepdims:
        values = data.values
        return E.sum(values, axis=tuple(range(len(values._d.shape))), keepdims=False)
    if data.layout != "sparse_coo" and not keepdims:
        raise RuntimeError("reduction operations on CSR tensors with keepdim=False is unsupported")
    places, values = elements(x)
    inner = tuple(k - count + 1 for k in axes if k >= count)
    if inner:
        values = E.sum(values, axis=inner, keepdims=keepdims)
    left = [k for k in range(count) if k not in axes]
    if not left and not keepdims:
        return E.sum(values, axis=(0,), keepdims=False)
    if values._dtype().kind in "iub" and not inner:
        values = E.cast(values, dtype=np.dtype(np.int64))
    shape = [1 if k in axes else n for k, n in enumerate(data.shape) if keepdims or k not in axes]
    nothing = made(np.zeros(values._d.shape[0], np.int64))
    if data.layout == "sparse_coo":
        places = [on_indices(lambda i, k=k: row(i, k), data.parts[0]) for k in range(count)]
    rows = [p if k in left else nothing for k, p in enumerate(places) if keepdims or k in left]
    result = coo(on_indices(lambda *rows: stacked([*rows]), *rows), values, shape)
    if len(left) == count:
        return coo(result._d.parts[0], values, shape, data.coalesced)
    result = coalesced(result)
    return result if data.layout == "sparse_coo" else compressed(result, data.layout)
