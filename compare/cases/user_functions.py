"""The autograd.Functions of a program: their forward, to be differentiated by others than their backward."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple, final

from compare.judging.gradient_oracles import passes
from graphc.capture import Program
from graphc.ir import Graph
from graphc.ir.structure import ancestors


@final
class Forward(NamedTuple):
    """What a call of an autograd.Function computes from operands that gradients flow through.

    where   the user's line
    inside  ids of the nodes between operands and results
    smooth  whether a path of ops leads from operands to results whose derivative is not 0 everywhere
    """

    where: str
    inside: frozenset[int]
    smooth: bool


def functions_of(program: Program, wrt: Collection[int]) -> list[Forward]:
    """The calls of autograd.Functions in a program, in order. wrt: ids of the inputs that gradients are for."""
    nodes, found = program.graph.nodes, list[Forward]()
    for function in () if program.recorded.rules is None else program.recorded.rules.functions:
        node = nodes.get(function.node)
        starts = {id for id in function.inputs if id in program.recorded.nodes or id in wrt}
        if node is not None and starts:
            inside, smooth = _between(program.graph, starts, node.inputs[: node.params["results"]])
            found.append(Forward(node.where or "an unknown line", inside, smooth))
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
