"""Factors that are the same for all that a sum adds are taken out of it, and sums that are then equal are one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import eager as torch
import graphc
from eager import nn
from graphc.ir import Graph
from graphc.passes.scaled_sums import take_out_factors
from tests.depth import one_in

F = nn.functional


def sums(graph: Graph) -> int:
    return sum(node.op.name in ("sum", "mean") for node in graph.operations())


def centred(x: Any) -> Any:
    return x - x.mean(0, keepdim=True)


# f(x of (4, 5, 6), c of (5, 1)), and how many sums are left
PROGRAMS: dict[str, tuple[Callable[[Any, Any], Any], int]] = {
    "one factor": (lambda x, c: (x * c).sum(2), 1),
    "a number": (lambda x, c: (x * 3.0 * c).mean((0, 2)), 1),
    "a sign": (lambda x, c: (-x).sum(0), 1),
    "in a product of three": (lambda x, c: ((x * c) * x.sin()).sum((0, 2)), 1),
    "two sums that are one": (lambda x, c: (x * c).sum((0, 2)) + (x * 2.0).sum((0, 2)), 1),
    "a sum and a mean that are one": (lambda x, c: (x * c).sum((0, 2), keepdim=True) + x.mean((0, 2), keepdim=True), 1),
    "two means that are one": (lambda x, c: (x * c).mean(2) - (x / 4.0 * c).mean(2) * x.mean(2), 2),
    "no more than rows": (lambda x, c: (c.expand(5, 6) * x.sum(0)).sum(1), 2),
    "an outer product": (lambda x, c: (x[:1, :1] * c).sum((1, 2)), 2),
    "a sum over what does not vary": (lambda x, c: (x[:, :, :1].expand(4, 5, 6) * c * x[:, :1]).sum((1, 2)), 1),
    "another for each row": (lambda x, c: (x * c).sum(1), 1),
    "centred": (lambda x, c: (x - x.mean((0, 2), keepdim=True)).sum((0, 2)), 1),
    "centred and scaled": (lambda x, c: ((x - x.mean(0, keepdim=True)) * c).sum((0, 2)) + x.sum(), 2),
    "centred elsewhere": (lambda x, c: (x - x.mean(1, keepdim=True)).sum(0), 2),
    "centred along a dim of fewer": (
        lambda x, c: (centred(x[0]) * torch.full((4, 5, 6), 2.0, dtype=x.dtype)).sum((0, 2)),
        2,
    ),
    "one element": (lambda x, c: (x[:1] * c).sum(0), 1),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_are_the_same_and_sums_fewer(name: str, rng: np.random.Generator) -> None:
    f, left = PROGRAMS[name]
    given = [rng.standard_normal(shape) for shape in ((4, 5, 6), (5, 1))]
    graph = graphc.trace(f, *map(torch.tensor, given))
    taken = take_out_factors(graph)
    np.testing.assert_allclose(np.asarray(taken(*given)), np.asarray(graph(*given)), rtol=1e-12, atol=1e-13)
    optimized = graphc.optimize(graph)
    np.testing.assert_allclose(np.asarray(optimized(*given)), np.asarray(graph(*given)), rtol=1e-12, atol=1e-13)
    assert sums(optimized) <= left
    assert take_out_factors(taken) is taken


def factor(x: Any, rng: np.random.Generator) -> Any:
    """Some dims of an array, perhaps centred, or a number in many places."""
    x = x[tuple(slice(0, n if rng.random() < 0.6 else 1) for n in x.shape)]
    x = x[(0,) * int(rng.integers(0, x.ndim))] if rng.random() < 0.4 else x
    kind = rng.integers(4)
    if kind == 0:
        return x - x.mean(tuple({int(k) for k in rng.integers(0, x.ndim, 2)}), keepdim=True)
    if kind == 1:
        return torch.full((3, 4, 5), 1.5, dtype=x.dtype)
    return -x if kind == 2 else x.expand(3, 4, 5)


@pytest.mark.parametrize("seed", one_in(3, range(60)))
def test_random_products(seed: int) -> None:
    def f(*arrays: Any) -> Any:
        choose = np.random.default_rng(seed)
        product = factor(arrays[0], choose) * factor(arrays[1], choose)
        products = [product, product * factor(arrays[2], choose), factor(arrays[1], choose) * 0.5 * product]
        axes = tuple({int(k) for k in choose.integers(0, product.ndim, 2)})
        return [how(p, axes) for p in products for how in (torch.sum, torch.mean)]

    given = [np.random.default_rng(k).standard_normal((3, 4, 5)) for k in range(3)]
    graph = graphc.trace(f, *map(torch.tensor, given))
    taken = graph
    for _ in range(3):  # what a factor is a product of is seen, and read by one sum alone, without what it is in
        taken = take_out_factors(taken)
    for run in (take_out_factors(graph), taken, graphc.optimize(graph)):
        for found, expected in zip(run(*given), graph(*given), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)
    assert take_out_factors(taken) is taken


def test_what_others_need_is_not_computed_again() -> None:
    def f(x: Any, c: Any) -> Any:
        y = x.sin() * x.exp() * c
        return y, y.sum(2)

    graph = graphc.trace(f, torch.randn(4, 5, 6), torch.randn(5, 1))
    assert take_out_factors(graph) is graph


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int64])
def test_what_may_be_too_large_unscaled_stays_scaled(dtype: Any) -> None:
    graph = graphc.trace(lambda x, c: (x * c).sum(1), torch.ones(3, 4, dtype=dtype), torch.ones(3, 1, dtype=dtype))
    assert take_out_factors(graph) is graph


@pytest.mark.parametrize("shape", [(32, 16), (4, 16, 5, 6)], ids=str)
def test_the_gradient_of_a_batch_norm_adds_up_three_times(shape: tuple[int, ...]) -> None:
    """For its bias, its scale and the mean: the gradient of what is normalized takes the sum for the scale."""

    def loss(x: Any, w: Any, b: Any, c: Any) -> Any:
        return (torch.relu(F.batch_norm(x, None, None, w, b, True)) * c).sum()

    x, c = torch.randn(shape), torch.randn(shape)
    graph = graphc.gradients(graphc.trace(loss, x, torch.rand(16), torch.randn(16), c), ["x", "w", "b"])
    optimized = graphc.optimize(graph)
    whole = [node for node in optimized.operations() if node.op.name in ("sum", "mean")]
    assert len([n for n in whole if optimized.nodes[n.inputs[0]].shape == shape]) <= 5  # with mean and variance
