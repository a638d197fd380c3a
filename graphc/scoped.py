"""A context in which something is another thing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def attribute(owner: Any, name: str, value: Any) -> Iterator[None]:
    """`owner.name` is `value`. `owner` is a module, a class, or an object that has the attribute itself."""
    before = vars(owner)[name]
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)
