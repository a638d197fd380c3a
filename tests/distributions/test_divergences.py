"""Kullback-Leibler divergences: PyTorch's for all pairs that it has, and the mean of the difference of densities."""

from __future__ import annotations

import warnings
from typing import Any

import eager as torch
from eager.distributions import kl
from eager.distributions.divergences.registry import _KL_REGISTRY
from tests.distributions.cases import CASES
from tests.distributions.observed import Parameters, answer, gradients, same
from tests.oracle import asked_of_torch, torch_or_skip

# one case of each class
FIRST = {case.name.rpartition("-")[0] or case.name: case for case in reversed(CASES)}


def _pairs(names: list[str]) -> list[tuple[str, str]]:
    assert kl.kl_divergence is torch.distributions.kl_divergence  # importing it registers the pairs
    registered = {(p.__name__, q.__name__) for p, q in _KL_REGISTRY}
    return sorted((p, q) for p in names for q in names if (p, q) in registered or p == q)


PAIRS = _pairs(list(FIRST))


def _divergence(torch: Any, p: str, q: str) -> list[Any]:
    make = Parameters(torch)
    d = torch.distributions

    def divergence() -> Any:
        make.made.clear()
        make.scale = 1.0
        first = FIRST[p].build(d, make)
        make.scale = 1.05  # other parameters than those of p, if it is of the same class
        return d.kl_divergence(first, FIRST[q].build(d, make))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [answer(divergence), answer(lambda: gradients(torch, divergence(), make.made))]


@asked_of_torch("pair", PAIRS)
def test_divergences_and_gradients_are_those_of_torch(pair: tuple[str, str]):
    ours, theirs = _divergence(torch, *pair), _divergence(torch_or_skip(), *pair)
    assert same(ours, theirs), f"{ours}\n{theirs}"
