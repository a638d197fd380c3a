"""Sums over windows of one array that overlap: what they have in common is added up once, and their ends by themselves.

    sum(x[1:] + x[:-1]) = 2 sum(x[1:-1]) + x[0] + x[-1]

as sums over finite differences and other stencils are. Their gradients are windows that are the same along an axis but
at their ends: one line that is repeated, and a few others beside it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, final

from graphc.facts.known import Facts
from graphc.ir import Builder, Graph, Node, Symbol
from graphc.normal.affine import Index
from graphc.normal.form import Form, Number
from graphc.ops import OPS, Trait
from graphc.ops.dtypes import is_inexact
from graphc.passes.replacing import replaced

_SUM, _MEAN, _ADD, _SUB, _SLICE, _PAD = (OPS[name] for name in ("sum", "mean", "add", "sub", "slice", "pad_zeros"))
LEAST = 8  # places along an axis, on average, that the same windows have
LESS = 0.75  # of the elements that are added up as written, at most
SMALLEST = 4  # bytes of an element: sums of shorter ones may overflow in another order


class _Windows(NamedTuple):
    """The sum of `numbers` times windows of the array `atom`, each with an axis for each of `labels`.

    read, put  where each window begins in the array and in the result, by label
    """

    atom: int
    labels: tuple[int, ...]  # of the axes of the array
    results: tuple[int, ...]  # of those of the result
    sizes: tuple[int, ...]
    numbers: tuple[Number, ...]
    read: tuple[Mapping[int, int], ...]
    put: tuple[Mapping[int, int], ...]


def join_windows(graph: Graph) -> Graph:
    """`graph` with such sums. Rounds differently."""
    if (_SLICE not in graph.ops or graph.ops.isdisjoint((_SUM, _MEAN))) and _PAD not in graph.ops:
        return graph
    users = graph.users()
    inner = {id for id, node in graph.nodes.items() if _adds(node)}
    numbers = _numbers(graph)
    cuts, lays = (
        _above(graph, {id for id, node in graph.nodes.items() if node.op is op}, numbers) for op in (_SLICE, _PAD)
    )
    added = _above(graph, inner & cuts, numbers)
    roots = {id for id in inner & lays if inner.isdisjoint(users.get(id, ())) and _are_laid(id, inner, graph, numbers)}
    builder = Builder.beside(graph.nodes)
    facts = Facts(builder.nodes)

    def instead(node: Node) -> Symbol | None:
        before = graph.nodes[node.id].inputs
        summed = (node.op is _SUM or node.op is _MEAN) and before[0] in added and _is_reordered(node)
        if not summed and node.id not in roots:
            return None
        windows = _windows(facts.form(node.id) if summed else facts.outer_form(node.id, 0.5))
        if windows is None or any(type(n) is not int for n in node.shape):
            return None
        return _Writer(windows, builder, node).written()

    return replaced(graph, builder, instead)


def _numbers(graph: Graph) -> set[int]:
    """The nodes that are numbers of the program, or are made of such."""
    found = set[int]()
    for id, node in graph.nodes.items():
        if Trait.LITERAL in node.op.traits or (node.inputs and found.issuperset(node.inputs)):
            found.add(id)
    return found


def _passes(node: Node, numbers: set[int]) -> bool:
    """Whether the form of a node may be one array, from place to place: a product of two arrays is none."""
    is_product = Trait.BILINEAR in node.op.traits and numbers.isdisjoint(node.inputs)
    return node.op.lifting is not None and not is_product


def _above(graph: Graph, below: set[int], numbers: set[int]) -> set[int]:
    """The nodes `below`, and what is computed of them element by element."""
    found = set(below)
    for id, node in graph.nodes.items():
        near = node.op.view or (node.op.pointwise and _passes(node, numbers))
        if near and id not in numbers and not found.isdisjoint(node.inputs):
            found.add(id)
    return found


def _are_laid(root: int, inner: set[int], graph: Graph, numbers: set[int]) -> bool:
    """Whether all that a sum adds up may be laid somewhere: what is no form of other arrays is as large as the sum."""
    stack = [root]
    while stack:
        node = graph.nodes[stack.pop()]
        if node.id in inner:
            stack += node.inputs
        elif node.id not in numbers and not _passes(node, numbers):
            return False
    return True


def _adds(node: Node) -> bool:
    return (node.op is _ADD or node.op is _SUB) and _is_reordered(node)


def _is_reordered(node: Node) -> bool:
    return is_inexact(node.dtype) and node.dtype.kind != "c" and node.dtype.itemsize >= SMALLEST


def _windows(form: Form | None) -> _Windows | None:
    """The windows that a form is the sum of."""
    terms = [] if form is None else [t for t in form.terms if t.coefficient]  # + 0 is in each sum
    if len(terms) < 2 or any(len(t.factors) != 1 or isinstance(t.coefficient, complex) for t in terms):
        return None
    first = terms[0]
    labels, results = _labels(first.factors[0].places), _labels(first.places)
    if labels is None or results is None:
        return None
    for t in terms:
        same = t.sizes == first.sizes and t.factors[0].atom == first.factors[0].atom
        if not same or _labels(t.factors[0].places) != labels or _labels(t.places) != results:
            return None
    read = [dict(zip(labels, [p.offset for p in t.factors[0].places], strict=True)) for t in terms]
    put = [dict(zip(results, [p.offset for p in t.places], strict=True)) for t in terms]
    numbers = tuple([t.coefficient for t in terms])
    return _Windows(first.factors[0].atom, labels, results, first.sizes, numbers, tuple(read), tuple(put))


def _labels(places: Sequence[Index]) -> tuple[int, ...] | None:
    """The labels that places are, each of another; None if a place is none."""
    steps = [p.steps for p in places]
    found = [own[0][0] for own in steps if len(own) == 1 and own[0][1] == 1]
    return tuple(found) if len(found) == len(places) == len({*found}) else None


Window = tuple[Number, Mapping[int, int]]  # how often, and where it begins, by label


def _collected(windows: Sequence[Window], without: int) -> list[Window]:
    """Windows as they are without a label, those of the same places as one."""
    total: dict[tuple[tuple[int, int], ...], Number] = {}
    for c, starts in windows:
        key = tuple([(k, start) for k, start in starts.items() if k != without])
        total[key] = total.get(key, 0) + c
    return [(c, dict(key)) for key, c in total.items() if c]


class _Run(NamedTuple):
    """Places along an axis, `first` to before `after`, that the same windows have: `windows`, without that axis."""

    first: int
    after: int
    windows: list[Window]


@final
class _Writer:
    """Writes the sum of windows, axis by axis of those that only one side has."""

    def __init__(self, windows: _Windows, builder: Builder, node: Node):
        self._own = windows
        self._builder = builder
        self._node = node
        self._F: Any = builder.language

    def written(self) -> Symbol | None:
        """The sum; None if it is none over windows that overlap, or of what is the same along axes."""
        own, F = self._own, self._F
        x = self._builder.symbol(own.atom)
        over, along = ({*a} - {*b} for a, b in ((own.labels, own.results), (own.results, own.labels)))
        scale = min(map(abs, own.numbers))
        numbers = [Fraction(c) / Fraction(scale) for c in own.numbers]  # the smallest of which is 1 or -1
        if over and not along and not any(any(starts.values()) for starts in own.put):
            windows = [*zip(numbers, own.read, strict=True)]
            if not self._is_less(windows, over, own.labels, x.shape):
                return None
            found = self._summed(x, list(own.labels), windows)
            if found is None:
                return F.full(shape=self._node.shape, value=0, dtype=self._node.dtype)
            found = self._ordered(found, [k for k in own.labels if k in own.results])
            return F.reshape(self._times(found, scale), shape=self._node.shape)
        if along and not over and all(starts == own.read[0] for starts in own.read):
            windows = [*zip(numbers, own.put, strict=True)]
            if not self._is_less(windows, along, own.results, self._node.shape):
                return None
            start = [own.read[0][k] for k in own.labels]
            x = self._part(x, start, [a + own.sizes[k] for a, k in zip(start, own.labels, strict=True)])
            return self._spread(self._times(self._ordered(x, own.labels), scale), list(own.results), windows)
        return None

    def _is_less(self, windows: Sequence[Window], axes: set[int], labels: Sequence[int], shape: Sequence[int]) -> bool:
        """Whether there are few runs along these axes, and windows overlap."""
        sizes = {k: n for k, n in zip(labels, shape, strict=True) if k in axes}
        if any(LEAST * len({starts[k] for _, starts in windows}) > n for k, n in sizes.items()):
            return False
        runs = {k: self._runs(windows, k, n) for k, n in sizes.items()}
        met = {k: sum([run.after - run.first for run in runs[k] if run.windows]) for k in axes}
        before = len(windows) * math.prod([self._own.sizes[k] for k in axes])
        few = all(LEAST * len(runs[k]) <= n for k, n in sizes.items())
        return few and math.prod(met.values()) <= LESS * before

    def _runs(self, windows: Sequence[Window], label: int, n: int) -> list[_Run]:
        size, starts = self._own.sizes[label], {starts[label] for _, starts in windows}
        ends = sorted({0, n, *starts, *[start + size for start in starts]})
        return [
            _Run(a, b, _collected([w for w in windows if w[1][label] <= a < w[1][label] + size], label))
            for a, b in itertools.pairwise(ends)
        ]

    def _summed(self, x: Symbol, labels: list[int], windows: Sequence[Window]) -> Symbol | None:
        """The sum of windows of an array that has these labels as axes."""
        F, own = self._F, self._own
        axis = next((k for k, label in enumerate(labels) if label not in own.results), None)
        if axis is None:
            size = [own.sizes[k] for k in labels]
            starts = [[starts[k] for k in labels] for _, starts in windows]
            cut = [self._part(x, a, [p + n for p, n in zip(a, size, strict=True)]) for a in starts]
            return self._sum([(c, part) for (c, _), part in zip(windows, cut, strict=True)])
        label, rest = labels[axis], labels[:axis] + labels[axis + 1 :]
        runs = self._runs(windows, label, x.shape[axis])
        middle = max(runs, key=lambda run: run.after - run.first)
        parts: list[tuple[Number, Any]] = []
        # XLA adds up a whole array in a third of the time that a part takes
        is_most = LESS * x.shape[axis] <= middle.after - middle.first
        for first, after, given in runs:
            if is_most and (first, after) == (middle.first, middle.after):
                line = x
            else:
                given = _collected([*given, *[(-c, starts) for c, starts in middle.windows if is_most]], label)
                box = [(first, after) if k == axis else (0, n) for k, n in enumerate(x.shape)]
                line = self._part(x, *zip(*box, strict=True))
            if given:
                parts.append((1, self._summed(F.sum(line, axis=(axis,), keepdims=False), rest, given)))
        return self._sum([(c, part) for c, part in parts if part is not None])

    def _spread(self, x: Symbol, labels: list[int], windows: Sequence[Window]) -> Symbol:
        """The windows laid into zeros, which have these labels as axes."""
        F, own = self._F, self._own
        shape = [self._node.shape[own.results.index(k)] for k in labels]
        if not windows:
            return F.full(shape=tuple(shape), value=0, dtype=self._node.dtype)
        axis = next((k for k, label in enumerate(labels) if label not in own.labels), None)
        if axis is None:
            laid = [(c, self._laid(x, shape, [starts[k] for k in labels])) for c, starts in windows]
            return self._sum(laid)
        parts: list[Symbol] = []
        for first, after, given in self._runs(windows, labels[axis], shape[axis]):
            line = self._spread(x, labels[:axis] + labels[axis + 1 :], given)
            line = F.reshape(line, shape=(*shape[:axis], 1, *shape[axis + 1 :]))
            parts.append(F.broadcast_to(line, shape=(*shape[:axis], after - first, *shape[axis + 1 :])))
        return F.cat(*parts, axis=axis)

    def _ordered(self, x: Symbol, labels: Sequence[int]) -> Symbol:
        """What has these labels as axes, in the order that they have in the result."""
        return self._F.permute(x, dims=tuple([labels.index(k) for k in self._own.results if k in labels]))

    def _times(self, x: Symbol, scale: Number) -> Symbol:
        return x if scale == 1 else x * float(scale)

    def _part(self, x: Symbol, start: Sequence[int], stop: Sequence[int]) -> Symbol:
        if tuple(stop) == x.shape and not any(start):
            return x
        return self._F.slice(x, start=tuple(start), stop=tuple(stop), step=(1,) * len(start))

    def _laid(self, x: Symbol, shape: Sequence[int], low: Sequence[int]) -> Symbol:
        high = tuple([n - a - m for n, a, m in zip(shape, low, x.shape, strict=True)])
        return self._F.pad_zeros(x, low=tuple(low), high=high, interior=(0,) * len(high)) if any((*low, *high)) else x

    def _sum(self, parts: Sequence[tuple[Number, Any]]) -> Any:
        signed = [(c > 0, x if abs(c) == 1 else x * float(abs(c))) for c, x in parts]
        if not signed:
            return None
        total = signed[0][1] if signed[0][0] else self._F.neg(signed[0][1])
        for is_positive, x in signed[1:]:
            total = total + x if is_positive else total - x
        return total
