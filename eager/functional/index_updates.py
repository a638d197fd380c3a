"""`index_put_` and `index_fill_`, which may also be given a tensor whose elements share places in memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from eager.core.state import note_write
from eager.core.tensor import Tensor, check_in_place, repeats
from eager.core.warned import warn
from eager.engine.inplace import assign, before
from eager.engine.language import E
from eager.engine.overlap import check_apart
from eager.functional.gathering import index_put
from eager.functional.slices import index_fill
from eager.functional.updates import masked_fill_, unrecorded
from graphc.ops.dtypes import BOOL

EXPANDED = (
    "Use of {}_ on expanded tensors is deprecated. Please clone() the tensor before performing this operation. This "
    "also applies to advanced indexing e.g. tensor[{}"
)


def index_put_(self: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    """Write `values` to (or add them to) self[indices]. As `torch.Tensor.index_put_`."""
    check_in_place(self)
    put = index_put(before(self, values), indices, values, accumulate)
    check_apart(self, (values, *indices))
    if not (unrecorded(self) and values._n is None and repeats(self._array())):
        return assign(self, put, "index_put")
    warn(EXPANDED.format("index_put", "indices] = tensor"))
    array, where = self._writable(repeated=True), tuple([i._array() for i in indices])
    if accumulate:
        np.add.at(array, where, values._array())
    else:
        array[where] = values._array()
    note_write(array)
    return self


def index_fill_(self: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """Set the slices along `dim` that `index` lists to `value`. As `torch.Tensor.index_fill_`."""
    check_in_place(self)
    filled = index_fill(before(self, value), dim, index, value)
    check_apart(self, (index,))
    if not (unrecorded(self) and repeats(self._array())):
        return assign(self, filled, "index_fill")
    warn(EXPANDED.format("index_fill", "mask] = scalar"))
    nowhere = E.full(shape=tuple(self._d.shape), value=False, dtype=BOOL)
    return masked_fill_(self, index_fill(nowhere, dim, index, True), value)


METHODS = {"index_put_": index_put_, "index_fill_": index_fill_}
