"""How much work a run of a graph on NumPy is: what `check` is bounded by, as no clock is the same twice."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, final

import numpy as np

from compare.judging.numeric import outputs_of
from graphc.ir import Graph, Node
from graphc.ir.structure import ITEM, SCAN, WHILE, bodies, every_node, with_bodies
from graphc.ops.control import BodyProxy
from graphc.ops.interpret import run_kernel

# Work is in numbers that are computed: about a nanosecond each.
CALL = 5_000  # of an operation, whatever its size
PER_FLOP = 0.125  # of operations that declare how many of these they take
COMPILED = 20_000_000  # of an operation that XLA compiles
LIMIT = 100_000_000_000  # what a mode may take, or judging it
# How often a graph is run: with simulated errors in float64, to judge a mode; alone in many forms, to find a culprit
JUDGED, LOCATED = 14, 100


class TooMuch(Exception):
    """A run takes more work than it may."""


def work_of(graph: Graph, arrays: Sequence[np.ndarray], limit: float) -> float:
    """The work of a run of `graph` on `arrays`; infinite if it is more than `limit`.

    Loops whose number of steps the values decide are run to find it out.
    """
    meter = _Meter(limit)
    try:
        if any(node.op is WHILE for node in every_node(graph)):
            meter.run(graph, arrays)
        else:
            meter.add(meter.of(graph))
    except TooMuch:
        return float("inf")
    except Exception:  # an op that fails: there is no more to run
        return meter.total
    return meter.total


def compiling(graph: Graph) -> float:
    """The work of having XLA compile `graph`."""
    return COMPILED * sum(1 for _ in every_node(graph))


@final
class _Meter:
    def __init__(self, limit: float):
        self.total = 0.0
        self._limit = limit
        self._known: dict[int, float] = {}  # by id of a body: they are alive meanwhile

    def add(self, work: float) -> None:
        self.total += work
        if self.total > self._limit:
            raise TooMuch

    def of(self, graph: Graph) -> float:
        """The work of a graph without loops of unknown length."""
        if id(graph) not in self._known:
            self._known[id(graph)] = sum(self._node(node, graph) for node in graph.operations())
        return self._known[id(graph)]

    def _node(self, node: Node, graph: Graph) -> float:
        if not node.op.structured:
            avals = [graph.nodes[i].type for i in node.inputs]
            flops = node.op.flops(avals, node.type, node.params) if node.op.flops is not None else 0.0
            return CALL + node.size + PER_FLOP * flops
        if node.op is ITEM:
            return 0.0
        steps = node.params["length"] if node.op is SCAN else 1
        return CALL + steps * max([self.of(body) for body in bodies(node)], default=0.0)

    def run(self, graph: Graph, arrays: Sequence[np.ndarray]) -> dict[int, Any]:
        """The values of a graph, with its work added up."""
        values: dict[int, Any] = dict(zip(graph.inputs, arrays, strict=True))
        for node in graph.operations():
            operands = [values[i] for i in node.inputs]
            if node.op.structured:
                watched = with_bodies(node, lambda body: BodyProxy(body, partial(self._results, body)))
                values[node.id] = run_kernel(node.op, operands, watched.params)
            else:
                self.add(self._node(node, graph))
                values[node.id] = run_kernel(node.op, operands, node.params)
        return values

    def _results(self, graph: Graph, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        return tuple(outputs_of(graph, self.run(graph, arrays)))
