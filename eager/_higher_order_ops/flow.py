"""Where the control flow of both modes is."""

from __future__ import annotations

from typing import Any


def flow(name: str) -> Any:
    """The function `name` of graphc. The compiler is loaded when control flow is first used."""
    import graphc

    return getattr(graphc, name)
