"""What is read of each array: of what is computed element by element, or row by row, the rest is left out.

Backwards, the box that is demanded of every node is found: the smallest that holds what its users read. Forwards, nodes
are computed on their boxes, as ops declare it (`Op.parts`). Ends of cumulations and of sorted rows become reductions.
Products are left to `graphc.normal`, which takes a part of one from parts of its operands.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, final

from graphc.ir import Builder, Graph, Node, Symbol, rename
from graphc.ir.graph import INPUT
from graphc.ops import OPS
from graphc.ops.parts import POINTWISE, Box, Parts, cut, sizes, whole

LESS = 0.75  # of an array, at most, for a part to be worth the change
_ITEM, _SLICE = OPS["item"], OPS["slice"]


def narrow(graph: Graph) -> Graph:
    """`graph` without the parts of arrays that nobody reads. Rounds differently."""
    nodes = graph.nodes
    if _SLICE not in graph.ops or not _cuts_what_is_computed(nodes):
        return graph
    boxes, all_of = _demanded(graph)
    if not any(_is_less(nodes[id], box, nodes) for id, box in boxes.items()):
        return graph
    boxes.update((id, whole(_shape(nodes[id]))) for id in all_of if id not in boxes)
    return _Writer(graph, boxes).written()


def _cuts_what_is_computed(nodes: Mapping[int, Node]) -> bool:
    """Whether any slice, or a slice of a view, is of something that could be computed in part."""
    stack = [node.inputs[0] for node in nodes.values() if node.op is _SLICE]
    seen: set[int] = set()
    while stack:
        id = stack.pop()
        node = nodes[id]
        if id in seen or not node.inputs or _parts(node, nodes) is None:
            continue
        if not node.op.view and node.op is not _ITEM:
            return True
        seen.add(id)
        stack += node.inputs
    return False


def _is_less(node: Node, box: Box, nodes: Mapping[int, Node]) -> bool:
    """Whether a node that computes something is demanded in a part that is worth it."""
    if node.op.view or not node.inputs or node.op is _ITEM or _parts(node, nodes) is None:
        return False
    return math.prod(sizes(box)) <= LESS * node.size / len(node.results)


def _parts(node: Node, nodes: Mapping[int, Node]) -> Parts | None:
    """How a part of a node's result is computed from parts of its operands; None if it is not."""
    op = node.op
    if op is _ITEM:
        return None if _parts(nodes[node.inputs[0]], nodes) is None else POINTWISE
    if node.check is not None or op.impure or op.structured:
        return None
    if not all(type(n) is int for r in node.results for n in r.shape):
        return None
    return POINTWISE if op.pointwise else op.parts


def _shape(node: Node) -> tuple[int, ...]:
    """Of the first result: those of ops with parts are of one shape."""
    return node.results[0].shape


def _demanded(graph: Graph) -> tuple[dict[int, Box], set[int]]:
    """The box of each node that is read in part; and the nodes that are read as a whole."""
    nodes = graph.nodes
    boxes: dict[int, Box] = {}
    all_of = {*graph.outputs, *[id for id, node in nodes.items() if node.op.impure]}
    for id, node in reversed(list(nodes.items())):
        if id in all_of:
            boxes.pop(id, None)
            if node.op.parts is None and node.op is not _ITEM:  # pointwise ones read the whole, for all of it
                all_of.update(node.inputs)
                continue
            box = whole(_shape(node))
        elif id in boxes:
            box = boxes[id]
        else:
            continue
        parts = None if 0 in sizes(box) else _parts(node, nodes)
        if parts is None:
            all_of.update(node.inputs)
            continue
        boxes[id] = box = parts.least(box, _shape(node), node.params)
        for i in node.inputs:
            shape = _shape(nodes[i])
            read = parts.reads(box, shape, node.params)
            known = boxes.get(i, read)
            boxes[i] = tuple([(min(a, c), max(b, d)) for (a, b), (c, d) in zip(read, known, strict=True)])
    return boxes, all_of


@final
class _Writer:
    """Writes a graph anew, each node on its box."""

    def __init__(self, graph: Graph, boxes: dict[int, Box]):
        self._graph = graph
        self._boxes = boxes
        self._builder = Builder.beside(graph.nodes)
        self._new: dict[int, tuple[Any, Box]] = {}  # by node: a Symbol, or those of several results; and its box

    def written(self) -> Graph:
        graph, builder = self._graph, self._builder
        for id, node in graph.nodes.items():
            if node.op is INPUT:
                self._boxes.setdefault(id, whole(node.shape))
            elif id not in self._boxes:
                continue
            builder.where, builder.scope = node.where, node.scope
            self._write(node)
        outputs = {id: self._part(id, whole(_shape(graph.nodes[id]))).id for id in graph.outputs}
        return graph.replace(builder.nodes, rename(graph.result, outputs))

    def _write(self, node: Node) -> None:
        nodes = self._graph.nodes
        box, parts = self._boxes[node.id], _parts(node, nodes)
        if node.op is _ITEM and type(self._new[node.inputs[0]][0]) is tuple:
            found, box = self._new[node.inputs[0]]
            self._new[node.id] = found[node.params["index"]], box
        elif node.op is _ITEM or parts is None or not self._is_partial(node, box):
            inputs = [i if nodes[i].op.several else self._part(i, whole(_shape(nodes[i]))).id for i in node.inputs]
            self._builder.copy(node, tuple(inputs))
            self._new[node.id] = None if node.op.several else self._builder.symbol(node.id), whole(_shape(node))
        else:
            self._new[node.id] = self._computed(node, box, parts), box

    def _is_partial(self, node: Node, box: Box) -> bool:
        """Whether not all of a node, or of an operand, is there."""
        nodes = self._graph.nodes
        if 0 in sizes(box):
            return False
        return box != whole(_shape(node)) or any(self._new[i][1] != whole(_shape(nodes[i])) for i in node.inputs)

    def _part(self, id: int, box: Box) -> Symbol:
        """A box of a node, out of the one that has been computed."""
        found, there = self._new[id]
        return cut(self._builder.language, found, box, there)

    def _computed(self, node: Node, box: Box, parts: Parts) -> Any:
        """A box of a node's result, or of each."""
        shapes = [_shape(self._graph.nodes[i]) for i in node.inputs]
        given = [
            self._part(i, parts.reads(box, shape, node.params)) for i, shape in zip(node.inputs, shapes, strict=True)
        ]
        if parts.make is not None:
            return parts.make(self._builder.language, *given, box, shapes[0] if shapes else (), node.params)
        return self._builder.emit(node.op, given, node.params)
