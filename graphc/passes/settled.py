"""What passes need not be asked again: a graph knows which of them leave it as it is."""

from __future__ import annotations

import functools
from collections.abc import Callable

from graphc.ir import Graph

Pass = Callable[[Graph], Graph]


def settling(run: Pass) -> Pass:
    """`run`, which finds nothing to do in what it has made, as a pass that is not run on such a graph."""

    @functools.wraps(run)
    def settled(graph: Graph) -> Graph:
        if settled in graph.settled:
            return graph
        result = run(graph)
        result.settled.add(settled)
        return result

    return settled
