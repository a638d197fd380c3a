"""Switches that programs set, and that change nothing here; flags of libraries that are not used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any


def flags_of(names: dict[str, Any]) -> Callable[..., Any]:
    """`flags(name=value, ...)`: a context with other values of the module's variables `names`."""

    @contextmanager
    def flags(**switches: Any) -> Iterator[None]:
        before = {name: names[name] for name in switches}
        names.update(switches)
        try:
            yield
        finally:
            names.update(before)

    flags.__doc__ = "A context with other settings of the switches above."
    return flags


def switch(on: bool) -> tuple[Callable[[bool], None], Callable[[], bool]]:
    """(enable, enabled): functions that set and tell a switch."""
    state = SimpleNamespace(on=on)

    def enable(enabled: bool) -> None:
        """Set the switch."""
        state.on = bool(enabled)

    def enabled() -> bool:
        """What has been set."""
        return state.on

    return enable, enabled
