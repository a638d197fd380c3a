"""In which order to multiply the factors of a term: subset dynamic programming over pairs.

The cost is that of graphc.rewrite.cost: of what is summed up, and of writing what comes out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from graphc.normal.affine import Unsolved
from graphc.rewrite.cost import PRODUCT_RATE, WRITE

MOST_FACTORS = 10


class Step(NamedTuple):
    """A product of parts: numbers of factors, or of steps before this one (behind the factors); the labels it keeps."""

    parts: tuple[int, ...]
    labels: frozenset[int]


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


def planned(factors: Sequence[frozenset[int]], out: frozenset[int], sizes: Sequence[int]) -> Plan:
    """The cheapest order for factors with these labels. Raises Unsolved for too many.

    out: the labels that the result has
    """
    n = len(factors)
    if n > MOST_FACTORS:
        raise Unsolved
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
    best = _orders(labels, out, sizes)
    if n > 1:
        cost += best[(1 << n) - 1][0]
        _write(best, (1 << n) - 1, labels, number, steps, n)
    return Plan(tuple(steps), cost)


_Best = Mapping[int, tuple[float, int, frozenset[int]]]  # subset -> cost, one of its two parts, labels


def _orders(factors: Sequence[frozenset[int]], out: frozenset[int], sizes: Sequence[int]) -> _Best:
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
                cost = a[0] + b[0] + product_cost(a[2], b[2], kept, sizes)
                if found is None or cost < found[0]:
                    found = cost, part, kept
            part = (part - 1) & subset
        assert found is not None
        best[subset] = found
    return best


def _write(
    best: _Best, subset: int, factors: Sequence[frozenset[int]], number: Sequence[int], steps: list[Step], n: int
) -> int:
    """Append the steps that make `subset`. Returns its number."""
    if subset & (subset - 1) == 0:
        return number[subset.bit_length() - 1]
    _, part, kept = best[subset]
    pair = tuple([_write(best, p, factors, number, steps, n) for p in (part, subset ^ part)])
    steps.append(Step(pair, kept))
    return n + len(steps) - 1
