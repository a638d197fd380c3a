"""Making sparse tensors: from indices and values, and from SciPy's matrices. As in PyTorch."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from eager.core import dtypes
from eager.core.devices import CPU, check_device
from eager.core.interpreter import current_interpreter
from eager.core.layouts import layout as Layout
from eager.core.placed import is_elsewhere
from eager.core.sparse import ON_CPU, Sparse, is_sparse, tensor
from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.engine.node_names import named
from eager.functional.arguments import sizes_of
from eager.functional.buffers import NO_GRAD_DTYPE
from eager.functional.data import as_tensor
from eager.functional.parsing import no_overload
from eager.sparse import invariants
from eager.sparse.parts import BLOCKS, BY_ROWS, coo, known
from graphc.ops import dims
from graphc.ops.dtypes import INT64, default_float

COO, CSR = "SparseCooTensorWithDimsAndTensorsBackward0", "SparseCompressedTensorBackward0"


def _values(given: Any, dtype: Any, device: Any, requires_grad: bool, name: str) -> Tensor:
    """The values as a tensor of their own: of a leaf, if gradients are wanted that `given` does not have."""
    values = _on_cpu(as_tensor(given, dtype=dtype), device)
    if requires_grad:
        return values.detach().requires_grad_(_message=NO_GRAD_DTYPE)
    if values._n is None:
        return values.detach() if values is given else values
    return named(E.reshape(values, shape=tuple(values._d.shape)), name)


def _on_cpu(values: Tensor, device: Any) -> Tensor:
    if is_elsewhere(values) or (device is not None and check_device(device) is not CPU):
        raise NotImplementedError(ON_CPU)
    return values


def _indices(given: Any, wide: bool) -> Tensor:
    """Indices as a tensor; int64 if `wide`, without history."""
    found = as_tensor(given)
    kept = found._dtype() == INT64 or (not wide and found._dtype() == np.int32)
    if not kept:
        return E.cast(found, dtype=INT64)
    # of a tensor that a traced function has found, the places are known, and those of what it computes are not
    is_found = current_interpreter().capturing and found._d.__class__ is np.ndarray
    return found.detach() if found is given and not is_found else found


def sparse_coo_tensor(
    indices: Any = None, values: Any = None, size: Any = None, *, dtype: Any = None, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False, check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> Tensor:  # fmt: skip
    """A COO tensor of `values` (n, *dense) at `indices` (sparse dims, n). As `torch.sparse_coo_tensor`.

    size: the shape; by default the smallest that holds all. `sparse_coo_tensor(size)` has no elements. Values for one
    place add up. RuntimeError for numbers of dims and elements that do not fit, for a negative index if no size is
    given, and with `check_invariants` for an index out of range.
    """
    if values is None:
        shape = _extents(indices if size is None else size)
        wanted = dtypes.to_numpy(dtype) if dtype is not None else default_float()
        empty = Tensor._wrap(np.zeros(0, wanted))
        made = coo(Tensor._wrap(np.zeros((len(shape), 0), np.int64)), _on_cpu(empty, device), shape)
        return made.requires_grad_() if requires_grad else made
    where = _indices(indices, True)
    stored = _values(values, dtype, device, requires_grad, COO)
    if not stored._d.shape:
        stored = E.reshape(stored, shape=(1,))
    if len(where._d.shape) != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(where._d.shape)}")
    count, n = where._d.shape
    if size is None:
        shape = (*_smallest(where), *stored._d.shape[1:])
    else:
        shape = _extents(size)
        if len(shape) != count + len(stored._d.shape) - 1:
            raise RuntimeError(
                f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(shape)}, sparse_dim = "
                f"{count}, dense_dim = {len(stored._d.shape) - 1}"
            )
    if stored._d.shape[0] != n:
        raise RuntimeError(
            f"indices and values must have same nnz, but got nnz from indices: {n}, nnz from values: "
            f"{stored._d.shape[0]}"
        )
    if stored._d.shape[1:] != shape[count:]:
        raise RuntimeError(
            f"values has incorrect size, expected {[n, *shape[count:]]}, got {list(stored._d.shape)}"
        )  # fmt: skip
    result = coo(where, stored, shape, bool(is_coalesced))
    if invariants.wanted(check_invariants):
        invariants.check_coo(result)
    return result


def _extents(size: Any) -> tuple[int, ...]:
    shape = sizes_of((size,))
    if dims.negative(shape):
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(shape)}: {list(shape)}")
    return shape


def _smallest(where: Tensor) -> tuple[int, ...]:
    """The smallest extents that hold these indices."""
    found = known(where)
    if not found.shape[1]:
        return (0,) * len(found)
    low = found.min(1)
    if (low < 0).any():
        at = int(np.argmax(low < 0))
        raise RuntimeError(f"found negative index {low[at]} for dim {at}")
    return tuple(map(int, found.max(1) + 1))


def _make(
    name: str, compressed: Any, plain: Any, values: Any, size: Any, dtype: Any, device: Any, requires_grad: bool,
    check: bool | None,
) -> Tensor:  # fmt: skip
    starts, others = _indices(compressed, False), _indices(plain, False)
    stored = _values(values, dtype, device, requires_grad, CSR)
    shape = tuple(size) if size is not None else _compressed_size(name, starts, others, stored)
    result = tensor(Sparse(name, (starts, others, stored), shape))
    if invariants.wanted(check):
        invariants.check_compressed(result)
    return result


def _compressed_size(name: str, starts: Tensor, others: Tensor, stored: Tensor) -> tuple[int, ...]:
    batch = len(starts._d.shape) - 1
    block = stored._d.shape[batch + 1 : batch + 3] if name in BLOCKS else (1, 1)
    found = known(others)
    lines = starts._d.shape[-1] - 1, int(found.max()) + 1 if found.size else 0
    rows, columns = lines if name in BY_ROWS else lines[::-1]
    rest = stored._d.shape[batch + 1 + 2 * (name in BLOCKS) :]
    return (*starts._d.shape[:-1], rows * block[0], columns * block[1], *rest)


def _maker(name: str, first: str, second: str, what: str) -> Callable[..., Tensor]:
    def function(
        compressed: Any, plain: Any, values: Any, size: Any = None, *, dtype: Any = None, device: Any = None,
        pin_memory: bool = False, requires_grad: bool = False, check_invariants: bool | None = None,
    ) -> Tensor:  # fmt: skip
        return _make(name, compressed, plain, values, size, dtype, device, requires_grad, check_invariants)

    def public(*args: Any, **kwargs: Any) -> Tensor:
        if len(args) + len(kwargs) < 3:
            raise no_overload(f"{name}_tensor", args)
        renamed = {{first: "compressed", second: "plain"}.get(key, key): value for key, value in kwargs.items()}
        return function(*args, **renamed)

    names, plan = {"compressed": first, "plain": second}, inspect.signature(function)
    parameters = [p.replace(name=names.get(p.name, p.name)) for p in plan.parameters.values()]
    public.__signature__ = plan.replace(parameters=parameters)  # type: ignore[attr-defined]
    public.__name__ = public.__qualname__ = f"{name}_tensor"
    public.__doc__ = (
        f"A tensor in {what}, of `{first}` (*B, m + 1), `{second}` (*B, n) and `values` (*B, n, *block, *dense). As "
        f"`torch.{name}_tensor`. With `check_invariants`, RuntimeError unless these fit together."
    )
    return public


sparse_csr_tensor = _maker("sparse_csr", "crow_indices", "col_indices", "CSR")
sparse_csc_tensor = _maker("sparse_csc", "ccol_indices", "row_indices", "CSC")
sparse_bsr_tensor = _maker("sparse_bsr", "crow_indices", "col_indices", "CSR of dense blocks")
sparse_bsc_tensor = _maker("sparse_bsc", "ccol_indices", "row_indices", "CSC of dense blocks")


def sparse_compressed_tensor(
    compressed_indices: Any, plain_indices: Any, values: Any, size: Any = None, *, dtype: Any = None,
    layout: Any = None, device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Tensor:  # fmt: skip
    """A tensor in the compressed `layout`, which has to be given. As `torch.sparse_compressed_tensor`."""
    if layout is None or layout.name not in ("sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"):
        raise RuntimeError("sparse_compressed_tensor expected sparse compressed tensor layout but got "
                           f"{'strided' if layout is None else layout.name}")  # fmt: skip
    return _make(
        layout.name, compressed_indices, plain_indices, values, size, dtype, device, requires_grad, check_invariants
    )


def of_parts(layout: str, parts: Sequence[Tensor], shape: Sequence[int], coalesced: bool) -> Tensor:
    """The sparse tensor made of `parts`, as a file has them. ValueError unless they fit together."""
    *pattern, values = parts
    ndim, inner = len(pattern[-1]._d.shape), 2 * (layout in BLOCKS)
    fits = all(part._dtype().kind == "i" for part in pattern) and min(shape, default=0) >= 0
    if layout == "sparse_coo":
        count, n = pattern[0]._d.shape if ndim == 2 else (-1, -1)
        fits = fits and values._d.shape == (n, *shape[count:]) and len(shape) >= count
    else:
        batch = pattern[0]._d.shape[:-1]
        fits = fits and pattern[1]._d.shape[:-1] == batch == tuple(shape[: len(batch)]) and len(shape) >= len(batch) + 2
        fits = fits and values._d.shape[:ndim] == pattern[1]._d.shape and len(values._d.shape) >= ndim + inner
    if not fits:
        raise ValueError(f"indices and values that do not make a {layout} tensor of size {tuple(shape)}")
    return tensor(Sparse(layout, parts, shape, coalesced))


def zeros(shape: tuple[int, ...], dtype: np.dtype, layout: Layout, dense: int = 0) -> Tensor:
    """A sparse tensor without elements, the last `dense` dims of which have no indices."""
    count = len(shape) - dense
    if layout.name == "sparse_coo":
        values = Tensor._wrap(np.zeros((0, *shape[count:]), dtype))
        return coo(Tensor._wrap(np.zeros((count, 0), np.int64)), values, shape, not dense)
    if count < 2 or layout.name in BLOCKS:
        raise RuntimeError(f"torch.empty: Only batched sparse compressed (non-block) tensors are supported, but got "
                           f"size {list(shape)}")  # fmt: skip
    batch, lines = shape[: count - 2], shape[count - (2 if layout.name in BY_ROWS else 1)]
    starts = Tensor._wrap(np.zeros((*batch, lines + 1), np.int64))
    plain = Tensor._wrap(np.zeros((*batch, 0), np.int64))
    values = Tensor._wrap(np.zeros((*batch, 0, *shape[count:]), dtype))
    return tensor(Sparse(layout.name, (starts, plain, values), shape))


def from_scipy(matrix: Any) -> Tensor:
    """A SciPy sparse matrix or array as a tensor: CSR, CSC and BSR in that layout, any other in COO. Copies nothing.

    An array of `scipy.sparse` has no name for this in PyTorch, where one writes out the parts.
    """
    kind = matrix.format
    if kind in ("csr", "csc", "bsr"):
        parts = (Tensor._wrap(np.asarray(part)) for part in (matrix.indptr, matrix.indices, matrix.data))
        return tensor(Sparse(f"sparse_{kind}", tuple(parts), matrix.shape))
    matrix = matrix.tocoo()
    where = np.stack([np.asarray(c, np.int64) for c in matrix.coords])
    return coo(Tensor._wrap(where), Tensor._wrap(np.asarray(matrix.data)), matrix.shape)


def to_scipy(x: Tensor) -> Any:
    """A sparse matrix as an array of `scipy.sparse` of its layout, in its memory. TypeError for BSC and batches."""
    import scipy.sparse

    if not is_sparse(x):
        raise TypeError("to_scipy(): expected a sparse tensor")
    if x._n is not None:
        raise RuntimeError("Can't call to_scipy() on Tensor that requires grad. Use tensor.detach() first.")
    data: Sparse = x._d
    arrays = [part._array() for part in data.parts]
    if data.layout == "sparse_coo":
        return scipy.sparse.coo_array((arrays[1], tuple(arrays[0])), shape=data.shape)
    if data.layout == "sparse_bsc" or math.prod(data.parts[0]._d.shape[:-1]) != 1:
        raise TypeError(f"to_scipy(): SciPy has no {data.layout} of {len(data.shape)} dims")
    kind = getattr(scipy.sparse, f"{data.layout.removeprefix('sparse_')}_array")
    matrix = kind((arrays[2], arrays[1], arrays[0]), shape=data.shape)
    matrix.check_format()  # SciPy's products look at no index, and read and write wherever it says
    return matrix
