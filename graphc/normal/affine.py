"""Places in an array as affine functions of labels, and equations between them.

A label runs over 0 .. n - 1. `Index` is the place along one axis: an offset and a stride for each label that moves it.
Slices, pads, transposes, reshapes, diagonals and Kronecker products are such functions; two places that must be the
same are an equation, whose solutions are labels again (`Equations`). What is not solved raises `Unsolved`: the caller
keeps the operation as it is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, final


class Unsolved(Exception):
    """An equation whose solutions are no labels, or are not found."""


class Index(NamedTuple):
    """offset + sum of stride * label. The labels are distinct, by falling stride; no stride is 0."""

    offset: int
    steps: tuple[tuple[int, int], ...] = ()  # (label, stride)

    def __add__(self, other: Index | int) -> Index:  # type: ignore[override]
        if isinstance(other, int):
            return Index(self.offset + other, self.steps)
        strides = dict(self.steps)
        for label, stride in other.steps:
            strides[label] = strides.get(label, 0) + stride
        return Index(self.offset + other.offset, _sorted(strides))

    def __mul__(self, factor: int) -> Index:  # type: ignore[override]
        if factor == 0:
            return Index(0)
        return Index(self.offset * factor, tuple([(label, stride * factor) for label, stride in self.steps]))

    @property
    def labels(self) -> tuple[int, ...]:
        return tuple([label for label, _ in self.steps])

    def at(self, values: Mapping[int, Index]) -> Index:
        """With `values` in place of labels."""
        if len(self.steps) == 1:  # by far the most
            ((name, stride),) = self.steps
            value = values.get(name)
            if value is None or (stride == 1 and not self.offset):
                return self if value is None else value
            return value * stride + self.offset
        if not any(label in values for label, _ in self.steps):
            return self
        total = Index(self.offset)
        for label, stride in self.steps:
            total = total + values.get(label, Index(0, ((label, 1),))) * stride
        return total


def _sorted(strides: Mapping[int, int]) -> tuple[tuple[int, int], ...]:
    return tuple(sorted([(k, s) for k, s in strides.items() if s], key=lambda step: (-abs(step[1]), step[0])))


def label(k: int, stride: int = 1) -> Index:
    """The place that is a label's own."""
    return Index(0, ((k, stride),))


def flat(places: Sequence[Index], shape: Sequence[int]) -> Index:
    """The place in row-major order of the element of an array of this shape at `places`."""
    total, stride = Index(0), 1
    for place, n in zip(reversed(places), reversed(shape), strict=True):
        total, stride = total + place * stride, stride * n
    return total


@final
class Equations:
    """Labels under equations: `value` of each that is no label any more, and the `sizes` of all, new ones included.

    `empty`: no labels satisfy the equations.
    """

    def __init__(self, sizes: Iterable[int]):
        self.sizes = list(sizes)
        self.value: dict[int, Index] = {}
        self.empty = False

    def new(self, size: int) -> int:
        """A label more."""
        self.sizes.append(size)
        return len(self.sizes) - 1

    def left(self) -> list[int]:
        """The sizes, 1 for those that are no labels any more."""
        return [1 if k in self.value else n for k, n in enumerate(self.sizes)]

    def solved(self, index: Index) -> Index:
        """The index in the labels that are left."""
        return index.at(self.value)

    def equate(self, a: Index, b: Index) -> None:
        """Demand that two places be the same. Raises Unsolved."""
        if self.empty:
            return
        a, b = self.solved(a), self.solved(b)
        if a == b:
            return
        if len(a.steps) <= 1 and len(b.steps) <= 1:
            self._equate_two(a, b)
            return
        if self._equate_halves(a, b):
            return
        if set(a.labels) & set(b.labels):
            raise Unsolved
        for _ in range(2):
            for left, right in ((a, b), (b, a)):
                digits = self._digits(left, right)
                if digits is not None:
                    for k, value in digits.items():
                        self._set(k, value)
                    return
            a, b = self._refined(a, b)
        raise Unsolved

    def _set(self, k: int, value: Index) -> None:
        new = {k: value}
        self.value = {old: index.at(new) for old, index in self.value.items()}
        self.value[k] = value

    def _equate_halves(self, a: Index, b: Index) -> bool:
        """Whether both are high * n + low, with 0 <= low < n, in more than one way: then both halves are the same."""
        for n in sorted({abs(stride) for _, stride in (*a.steps, *b.steps) if abs(stride) > 1}):
            high_a, low_a = _halves(a, n)
            high_b, low_b = _halves(b, n)
            if not (high_a.steps or high_b.steps) or not (low_a.steps or low_b.steps):
                continue
            if all(low >= 0 and high < n for low, high in map(self._range, (low_a, low_b))):
                self.equate(low_a, low_b)
                self.equate(high_a, high_b)
                return True
        return False

    def _range(self, index: Index) -> tuple[int, int]:
        """The least and the largest place."""
        ends = [stride * (self.sizes[k] - 1) for k, stride in index.steps]
        return index.offset + sum(e for e in ends if e < 0), index.offset + sum(e for e in ends if e > 0)

    def _equate_two(self, a: Index, b: Index) -> None:
        """oa + sa * x = ob + sb * y, of one label each or none."""
        if not a.steps:
            a, b = b, a
        if not a.steps:
            self.empty = a.offset != b.offset
            return
        (x, sx), d = a.steps[0], b.offset - a.offset
        if not b.steps or b.steps[0][0] == x:
            if b.steps:
                sx -= b.steps[0][1]
            if not sx:
                self.empty = d != 0
            elif d % sx or not 0 <= d // sx < self.sizes[x]:
                self.empty = True
            else:
                self._set(x, Index(d // sx))
            return
        y, sy = b.steps[0]
        g = math.gcd(sx, sy)
        if d % g:
            self.empty = True
            return
        # x = x0 + t * sy / g, y = y0 + t * sx / g, for all t that keep both in their ranges
        px, py = sy // g, sx // g
        x0 = (d // g) * pow(sx // g, -1, abs(px)) % abs(px)
        y0 = (sx * x0 - d) // sy
        low, high = _range(x0, px, self.sizes[x])
        more = _range(y0, py, self.sizes[y])
        low, high = max(low, more[0]), min(high, more[1])
        if low > high:
            self.empty = True
            return
        t = self.new(high - low + 1)
        self._set(x, Index(x0 + low * px, ((t, px),)))
        self._set(y, Index(y0 + low * py, ((t, py),)))

    def _digits(self, a: Index, b: Index) -> dict[int, Index] | None:
        """The labels of `b` as functions of those of `a`, if `b` is a number whose digits they are, and each is one
        whatever the labels of `a` are."""
        places = self._places(b)
        if places is None:
            return None
        values = _decoded(a.offset - b.offset, places)
        if values is None:
            return None
        digits = {k: Index(value) for k, value in values.items()}
        largest = dict(values)
        for moved, stride in a.steps:
            parts = _decoded(stride, places)
            if parts is None:
                return None
            for k, part in parts.items():
                digits[k] = digits[k] + label(moved, part)
                largest[k] += part * (self.sizes[moved] - 1)
        return digits if all(largest[k] < self.sizes[k] for k in digits) else None

    def _places(self, b: Index) -> list[tuple[int, int]] | None:
        """(label, stride) of the digits of `b`, the first ones first."""
        covered = 1
        for k, stride in reversed(b.steps):
            if stride < covered:
                return None
            covered = stride * self.sizes[k]
        return list(b.steps)

    def _refined(self, a: Index, b: Index) -> tuple[Index, Index]:
        """The same with labels split where those of the other begin."""
        for one, other in ((a, b), (b, a)):
            for _, r in other.steps:
                for k, stride in self.solved(one).steps:
                    n = self.sizes[k]
                    if stride > 0 and r > stride and r % stride == 0 and r < stride * n and n % (r // stride) == 0:
                        inner = r // stride
                        high, low = self.new(n // inner), self.new(inner)
                        self._set(k, label(high, inner) + label(low))
                        break
        return self.solved(a), self.solved(b)


def _decoded(number: int, places: Sequence[tuple[int, int]]) -> dict[int, int] | None:
    """The digits of a number that is not negative."""
    if number < 0:
        return None
    digits: dict[int, int] = {}
    for k, stride in places:
        digits[k], number = divmod(number, stride)
    return None if number else digits


def _halves(index: Index, n: int) -> tuple[Index, Index]:
    """high and low of high * n + low"""
    high = {k: stride // n for k, stride in index.steps}
    low = {k: stride % n for k, stride in index.steps}
    return Index(index.offset // n, _sorted(high)), Index(index.offset % n, _sorted(low))


def _range(start: int, step: int, size: int) -> tuple[int, int]:
    """The t for which 0 <= start + t * step < size: from, to."""
    ends = (-start, size - 1 - start)
    if step < 0:
        step, ends = -step, (-ends[1], -ends[0])
    return -(-ends[0] // step), ends[1] // step
