"""Which cases every change waits for, and which are left to the deep suite."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest


def one_in(n: int, values: Iterable[Any], name: Callable[[Any], str] = str) -> list[Any]:
    """`values` as parameters of a test, of which each `n`-th, from the first on, is not deep."""
    return [pytest.param(v, id=name(v), marks=[pytest.mark.deep] if k % n else []) for k, v in enumerate(values)]
