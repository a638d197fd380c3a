"""Sums over windows of one array that overlap: what they have in common is added up once, and their ends by themselves.

    sum(x[1:] + x[:-1]) = 2 sum(x[1:-1]) + x[0] + x[-1]

as sums over finite differences and other stencils are. Their gradients are windows that are the same along an axis but
at their ends: one line that is repeated, and a few others beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, final

from graphc.facts.known import Facts
from graphc.ir import Builder, Graph, Node, Symbol
from graphc.normal.affine import Index
from graphc.normal.form import Form, Number
from graphc.ops import OPS, Op
from graphc.ops.dtypes import is_inexact
from graphc.passes.replacing import replaced

_SUM, _MEAN, _ADD, _SUB, _SLICE, _PAD = (OPS[name] for name in ("sum", "mean", "add", "sub", "slice", "pad_zeros"))
MOST = 8  # places by which windows are apart along an axis
LEAST = 16  # times as many that a window has
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

    def reach(self, label: int, where: Sequence[Mapping[int, int]]) -> tuple[int, int]:
        """The first and the last place where a window begins."""
        starts = [starts[label] for starts in where]
        return min(starts), max(starts)


def join_windows(graph: Graph) -> Graph:
    """`graph` with such sums. Rounds differently."""
    if (_SLICE not in graph.ops or graph.ops.isdisjoint((_SUM, _MEAN))) and _PAD not in graph.ops:
        return graph
    users = graph.users()
    inner = {id for id, node in graph.nodes.items() if _adds(node)}
    cuts, lays = _above(graph, _SLICE), _above(graph, _PAD)
    roots = {id for id in inner & lays if inner.isdisjoint(users.get(id, ()))}
    scaled = cuts - {id for id, node in graph.nodes.items() if node.op is _SLICE}
    builder = Builder.beside(graph.nodes)
    facts = Facts(builder.nodes)

    def instead(node: Node) -> Symbol | None:
        before = graph.nodes[node.id].inputs
        summed = (node.op is _SUM or node.op is _MEAN) and before[0] in scaled and _is_reordered(node)
        if not summed and node.id not in roots:
            return None
        windows = _windows(facts.form(node.id) if summed else facts.outer_form(node.id, 0.5))
        if windows is None or any(type(n) is not int for n in node.shape):
            return None
        return (_Summed if summed else _Spread)(windows, builder, node).written()

    return replaced(graph, builder, instead)


def _above(graph: Graph, op: Op) -> set[int]:
    """The nodes of an op, and what is computed of them element by element."""
    found: set[int] = set()
    for id, node in graph.nodes.items():
        passes = (node.op.pointwise and node.op.lifting is not None) or node.op.view
        if node.op is op or (passes and not found.isdisjoint(node.inputs)):
            found.add(id)
    return found


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


class _Line(NamedTuple):
    """Places along an axis, from `first` to before `after`, of which windows `which` have all."""

    first: int
    after: int
    which: list[int]


def _lines(starts: Sequence[int], size: int, reach: tuple[int, int] | None = None) -> list[_Line]:
    """The places that all windows have, which begin within `reach`, and one by one those before and after."""
    low, high = reach or (min(starts), max(starts))
    ends = [*range(low, high), *range(low + size, high + size)]
    alone = [_Line(k, k + 1, [i for i, start in enumerate(starts) if start <= k < start + size]) for k in ends]
    middle = _Line(high, low + size, [*range(len(starts))])
    return [*alone[: high - low], middle, *alone[high - low :]]


def _scaled(numbers: Sequence[Number]) -> tuple[Number, list[Number]]:
    """Numbers as one times others, of which the smallest is 1 or -1."""
    scale = min(map(abs, numbers)) or 1
    return scale, [Fraction(c) / Fraction(scale) for c in numbers]


Window = tuple[Number, Mapping[int, int]]


def _collected(windows: Sequence[Window], without: int) -> list[Window]:
    """Windows as they are without a label, those of the same places as one."""
    total: dict[tuple[tuple[int, int], ...], Number] = {}
    for c, starts in windows:
        key = tuple([(k, start) for k, start in starts.items() if k != without])
        total[key] = total.get(key, 0) + c
    return [(c, dict(key)) for key, c in total.items() if c]


class _Sides:
    """Writes windows, line by line of the labels that only one side has."""

    def __init__(self, windows: _Windows, builder: Builder, node: Node):
        self._windows = windows
        self._builder = builder
        self._node = node
        self._F: Any = builder.language

    def _is_few(self, labels: Sequence[int], where: Sequence[Mapping[int, int]]) -> bool:
        """Whether the windows overlap but for few places along these labels, and do not coincide in all."""
        reaches = [(self._windows.reach(k, where), self._windows.sizes[k]) for k in labels]
        return all(b - a <= MOST and LEAST * (b - a) <= n for (a, b), n in reaches)

    def _part(self, x: Symbol, start: Sequence[int], stop: Sequence[int]) -> Symbol:
        if tuple(stop) == x.shape and not any(start):
            return x
        return self._F.slice(x, start=tuple(start), stop=tuple(stop), step=(1,) * len(start))

    def _sum(self, parts: Sequence[tuple[Number, Any]]) -> Any:
        signed = [(c > 0, x if abs(c) == 1 else x * float(abs(c))) for c, x in parts]
        if not signed:
            return None
        total = signed[0][1] if signed[0][0] else self._F.neg(signed[0][1])
        for is_positive, x in signed[1:]:
            total = total + x if is_positive else total - x
        return total


@final
class _Summed(_Sides):
    """Sums of windows over some labels."""

    def written(self) -> Symbol | None:
        own, F = self._windows, self._F
        over = [k for k in own.labels if k not in own.results]
        if {*own.results} - {*own.labels} or any(any(starts.values()) for starts in own.put):
            return None
        if not over or not self._is_few(own.labels, own.read):
            return None
        hull = [(low, high + own.sizes[k]) for k in own.labels for low, high in [own.reach(k, own.read)]]
        scale, numbers = _scaled(own.numbers)
        x = self._part(self._builder.symbol(own.atom), [a for a, _ in hull], [b for _, b in hull])
        first = dict(zip(own.labels, [a for a, _ in hull], strict=True))
        read = [{k: start - first[k] for k, start in starts.items()} for starts in own.read]
        found = self._lines_of(x, list(own.labels), [*zip(numbers, read, strict=True)])
        if found is None:
            return F.full(shape=self._node.shape, value=0, dtype=self._node.dtype)
        left = [k for k in own.labels if k in own.results]
        found = F.permute(found, dims=tuple([left.index(k) for k in own.results]))
        found = found if scale == 1 else found * float(scale)
        return found if found.shape == self._node.shape else F.reshape(found, shape=self._node.shape)

    def _lines_of(self, x: Symbol, labels: list[int], windows: Sequence[Window]) -> Symbol | None:
        F, own = self._F, self._windows
        axis = next((k for k, label in enumerate(labels) if label not in own.results), None)
        if axis is None:
            return self._sum([(c, self._cut(x, labels, starts)) for c, starts in windows])
        label, rest = labels[axis], labels[:axis] + labels[axis + 1 :]
        n, size = x.shape[axis], own.sizes[label]
        whole = n == self._builder.nodes[own.atom].shape[own.labels.index(label)]
        lines = _lines([starts[label] for _, starts in windows], size, (0, n - size) if whole else None)
        parts: list[tuple[Number, Symbol]] = []
        for first, after, which in lines:
            given, sign = [windows[k] for k in which], 1
            if whole and after - first > 1:  # XLA adds up a whole array in a third of the time that a part takes
                first, after = 0, n
            elif whole:
                given, sign = [w for k, w in enumerate(windows) if k not in which], -1
            left = _collected(given, label)
            if not left:
                continue
            start, stop = [0] * len(labels), [*x.shape]
            start[axis], stop[axis] = first, after
            found = self._lines_of(F.sum(self._part(x, start, stop), axis=(axis,), keepdims=False), rest, left)
            parts += [] if found is None else [(sign, found)]
        return self._sum(parts)

    def _cut(self, x: Symbol, labels: Sequence[int], starts: Mapping[int, int]) -> Symbol:
        start = tuple([starts[k] for k in labels])
        stop = tuple([a + self._windows.sizes[k] for a, k in zip(start, labels, strict=True)])
        return self._part(x, start, stop)


@final
class _Spread(_Sides):
    """Sums of windows that are the same along some labels."""

    def written(self) -> Symbol | None:
        own, F = self._windows, self._F
        along = [k for k in own.results if k not in own.labels]
        if {*own.labels} - {*own.results} or any(starts != own.read[0] for starts in own.read):
            return None
        if not along or not self._is_few(own.results, own.put):
            return None
        kept = [k for k in own.results if k in own.labels]
        start = [own.read[0][k] for k in own.labels]
        stop = [a + own.sizes[k] for a, k in zip(start, own.labels, strict=True)]
        x = self._part(self._builder.symbol(own.atom), start, stop)
        x = F.permute(x, dims=tuple([own.labels.index(k) for k in kept]))
        scale, numbers = _scaled(own.numbers)
        x = x if scale == 1 else x * float(scale)
        return self._lines_of(x, list(own.results), [*zip(numbers, own.put, strict=True)])

    def _lines_of(self, x: Symbol, labels: list[int], windows: Sequence[Window]) -> Symbol:
        """The result without the axes of labels that are done."""
        F, own = self._F, self._windows
        shape = [self._node.shape[own.results.index(k)] for k in labels]
        axis = next((k for k, label in enumerate(labels) if label not in own.labels), None)
        if axis is None:
            found = self._sum([(c, self._laid(x, labels, shape, starts)) for c, starts in windows])
            return self._zeros(shape) if found is None else found
        label, rest = labels[axis], labels[:axis] + labels[axis + 1 :]
        lines = _lines([starts[label] for _, starts in windows], own.sizes[label]) if windows else []
        parts: list[Symbol] = []
        for first, after, which in lines:
            line = self._lines_of(x, rest, _collected([windows[k] for k in which], label))
            line = F.reshape(line, shape=(*shape[:axis], 1, *shape[axis + 1 :]))
            parts.append(F.broadcast_to(line, shape=(*shape[:axis], after - first, *shape[axis + 1 :])))
        ends = (lines[0].first, shape[axis] - lines[-1].after) if lines else (shape[axis], 0)
        zeros = [self._zeros([*shape[:axis], n, *shape[axis + 1 :]]) if n else None for n in ends]
        return F.cat(*[p for p in (zeros[0], *parts, zeros[1]) if p is not None], axis=axis)

    def _laid(self, x: Symbol, labels: Sequence[int], shape: Sequence[int], starts: Mapping[int, int]) -> Symbol:
        low = tuple([starts[k] for k in labels])
        high = tuple([n - a - m for n, a, m in zip(shape, low, x.shape, strict=True)])
        return self._F.pad_zeros(x, low=low, high=high, interior=(0,) * len(low)) if any((*low, *high)) else x

    def _zeros(self, shape: Sequence[int]) -> Symbol:
        return self._F.full(shape=tuple(shape), value=0, dtype=self._node.dtype)
