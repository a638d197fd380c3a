"""The first elements of long rows, which XLA looks for in few blocks: the same places as in the whole order."""

from __future__ import annotations

import numpy as np
import pytest

import eager as torch
import graphc

N, COUNT = 3001, 5  # no multiple of a block
rng = np.random.default_rng(0)
FLOATS = np.stack([
    rng.standard_normal(N),
    rng.integers(0, 3, N),  # many are equal
    np.full(N, -np.inf),
    np.where(rng.random(N) < 0.002, np.nan, np.copysign(0, rng.standard_normal(N))),
], axis=1).astype(np.float32)  # fmt: skip
INTEGERS = np.stack([
    np.where(rng.random(N) < 0.001, 5, np.iinfo(np.int32).min),
    np.where(rng.random(N) < 0.001, -5, np.iinfo(np.int32).max),
], axis=1).astype(np.int32)  # fmt: skip


@pytest.mark.parametrize("descending", [True, pytest.param(False, marks=pytest.mark.deep)])
@pytest.mark.parametrize("rows", [FLOATS, pytest.param(INTEGERS, marks=pytest.mark.deep)], ids=["floats", "integers"])
def test_places_of_the_first(rows: np.ndarray, descending: bool):
    def first(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple([r[:COUNT] for r in torch.sort(x, dim=0, descending=descending, stable=True)])

    x = torch.from_numpy(rows)
    graph = graphc.optimize(graphc.trace(first, x))
    assert f"first={COUNT}" in str(graph)
    for found, expected in zip(graphc.lower(graph)(x), first(x), strict=True):
        np.testing.assert_array_equal(np.asarray(found), expected.numpy())
