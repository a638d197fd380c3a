"""The product of a sparse matrix and a dense one, over the elements that are stored.

The matrix is three vectors of one length: the row, the column and the value of each element, in any order. What is
stored for one place several times is added up. All else that sparse tensors do is gathering and adding rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from graphc.ops.aval import Aval
from graphc.ops.dtypes import FLOAT32, is_half
from graphc.ops.index import OUT_OF_RANGE
from graphc.ops.references import everywhere
from graphc.ops.rounding import Rounding
from graphc.ops.rules import torch_name
from graphc.ops.samples import Ints, Sample
from graphc.ops.spec import Op, Rule, Trait, bounded, op


def _rule(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    rows, columns, values, dense = avals
    if any(x.dtype.kind not in "iu" for x in (rows, columns)):
        raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
    if values.ndim != 1 or not rows.shape == columns.shape == values.shape or dense.ndim != 2:
        raise RuntimeError(
            "sparse_mm(): expected vectors of one length and a matrix, but got "
            f"{', '.join(str(list(x.shape)) for x in avals)}"
        )
    if values.dtype.kind == "b":
        raise NotImplementedError("\"addmm_sparse_dense\" not implemented for 'Bool'")
    if values.dtype != dense.dtype:
        raise RuntimeError(f"expected {torch_name(values.dtype)} but found {torch_name(dense.dtype)}")
    return Aval((params["size"], dense.shape[1]), values.dtype)


def _np_sparse_mm(rows, columns, values, dense, size):
    from scipy.sparse import coo_array, csr_array  # here: it takes longer to import than all of this package

    dtype = values.dtype
    if dtype.kind == "V" or dtype.itemsize == 2:  # SciPy has no 16-bit floats
        values, dense = values.astype(FLOAT32), dense.astype(FLOAT32)
    shape = size, len(dense)
    if (rows[1:] >= rows[:-1]).all():
        starts = np.searchsorted(rows, np.arange(size + 1))
        matrix = csr_array((values, columns, starts), shape=shape)
    else:
        matrix = coo_array((values, (rows, columns)), shape=shape).tocsr()
    product = matrix @ (dense if dense.flags.c_contiguous else np.ascontiguousarray(dense))
    return product.astype(dtype, copy=False)


def added_rows(xp: Any, rows: Any, columns: Any, values: Any, dense: Any, size: int) -> Any:
    """The product, by adding rows of the dense matrix up; those of 16 bits in float32."""
    wide = FLOAT32 if is_half(dense.dtype) else dense.dtype
    terms = values[:, None].astype(wide) * dense[columns].astype(wide)
    return xp.zeros((size, dense.shape[1]), wide).at[rows].add(terms).astype(dense.dtype)


@everywhere
def _reference(rows, columns, values, dense, size):
    result = np.zeros((size, dense.shape[1]), dense.dtype)
    for i, j, value in zip(rows, columns, values, strict=True):
        result[i] += value * dense[j]
    return result


def _values_vjp(F, g, rows, columns, dense):
    return F.sum(F.index(g, rows, spec=(0,)) * F.index(dense, columns, spec=(0,)), axis=(1,), keepdims=False)


sparse_mm = op(
    "sparse_mm", "rows columns values dense", params={"size": 0},
    numpy=_np_sparse_mm, impl=added_rows, rule=Rule(_rule), ref=_reference,
    traits=Trait.HOLOMORPHIC | Trait.CONTRACTS, dims="e, e, e, . k -> . k",
    flops=lambda avals, result, params: 2 * avals[2].size * result.shape[1],
    rounding=Rounding(length=lambda avals, result, params: 1 + avals[2].size),
    lone_term=lambda avals, result, params, is_zero: avals[2].size == 1,
    check=bounded(lambda rows, columns, values, dense, size: [(rows, 0, size), (columns, 0, dense.shape[0])],
                  IndexError, OUT_OF_RANGE),
    samples=(Sample(Ints((5,), 3), Ints((5,), 4), (5,), (4, 2), size=3),
             Sample(Ints((1,), 3), Ints((1,), 4), (1,), (4, 1), size=3),
             Sample(Ints((0,), 3), Ints((0,), 4), (0,), (4, 2), size=3)),
    vjp=dict(values=_values_vjp,
             dense=lambda F, g, rows, columns, values, dense_shape: F.sparse_mm(
                 columns, rows, values, g, size=dense_shape[0])),
)  # fmt: skip
