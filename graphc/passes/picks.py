"""Rows that an index picks of what is computed row by row: they are picked before, and the others not computed.

    tanh(A)[i] = tanh(A[i])        put(g, i) * A = put(g * A[i], i)

The second is its gradient, where zeros are but at the rows that have been picked. Of an extreme whose place nobody asks
for, as `x.max(1).values`, the place is not looked for: it is `demand` for what has no box.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, final

from graphc.facts.held import Held
from graphc.ir import Builder, Graph, Node, Symbol
from graphc.ir.structure import ITEM
from graphc.ops import OPS
from graphc.ops.parts import whole
from graphc.passes.replacing import replaced

_INDEX, _PUT, _MUL, _SUM = OPS["index"], OPS["index_put"], OPS["mul"], OPS["sum"]
ALONE = {  # what an extreme and its place are, if only one of the two is read
    OPS["max_dim"]: (OPS["amax"], OPS["argmax"]),
    OPS["min_dim"]: (OPS["amin"], OPS["argmin"]),
}
LESS = 0.5  # of the rows, at most, for others not to be computed


class _Pick(NamedTuple):
    """Rows along an axis, counted from the last one, by the node that says which."""

    places: int
    axis: int


def pick_first(graph: Graph) -> Graph:
    """`graph` with such rows picked first, and extremes without places. Sums of gradients round differently."""
    if not ALONE.keys().isdisjoint(graph.ops):
        graph = _extremes(graph)
    if _PUT in graph.ops:
        builder = Builder.beside(graph.nodes)
        graph = replaced(graph, builder, _Puts(builder).instead)
    if _INDEX not in graph.ops:
        return graph
    only = _only_picked(graph)
    if not only:
        return graph
    builder = Builder.beside(graph.nodes)
    return replaced(graph, builder, _Picked(graph, builder, only).instead)


def _extremes(graph: Graph) -> Graph:
    users, builder = graph.users(), Builder.beside(graph.nodes)

    def instead(node: Node) -> Symbol | None:
        maker = builder.nodes[node.inputs[0]] if node.op is ITEM else None
        if maker is None or maker.op not in ALONE or not builder.nodes[maker.inputs[0]].aval.ndim:
            return None
        k, reads = node.params["index"], [graph.nodes[i] for i in users[graph.nodes[node.id].inputs[0]]]
        if any(n.params["index"] != k for n in reads):
            return None
        op, axis = ALONE[maker.op][k], maker.params["axis"]
        params = {"axis": axis if k else (axis,), "keepdims": maker.params["keepdims"]}
        return builder.emit(op, [builder.symbol(maker.inputs[0])], params)

    return replaced(graph, builder, instead)


def _pick_of(node: Node, nodes: Mapping[int, Node]) -> _Pick | None:
    """What an index picks, or where one puts rows, if that is along one axis, by one row of numbers."""
    spec, index = node.params["spec"], nodes[node.inputs[-1]]
    of = nodes[node.inputs[0]]
    chosen = [axis for axis, k in enumerate(spec) if k is not None]
    if len(chosen) != 1 or len(node.inputs) != (2 if node.op is _INDEX else 3) or index.aval.ndim != 1:
        return None
    shapes = (*of.shape, *node.shape, *index.shape)
    if index.dtype.kind not in "iu" or not all(type(n) is int for n in shapes):
        return None
    few = index.size <= LESS * of.shape[chosen[0]]
    return _Pick(index.id, chosen[0] - of.aval.ndim) if few else None


def _spec(pick: _Pick, rank: int) -> tuple[int | None, ...]:
    return tuple([0 if k == rank + pick.axis else None for k in range(rank + pick.axis + 1)])


@final
class _Puts:
    """Products with rows that are put into zeros, and sums of such rows."""

    def __init__(self, builder: Builder):
        self._builder = builder
        self._held = Held(builder.nodes)

    def instead(self, node: Node) -> Symbol | None:
        """The same as a node, of the rows alone."""
        builder = self._builder
        F = builder.language
        for k, id in enumerate(node.inputs) if node.op is _MUL or node.op is _SUM else ():
            put = builder.nodes[id]
            pick = _pick_of(put, builder.nodes) if put.op is _PUT and put.params["accumulate"] else None
            zeros = None if pick is None else self._held.value(put.inputs[0])
            if pick is None or zeros is None or zeros.any():
                continue
            rows, places = (builder.symbol(i) for i in put.inputs[1:])
            if node.op is _MUL and put.shape == node.shape:
                made = rows * _rows(builder, builder.symbol(node.inputs[1 - k]), put, pick)
            elif node.op is _SUM and node.params["keepdims"] and put.aval.ndim + pick.axis not in node.params["axis"]:
                made = builder.emit(node.op, [rows], node.params)
            else:
                continue
            return builder.emit(_PUT, [F.full(shape=node.shape, value=0, dtype=node.dtype), made, places], put.params)
        return None


def _rows(builder: Builder, x: Symbol, of: Node, pick: _Pick) -> Symbol:
    """What is picked of an operand of a node, which may be the same for all rows."""
    if len(x.shape) < -pick.axis or x.shape[pick.axis] != of.shape[pick.axis] or x.shape[pick.axis] == 1:
        return x
    return builder.emit(_INDEX, [x, builder.symbol(pick.places)], {"spec": _spec(pick, len(x.shape))})


def _is_by_rows(node: Node, axis: int) -> bool:
    """Whether a row of a node along an axis is computed of those rows of its operands."""
    op, rank = node.op, node.aval.ndim
    if op.several or node.check is not None or op.impure or op.structured or rank < -axis or not node.inputs:
        return False
    if op.pointwise:
        return True
    if op.parts is None or op.parts.make is not None or op.view or node.shape[axis] < 2:
        return False
    box = [*whole(node.shape)]
    box[axis] = (1, 2)
    row = tuple(box)
    return op.parts.least(row, node.shape, node.params) == row == op.parts.reads(row, node.shape, node.params)


def _only_picked(graph: Graph) -> dict[int, _Pick]:
    """The nodes that are computed row by row, and read in these rows only."""
    nodes, users = graph.nodes, graph.users()
    only: dict[int, _Pick] = {}
    for id, node in reversed([*nodes.items()]):
        if id in graph.outputs or node.op.several or not users.get(id):
            continue
        found: set[_Pick | None] = set()
        for k in users[id]:
            reader = nodes[k]
            picks = reader.op is _INDEX and reader.inputs[0] == id and id not in reader.inputs[1:]
            found.add(_pick_of(reader, nodes) if picks else only.get(k))
            if not picks and k in only and reader.shape != node.shape:
                found.add(None)
        (pick, *others) = found
        if pick is not None and not others and _is_by_rows(node, pick.axis):
            only[id] = pick
    return only


@final
class _Picked:
    def __init__(self, graph: Graph, builder: Builder, only: Mapping[int, _Pick]):
        self._graph = graph
        self._builder = builder
        self._only = only
        self._rows: dict[int, Symbol] = {}

    def instead(self, node: Node) -> Symbol | None:
        """What an index picks, computed of what it picks of the operands."""
        first = self._graph.nodes[node.id].inputs[0] if node.op is _INDEX else -1
        if first not in self._only:
            return None
        stack = [first]
        while stack:
            id = stack[-1]
            left = [i for i in self._graph.nodes[id].inputs if i in self._only and i not in self._rows]
            if id not in self._rows and left:
                stack += left
                continue
            self._rows[stack.pop()] = self._computed(self._graph.nodes[id], self._only[id])
        return self._rows[first]

    def _computed(self, old: Node, pick: _Pick) -> Symbol:
        builder = self._builder
        now = builder.nodes[old.id].inputs
        pairs = zip(now, old.inputs, strict=True)
        given = [self._rows[k] if k in self._rows else _rows(builder, builder.symbol(i), old, pick) for i, k in pairs]
        return builder.emit(old.op, given, old.params)
