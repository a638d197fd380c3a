"""What `bench` returns: the figures, to read as a table, to keep as JSON, to plot."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, final

from compare.benchmarking.roofline import Roofline
from compare.benchmarking.statistics import CONFIDENCE, Interval
from compare.benchmarking.table import Cells, bytes_text, calls_text, plain, seconds_text
from graphc.display import Displayed
from graphc.errors import ReportFileError
from graphc.files.json_text import Limits, parsed
from graphc.files.schema import Either, Flag, Maybe, Number, OneOf, Record, Row, Table, Text, Whole

FORWARD, BOTH = "forward", "forward+backward"
UNITS = {
    "first_call": "s",
    "parts": "s",
    "steady": "s",
    "ratio": "1",
    "break_even": "calls",
    "memory": "bytes",
    "share_of_peak": "1",
    "operations": "floating point operations",
    "operations_per_second": "1/s",
    "bytes_per_second": "bytes/s",
}
LIMITS = Limits(2**24)
_NAME, _FIGURE = Text(most=1000), Number()
_INTERVAL = Record(dict.fromkeys(("median", "low", "high"), _FIGURE))
_CALLS = Record(dict.fromkeys(("median", "low", "high"), Either(OneOf(("never",)), _FIGURE)))
_TIMING = Record(
    {
        "mode": _NAME, "what": OneOf((FORWARD, BOTH)), "first_call": _FIGURE, "parts": Table(_NAME, _FIGURE),
        "steady": _INTERVAL, "calls": Whole(0), "ratio": Maybe(_INTERVAL), "break_even": Maybe(_CALLS),
        "memory": Maybe(Whole(0)), "share_of_peak": Maybe(_FIGURE),
    }
)  # fmt: skip
_POSITIVE = Number(1e-300)
_ROOFLINE = Record(
    {"operations": Number(0), "bytes": Whole(0), "operations_per_second": _POSITIVE, "bytes_per_second": _POSITIVE}
)
# of the values of a report
SCHEMA = Record(
    {
        "name": Text(), "agree": Flag(), "seed": Whole(0, 2**128 - 1), "confidence": OneOf((CONFIDENCE,)),
        "units": Table(_NAME, _NAME), "timings": Row(_TIMING, least=1), "rooflines": Table(_NAME, _ROOFLINE),
        "environment": Table(_NAME, Text()),
    }
)  # fmt: skip


@final
@dataclass(frozen=True)
class Timing:
    """One mode's cost of one kind of call; times are in seconds.

    what           "forward" or "forward+backward"
    first_call     everything that happens once: capture, passes, JAX's tracing and lowering, XLA; and one run
    parts          of the first call, by name (measured on a compilation of their own)
    steady         of a later call: median over rounds, with its confidence interval
    ratio          of the first row's times to these, round by round: how many times as fast as the first row
    break_even     number of calls after which the mode has cost less in all than the first row; inf: never
    calls          that were timed
    memory         bytes of results and temporaries at their peak; None if the mode cannot tell
    share_of_peak  of what the machine can do at best, see `Roofline`; None without a roofline

    The first row has no ratio and no break-even.
    """

    mode: str
    what: str
    first_call: float
    parts: Mapping[str, float]
    steady: Interval
    calls: int
    ratio: Interval | None = None
    break_even: Interval | None = None
    memory: int | None = None
    share_of_peak: float | None = None


@final
@dataclass(frozen=True, repr=False)
class BenchReport(Displayed):
    """The timings of one function.

    agree        whether `check` found no bug before the clock was started
    rooflines    by kind of call; empty where the work is not known
    environment  see `compare.environment`
    """

    name: str
    agree: bool
    timings: tuple[Timing, ...]
    rooflines: Mapping[str, Roofline] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0

    def timing(self, mode: str, what: str = FORWARD) -> Timing:
        """One row. Raises KeyError if it was not measured."""
        for t in self.timings:
            if (t.mode, t.what) == (mode, what):
                return t
        raise KeyError(f"no timing of {what} in mode '{mode}'")

    def as_dict(self) -> dict[str, Any]:
        """The report as plain values that JSON has; a break-even that is never reached is "never"."""
        rows = [asdict(t) for t in self.timings]
        for row in rows:
            even = row["break_even"]
            row["break_even"] = even and {k: "never" if v == math.inf else v for k, v in even.items()}
        return {
            "name": self.name,
            "agree": self.agree,
            "seed": self.seed,
            "confidence": CONFIDENCE,
            "units": UNITS,
            "timings": rows,
            "rooflines": {what: asdict(r) for what, r in self.rooflines.items()},
            "environment": dict(self.environment),
        }

    def to_json(self) -> str:
        """The report as JSON text, with units."""
        return json.dumps(self.as_dict(), indent=2)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> BenchReport:
        """The report that `as_dict` has made these values of. Raises ReportFileError, naming the place, for others."""
        SCHEMA.check(values, "", ReportFileError.of(""))
        return cls(
            values["name"],
            values["agree"],
            tuple(map(_timing, values["timings"])),
            {what: Roofline(**r) for what, r in values["rooflines"].items()},
            values["environment"],
            values["seed"],
        )

    @classmethod
    def from_json(cls, text: str) -> BenchReport:
        """The report that `to_json` has written. Raises ReportFileError, naming the place, for any other text."""
        return cls.from_dict(parsed(text, LIMITS, ReportFileError.of("")))

    @property
    def title(self) -> str:
        """The name, and a warning if the modes do not agree."""
        return self.name + ("" if self.agree else " (the modes do NOT agree)")

    def rows(self) -> list[Cells]:
        """The table's cells, header first. Columns that no mode has a figure for are left out."""
        speedup = f"speedup over {self.timings[0].mode}"
        header = (
            "call", "mode", "first call", "steady", f"{CONFIDENCE:.0%} interval", speedup, "break-even", "memory",
            "of peak",
        )  # fmt: skip
        table = [header, *map(_cells, self.timings)]
        kept = [k for k in range(len(header)) if any(row[k] for row in table[1:])]
        return [tuple(row[k] for k in kept) for row in table]

    def first_calls(self) -> list[Cells]:
        """The parts of the first calls as a table, header first; empty if no row has any."""
        parts = list(dict.fromkeys(name for t in self.timings for name in t.parts))
        split = [t for t in self.timings if t.parts]
        cells = [tuple(seconds_text(t.parts[p]) if p in t.parts else "" for p in parts) for t in split]
        rows = [(t.what, t.mode, *own) for t, own in zip(split, cells, strict=True)]
        return [("first call", "mode", *parts), *rows] if rows else []

    def tables(self) -> list[list[Cells]]:
        """The tables that are printed."""
        return [table for table in (self.rows(), self.first_calls()) if table]

    def notes(self) -> list[str]:
        """What is to be known about the figures in the table."""
        found = [f"{what}: {roofline}" for what, roofline in self.rooflines.items()]
        return [*found, "the cache of compiled programs was off"]

    def __str__(self) -> str:
        return plain(self.title, self.tables(), self.notes())

    def plot(self, path: str | None = None) -> Any:
        """First call and steady state of each mode as a matplotlib figure; written to `path`, if one is given.

        Raises MissingExtraError without matplotlib.
        """
        from compare.benchmarking.plots import timings_figure

        return timings_figure(self, path)


def _timing(values: Mapping[str, Any]) -> Timing:
    intervals = {
        name: None if (found := values[name]) is None else Interval(**{k: _number(v) for k, v in found.items()})
        for name in ("steady", "ratio", "break_even")
    }
    return Timing(**{**values, **intervals})


def _number(value: float | str) -> float:
    return math.inf if value == "never" else float(value)


def _cells(t: Timing) -> Cells:
    return (
        t.what,
        t.mode,
        seconds_text(t.first_call),
        seconds_text(t.steady.median),
        f"{seconds_text(t.steady.low)} - {seconds_text(t.steady.high)}",
        "" if t.ratio is None else f"{t.ratio.median:.3g}x ({t.ratio.low:.3g} - {t.ratio.high:.3g})",
        "" if t.break_even is None else calls_text(t.break_even.median),
        "" if t.memory is None else bytes_text(t.memory),
        "" if t.share_of_peak is None else f"{t.share_of_peak:.1%}",
    )
