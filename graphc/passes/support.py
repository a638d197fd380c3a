"""Where arrays are not zero: what is computed of zeros around a part, element by element, is zeros around its result.

Gradients of parts are zeros but for that part. Functions of them that keep zeros, masks and triangles are computed on
the part, and the zeros laid around it afterwards, for sums of products to see. It is `demand`, the other way round.

    put(g, i) * A = put(g * A[i], i)

So it is with rows that are put into zeros, as gradients of picked rows are, if what is computed of them is linear: they
may be put in the same place. But where the zeros with the rows are needed for something else, too, to put rows into
zeros once more costs more than arithmetic with zeros, which XLA fuses: then this is done for sums and products alone.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, NamedTuple, final

import numpy as np

from graphc.facts import bands
from graphc.ir import Builder, Graph, Node, Symbol
from graphc.ops import OPS, Trait
from graphc.ops.dtypes import is_inexact
from graphc.ops.interpret import run_kernel
from graphc.ops.parts import POINTWISE, Box, Parts, cut, followed, sizes, whole
from graphc.passes.dce import eliminate_dead_code
from graphc.passes.demand import LESS
from graphc.passes.picks import FEW, Pick, Picks, pick_of
from graphc.rewrite.rule import held_number

_PAD, _PUT, _WHERE, _DIV = (OPS[name] for name in ("pad_zeros", "index_put", "where", "div"))
_SUMS = OPS["add"], OPS["sub"]


def shrink(graph: Graph) -> Graph:
    """`graph` with what keeps zeros computed where its operands are not zero. Rounds differently: -0 may become 0."""
    if graph.ops.isdisjoint((_PAD, _PUT)) and not any(map(bands.leaves_triangle, graph.nodes.values())):
        return graph
    writer = _Writer(graph)
    for node in graph.nodes.values():
        writer.write(node)
    if not writer.changed:
        return graph
    return eliminate_dead_code(graph.rewired(writer.builder.nodes, writer.new))


class _Rows(NamedTuple):
    """Rows that are put into zeros, where, and whether the zeros with them are needed for one thing only."""

    rows: Symbol
    pick: Pick
    once: bool


@final
class _Writer:
    def __init__(self, graph: Graph):
        self.builder = Builder.beside(graph.nodes)
        self.new: dict[int, int] = {}
        self.changed = False
        self._nodes = graph.nodes
        self._parts: dict[int, tuple[Symbol, Box]] = {}  # what has zeros around it: the rest, and where that lies
        self._rows: dict[int, _Rows] = {}
        self._uses = Counter(i for node in graph.nodes.values() for i in node.inputs) + Counter(graph.outputs)
        self._picks = Picks(self.builder, graph.nodes, self._now)
        self._keeps: dict[Any, bool] = {}

    def write(self, node: Node) -> None:
        """Append a node; on the part where it is not zero, if that is known and small."""
        builder = self.builder
        builder.where, builder.scope = node.where, node.scope
        arrays = [node, *[self._nodes[i] for i in node.inputs]]
        known = all(not x.op.several and all(type(n) is int for n in x.shape) for x in arrays)
        box = self._box(node) if known else None
        if box is not None and 0 not in sizes(box):
            if node.op is _PAD:
                self._parts[node.id] = self._now(node.inputs[0]), box
            elif node.op.view:
                self._parts[node.id] = self._computed(node, box), box
            elif math.prod(sizes(box)) <= LESS * node.size:
                part = self._computed(node, box)
                around = [(a, n - b) for (a, b), n in zip(box, node.shape, strict=True)]
                low, high = zip(*around, strict=True)
                laid = builder.language.pad_zeros(part, low=low, high=high, interior=(0,) * len(low))
                self._parts[node.id] = part, box
                self.new[node.id] = laid.id
                self.changed = True
                return
        builder.copy(node, tuple([self.new.get(i, i) for i in node.inputs]))
        if known and is_inexact(node.dtype):  # of others, what is put in one place twice may not be a sum
            self._put(node)

    def _now(self, id: int) -> Symbol:
        return self.builder.symbol(self.new.get(id, id))

    def _put(self, node: Node) -> None:
        """Note the rows that are all of a node but zeros; those that are computed of others are put in its place."""
        if node.op is _PUT and node.params["accumulate"]:
            zeros, pick = held_number(node.inputs[0], self._nodes) == 0, pick_of(node, self._nodes)
            if zeros and pick is not None and pick.share(node.shape) <= FEW:
                self._rows[node.id] = _Rows(self._now(node.inputs[1]), pick, self._uses[node.id] == 1)
        found = self._put_through(node) if self._rows else None
        if isinstance(found, Symbol):
            self.new[node.id] = found.id
        elif found is not None:
            self._rows[node.id] = found._replace(once=found.once and self._uses[node.id] == 1)
            if node.op.pointwise and not found.once:
                return
            self.new[node.id] = self._picks.laid(found.rows, found.pick, node.shape).id
        self.changed = self.changed or found is not None

    def _put_through(self, node: Node) -> Symbol | _Rows | None:
        """The rows of a node that are computed of those of its operands; or all of it."""
        op, known = node.op, [self._rows.get(i) for i in node.inputs]
        both = [each for each in known if each is not None]
        if op in _SUMS and len(both) == 2:
            a, b = both
            total = self.builder.emit(op, [a.rows, b.rows], node.params)
            return _Rows(total, a.pick, a.once and b.once) if a.pick == b.pick else None
        for k, each in enumerate(known):
            if each is None or not self._is_linear(node, k):
                continue
            rows, pick, once = each
            ways = [pick._replace(after=after) for after in range(node.aval.ndim - len(pick.places) + 1)]
            for own in (*ways, pick._replace(places=pick.places[::-1])):
                transfer = self._picks.through(node, own)
                if transfer is not None and transfer.picks[k] == pick and own.share(node.shape) <= FEW:
                    taken = [*map(self._picks.taken, node.inputs, transfer.picks)]
                    return _Rows(transfer.make(*taken[:k], rows, *taken[k + 1 :]), own, once)
            found = self._picks.summed(node, k, rows, pick)
            if found is not None:
                return found if isinstance(found, Symbol) else _Rows(*found, once)
        return None

    def _is_linear(self, node: Node, k: int) -> bool:
        """Whether a node is linear in its operand number k."""
        op = node.op
        if op is _WHERE:
            return k > 0 and held_number(node.inputs[3 - k], self._nodes) == 0
        alone = op is _DIV or (bool(op.traits & Trait.LINEAR) and len(node.inputs) == 1)
        return op.bilinear or (k == 0 and alone)

    def _box(self, node: Node) -> Box | None:
        """Around which a node is zero; None where that is not known."""
        op = node.op
        if op is _PAD:
            low, high, interior = (node.params[name] for name in ("low", "high", "interior"))
            if any(interior) or min((*low, *high), default=0) < 0:
                return None
            return tuple([(a, n - b) for a, b, n in zip(low, high, node.shape, strict=True)])
        known = [self._zeros_around(i, node) for i in node.inputs]
        if bands.leaves_triangle(node):
            return self._of_triangle(node, known[0] or whole(node.shape))
        if all(box is None for box in known):
            return None
        if op.parts is not None and op.traits & Trait.LINEAR and len(known) == 1 and not op.pointwise:
            return self._moved(node, known[0])
        if op is _WHERE:
            return _around(known[1], known[2])
        if op.pointwise and op.bilinear and len(known) == 2:
            return _within(known[0] or whole(node.shape), known[1] or whole(node.shape))
        return known[0] if op.pointwise and len(known) == 1 and self._keeps_zeros(node) else None

    def _zeros_around(self, id: int, node: Node) -> Box | None:
        """The box of an operand in the shape of the result; empty for zeros."""
        shape, wanted = self._nodes[id].shape, node.shape
        if id in self._parts:
            box = self._parts[id][1]
            if node.op.view or not node.op.pointwise:
                return box
            lead = len(wanted) - len(shape)
            if all(n == m for n, m in zip(shape, wanted[lead:], strict=True)):
                return (*[(0, n) for n in wanted[:lead]], *box)
            return None
        nothing = node.op is _WHERE and held_number(id, self._nodes) == 0
        return tuple([(0, 0) for _ in wanted]) if nothing else None

    def _moved(self, node: Node, box: Box | None) -> Box | None:
        """Where a box of the operand of a linear op is in the result; None where it is computed of more than that."""
        assert box is not None and node.op.parts is not None
        shape, found, left = self._nodes[node.inputs[0]].shape, [*whole(node.shape)], {*range(len(box))}
        for axis, n in enumerate(node.shape):
            there = followed(node.op.parts, axis, node.shape, shape, node.params) if n > 1 else None
            if there is not None:
                found[axis] = box[there]
                left.discard(there)
        return tuple(found) if all(box[k] == (0, shape[k]) for k in left) else None

    def _of_triangle(self, node: Node, box: Box) -> Box | None:
        """The part of a box in which a triangle is not zero."""
        below, above = bands.left_by(node)
        (top, bottom), (left, right) = box[-2:]
        top, right = max(top, left - above), min(right, bottom + above)
        left, bottom = max(left, top - below), min(bottom, right + below)
        own = *box[:-2], (top, bottom), (left, right)
        return own if top < bottom and left < right and own != whole(node.shape) else None

    def _is_all_of_triangle(self, node: Node, box: Box) -> bool:
        """Whether all places of a box belong to a triangle."""
        below, above = bands.left_by(node)
        (top, bottom), (left, right) = box[-2:]
        return right - 1 - top <= above and bottom - 1 - left <= below

    def _keeps_zeros(self, node: Node) -> bool:
        """Whether a function of one array is zero at zero."""
        dtype = self._nodes[node.inputs[0]].dtype
        key = node.key(()), dtype
        if key not in self._keeps:
            with np.errstate(all="ignore"):
                at_zero = run_kernel(node.op, [np.zeros((), dtype)], node.params)
            self._keeps[key] = node.check is None and not node.op.impure and not np.any(at_zero)
        return self._keeps[key]

    def _computed(self, node: Node, box: Box) -> Symbol:
        parts: Parts = POINTWISE if node.op.pointwise else node.op.parts  # pyright: ignore[reportAssignmentType]
        shapes = [self._nodes[i].shape for i in node.inputs]
        given = [
            self._read(i, parts.reads(box, shape, node.params)) for i, shape in zip(node.inputs, shapes, strict=True)
        ]
        F = self.builder.language
        if bands.leaves_triangle(node) and self._is_all_of_triangle(node, box):
            return given[0]
        if parts.make is not None:
            return parts.make(F, *given, box, shapes[0], node.params)
        return self.builder.emit(node.op, given, node.params)

    def _read(self, id: int, box: Box) -> Symbol:
        """A box of an operand: out of the part of it that is not zero, if it has no zeros."""
        found, there = self._parts.get(id) or (self._now(id), whole(self._nodes[id].shape))
        if _within(box, there) != box:
            found, there = self._now(id), whole(self._nodes[id].shape)
        return cut(self.builder.language, found, box, there)


def _within(a: Box, b: Box) -> Box:
    """What two boxes have in common."""
    return tuple([(max(p, r), max(min(q, s), max(p, r))) for (p, q), (r, s) in zip(a, b, strict=True)])


def _around(a: Box | None, b: Box | None) -> Box | None:
    """The smallest box with both."""
    if a is None or b is None:
        return None
    if 0 in sizes(a) or 0 in sizes(b):
        return a if 0 in sizes(b) else b
    return tuple([(min(p, r), max(q, s)) for (p, q), (r, s) in zip(a, b, strict=True)])
