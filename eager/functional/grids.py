"""Grids and combinations: `meshgrid`, products, indices of triangles, and matrices made of powers or blocks."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from eager.core import dtypes, operands
from eager.core.tensor import Tensor
from eager.core.warned import warn
from eager.engine.conversion import cast_to, converted
from eager.engine.node_names import whole
from eager.functional.arguments import shape_of
from eager.functional.creation import delivered, dtype_or, empty, ones_like, zeros
from eager.functional.joining import cat, flip, stack
from eager.functional.naming import called
from eager.functional.shapes import expand, reshape
from eager.functional.slices import index_select
from graphc.ops.dtypes import INT64, promote_types
from graphc.ops.rules import accumulation_dtype

GRID_SHAPE = "torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {}"
INDEXING = (
    "torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument. (Triggered internally)"
)


def _listed(tensors: Any) -> list[Tensor]:
    return list(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else list(tensors)


def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """The coordinates of the grid that 1-d tensors span, one tensor a dim. As `torch.meshgrid`.

    `indexing` "ij": dims in the order of the tensors; "xy": the first two swapped. RuntimeError for tensors of several
    dims or of different dtypes.
    """
    axes = _listed(tensors)
    if not axes:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    if indexing is None:
        warn(INDEXING)
    elif indexing not in ("ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    if any(operands.kind_of(t) != axes[0]._dtype() for t in axes):
        raise RuntimeError("meshgrid expects all tensors to have the same dtype")
    for t in axes:
        if len(t._d.shape) > 1:
            raise RuntimeError(GRID_SHAPE.format(t))
    swapped = indexing == "xy" and len(axes) > 1
    if swapped:
        axes[:2] = axes[1::-1]
    shape = tuple(t._d.shape[0] if t._d.shape else 1 for t in axes)
    grids = []
    for i, t in enumerate(axes):
        line = reshape(t, tuple(shape[i] if i == k else 1 for k in range(len(shape))))
        grids.append(expand(line, shape))
    if swapped:
        grids[:2] = grids[1::-1]
    return tuple(grids)


def cartesian_prod(*tensors: Any) -> Tensor:
    """All combinations of one element from each 1-d tensor, one a row. As `torch.cartesian_prod`."""
    axes = _listed(tensors)
    for t in axes:
        if len(shape_of(t, "cartesian_prod", "tensors")) != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(t._d.shape)}")
    if len(axes) == 1:
        return axes[0]
    return stack([reshape(grid, (-1,)) for grid in meshgrid(*axes, indexing="ij")], 1)


def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All combinations of `r` elements of a 1-d tensor, one a row. As `torch.combinations`."""
    shape = shape_of(input, "combinations")
    if len(shape) != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return empty(0, dtype=input.dtype)
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = np.array(list(choose(range(shape[0]), r)), np.int64).reshape(-1, r)
    return stack([index_select(input, 0, Tensor._wrap(column.copy())) for column in rows.T], 1)


def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """The matrix of the powers 0 ... N - 1 of `x`, highest first unless `increasing`. As `torch.vander`."""
    shape = shape_of(x, "vander", "x")
    if len(shape) != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    count = shape[0] if N is None else N
    x = converted(x, accumulation_dtype(x._dtype()))
    if count < 0:
        raise RuntimeError("N must be non-negative.")
    powers = list(itertools.accumulate([ones_like(x)] + [x] * (count - 1), lambda a, b: a * b))[:count]
    if not powers:
        return empty(shape[0], 0, dtype=x.dtype)
    matrix = stack(powers, 1)
    return matrix if increasing else flip(matrix, (1,))


@whole("BlockDiagBackward0")
def block_diag(*tensors: Any) -> Tensor:
    """The matrices (vectors and numbers count as rows) along the diagonal, zeros elsewhere. As `torch.block_diag`."""
    if not tensors:
        return zeros(1, 0)
    dtype = operands.kind_of(tensors[0])
    for position, t in enumerate(tensors):
        if len(shape_of(t, "block_diag", "tensors")) > 2:
            raise RuntimeError(
                "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input "
                f"{position} has {len(t._d.shape)} dimensions"
            )
        dtype = promote_types(dtype, t._dtype())
    wanted = dtypes.BY_NUMPY[dtype]
    blocks = [cast_to(reshape(t, (1, -1)) if len(t._d.shape) < 2 else t, wanted) for t in tensors]
    width = sum(b._d.shape[1] for b in blocks)
    rows, left = [], 0
    for block in blocks:
        height, own = block._d.shape
        before, after = zeros(height, left, dtype=wanted), zeros(height, width - left - own, dtype=wanted)
        rows.append(cat([before, block, after], 1))
        left += own
    return cat(rows, 0)


def _indices(name: str, where: Any) -> Any:
    @called(name, "The (2, N) indices of a triangle of a (row, col) matrix, in row-major order.", "torch")
    def function(row: int, col: int, offset: int = 0, *, dtype: Any = None, device: Any = None,
                 layout: Any = None) -> Tensor:  # fmt: skip
        for side, value in (("row", row), ("col", col)):
            if value < 0:
                raise RuntimeError(f"{side} must be non-negative, got{value}")
        places = np.array(np.nonzero(where(np.ones((row, col), bool), offset)))
        return delivered(places.astype(dtype_or(dtype, INT64, name)), name, None, layout, device, False)

    return function


tril_indices = _indices("tril_indices", np.tril)
triu_indices = _indices("triu_indices", np.triu)
