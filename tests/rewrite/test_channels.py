"""Convolutions whose channels, images or places are added up: the same numbers, from fewer products."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import eager as torch
import eager.nn.functional as F
import graphc
from graphc.passes.channels import join_channels
from graphc.rewrite.cost import node_cost

CASES: dict[str, tuple[Any, float]] = {  # a function of x, w, v; the part of the cost that is left
    "channels": (lambda x, w, v: F.conv2d(x, w, stride=2, padding=1).sum(1), 0.4),
    "mean of channels": (lambda x, w, v: F.conv2d(x, w, dilation=2).mean((1, 2), keepdim=True), 0.4),
    "images": (lambda x, w, v: F.conv2d(x, w).sum(0), 0.7),
    "spread over images": (lambda x, w, v: F.conv2d(x[:1].expand(x.shape), w), 0.7),
    "spread over channels": (lambda x, w, v: F.conv2d(x[:, :1].expand(x.shape), w), 0.6),
    "kernels that are one": (lambda x, w, v: F.conv2d(x, w[:1].expand(w.shape), padding=1), 0.6),
    "kernels added": (lambda x, w, v: F.conv2d(x, w) + F.conv2d(x, v), 0.6),
    "images subtracted": (lambda x, w, v: F.conv2d(x, w) - F.conv2d(2 * x.cos(), w), 0.7),
    "places": (lambda x, w, v: F.conv2d(x, w, padding=1).mean((2, 3)), 0.2),
    "far places": (
        lambda x, w, v: F.conv2d(x, w, stride=(2, 1), padding=(3, 0), dilation=(1, 2)).sum((2, 3), True),
        0.4,
    ),
    "places and a bias": (lambda x, w, v: F.conv2d(x, w, v[:, 0, 0, 0]).mean((0, 2, 3)), 0.25),
    "places of a line": (lambda x, w, v: F.conv1d(x[..., 0], w[..., 0]).sum((-1, 1)), 0.8),
    "transposed": (lambda x, w, v: F.conv_transpose2d(x, w.transpose(0, 1)[:4]).sum(1), 0.7),
}


def given() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape) for shape in ((2, 4, 9, 8), (8, 4, 3, 3), (8, 4, 3, 3))]


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_numbers_stay_and_products_go(name: str, gradient: bool):
    of, left = CASES[name]
    arrays = given()
    function = torch.func.grad(lambda *xs: (of(*xs) ** 2).sum(), (0, 1, 2)) if gradient else of
    graph = graphc.trace(function, *map(torch.from_numpy, arrays))
    fewer = join_channels(graph)
    fewer.check()
    wanted, found = graph.evaluate(*arrays), fewer.evaluate(*arrays)
    for a, b in zip(graph.outputs, fewer.outputs, strict=True):
        assert wanted[a].shape == found[b].shape
        np.testing.assert_allclose(found[b], wanted[a], rtol=1e-9, atol=1e-9)
    if not gradient:
        before, after = [sum(node_cost(n, g.nodes) for n in g.nodes.values()) for g in (graph, fewer)]
        assert after < left * before


@pytest.mark.parametrize("of", [
    lambda x, w, v: (y := F.conv2d(x, w)).sum(1) * y[0, 0, 0, 0],  # all of it is read
    lambda x, w, v: F.conv2d(x, w[:, :2], groups=2).sum(1),
    lambda x, w, v: F.conv2d(x, w).sum(2),
    lambda x, w, v: F.conv2d(x, w) + F.conv2d(x, v, padding=1)[:, :, 1:-1, 1:-1],
])  # fmt: skip
def test_other_convolutions_are_left_as_they_are(of: Any):
    graph = graphc.trace(of, *map(torch.from_numpy, given()))
    assert join_channels(graph) is graph
