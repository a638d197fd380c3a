"""Long sums, which reverse mode makes of whatever is used many times, with fewer and larger terms.

Terms that fill different places, the gradients of slices, are laid side by side: pad(a) + pad(b) = cat(a, b). A sum of
products over the steps of an unrolled loop is one product over rows and steps: sum_t A_t^T B_t = A^T B for the A_t, and
the B_t, below each other; what `batching` does for scans.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import NamedTuple, final

from graphc.ir import Builder, Graph, Node, Symbol, rename
from graphc.normal.gate import adds_up
from graphc.normal.layout import ENOUGH
from graphc.ops import OPS
from graphc.ops.dtypes import is_inexact
from graphc.passes.dce import eliminate_dead_code
from graphc.passes.products import MANY, row_product
from graphc.rewrite.cost import operations

_ADD, _PAD = OPS["add"], OPS["pad_zeros"]


def join_pads(graph: Graph) -> Graph:
    """`graph` with sums of pads as concatenations. Rounds differently."""
    if sum(node.op is _PAD for node in graph.nodes.values()) < 2:
        return graph
    return _shortened(graph, [(root, terms, [], _pieces(graph, terms)) for root, terms in trees_of_sums(graph)])


def shorten_sums(graph: Graph) -> Graph:
    """`graph` with sums of pads as concatenations, and sums of many small products as one. Rounds differently."""
    sums = trees_of_sums(graph)
    return _shortened(graph, [(root, terms, _products(graph, terms), _pieces(graph, terms)) for root, terms in sums])


def _shortened(graph: Graph, plans: list[tuple[int, list[int], list[_Products], list[_Pieces]]]) -> Graph:
    stacked = {group.b for _, _, products, _ in plans for group in products if group.a}
    chosen = {
        root: (terms, [g for g in products if g.a or g.b in stacked], pieces) for root, terms, products, pieces in plans
    }
    chosen = {root: plan for root, plan in chosen.items() if plan[1] or plan[2]}
    if not chosen:
        return graph
    writer = _Writer(graph)
    for node in graph.nodes.values():
        writer.write(node, chosen.get(node.id))
    return eliminate_dead_code(graph.replace(writer.builder.nodes, rename(graph.result, writer.new)))


def trees_of_sums(graph: Graph) -> Iterator[tuple[int, list[int]]]:
    """(root, terms) of each tree of additions of arrays of a shape, and numbers, whose parts nobody else reads."""
    nodes = graph.nodes
    uses = graph.uses()
    inner = {
        i
        for node in nodes.values()
        if node.op is _ADD
        for i in node.inputs
        if nodes[i].op is _ADD and uses[i] == 1 and nodes[i].aval == node.aval
    }
    for root, node in nodes.items():
        if node.op is not _ADD or root in inner:
            continue
        terms: list[int] = []
        stack = list(reversed(node.inputs))
        while stack:
            id = stack.pop()
            if id in inner:
                stack.extend(reversed(nodes[id].inputs))
            else:
                terms.append(id)
        if all(nodes[id].dtype == node.dtype and nodes[id].shape in ((), node.shape) for id in terms):
            yield root, terms


class _Products(NamedTuple):
    """Terms that are A_t^T B_t; or, without A, sums of the rows of B_t."""

    terms: tuple[int, ...]
    a: tuple[int, ...]
    b: tuple[int, ...]


def _products(graph: Graph, terms: list[int]) -> list[_Products]:
    groups: dict[object, list[tuple[int, int | None, int]]] = defaultdict(list)
    for id in terms:
        found = row_product(graph.nodes, id)
        if found is None:
            continue
        b = graph.nodes[found.b].aval
        if found.a is None or b.size < MANY * b.shape[-1]:
            groups[found.a and graph.nodes[found.a].aval, b].append((id, found.a, found.b))
    columns = [tuple(zip(*group, strict=True)) for group in groups.values() if len(group) >= ENOUGH]
    return [_Products(ids, a if a[0] is not None else (), b) for ids, a, b in columns]


class _Pieces(NamedTuple):
    """Terms that are pads of pieces which lie one after the other along `axis`, with zeros before and after them."""

    terms: tuple[int, ...]
    axis: int
    before: int
    after: int


def _pieces(graph: Graph, terms: list[int]) -> list[_Pieces]:
    by_axis: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for id in terms:
        node = graph.nodes[id]
        if node.op is _PAD and not any(node.params["interior"]):
            low, high = node.params["low"], node.params["high"]
            axes = [k for k, ends in enumerate(zip(low, high, strict=True)) if any(ends)]
            if len(axes) == 1 and min(low[axes[0]], high[axes[0]]) >= 0:
                by_axis[axes[0]].append((low[axes[0]], node.shape[axes[0]] - high[axes[0]], id))
    found: list[_Pieces] = []
    for axis, places in by_axis.items():
        # steps that read a slice several times have several pieces for each place: a run of each
        runs: dict[int, list[tuple[int, list[int]]]] = defaultdict(list)  # by where they end: (start, terms)
        for start, end, id in sorted(places):
            run = runs[start].pop(0) if runs[start] else (start, [])
            run[1].append(id)
            runs[end].append(run)
        for end, ended in runs.items():
            for start, run in ended:
                if len(run) > 1:
                    found.append(_Pieces(tuple(run), axis, start, graph.nodes[run[0]].shape[axis] - end))
    return found


@final
class _Writer:
    """The new graph, node by node."""

    def __init__(self, graph: Graph):
        self.builder = Builder.beside(graph.nodes)
        self.new: dict[int, int] = {id: id for id in graph.nodes}
        self._old, self._users, self._outputs = graph.nodes, graph.users(), frozenset(graph.outputs)
        self._stacks: dict[tuple[int, ...], Symbol] = {}

    def write(self, node: Node, plan: tuple[list[int], list[_Products], list[_Pieces]] | None) -> None:
        """Add `node`, or the sum that it is the root of as `plan` says."""
        builder = self.builder
        if plan is None:
            builder.nodes[node.id] = node.on(tuple([self.new[i] for i in node.inputs]))
            return
        builder.where, builder.scope = node.where, node.scope
        terms, products, pieces = plan
        left = Counter(terms)  # a sum may have the same term twice
        left.subtract(id for group in (*products, *pieces) for id in group.terms)
        parts = [self._symbol(id) for id in left.elements()]
        parts += [self._product(group) for group in products]
        parts += [self._joined(group, self._is_summed(node.id)) for group in pieces]
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        self.new[node.id] = total.id

    def _is_summed(self, id: int) -> bool:
        """Whether a node is read by sums of several alone: to +0, with which they begin, -0 is +0."""
        users = [] if id in self._outputs else [self._old[k] for k in self._users[id]]
        return bool(users) and all(self._is_summed(n.id) if n.op.view else self._adds_up(n) for n in users)

    def _adds_up(self, node: Node) -> bool:
        return adds_up(node) and operations(node, self._old) > 2 * node.size

    def _symbol(self, id: int) -> Symbol:
        return self.builder.symbol(self.new[id])

    def _stack(self, ids: tuple[int, ...], width: int) -> Symbol:
        """Matrices below each other, or vectors that are one row each."""
        if ids not in self._stacks:
            F, rows = self.builder.language, [self._symbol(id) for id in ids]
            whole = F.cat(*rows, axis=0)
            self._stacks[ids] = F.reshape(whole, shape=(whole.aval.size // width, width))
        return self._stacks[ids]

    def _product(self, group: _Products) -> Symbol:
        F = self.builder.language
        *height, width = self._old[group.terms[0]].shape
        rows = self._stack(group.b, width)
        if not group.a:
            return F.sum(rows, axis=(0,), keepdims=False)
        return F.matmul(F.permute(self._stack(group.a, *height), dims=(1, 0)), rows)

    def _joined(self, group: _Pieces, summed: bool) -> Symbol:
        F = self.builder.language
        pieces = [self._symbol(self._old[id].inputs[0]) for id in group.terms]
        whole = F.cat(*pieces, axis=group.axis)
        if is_inexact(whole.dtype) and not summed:
            whole = whole + 0.0  # as the zeros of the pads do: -0 becomes +0
        if not group.before and not group.after:
            return whole
        axes = range(len(whole.shape))
        low, high = (tuple(n if k == group.axis else 0 for k in axes) for n in (group.before, group.after))
        return F.pad_zeros(whole, low=low, high=high, interior=(0,) * len(axes))
