"""What lies behind a sparse tensor: ordinary tensors, of indices and of values, that autograd and traces know.

A sparse tensor is a Tensor like any other; its history is that of its values. Operations on it are operations on its
parts (`eager.sparse.forms`), so that devices, gradients and programs are theirs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np

from graphc.ops.stand_in import StandIn

NOT_IMPLEMENTED = (
    "Could not run 'aten::{name}' with arguments from the '{backend}' backend. This operator has no form for sparse "
    "tensors: `.to_dense()` makes a strided one."
)
COMPRESSED = {f"sparse_{kind}": f"Sparse{kind.capitalize()}" for kind in ("csr", "csc", "bsr", "bsc")}
ON_CPU = "sparse tensors are on the CPU alone: `.to_dense()` makes a strided one"


class SparseOperandError(RuntimeError):
    """The array of a sparse tensor was asked for, which has none."""


def not_implemented(name: str, data: Sparse) -> NotImplementedError:
    """PyTorch's error for the operator `name`, which has no form for a tensor like this."""
    return NotImplementedError(NOT_IMPLEMENTED.format(name=name, backend=data.backend))


def _is_lone(values: Any) -> bool:
    """Whether there is one element, or none; not asked of a size that varies, nor of a place in a program's result."""
    shape = getattr(getattr(values, "_d", None), "shape", ())
    return bool(shape) and shape[0].__class__ is int and shape[0] < 2


@final
class Sparse(StandIn):
    """In place of the array of a sparse tensor.

    layout     "sparse_coo", "sparse_csr", ...
    parts      the tensors that it is made of, the values last: (indices (S, n), values (n, *D)) of COO, for S sparse
               dims; (compressed indices (*B, m + 1), plain indices (*B, n), values (*B, n, *block, *D)) of the others
    coalesced  of COO: whether the indices are known to be sorted, and to differ
    """

    __slots__ = ("coalesced", "layout", "parts", "shape")

    def __init__(self, layout: str, parts: Sequence[Any], shape: Sequence[int], coalesced: bool = False):
        self.layout = layout
        self.parts = tuple(parts)
        self.shape = tuple(shape)
        self.coalesced = coalesced or (layout == "sparse_coo" and _is_lone(self.parts[-1]))

    @property
    def numpy_dtype(self) -> np.dtype:
        return self.parts[-1]._dtype()

    @property
    def values(self) -> Any:
        return self.parts[-1]

    @property
    def sparse_dim(self) -> int:
        """The number of dims with indices, batch dims among them."""
        first = self.parts[0]._d.shape
        return first[0] if self.layout == "sparse_coo" else len(first) + 1

    @property
    def pattern(self) -> tuple[Any, ...]:
        """The indices."""
        return self.parts[:-1]

    @property
    def backend(self) -> str:
        """PyTorch's name of the part of it that knows such tensors."""
        return "SparseCPU" if self.layout == "sparse_coo" else "SparseCsrCPU"

    @property
    def kind(self) -> str:
        """PyTorch's name of the layout in messages."""
        return COMPRESSED.get(self.layout, "Sparse")

    def has_pattern_of(self, other: Any) -> bool:
        """Whether the elements of both are known to stand in the same places, in the same order."""
        return (
            other.__class__ is Sparse
            and (self.layout, self.shape) == (other.layout, other.shape)
            and all(a is b or (a._d is b._d and a._n is b._n) for a, b in zip(self.pattern, other.pattern, strict=True))
        )

    def with_values(self, values: Any, shape: Sequence[int] | None = None) -> Any:
        """A sparse tensor of the same pattern."""
        parts = *self.pattern, values
        return tensor(Sparse(self.layout, parts, self.shape if shape is None else shape, self.coalesced))

    def force(self, tensor: Any) -> np.ndarray:
        raise SparseOperandError("Cannot access data pointer of Tensor that doesn't have storage")

    def truth(self, tensor: Any) -> np.ndarray:
        if math.prod(self.shape) == 1:
            return hooks["dense"](self)
        what = "no values" if not math.prod(self.shape) else "more than one value"
        raise RuntimeError(f"Boolean value of Tensor with {what} is ambiguous")

    def number(self, tensor: Any) -> Any:
        return hooks["dense"](self).item()

    def check_values(self, tensor: Any, purpose: str, python: bool) -> None:
        if not python:
            raise not_implemented(purpose, self)
        if (n := math.prod(self.shape)) != 1:
            raise RuntimeError(f"a Tensor with {n} elements cannot be converted to Scalar")

    def strides(self, tensor: Any) -> tuple[int, ...]:
        if self.layout == "sparse_coo":
            return (0,) * len(self.shape)
        raise RuntimeError(f"Sparse {self.kind.removeprefix('Sparse').upper()} tensors do not have strides")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **kwargs: Any) -> Any:
        """For gradients, which the tape adds up as arrays: as the operation does it on tensors; else on dense ones."""
        target = out[0] if isinstance(out, tuple) and isinstance(out[0], np.ndarray) else None
        if ufunc is np.add and method == "__call__":
            return hooks["accumulated"](*inputs, out=target)
        dense = [hooks["dense"](x) if x.__class__ is Sparse else x for x in inputs]
        return getattr(ufunc, method)(*dense, out=target, **kwargs)

    def __add__(self, other: Any) -> Any:
        return hooks["accumulated"](self, other)

    __radd__ = __add__

    def __reduce__(self) -> tuple[Any, ...]:
        return Sparse, (self.layout, self.parts, self.shape, self.coalesced)


# what `eager.sparse` does for the rooms below it, from the time on when there are sparse tensors: it makes them all
hooks: dict[str, Callable[..., Any]] = {}
_tensor_type: list[Any] = []  # Tensor, whose module is above this one


def tensor(data: Sparse) -> Any:
    """The sparse tensor over `data`, with the history of its values."""
    made = _tensor_type[0]._wrap(data)
    made._n = getattr(data.values, "_n", None)  # in the structure of a program's result, the parts are places
    return made


def is_sparse(x: Any) -> bool:
    """Whether `x`, a Tensor, is sparse in whichever layout."""
    return x._d.__class__ is Sparse


def parts_of(x: Any) -> list[tuple[str, Any]] | None:
    """(name, tensor) of what a sparse tensor is made of; None of anything else."""
    data: Any = getattr(x, "_d", None)
    if data.__class__ is not Sparse:
        return None
    names = ("indices", "values") if data.layout == "sparse_coo" else ("compressed", "plain", "values")
    return list(zip(names, data.parts, strict=True))


def with_parts(x: Any, parts: Sequence[Any]) -> Any:
    """A sparse tensor like `x` made of `parts`."""
    data = x._d
    return tensor(Sparse(data.layout, parts, data.shape, data.coalesced))
