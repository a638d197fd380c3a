"""Figures as text, and tables of them: plain, or with rich where somebody looks at a terminal."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from importlib.util import find_spec

Cells = tuple[str, ...]
LABELS = 2  # columns of a table that say what its rows are


def seconds_text(seconds: float) -> str:
    """Three digits and a unit: "12.3 us"."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def bytes_text(count: float) -> str:
    """Three digits and a unit: "1.5 MB"."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            return f"{count / scale:.3g} {unit}"
    return f"{count:.0f} B"


def calls_text(calls: float) -> str:
    """A number of calls, or "never"."""
    return "never" if calls == math.inf else f"{calls:,.0f} calls"


def plain(title: str, tables: Sequence[Sequence[Cells]], notes: Sequence[str]) -> str:
    """Tables as text. Each has its header first."""
    return "\n".join([title, *("\n".join(_lines(table)) + "\n" for table in tables), *notes])


def _lines(table: Sequence[Cells]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in table]


def show(title: str, tables: Sequence[Sequence[Cells]], notes: Sequence[str]) -> None:
    """Print tables; with rich, if it is installed and somebody looks at a terminal."""
    if not sys.stdout.isatty() or find_spec("rich") is None:
        print(plain(title, tables, notes))
        return
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Column, Table
    from rich.text import Text

    console = Console()
    console.print(Text(title, "bold"))
    for header, *rows in tables:
        columns = [Column(name, no_wrap=k < LABELS, overflow="fold") for k, name in enumerate(header)]
        shown = Table(*columns, box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
        for row in rows:
            shown.add_row(*map(Text, row))  # Text: brackets in a user's name are no markup
        console.print(shown)
    for note in notes:
        console.print(Text(note, "dim"))
