"""Products of sparse matrices in programs: SciPy's where they are large."""

from __future__ import annotations

import numpy as np
import pytest

import eager as torch
import graphc
from eager.engine.language import E
from graphc.lowering.sparse import FEW

COUNT, ROWS, COLUMNS = FEW // 2, 300, 200


def given(rng: np.random.Generator, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Places with repetitions, in no order; values and a matrix with three columns."""
    indices = torch.tensor(np.stack([rng.integers(0, ROWS, COUNT), rng.integers(0, COLUMNS, COUNT)]))
    values = torch.tensor(rng.standard_normal(COUNT)).to(dtype)
    return indices, values, torch.tensor(rng.standard_normal((COLUMNS, 3))).to(dtype)


def product(indices: torch.Tensor, values: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return torch.sparse_coo_tensor(indices, values, (ROWS, COLUMNS)) @ x


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64, torch.bfloat16], ids=str)
def test_values_and_gradients_are_those_of_the_dense_product(dtype: torch.dtype, rng: np.random.Generator):
    indices, values, x = given(rng, dtype)
    found, wanted = [], []
    for f, outcome in ((graphc.compile(product), found), (product, wanted)):
        v, y = values.clone().requires_grad_(), x.clone().requires_grad_()
        result = f(indices, v, y)
        (result.abs() if dtype.is_complex else result).sum().backward()
        outcome += [result.detach(), v.grad, y.grad]
    for a, b in zip(found, wanted, strict=True):
        torch.testing.assert_close(a, b)
    wide = torch.complex128 if dtype.is_complex else torch.float64
    dense = torch.zeros(ROWS, COLUMNS, dtype=wide).index_put((indices[0], indices[1]), values.to(wide), accumulate=True)
    bound = 0.2 if dtype is torch.bfloat16 else 1e-4
    torch.testing.assert_close(found[0].to(wide), dense @ x.to(wide), atol=bound, rtol=bound)


@pytest.mark.parametrize("row", [-1, ROWS])
def test_a_place_outside_is_an_error_and_nothing_is_read_there(row: int, rng: np.random.Generator):
    indices, values, x = given(rng, torch.float32)
    rows = indices[0].clone()
    rows[COUNT // 2] = row
    f = graphc.compile(lambda rows, columns, values, x: E.sparse_mm(rows, columns, values, x, size=ROWS))
    with pytest.raises(IndexError):
        f(rows, indices[1], values, x)
