"""Tests that need eight devices of JAX run in a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys

FLAGS = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8".strip()


def run(path: str, which: str, named: str = "") -> None:
    """Run the tests of a file that `which`, an expression of marks, and `named`, one of names, select.

    Raises AssertionError, with what they print.
    """
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", path, "-m", which, "-k", named]
    environment = {**os.environ, "XLA_FLAGS": FLAGS, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-6000:]
