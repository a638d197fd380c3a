"""Whether the parts of a sparse tensor fit together: tests on request, as PyTorch does them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, final

import numpy as np

from eager.core.sparse import Sparse
from eager.core.tensor import Tensor
from eager.sparse.parts import BLOCKS, BY_ROWS, block_of, known


class _State:
    enabled = False


@final
class check_sparse_tensor_invariants:
    """Test the parts of sparse tensors as they are made: a context, a decorator, or for good by `enable()`.

    As `torch.sparse.check_sparse_tensor_invariants`.
    """

    def __init__(self, enable: bool = True):
        self.state = enable
        self._before: bool | None = None

    @staticmethod
    def is_enabled() -> bool:
        """Whether the tests are made."""
        return _State.enabled

    @staticmethod
    def enable() -> None:
        """Make the tests from now on."""
        _State.enabled = True

    @staticmethod
    def disable() -> None:
        """Make the tests no longer."""
        _State.enabled = False

    def __enter__(self) -> None:
        if self._before is not None:
            raise RuntimeError("This context manager instance is already activated. Use a different context manager "
                               "instance for context nesting.")  # fmt: skip
        self._before, _State.enabled = _State.enabled, self.state

    def __exit__(self, *error: object) -> None:
        _State.enabled, self._before = bool(self._before), None

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self.state):
                return function(*args, **kwargs)

        return checked


def wanted(check: bool | None) -> bool:
    """Whether to test a tensor that is made with the argument `check_invariants`."""
    return _State.enabled if check is None else check


def check_coo(x: Tensor) -> None:
    """RuntimeError unless the indices of a COO tensor are in range."""
    data: Sparse = x._d
    where = known(data.parts[0])
    if not where.shape[1]:
        return
    for k, (low, high) in enumerate(zip(where.min(1), where.max(1), strict=True)):
        if low < 0:
            raise RuntimeError(f"found negative index {low} for dim {k}")
        if high >= data.shape[k]:
            raise RuntimeError(
                f"size is inconsistent with indices: for dim {k}, size is {data.shape[k]} but found index {high}"
            )
    if data.coalesced and (np.lexsort(where[::-1]) != np.arange(where.shape[1])).any():
        raise RuntimeError("cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor")


def check_compressed(x: Tensor) -> None:
    """RuntimeError unless the parts of a tensor in a compressed layout fit together."""
    data: Sparse = x._d
    starts, plain = (known(part) for part in data.pattern)
    by_rows = data.layout in BY_ROWS
    first, second = ("crow_indices", "col_indices") if by_rows else ("ccol_indices", "row_indices")
    batch = starts.ndim - 1
    if starts.dtype.kind != "i" or plain.dtype.kind != "i":
        raise RuntimeError(f"{first} and {second} must be an int32 or int64 type, but got: {starts.dtype}")
    if starts.dtype != plain.dtype:
        raise RuntimeError(
            f"`{first}` and `{second}` must have the same dtype, bot got {starts.dtype} and {plain.dtype}, respectively"
        )
    if len(data.shape) < 2:
        raise RuntimeError(
            f"tensor dimensionality must be sum of batch, base, and dense dimensionalities (={batch} + 2 + "
            f"{len(data.shape) - 2 - batch}) but got {len(data.shape)}"
        )
    values, rest = data.values._d.shape, data.shape[data.sparse_dim :]
    block = block_of(data) or (1, 1)
    if values != (*plain.shape, *(block if data.layout in BLOCKS else ()), *rest):
        raise RuntimeError(
            f"values must have shape {[*plain.shape, *(block if data.layout in BLOCKS else ()), *rest]}, but got "
            f"{list(values)}"
        )
    sizes = [n // b for n, b in zip(data.shape[batch : batch + 2], block, strict=True)]
    lines, across = sizes if by_rows else sizes[::-1]
    if starts.shape[-1] != lines + 1:
        raise RuntimeError(
            f"{first}.shape[-1] must be equal to the number of {'rows' if by_rows else 'columns'} + 1 (={lines + 1}), "
            f"but got {starts.shape[-1]}"
        )
    n, steps = plain.shape[-1], np.diff(starts)
    if (starts[..., 0] != 0).any():
        raise RuntimeError(f"`{first}[..., 0] == 0` is not satisfied.")
    if (starts[..., -1] != n).any():
        raise RuntimeError(f"`{first}[..., -1] == nnz` is not satisfied.")
    if ((steps < 0) | (steps > across)).any():
        other = "ncols" if by_rows else "nrows"
        raise RuntimeError(f"`0 <= {first}[..., 1:] - {first}[..., :-1] <= {other}` is not satisfied.")
    if plain.size and (plain.min() < 0 or plain.max() >= across):
        name = "col" if by_rows else "row"
        raise RuntimeError(f"`0 <= {second} < n{name}s` is not satisfied.")
    flat, ends = plain.reshape(-1, n), starts.reshape(-1, starts.shape[-1])
    for line, bounds in zip(flat, ends, strict=True):
        inside = np.ones(max(n - 1, 0), bool)
        inside[bounds[(bounds > 0) & (bounds < n)] - 1] = False
        if (np.diff(line)[inside] <= 0).any():
            raise RuntimeError(
                f"`{second}[..., {first}[..., i - 1]:{first}[..., i]] for all i = 1, ..., nrows are sorted and "
                f"distinct along the last dimension values` is not satisfied."
            )
