"""In which order to multiply the factors of a term: subset dynamic programming over pairs.

The cost is that of graphc.rewrite.cost: of what is summed up, and of writing what comes out.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, final

from graphc.normal.affine import Unsolved
from graphc.normal.form import Factor
from graphc.rewrite.cost import PRODUCT_RATE, WRITE

MOST_FACTORS = 10
MOST_KEYED = 8  # factors of a term whose products are compared with others
MOST_ORDERS = 24  # of the same atom's factors, to be compared


class Step(NamedTuple):
    """A product of parts: numbers of factors, or of steps before this one (behind the factors); the labels it keeps.

    Without parts it is there already, with other labels.
    key    what identifies it, if anything asks
    names  the labels in the order in which the key numbers them
    """

    parts: tuple[int, ...]
    labels: frozenset[int]
    key: Any = None
    names: tuple[int, ...] = ()


class Plan(NamedTuple):
    """The products to do one after the other; the last one is the term. cost: in scalar operations"""

    steps: tuple[Step, ...]
    cost: float


def size(labels: frozenset[int], sizes: Sequence[int]) -> int:
    """The number of elements of an array with an axis for each label."""
    return math.prod([sizes[k] for k in labels])


@final
class Memory:
    """What terms have in common: products of some of their factors that are equal but for the names of labels.

    made   by key, those that have been computed: an array, and the number in the key of the label of each axis
    forms  of nodes that have been lifted
    most   pairs of subsets of factors that may be compared, in all; then terms are Unsolved
    """

    def __init__(self, most: float = math.inf) -> None:
        self._left = most
        self.made: dict[Any, tuple[Any, tuple[int, ...]]] = {}
        self._popular: Counter[Any] = Counter()
        self._alike: dict[tuple[Any, ...], _Alike] = {}
        self.forms: dict[Any, Any] = {}

    def begin(self, terms: Iterable[tuple[Sequence[Factor], frozenset[int], Sequence[int]]]) -> None:
        """Count what will be in several of these terms; nothing has been made."""
        self.made.clear()
        self._popular.clear()
        for factors, out, sizes in terms:
            self._popular.update(set(self.alike(factors, out, sizes).keys()))

    def alike(self, factors: Sequence[Factor], out: frozenset[int], sizes: Sequence[int]) -> _Alike:
        """The products of subsets of the factors of a term."""
        term = tuple(factors), out, tuple(sizes)
        found = self._alike.get(term)
        if found is None:
            found = self._alike[term] = _Alike(factors, out, sizes)
        return found

    def charge(self, pairs: int) -> None:
        """Count the work of a plan. Raises Unsolved if there has been enough."""
        self._left -= pairs
        if self._left < 0:
            raise Unsolved

    def is_needed(self, key: Any) -> bool:
        """Whether a product is there, or occurs in a term."""
        return key in self.made or key in self._popular

    def sharers(self, key: Any) -> int:
        """In how many terms a product occurs."""
        return max(self._popular[key], 1)


def planned(whole: Sequence[Factor], out: frozenset[int], sizes: Sequence[int], memory: Memory | None = None) -> Plan:
    """The cheapest order for the factors of a term. Raises Unsolved for too many.

    out     the labels that the result has
    memory  what is there already, or will be used by others, is cheaper
    """
    n = len(whole)
    if n > MOST_FACTORS:
        raise Unsolved
    memory = Memory() if memory is None else memory
    factors = [frozenset([k for place in f.places for k in place.labels]) for f in whole]
    plan = _planned(whole, factors, out, sizes, memory)
    uses = Counter(itertools.chain.from_iterable(factors))
    lone = frozenset([k for k, count in uses.items() if count == 1]) - out
    if not lone or not 1 < n <= MOST_KEYED:
        return plan
    # what others need before these are summed up
    key, _ = memory.alike(whole, out | lone, sizes).key((1 << n) - 1)
    if not memory.is_needed(key):
        return plan
    longer = _planned(whole, factors, out | lone, sizes, memory)
    cost = longer.cost + size(out | lone, sizes) + WRITE * size(out, sizes)
    last = Step((n + len(longer.steps) - 1,), out)
    return Plan((*longer.steps, last), cost) if cost < plan.cost else plan


def _planned(
    whole: Sequence[Factor],
    factors: Sequence[frozenset[int]],
    out: frozenset[int],
    sizes: Sequence[int],
    memory: Memory,
) -> Plan:
    n = len(whole)
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
        memory.charge(3**n)
        order = _Order(labels, out, sizes, memory.alike(whole, out, sizes), memory)
        cost += order.cost
        order.write(number, steps)
    return Plan(tuple(steps), cost)


@final
class _Alike:
    """The products of subsets of factors, by keys in which labels are numbers: A'B and (A'B)' have the same."""

    def __init__(self, factors: Sequence[Factor], out: frozenset[int], sizes: Sequence[int]):
        self._factors = factors
        self._sizes = sizes
        self._labels = [_bits([k for place in f.places for k in place.labels]) for f in factors]
        self._out = _bits(out)
        self._known: dict[int, tuple[Any, tuple[int, ...]]] = {}

    def keys(self) -> list[Any]:
        """Those of all subsets of several factors that are connected by labels."""
        n = len(self._factors)
        return [self.key(s)[0] for s in range(3, 1 << n) if self._connected(s)] if n <= MOST_KEYED else []

    def key(self, subset: int) -> tuple[Any, tuple[int, ...]]:
        """What the product of a subset is without the names of labels; and those that it keeps, in order."""
        if subset not in self._known:
            inside = [k for k in range(len(self._factors)) if subset >> k & 1]
            own, rest = _apart(self._labels, subset)
            kept = _numbers(own & (rest | self._out))
            factors = [self._factors[k] for k in inside]
            classes: dict[int, list[Factor]] = {}
            for f, own in zip(factors, self._classes(factors, kept), strict=True):
                classes.setdefault(own, []).append(f)
            groups = [classes[k] for k in sorted(classes)]
            orders = [list(itertools.chain(*groups))]
            if 1 < math.prod([math.factorial(len(g)) for g in groups]) <= MOST_ORDERS:
                ways = itertools.product(*[itertools.permutations(g) for g in groups])
                orders = [list(itertools.chain(*order)) for order in ways]
            self._known[subset] = min([self._named(order, kept) for order in orders], key=lambda named: named[0])
        return self._known[subset]

    def _classes(self, factors: Sequence[Factor], kept: frozenset[int]) -> list[int]:
        """A number for each factor that does not depend on the names of labels: by its atom, and those it meets."""
        own = [f.atom for f in factors]
        if len(set(own)) == len(own):
            return own
        of: dict[int, Any] = {
            k: (self._sizes[k], k in kept) for f in factors for place in f.places for k in place.labels
        }
        of = _ranked(of)
        for _ in range(len(factors)):
            seen = [
                (c, tuple([(p.offset, tuple([(of[k], stride) for k, stride in p.steps])) for p in f.places]))
                for c, f in zip(own, factors, strict=True)
            ]
            refined = list(_ranked(dict(enumerate(seen))).values())
            met: dict[int, list[Any]] = {k: [] for k in of}
            for c, f in zip(refined, factors, strict=True):
                for axis, p in enumerate(f.places):
                    for k, stride in p.steps:
                        met[k].append((c, axis, stride))
            of = _ranked({k: (of[k], tuple(sorted(met[k]))) for k in of})
            if len(set(refined)) in (len(set(own)), len(factors)):
                return refined
            own = refined
        return own

    def _named(self, order: Sequence[Factor], kept: frozenset[int]) -> tuple[Any, tuple[int, ...]]:
        names: dict[int, int] = {}
        key: list[Any] = []
        for f in order:
            key.append(f.atom)
            for place in f.places:
                key.append((place.offset, tuple([(names.setdefault(k, len(names)), s) for k, s in place.steps])))
        flags = tuple([(self._sizes[k], k in kept) for k in names])
        return (tuple(key), flags), tuple([k for k in names if k in kept])

    def _connected(self, subset: int) -> bool:
        first, *left = [own for k, own in enumerate(self._labels) if subset >> k & 1]
        reached, several = first, bool(left)
        while left:
            far = [own for own in left if not own & reached]
            if len(far) == len(left):
                return False
            for own in left:
                reached |= own if own & reached else 0
            left = far
        return several


def _ranked(values: Mapping[int, Any]) -> dict[int, int]:
    """The place of each value among the different ones, in order."""
    place = {v: k for k, v in enumerate(sorted(values.values()))}
    return {k: place[v] for k, v in values.items()}


def _bits(labels: Iterable[int]) -> int:
    """A set of labels as a number."""
    return functools.reduce(lambda bits, k: bits | 1 << k, labels, 0)


def _numbers(bits: int) -> frozenset[int]:
    return frozenset([k for k in range(bits.bit_length()) if bits >> k & 1])


def _apart(labels: Sequence[int], subset: int) -> tuple[int, int]:
    """The labels, as bits, of the factors in a subset, and of those that are not."""
    own = rest = 0
    for k, bits in enumerate(labels):
        if subset >> k & 1:
            own |= bits
        else:
            rest |= bits
    return own, rest


class _Best(NamedTuple):
    """How to make the product of a subset: at what cost, from which of its two parts, and the labels that it keeps, as
    bits. part 0: it is there."""

    cost: float
    part: int
    labels: int


@final
class _Order:
    """The order of products of several factors that costs least."""

    def __init__(
        self,
        factors: Sequence[frozenset[int]],
        out: frozenset[int],
        sizes: Sequence[int],
        alike: _Alike,
        memory: Memory,
    ):
        self._alike = alike
        self._memory = memory
        self._count = n = len(factors)
        self._sizes = sizes
        self._counts: dict[int, int] = {0: 1}  # of elements, by labels
        labels, kept_by_all = [_bits(f) for f in factors], _bits(out)
        self._best: dict[int, _Best] = {1 << k: _Best(0.0, 0, f) for k, f in enumerate(labels)}
        self._written: set[Any] = set()  # keys
        keyed = n <= MOST_KEYED
        for subset in range(1, 1 << n):
            if subset in self._best:
                continue
            own, rest = _apart(labels, subset)
            kept = own & (rest | kept_by_all)
            key = alike.key(subset)[0] if keyed else None
            if key is not None and key in memory.made:
                self._best[subset] = _Best(0.0, 0, kept)
            else:
                self._best[subset] = self._cheapest(subset, kept, 1 if key is None else memory.sharers(key))

    def _size(self, labels: int) -> int:
        found = self._counts.get(labels)
        if found is None:
            last = labels.bit_length() - 1
            found = self._counts[labels] = self._size(labels ^ 1 << last) * self._sizes[last]
        return found

    def _cost(self, a: int, b: int, kept: int) -> float:
        """Of one product, which sums over the labels that it does not keep."""
        whole, written = self._size(a | b), WRITE * self._size(kept)
        if kept == a | b:
            return whole + written
        if a == b:
            return 2 * whole + written
        return max(2 * whole / PRODUCT_RATE, self._size(a) + self._size(b)) + written

    def _cheapest(self, subset: int, kept: int, sharers: int) -> _Best:
        best, lowest = self._best, subset & -subset
        found: _Best | None = None
        part = (subset - 1) & subset
        while part:
            if part & lowest:
                a, b = best[part], best[subset ^ part]
                cost = a.cost + self._cost(a.labels, b.labels, kept)
                cost += 0.0 if self._same(part, subset) else b.cost
                if found is None or cost < found.cost:
                    found = _Best(cost, part, kept)
            part = (part - 1) & subset
        assert found is not None
        return found._replace(cost=found.cost / sharers)

    def _same(self, part: int, subset: int) -> bool:
        """Whether both parts of a subset are equal but for the names of labels."""
        rest = subset ^ part
        several = self._count <= MOST_KEYED and part & (part - 1) and part.bit_count() == rest.bit_count()
        return bool(several) and self._alike.key(part)[0] == self._alike.key(rest)[0]

    @property
    def cost(self) -> float:
        """That of all."""
        return self._best[(1 << self._count) - 1].cost

    def write(self, number: Sequence[int], steps: list[Step]) -> None:
        """Append the steps that make the product of all. number: of the part that each factor is."""
        self._write((1 << self._count) - 1, number, steps)

    def _write(self, subset: int, number: Sequence[int], steps: list[Step]) -> int:
        if subset & (subset - 1) == 0:
            return number[subset.bit_length() - 1]
        _, part, kept = self._best[subset]
        key, names = self._alike.key(subset) if self._count <= MOST_KEYED else (None, ())
        parts: tuple[int, ...] = ()
        if part and (key is None or key not in self._written):
            parts = self._write(part, number, steps), self._write(subset ^ part, number, steps)
            self._written.add(key)
        steps.append(Step(parts, _numbers(kept), key, names))
        return self._count + len(steps) - 1
