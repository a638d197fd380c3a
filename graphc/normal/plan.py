"""In which order to multiply the factors of a term: dynamic programming over sets of factors (`subsets.py`).

The cost is that of graphc.rewrite.cost: of what is summed up, and of writing what comes out.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, final

from graphc.normal.affine import Unsolved
from graphc.normal.bounds import KEY, PLAN, Exhausted
from graphc.normal.form import Factor
from graphc.normal.subsets import beside, connected, splits
from graphc.rewrite.cost import WRITE, of_product

MOST_FACTORS = 16
MOST_ORDERS = 24  # of the same atom's factors, to be compared


Atoms = tuple[int, ...]


class Step(NamedTuple):
    """A product of parts: numbers of factors, or of steps before this one (behind the factors); the labels it keeps.

    Without parts it is there already, with other labels.
    key    what identifies it, if anything asks: see `_Alike.key`
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
    left   units of work that may still be done; then `charge` raises Exhausted
    hopes  whether a product of which several terms may make use is cheaper in each; else it is in those that come after
    """

    def __init__(self, most: float = math.inf, hopes: bool = True) -> None:
        self.left = most
        self.hopes = hopes
        self._until = -math.inf
        self.made: dict[Any, tuple[Any, tuple[int, ...]]] = {}
        self._of_atoms: dict[Atoms, list[tuple[_Alike, int]]] = {}  # the products of a term, a subset
        self._atoms_made: set[Atoms] = set()  # of what has been made, or was meanwhile
        self._popular: dict[Atoms, Counter[Any]] = {}  # how often each product of these atoms is in terms
        self._summed = Counter[int]()  # in how many terms an atom is summed up before it is multiplied
        self._alike: dict[tuple[Any, ...], _Alike] = {}
        self.forms: dict[Any, Any] = {}

    def begin(self, terms: Iterable[tuple[Sequence[Factor], frozenset[int], Sequence[int]]]) -> None:
        """Note what will be in these terms; nothing has been made."""
        self.made.clear()
        self._atoms_made.clear()
        self._of_atoms.clear()
        self._popular.clear()
        self._summed.clear()
        self.note(terms)

    def note(self, terms: Iterable[tuple[Sequence[Factor], frozenset[int], Sequence[int]]]) -> None:
        """There will be these terms as well."""
        for factors, out, sizes in terms:
            alike = self.alike(factors, out, sizes)
            self._summed.update(_summed_alone(factors, out))
            for subset, atoms in alike.products:
                self._of_atoms.setdefault(atoms, []).append((alike, subset))
                self._popular.pop(atoms, None)

    def alike(self, factors: Sequence[Factor], out: frozenset[int], sizes: Sequence[int]) -> _Alike:
        """The products of subsets of the factors of a term."""
        term = tuple(factors), out, tuple(sizes)
        found = self._alike.get(term)
        if found is None:
            found = self._alike[term] = _Alike(factors, out, sizes, self.charge)
        return found

    def keep(self, key: Any, array: Any, numbers: tuple[int, ...]) -> None:
        """Note what has been made."""
        self.made[key] = array, numbers
        self._atoms_made.add(key[0])

    def charge(self, units: int) -> None:
        """Count work that is about to be done. Raises Exhausted if there has been enough."""
        self.left -= units
        if self.left < self._until:
            raise Exhausted

    @contextlib.contextmanager
    def limited(self, units: float) -> Iterator[None]:
        """A part of the work, which may take so many units."""
        self._until = self.left - units
        try:
            yield
        finally:
            self._until = -math.inf

    def is_needed(self, alike: _Alike, subset: int) -> bool:
        """Whether a product is there, or occurs in a term."""
        atoms = alike.atoms(subset)
        if atoms not in self._atoms_made and atoms not in self._of_atoms:
            return False
        key, _ = alike.key(subset)
        return key in self.made or self._count(key) > 0

    def common(self, alike: _Alike, subset: int) -> Any:
        """The key of a product that may be there, or in several terms, as its atoms tell; else None."""
        atoms = alike.atoms(subset)
        may = atoms in self._atoms_made or len(self._of_atoms.get(atoms, ())) > 1
        return alike.key(subset)[0] if may else None

    def sharers(self, key: Any) -> int:
        """How often a product occurs in terms."""
        return 1 if key is None or not self.hopes else max(self._count(key), 1)

    def is_shared(self, factors: Sequence[Factor], out: frozenset[int], sizes: Sequence[int]) -> bool:
        """Whether a term has a product, or the sum of an atom, that another may have as well."""
        alike = self.alike(factors, out, sizes)
        return any(self._summed[atom] > 1 for atom in _summed_alone(factors, out)) or any(
            self.sharers(self.common(alike, subset)) > 1 for subset, _ in alike.products
        )

    def _count(self, key: Any) -> int:
        atoms = key[0]
        known = self._popular.get(atoms)
        if known is None:
            found = [alike.key(subset)[0] for alike, subset in self._of_atoms.get(atoms, ())]
            known = self._popular[atoms] = Counter(found)
        return known[key]


def _summed_alone(factors: Sequence[Factor], out: frozenset[int]) -> set[int]:
    """The atoms with labels that neither another factor nor the result has."""
    own = [{k for place in f.places for k in place.labels} for f in factors]
    uses = Counter(itertools.chain.from_iterable(own))
    return {f.atom for f, ks in zip(factors, own, strict=True) if any(uses[k] == 1 and k not in out for k in ks)}


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
    if not lone or n < 2:
        return plan
    # what others need before these are summed up
    alike = memory.alike(whole, out | lone, sizes)
    if not memory.is_needed(alike, (1 << n) - 1):
        return plan
    longer = _planned(whole, factors, out | lone, sizes, memory)
    others = memory.sharers(alike.key((1 << n) - 1)[0]) if memory.hopes else 0  # this term is none of them
    cost = longer.cost * others / (others + 1) if others else longer.cost
    there = out.intersection(uses)  # of the result's labels, those that factors have
    cost += size(there | lone, sizes) + WRITE * size(there, sizes)
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
        order = _Order(labels, out, sizes, memory.alike(whole, out, sizes), memory)
        cost += order.cost
        order.write(number, steps)
    return Plan(tuple(steps), cost)


@final
class _Alike:
    """The products of subsets of factors, by keys in which labels are numbers: A'B and (A'B)' have the same."""

    def __init__(
        self, factors: Sequence[Factor], out: frozenset[int], sizes: Sequence[int], charge: Callable[[int], None]
    ):
        self._charge = charge
        self.factors = factors
        self._sizes = sizes
        self._labels = [frozenset([k for place in f.places for k in place.labels]) for f in factors]
        self._out = out
        self._known: dict[int, tuple[Any, tuple[int, ...]]] = {}
        self._atoms: dict[int, Atoms] = {}
        self._sorted = sorted([(f.atom, 1 << k) for k, f in enumerate(factors)])
        self.repeats = len({f.atom for f in factors}) < len(factors)  # whether factors may be equal

    @cached_property
    def products(self) -> list[tuple[int, Atoms]]:
        """The subsets of several factors that are connected by labels, and their atoms."""
        return [(s, self.atoms(s)) for s in connected(beside(self._labels)) or () if s & (s - 1)]

    def atoms(self, subset: int) -> Atoms:
        """Those of the factors of a subset, in order: products of others are others."""
        found = self._atoms.get(subset)
        if found is None:
            found = self._atoms[subset] = tuple([atom for atom, bit in self._sorted if bit & subset])
        return found

    def key(self, subset: int) -> tuple[Any, tuple[int, ...]]:
        """What the product of a subset is without the names of labels, its atoms first; and those that it keeps, in
        order.
        """
        if subset not in self._known:
            inside = [k for k in range(len(self.factors)) if subset >> k & 1]
            rest = self._out.union(*[f for k, f in enumerate(self._labels) if not subset >> k & 1])
            kept = frozenset().union(*[self._labels[k] for k in inside]) & rest
            factors = [self.factors[k] for k in inside]
            classes: dict[int, list[Factor]] = {}
            for f, own in zip(factors, self._classes(factors, kept), strict=True):
                classes.setdefault(own, []).append(f)
            groups = [classes[k] for k in sorted(classes)]
            orders = [list(itertools.chain(*groups))]
            if 1 < math.prod([math.factorial(len(g)) for g in groups]) <= MOST_ORDERS:
                ways = itertools.product(*[itertools.permutations(g) for g in groups])
                orders = [list(itertools.chain(*order)) for order in ways]
            self._charge(KEY * len(orders))
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
        return (tuple(sorted([f.atom for f in order])), tuple(key), flags), tuple([k for k in names if k in kept])


def _in_order(factor: Factor) -> list[int]:
    """The labels of a factor, as its axes have them."""
    return list(dict.fromkeys([k for place in factor.places for k in place.labels]))


def _ranked(values: Mapping[int, Any]) -> dict[int, int]:
    """The place of each value among the different ones, in order."""
    place = {v: k for k, v in enumerate(sorted(values.values()))}
    return {k: place[v] for k, v in values.items()}


@final
class _Order:
    """The order of products of several factors that costs least.

    Sets of factors and of labels are numbers with a bit for each: this is the innermost loop of the optimizer.
    """

    def __init__(
        self,
        factors: Sequence[frozenset[int]],
        out: frozenset[int],
        sizes: Sequence[int],
        alike: _Alike,
        memory: Memory,
    ):
        ways = splits(beside(factors))
        if ways is None:
            raise Unsolved
        memory.charge(PLAN + 2 * sum([len(way.parts) for way in ways]))
        self._alike = alike
        self._labels = [*frozenset(out).union(*factors)]
        bit = {k: 1 << b for b, k in enumerate(self._labels)}
        self._volume = {0: 1, **{b: sizes[k] for k, b in bit.items()}}  # by sets of labels
        whole, every = sum([bit[k] for k in out]), (1 << len(factors)) - 1
        reached = {
            1 << k: sum([bit[label] for label in own]) for k, own in enumerate(factors)
        }  # the labels of a subset
        self._kept = reached.copy()
        self._cost = dict.fromkeys(reached, 0.0)
        self._axes = [[bit[k] for k in _in_order(f) if k in bit] for f in alike.factors]
        self._part: dict[int, int] = {}  # of two, from which the product is made; 0: it is there
        self._written: set[Any] = set()  # keys
        self._every = every
        for subset, parts in ways:
            reached[subset] = reached[parts[0]] | reached[subset ^ parts[0]]
            elsewhere = whole
            for k in range(len(factors)):
                if not subset >> k & 1:
                    elsewhere |= reached[1 << k]
            self._kept[subset] = reached[subset] & elsewhere
            key = memory.common(alike, subset)
            if key is not None and key in memory.made:
                self._cost[subset], self._part[subset] = 0.0, 0
            else:
                self._cost[subset], self._part[subset] = self._cheapest(subset, parts)
                self._cost[subset] /= memory.sharers(key)

    def _cheapest(self, subset: int, parts: Sequence[int]) -> tuple[float, int]:
        """What the product of a subset costs, and one of its two parts."""
        cost, kept, size = self._cost, self._kept, self._size
        own = kept[subset]
        written, repeats = WRITE * size(own), self._alike.repeats
        least, best = math.inf, 0
        for part in parts:
            rest = subset ^ part
            a, b = kept[part], kept[rest]
            together = size(a | b)
            if own == a | b:
                price = together + written
            elif a == b:
                price = 2 * together + written
            else:
                price = of_product(2 * together, size(a) + size(b)) + written
                price += self._copied(part, b, own) + self._copied(rest, a, own)
            price += cost[part]
            if not (repeats and self._same(part, rest)):
                price += cost[rest]
            if price < least or not best:
                least, best = price, part
        return least, best

    def _copied(self, part: int, other: int, own: int) -> float:
        """What it costs to bring a factor into order, of which a product with `other` sums over axes in the middle."""
        if part & (part - 1) or len(axes := self._axes[part.bit_length() - 1]) < 3:
            return 0.0
        summed = [not k & own for k in axes if k & self._kept[part] and not k & other & own]
        if sum([x != y for x, y in itertools.pairwise(summed)]) < 2 or summed[0]:
            return 0.0
        return WRITE * self._size(self._kept[part])

    def _size(self, labels: int) -> int:
        """The number of elements of an array with an axis for each label."""
        found = self._volume.get(labels)
        if found is None:
            low = labels & -labels
            found = self._volume[labels] = self._volume[low] * self._size(labels ^ low)
        return found

    def _same(self, part: int, rest: int) -> bool:
        """Whether both parts of a subset are equal but for the names of labels."""
        alike = self._alike
        if part & (part - 1) == 0 or alike.atoms(part) != alike.atoms(rest):
            return False
        return alike.key(part)[0] == alike.key(rest)[0]

    @property
    def cost(self) -> float:
        """That of all."""
        return self._cost[self._every]

    def write(self, number: Sequence[int], steps: list[Step]) -> None:
        """Append the steps that make the product of all. number: of the part that each factor is."""
        self._write(self._every, number, steps)

    def _write(self, subset: int, number: Sequence[int], steps: list[Step]) -> int:
        if subset & (subset - 1) == 0:
            return number[subset.bit_length() - 1]
        part, kept = self._part[subset], self._kept[subset]
        key, names = self._alike.key(subset)
        parts: tuple[int, ...] = ()
        if part and key not in self._written:
            parts = self._write(part, number, steps), self._write(subset ^ part, number, steps)
            self._written.add(key)
        labels = frozenset([k for b, k in enumerate(self._labels) if kept >> b & 1])
        steps.append(Step(parts, labels, key, names))
        return len(number) + len(steps) - 1
