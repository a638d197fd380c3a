"""The cheapest cut is as cheap as the best of all choices, and always feasible."""

from __future__ import annotations

import itertools
import random
from collections.abc import Collection, Mapping, Sequence

import pytest

from graphc.ir import cut
from graphc.ir.cut import NEVER, Price, cheapest_cut
from tests.work import lines_run

Operands = Mapping[int, Sequence[int]]
Prices = Mapping[int, Price]


def cost(operands: Operands, prices: Prices, needed: Collection[int], chosen: Collection[int]) -> int:
    """The cost of having `needed` when `chosen` are handed over and the rest is computed; NEVER if that cannot be."""
    total, seen, stack = 0, set(), list(needed)
    while stack:
        id = stack.pop()
        if id in seen:
            continue
        seen.add(id)
        if id in chosen or prices[id].hand_over == 0:
            total += prices[id].hand_over
        else:
            total += prices[id].compute
            stack.extend(operands[id])
    return min(total, NEVER)


def best(operands: Operands, prices: Prices, needed: Collection[int]) -> int:
    """The least cost, by trying every choice."""
    ids = list(operands)
    choices = (itertools.compress(ids, mask) for mask in itertools.product((0, 1), repeat=len(ids)))
    return min(cost(operands, prices, needed, set(chosen)) for chosen in choices)


def random_question(seed: int, size: int, reach: int) -> tuple[Operands, Prices, list[int]]:
    """A graph whose values can all be had: one that cannot be handed over can be computed from ones that can."""
    rng = random.Random(seed)
    operands: dict[int, list[int]] = {}
    prices: dict[int, Price] = {}
    for id in range(size):
        earlier = range(max(0, id - reach), id)
        operands[id] = [rng.choice(earlier) for _ in range(rng.randrange(4))] if id else []
        hand_over = rng.choice([0, 2, 4, 4, 4, 9])
        compute = NEVER if not operands[id] or rng.random() < 0.2 else rng.choice([0, 1, 1, 2, 5])
        if compute < NEVER and rng.random() < 0.1:
            hand_over = NEVER
        prices[id] = Price(hand_over, compute)
    return operands, prices, [id for id in range(size) if rng.random() < 0.4]


def check_optimal(seed: int) -> None:
    operands, prices, needed = random_question(seed, 9, 5)
    chosen = cheapest_cut(operands, prices, needed)
    found, least = cost(operands, prices, needed, chosen), best(operands, prices, needed)
    assert found == least, f"seed {seed}: costs {found}, the best {least}"
    assert all(0 < prices[id].hand_over < NEVER for id in chosen)


@pytest.mark.parametrize("seed", range(60))
def test_no_choice_is_cheaper(seed: int):
    check_optimal(seed)


@pytest.mark.parametrize("seed", range(30))
def test_large_networks_are_cut_in_the_same_place(seed: int, monkeypatch: pytest.MonkeyPatch):
    operands, prices, needed = random_question(seed, 60, 8)
    found = cheapest_cut(operands, prices, needed)
    monkeypatch.setattr(cut, "FEW", 0)
    assert cheapest_cut(operands, prices, needed) == found


def test_a_wrong_network_is_caught(monkeypatch):
    monkeypatch.setattr(cut, "_UNCUT", 3)
    with pytest.raises(AssertionError, match="the best"):
        for seed in range(200):
            check_optimal(seed)


@pytest.mark.parametrize("seed", range(20))
def test_prices_of_terabytes_are_not_too_large(seed: int):
    operands, small, needed = random_question(seed, 9, 5)
    prices = {id: Price(*(p if p == NEVER else p * 10**12 for p in price)) for id, price in small.items()}
    chosen = cheapest_cut(operands, prices, needed)
    assert cost(operands, prices, needed, chosen) == best(operands, prices, needed)


@pytest.mark.parametrize("seed", range(20))
def test_a_large_cut_is_feasible_and_no_worse_than_handing_over_what_is_needed(seed: int):
    operands, prices, needed = random_question(seed, 300, 12)
    plain = {id for id in needed if prices[id].hand_over < NEVER}
    found = cost(operands, prices, needed, cheapest_cut(operands, prices, needed))
    assert found < NEVER and found <= cost(operands, prices, needed, plain)


def test_nothing_needed_and_nothing_to_choose():
    assert cheapest_cut({}, {}, []) == set()
    assert cheapest_cut({0: (), 1: (0,)}, {0: Price(4, NEVER), 1: Price(1, 0)}, []) == set()
    assert cheapest_cut({0: ()}, {0: Price(0, NEVER)}, [0]) == set()
    assert cheapest_cut({0: ()}, {0: Price(7, NEVER)}, [0]) == {0}


def test_work_is_linear():
    lines = {}
    for size in (500, 5_000):
        question = random_question(0, size, 20)
        lines[size] = lines_run(lambda asked=question: cheapest_cut(*asked))
    assert lines[5_000] < 15 * lines[500], lines
