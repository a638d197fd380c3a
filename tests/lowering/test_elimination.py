"""What stands for devices whose elimination loses nan: finite matrices are left alone, others have no numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import eager as torch
import graphc
from graphc.lowering.elimination import nan_kept

PROGRAMS: dict[str, Callable[..., Any]] = {
    "solve": lambda a: torch.linalg.solve(a, a[..., :1]),
    "vector": lambda a: torch.linalg.solve(a, a[..., 0]),
    "inv": torch.linalg.inv,
    "det": torch.linalg.det,
    "slogdet": lambda a: tuple(torch.linalg.slogdet(a)),
    "lu": lambda a: torch.linalg.lu_factor(a)[0],
    "in a loop": lambda a: graphc.scan(lambda c, x: (c + torch.linalg.det(x), c), torch.zeros((), dtype=a.dtype), a)[0],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_only_matrices_with_nan_are_lost(name: str, rng: np.random.Generator):
    x = rng.normal(size=(3, 4, 4))
    graph = graphc.trace(PROGRAMS[name], torch.from_numpy(x))
    kept = nan_kept(graph).check()
    for found, expected in zip(jax.tree.leaves(kept(x)), jax.tree.leaves(graph(x)), strict=True):
        np.testing.assert_array_equal(found, expected)
    x[1, 2, 3] = np.nan
    for found, expected in zip(jax.tree.leaves(kept(x)), jax.tree.leaves(graph(x)), strict=True):
        if found.ndim:
            np.testing.assert_array_equal(found[::2], expected[::2])
        assert np.isnan(found[1] if found.ndim else found).all()


def test_other_graphs_stay_the_same():
    graph = graphc.trace(lambda a: (a @ a).sum(), torch.ones(2, 2))
    assert nan_kept(graph) is graph
