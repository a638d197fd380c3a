"""A graph written anew, with loops in place of the steps that they repeat.

What a loop returns is added to it as it is read: the last value of a carry, or all values, of which a row is one. What
is read of all steps, forwards or backwards, is one array: the xs of a loop, or what is laid side by side. Slices that
follow each other are the array that they are of.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple, final

from graphc.ir import Builder, Graph, Node, Symbol, rename
from graphc.ir.structure import SCAN
from graphc.ops import OPS
from graphc.ops.aval import Aval
from graphc.passes.loops import Column, Loop
from graphc.passes.repeats import FEWEST, views

_CAT, _SLICE = OPS["cat"], OPS["slice"]


def with_loops(graph: Graph, loops: Sequence[Loop], optimize: Callable[[Graph], Graph]) -> Graph:
    """`graph` with `loops` in place of their steps; `optimize` is given the bodies."""
    writer = _Writer(graph, loops)
    writer.write(optimize)
    return graph.replace(writer.builder.nodes, rename(graph.result, writer.new))


@final
class Written:
    """A loop in the new graph. What it returns is added as it is asked for."""

    def __init__(self, builder: Builder, loop: Loop, operands: Sequence[Symbol], reverse: bool):
        self.loop = loop
        self.reverse = reverse
        self._builder = builder
        self._ys: dict[int, Symbol] = {}  # id in the body -> all its values
        self._lasts: dict[int, Symbol] = {}
        self._returned: list[Symbol] = []
        self._node = Node(builder.next_id, SCAN, tuple([s.id for s in operands]),
                          {}, tuple([s.aval for s in loop.ends]), builder.where, builder.scope)  # fmt: skip
        builder.nodes[self._node.id] = self._node
        builder.next_id += 1

    def all(self, symbol: Symbol) -> Symbol:
        """The values of `symbol` of the body in all steps, in the order of memory."""
        if symbol.id not in self._ys:
            node = self._builder.nodes[self._node.id]
            results = (*node.results, Aval((self.loop.count, *symbol.shape), symbol.dtype))
            self._returned.append(symbol)
            self._builder.nodes[node.id] = Node(
                node.id, SCAN, node.inputs, node.params, results, node.where, node.scope
            )
            self._ys[symbol.id] = self._builder.item(node.id, len(results) - 1)
        return self._ys[symbol.id]

    def index(self, step: int) -> int:
        """Where the values of a step are in memory."""
        return self.loop.count - 1 - step if self.reverse else step

    def is_last(self, step: int, place: int) -> bool:
        """Whether the loop ends with the value of operation `place` in this step."""
        return step == self.loop.count - 1 and place in self.loop.last

    def row(self, step: int, place: int) -> Symbol:
        """The value of operation `place` in one step."""
        loop, F = self.loop, self._builder.language
        if self.is_last(step, place):
            if place not in self._lasts:
                self._lasts[place] = self._builder.item(self._node.id, loop.last[place])
            return self._lasts[place]
        symbol = loop.symbols[loop.column(place)]
        return F.reshape(part(self.all(symbol), 0, self.index(step), self.index(step) + 1), shape=symbol.shape)

    def finish(self, optimize: Callable[[Graph], Graph]) -> None:
        """Give the loop its body."""
        loop, node = self.loop, self._builder.nodes[self._node.id]
        params = {
            "body": loop.body(self._returned, optimize), "consts": len(loop.consts), "carries": len(loop.carries),
            "length": loop.count, "reverse": self.reverse, "unroll": 1,
        }  # fmt: skip
        self._builder.nodes[node.id] = Node(node.id, SCAN, node.inputs, params, node.results, node.where, node.scope)


def part(x: Symbol, axis: int, start: int, stop: int) -> Symbol:
    """x[start:stop] along `axis`."""
    if (start, stop) == (0, x.shape[axis]):
        return x
    zeros, ends = [0] * len(x.shape), list(x.shape)
    zeros[axis], ends[axis] = start, stop
    return x.builder.language.slice(x, start=tuple(zeros), stop=tuple(ends), step=(1,) * len(ends))


def flipped(x: Symbol) -> Symbol:
    return x.builder.language.flip(x, axis=(0,))


def base_of(graph: Graph, id: int) -> int:
    """The node that node `id` is a view of, of a view perhaps; itself, if it is none."""
    nodes = graph.nodes
    while views(nodes[id]):
        id = nodes[id].inputs[0]
    return id


def laid_together(graph: Graph, node: Node) -> list[tuple[int, ...]]:
    """What `node` lays beside each other, those of one type together; nothing, if these are few."""
    if node.op is not _CAT:
        return []
    runs = [tuple(run) for _, run in itertools.groupby(node.inputs, lambda id: graph.nodes[id].aval)]
    return runs if max(map(len, runs)) >= FEWEST else []


class _Next(NamedTuple):
    """How one node of a column follows another: the next or the one before, among rows of a loop or along an axis; or
    it is the same."""

    axis: int
    ahead: bool


_ROWS = -1
_SAME = _Next(-2, True)


@final
class _Writer:
    """The new graph, node by node."""

    def __init__(self, graph: Graph, loops: Sequence[Loop]):
        self.graph = graph
        self.builder = Builder.beside(graph.nodes)
        self.new: dict[int, int] = {}
        self._starts = {loop.repeat.steps[0][0]: loop for loop in loops}
        self._inside = {id for loop in loops for id in loop.place}
        self._lazy = set(self._inside)  # and views of it, which are written when they are read
        self._rows: dict[int, tuple[Written, int, int]] = {}
        self._known: dict[Column, tuple[Written, Symbol]] = {}
        self._stacks: dict[Column, Symbol] = {}

    def write(self, optimize: Callable[[Graph], Graph]) -> None:
        nodes = self.graph.nodes
        for id, node in nodes.items():  # operands of a loop may come after its first operation
            if not node.inputs:
                self.builder.nodes[id] = node
                self.new[id] = id
        written: list[Written] = []
        for id, node in nodes.items():
            if id in self._starts:
                written.append(self._loop(self._starts[id]))
            if views(node) and node.inputs[0] in self._lazy:
                self._lazy.add(id)
            elif id not in self._inside:
                self._write(node)
        for id in self.graph.outputs:
            self.value(id)
        for loop in written:
            loop.finish(optimize)

    def _write(self, node: Node) -> None:
        if node.id in self.new:
            return
        self.builder.where, self.builder.scope = node.where, node.scope
        joined = self._joined(node)
        if joined is None:
            self.builder.nodes[node.id] = node.on(tuple([self.value(i) for i in node.inputs]))
        self.new[node.id] = node.id if joined is None else joined.id

    def value(self, id: int) -> int:
        """The node that has the value of node `id` of the old graph, which is computed before."""
        chain: list[int] = []
        while id not in self.new and id not in self._rows:  # a view
            chain.append(id)
            id = self.graph.nodes[id].inputs[0]
        if id not in self.new:
            written, step, place = self._rows[id]
            self.new[id] = written.row(step, place).id
        for view in reversed(chain):
            self._write(self.graph.nodes[view])
        return self.new[chain[0] if chain else id]

    def symbol(self, id: int) -> Symbol:
        return self.builder.symbol(self.value(id))

    def _loop(self, loop: Loop) -> Written:
        nodes = self.graph.nodes
        votes = Counter[bool]()
        for column in loop.leaves:
            order = self._order(column)
            if order is not None:
                votes[order] += nodes[column[0]].aval.size
        reverse = votes[False] > votes[True]
        first = nodes[loop.repeat.steps[0][0]]
        self.builder.where, self.builder.scope = first.where, first.scope
        operands = [self.symbol(id) for id in (*loop.consts, *(carry.initial for carry in loop.carries))]
        operands += [self.stack(column[::-1] if reverse else column) for column in loop.leaves]
        written = Written(self.builder, loop, operands, reverse)
        self._rows |= {id: (written, *place) for id, place in loop.place.items()}
        given = {*loop.leaves, *((id,) * loop.count for id in loop.consts)}
        for column, symbol in loop.symbols.items():
            if column in given:
                continue
            self._known.setdefault(column, (written, symbol))
        return written

    def _order(self, column: Column) -> bool | None:
        """Whether the values of a column lie in memory in its order, or against it; None for neither."""
        if (found := self._stacked(column)) is not None:
            return found[1]
        follows = self._follows(column[0], column[1])
        return None if follows is None else follows.ahead

    def _stacked(self, column: Column) -> tuple[Symbol, bool] | None:
        """(all values of a column, whether in its order), if there is an array of them."""
        for ahead in (True, False):
            ordered = column if ahead else column[::-1]
            if ordered in self._stacks:
                return self._stacks[ordered], ahead
            if ordered in self._known:
                written, symbol = self._known[ordered]
                return written.all(symbol), ahead != written.reverse
        return None

    def stack(self, column: Column) -> Symbol:
        """The values of the nodes of a column, which are alike, in one array with a dimension more."""
        found = self._stacked(column)
        if found is not None:
            return found[0] if found[1] else flipped(found[0])
        pieces = self._pieces(column)
        whole = pieces[0] if len(pieces) == 1 else self.builder.language.cat(*pieces, axis=0)
        self._stacks[column] = whole
        return whole

    def _pieces(self, column: Column) -> list[Symbol]:
        """Arrays that make a column one after the other: parts of arrays that there are, and single values."""
        pieces: list[Symbol] = []
        start = 0
        while start < len(column):
            end = start + 1
            follows = self._follows(column[start], column[end]) if end < len(column) else None
            while follows is not None and end < len(column) and self._follows(column[end - 1], column[end]) == follows:
                end += 1
            pieces.append(self._piece(column[start:end], follows))
            start = end
        return pieces

    def _piece(self, column: Column, follows: _Next | None) -> Symbol:
        F = self.builder.language
        if follows in (None, _SAME):
            single = self.symbol(column[0])
            row = F.reshape(single, shape=(1, *single.shape))
            return F.broadcast_to(row, shape=(len(column), *single.shape)) if follows else row
        low, high = (column[0], column[-1]) if follows.ahead else (column[-1], column[0])
        if follows.axis == _ROWS:
            base, seen = self._seen(low)
            written, step, place = self._rows[base]
            rows = written.all(written.loop.viewed(written.loop.column(place), seen))
            start = written.index(step)
            whole = part(rows, 0, start, start + len(column))
        else:
            first, last, axis = self.graph.nodes[low], self.graph.nodes[high], follows.axis
            source = self.symbol(first.inputs[0])
            start, stop = list(first.params["start"]), list(last.params["stop"])
            low, size, count = start[axis], source.shape[axis], len(column)
            width = first.shape[axis]
            # most of an array is turned as a whole, once for all loops that read it; then its rows lie in a row
            most = axis > 0 and size % width == low % width == 0 and 2 * count * width >= size
            if most:
                start[axis], stop[axis], count = 0, size, size // width
            if any(start) or tuple(stop) != source.shape:
                source = F.slice(source, start=tuple(start), stop=tuple(stop), step=first.params["step"])
            shape = (*first.shape[:axis], count, *first.shape[axis:])
            whole = F.reshape(source, shape=shape)
            if axis:
                whole = F.permute(whole, dims=(axis, *range(axis), *range(axis + 1, len(shape))))
            if most:
                whole = part(whole, 0, low // width, low // width + len(column))
        return whole if follows.ahead else flipped(whole)

    def _seen(self, id: int) -> tuple[int, list[int]]:
        """The value of a loop that node `id` is a view of, and the views, the last one last."""
        seen: list[int] = []
        while id in self._lazy and id not in self._rows:
            seen.append(id)
            id = self.graph.nodes[id].inputs[0]
        return id, seen[::-1]

    def _follows(self, a: int, b: int) -> _Next | None:
        if a == b:
            return _SAME
        (first, through), (second, alike) = self._seen(a), self._seen(b)
        if first in self._rows and second in self._rows:
            (loop, i, k), (other, j, m) = self._rows[first], self._rows[second]
            distance = loop.index(j) - loop.index(i)
            same = loop is other and k == m and len(through) == len(alike)
            same = same and all(map(loop.loop.views_alike, zip(through, alike, strict=True)))
            return _Next(_ROWS, distance == 1) if same and abs(distance) == 1 else None
        before, after = self.graph.nodes[a], self.graph.nodes[b]
        if before.op is not _SLICE or after.op is not _SLICE or before.inputs != after.inputs:
            return None
        p, q = before.params, after.params
        if any(n != 1 for n in (*p["step"], *q["step"])):
            return None
        moved = [k for k, (i, j) in enumerate(zip(p["start"], q["start"], strict=True)) if i != j]
        if len(moved) != 1 or before.shape != after.shape:
            return None
        (axis,) = moved
        if q["start"][axis] == p["stop"][axis]:
            return _Next(axis, True)
        return _Next(axis, False) if q["stop"][axis] == p["start"][axis] else None

    def _joined(self, node: Node) -> Symbol | None:
        """`node`, if it lays values of loops beside each other, and perhaps others: these are already."""
        runs = laid_together(self.graph, node)
        if all(sum([id in self._lazy for id in run]) < FEWEST for run in runs):
            return None
        axis = node.params["axis"]
        parts = [part for run in runs for part in self._beside(run, axis)]
        return parts[0] if len(parts) == 1 else self.builder.language.cat(*parts, axis=axis)

    def _beside(self, ids: Column, axis: int) -> list[Symbol]:
        """Arrays of one type, to be laid beside each other: as one, where loops have many."""
        if sum([id in self._lazy for id in ids]) < FEWEST:
            return list(map(self.symbol, ids))
        F, first = self.builder.language, self.graph.nodes[ids[0]].shape
        whole = self.stack(ids)
        if axis:
            dims = range(1, len(whole.shape))
            whole = F.permute(whole, dims=(*dims[:axis], 0, *dims[axis:]))
        return [F.reshape(whole, shape=(*first[:axis], len(ids) * first[axis], *first[axis + 1 :]))]
