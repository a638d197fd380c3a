"""The third opinion: faults in what all modes share are found, and named, in the default modes."""

from __future__ import annotations

import numpy as np
import pytest

import compare
import eager as torch
from compare.judging.tolerance import Verdict
from compare.selftest.faults import shared, special_points
from compare.selftest.hunting import hunt
from compare.selftest.planting import declared
from graphc.ops import OPS
from graphc.ops.references import everywhere
from tests.depth import one_in

FAULTS = {fault.name: fault for fault in (*shared.FAULTS, *special_points.FAULTS)}
SOME = (
    "kernels of argmax: of equals the last", "kernels of permute: the inverse permutation",
    "kernels of eq: nan equals nan",
    "kernels of log_softmax: not shifted", "rule of amin.input: all to the first of equals",
    "rule of prod.input: 0 beside a zero",
    "rule of abs.input: 1 at 0", "kernels of index: negative indices are 0",
)  # fmt: skip


def _found(name: str) -> None:
    catch = hunt(FAULTS[name], seconds=0.0)
    assert catch.found, name
    assert catch.localized, f"{name}: {catch.culprit}"


@pytest.mark.parametrize("name", one_in(2, SOME))
def test_a_fault_in_all_modes_is_found_and_named(name: str):
    _found(name)


@pytest.mark.deep
@pytest.mark.parametrize("name", [name for name in FAULTS if name not in SOME])
def test_every_fault_in_all_modes_is_found_and_named(name: str):
    _found(name)


def test_the_reference_is_one_of_the_default_modes_and_has_nothing_against_a_sound_program():
    def model(x, w):
        y = torch.log_softmax(torch.relu(x @ w), 1)
        return y[:, torch.tensor([0, -1])].amax(1).sum() + torch.sort(x, 1).values.prod()

    x = torch.tensor([[1.0, -0.0, 2.0], [1.0, 1.0, 0.0]], requires_grad=True)
    report = compare.check(model, x, torch.ones(3, 4, requires_grad=True))
    assert "reference" in report.modes
    assert report.ok
    assert report.verdict_of("reference") is Verdict.WITHIN_ROUNDING


def test_a_large_program_is_asked_about_in_part():
    x = torch.tensor(np.linspace(-2, 2, 250_000).reshape(500, 500).astype(np.float32))
    assert compare.check(lambda x: torch.exp(x.abs()).sum(1), x, modes=["reference"]).ok


def test_a_reference_that_raises_is_a_finding_and_ends_nothing():
    @everywhere
    def broken(x: np.ndarray, diagonal: int) -> np.ndarray:
        raise IndexError("no such place")

    with declared(OPS["tril"], ref=broken):
        report = compare.check(torch.tril, torch.ones(3, 3))
    (bug,) = report.bugs
    assert bug.culprit is not None and (bug.culprit.op, bug.culprit.part) == ("tril", "reference")
    assert "IndexError: no such place" in bug.detail
