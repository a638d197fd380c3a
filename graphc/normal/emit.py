"""Forms as nodes again: views of arrays with an axis for each label, products, and results laid in their places."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from string import ascii_letters
from typing import Any, NamedTuple, final

from graphc.ir import Builder, Symbol
from graphc.normal.affine import Index, Unsolved, flat, label
from graphc.normal.bounds import WRITTEN
from graphc.normal.form import Factor, Form, Number, Term
from graphc.normal.layout import Piece, laid, padded
from graphc.normal.plan import Memory, Step, planned, size
from graphc.ops import OPS
from graphc.ops.dtypes import finfo, is_floating

_RESHAPE = OPS["reshape"]


class Labelled(NamedTuple):
    """An array with one axis for each of `labels`."""

    array: Symbol
    labels: tuple[int, ...]


def emit(builder: Builder, form: Form, atoms: Mapping[int, Symbol], dtype: Any, memory: Memory | None = None) -> Symbol:
    """Append what computes `form`. Raises Unsolved for a form that has no such program.

    atoms   the array of each atom
    memory  of products that the forms of a region have in common
    """
    F = builder.language
    memory = Memory() if memory is None else memory
    pieces = [_Writer(F, builder, t, dtype, memory).written(atoms, form.shape) for t in form.terms]
    return laid(F, pieces, form.shape, dtype)


class Digits(NamedTuple):
    """A place as a number with digits: its labels, the first one first, their sizes and strides; those reversed."""

    labels: tuple[int, ...]
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    turned: frozenset[int]

    @property
    def radices(self) -> tuple[int, ...]:
        """How many numbers the second digit, the third, ... has room for."""
        return tuple([s // t for s, t in zip(self.strides, self.strides[1:], strict=False)])

    @property
    def step(self) -> int:
        return self.strides[-1] if self.strides else 1

    def parted(self, n: int, may_end: bool = False) -> Parted:
        """The part of an array of n that the digits count, from the first place on; or all of it, if that would end
        within the part and no sum of a digit and what it begins with carries. may_end: else the part, too, which is
        Unsolved otherwise."""
        rooms, none = self.sizes[:1] + self.radices, (0,) * len(self.sizes)
        part = Parted(self.offset, rooms, none)
        if self.offset + (part.room - 1) * self.step < n:
            return part
        if self.strides and self.step == 1 and n % self.strides[0] == 0:
            rooms = (n // self.strides[0], *self.radices)
            first = tuple([self.offset // s % room for s, room in zip(self.strides, rooms, strict=True)])
            if all(a + k <= room for a, k, room in zip(first, self.sizes, rooms, strict=True)):
                return Parted(0, rooms, first)
        if not may_end:
            raise Unsolved
        return part


class Parted(NamedTuple):
    """Part of an axis as digits: where it begins, how many numbers each digit has there, and the first one of each."""

    offset: int
    rooms: tuple[int, ...]
    first: tuple[int, ...]

    @property
    def room(self) -> int:
        """The places, in steps, with all that lie between."""
        return math.prod(self.rooms)


def digits(place: Index, sizes: Sequence[int]) -> Digits:
    """The digits of a place. Raises Unsolved for what is none, as where windows overlap."""
    turned = frozenset([k for k, stride in place.steps if stride < 0])
    place = place.at({k: label(k, -1) + (sizes[k] - 1) for k in turned})
    strides = tuple([stride for _, stride in place.steps])
    found = Digits(place.labels, tuple([sizes[k] for k in place.labels]), strides, place.offset, turned)
    for s, t, n in zip(strides, strides[1:], found.sizes[1:], strict=False):
        if s % t or s // t < n:
            raise Unsolved
    return found


@final
class _Writer:
    """Writes one term in the op language `F`."""

    def __init__(self, F: Any, builder: Builder, term: Term, dtype: Any, memory: Memory):
        self._F = F
        self._memory = memory
        self._builder = builder
        self._term = term
        self._sizes = term.sizes
        self._dtype = dtype

    def written(self, atoms: Mapping[int, Symbol], shape: Sequence[int]) -> Piece:
        term = self._term
        self._memory.charge(WRITTEN)
        parts = [self._view(atoms[f.atom], f) for f in term.factors]
        out = frozenset([k for p in term.places for k in p.labels])
        if not parts:
            return self._placed(Labelled(self._number(term.coefficient), ()), shape)
        steps = planned(term.factors, out, self._sizes, self._memory).steps
        for step in steps[:-1]:
            parts.append(self._step(step, parts, []))
        last, order = steps[-1], [k for place in term.places for k in place.labels]
        given = [parts[k] for k in last.parts]
        smallest = min(range(len(given)), key=lambda k: given[k].array.aval.size, default=-1)
        before = smallest >= 0 and given[smallest].array.aval.size < size(last.labels, self._sizes)
        if term.coefficient != 1 and before and self._memory.sharers(last.key) == 1:
            given[smallest] = self._scaled(given[smallest])
            result = self._product(given, last.labels, order)
        else:
            result = self._scaled(self._step(last, parts, order))
        return self._placed(result, shape)

    def _step(self, step: Step, parts: Sequence[Labelled], order: Sequence[int]) -> Labelled:
        """The product of a step; or the one that is there already."""
        if not step.parts:
            array, numbers = self._memory.made[step.key]
            return Labelled(array, tuple([step.names[k] for k in numbers]))
        part = self._product([parts[k] for k in step.parts], step.labels, order)
        if step.key is not None:
            self._memory.keep(step.key, part.array, tuple([step.names.index(k) for k in part.labels]))
        return part

    def _scaled(self, part: Labelled) -> Labelled:
        """Times the coefficient."""
        if self._term.coefficient == 1:
            return part
        return Labelled(part.array * self._number(self._term.coefficient), part.labels)

    def _number(self, value: Number) -> Symbol:
        if isinstance(value, Fraction):
            value = float(value) if value.denominator > 1 else int(value)
        if value and is_floating(self._dtype):
            limits = finfo(self._dtype)
            if not float(limits.tiny) <= abs(value) <= float(limits.max):
                raise Unsolved  # the factors are numbers, their product is none
        if self._dtype.kind == "u":  # integers wrap
            value %= 1 << 8 * self._dtype.itemsize
        return self._builder.constant(value, self._dtype)

    def _view(self, array: Symbol, factor: Factor) -> Labelled:
        """A factor with an axis for each of its labels."""
        F = self._F
        axes = [digits(place, self._sizes) for place in factor.places]
        parts = [d.parted(n) for d, n in zip(axes, array.shape, strict=True)]
        array = self._cut(array, [p.offset for p in parts], [p.room for p in parts], [d.step for d in axes])
        array = self._shaped(array, [n for p in parts for n in p.rooms])
        sizes = [n for d in axes for n in d.sizes]
        array = self._cut(array, [k for p in parts for k in p.first], sizes, [1] * len(sizes))
        labels = [k for d in axes for k in d.labels]
        turned = [k in d.turned for d in axes for k in d.labels]
        while len(set(labels)) < len(labels):
            first, second = next((labels.index(k), p) for p, k in enumerate(labels) if labels.index(k) != p)
            array = self._diagonal(array, first, second, turned[first] != turned[second])
            labels.append(labels[first])
            turned.append(turned[first])
            del labels[second], labels[first], turned[second], turned[first]
        if any(turned):
            array = F.flip(array, axis=tuple([k for k, is_turned in enumerate(turned) if is_turned]))
        return Labelled(array, tuple(labels))

    def _diagonal(self, array: Symbol, first: int, second: int, other: bool) -> Symbol:
        """The diagonal of two axes of a size; the other one, against the second axis."""
        F, n = self._F, array.shape[first]
        if other and len(array.shape) == 2:
            flat = F.reshape(array, shape=(n * n,))
            return F.slice(flat, start=(n - 1,), stop=(n * n - 1,), step=(n - 1,))
        if other:
            array = F.flip(array, axis=(second,))
        return F.diagonal(array, offset=0, dim1=first, dim2=second)

    def _cut(self, array: Symbol, start: Sequence[int], count: Sequence[int], step: Sequence[int]) -> Symbol:
        if tuple(count) == array.shape:
            return array
        stop = tuple([a + (n - 1) * s + 1 for a, n, s in zip(start, count, step, strict=True)])
        return self._F.slice(array, start=tuple(start), stop=stop, step=tuple(step))

    def _shaped(self, array: Symbol, shape: Sequence[int]) -> Symbol:
        node = self._builder.nodes[array.id]
        if node.op is _RESHAPE and self._builder.nodes[node.inputs[0]].shape == tuple(shape):
            return self._builder.symbol(node.inputs[0])
        return array if tuple(shape) == array.shape else self._F.reshape(array, shape=tuple(shape))

    def _ordered(self, part: Labelled, labels: Sequence[int]) -> Symbol:
        """The array with its axes in the order of `labels`."""
        dims = tuple([part.labels.index(k) for k in labels])
        return part.array if dims == tuple(range(len(dims))) else self._F.permute(part.array, dims=dims)

    def _product(self, parts: Sequence[Labelled], kept: frozenset[int], order: Sequence[int]) -> Labelled:
        """Parts, multiplied, and summed up over the labels that are not kept. order: of the axes, if that is free."""
        F = self._F
        if len(parts) == 1:
            (part,) = parts
            over = tuple([axis for axis, k in enumerate(part.labels) if k not in kept])
            array = F.sum(part.array, axis=over, keepdims=False) if over else part.array
            return Labelled(array, tuple([k for k in part.labels if k in kept]))
        a, b = parts
        labels = tuple([k for k in dict.fromkeys((*order, *a.labels, *b.labels)) if k in kept])
        if set(a.labels) | set(b.labels) == kept:
            return Labelled(self._spread(a, labels) * self._spread(b, labels), labels)
        if set(a.labels) == set(b.labels):  # a loop, in which what the operands are made of may be computed
            return self._product([Labelled(a.array * self._ordered(b, a.labels), a.labels)], kept, order)
        a, b = self._in_one(a, b, kept)
        names = {k: ascii_letters[n] for n, k in enumerate(dict.fromkeys(a.labels + b.labels))}
        left, right, out = ("".join([names[k] for k in ks]) for ks in (a.labels, b.labels, labels))
        return Labelled(F.einsum(a.array, b.array, equation=f"{left},{right}->{out}"), labels)

    def _in_one(self, a: Labelled, b: Labelled, kept: frozenset[int]) -> tuple[Labelled, Labelled]:
        """Two operands, with labels that are summed over and follow each other in both as one: views of fewer axes."""
        for k, next_one in itertools.pairwise(a.labels):
            if (k, next_one) in itertools.pairwise(b.labels) and not kept & {k, next_one}:
                return self._in_one(self._fused(a, k), self._fused(b, k), kept)
        return a, b

    def _fused(self, part: Labelled, k: int) -> Labelled:
        """With the axis of label k and the next one as one."""
        at, shape = part.labels.index(k), part.array.shape
        whole = (*shape[:at], shape[at] * shape[at + 1], *shape[at + 2 :])
        return Labelled(self._shaped(part.array, whole), (*part.labels[: at + 1], *part.labels[at + 2 :]))

    def _spread(self, part: Labelled, labels: Sequence[int]) -> Symbol:
        """With an axis of size 1 for each label that it has not."""
        array = self._ordered(part, [k for k in labels if k in part.labels])
        return self._shaped(array, [self._sizes[k] if k in part.labels else 1 for k in labels])

    def _placed(self, result: Labelled, shape: Sequence[int]) -> Piece:
        """The result with its elements in their order, and where they are to lie."""
        F = self._F
        groups = _groups(self._term.places)
        axes: list[Digits] = []
        for group in groups:
            place = flat([self._term.places[k] for k in group], [shape[k] for k in group])
            axes.append(digits(place, self._sizes))
        order = [k for d in axes for k in d.labels]
        array = self._spread(result, order)
        sizes = tuple([self._sizes[k] for k in order])
        if array.shape != sizes:
            array = F.broadcast_to(array, shape=sizes)
        if turned := [p for p, k in enumerate(order) if any(k in d.turned for d in axes)]:
            array = F.flip(array, axis=tuple(turned))
        whole = [math.prod([shape[k] for k in group]) for group in groups]
        parts = [d.parted(n, may_end=True) for d, n in zip(axes, whole, strict=True)]
        room = [n for p in parts for n in p.rooms]
        array = padded(F, array, [k for p in parts for k in p.first], room, [1] * len(room))
        array = self._shaped(array, [p.room for p in parts])
        fitting = [min(p.room, -(-(n - p.offset) // d.step)) for p, d, n in zip(parts, axes, whole, strict=True)]
        array = self._cut(array, [0] * len(axes), fitting, [1] * len(axes))
        # between elements that lie in steps are zeros, before and after them it is for others to say
        room = [(n - 1) * d.step + 1 for d, n in zip(axes, fitting, strict=True)]
        array = padded(F, array, [0] * len(axes), room, [d.step for d in axes])
        is_sum = bool(set(range(len(self._sizes))).difference(order))
        return Piece(tuple(map(tuple, groups)), array, tuple([p.offset for p in parts]), is_sum)


def _groups(places: Sequence[Index]) -> list[list[int]]:
    """The axes of the result; those that share a label, as the two of a diagonal, together."""
    groups: list[tuple[set[int], list[int]]] = []
    for axis, place in enumerate(places):
        labels, axes = set(place.labels), [axis]
        for group in [g for g in groups if g[0] & labels]:
            groups.remove(group)
            labels |= group[0]
            axes = group[1] + axes
        groups.append((labels, sorted(axes)))
    return [axes for _, axes in sorted(groups, key=lambda group: group[1])]
