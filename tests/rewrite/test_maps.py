"""What scans do with rows alone is done for all rows at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import eager as torch
import graphc
from graphc.ir import Graph
from graphc.ir.check import check
from graphc.ir.structure import SCAN
from graphc.passes import maps
from graphc.passes.maps import batch_rows
from tests.depth import one_in

T, N = 7, 5


def scans(graph: Graph) -> list[Graph]:
    return [node.params["body"] for node in graph.nodes.values() if node.op is SCAN]


def names(graph: Graph) -> set[str]:
    return {node.op.name for node in graph.operations()}


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.tensor(np.random.default_rng(seed).standard_normal(shape))


def same(before: Graph, after: Graph, *tensors: torch.Tensor) -> None:
    check(after)
    arrays = [t.numpy() for t in tensors]
    for a, b in zip(before.outputs, after.outputs, strict=True):
        expected, found = before.evaluate(*arrays)[a], after.evaluate(*arrays)[b]
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    for a, b in zip(graphc.lower(before)(*arrays), graphc.lower(after)(*arrays), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-10, atol=1e-10)


def mapped(f: Callable[..., Any], reverse: bool = False) -> Callable[..., Any]:
    return lambda xs, *rest: (graphc.scan(lambda c, x: (c, f(x, *rest)), (), xs, reverse=reverse)[1],)


MAPS: dict[str, Callable[..., Any]] = {
    "a product": lambda x, w: w @ x,
    "a product of a row": lambda x, w: x @ w,
    "an outer product": lambda x, w: x[:, None] * x,
    "a quadratic form": lambda x, w: x @ w @ x,
    "pointwise": lambda x, w: torch.where(x > 0, x, x.exp() - 1),
    "sums and shapes": lambda x, w: (w * x).sum(1).reshape(N, 1).flip(0).T.softmax(1),
    "a result that is the same in all steps": lambda x, w: (w + 1).sum() + 0 * x.sum(),
    "numbers without dims": lambda x, w: x.sum() * 2,
    "two results of one operation": lambda x, w: torch.max(x * w, 0).values,
}


@pytest.mark.parametrize("reverse", one_in(2, [True, False]))
@pytest.mark.parametrize("name", MAPS)
def test_a_scan_without_carries_is_no_loop(name: str, reverse: bool) -> None:
    given = random(T, N), random(N, N, seed=1)
    graph = graphc.trace(mapped(MAPS[name], reverse), *given)
    after = batch_rows(graph)
    assert scans(graph) and not scans(after)
    same(graph, after, *given)


def test_what_vmap_takes_apart_stays_a_loop() -> None:
    given = random(T, N), random(N, N, seed=1)
    graph = graphc.trace(mapped(lambda x, w: torch.linalg.solve(w, x)), *given)
    assert batch_rows(graph) is graph


def test_what_takes_too_much_memory_stays_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maps, "MOST", T * N - 1)
    given = random(T, N), random(N, N, seed=1)
    graph = graphc.trace(mapped(lambda x, w: x * 2), *given)
    assert batch_rows(graph) is graph


def cell(x: Any, w: Any, u: Any) -> Any:
    def step(h: Any, row: Any) -> Any:
        h = torch.tanh(w @ h + u @ row)
        return h, (u @ h, h)

    return graphc.scan(step, torch.zeros(N, dtype=torch.float64), x)


def test_products_that_no_carry_needs_or_makes_leave_the_loop() -> None:
    given = random(T, N), random(N, N, seed=1), random(N, N, seed=2)
    graph = graphc.trace(lambda x, w, u: _flat(cell(x, w, u)), *given)
    after = batch_rows(graph)
    (body,) = scans(graph)
    count = [node.op.name for node in body.operations()].count("matmul")
    live = graphc.optimize(after)
    (small,) = scans(live)
    assert count == 3 and [node.op.name for node in small.operations()].count("matmul") == 1
    same(graph, after, *given)
    same(graph, live, *given)


def _flat(found: Any) -> tuple[Any, ...]:
    last, (products, states) = found
    return last, products, states


def test_large_products_stay_in_the_loop() -> None:
    """A product of many rows has enough to do in each step."""
    given = random(T, 24, N), random(N, N, seed=1)

    def f(x: Any, w: Any) -> Any:
        return graphc.scan(lambda h, row: (torch.tanh(h + row @ w), None), torch.zeros(24, N, dtype=torch.float64), x)[
            0
        ]

    graph = graphc.trace(lambda x, w: (f(x, w),), *given)
    assert batch_rows(graph) is graph


def test_gradients_of_a_loop_need_one_product_a_step() -> None:
    given = random(T, N), random(N, N, seed=1), random(N, N, seed=2)

    def loss(x: Any, w: Any, u: Any) -> Any:
        h = torch.zeros(N, dtype=torch.float64)
        for t in range(T):
            h = torch.tanh(w @ h + u @ x[t])
        return (h**2).sum()

    f = torch.func.grad(loss, (0, 1, 2))
    found = graphc.compile(f)(*given)
    for a, b in zip(found, f(*given), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)


def test_a_result_of_the_wrong_steps_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checker is a checker: rows in another order give other values."""
    given = random(T, N), random(N, N, seed=1)
    graph = graphc.trace(mapped(MAPS["a product"]), *given)
    right = maps.inline
    monkeypatch.setattr(maps, "inline", lambda builder, part, operands: [
        builder.language.flip(s, axis=(0,)) for s in right(builder, part, operands)
    ])  # fmt: skip
    with pytest.raises(AssertionError):
        same(graph, batch_rows(graph), *given)
