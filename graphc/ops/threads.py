"""How many threads linear algebra may use. NumPy and SciPy each bring a library with threads of its own.

A package such as threadpoolctl would search all that the process has loaded; here it is known where the two are.
"""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Callable
from importlib.machinery import PathFinder
from typing import Any, NamedTuple

SMALL = 512  # rows of a matrix, up to which threads cost more than they save, and on busy processors ten times more
MODULES = {"numpy": "_umath_linalg", "scipy": "_fblas"}  # the extension modules that are linked with the libraries
# how builds of OpenBLAS name their functions
SPELLINGS = ("scipy_openblas_{}_num_threads64_", "scipy_openblas_{}_num_threads", "openblas_{}_num_threads64_",
             "openblas_{}_num_threads")  # fmt: skip

_count: int | None = None  # what the user has asked for


class Pool(NamedTuple):
    """The threads of a library: get() is their number, set(n) changes it."""

    get: Callable[[], int]
    set: Callable[[int], Any]


@functools.cache
def pool(package: str) -> Pool | None:
    """The threads of the library behind `package.linalg`, which is loaded; None for a library that we do not know."""
    spec = PathFinder.find_spec(package)  # imports nothing
    folders = [os.path.join(folder, "linalg") for folder in (spec and spec.submodule_search_locations) or ()]
    module = PathFinder.find_spec(MODULES[package], folders)
    if module is None or module.origin is None:
        return None
    try:
        library = ctypes.CDLL(module.origin)
    except OSError:
        return None
    for spelling in SPELLINGS:
        if hasattr(library, spelling.format("set")):
            return Pool(*(getattr(library, spelling.format(verb)) for verb in Pool._fields))
    return None


def number_of_threads() -> int:
    """How many threads a matrix product may use: what was set, or else one for each processor of this process."""
    return cores() if _count is None else _count


def cores() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def set_number_of_threads(count: int) -> None:
    """Let each library use `count` threads, 1 or more."""
    global _count
    for package in MODULES:
        found = pool(package)
        if found is not None:
            found.set(count)
    _count = count


def small_alone(package: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator of a kernel f(x, ...) that calls the library of `package`: one thread for small matrices `x`."""

    def decorate(kernel: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(kernel)
        def run(x: Any, *args: Any, **params: Any) -> Any:
            found = pool(package) if max(x.shape[-2:], default=0) <= SMALL else None
            before = 1 if found is None else found.get()
            if found is None or before == 1:
                return kernel(x, *args, **params)
            found.set(1)
            try:
                return kernel(x, *args, **params)
            finally:
                found.set(before)

        return run

    return decorate
