"""What terms cost, as written and as the optimizer writes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

from graphc.audit.terms import Term
from graphc.ir import Builder, Graph, Ref
from graphc.normal.write import costs_of
from graphc.ops.aval import Aval
from graphc.ops.dtypes import FLOAT32
from graphc.passes import optimize

Optimizer = Callable[[Graph], Graph]


def graph_of(term: Term) -> Graph:
    """The term as a graph of float32; what occurs twice in it is computed once."""
    builder = Builder()
    made: dict[Term, Any] = {}

    def value(t: Term) -> Any:
        if t not in made:
            if t.operation is not None:
                made[t] = t.operation.apply(builder.language, *[value(x) for x in t.operands])
            else:
                assert t.leaf is not None
                leaf = t.leaf
                number = leaf.number
                made[t] = builder.input(leaf.text, Aval(leaf.shape(large=True), FLOAT32)) if number is None else number
        return made[t]

    return builder.graph("term", Ref(value(term).id))


def cost_of(graph: Graph) -> float:
    """The cost of a graph, by the model that decides on rewriting: what loops compute on the way is not written."""
    return sum(costs_of(graph.nodes, graph.nodes, graph.users()).values())


@final
class Costs:
    """Costs of terms, by an optimizer; each is asked once."""

    def __init__(self, optimizer: Optimizer = optimize):
        self._optimizer = optimizer
        self._written: dict[Term, float] = {}
        self._optimized: dict[Term, float] = {}

    def written(self, term: Term) -> float:
        """The cost of the term as it is."""
        if term not in self._written:
            self._written[term] = cost_of(graph_of(term)) if term.size else 0.0
        return self._written[term]

    def optimized(self, term: Term) -> float:
        """The cost of what the optimizer makes of the term."""
        if term not in self._optimized:
            self._optimized[term] = cost_of(self._optimizer(graph_of(term)))
        return self._optimized[term]
