"""What is not looked through for tests, in each worker: files without examples, and the numbers in them.

Pytest would import each file to look for examples in docstrings, which one in twenty has, and those of tests a second
time. Hypothesis would parse each, in a fresh checkout for 8 seconds, for constants that two files of tests might try.
"""

from __future__ import annotations

import builtins
import sys
from pathlib import Path

import pytest
from _pytest.doctest import DoctestItem, DoctestModule


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> list[pytest.Collector]:
    """What pytest and its plugins make of a file, without a search for examples in vain."""
    found = yield
    if b">>> " in file_path.read_bytes():
        return found
    return [each for each in found if not isinstance(each, DoctestModule)]


def pytest_runtest_teardown(item: pytest.Item) -> None:
    """What an example shows last is a builtin called `_` from then on: there is none before."""
    if isinstance(item, DoctestItem):
        vars(builtins).pop("_", None)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems() -> None:
    """Before the plugin of Hypothesis looks for constants: there are no modules that it has not seen."""
    providers = sys.modules.get("hypothesis.internal.conjecture.providers")
    if hasattr(providers, "_get_local_constants"):
        providers._get_local_constants = lambda: providers._local_constants  # type: ignore[union-attr]
