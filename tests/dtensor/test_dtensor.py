"""Deep tests of `on_devices.py`, on eight devices of JAX; tests/devices/test_jax.py runs the others."""

from __future__ import annotations

import pytest

from tests.dtensor.training import MODELS, PARTS
from tests.eight_devices import run

FILE = "tests/dtensor/on_devices.py"


# processes of their own: each keeps what it has compiled, and all together take longer than one test may


@pytest.mark.deep
@pytest.mark.parametrize("part", range(PARTS))
def test_every_op_on_a_mesh(part: int):
    run(FILE, which="deep", named=f"every_op and part{part}")


@pytest.mark.deep
@pytest.mark.parametrize("name", MODELS)
def test_models_on_a_mesh(name: str):
    run(FILE, which="deep", named=f"training and {name}")
