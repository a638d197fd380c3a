"""`on_devices.py`, in a process in which JAX has eight devices."""

from __future__ import annotations

import pytest

from tests.dtensor.training import MODELS, PARTS
from tests.eight_devices import run

FILE = "tests/dtensor/on_devices.py"


def test_tensors_on_a_mesh():
    run(FILE, "not deep")


# processes of their own: each keeps what it has compiled, and all together take longer than one test may


@pytest.mark.deep
@pytest.mark.parametrize("part", range(PARTS))
def test_every_op_on_a_mesh(part: int):
    run(FILE, "deep", f"every_op and part{part}")


@pytest.mark.deep
@pytest.mark.parametrize("name", MODELS)
def test_models_on_a_mesh(name: str):
    run(FILE, "deep", f"training and {name}")
