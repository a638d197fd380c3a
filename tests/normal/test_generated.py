"""Random linear algebra: as cheap as exhaustive search finds it, and the same in float64 and modulo a prime."""

from __future__ import annotations

import numpy as np
import pytest

import eager as torch
import graphc
from graphc.normal import form as normal_form
from graphc.passes import pipeline
from tests.normal.exhaustive import MOST_WAYS, Bank, candidates
from tests.normal.expressions import PRIME, leaf, leaves, make, parts, program, source
from tests.normal.generated import random_expression
from tests.normal.primes import residues
from tests.normal.searches import GOAL, Search, agree, searched, traced

FEW_WAYS = 400  # of computing an expression, for the tests that every change waits for
SHARE = 0.95  # of expressions, at least, that cost at most GOAL times what the search finds


def check_searches(found: dict[int, Search]) -> None:
    assert [s.source for s in found.values() if s.is_slower] == []
    assert [s.source for s in found.values() if s.disagrees] == []
    missed = [f"{seed}: {s.ratio:.2f} {s.source}" for seed, s in found.items() if s.ratio > GOAL]
    assert len(missed) <= (1 - SHARE) * len(found), "\n".join(missed)


def without_inverses(seeds: range) -> list[int]:
    """Those whose search is quick."""
    return [k for k in seeds if all(part.operation != "inv" for part in parts(random_expression(k)))]


def test_programs_cost_what_exhaustive_search_finds():
    check_searches({seed: searched(seed, most=FEW_WAYS) for seed in without_inverses(range(24))})


def test_gradients_cost_what_those_of_the_cheapest_forms_cost():
    check_searches({seed: searched(seed, gradient=True, most=FEW_WAYS) for seed in without_inverses(range(34, 38))})


@pytest.mark.deep
@pytest.mark.parametrize("gradient", [False, True], ids=["value", "gradient"])
def test_many_programs(gradient: bool):
    count = 300 if gradient else 1000
    check_searches({seed: searched(seed, gradient, MOST_WAYS) for seed in range(1000, 1000 + count)})


def check_residues(seeds: range) -> int:
    """How many of them can be asked: all but those with functions of elements, and singular matrices."""
    asked = 0
    for seed in seeds:
        expression = random_expression(seed)
        if any(part.operation == "f" for part in parts(expression)):
            continue
        rng = np.random.default_rng(seed)
        given = [rng.integers(1, PRIME, shape).astype(float) for shape in leaves(expression).values()]
        graph, _ = traced(expression, seed, gradient=False)
        for a, b in zip(residues(graphc.optimize(graph), given), residues(graph, given), strict=True):
            np.testing.assert_array_equal(a, b, err_msg=f"seed {seed}: {source(expression)}")
        asked += 1
    return asked


def test_optimized_programs_are_equal_modulo_a_prime():
    assert check_residues(range(2000, 2060)) > 30


@pytest.mark.deep
def test_many_optimized_programs_are_equal_modulo_a_prime():
    check_residues(range(2060, 5000))


# --- the checks


def test_the_search_finds_the_forms_of_experts():
    a, u, v, x = leaf("a", (96, 96)), leaf("u", (96,)), leaf("v", (96,)), leaf("x", (96,))
    product = make("mm", make("mm", make("t", a), a), x)
    low_rank = make("mm", make("add", a, make("outer", u, v)), x)
    trace = make("trace", make("mm", a, a))
    for expression, wanted in (
        (product, ("a.mT @ (a @ x)", "a @ x @ a")),
        (low_rank, ("a @ x + (v @ x) * u",)),
        (trace, ("(a * a.mT).sum()",)),
    ):
        found = [source(form).removeprefix("return ") for form in candidates(expression)[0]]
        assert set(found) & set(wanted), found


def test_each_form_that_the_search_finds_has_the_value():
    for seed in range(20):
        expression = random_expression(seed)
        (written, given), forms = traced(expression, seed, False), candidates(expression, FEW_WAYS)[0]
        names = list(leaves(expression))
        for form in forms:
            own = [given[names.index(name)] for name in leaves(form)]
            graph = graphc.trace(program(form), *map(torch.from_numpy, own))
            np.testing.assert_allclose(graph(*own), written(*given), rtol=1e-7, atol=1e-9)


def test_a_search_that_is_full_says_so():
    bank = Bank(most=30)
    bank.number(random_expression(50), np.random.default_rng(0))
    bank.saturate()
    assert bank.is_full


def test_a_planner_that_plans_nothing_is_found(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pipeline, "rewrite_regions", lambda graph, *_, **__: (graph, []))
    with pytest.raises(AssertionError, match="torch"):
        check_searches({seed: searched(seed, most=100) for seed in without_inverses(range(12))})


def test_a_wrong_coefficient_is_found(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(normal_form, "_exact", lambda value: value.item() + 1)
    product = make("mm", leaf("a", (96, 96)), leaf("b", (96, 96)))
    twice, thrice = (make("scale", product, parameters=(n,)) for n in (2, 3))
    fivefold = make("mm", make("add", twice, thrice), leaf("x", (96,)))
    written, given = traced(fivefold, 0, False)
    wrong = graphc.optimize(written)
    assert not agree(wrong, written, given)
    whole = [np.rint(abs(a) * 1000) for a in given]
    assert not np.array_equal(residues(wrong, whole)[0], residues(written, whole)[0])
