"""Classes that the user lets `.pt` files name: without that they are refused, with it they are made, and no others."""

from __future__ import annotations

import dataclasses
import enum
import io
from collections.abc import Iterator
from typing import Any

import pytest

import eager
from eager import serialization
from tests.oracle import torch_or_skip


@dataclasses.dataclass
class Settings:
    """A user's class."""

    width: int
    weight: Any


class Mode(enum.Enum):
    """A user's enumeration: its members are made by a call."""

    FAST = "fast"


class Slotted:
    """A class whose state is in slots."""

    __slots__ = ("value",)

    def __init__(self, value: int):
        self.value = value


@pytest.fixture(autouse=True)
def _nothing_is_let() -> Iterator[None]:
    serialization.clear_safe_globals()
    yield
    serialization.clear_safe_globals()


def saved(value: Any, t: Any = eager) -> io.BytesIO:
    file = io.BytesIO()
    t.save(value, file)
    file.seek(0)
    return file


@pytest.mark.parametrize("value", [Settings(3, None), Mode.FAST, Slotted(4)], ids=lambda v: type(v).__name__)
def test_only_what_is_let_is_made(value: Any) -> None:
    file = saved({"value": value}, torch_or_skip())
    with pytest.raises(Exception, match=rf"add_safe_globals\(\[\S*{type(value).__name__}\]\)"):
        eager.load(file)
    file.seek(0)
    with serialization.safe_globals([type(value)]):
        made = eager.load(file)["value"]
    assert type(made) is type(value)
    assert made is value or made == value or made.value == value.value
    file.seek(0)
    with pytest.raises(Exception, match="not an allowed global"):
        eager.load(file)


def test_the_names_of_pytorch_lead_here() -> None:
    torch = torch_or_skip()
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
    nn = eager.nn
    with serialization.safe_globals([nn.Sequential, nn.Linear, nn.ReLU]):
        loaded = eager.load(saved(model, torch))
    assert repr(loaded) == repr(model)
    x = [[1.0, 2.0]]
    assert loaded(eager.tensor(x))[0].tolist() == pytest.approx(model(torch.tensor(x))[0].tolist())


def test_what_is_let_is_listed() -> None:
    serialization.add_safe_globals([Settings, (Mode, "old.Mode")])
    assert serialization.get_safe_globals() == [Settings, (Mode, "old.Mode")]
    with serialization.safe_globals([Slotted]):
        assert Slotted in serialization.get_safe_globals()
    assert Slotted not in serialization.get_safe_globals()
    with pytest.raises(TypeError, match="'int' object is not iterable"):
        serialization.add_safe_globals(3)  # type: ignore[arg-type]
