"""Products of large matrices by blocks, where that leaves work out: those of zeros, and of a half that mirrors another.

XLA's products know neither triangles nor symmetry. Measured on CPUs, products of 400 or more rows in four blocks take
three quarters of the time; smaller ones gain nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

from graphc.facts.bands import Band
from graphc.facts.known import Facts
from graphc.ir import Builder, Graph, Node, Symbol
from graphc.ir.matrices import product_letters
from graphc.ops.dtypes import is_half, is_inexact

LEAST, NARROWEST = 400, 64  # rows that are parted, and what is summed over; columns
PARTS = 4
ENOUGH = 0.8  # of the multiplications, at most


class _Read(NamedTuple):
    """A matrix that a product reads, as it is or transposed."""

    id: int
    turned: bool

    def shape(self, nodes: Mapping[int, Node]) -> tuple[int, int]:
        m, n = nodes[self.id].shape
        return (n, m) if self.turned else (m, n)

    def band(self, facts: Facts) -> Band:
        below, above = facts.band(self.id)
        return Band(above, below) if self.turned else Band(below, above)


class _Plan(NamedTuple):
    """How a product A B is computed: by which rows, or columns, of it, and from which part of what is summed over.

    mirrored  only up to the main diagonal: the rest mirrors it
    """

    a: _Read
    b: _Read
    shape: tuple[int, int]
    by_rows: bool
    cuts: list[int]
    inner: list[tuple[int, int]]
    mirrored: bool


def by_blocks(graph: Graph) -> Graph:
    """`graph` with large products of triangles, and those that are symmetric, in blocks. Rounds differently."""
    products = {id: p for id, node in graph.nodes.items() if (p := _product(node, graph.nodes)) is not None}
    if not products:
        return graph
    facts = Facts(graph.nodes)
    plans = {id: plan for id, (a, b) in products.items() if (plan := _plan(id, a, b, facts, graph.nodes)) is not None}
    if not plans:
        return graph
    builder = Builder.beside(graph.nodes)
    new: dict[int, int] = {}
    for id, node in graph.nodes.items():
        plan = plans.get(id)
        if plan is None:
            builder.nodes[id] = node.on(tuple([new.get(i, i) for i in node.inputs]))
        else:
            builder.where, builder.scope = node.where, node.scope
            new[id] = _written(builder, plan, new).id
    return graph.rewired(builder.nodes, new)


def _product(node: Node, nodes: Mapping[int, Node]) -> tuple[_Read, _Read] | None:
    """The matrices A and B that a node is the product of, if it is a large one."""
    letters = product_letters(node, nodes)
    if letters is None or len(node.inputs) != 2 or not is_inexact(node.dtype) or is_half(node.dtype):
        return None
    if not all(len(each) == 2 for each in letters):
        return None
    (left, right, out), (first, second) = letters, node.inputs
    if out[0] in right:
        left, right, first, second = right, left, second, first
    shared = set(left) & set(right)
    if len(shared) != 1 or {*left, *right} - shared != set(out) or out[0] not in left:
        return None
    a, b = _Read(first, left[0] != out[0]), _Read(second, right[1] != out[1])
    (m, k), n = a.shape(nodes), b.shape(nodes)[1]
    fits = all(type(size) is int for size in (m, k, n)) and k >= LEAST and max(m, n) >= LEAST and min(m, n) >= NARROWEST
    return (a, b) if fits else None


def _plan(id: int, a: _Read, b: _Read, facts: Facts, nodes: Mapping[int, Node]) -> _Plan | None:
    (m, k), n = a.shape(nodes), b.shape(nodes)[1]
    for by_rows, size, (before, behind) in ((True, m, a.band(facts)), (False, n, b.band(facts)[::-1])):
        cuts = _cuts(size)
        inner = [(max(0, low - before), min(k, high + behind)) for low, high in pairwise(cuts)]
        if size >= LEAST and _pays(cuts, inner, k):
            return _Plan(a, b, (m, n), by_rows, cuts, inner, False)
    if m == n and m >= LEAST and facts.symmetric(id):
        return _Plan(a, b, (m, n), True, _cuts(m), [(0, k)] * PARTS, True)
    return None


def _cuts(size: int) -> list[int]:
    return [size * part // PARTS for part in range(PARTS + 1)]


def _pays(cuts: list[int], inner: list[tuple[int, int]], k: int) -> bool:
    work = sum(
        [(high - low) * max(0, stop - start) for (low, high), (start, stop) in zip(pairwise(cuts), inner, strict=True)]
    )
    return work <= ENOUGH * cuts[-1] * k


def _written(builder: Builder, plan: _Plan, new: Mapping[int, int]) -> Symbol:
    F = builder.language

    def read(what: _Read, rows: tuple[int, int], columns: tuple[int, int]) -> Symbol:
        x = builder.symbol(new.get(what.id, what.id))
        start, stop = zip(*((columns, rows) if what.turned else (rows, columns)), strict=True)
        if any(start) or stop != x.shape:
            x = F.slice(x, start=start, stop=stop, step=(1, 1))
        return F.permute(x, dims=(1, 0)) if what.turned else x

    m, n = plan.shape
    blocks: list[Symbol] = []
    for (low, high), inner in zip(pairwise(plan.cuts), plan.inner, strict=True):
        rows = (low, high) if plan.by_rows else (0, m)
        columns = (0, n) if plan.by_rows else (low, high)
        if plan.mirrored:
            columns = (0, high)
        if inner[0] < inner[1]:
            blocks.append(read(plan.a, rows, inner) @ read(plan.b, inner, columns))
        else:
            shape = rows[1] - rows[0], columns[1] - columns[0]
            blocks.append(F.full(shape=shape, value=0, dtype=builder.symbol(new.get(plan.a.id, plan.a.id)).dtype))
    if plan.mirrored:
        blocks = _mirrored(blocks, plan.cuts)
    return F.cat(*blocks, axis=0 if plan.by_rows else 1)


def _mirrored(rows: list[Symbol], cuts: list[int]) -> list[Symbol]:
    """Whole rows of blocks, of those up to the main diagonal."""
    F = rows[0].builder.language
    whole: list[Symbol] = []
    for number, (low, high) in enumerate(pairwise(cuts)):
        below = [
            F.permute(F.slice(r, start=(0, low), stop=(r.shape[0], high), step=(1, 1)), dims=(1, 0))
            for r in rows[number + 1 :]
        ]
        whole.append(F.cat(rows[number], *below, axis=1) if below else rows[number])
    return whole
