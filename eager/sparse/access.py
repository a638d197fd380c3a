"""What a sparse tensor is made of: `indices`, `values`, `crow_indices`, ... As methods of PyTorch's tensors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from eager.core.sparse import Sparse, is_sparse
from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.engine.node_names import named
from eager.sparse import parts

UNCOALESCED = "Cannot get {} on an uncoalesced tensor, please call .coalesce() first"
LAYOUTS = ("sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc")


def kind_of(x: Tensor) -> str:
    """PyTorch's name of the layout in messages."""
    return x._d.kind if is_sparse(x) else "Strided"


def _checked(x: Tensor, name: str, what: str, of: tuple[str, ...]) -> Sparse:
    """What lies behind `x`. RuntimeError unless its layout is one `of` these."""
    if not is_sparse(x) or x._d.layout not in of:
        raise RuntimeError(f"{name} expected {what} tensor layout but got {kind_of(x)}")
    return x._d


def _coo(x: Tensor, name: str) -> Sparse:
    return _checked(x, name, "sparse coordinate", ("sparse_coo",))


def _view(x: Tensor, name: str) -> Tensor:
    """`x`, in the same memory: another tensor, as it is a leaf of the sparse one, perhaps."""
    if x._n is None:
        return x.detach()
    return named(E.reshape(x, shape=tuple(x._d.shape)), name)


def indices(self: Tensor) -> Tensor:
    """The indices (sparse dims, n) of a coalesced COO tensor. As `torch.Tensor.indices`. RuntimeError otherwise."""
    data = _coo(self, "indices")
    if not data.coalesced:
        raise RuntimeError(UNCOALESCED.format("indices"))
    return data.parts[0]


def values(self: Tensor) -> Tensor:
    """The values that are stored: a view, through which gradients flow. As `torch.Tensor.values`.

    RuntimeError for a tensor that is not sparse, and for a COO tensor that is not coalesced.
    """
    data = _checked(self, "values", "sparse", LAYOUTS)
    if data.layout == "sparse_coo" and not data.coalesced:
        raise RuntimeError(UNCOALESCED.format("values"))
    return _view(data.values, "ValuesBackward0")


def _indices(self: Tensor) -> Tensor:
    """The indices of a COO tensor, coalesced or not."""
    return _parts(self, "_indices")[0]


def _values(self: Tensor) -> Tensor:
    """The values of a COO tensor, coalesced or not, without history."""
    return _parts(self, "_values")[1].detach()


def _parts(x: Tensor, name: str) -> tuple[Any, ...]:
    if not is_sparse(x) or x._d.layout != "sparse_coo":
        backend = x._d.backend if is_sparse(x) else "CPU"
        raise NotImplementedError(f"Could not run 'aten::{name}' with arguments from the '{backend}' backend.")
    return x._d.parts


def nnz(self: Tensor) -> int:
    """How many elements, of a layout of blocks how many blocks, are stored (in each batch). As `Tensor._nnz`."""
    if not is_sparse(self):
        raise NotImplementedError("Could not run 'aten::_nnz' with arguments from the 'CPU' backend.")
    return self._d.parts[-2]._d.shape[-1]


def _index(name: str, number: int, what: str, of: tuple[str, ...], doc: str) -> Callable[[Tensor], Tensor]:
    def method(self: Tensor) -> Tensor:
        return _checked(self, name, what, of).parts[number]

    method.__name__, method.__doc__ = name, f"{doc} As `torch.Tensor.{name}`."
    return method


_ROWS, _COLUMNS = ("sparse_csr", "sparse_bsr"), ("sparse_csc", "sparse_bsc")
METHODS: dict[str, Callable[..., Any]] = {
    name: _index(name, number, f"sparse {major} compressed", of, doc)
    for name, number, major, of, doc in (
        ("crow_indices", 0, "row", _ROWS, "Where each row begins, and the end of the last (*B, m + 1)."),
        ("col_indices", 1, "row", _ROWS, "The column of each element (*B, n)."),
        ("ccol_indices", 0, "column", _COLUMNS, "Where each column begins, and the end of the last (*B, m + 1)."),
        ("row_indices", 1, "column", _COLUMNS, "The row of each element (*B, n)."),
    )
}  # fmt: skip


def is_coalesced(self: Tensor) -> bool:
    """Whether the indices of a COO tensor are known to be sorted, and to differ. As `torch.Tensor.is_coalesced`."""
    return _coo(self, "is_coalesced").coalesced


def coalesce(self: Tensor) -> Tensor:
    """`self`, of COO, with sorted indices and the sum of all values for one place. As `torch.Tensor.coalesce`."""
    if _coo(self, "coalesce").coalesced:
        return self
    return parts.coalesced(self)


def _coalesced_(self: Tensor, coalesced: bool) -> Tensor:
    """Say that the indices are, or are not, sorted and different, which is not tested."""
    data = _coo(self, "_coalesced_")
    self._d = Sparse(data.layout, data.parts, data.shape, coalesced)
    return self


METHODS["_coalesced_"] = _coalesced_


def sparse_dim(self: Tensor) -> int:
    """The number of dims that have indices; 0 of a strided tensor. As `torch.Tensor.sparse_dim`."""
    if not is_sparse(self):
        return 0
    return self._d.sparse_dim if self._d.layout == "sparse_coo" else 2


def dense_dim(self: Tensor) -> int:
    """The number of dims that are stored whole; all of a strided tensor. As `torch.Tensor.dense_dim`."""
    return len(self._d.shape) - (self._d.sparse_dim if is_sparse(self) else 0)


def nbytes(self: Tensor) -> int:
    """Bytes in all elements. As `torch.Tensor.nbytes`. RuntimeError for a sparse tensor."""
    if is_sparse(self):
        raise RuntimeError(
            "nbytes is not defined for sparse tensors.  If you want the size of the constituent tensors, add the "
            "nbytes of the indices and values.  If you want the size of the  equivalent dense tensor, multiply numel() "
            "by element_size()"
        )
    return math.prod(self._d.shape) * self._dtype().itemsize
