"""Places of an array that are read one by one: rows that an index picks, single elements, diagonals of matrices.

Beside a box (`graphc.ops.parts`), it is what a part of an array can be. What a picked part of a result needs of the
operands follows from what the op says of boxes: one place for one place, along the axes that are picked.

    tanh(A)[i] = tanh(A[i])        diag(A * b) = diag(A) * b        diag(inv(L)) = 1 / diag(L)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, final

import numpy as np

from graphc.facts.bands import leaves_triangle, left_by
from graphc.facts.known import Facts
from graphc.ir import Builder, Node, Symbol
from graphc.ir.matrices import transposes
from graphc.ops import OPS
from graphc.ops.dtypes import INT64
from graphc.ops.parts import axes, followed, whole
from graphc.ops.solving import singular_message
from graphc.rewrite.rule import held_number

_INDEX, _SLICE, _RESHAPE, _PERMUTE, _MATMUL, _SUM = (
    OPS[name] for name in ("index", "slice", "reshape", "permute", "matmul", "sum")
)
FEW = 0.5  # of the rows, at most, for others not to be computed
GATHERED = 8  # times what an element that is computed takes, one takes that is gathered by itself


class Pick(NamedTuple):
    """Some axes of an array that follow each other, read together at `size` places: they are one axis of the part.

    after   how many axes come after them
    places  for each of the axes where it is read: the node of a list, or numbers in steps of one
    """

    after: int
    places: tuple[int | range, ...]
    size: int

    def axes(self, rank: int) -> range:
        """Those of an array of so many dims."""
        return range(rank - self.after - len(self.places), rank - self.after)

    def share(self, shape: Sequence[int]) -> float:
        """How much of an array is read, in the time that it takes; more than all of what is the same along an axis."""
        sizes = [shape[k] if k >= 0 else 1 for k in self.axes(len(shape))]
        gathered = len(self.places) > 1 and not all(isinstance(p, range) for p in self.places)
        return math.inf if min(sizes) < 2 else self.size * (GATHERED if gathered else 1) / math.prod(sizes)


class Transfer(NamedTuple):
    """How a picked part is computed: what is picked of operands (None: all is read), and what is made of that."""

    picks: tuple[Pick | None, ...]
    make: Callable[..., Symbol]


def picked(node: Node, nodes: Mapping[int, Node]) -> tuple[int, Pick] | None:
    """The array of which a node reads places, and which."""
    if node.op is _INDEX:
        pick = pick_of(node, nodes)
        return None if pick is None else (node.inputs[0], pick)
    return _diagonal_of(node, nodes) if node.op is _SLICE else None


def pick_of(node: Node, nodes: Mapping[int, Node]) -> Pick | None:
    """Where an index reads, or puts: by a list for each of some axes that follow each other."""
    spec, of = node.params["spec"], nodes[node.inputs[0]]
    axes = [axis for axis, k in enumerate(spec) if k is not None]
    lists = [nodes[i] for i in node.inputs[1 if node.op is _INDEX else 2 :]]
    if axes != [*range(axes[0], axes[-1] + 1)] or any(x.aval.ndim != 1 or x.dtype.kind not in "iu" for x in lists):
        return None
    shapes = [of.shape, node.shape, *[x.shape for x in lists]]
    if not all(type(n) is int for shape in shapes for n in shape) or len({x.shape for x in lists}) > 1:
        return None
    return Pick(of.aval.ndim - 1 - axes[-1], tuple([lists[spec[k]].id for k in axes]), lists[0].size)


def _diagonal_of(node: Node, nodes: Mapping[int, Node]) -> tuple[int, Pick] | None:
    """The matrix of whose elements in a row a slice reads a diagonal."""
    if node.aval.ndim != 1:
        return None
    below = nodes[node.inputs[0]]
    while below.op is _RESHAPE or (below.op is _PERMUTE and below.params["dims"] == (*range(below.aval.ndim),)):
        below = nodes[below.inputs[0]]
    if below.aval.ndim != 2 or not all(type(n) is int for n in (*below.shape, *node.shape)):
        return None
    (start,), (step,), (count,), m = node.params["start"], node.params["step"], node.shape, below.shape[1]
    if not m or step != m + 1 or nodes[node.inputs[0]].shape != (below.size,):
        return None
    row, column = divmod(start, m)
    line = Pick(0, (range(row, row + count), range(column, column + count)), count)
    return (below.id, line) if column + count <= m else None


def _ranges(pick: Pick) -> bool:
    return all(isinstance(p, range) for p in pick.places)


@final
class Picks:
    """Takes places of arrays, of which it is known how they are made."""

    def __init__(self, builder: Builder, nodes: Mapping[int, Node], now: Callable[[int], Symbol]):
        self._builder = builder
        self._nodes = nodes
        self._now = now  # what has been written for a node
        self._facts = Facts(nodes)

    def taken(self, id: int, pick: Pick | None) -> Symbol:
        """The places of an operand, which may be the same along some of the axes; or all of it."""
        F, builder, x = self._builder.language, self._builder, self._now(id)
        if pick is None:
            return x
        held = self._facts.held.value(id) if _ranges(pick) else None
        own = [k for k in pick.axes(len(x.shape)) if k >= 0]
        kept = [k for k in own if x.shape[k] != 1]
        places = [pick.places[k - pick.axes(len(x.shape)).start] for k in kept]
        if len(kept) < len(own) and len(own) > 1:  # all but one of these axes are dropped
            dropped = [k for k in own if k not in kept][: None if kept else -1]
            x = F.reshape(x, shape=tuple([n for k, n in enumerate(x.shape) if k not in dropped]))
        if not places:
            return x
        first = len(x.shape) - pick.after - len(places)
        if not _ranges(pick):
            spec = (*[None] * first, *range(len(places)))
            return F.index(x, *self._lists(places), spec=spec)
        starts = [p.start for p in places if isinstance(p, range)]
        if held is not None and len(places) > 1:
            line = np.diagonal(held, starts[1] - starts[0])[min(starts) :][: pick.size]
            if line.size and (line == line[0]).all():
                return F.full(shape=line.shape, value=line[0].item(), dtype=x.dtype)
            return builder.constant(line.copy())
        if len(places) > 1:
            x = F.diagonal(x, offset=starts[1] - starts[0], dim1=0, dim2=1)
        start = min(starts)
        if (start, pick.size) == (0, x.shape[0]):
            return x
        return F.slice(x, start=(start,), stop=(start + pick.size,), step=(1,))

    def laid(self, part: Symbol, pick: Pick, shape: Sequence[int]) -> Symbol:
        """Zeros but for a part, which is added up where places are equal."""
        F, axes = self._builder.language, pick.axes(len(shape))
        spec = (*[None] * axes.start, *range(len(axes)))
        zeros = F.full(shape=tuple(shape), value=0, dtype=part.dtype)
        return F.index_put(zeros, part, *self._lists(pick.places), spec=spec, accumulate=True)

    def _lists(self, places: Sequence[int | range]) -> list[Symbol]:
        return [self._now(p) for p in places if not isinstance(p, range)]

    def through(self, node: Node, pick: Pick) -> Transfer | None:
        """How places of a node are computed of places of its operands; None if they are not."""
        op = node.op
        if op.several or op.impure or op.structured or not node.inputs or (node.check is not None and not op.inverts):
            return None
        if not all(type(n) is int for n in node.shape):
            return None
        if op.pointwise:
            return Transfer((pick,) * len(node.inputs), self._same(node))
        if op is _MATMUL and (found := self._of_product(node, pick)) is not None:
            return found
        if len(pick.places) == 1:
            lines = pick.after < 2 and leaves_triangle(node)
            return self._of_triangle(node, pick) if lines else self._one_by_one(node, pick)
        return self._of_matrix(node, pick) if node.aval.ndim == 2 else None

    def _same(self, node: Node) -> Callable[..., Symbol]:
        return lambda *given: self._builder.emit(node.op, given, node.params)

    def _of_product(self, node: Node, pick: Pick) -> Transfer | None:
        """Rows, columns or elements of a product of matrices, of stacks of them, or with a vector; some of a stack."""
        F, ranks = self._builder.language, [self._nodes[i].aval.ndim for i in node.inputs]
        if _ranges(pick) or len(pick.places) > 2 or (ranks[0] == 1 and pick.after):
            return None
        if len(pick.places) == 2:
            left, right = (pick._replace(after=1 - k, places=pick.places[k : k + 1]) for k in (0, 1))
            make = lambda x, y: F.sum(x * F.permute(y, dims=(1, 0)), axis=(1,), keepdims=False)
            return Transfer((left, right), make) if ranks == [2, 2] else None
        after = pick.after + (ranks[1] == 1)  # as if a vector were a matrix
        if after < 2:
            return Transfer((pick._replace(after=1), None) if after else (None, pick), self._same(node))
        return Transfer((pick, pick), self._same(node)) if min(ranks) > 1 else None

    def summed(self, node: Node, k: int, part: Symbol, pick: Pick) -> Symbol | tuple[Symbol, Pick] | None:
        """What adds up an axis along which its operand number k is a part in zeros: all of it, or again a part."""
        rank = len(part.shape)
        if node.op is _SUM and len(pick.places) == 1 and pick.axes(rank).start in axes(node.params, rank):
            return self._same(node)(part)
        ranks = {self._nodes[i].aval.ndim for i in node.inputs}
        if node.op is not _MATMUL or min(ranks) < 2 or (len(pick.places) > 1 and ranks != {2}):
            return None
        F, other = self._builder.language, node.inputs[1 - k]
        across = pick._replace(after=1 - k, places=pick.places[:1] if k else pick.places[-1:])  # what is added up
        if len(pick.places) == 2:
            own = across._replace(places=pick.places[1:] if k else pick.places[:1])
            return self.taken(other, across) * (part if k else F.reshape(part, shape=(pick.size, 1))), own
        if pick.after != k:
            return None
        taken = self.taken(other, across)
        return taken @ part if k else part @ taken

    def _one_by_one(self, node: Node, pick: Pick) -> Transfer | None:
        """Of an op that computes one place along an axis of one place along an axis of its operand."""
        parts, shape = node.op.parts, self._nodes[node.inputs[0]].shape
        (axis,), box = pick.axes(node.aval.ndim), whole(node.shape)
        if parts is None or parts.fixed or len(node.inputs) > 1:
            return None
        there = followed(parts, axis, node.shape, shape, node.params)
        if there is None:
            return None
        F, make, box = self._builder.language, parts.make, (*box[:axis], (0, pick.size), *box[axis + 1 :])
        own = pick._replace(after=len(shape) - 1 - there)
        return Transfer((own,), self._same(node) if make is None else lambda x: make(F, x, box, shape, node.params))

    def _of_triangle(self, node: Node, pick: Pick) -> Transfer:
        """Rows or columns of what leaves a triangle, which may be of one number."""
        F, (below, above), n = self._builder.language, left_by(node), node.shape[-1 - pick.after]
        number = held_number(node.inputs[0], self._nodes) if node.aval.ndim == 2 else None

        def left(x: Any) -> Symbol:
            places = F.cast(self._lists(pick.places)[0], dtype=INT64)
            places = F.in_range(F.where(places < 0, places + n, places), size=n)
            across = self._builder.constant(np.arange(node.shape[pick.after - 2]), places.dtype)
            row, column = (places, across) if pick.after else (across, places)
            offsets = column - F.reshape(row, shape=(*row.shape, 1))
            ours = F.logical_and(offsets >= -below, offsets <= above)
            return F.where(ours, x, F.full(shape=(), value=0, dtype=node.dtype))

        if number is None:
            return Transfer((pick,), left)
        return Transfer((), lambda: left(F.full(shape=(), value=number, dtype=node.dtype)))

    def _of_matrix(self, node: Node, pick: Pick) -> Transfer | None:
        """Of what turns a matrix, leaves a triangle, inverts or multiplies triangles."""
        F, facts = self._builder.language, self._facts
        if transposes(node):
            return Transfer((pick._replace(places=pick.places[::-1]),), lambda x: x)
        row, column = pick.places
        if not isinstance(row, range) or not isinstance(column, range):
            return None
        offset = column.start - row.start
        if leaves_triangle(node):
            below, above = left_by(node)
            if -below <= offset <= above:
                return Transfer((pick,), lambda x: x)
            return Transfer((), lambda: F.full(shape=(pick.size,), value=0, dtype=node.dtype))
        if offset:
            return None
        if node.op.inverts and min(facts.band(node.inputs[0])) <= 0:
            return Transfer((pick,), lambda x: self._reciprocal(node, x))
        if node.op is _MATMUL and all(self._nodes[i].shape == node.shape for i in node.inputs):
            a, b = (facts.band(i) for i in node.inputs)
            if max(a.above, b.above) <= 0 or max(a.below, b.below) <= 0:
                return Transfer((pick, pick), lambda x, y: x * y)
        return None

    def _reciprocal(self, node: Node, line: Symbol) -> Symbol:
        F = self._builder.language
        if node.params["checked"]:
            line = F.regular(line, F.ne(line, 0), message=singular_message(node.params["asked"]))
        return F.reciprocal(line)
