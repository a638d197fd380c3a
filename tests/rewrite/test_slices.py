"""What is done to slices in the same way is done at once: what counts as the same, and what is left to loops."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import eager as torch
import eager.nn.functional as F
import graphc
from eager import nn
from graphc.ir import Graph
from graphc.ir.check import check
from graphc.passes.cse import eliminate_common_subexpressions
from graphc.passes.slices import batch_slices
from tests.normal.searches import agree

D = torch.float64
GIVEN = {
    "A": torch.randn(5, 5, dtype=D), "X": torch.randn(8, 5, dtype=D), "Y": torch.randn(8, 5, dtype=D),
    "W": torch.randn(5, 24, dtype=D), "T": torch.randn(3, 8, 5, dtype=D),
}  # fmt: skip

# each makes this many products at most of what were eight, or six; parameters have the names of GIVEN
ALIKE: dict[str, tuple[Callable[..., Any], int]] = {
    "stacked": (lambda A, X: torch.stack([A @ x for x in X]), 1),
    "added up": (lambda A, X: sum(torch.tanh(A @ x) for x in X), 1),
    "added up, with another term": (lambda A, X: sum(A @ x for x in X) + A[0], 1),
    "added up twice": (lambda A, X: sum(A @ x for x in X) * sum((A @ x).exp() for x in X), 1),
    "two arrays": (lambda X, Y: sum(X[k] @ Y[k] for k in range(8)), 1),
    "two arrays, apart": (lambda X, Y: sum(X[k] @ Y[k + 2] for k in range(6)), 1),
    "every other": (lambda A, X: torch.stack([A @ X[k] for k in range(0, 8, 2)]), 1),
    "every other, with the next": (lambda X: sum(X[k].tanh() * X[k + 1].sum() for k in range(0, 8, 2)), 0),
    "the last six": (lambda A, X: torch.stack([A @ X[k] for k in range(2, 8)]), 1),
    "columns": (lambda A, W: torch.stack([A @ W[:, k] for k in range(24)], 1), 1),
    "blocks of columns": (lambda A, W: torch.cat([(A @ w).sin() for w in W.chunk(6, 1)], 1), 1),
    "a dim in the middle": (lambda A, T: torch.stack([T[:, k] @ A for k in range(8)]), 1),
    "pieces laid apart": (lambda A, X: sum(F.pad((A @ X[k])[:1], (3 * k, 23 - 3 * k)) for k in range(8)), 1),
    "layers with a bias": (lambda A, X: sum(torch.tanh(F.linear(x, A, A[0])) for x in X.chunk(4)), 1),
    "classes": (
        lambda A, X, Y: sum(F.cross_entropy(x @ A, t) for x, t in zip(X.chunk(4), Y.argmax(1).chunk(4), strict=True)),
        1,
    ),
    "neighbours": (lambda A, X: sum((A @ (X[k + 1] - X[k])).abs() for k in range(7)), 1),
}
# as they are: recurrences, too few, not alike
OTHERS: dict[str, Callable[..., Any]] = {
    "a recurrence": lambda A, X: _steps(A, X),
    "three": lambda A, X: torch.stack([A @ X[k] for k in range(3)]),
    "different functions": lambda A, X: torch.stack([(A * float(k)) @ X[k] for k in range(8)]),
    "windows that overlap": lambda A, X: sum(F.pad(A @ X[k], (k, 7 - k)) for k in range(8)),
    "uneven places": lambda A, X: torch.stack([A @ X[k] for k in (0, 1, 3, 7)]),
    "no product": lambda X: torch.stack([X[0], X[1]]) + X[2],
}


def _steps(A: Any, X: Any) -> Any:
    h = X[0]
    for x in X:
        h = torch.tanh(A @ x + A.T @ h)
    return h


def _traced(f: Callable[..., Any], gradient: bool) -> tuple[Graph, list[np.ndarray]]:
    given = [GIVEN[name] for name in f.__code__.co_varnames[: f.__code__.co_argcount]]
    if gradient:
        f = torch.func.grad(lambda *xs, f=f: (f(*xs) ** 2).sum(), tuple(range(len(given))))
    graph = eliminate_common_subexpressions(graphc.trace(f, *given))
    return graph, [x.numpy() for x in given]


def _products(graph: Graph) -> int:
    counts = Counter(node.op.name for node in graph.operations())
    return counts["matmul"]


@pytest.mark.parametrize("gradient", [False, True], ids=["value", "gradient"])
@pytest.mark.parametrize("name", ALIKE)
def test_what_is_alike_is_one(name: str, gradient: bool):
    f, products = ALIKE[name]
    graph, given = _traced(f, gradient)
    batched = batch_slices(graph)
    check(batched)
    assert batched is not graph
    assert _products(batched) <= (3 * products if gradient else products)
    assert agree(batched, graph, given)


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_not_alike_is_left(name: str):
    graph, _ = _traced(OTHERS[name], False)
    assert batch_slices(graph) is graph


def test_a_zero_that_was_padded_keeps_its_sign_as_sums_have_it():
    x = torch.full((8, 5), -0.0, dtype=D)

    def f(x: Any) -> Any:
        return functools.reduce(torch.add, [F.pad(x[k : k + 1].sin(), (0, 0, k, 7 - k)) for k in range(8)])

    graph = eliminate_common_subexpressions(graphc.trace(f, x))
    batched = batch_slices(graph)
    assert batched is not graph
    for a, b in zip(batched.outputs, graph.outputs, strict=True):
        found, expected = batched.evaluate(x.numpy())[a], graph.evaluate(x.numpy())[b]
        np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


def test_checks_of_slices_are_checks_of_the_whole():
    """Microbatches, whose gradients are added up: a class that there is not fails as in eager, and changes nothing."""
    model = nn.Sequential(nn.Linear(20, 30), nn.ReLU(), nn.Linear(30, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    @graphc.compile
    def step(x, y):
        optimizer.zero_grad()
        for a, b in zip(x.chunk(4), y.chunk(4), strict=True):
            (F.cross_entropy(model(a), b) / 4).backward()
        optimizer.step()

    x, y = torch.randn(32, 20), torch.arange(32) % 3
    step(x, y)
    assert "slices" in [record.name for record in step.graph.history]
    before = model[0].weight.detach().clone()
    with pytest.raises(IndexError, match="Target 7 is out of bounds"):
        step(x, torch.where(torch.arange(32) == 20, 7, y))
    assert torch.equal(model[0].weight, before)
    step(x, y)
    assert not torch.equal(model[0].weight, before)
