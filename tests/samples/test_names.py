"""PyTorch's public names: here, or missing for a reason that docs/ops.md gives."""

from __future__ import annotations

import pytest

from graphc.running import placeholders
from tests.oracle import torch_or_skip
from tests.samples import names

MISSING = list(names.missing())


@pytest.mark.parametrize("place", names.PLACES)
def test_every_missing_name_has_a_reason(place: str):
    assert not [name for where, name in MISSING if where == place and names.reason(where, name) is None]


@pytest.mark.parametrize("why", [why for why, *_ in names.patterns()])
def test_every_reason_is_needed(why: str):
    assert any((names.reason(*each) or ("",))[0] == why for each in MISSING)


def test_the_recorded_names_are_pytorchs():
    torch = torch_or_skip()
    pytest.importorskip("torch.masked")
    found = names.public_names(torch)
    assert found == names.recorded(), "python -m tests.samples.names"


def test_the_recorded_modules_are_pytorchs():
    assert names.modules_by_package(torch_or_skip()) == placeholders.modules()


def test_a_name_without_a_reason_is_found():
    assert names.reason("torch", "matmul") is None
