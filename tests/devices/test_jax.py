"""`on_jax.py`, in a process in which JAX has eight devices."""

from __future__ import annotations

import pytest

from tests.eight_devices import run

FILE = "tests/devices/on_jax.py"


def test_eight_devices():
    run(FILE, "not deep")


@pytest.mark.deep
def test_every_op_on_a_device():
    run(FILE, "deep")
