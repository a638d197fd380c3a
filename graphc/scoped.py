"""Contexts in which something has another value; at their end, also after errors, it has the one from before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

T = TypeVar("T")


@contextmanager
def attribute(owner: Any, name: str, value: Any) -> Iterator[None]:
    """`owner.name` is `value`. `owner` is a module, a class, or an object that has the attribute itself."""
    before = vars(owner)[name]
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


@contextmanager
def variable(known: ContextVar[T], value: T) -> Iterator[None]:
    """`known`, in this thread or task, is `value`."""
    token = known.set(value)
    try:
        yield
    finally:
        known.reset(token)
