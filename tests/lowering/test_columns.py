"""Sums of arrays of few columns, column by column: the same values, of arrays without that axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import eager as torch
import graphc
from graphc.ir.check import check
from graphc.lowering import columns

N = 7


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a few rows were many."""
    monkeypatch.setattr(columns, "ROWS", 6)


def points(k: int = 3, seed: int = 0, n: int = N) -> torch.Tensor:
    """Far from the origin, of many sizes."""
    rng = np.random.default_rng(seed)
    return torch.tensor(30 + rng.standard_normal((n, k)) * np.exp(rng.standard_normal((n, 1))))


def apart(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x[:, None] - y[None]


def forces(x: torch.Tensor, m: torch.Tensor) -> torch.Tensor:
    d = apart(x, x)
    return ((d / ((d * d).sum(-1, keepdim=True) + 0.1) ** 1.5) * m[None, :, None]).sum(1)


PARTED: dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...]]] = {
    "squared distances": (lambda x, y: (apart(x, y) ** 2).sum(-1), (points(), points(seed=1))),
    "a row that all have": (lambda x, c: (apart(x, x) * c).sum(-1), (points(), points(n=1)[0])),
    "kept dims": (lambda x: apart(x, x).abs().sum(-1, keepdim=True), (points(),)),
    "all of it": (lambda x: torch.exp(-apart(x, x).abs()).sum(), (points(),)),
    "forces": (forces, (points(), points()[:, 0])),
    "of each point": (lambda x, w: torch.einsum("ij,ijk->ik", w, torch.sign(apart(x, x))), (points(), points(N))),
    "weights of each column": (
        lambda x, w: torch.einsum("ijk,j->ik", apart(x, x).cos(), w),
        (points(), points()[:, 0]),
    ),
    "complex": (lambda x: (apart(x, x) * (1 + 2j)).sum(-1), (points(),)),
    "of what others read": (
        lambda x: (lambda e: e / e.sum(-1, keepdim=True))(torch.exp(apart(x, x) / 30)),
        (points(),),
    ),
    "rows of an input": (lambda x: x.sum(1), (points(),)),
}
WHOLE: dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...]]] = {
    "many columns": (lambda x: (apart(x, x) ** 2).sum(-1), (points(17),)),
    "many columns of an input": (lambda x: x.sum(1), (points(9),)),
    "few rows": (lambda x: (x * 2).sum(-1), (points(n=5),)),
    "columns of an input": (lambda x: x.sum(0), (points(),)),
    "whole numbers": (lambda x: x.sum(1), (torch.ones(N, 3, dtype=torch.int64),)),
}


@pytest.mark.parametrize("name", [*PARTED, *WHOLE])
def test_sums_by_columns(name: str) -> None:
    """No array has the axis any more that is added up, but for inputs and what others read; the values are the same."""
    f, given = {**PARTED, **WHOLE}[name]
    graph = graphc.trace(f, *given)
    found = columns.by_columns(graph)
    check(found)
    assert (found is graph) == (name in WHOLE)
    if name not in ("of what others read", *WHOLE):
        assert max(node.size for node in found.nodes.values()) <= max(N * N, *[x.numel() for x in given])
    arrays = [t.numpy() for t in given]
    np.testing.assert_allclose(found.evaluate(*arrays)[found.outputs[0]], f(*given).numpy(), rtol=1e-13, atol=1e-13)
