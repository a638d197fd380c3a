"""`on_devices.py`, in a process in which JAX has eight devices."""

from __future__ import annotations

import pytest

from tests.eight_devices import run

FILE = "tests/dtensor/on_devices.py"


def test_tensors_on_a_mesh():
    run(FILE, "not deep")


@pytest.mark.deep
def test_every_op_and_model_on_a_mesh():
    run(FILE, "deep")
