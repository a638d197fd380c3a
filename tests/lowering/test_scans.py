"""Long scans go by blocks on the CPU, from either end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import eager as torch
import graphc
from graphc.lowering import scans

ROWS, COLUMNS = 2 * scans.SHORT + 3, max(scans.WIDE, scans.LONG // scans.SHORT)


@pytest.mark.parametrize("axis", [0, 1])
def test_both_ends(axis: int) -> None:
    x = np.random.default_rng(0).normal(size=(ROWS, COLUMNS) if axis == 0 else (2, ROWS, COLUMNS))
    w = np.random.default_rng(1).normal(size=x.shape)

    def weighted(x: Any, w: Any) -> Any:
        return (x.cumsum(axis) * w).sum()

    graph = graphc.gradients(graphc.trace(weighted, torch.tensor(x), torch.tensor(w)), ["x"])
    found = np.asarray(graphc.lower(graph)(x, w)["x"])
    np.testing.assert_allclose(found, np.flip(np.flip(w, axis).cumsum(axis), axis), rtol=1e-9)
