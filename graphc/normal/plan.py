"""In which order to multiply the factors of a term: subset dynamic programming over pairs.

The cost is that of graphc.rewrite.cost: of what is summed up, and of writing what comes out.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, final

from graphc.normal.affine import Unsolved
from graphc.normal.form import Factor
from graphc.rewrite.cost import PRODUCT_RATE, WRITE

MOST_FACTORS = 10
MOST_ORDERS = 24  # of the same atom's factors, to be compared


class Step(NamedTuple):
    """A product of parts: numbers of factors, or of steps before this one (behind the factors); the labels it keeps.

    renamed: of a part that is there already, with other labels: (its label, the label here)
    """

    parts: tuple[int, ...]
    labels: frozenset[int]
    renamed: tuple[tuple[int, int], ...] = ()


class Plan(NamedTuple):
    """The products to do one after the other; the last one is the term. cost: in scalar operations"""

    steps: tuple[Step, ...]
    cost: float


def size(labels: frozenset[int], sizes: Sequence[int]) -> int:
    """The number of elements of an array with an axis for each label."""
    return math.prod([sizes[k] for k in labels])


def product_cost(a: frozenset[int], b: frozenset[int], kept: frozenset[int], sizes: Sequence[int]) -> float:
    """Of one product, which sums over the labels that it does not keep."""
    whole, written = size(a | b, sizes), size(kept, sizes)
    if kept == a | b:
        return whole + WRITE * written
    if a == b:
        return 2 * whole + WRITE * written
    return 2 * whole / PRODUCT_RATE + WRITE * written


def planned(whole: Sequence[Factor], out: frozenset[int], sizes: Sequence[int]) -> Plan:
    """The cheapest order for the factors of a term. Raises Unsolved for too many.

    out: the labels that the result has
    """
    n = len(whole)
    if n > MOST_FACTORS:
        raise Unsolved
    factors = [frozenset([k for place in f.places for k in place.labels]) for f in whole]
    steps: list[Step] = []
    number = list(range(n))  # of the part that each factor is now
    labels = list(factors)
    cost = 0.0
    for k, own in enumerate(factors):  # what one factor alone sums up
        others = out.union(*[f for j, f in enumerate(factors) if j != k])
        if n == 1 or not own <= others:
            labels[k] = own & (others if n > 1 else out)
            if labels[k] != own or n == 1:
                cost += 0.0 if labels[k] == own else size(own, sizes) + WRITE * size(labels[k], sizes)
                steps.append(Step((k,), labels[k]))
                number[k] = n + len(steps) - 1
    if n > 1:
        alike = _Alike(whole, sizes)
        best = _orders(labels, out, sizes, alike)
        cost += best[(1 << n) - 1][0]
        _write(best, (1 << n) - 1, number, steps, n, alike)
    return Plan(tuple(steps), cost)


@final
class _Alike:
    """Products of some of the factors that are equal but for the names of labels, as A'B and (A'B)' are."""

    def __init__(self, factors: Sequence[Factor], sizes: Sequence[int]):
        self._factors = factors
        self._sizes = sizes
        self._repeated = len({f.atom for f in factors}) < len(factors)
        self._known: dict[tuple[int, frozenset[int]], tuple[Any, dict[int, int]]] = {}

    def same(self, a: int, b: int, of_a: frozenset[int], of_b: frozenset[int]) -> dict[int, int] | None:
        """The label in `b` for each that subset `a` keeps, if they are."""
        if not self._repeated or a.bit_count() != b.bit_count() or len(of_a) != len(of_b):
            return None
        (key, names), (other, theirs) = self._canonical(a, of_a), self._canonical(b, of_b)
        if key != other:
            return None
        back = {name: k for k, name in theirs.items()}
        return {k: back[names[k]] for k in of_a}

    def _canonical(self, subset: int, kept: frozenset[int]) -> tuple[Any, dict[int, int]]:
        """What the product of a subset is without the names of labels; and label -> number in it."""
        if (subset, kept) not in self._known:
            atoms: dict[int, list[Factor]] = {}
            for k, f in enumerate(self._factors):
                if subset >> k & 1:
                    atoms.setdefault(f.atom, []).append(f)
            groups = [itertools.permutations(atoms[k]) for k in sorted(atoms)]
            orders = [list(itertools.chain(*order)) for order in itertools.product(*groups)]
            if len(orders) > MOST_ORDERS:
                orders = orders[:1]
            self._known[subset, kept] = min([self._named(order, kept) for order in orders], key=lambda named: named[0])
        return self._known[subset, kept]

    def _named(self, order: Sequence[Factor], kept: frozenset[int]) -> tuple[Any, dict[int, int]]:
        names: dict[int, int] = {}
        key: list[Any] = []
        for f in order:
            for place in f.places:
                steps = [(names.setdefault(k, len(names)), stride) for k, stride in place.steps]
                key.append((f.atom, place.offset, tuple(steps)))
        return (tuple(key), tuple([(self._sizes[k], k in kept) for k in names])), names


_Best = Mapping[int, tuple[float, int, frozenset[int]]]  # subset -> cost, one of its two parts, labels


def _orders(factors: Sequence[frozenset[int]], out: frozenset[int], sizes: Sequence[int], alike: _Alike) -> _Best:
    n = len(factors)
    best: dict[int, tuple[float, int, frozenset[int]]] = {1 << k: (0.0, 0, f) for k, f in enumerate(factors)}
    for subset in range(1, 1 << n):
        if subset in best:
            continue
        rest = out.union(*[f for k, f in enumerate(factors) if not subset >> k & 1])
        kept = frozenset().union(*[f for k, f in enumerate(factors) if subset >> k & 1]) & rest
        lowest = subset & -subset
        found: tuple[float, int, frozenset[int]] | None = None
        part = (subset - 1) & subset
        while part:
            if part & lowest:
                a, b = best[part], best[subset ^ part]
                cost = a[0] + product_cost(a[2], b[2], kept, sizes)
                if alike.same(part, subset ^ part, a[2], b[2]) is None:
                    cost += b[0]
                if found is None or cost < found[0]:
                    found = cost, part, kept
            part = (part - 1) & subset
        assert found is not None
        best[subset] = found
    return best


def _write(best: _Best, subset: int, number: Sequence[int], steps: list[Step], n: int, alike: _Alike) -> int:
    """Append the steps that make `subset`. Returns its number."""
    if subset & (subset - 1) == 0:
        return number[subset.bit_length() - 1]
    _, part, kept = best[subset]
    rest = subset ^ part
    first = _write(best, part, number, steps, n, alike)
    names = alike.same(part, rest, best[part][2], best[rest][2])
    if names is None or not rest & (rest - 1):
        second = _write(best, rest, number, steps, n, alike)
    else:
        steps.append(Step((first,), best[rest][2], tuple(names.items())))
        second = n + len(steps) - 1
    steps.append(Step((first, second), kept))
    return n + len(steps) - 1
