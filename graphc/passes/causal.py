"""Triangles of products through few columns, which are only multiplied or summed up: never made as a whole.

    tril(A B^T) V, chunk by chunk of rows, a after b:          A_a (sum over b < a of B_b^T V_b) + tril(A_a B_a^T) V_a

as causal attention without a softmax is, and sums up to each row. A column times a row is such a product, and a matrix
of ones. With r columns of A and m of V, n rows take n (r m + c (r + m)) multiplications instead of n^2 (r + m).
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, final

import numpy as np

from graphc.facts.bands import Band, leaves_triangle, left_by, solid
from graphc.facts.known import Facts
from graphc.ir import Builder, Graph, Node, Symbol
from graphc.ir.matrices import transposes
from graphc.normal.affine import Unsolved, label
from graphc.normal.emit import emit
from graphc.normal.form import Factor, Form, tidy
from graphc.ops import OPS, Trait
from graphc.ops.dtypes import is_floating
from graphc.ops.linalg import swap_last
from graphc.passes.replacing import replaced
from graphc.rewrite.rule import held_number

FEW = 4  # columns, of which products are as quick in short chunks
SHORT, LONG = 16, 64  # rows of a chunk
DEPTH = 8  # operations between a sum and the products in it
_MATMUL, _SUM, _ADD, _MUL, _DIV, _WHERE, _SQUARE = (
    OPS[name] for name in ("matmul", "sum", "add", "mul", "div", "where", "square")
)


class _Mask(NamedTuple):
    """A diagonal, the column less the row, and what is above it, or below it."""

    upper: bool
    diagonal: int


class _Triangle(NamedTuple):
    """What a mask leaves of the matrix `of`, perhaps transposed then."""

    of: int
    mask: _Mask
    turned: bool = False


class _Times(NamedTuple):
    """The product of a triangle and the array `by`, transposed first or not; perhaps transposed then."""

    triangle: _Triangle
    by: tuple[int, bool]
    turned: bool


def split_triangles(graph: Graph) -> Graph:
    """`graph` with what reads such triangles computed in chunks. Rounds differently."""
    if not any(node.op in (_MATMUL, _SUM) for node in graph.nodes.values()):
        return graph
    builder = Builder.beside(graph.nodes)
    graph = replaced(graph, builder, _Triangles(builder).joined)
    builder = Builder.beside(graph.nodes)
    return replaced(graph, builder, _Triangles(builder).chunks)


@final
class _Triangles:
    """What reads triangles, as what is computed of whole matrices or in chunks."""

    def __init__(self, builder: Builder):
        self._builder = builder
        self._facts = Facts(builder.nodes)
        self._triangles: dict[int, tuple[_Triangle, ...]] = {}

    def joined(self, node: Node) -> Symbol | None:
        """The same as a node, if that adds up a triangle of a symmetric matrix, or products with both of its triangles.

        It may be the sum of what is the same of each: x -> sum(x y), -x^T.
        """
        if node.op not in (_SUM, _ADD) or not is_floating(node.dtype):
            return None
        if node.op is _SUM and len(node.params["axis"]) == 2:
            triangles = self._triangles_of(node.inputs[0])
            found = _added([self._half(t) for t in triangles])
            return None if found is None else self._builder.language.reshape(found, shape=node.shape)
        return self._both(*node.inputs) if node.op is _ADD else None

    def _half(self, triangle: _Triangle) -> Symbol | None:
        """The sum of a triangle of a symmetric matrix that is a product."""
        F, whole = self._builder.language, self._builder.symbol(triangle.of)
        sign, form = self._sign(triangle), self._facts.form(triangle.of)
        composed = form is not None and any(len(t.factors) > 1 for t in form.terms)
        if not sign or not composed or not self._facts.symmetric(triangle.of):
            return None
        trace = F.sum(F.diagonal(whole, offset=0, dim1=0, dim2=1), axis=(0,), keepdims=False)
        return (F.sum(whole, axis=(0, 1), keepdims=False) + trace * sign) * 0.5

    def _sign(self, triangle: _Triangle) -> int:
        """1 for a triangle with the main diagonal and no other one of the rest, -1 for one without; else 0."""
        upper, diagonal = triangle.mask
        return {0: 1, 1 if upper else -1: -1}.get(diagonal, 0)

    def _both(self, x: int, y: int, depth: int = 0) -> Symbol | None:
        """The sum of two nodes that are made in the same way, at last of products with both triangles of a matrix."""
        nodes, builder = self._builder.nodes, self._builder
        a, b = nodes[x], nodes[y]
        for first, second in itertools.product(self._times(x), self._times(y)):
            if first[1:] == second[1:] and (whole := self._whole(first[0], second[0], *first[1])) is not None:
                return swap_last(builder.language, whole) if first.turned else whole
        if a.op is not b.op or a.results != b.results or a.params != b.params or depth > DEPTH:
            return None
        if a.op is not _MUL and not (a.op.traits & Trait.LINEAR and len(a.inputs) == 1):
            return None
        for way in (b.inputs, b.inputs[::-1]):
            places = [k for k, (i, j) in enumerate(zip(a.inputs, way, strict=True)) if i != j]
            below = self._both(a.inputs[places[0]], way[places[0]], depth + 1) if len(places) == 1 else None
            if below is not None:
                given = [below if k in places else builder.symbol(i) for k, i in enumerate(a.inputs)]
                return builder.emit(a.op, given, a.params)
        return None

    def _times(self, id: int) -> Iterator[_Times]:
        """A node as a product of a triangle and something: T V, and L T as the transpose of T^T L^T."""
        id, turned = _before_turns(id, self._builder.nodes)
        node = self._builder.nodes[id]
        for k in (0, 1) if node.op is _MATMUL else ():
            triangles = self._triangles_of(node.inputs[k])
            other, flipped = _before_turns(node.inputs[1 - k], self._builder.nodes)
            if len(triangles) == 1:
                triangle = triangles[0]._replace(turned=triangles[0].turned != bool(k))
                yield _Times(triangle, (other, flipped != bool(k)), node.aval.ndim == 2 and turned != bool(k))

    def _whole(self, a: _Triangle, b: _Triangle, other: int, flipped: bool) -> Symbol | None:
        """T V + T^T V for both triangles of a symmetric matrix."""
        F, builder, sign = self._builder.language, self._builder, self._sign(a)
        opposite = (a.mask.upper != a.turned) != (b.mask.upper != b.turned)
        if not sign or self._sign(b) != sign or not opposite or a.of != b.of or not self._facts.symmetric(a.of):
            return None
        whole, v = builder.symbol(a.of), builder.symbol(other)
        v = swap_last(F, v) if flipped and len(v.shape) == 2 else v
        diagonal = F.diagonal(whole, offset=0, dim1=0, dim2=1) * float(sign)
        return whole @ v + v * (diagonal if len(v.shape) == 1 else F.reshape(diagonal, shape=(whole.shape[0], 1)))

    def chunks(self, node: Node) -> Symbol | None:
        """The same as a node, if that is a product or a sum of triangles."""
        if node.op not in (_MATMUL, _SUM) or not is_floating(node.dtype):
            return None
        try:
            return self._product(node) if node.op is _MATMUL else self._summed(node)
        except Unsolved:
            return None

    def _product(self, node: Node) -> Symbol | None:
        """A product of triangles and a matrix or a vector, in either order."""
        F, builder = self._builder.language, self._builder
        for k, id in enumerate(node.inputs):
            triangles = self._triangles_of(id)
            other = builder.symbol(node.inputs[1 - k])
            if not triangles or len(other.shape) > 2:
                continue
            column = F.reshape(other, shape=(other.shape[0], 1)) if len(other.shape) == 1 else other
            v = swap_last(F, column) if k and len(other.shape) == 2 else column
            found = self._product_of(triangles, v, turned=bool(k))
            if found is not None:
                found = swap_last(F, found) if k else found
                return found if found.shape == node.shape else F.reshape(found, shape=node.shape)
        return None

    def _summed(self, node: Node) -> Symbol | None:
        """A sum of the rows of triangles, of their columns, or of all."""
        axes = node.params["axis"]
        triangles = self._triangles_of(node.inputs[0]) if axes else ()
        if not triangles:
            return None
        F, n = self._builder.language, self._builder.nodes[node.inputs[0]].shape[0]
        ones = F.full(shape=(n, 1), value=1, dtype=node.dtype)
        found = self._product_of(triangles, ones, turned=axes[0] % 2 == 0)
        if found is None:
            return None
        found = F.sum(found, axis=(0,), keepdims=False) if len(axes) == 2 else found
        return F.reshape(found, shape=node.shape)

    def _triangles_of(self, id: int) -> tuple[_Triangle, ...]:
        """The triangles that a node is the sum of, if it is square."""
        if id not in self._triangles:
            node = self._builder.nodes[id]
            n = node.shape[0] if node.aval.ndim == 2 and node.shape[0] == node.shape[1] else None
            self._triangles[id] = self._found(node) if type(n) is int and n > 1 else ()
        return self._triangles[id]

    def _found(self, node: Node) -> tuple[_Triangle, ...]:
        nodes, shape = self._builder.nodes, node.shape
        if transposes(node):
            return tuple([t._replace(turned=not t.turned) for t in self._triangles_of(node.inputs[0])])
        if leaves_triangle(node):
            mask = _of_band(left_by(node), shape[0])
            return () if mask is None else self._left_of(node.inputs[0], mask)
        if node.op is _WHERE:
            for k, wanted in ((1, True), (2, False)):
                mask = self._mask(node.inputs[0], shape, wanted) if self._is_zero(node.inputs[3 - k]) else None
                if mask is not None and nodes[node.inputs[k]].shape == shape:
                    return (_Triangle(node.inputs[k], mask),)
        if node.op is _ADD:
            each = [self._triangles_of(i) for i in node.inputs]
            return (*each[0], *each[1]) if all(each) else ()
        if node.op is _SQUARE or (node.op is _MUL and len({*node.inputs}) == 1):
            below = self._triangles_of(node.inputs[0])
            square = self._builder.language.square
            return tuple([t._replace(of=square(self._builder.symbol(t.of)).id) for t in below[: len(below) == 1]])
        if node.op is not _MUL and node.op is not _DIV:
            return ()
        ways = [node.inputs] if node.op is _DIV else [node.inputs, node.inputs[::-1]]
        ways = [(a, b) for a, b in ways if nodes[a].shape == shape]
        for a, b in ways:
            mask = self._mask(b, shape) if node.op is _MUL else None
            if mask is not None:
                return self._left_of(a, mask)
        for a, b in ways:
            below = self._triangles_of(a)
            if below and (nodes[b].size < node.size or self._is_outer(b)):
                return tuple([t._replace(of=self._scaled(t, b, node.op is _DIV)) for t in below])
        return ()

    def _left_of(self, id: int, mask: _Mask) -> tuple[_Triangle, ...]:
        """What a mask leaves of a matrix, which may be that triangle already."""
        below = self._triangles_of(id)
        return below if below and all((t.mask, t.turned) == (mask, False) for t in below) else (_Triangle(id, mask),)

    def _is_outer(self, id: int) -> bool:
        """Whether a matrix repeats a row, a column or a number."""
        form = self._facts.outer_form(id)
        factors = [f for t in form.terms for f in t.factors] if form is not None and len(form.terms) == 1 else []
        return len(factors) == 1 and len(factors[0].places) < 2

    def _scaled(self, triangle: _Triangle, by: int, divided: bool) -> int:
        """What the triangle is left of if it is multiplied, or divided, by a row, a column or a number."""
        F, x = self._builder.language, self._builder.symbol(by)
        x = F.reciprocal(x) if divided else x
        if triangle.turned and len(x.shape):
            x = F.reshape(x, shape=(x.shape[0], 1)) if len(x.shape) == 1 else swap_last(F, x)
        return (self._builder.symbol(triangle.of) * x).id

    def _is_zero(self, id: int) -> bool:
        return held_number(id, self._builder.nodes) == 0

    def _mask(self, id: int, shape: tuple[int, ...], wanted: bool = True) -> _Mask | None:
        """Which triangle has ones, or is as `wanted`, in a matrix that is the same in every run."""
        node = self._builder.nodes[id]
        if node.shape != shape:
            return None
        if leaves_triangle(node) and held_number(node.inputs[0], self._builder.nodes) == 1:
            return _of_band(left_by(node), shape[0])
        held = self._facts.held.value(id)
        band = None if held is None else solid(held if wanted else np.logical_not(held))
        return None if band is None else _of_band(band, shape[0])

    def _product_of(self, triangles: tuple[_Triangle, ...], v: Symbol, turned: bool) -> Symbol | None:
        """Triangles, or their transposes, times a matrix; None if chunks are no less work."""
        return _added([self._one_times(t, v, turned != t.turned) for t in triangles])

    def _one_times(self, triangle: _Triangle, v: Symbol, turned: bool) -> Symbol | None:
        upper, d = triangle.mask
        large = self._builder.nodes[triangle.of].shape[0] >= 8 * SHORT
        factors = self._factors(triangle.of) if large and self._sign(triangle) else None
        if factors is None:
            return None
        a, b = factors
        if turned:
            a, b, upper, d = b, a, not upper, -d
        (n, r), m = a.shape, v.shape[1]
        if r == 1:
            return a * self._running(b * v, upper, strictly=d != 0)
        least = SHORT if min(r, m) <= FEW else LONG
        c = next((c for c in range(least, 2 * least) if n % c == 0), least)
        if 2 * (c * (r + m) + 2 * r * m) > n * (r + m):
            return None
        return self._chunks(a, b, v, c, upper, d)

    def _running(self, x: Symbol, upper: bool, strictly: bool) -> Symbol:
        """The sums of the rows up to each, or from each on; without itself if `strictly` so."""
        F, (n, m) = self._builder.language, x.shape
        if strictly:
            x = F.slice(x, start=(int(upper), 0), stop=(n - int(not upper), m), step=(1, 1))
        found = F.cumsum(x, axis=0, reverse=upper)
        low, high = (0, 1) if upper else (1, 0)
        return F.pad_zeros(found, low=(low, 0), high=(high, 0), interior=(0, 0)) if strictly else found

    def _chunks(self, a: Symbol, b: Symbol, v: Symbol, c: int, upper: bool, d: int) -> Symbol:
        F = self._builder.language
        n, k = a.shape[0], -(-a.shape[0] // c)

        def cut(x: Symbol) -> Any:
            x = x if n == k * c else F.pad_zeros(x, low=(0, 0), high=(k * c - n, 0), interior=(0, 0))
            return F.reshape(x, shape=(k, c, x.shape[1]))

        a, b, v = cut(a), cut(b), cut(v)
        each = swap_last(F, b) @ v
        start, stop = (1, k) if upper else (0, k - 1)
        others = F.slice(each, start=(start, 0, 0), stop=(stop, *each.shape[1:]), step=(1, 1, 1))
        others = F.cumsum(others, axis=0, reverse=upper)
        low, high = (0, 1) if upper else (1, 0)
        others = F.pad_zeros(others, low=(low, 0, 0), high=(high, 0, 0), interior=(0, 0, 0))
        own = (F.triu if upper else F.tril)(a @ swap_last(F, b), diagonal=d)
        found = F.reshape(a @ others + own @ v, shape=(k * c, v.shape[2]))
        return found if n == k * c else F.slice(found, start=(0, 0), stop=(n, v.shape[2]), step=(1, 1))

    def _factors(self, id: int) -> tuple[Symbol, Symbol] | None:
        """(A, B) of A B^T, if a matrix is that."""
        node = self._builder.nodes[id]
        form = self._facts.outer_form(id)
        if form is None or len(form.terms) != 1:
            return None
        ((number, factors, places, sizes),) = form.terms
        row, column = places
        if row == column or any(len(p.steps) != 1 or p != label(*p.labels) for p in places):
            return None
        (i,), (j,) = row.labels, column.labels
        left = [f for f in factors if j not in _labels([f])]
        right = [f for f in factors if j in _labels([f])]
        shared = sorted(_labels(left) & _labels(right))
        if i in _labels(right) or (sizes[i], sizes[j]) != node.shape:
            return None
        a = self._part(number, left, [i, *shared], sizes, node.dtype)
        return a, self._part(1, right, [j, *shared], sizes, node.dtype)

    def _part(self, number: Any, factors: list[Factor], kept: list[int], sizes: tuple[int, ...], dtype: Any) -> Symbol:
        """The product of some factors as a matrix: its rows are the first of the labels, its columns the others."""
        own = _labels(factors) | {*kept}
        term = tidy(number, factors, [label(k) for k in kept], [n if k in own else 1 for k, n in enumerate(sizes)])
        if term is None:
            raise Unsolved
        shape = tuple([sizes[k] for k in kept])
        atoms = {f.atom: self._builder.symbol(f.atom) for f in factors}
        found = emit(self._builder, Form(shape, (term,)), atoms, dtype)
        return (
            found if len(shape) == 2 else self._builder.language.reshape(found, shape=(shape[0], math.prod(shape[1:])))
        )


def _of_band(band: Band, n: int) -> _Mask | None:
    """Of a matrix of n rows, if that is a triangle."""
    if band.above == n - 1:
        return _Mask(True, -band.below)
    return _Mask(False, band.above) if band.below == n - 1 else None


def _added(parts: Sequence[Symbol | None]) -> Symbol | None:
    """The sum of all, if there are any and all are known."""
    known = [x for x in parts if x is not None]
    return functools.reduce(operator.add, known) if known and len(known) == len(parts) else None


def _before_turns(id: int, nodes: Mapping[int, Node]) -> tuple[int, bool]:
    """What a matrix is as it is, or is the transpose of; and whether it is that."""
    turned = False
    while transposes(nodes[id]):
        id, turned = nodes[id].inputs[0], not turned
    return id, turned


def _labels(factors: list[Factor]) -> set[int]:
    return {k for f in factors for place in f.places for k in place.labels}
