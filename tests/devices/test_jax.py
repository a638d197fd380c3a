"""`on_jax.py`, and tests/dtensor/on_devices.py, in a process in which JAX has eight devices."""

from __future__ import annotations

import pytest

from tests.dtensor.test_dtensor import FILE as ON_A_MESH
from tests.eight_devices import run

FILE = "tests/devices/on_jax.py"


def test_eight_devices():
    run(FILE, ON_A_MESH, which="not deep")  # both: that such a process starts takes a third of its time


@pytest.mark.deep
def test_every_op_on_a_device():
    run(FILE, which="deep")
