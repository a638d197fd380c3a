"""Arrays take memory that earlier ones have given back: the system need not provide it anew."""

from __future__ import annotations

import os
import resource
import subprocess
import sys

import numpy as np
import pytest

from graphc.ops import allocator

PAGES = 1000  # of 4 KiB, that an array of the test has


def faults() -> int:
    """The pages that the system provides while three arrays are alive, ten times."""
    x = np.ones(PAGES * 4096, np.int8)

    def step() -> None:
        a = x + x
        b = a + x
        np.add(a, b)

    step()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        step()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


@pytest.mark.skipif(not allocator.keep_freed_memory(), reason="the C library is another, or the environment has chosen")
def test_what_is_freed_is_used_again():
    assert faults() < PAGES
    # as the library begins; in a process of its own, for a heap that has been used gives memory that it still has
    code = "from tests.ops.test_allocator import faults; print(faults())"
    begins = {**os.environ, "MALLOC_MMAP_THRESHOLD_": str(128 << 10)}
    assert int(subprocess.check_output([sys.executable, "-c", code], env=begins)) > 20 * PAGES


@pytest.mark.parametrize("name", allocator.CHOICES)
def test_the_environment_decides(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(name, "")
    assert not allocator.keep_freed_memory()
