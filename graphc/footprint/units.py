"""What of a graph is written to memory, as XLA does: chains of operations are fused into what reads them.

XLA's rules for CPUs (instruction_fusion.cc, cpu_instruction_fusion.cc), told by the traits of ops: pointwise
operations, movement and sums are loops. A loop is fused into its readers if all of them are loops; into several only if
it costs little. What is left is written: results, and operands of products, sorts, factorizations and loops over graphs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from graphc.footprint.temporaries import scratch_of, size_of
from graphc.ir import INPUT, Graph, Node
from graphc.ir.structure import ITEM
from graphc.ops import Trait


class Unit(NamedTuple):
    """What XLA runs as one: computes the value of node `id`.

    reads     nodes whose values it reads from memory, inputs of the graph among them
    size      bytes that it writes
    scratch   bytes that it needs meanwhile
    in_place  whether it may write over an operand of its size that nobody needs any more
    """

    id: int
    reads: tuple[int, ...]
    size: int
    scratch: int
    in_place: bool


class Units:
    """The units of a graph, in its order.

    units  by id of the node that they compute
    place  the node whose memory holds a node's value: itself, or that which it is a view of
    """

    def __init__(self, graph: Graph):
        self._nodes = graph.nodes
        self._users = graph.users()
        self.place: dict[int, int] = {}
        for id, node in graph.nodes.items():
            self.place[id] = self.place[node.inputs[0]] if shows_all(node, graph.nodes) else id
        self._needed = {self.place[id] for id in graph.outputs}
        self._within: dict[int, set[int]] = {}  # of what is written or fused: the units that compute or read it
        for id in reversed(graph.nodes):
            self._decide(id)
        self.units = {id: self._unit(id) for id in graph.nodes if self._written(id)}

    def _written(self, id: int) -> bool:
        """Whether a node is the root of a unit: inputs are there, and constants are part of the program."""
        node = self._nodes[id]
        return id in self._needed and node.op is not INPUT and not node.op.traits & Trait.LITERAL

    def _decide(self, id: int) -> None:
        """Whether a node is written, once that is known of its readers."""
        node = self._nodes[id]
        readers = [self._nodes[i] for i in self._users[id]]
        if self.place[id] != id:  # a view: what it shows is written where this is asked for
            if any(not fuses(reader, self._nodes) for reader in readers):
                self._needed.add(self.place[id])
            self._within[id] = self._units_of(readers)
            return
        within = self._units_of(readers)
        loops = is_loop(node, self._nodes) and all(fuses(reader, self._nodes) for reader in readers)
        if node.op is INPUT or not loops or (is_dear(node) and len(within) > 1):
            self._needed.add(id)
        self._within[id] = within

    def _units_of(self, readers: Sequence[Node]) -> set[int]:
        found: set[int] = set()
        for reader in readers:
            own = reader.id in self._needed and self.place[reader.id] == reader.id
            found |= {reader.id} if own else self._within[reader.id]
        return found

    def _unit(self, id: int) -> Unit:
        node = self._nodes[id]
        reads: dict[int, None] = {}
        stack, seen = list(reversed(node.inputs)), set[int]()
        while stack:
            i = self.place[stack.pop()]
            if i in seen:
                continue
            seen.add(i)
            if i in self._needed:
                reads[i] = None
            else:
                stack.extend(reversed(self._nodes[i].inputs))
        scratch = scratch_of(node, self._nodes)
        rows = "axis" in node.op.params and not node.op.moves
        return Unit(id, tuple(reads), size_of(node.results), scratch, node.op.pointwise or rows)


def shows_all(node: Node, nodes: Mapping[int, Node]) -> bool:
    """Whether `node` is its first operand as that lies in memory."""
    if node.op is ITEM or node.op.passes:
        return True
    lens = node.op.lens
    if lens is None or not node.op.view:
        return False
    whole = nodes[node.inputs[0]]
    if whole.op.several or whole.size != node.size or whole.dtype.itemsize != node.dtype.itemsize:
        return False
    place = lens.lies(whole.shape, None, **node.params)
    return place is not None and place[0] is None


def is_loop(node: Node, nodes: Mapping[int, Node]) -> bool:
    """Whether XLA can compute an element of the result where it is read."""
    op = node.op
    if op.impure or op.several or op.flops is not None:
        return False
    if op.pointwise or op.view or not node.inputs:
        return True
    return op.moves and (bool(op.traits & Trait.LINEAR) or _gathers(node, nodes))


def _gathers(node: Node, nodes: Mapping[int, Node]) -> bool:
    """Whether `node` picks elements of one array by number."""
    kinds = [nodes[i].dtype.kind in "iu" for i in node.inputs]
    return kinds.count(False) == 1 and len(kinds) > 1


def fuses(node: Node, nodes: Mapping[int, Node]) -> bool:
    """Whether XLA can compute the operands of `node` where it reads them: a loop does, and a sum."""
    op = node.op
    reduces = op.flops is None and not op.several and not op.impure and not op.structured
    return is_loop(node, nodes) or (reduces and "axis" in op.params)


def is_dear(node: Node) -> bool:
    """Whether XLA will not compute `node` twice."""
    return node.op.pointwise and node.op.rule.promote == "float"
