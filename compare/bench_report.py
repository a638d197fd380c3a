"""What `bench` returns: times, break-even points, a table, JSON."""

from __future__ import annotations

import importlib.util
import io
import json
import math
from dataclasses import asdict, dataclass
from typing import Any, final

FORWARD, BOTH = "forward", "forward+backward"


@final
@dataclass(frozen=True)
class Timing:
    """One mode's cost of one kind of call, in seconds.

    what        "forward" or "forward+backward"
    first_call  everything that happens once: capture, passes, JAX's tracing and lowering, XLA; and one run
    parts       of the first call, by name (measured on a compilation of their own)
    median, low, high, calls  of the steady state: quartiles over rounds, and the number of calls timed
    break_even  number of calls after which the mode has cost less than eager in all; inf: never; None: eager itself
    """

    mode: str
    what: str
    first_call: float
    parts: dict[str, float]
    median: float
    low: float
    high: float
    calls: int
    break_even: float | None = None


@final
@dataclass(frozen=True)
class BenchReport:
    """The timings of one function. `agree`: whether `check` found no bug before the clock was started."""

    name: str
    agree: bool
    timings: tuple[Timing, ...]

    def timing(self, mode: str, what: str = FORWARD) -> Timing:
        """One row. Raises KeyError if it was not measured."""
        for t in self.timings:
            if (t.mode, t.what) == (mode, what):
                return t
        raise KeyError(f"no timing of {what} in mode '{mode}'")

    def to_json(self) -> str:
        """The report as JSON text; `break_even` is null for eager and "never" where the mode stays slower."""
        rows = [
            {**asdict(t), "break_even": "never" if t.break_even == math.inf else t.break_even} for t in self.timings
        ]
        return json.dumps({"name": self.name, "agree": self.agree, "timings": rows}, indent=2)

    def rows(self) -> list[tuple[str, ...]]:
        """The table's cells, header first."""
        header = ("call", "mode", "first call", "of which", "steady (median)", "quartiles", "break-even")
        return [header, *map(_cells, self.timings)]

    def __str__(self) -> str:
        title = self.name + ("" if self.agree else " (the modes do NOT agree)")
        if importlib.util.find_spec("rich") is not None:
            return _rich_table(title, self.rows())
        return _plain_table(title, self.rows())


def _cells(t: Timing) -> tuple[str, ...]:
    parts = ", ".join(f"{name} {seconds_text(s)}" for name, s in t.parts.items())
    quartiles = f"{seconds_text(t.low)} - {seconds_text(t.high)}"
    break_even = "" if t.break_even is None else "never" if t.break_even == math.inf else f"{t.break_even:,.0f} calls"
    return (t.what, t.mode, seconds_text(t.first_call), parts, seconds_text(t.median), quartiles, break_even)


def seconds_text(seconds: float) -> str:
    """Three digits and a unit: "12.3 us"."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def _plain_table(title: str, rows: list[tuple[str, ...]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([title, *lines])


def _rich_table(title: str, rows: list[tuple[str, ...]]) -> str:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title)
    for name in rows[0]:
        table.add_column(name, justify="left" if name in ("call", "mode", "of which") else "right")
    for row in rows[1:]:
        table.add_row(*row)
    text = io.StringIO()
    console: Any = Console(file=text, width=160)
    console.print(table)
    return text.getvalue().rstrip()
