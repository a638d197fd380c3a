"""A graph with the graphs inside it laid open, for drawings: what a loop or a switch runs is a module before it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from graphc.ir.graph import Graph, Node, Ref
from graphc.ir.structure import SCAN, SWITCH, WHILE
from graphc.ir.text import names_of

_FIRST = {SWITCH: 1, WHILE: 0, SCAN: 0}  # the operand that is the first argument of what the node runs


class Opened(NamedTuple):
    """A graph to look at, not to run: arguments of inner graphs are inputs with an operand, and a node that runs graphs
    has their results as operands.

    names  of the nodes; inside inner graphs as in the text of these
    """

    graph: Graph
    names: dict[int, str]


def opened(graph: Graph) -> Opened:
    """`graph` with what its nodes run as nodes of scopes of their own."""
    names = names_of(graph)
    if not any(node.op in _FIRST for node in graph.nodes.values()):
        return Opened(graph, names)
    found = _Opening(max(graph.nodes) + 1)
    ends = found.add(graph, {id: id for id in graph.nodes}, "", "", {})
    result = tuple(Ref(ends[id]) for id in graph.outputs)
    return Opened(Graph(graph.name, found.nodes, graph.inputs, result, graph.history), found.names)


class _Opening:
    def __init__(self, next_id: int):
        self.nodes: dict[int, Node] = {}
        self.names: dict[int, str] = {}
        self._next = next_id

    def add(
        self, graph: Graph, ids: dict[int, int], scope: str, outer: str, operands: dict[int, int]
    ) -> dict[int, int]:
        """Append the nodes of `graph`: what they are in the drawing, by their ids.

        ids: those of the nodes that keep theirs; the others get new ones. scope: of the group that they belong to;
        outer: the scope, in the program, of the node that runs them. operands: input -> what it stands for.
        """
        names, read = names_of(graph), {i for node in graph.nodes.values() for i in node.inputs} | {*graph.outputs}
        new: dict[int, int] = {}
        for id, node in graph.nodes.items():
            if id in operands and id not in read:
                continue
            own = node.scope.removeprefix(outer).removeprefix(".") if node.scope.startswith(outer) else node.scope
            within = ".".join(filter(None, (scope, own)))
            inputs = tuple(new[i] for i in node.inputs)
            if node.op in _FIRST:
                group = ".".join(filter(None, (within, f"{node.op.name} {names[id]}")))
                results = [end for name, body in _bodies(node) for end in self._inside(node, body, inputs, group, name)]
                inputs = (*inputs[: _FIRST[node.op]], *results)
            elif id in operands:
                inputs = (operands[id],)
            if id in ids:
                new[id] = ids[id]
            else:
                new[id], self._next = self._next, self._next + 1
            self.nodes[new[id]] = Node(new[id], node.op, inputs, node.params, node.results, node.where, within)
            self.names[new[id]] = names[id]
        return new

    def _inside(self, node: Node, body: Graph, inputs: tuple[int, ...], group: str, name: str) -> list[int]:
        scope = f"{group}.{name}" if name else group
        given = dict(zip(body.inputs, inputs[_FIRST[node.op] :], strict=True))
        ends = self.add(body, {}, scope, node.scope, given)
        return [ends[id] for id in body.outputs]


def _bodies(node: Node) -> Iterator[tuple[str, Graph]]:
    """What a node runs, with a name for each; none is needed for the body of a scan."""
    found = {name: value for name, value in node.params.items() if isinstance(value, (Graph, tuple))}
    for name, value in found.items():
        if isinstance(value, Graph):
            yield name if len(found) > 1 else "", value
        else:
            yield from ((f"branch {k}", branch) for k, branch in enumerate(value))
