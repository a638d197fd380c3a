"""What is read of each array: of what is computed element by element, or row by row, the rest is left out.

Backwards, the part that is demanded of every node is found: the smallest box that holds what its users read, or the
places that they pick (`picks`). Forwards, nodes are computed on their parts, as ops declare it (`Op.parts`). Ends of
cumulations and of sorted rows become reductions. Products are left to `graphc.normal`, which takes a part of one from
parts of its operands.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, final

from graphc.ir import Builder, Graph, Node, Symbol, rename
from graphc.ir.graph import INPUT
from graphc.ops import OPS
from graphc.ops.parts import POINTWISE, Box, Parts, cut, sizes, whole
from graphc.passes.picks import FEW, Pick, Picks, Transfer, picked

LESS = 0.75  # of an array, at most, for a part to be worth the change
_ITEM, _SLICE, _INDEX = OPS["item"], OPS["slice"], OPS["index"]


def narrow(graph: Graph) -> Graph:
    """`graph` without the parts of arrays that nobody reads. Rounds differently."""
    nodes = graph.nodes
    if graph.ops.isdisjoint((_INDEX, _SLICE)) or not _takes_of_what_is_computed(nodes):
        return graph
    writer = _Writer(graph)
    found = writer.demanded
    is_less = any(_is_less(nodes[id], box, nodes) for id, box in found.boxes.items())
    return writer.written() if is_less or any(not nodes[id].op.view for id in found.picked) else graph


def _takes_of_what_is_computed(nodes: Mapping[int, Node]) -> bool:
    """Whether any index, slice, or slice of a view, is of something that could be computed in part."""
    if any(picked(node, nodes) is not None for node in nodes.values()):
        return True
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


@final
class _Demanded:
    """What is read of the nodes of a graph.

    boxes   of those that are computed on a box, which may be all of it
    picked  of those of which picked places alone are read: how each pick of them is computed
    reads   of those that read such places: of which node, and which
    """

    def __init__(self, graph: Graph, picks: Picks):
        nodes = graph.nodes
        self.boxes: dict[int, Box] = {}
        self.picked: dict[int, dict[Pick, Transfer]] = {}
        self.reads: dict[int, tuple[int, Pick]] = {}
        self._nodes = nodes
        self._picks = picks
        self._wanted: dict[int, dict[Pick, None]] = {}  # the places that are read of nodes whose readers are known
        self._all_of = {*graph.outputs, *[id for id, node in nodes.items() if node.op.impure]}
        for id, node in reversed(list(nodes.items())):
            self._visit(id, node)
        self.boxes.update((id, whole(_shape(nodes[id]))) for id in self._all_of if id not in self.boxes)

    def _visit(self, id: int, node: Node) -> None:
        """Note what a node reads, of which all readers have been visited."""
        if id in self._wanted and not self._is_picked(id, node):
            self._all_of.add(id)
        if id in self._all_of:
            self.boxes.pop(id, None)
            if self._picks_of(node):
                return
            if node.op.parts is None and node.op is not _ITEM:  # pointwise ones read the whole, for all of it
                self._all_of.update(node.inputs)
                return
            box = whole(_shape(node))
        elif id in self.boxes:
            if self._picks_of(node):
                self._all_of.add(id)
                del self.boxes[id]
                return
            box = self.boxes[id]
        else:
            return
        parts = None if 0 in sizes(box) else _parts(node, self._nodes)
        if parts is None:
            self._all_of.update(node.inputs)
            return
        self.boxes[id] = box = parts.least(box, _shape(node), node.params)
        for i in node.inputs:
            shape = _shape(self._nodes[i])
            read = parts.reads(box, shape, node.params)
            known = self.boxes.get(i, read)
            self.boxes[i] = tuple([(min(a, c), max(b, d)) for (a, b), (c, d) in zip(read, known, strict=True)])

    def _picks_of(self, node: Node) -> bool:
        """Note the places that a node picks of another, if there they can be computed by themselves."""
        of, pick = picked(node, self._nodes) or (-1, None)
        if pick is None or self._picks.through(self._nodes[of], pick) is None:
            return False
        self.reads[node.id] = of, pick
        self._wanted.setdefault(of, {})[pick] = None
        self._all_of.update([p for p in pick.places if not isinstance(p, range)])
        return True

    def _is_picked(self, id: int, node: Node) -> bool:
        """Whether nothing but picked places of a node need be computed: what they read of others is noted."""
        wanted = self._wanted[id]
        if id in self._all_of or id in self.boxes or sum([p.share(node.shape) for p in wanted]) > FEW:
            return False
        found = {pick: transfer for pick in wanted if (transfer := self._picks.through(node, pick)) is not None}
        if len(found) < len(wanted):
            return False
        self.picked[id] = found
        for transfer in found.values():
            for i, pick in zip(node.inputs, transfer.picks, strict=bool(transfer.picks)):
                if pick is None:
                    self._all_of.add(i)
                else:
                    self._wanted.setdefault(i, {})[pick] = None
        return True


@final
class _Writer:
    """Writes a graph anew, each node on its box."""

    def __init__(self, graph: Graph):
        self._graph = graph
        self._builder = Builder.beside(graph.nodes)
        self._picks = Picks(self._builder, graph.nodes, self._whole)
        self.demanded = _Demanded(graph, self._picks)
        self._boxes = self.demanded.boxes
        self._places: dict[tuple[int, Pick | None], Symbol] = {}  # what has been computed of places alone
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
        outputs = {id: self._whole(id).id for id in graph.outputs}
        return graph.replace(builder.nodes, rename(graph.result, outputs))

    def _write(self, node: Node) -> None:
        nodes = self._graph.nodes
        box, parts = self._boxes[node.id], _parts(node, nodes)
        if node.id in self.demanded.reads:
            self._new[node.id] = self._picked(*self.demanded.reads[node.id]), whole(_shape(node))
        elif node.op is _ITEM and type(self._new[node.inputs[0]][0]) is tuple:
            found, box = self._new[node.inputs[0]]
            self._new[node.id] = found[node.params["index"]], box
        elif node.op is _ITEM or parts is None or not self._is_partial(node, box):
            inputs = [i if nodes[i].op.several else self._whole(i).id for i in node.inputs]
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

    def _whole(self, id: int) -> Symbol:
        return self._part(id, whole(_shape(self._graph.nodes[id])))

    def _picked(self, of: int, places: Pick) -> Symbol:
        """Places of a node, computed of places of others if nothing else of it is there."""
        stack: list[tuple[int, Pick | None]] = [(of, places)]
        while (of, places) not in self._places:
            id, pick = stack[-1]
            node, transfer = self._graph.nodes[id], None if pick is None else self.demanded.picked.get(id, {}).get(pick)
            read = [] if transfer is None else [*zip(node.inputs, transfer.picks, strict=bool(transfer.picks))]
            left = [k for k in read if k not in self._places]
            stack += left
            if left:
                continue
            if transfer is None:
                self._places[stack.pop()] = self._picks.taken(id, pick)
            else:
                self._builder.where, self._builder.scope = node.where, node.scope
                self._places[stack.pop()] = transfer.make(*[self._places[k] for k in read])
        return self._places[of, places]

    def _computed(self, node: Node, box: Box, parts: Parts) -> Any:
        """A box of a node's result, or of each."""
        shapes = [_shape(self._graph.nodes[i]) for i in node.inputs]
        given = [
            self._part(i, parts.reads(box, shape, node.params)) for i, shape in zip(node.inputs, shapes, strict=True)
        ]
        if parts.make is not None:
            return parts.make(self._builder.language, *given, box, shapes[0] if shapes else (), node.params)
        return self._builder.emit(node.op, given, node.params)
