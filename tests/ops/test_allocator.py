"""Arrays take memory that earlier ones have given back: the system need not provide it anew."""

from __future__ import annotations

import ctypes
import resource

import numpy as np
import pytest

from graphc.ops import allocator

PAGES = 1000  # of 4 KiB, that an array of the test has


@pytest.fixture
def glibc():
    if not allocator.keep_freed_memory():
        pytest.skip("the C library is another, or the environment has chosen")
    yield ctypes.CDLL(None)
    allocator.keep_freed_memory()


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


def test_what_is_freed_is_used_again(glibc: ctypes.CDLL):
    assert faults() < PAGES
    glibc.mallopt(allocator.MMAP_THRESHOLD, 128 << 10)  # as the library begins
    glibc.malloc_trim(0)
    assert faults() > 20 * PAGES


@pytest.mark.parametrize("name", allocator.CHOICES)
def test_the_environment_decides(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(name, "")
    assert not allocator.keep_freed_memory()
