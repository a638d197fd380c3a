"""What a run of a graph carries out: its operations one by one, and those of the graphs that control flow runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, final

import numpy as np

from compare.judging.numeric import evaluate, outputs_of
from compare.locating.culprit import Culprit, blame
from graphc.ir import Graph, Node
from graphc.ir.structure import ITEM, with_bodies
from graphc.ops.interpret import run_kernel

CALLS = 4  # of a body that a loop runs many times, so many are looked at


class Step(NamedTuple):
    """An operation on arrays: what it was given and what NumPy makes of it. `outer`: the node of the whole graph.

    The value of control flow is a tuple of arrays.
    """

    node: Node
    operands: list[np.ndarray]
    value: Any
    outer: Node

    def blame(self, part: str, evidence: str) -> Culprit:
        """The operation, of which `part` is wrong."""
        return blame(part, self.node, evidence, dict(zip(self.node.inputs, self.operands, strict=True)))

    @property
    def inside(self) -> bool:
        """Whether control flow has run it."""
        return self.node is not self.outer


def executed(graph: Graph, arrays: Sequence[np.ndarray], *, wholes: bool = False) -> Iterator[Step]:
    """The operations of a run on NumPy in order, without control flow itself: in its place what it has run.

    wholes  control flow itself as well, after what it has run
    """
    values: dict[int, Any] = dict(zip(graph.inputs, arrays, strict=True))
    for node in graph.operations():
        operands = [values[i] for i in node.inputs]
        if not node.op.structured:
            values[node.id] = run_kernel(node.op, operands, node.params)
            yield Step(node, operands, values[node.id], node)
            continue
        watched, recorded = _watched(node)
        values[node.id] = run_kernel(node.op, operands, watched.params)
        for body in recorded:
            for given in body.calls:
                yield from (step._replace(outer=node) for step in executed(body.graph, given, wholes=wholes))
        if wholes and node.op is not ITEM:
            yield Step(node, operands, values[node.id], node)


def _watched(node: Node) -> tuple[Node, list[_Recorded]]:
    """`node` with graphs that keep what they are given, and these graphs."""
    recorded: list[_Recorded] = []

    def watch(body: Graph) -> Any:  # it stands in for the body: it has its signature and can be called
        recorded.append(_Recorded(body))
        return recorded[-1]

    return with_bodies(node, watch), recorded


@final
class _Recorded:
    """A graph that control flow runs, with what it was given the first times."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self.output_avals = graph.output_avals
        self.calls: list[tuple[np.ndarray, ...]] = []

    def __call__(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        if len(self.calls) < CALLS:
            self.calls.append(tuple(np.array(a) for a in arrays))
        return tuple(outputs_of(self.graph, evaluate(self.graph, arrays, checked=False)))
