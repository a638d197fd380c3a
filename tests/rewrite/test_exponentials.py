"""Sums of exponentials of outer sums: no array of all pairs is left, and nothing overflows that did not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import eager as torch
import graphc
from graphc.ir import Graph

N, M = 40, 30
rng = np.random.default_rng(0)
GIVEN = {
    "a": rng.standard_normal(N) * 30, "b": rng.standard_normal(M), "c": np.array(300.0),
    "x": rng.standard_normal((3, N)), "y": rng.standard_normal((3, M)),
}  # fmt: skip

# the names of its parameters are those of GIVEN
LESS: dict[str, Callable[..., Any]] = {
    "all pairs": lambda a, b: torch.logsumexp((a[:, None] + b).reshape(-1), 0),
    "rows": lambda a, b: torch.logsumexp(a[:, None] - b, 1),
    "of each": lambda x, y: torch.logsumexp(x[:, :, None] + y[:, None, :], (1, 2)),
    "sum": lambda a, b, c: torch.exp(a[:, None] + b - c).sum(1),
    "scaled": lambda a, b, c: (b[2] * torch.exp(a[:, None] + b - c) * 3).sum(1),
    "a number": lambda a, b, c: torch.exp(a[:, None] + 2 * b - c).sum(),
    "an axis that nothing has": lambda a, b: torch.logsumexp(a[:, None, None] + b[None, None].expand(1, 5, M), (1, 2)),
}
WHOLE: dict[str, Callable[..., Any]] = {
    "a matrix": lambda x, c: torch.logsumexp(x + c, 1),
    "shared": lambda a, b: torch.logsumexp((a[:, None] + b) + a[:, None] * b, 1),
    "as many elements": lambda a: torch.exp(a - a.max()).sum(),
}


def traced(f: Callable[..., Any]) -> tuple[Graph, list[Any]]:
    given = [torch.from_numpy(GIVEN[name].copy()) for name in f.__code__.co_varnames[: f.__code__.co_argcount]]
    return graphc.trace(f, *given), given


@pytest.mark.parametrize("name", [*LESS, *WHOLE])
def test_exponentials_of_outer_sums(name: str):
    graph, given = traced({**LESS, **WHOLE}[name])
    found = graphc.optimize(graph)
    fired = any(record.name == "exponentials" for record in found.history)
    assert fired == (name in LESS), found
    assert not fired or max(node.size for node in found.nodes.values()) < 3 * N + 3 * M, found
    arrays = [x.numpy() for x in given]
    np.testing.assert_allclose(
        found.evaluate(*arrays)[found.outputs[0]], graph.evaluate(*arrays)[graph.outputs[0]], rtol=1e-12
    )


def test_gradients_of_all_pairs():
    def f(a: Any, b: Any) -> Any:
        a, b = (x.detach().requires_grad_() for x in (a, b))
        return torch.autograd.grad((LESS["all pairs"](a, b) ** 2).sum(), (a, b))

    graph, given = traced(f)
    found = graphc.optimize(graph)
    assert max(node.size for node in found.nodes.values()) <= N, found
    arrays = [x.numpy() for x in given]
    for a, b in zip(found(*arrays), f(*given), strict=True):
        np.testing.assert_allclose(a, b.numpy(), rtol=1e-12)
