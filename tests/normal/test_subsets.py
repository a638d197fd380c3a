"""Which sets of factors are planned: what labels connect, and no order is missed that costs less."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from graphc.normal import subsets
from graphc.normal.affine import label
from graphc.normal.form import Factor
from graphc.normal.plan import planned
from graphc.normal.subsets import beside, connected, splits


def path(n: int) -> tuple[int, ...]:
    return beside([frozenset([k, k + 1]) for k in range(n)])


@pytest.mark.parametrize("n", [1, 2, 5, 16])
def test_connected_sets_of_a_path_are_its_runs(n: int):
    runs = {((1 << b) - 1) & ~((1 << a) - 1) for a in range(n) for b in range(a + 1, n + 1)}
    assert connected(path(n)) == tuple(sorted(runs))


def test_a_run_of_a_path_is_split_between_two_factors():
    for way in splits(path(9)) or ():
        assert len(way.parts) == way.whole.bit_count() - 1
        assert all(way.whole & -way.whole & part and part & ~way.whole == 0 for part in way.parts)


def test_what_no_label_connects_is_multiplied_as_a_whole():
    """x'y and u'v are numbers, which may scale w or each other's factors."""
    labels = [{0}, {0}, {1}, {1}, {2}]
    sets = {way.whole for way in splits(beside([frozenset(own) for own in labels])) or ()}
    assert {0b00111, 0b10011, 0b11111} <= sets
    assert 0b00101 not in sets  # x u', before x'y is there or u'v is


def test_too_many_sets_are_not_planned():
    assert splits(beside([frozenset([0])] * 11)) is None
    assert connected(path(40)) is not None


def test_no_order_of_a_connected_term_costs_less(monkeypatch: pytest.MonkeyPatch):
    """Against all pairs of sets: chains, cycles and trees of matrices of random sizes."""
    rng = np.random.default_rng(0)
    terms = []
    for _ in range(60):
        n = int(rng.integers(5, 8))
        ends = [(k, k + 1) for k in range(n)]
        if rng.random() < 0.3:
            ends[-1] = (n - 1, 0)
        elif rng.random() < 0.5:
            ends = [(int(rng.integers(0, k + 1)), k + 1) for k in range(n)]
        sizes = [int(s) for s in rng.choice([2, 7, 30, 200], n + 1)]
        out = frozenset(int(k) for k in rng.choice(n, 2, replace=False))
        terms.append(([Factor(k, (label(a), label(b))) for k, (a, b) in enumerate(ends)], out, sizes))
    some = [planned(*term).cost for term in terms]
    monkeypatch.setattr(subsets, "FEW", math.inf)
    for cached in (splits, connected):
        cached.cache_clear()
    every = [planned(*term).cost for term in terms]
    splits.cache_clear()
    assert all(b <= a for a, b in zip(some, every, strict=True))
    dearer = [a / b for a, b in zip(some, every, strict=True) if a > 1.001 * b]
    assert len(dearer) <= 3, dearer
    assert max(itertools.chain([1.0], dearer)) < 1.5
