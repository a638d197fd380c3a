"""Products with matrices that fast Fourier transforms multiply, in n log n steps instead of n^2.

    T[i, j] = t[i - j]                       T x is a convolution: of what indices and functions of indices make
    M[i, j] = cos(2 pi p (i + a)(j + b) / q) M x is a transform of q numbers, turned before and after; sin, exp(i ...)

Neither matrix is made. A transform rounds in proportion to the largest number it is given. All that M is made of is of
one size, so that its product does as well. That of T may be far more exact where t or x has large and small numbers: it
is replaced where t is known, and even, or if the user says that the widest search is wanted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple, final

import numpy as np

from graphc.facts.held import Held
from graphc.ir import Builder, Graph, Node, Symbol
from graphc.ir.matrices import product_letters, transposes
from graphc.ops import OPS
from graphc.ops.dtypes import complex_of, is_half
from graphc.passes.cse import eliminate_common_subexpressions
from graphc.passes.places import regular_places
from graphc.passes.products import row_product
from graphc.passes.replacing import replaced

LEAST = 128  # rows and columns of a matrix
STEP = 10  # what one step of a transform of one number takes, times what a product takes of an element of the matrix
MADE = 4  # what an element of a matrix takes to be made, times what it takes to be multiplied
RATE = 8  # elements of products of two matrices that take as long as one of a matrix and a vector, which is read
DEPTH = 16  # operations that make a matrix
EVEN = 8  # times the smallest number, at most, is the largest of numbers of one size
FINE = 4  # a shift of the indices is a whole number of such parts
_MATMUL, _EINSUM, _INDEX, _PUT = (OPS[name] for name in ("matmul", "einsum", "index", "index_put"))
_COS, _SIN, _EXP = (OPS[name] for name in ("cos", "sin", "exp"))
_WAVES = {_COS: "real", _SIN: "imag", _EXP: ""}  # parts of exp(i x)


def by_transforms(graph: Graph, uneven: bool = False) -> Graph:
    """`graph` with such products by transforms. Rounds differently.

    uneven  also those whose numbers may be of many sizes: what is small beside others loses digits
    """
    if graph.ops.isdisjoint((_MATMUL, _EINSUM, _PUT)):
        return graph
    builder = Builder.beside(graph.nodes)
    found = replaced(graph, builder, _Transforms(builder, uneven).instead)
    return graph if found is graph else eliminate_common_subexpressions(regular_places(found))


class _Wave(NamedTuple):
    """exp(i (2 pi `turn` (row + rows) (column + columns) + phase)), or a part of it."""

    part: str
    turn: Fraction
    rows: float
    columns: float
    phase: float


class _Line(NamedTuple):
    """What a matrix is at places counted from its upper right corner to its lower left one, by a function of these
    places; whether a row goes on where the last ends."""

    at: Callable[[np.ndarray], Symbol]
    circular: bool


@final
class _Transforms:
    """Products as transforms, written by `builder`."""

    def __init__(self, builder: Builder, uneven: bool):
        self._builder = builder
        self._uneven = uneven
        self._nodes = builder.nodes
        self._held = Held(builder.nodes)
        self._lines: dict[int, _Line | None] = {}
        self._waves: dict[int, _Wave | None] = {}

    def instead(self, node: Node) -> Symbol | None:
        if node.op is _PUT:
            return self._added(node)
        letters = product_letters(node, self._nodes)
        if letters is None or len(node.inputs) > 2 or is_half(node.dtype) or node.dtype.kind not in "fc":
            return None
        *terms, out = letters
        for k in (0, 1):
            own, other = terms[k], terms[1 - k]
            matrix, x = self._nodes[node.inputs[k]], self._nodes[node.inputs[1 - k]]
            shared = set(own) & set(other)
            if len(own) != 2 or len({*own}) < 2 or len(shared) != 1 or set(out) != {*own} ^ {*other}:
                continue
            if len({*other}) < len(other) or not _is_large(matrix) or not all(type(n) is int for n in x.shape):
                continue
            (summed,) = shared
            found = self._product(matrix, x, turned=own[0] == summed, axis=other.index(summed))
            if found is not None:
                kept = own.replace(summed, "")
                letters = other.replace(summed, kept)  # the rows are where what is summed over was
                F = self._builder.language
                return found if letters == out else F.permute(found, dims=tuple([letters.index(c) for c in out]))
        return None

    def _product(self, matrix: Node, x: Node, turned: bool, axis: int) -> Symbol | None:
        """The product of a matrix, or its transpose, and what lies along `axis` of x."""
        while transposes(matrix):
            matrix, turned = self._nodes[matrix.inputs[0]], not turned
        rows, columns = reversed(matrix.shape) if turned else matrix.shape
        wave = self._wave(matrix.id)
        if wave is not None and x.dtype.kind in ("f" if wave.part else "fc"):
            if turned:
                wave = wave._replace(rows=wave.columns, columns=wave.rows)
            q = wave.turn.denominator
            if columns <= q and self._pays(matrix, x, axis, 2 * q):
                return self._waved(wave, x, axis, rows)
        if x.dtype != matrix.dtype or x.dtype.kind != "f":
            return None
        size = rows + columns - 1
        if not self._pays(matrix, x, axis, 3 * size) or (line := self._line(matrix.id)) is None:
            return None
        F, z = self._builder.language, self._builder.symbol(x.id)
        places, first = np.arange(size), matrix.shape[1] - 1
        if line.circular:
            return self._convolved((line.at(places[first:]), turned), (z, False), axis, rows)
        found = self._convolved((line.at(places), False), (z, turned), axis, _fast(size))
        return F.flip(_cut(F, found, axis, 0, rows), axis=(axis,)) if turned else _cut(F, found, axis, first, size)

    def _pays(self, matrix: Node, x: Node, axis: int, length: int) -> bool:
        many = x.size // x.shape[axis]
        return STEP * length * length.bit_length() * (1 + many) / 2 < matrix.size * (MADE + max(1, many / RATE))

    def _convolved(self, line: tuple[Symbol, bool], x: tuple[Symbol, bool], axis: int, size: int) -> Symbol:
        """The circular convolution of `size` numbers, of a line and each of those that lie along `axis` of x; either of
        them in the reverse order, for which what is transformed is the same."""
        F = self._builder.language
        shape = [1] * len(x[0].shape)
        shape[axis] = size // 2 + 1
        fixed, moved = (
            F.rfft(_padded(F, z, k, size), axes=(k,), norm="none", twice=False) for z, k in ((line[0], 0), (x[0], axis))
        )
        fixed, moved = (F.conj(z) if turned else z for z, turned in ((fixed, line[1]), (moved, x[1])))
        product = F.reshape(fixed, shape=tuple(shape)) * moved
        return F.irfft(product, axes=(axis,), n=size, norm="full", twice=True)

    def _added(self, node: Node) -> Symbol | None:
        """What is put where the difference of the indices says, if that is a column times a row: their correlation."""
        F, nodes = self._builder.language, self._nodes
        base, values, *indices = [nodes[i] for i in node.inputs]
        if not self._uneven or not node.params["accumulate"] or node.params["spec"] != (0,) or base.aval.ndim != 1:
            return None
        if not _is_large(values):
            return None
        outer = row_product(nodes, values.id)
        line = self._places(indices[0].id) if outer is not None and outer.a is not None else None
        if line is None or is_half(values.dtype) or values.dtype.kind != "f" or indices[0].shape != values.shape:
            return None
        assert outer is not None and outer.a is not None
        (rows, columns), (a, b) = values.shape, (self._builder.symbol(i) for i in (outer.a, outer.b))
        if math.prod(a.shape) != rows or math.prod(b.shape) != columns:
            return None
        a, b, size = F.reshape(a, shape=(rows,)), F.reshape(b, shape=(columns,)), rows + columns - 1
        places, long = np.arange(size), rows if line.circular else _fast(size)
        both = self._convolved((a, False), (b, True), 0, long)  # of a[k + n] b[k], where n may be negative
        if line.circular:
            places = places[columns - 1 :]
        else:
            both = F.cat(_cut(F, both, 0, long - columns + 1, long), _cut(F, both, 0, 0, rows), axis=0)
        return F.index_put(self._builder.symbol(base.id), both, line.at(places), spec=(0,), accumulate=True)

    def _places(self, id: int) -> _Line | None:
        """The line of a matrix of indices that no input changes."""
        value = self._held.value(id)
        return None if value is None or value.dtype.kind != "i" else self._held_line(value)

    def _held_line(self, value: np.ndarray) -> _Line | None:
        if value.ndim != 2 or not np.array_equal(value[1:, 1:], value[:-1, :-1]):
            return None
        line = np.concatenate([value[0, ::-1], value[1:, 0]])
        circular = value.shape[0] == value.shape[1] and np.array_equal(value[1:, 0], value[0, :0:-1])
        return _Line(lambda places: self._builder.constant(line[places]), circular)

    def _line(self, id: int, depth: int = 0) -> _Line | None:
        """The line of a matrix that is the same along each diagonal."""
        if id not in self._lines:
            node, line = self._nodes[id], None
            if _is_large(node) and depth < DEPTH:  # a function of a vector's elements may round each in its own way
                value = self._held.value(id)
                if self._uneven:
                    line = self._made_line(node, depth)
                if line is None and value is not None and (self._uneven or _is_even(value)):
                    line = self._held_line(value)
            self._lines[id] = line
        return self._lines[id]

    def _made_line(self, node: Node, depth: int) -> _Line | None:
        F, builder = self._builder.language, self._builder
        if node.op is _INDEX and node.params["spec"] == (0,) and self._nodes[node.inputs[0]].aval.ndim == 1:
            line, of = self._places(node.inputs[1]), builder.symbol(node.inputs[0])
            return line and line._replace(at=lambda places: F.index(of, line.at(places), spec=(0,)))
        if transposes(node):
            line, size = self._line(node.inputs[0], depth + 1), sum(node.shape) - 1
            return line and line._replace(at=lambda places: line.at(size - 1 - places))
        if not node.op.pointwise or node.op.impure or node.check is not None:
            return None
        read: list[_Line] = []
        for i in node.inputs:
            x = self._nodes[i]
            line = self._line(i, depth + 1) if x.shape == node.shape else None
            if line is None and x.size != 1:
                return None
            read.append(line or _Line(lambda places, i=i: F.reshape(builder.symbol(i), shape=()), circular=True))
        return _Line(
            lambda places: builder.apply(node.op, [line.at(places) for line in read], node.params),
            all(line.circular for line in read),
        )

    def _wave(self, id: int) -> _Wave | None:
        if id not in self._waves:
            self._waves[id] = self._found_wave(self._nodes[id])
        return self._waves[id]

    def _found_wave(self, node: Node) -> _Wave | None:
        if node.op not in _WAVES or node.aval.ndim != 2:
            return None
        angle, part = self._held.value(node.inputs[0]), _WAVES[node.op]
        if angle is None or (angle.dtype.kind == "c") == bool(part) or angle.shape != node.shape:
            return None
        if not part:
            if np.real(angle).any():
                return None
            angle = np.imag(angle)
        return _fitted(part, angle.astype(np.float64), np.finfo(angle.dtype).eps)

    def _waved(self, wave: _Wave, x: Node, axis: int, rows: int) -> Symbol:
        """The sum over k of exp(i ...)[j, k] x[k]: of conjugates, for the sign of a transform."""
        F, builder, z = self._builder.language, self._builder, self._builder.symbol(x.id)
        dtype, ndim, columns = complex_of(x.dtype), x.aval.ndim, x.shape[axis]
        p, q = wave.turn.numerator, wave.turn.denominator

        def times(z: Symbol, count: int, shift: float, phase: float = 0.0) -> Symbol:
            """Each of `count` numbers turned back, by 2 pi p/q k shift + phase."""
            angle = 2 * np.pi / q * (p * shift * np.arange(count) % q) + phase
            shape = [1] * ndim
            shape[axis] = count
            return z * builder.constant(np.exp(-1j * angle).reshape(shape).astype(dtype))

        def joined(z: Symbol) -> Symbol:
            return F.complex(z, F.full(shape=z.shape, value=0.0, dtype=z.dtype))

        real = x.dtype.kind == "f" and not wave.rows
        if real:
            z = _padded(F, z, axis, q)
        else:
            z = F.conj(z) if x.dtype.kind == "c" else joined(z)
            z = _padded(F, times(z, columns, wave.rows), axis, q)
        if real and p == 1 and rows <= q // 2 + 1:
            z = F.rfft(z, axes=(axis,), norm="none", twice=False)
        else:
            z = F.fft(joined(z) if real else z, axes=(axis,), inverse=False, norm="none")
        at = p * np.arange(rows) % q
        if p == 1 and rows <= q:
            z = _cut(F, z, axis, 0, rows)
        else:
            z = F.index(z, builder.constant(at), spec=(*[slice(None)] * axis, 0))
        if wave.columns or wave.phase:
            z = times(z, rows, wave.columns, wave.rows * wave.columns * 2 * np.pi * p / q + wave.phase)
        return {"real": lambda: F.real(z), "imag": lambda: F.neg(F.imag(z)), "": lambda: F.conj(z)}[wave.part]()


def _is_even(value: np.ndarray) -> bool:
    size = np.abs(value)
    return bool(size.max() <= EVEN * size.min())


def _is_large(node: Node) -> bool:
    return node.aval.ndim == 2 and all(type(n) is int for n in node.shape) and min(node.shape) >= LEAST


def _fast(least: int) -> int:
    """The smallest number of this size or more that has no prime factor above five."""
    return min(
        2 ** max(0, math.ceil(math.log2(least / odd))) * odd
        for odd in (3**a * 5**b for a in range(12) for b in range(8))
        if odd <= 2 * least
    )


def _cut(F: Any, z: Symbol, axis: int, start: int, stop: int) -> Symbol:
    ends = [(0, n) for n in z.shape]
    ends[axis] = (start, stop)
    return F.slice(z, start=tuple([a for a, _ in ends]), stop=tuple([b for _, b in ends]), step=(1,) * len(ends))


def _padded(F: Any, z: Symbol, axis: int, size: int) -> Symbol:
    none, high = (0,) * len(z.shape), [0] * len(z.shape)
    high[axis] = size - z.shape[axis]
    return F.pad_zeros(z, low=none, high=tuple(high), interior=none) if high[axis] else z


def _fitted(part: str, angle: np.ndarray, eps: float) -> _Wave | None:
    """The wave with these angles, but for what they have been rounded, and whole turns."""
    if not np.isfinite(angle).all():
        return None
    across = angle[1, 1] - angle[1, 0] - angle[0, 1] + angle[0, 0]
    turn = Fraction(across / (2 * np.pi)).limit_denominator(8 * max(angle.shape))
    if not turn:
        return None
    step = 2 * np.pi * float(turn)
    columns, rows = (round(FINE * (angle[at] - angle[0, 0]) / step) / FINE for at in ((1, 0), (0, 1)))
    phase = angle[0, 0] - step * rows * columns
    i, j = np.arange(angle.shape[0])[:, None] + rows, np.arange(angle.shape[1]) + columns
    off = (angle - phase - step * i * j) / (2 * np.pi)
    bound = 4 * eps * float(np.abs(angle).max())
    if np.abs(off - np.round(off)).max() * 2 * np.pi > bound:
        return None
    return _Wave(part, turn, rows, columns, phase if abs(phase) > bound else 0.0)
