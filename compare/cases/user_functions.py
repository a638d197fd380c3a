"""The autograd.Functions of a program: their forward, to be differentiated by others than their backward."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple, final

from compare.judging.opinions import passes
from graphc.capture import Program
from graphc.ir import Graph, Node
from graphc.ir.structure import ancestors


@final
class Forward(NamedTuple):
    """What a call of an autograd.Function computes from operands that gradients flow through.

    outputs  the nodes that stand for its results, and have its backward for a gradient rule
    inside   ids of the nodes between operands and results
    smooth   whether a path of ops leads from operands to results whose derivative is not 0 everywhere
    """

    outputs: tuple[Node, ...]
    inside: frozenset[int]
    smooth: bool

    @property
    def where(self) -> str:
        """The user's line."""
        return self.outputs[0].where or "an unknown line"


def functions_of(program: Program, wrt: Collection[int]) -> list[Forward]:
    """The calls of autograd.Functions in a program, in order. wrt: ids of the inputs that gradients are for."""
    nodes, found = program.graph.nodes, list[Forward]()
    for function in () if program.recorded.rules is None else program.recorded.rules.functions:
        outputs = tuple(nodes[id] for id in function.outputs if id in nodes)
        starts = {id for id in function.inputs if id in program.recorded.nodes or id in wrt}
        if outputs and starts:
            ends = {node.inputs[0] for node in outputs}
            inside, smooth = _between(program.graph, starts, ends)
            found.append(Forward(outputs, inside, smooth))
    return found


def _between(graph: Graph, starts: Collection[int], ends: Collection[int]) -> tuple[frozenset[int], bool]:
    """The nodes that depend on `starts` and that `ends` are made of; whether a derivative leads through them."""
    needed = ancestors(graph.nodes, ends, starts)
    reached, smooth = set(starts), set(starts)
    for node in graph.operations():
        if node.id in needed and not reached.isdisjoint(node.inputs):
            reached.add(node.id)
            if any(i in smooth and passes(node.op, k) for k, i in enumerate(node.inputs)):
                smooth.add(node.id)
    return frozenset(reached.difference(starts)), not smooth.isdisjoint(ends)
