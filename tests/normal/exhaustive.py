"""Every way to compute an expression that the elementary laws lead to, and the cheapest of them.

What is equal is one value: its digits modulo a prime, for two draws of the inputs. So the laws may be tried in any
order, and a wrong one could do no harm. This shares nothing with graphc but the costs of ops.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, final

import numpy as np

from tests.normal.expressions import PRIME, Expression, leaves, make, parts, value
from tests.normal.laws import LAWS, Law

DRAWS = 2
MOST_WAYS = 3000  # operations in all
MOST_ROUNDS = 12

_BY_OPERATION: dict[str, list[Law]] = {}
for _law in LAWS:
    _BY_OPERATION.setdefault(_law.operation, []).append(_law)


class Way(NamedTuple):
    """An operation on values, by their numbers."""

    operation: str
    args: tuple[int, ...]
    params: tuple[Any, ...]


class Full(Exception):
    """There are MOST_WAYS."""


@final
class Bank:
    """Values, each with the ways to compute it. `F.<operation>(numbers, parameters)` adds one, and gives its number."""

    def __init__(self, most: int = MOST_WAYS):
        self.ways: list[list[Way]] = []
        self.is_full = False
        self._most = most
        self._values: list[tuple[np.ndarray, ...]] = []
        self._numbers: dict[Any, int] = {}
        self._known: dict[Way, int | None] = {}
        self._inputs: dict[int, Expression] = {}

    # --- what laws ask

    def __call__(self, operation: str, *given: Any) -> int | None:
        """The number of what an operation gives, or None if it does not fit. given: operands, then parameters"""
        count = 1 if operation in _UNARY else 2
        args, params = given[:count], given[count:]
        if any(a is None for a in args):
            return None
        way = Way(operation, args, params)
        if way not in self._known:
            if len(self._known) >= self._most:
                raise Full
            self._known[way] = self._added(way)
        return self._known[way]

    def __getattr__(self, operation: str) -> Any:
        return lambda *given: self(operation, *given)

    def shape(self, number: int) -> tuple[int, ...]:
        return self._values[number][0].shape

    def ndim(self, number: int) -> int:
        return self._values[number][0].ndim

    @staticmethod
    def put(args: Sequence[int], k: int, one: Any) -> list[Any]:
        return [*args[:k], one, *args[k + 1 :]]

    @staticmethod
    def either(a: int | None, b: int | None) -> int | None:
        return b if a is None else a

    def part_of_product(self, part: str, outer: Way, inner: Way) -> int | None:
        a, b = inner.args
        axis, *where = outer.params
        if max(self.ndim(a), self.ndim(b)) > 2:
            return None
        if self.ndim(a) == 2 and axis == 0:
            return self.mm(self(part, a, 0, *where), b)
        return self.mm(a, self(part, b, 1, *where)) if self.ndim(b) == 2 else None

    def sum_of_product(self, outer: Way, inner: Way) -> int | None:
        a, b = inner.args
        (axis,) = outer.params
        if max(self.ndim(a), self.ndim(b)) > 2:  # over the batch, of one matrix
            return self.mm(self.sum(a, 0), b) if self.ndim(b) == 2 and axis == 0 else None
        if axis in (0, None) and self.ndim(a) == 2:
            rows = self.mm(self.sum(a, 0), b)
            return rows if axis == 0 or self.ndim(b) == 1 else self.sum(rows, None)
        return self.mm(a, self.sum(b, 1)) if self.ndim(b) == 2 and axis in (1, None) else None

    def part_of_joined(self, part: str, outer: Way, inner: Way) -> int | None:
        axis, *where = outer.params
        if axis != inner.params[0]:
            return self.cat(
                *[self(part, a, axis, *where) for a in inner.args], 0 if part == "pick" else inner.params[0]
            )
        n = self.shape(inner.args[0])[axis]
        if where[-1] <= n - (part == "pick"):
            return self(part, inner.args[0], axis, *where)
        if where[0] >= n:
            return self(part, inner.args[1], axis, *[k - n for k in where])
        high = self.cut(inner.args[1], axis, 0, where[1] - n)
        return self.cat(self.cut(inner.args[0], axis, where[0], n), high, axis)

    def sum_of_joined(self, outer: Way, inner: Way) -> int | None:
        sums = [self.sum(a, *outer.params) for a in inner.args]
        return self.add(*sums) if outer.params in ((None,), inner.params) else self.cat(*sums, 0)

    def _halves(self, number: int, axis: int, n: int) -> tuple[int | None, int | None]:
        return self.cut(number, axis, 0, n), self.cut(number, axis, n, self.shape(number)[axis])

    def joined_times(self, outer: Way, inner: Way) -> int | None:
        (a, b), (axis,), c = inner.args, inner.params, outer.args[1]
        if max(self.ndim(a), self.ndim(c)) > 2:
            return None
        if axis == 0 and self.ndim(a) == 2:
            return self.cat(self.mm(a, c), self.mm(b, c), 0)
        low, high = self._halves(c, 0, self.shape(a)[axis])
        return self.add(self.mm(a, low), self.mm(b, high))

    def times_joined(self, outer: Way, inner: Way) -> int | None:
        (a, b), (axis,), c = inner.args, inner.params, outer.args[0]
        if max(self.ndim(a), self.ndim(c)) > 2:
            return None
        if axis == 1:
            return self.cat(self.mm(c, a), self.mm(c, b), self.ndim(c) - 1)
        low, high = self._halves(c, self.ndim(c) - 1, self.shape(a)[0])
        return self.add(self.mm(low, a), self.mm(high, b))

    def diagonal_of_joined(self, what: str, inner: Way) -> int | None:
        """The diagonal of a first matrix and, where it goes on, of the second."""
        (a, b), (axis,) = inner.args, inner.params
        n, whole = self.shape(a)[axis], self.shape(a)[1 - axis]
        if n + self.shape(b)[axis] != whole:
            return None
        parts = self(what, self.cut(a, 1 - axis, 0, n)), self(what, self.cut(b, 1 - axis, n, whole))
        return self.add(*parts) if what == "trace" else self.cat(*parts, 0)

    def kronecker_times_vector(self, x: int, a: int | None, b: int | None) -> int | None:
        """(A x B) vec(X) = vec(A X B')"""
        if a is None or b is None or (self.ndim(x), self.ndim(a), self.ndim(b)) != (1, 2, 2):
            return None
        square = self.shaped(x, (self.shape(a)[1], self.shape(b)[1]))
        return self.shaped(self.mm(self.mm(a, square), self.t(b)), (self.shape(a)[0] * self.shape(b)[0],))

    # --- what it holds

    def number(self, expression: Expression, rng: np.random.Generator) -> int:
        """The number of an expression's value."""
        of: dict[int, int] = {}
        drawn = {
            name: tuple([rng.integers(1, PRIME, shape).astype(float) for _ in range(DRAWS)])
            for name, shape in leaves(expression).items()
        }
        for part in parts(expression):
            if part.operation == "leaf":
                number = self._numbered(drawn[part.parameters[0]])
                self._inputs[number] = part
            else:
                number = self(part.operation, *[of[id(a)] for a in part.arguments], *part.parameters)
                assert number is not None
            of[id(part)] = number
        return of[id(expression)]

    def _numbered(self, values: tuple[np.ndarray, ...]) -> int:
        key = values[0].shape, *[hash(np.ascontiguousarray(v).tobytes()) for v in values]
        if key not in self._numbers:
            self._numbers[key] = len(self.ways)
            self.ways.append([])
            self._values.append(values)
        return self._numbers[key]

    def _added(self, way: Way) -> int | None:
        asked = way
        if way.operation == "solve":  # by the inverse, which is computed once
            inverse = self("inv", way.args[0])
            if inverse is None:
                return None
            asked = Way("mm", (inverse, way.args[1]), ())
        try:
            values = [
                value(asked.operation, [self._values[a][k] for a in asked.args], asked.params) for k in range(DRAWS)
            ]
        except (ValueError, IndexError):
            return None
        number = self._numbered(tuple(values))
        if number not in self._inputs and number not in way.args:
            self.ways[number].append(way)
        return number

    def saturate(self, rounds: int = MOST_ROUNDS) -> None:
        """Apply all laws to all ways, until there are no others, or too many."""
        done: set[Any] = set()
        try:
            for _ in range(rounds):
                before = len(done)
                for number in range(len(self.ways)):
                    for way in list(self.ways[number]):
                        for law in _BY_OPERATION.get(way.operation, ()):
                            self._apply(law, number, way, done)
                if len(done) == before:
                    return
            self.is_full = True
        except Full:
            self.is_full = True

    def _apply(self, law: Law, number: int, way: Way, done: set[Any]) -> None:
        for inner in self._inner(law, way):
            key = id(law), way, inner
            if key not in done:
                done.add(key)
                law.right(self, way, *inner)

    def _inner(self, law: Law, way: Way) -> Iterable[tuple[Way, ...]]:
        choices = [[w for w in self.ways[way.args[k]] if w.operation == name] for k, name in law.inner]
        if not choices:
            return [()]
        if len(choices) == 1:
            return [(w,) for w in choices[0]]
        return [(v, w) for v in choices[0] for w in choices[1]]

    # --- the cheapest

    def cheapest(self, number: int, written: float) -> Expression:
        """An expression of least cost; common parts are the same objects. written: for an element of elementwise ops"""
        best = self._choices(written)
        made: dict[int, Expression] = {}

        def build(k: int) -> Expression:
            if k not in made:
                if k in self._inputs:
                    made[k] = self._inputs[k]
                else:
                    way = best[k][1]
                    assert way is not None
                    made[k] = make(way.operation, *[build(a) for a in way.args], parameters=way.params)
            return made[k]

        return build(number)

    def _choices(self, written: float) -> dict[int, tuple[dict[int, float], Way | None, float]]:
        """For each value: the costs of all that is computed for it, by number, and the last operation."""
        best: dict[int, tuple[dict[int, float], Way | None, float]] = {k: ({}, None, 0.0) for k in self._inputs}
        costs = {way: self._cost(way, k, written) for k, ways in enumerate(self.ways) for way in ways}
        changed = True
        while changed:
            changed = False
            for number, ways in enumerate(self.ways):
                for way in ways:
                    if any(a not in best for a in way.args):
                        continue
                    known = best.get(number)
                    own = costs[way]
                    first, *rest = [best[a] for a in way.args]
                    if known is not None and own + max(first[2], *[r[2] for r in rest], 0) >= known[2] - 1e-9:
                        continue
                    total = dict(first[0])
                    for r in rest:
                        total.update(r[0])
                    if number in total:
                        continue
                    total[number] = own
                    price = math.fsum(total.values())
                    if known is None or price < known[2] - 1e-9:
                        best[number] = total, way, price
                        changed = True
        return best

    def _cost(self, way: Way, number: int, written: float) -> float:
        shapes = [self.shape(a) for a in way.args]
        size = math.prod(self.shape(number))
        read = sum(map(math.prod, shapes))
        if way.operation in ("t", "cut", "pick", "shaped"):
            return 1e-3
        if way.operation == "mm":
            whole = math.prod(shapes[0]) * (1 if len(shapes[1]) == 1 else shapes[1][-1])
            return max(2 * whole / 8, read) + 2 * size
        if way.operation in ("inv", "solve"):
            n = shapes[0][0]
            return max((2 * n * size + 2 * n**3 // 3) / 8, read) + 2 * size
        if way.operation == "f":
            return (8 + written) * size
        if way.operation in ("sum", "trace", "diagv"):
            return (read if way.operation == "sum" else size) + 2 * size
        return (1 + written) * size


_UNARY = ("t", "scale", "sum", "cut", "pick", "diagm", "diagv", "trace", "shaped", "inv", "f")


def candidates(expression: Expression, most: int = MOST_WAYS) -> tuple[list[Expression], Bank]:
    """The cheapest expressions, each for another guess of what elementwise operations cost; and all that was found."""
    bank = Bank(most)
    number = bank.number(expression, np.random.default_rng(0))
    bank.saturate()
    return [bank.cheapest(number, written) for written in (2.0, 0.0)], bank
