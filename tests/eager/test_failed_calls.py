"""A call that has failed keeps none of its arguments: they are freed with the error, without a garbage collection."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import eager

torch: Any = eager  # whose stubs refuse these calls
F = torch.nn.functional
CALLS: dict[str, Callable[[Any], Any]] = {
    "torch.add": lambda x: torch.add(x, "a"),
    "add": lambda x: x.add("a"),
    "+": lambda x: x + "a",
    "@": lambda x: x @ x,
    "add_": lambda x: x.add_("a"),
    "out": lambda x: torch.add(x, x, out="a"),
    "sum": lambda x: x.sum(7),
    "torch.sum": lambda x: torch.sum(x, dim=7),
    "a keyword": lambda x: x.sum(foo=1),
    "std": lambda x: torch.std(x, dim=9),
    "max": lambda x: torch.max(x, None),
    "where": lambda x: torch.where(x, "a"),
    "cat": lambda x: torch.cat([x, "a"]),
    "einsum": lambda x: torch.einsum("ij,jk", x, x),
    "zeros": lambda x: torch.zeros(x, x, dtype=x),
    "view": lambda x: x.view("q"),
    "reshape": lambda x: x.reshape(5),
    "an index": lambda x: x[9],
    "linear": lambda x: F.linear(x, torch.ones(2, 3)),
    "softmax": lambda x: F.softmax(x, dim="a"),
    "conv2d": lambda x: F.conv2d(x, x),
    "a module": lambda x: torch.nn.Linear(3, 2)(x),
    "inv": lambda x: torch.linalg.inv(x),
    "load": lambda x: torch.load(x),
    "backward": lambda x: x.backward(),
}


@pytest.fixture
def uncollected() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_it_keeps_nothing(call: Callable[[Any], Any], uncollected: None) -> None:
    x = torch.ones(3, 4)
    seen = weakref.ref(x)
    try:
        call(x)
    except (TypeError, RuntimeError, IndexError, AttributeError):
        del x
    assert seen() is None
