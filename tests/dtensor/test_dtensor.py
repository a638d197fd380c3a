"""`on_devices.py`, in a process in which JAX has eight devices."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

COMMAND = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/dtensor/on_devices.py"]
FLAGS = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8".strip()


def run(which: str) -> None:
    done = subprocess.run(
        [*COMMAND, "-m", which], env={**os.environ, "XLA_FLAGS": FLAGS, "JAX_PLATFORMS": "cpu"}, capture_output=True,
        text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-6000:]


def test_tensors_on_a_mesh():
    run("not deep")


@pytest.mark.deep
def test_every_op_and_model_on_a_mesh():
    run("deep")
