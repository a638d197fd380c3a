"""Children that are forked from a process that uses XLA: what works, and what says at once that it cannot."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


def run(*arguments: str) -> str:
    done = subprocess.run([sys.executable, "-W", "error", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def test_children_of_threads_at_work():
    assert run("-m", "tests.compile.forks", "3", "1") == ""


@pytest.mark.deep
def test_200_children_of_threads_at_work():
    assert run("-m", "tests.compile.forks", "200", "2") == ""


def test_pools_workers_and_children_before_xla():
    assert run("-m", "tests.compile.pools") == "fine\n"
