"""What `graphc.optimize` makes of an expression, beside the cheapest form that the elementary laws lead to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import eager as torch
import graphc
from graphc.ir import Graph
from graphc.normal.write import costs_of
from graphc.passes.cse import eliminate_common_subexpressions
from graphc.passes.dce import eliminate_dead_code
from graphc.passes.fold import fold_constants
from tests.normal.exhaustive import MOST_WAYS, candidates
from tests.normal.expressions import Expression, arrays, program, source
from tests.normal.generated import random_expression

RELATIVE = 1e-8  # of the largest element, that float64 may be off
ROUNDING = 1e-12  # of the largest number on the way: what cancels

GOAL = 1.1  # of the cost of the cheapest form


class Search(NamedTuple):
    """The costs of an expression as written, optimized, and in the cheapest form known; whether values disagree."""

    written: float
    ours: float
    best: float
    disagrees: bool
    source: str
    form: str

    @property
    def ratio(self) -> float:
        return (self.ours + 1) / (self.best + 1)

    @property
    def is_slower(self) -> bool:
        """Whether the optimized program is predicted to be slower than what was written."""
        return self.ours > self.written * (1 + 1e-9)


def cost(graph: Graph) -> float:
    """In scalar operations, after what is computed twice is computed once."""
    return sum(costs_of(graph.nodes, graph.nodes, graph.users()).values())


def traced(expression: Expression, seed: int, gradient: bool) -> tuple[Graph, list[np.ndarray]]:
    """The graph as written, of the expression or of the gradients of the sum of its squares, and the inputs."""
    f: Callable[..., Any] = program(expression)
    given = arrays(expression, seed)
    if gradient:
        f = torch.func.grad(lambda *xs, f=f: (f(*xs) ** 2).sum(), tuple(range(len(given))))
    graph = graphc.trace(f, *map(torch.from_numpy, given))
    return eliminate_dead_code(eliminate_common_subexpressions(fold_constants(graph))), given


def searched(seed: int, gradient: bool = False, most: int = MOST_WAYS) -> Search:
    """One random expression. most: ways of computing it, and its parts, that are tried

    The cheapest gradients known are those of the cheapest forms, as written and optimized.
    """
    expression = random_expression(seed)
    written, given = traced(expression, seed, gradient)
    ours = graphc.optimize(written)
    found: list[tuple[float, Expression]] = [(cost(written), expression)]
    for form in candidates(expression, most)[0]:
        graph, _ = traced(form, seed, gradient)
        found.append((cost(graph), form))
        if gradient:
            found.append((cost(graphc.optimize(graph)), form))
    best, form = min(found, key=lambda pair: pair[0])
    disagrees = not agree(ours, written, given)
    return Search(cost(written), cost(ours), best, disagrees, source(expression), source(form))


def agree(ours: Graph, written: Graph, given: Sequence[np.ndarray]) -> bool:
    """Whether two graphs give the same but for rounding."""
    values = written.evaluate(*given)
    scale = max([float(np.abs(v).max(initial=0)) for v in values.values() if isinstance(v, np.ndarray)], default=0.0)
    found = ours.evaluate(*given)
    return all(
        np.abs(found[a] - values[b]).max(initial=0) <= RELATIVE * np.abs(values[b]).max(initial=0) + ROUNDING * scale
        for a, b in zip(ours.outputs, written.outputs, strict=True)
    )
