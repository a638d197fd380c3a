"""Tests that need eight devices of JAX run in a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys

from tests import quick

_GIVEN = os.environ.get("XLA_FLAGS", ""), "" if os.environ.get("GRAPHC_TEST_XLA") else quick.FLAGS
FLAGS = " ".join([*filter(None, _GIVEN), "--xla_force_host_platform_device_count=8"])


def run(*paths: str, which: str, named: str = "") -> None:
    """Run the tests of files that `which`, an expression of marks, and `named`, one of names, select.

    Raises AssertionError, with what they print.
    """
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *paths, "-m", which, "-k", named]
    environment = {**os.environ, "XLA_FLAGS": FLAGS, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-6000:]
