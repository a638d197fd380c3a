"""Quotients of products: shorter, with the same values, also where factors are 0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import eager as torch
import graphc
from graphc.ir import Graph
from graphc.passes import quotients
from graphc.passes.quotients import TREE, cancel_quotients

FACTORS: dict[str, Callable[[Any, Any], Any]] = {
    "x": lambda x, y: x,
    "y": lambda x, y: y,
    "exp(x)": lambda x, y: torch.exp(x),
    "exp(-x)": lambda x, y: torch.exp(-x),
    "sigmoid(x)": lambda x, y: torch.sigmoid(x),
    "1 + exp(x)": lambda x, y: torch.exp(x) + 1,
    "1 - exp(x)": lambda x, y: 1 - torch.exp(x),
    "1 - sigmoid(y)": lambda x, y: 1 - torch.sigmoid(y),
    "sum(exp(x))": lambda x, y: torch.exp(x).sum(),
    "x^2": lambda x, y: x * x,
    "-y": lambda x, y: -y,
    "3": lambda x, y: torch.full_like(x, 3.0),
}


def random_tree(rng: np.random.Generator, size: int) -> Callable[[Any, Any], Any]:
    if size == 1:
        return FACTORS[rng.choice(list(FACTORS))]
    split = int(rng.integers(1, size))
    a, b = random_tree(rng, split), random_tree(rng, size - split)
    kind = rng.integers(5)
    if kind < 2:
        return lambda x, y: a(x, y) * b(x, y)
    return (lambda x, y: a(x, y) / b(x, y)) if kind < 4 else (lambda x, y: -(a(x, y) / b(x, y)))


def traced(function: Callable[..., Any], *arrays: np.ndarray) -> Graph:
    graph = graphc.trace(function, *map(torch.from_numpy, arrays))
    return graphc.optimize(graph, strict=True)  # numbers in products are numbers, and what is equal is one node


@pytest.mark.parametrize("part", range(4))
def test_values_are_those_of_the_tree(part: int) -> None:
    for seed in range(75 * part, 75 * (part + 1)):
        rng = np.random.default_rng(seed)
        x, y = rng.choice([0.0, -1.5, 0.5, 2.0], (2, 6))
        graph = traced(random_tree(rng, int(rng.integers(2, 8))), x, y)
        shorter = cancel_quotients(graph)
        np.testing.assert_allclose(shorter(x, y), graph(x, y), rtol=1e-12, err_msg=f"seed {seed}")
        assert cancel_quotients(shorter) == shorter, seed


def test_many_trees_are_shortened() -> None:
    x = np.ones(6)
    found = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        rng.choice([0.0, -1.5, 0.5, 2.0], (2, 6))
        graph = traced(random_tree(rng, int(rng.integers(2, 8))), x, x)
        found += cancel_quotients(graph) != graph
    assert found > 30


def test_what_others_read_stays() -> None:
    x = np.ones(3)
    graph = traced(lambda x: (torch.exp(x), x / torch.exp(x) * torch.exp(x)), x)
    first, second = cancel_quotients(graph)(x)
    assert first.tolist() == np.exp(x).tolist() and second.tolist() == x.tolist()


def test_a_number_out_of_range_is_left_alone() -> None:
    x = np.full(3, 1e-30, np.float32)
    graph = traced(lambda x: x * 1e30 / x * 1e30 * x / x, x)
    assert np.isinf(graph(x)).all() and np.isinf(cancel_quotients(graph)(x)).all()


def test_a_denominator_does_not_vanish_by_itself() -> None:
    x = np.full(3, 1e-25, np.float32)
    graph = traced(lambda x, y: (x / y) * (x / y) / torch.exp(x) * torch.exp(x), x, x)
    assert cancel_quotients(graph)(x, x).tolist() == [1.0] * 3


def test_products_of_equal_factors_are_one() -> None:
    x = np.array([0.0, 2.0, -3.0])
    graph = traced(lambda x, y: (x * y * torch.exp(x), torch.exp(x) * y * x, -(x * y * torch.exp(x))), x, x)
    shorter = cancel_quotients(graph)
    assert shorter.outputs[0] == shorter.outputs[1] != shorter.outputs[2]
    for a, b in zip(shorter(x, x), graph(x, x), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-15)


def test_what_is_no_number_stays_none() -> None:
    x = np.array([-1.5, 0.0, 0.5, np.nan])
    graph = traced(lambda x: torch.sqrt(x) * x / torch.sqrt(x), x)
    shorter = cancel_quotients(graph)
    np.testing.assert_array_equal(np.isnan(graph(x)), [True, True, False, True])
    np.testing.assert_allclose(shorter(x), graph(x), rtol=1e-12)


@pytest.mark.parametrize("seeds", [range(k, 400, 8) for k in range(8)], ids=lambda seeds: seeds[0])
def test_a_look_at_all_trees_finds_no_more(seeds: range, monkeypatch: pytest.MonkeyPatch) -> None:
    shortened = 0
    x = np.ones(6)
    for seed in seeds:
        rng = np.random.default_rng(seed)
        trees = [random_tree(rng, int(rng.integers(2, 6))) for _ in range(3)]
        graph = traced(lambda x, y, trees=trees: tuple(tree(x, y) for tree in trees), x, x)
        found = cancel_quotients(graph)
        with monkeypatch.context() as patch:
            patch.setattr(quotients, "_worth_a_look", lambda nodes, uses: _roots(nodes, uses))
            assert found == cancel_quotients(graph), f"seed {seed}"
        shortened += found != graph
    assert shortened > 10


def _roots(nodes: Any, uses: Any) -> set[int]:
    inner = {i for node in nodes.values() if node.op in TREE for i in node.inputs if uses[i] == 1}
    return {id for id, node in nodes.items() if node.op in TREE and id not in inner}


def test_products_without_equals_are_not_multiplied_out(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = traced(lambda x, y: (x * y * y.sin(), -(x * x.sin()) * y), np.ones(3), np.ones(3))
    monkeypatch.setattr(quotients, "_factors", None)
    assert cancel_quotients(graph) is graph
