"""Softmax along a dim of a COO tensor: elements that are not stored count as minus infinity. As in PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np

from eager.core.sparse import Sparse, is_sparse
from eager.core.tensor import Tensor
from eager.engine.conversion import cast_to
from eager.engine.language import E
from eager.functional.arguments import axis_of
from eager.sparse.parts import added, coalesced, known, linear, made, row, taken


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
