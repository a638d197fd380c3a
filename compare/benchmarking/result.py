"""What `bench` returns: the figures, to read as a table, to keep as JSON, to plot."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, final

from compare.benchmarking.roofline import Roofline
from compare.benchmarking.statistics import CONFIDENCE, Interval
from graphc.display import Block, Displayed, Remark, Table, bytes_text, seconds_text
from graphc.errors import ReportFileError
from graphc.files.json_text import Limits, parsed
from graphc.files.schema import Either, Flag, Maybe, Number, OneOf, Record, Row, Text, Whole
from graphc.files.schema import Table as TableOf

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
ALIKE = 1.5  # the ends of an interval of a ratio, in which the ratio is still known
SMALL = 5e-4  # share of a peak that is not worth a column
LIMITS = Limits(2**24)
_NAME, _FIGURE = Text(most=1000), Number()
_INTERVAL = Record(dict.fromkeys(("median", "low", "high"), _FIGURE))
_CALLS = Record(dict.fromkeys(("median", "low", "high"), Either(OneOf(("never",)), _FIGURE)))
_TIMING = Record(
    {
        "mode": _NAME, "what": OneOf((FORWARD, BOTH)), "first_call": _FIGURE, "parts": TableOf(_NAME, _FIGURE),
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
        "units": TableOf(_NAME, _NAME), "timings": Row(_TIMING, least=1), "rooflines": TableOf(_NAME, _ROOFLINE),
        "environment": TableOf(_NAME, Text()),
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

    def to_dict(self) -> dict[str, Any]:
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

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> BenchReport:
        """The report that `to_dict` has made these values of. Raises ReportFileError, naming the place, for others."""
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

    def costs(self) -> Table:
        """A row for each timing. Columns that no mode has a figure for are left out."""
        speedup = f"speedup over {self.timings[0].mode}"
        head = (
            "call", "mode", "first call", "steady", f"{CONFIDENCE:.0%} interval", speedup, "break-even", "memory",
            "of peak",
        )  # fmt: skip
        cells = [*map(_cells, self.timings)]
        kept = [k for k in range(len(head)) if any(row[k] for row in cells)]
        return Table([[row[k] for k in kept] for row in cells], [head[k] for k in kept], labels=2)

    def first_calls(self) -> Table:
        """The parts of the first calls; without rows if none has any."""
        parts = list(dict.fromkeys(name for t in self.timings for name in t.parts))
        split = [t for t in self.timings if t.parts]
        rows = [(t.what, t.mode, *(seconds_text(t.parts[p]) if p in t.parts else "" for p in parts)) for t in split]
        return Table(rows, ("first call", "mode", *parts), labels=2)

    def blocks(self) -> Iterator[Block]:
        """The name, whether compiling pays, the tables, and what is to be known about their figures."""
        yield Remark(f"{self.title}: {self._speeds()}", "title" if self.agree else "bad")
        yield from (table for table in (self.costs(), self.first_calls()) if table.rows)
        yield from map(Remark, self.advice())
        yield from (Remark(f"{what}: {roofline}", "note") for what, roofline in self.rooflines.items())
        yield Remark("the cache of compiled programs was off", "note")

    def _speeds(self) -> str:
        """How fast the second mode is, in a few words."""
        base, others = self.timings[0].mode, [t for t in self.timings if t.ratio is not None]
        own = [t for t in others if t.mode == others[0].mode]
        found = ", ".join(f"{_times(t.ratio)} {t.what}" for t in own if t.ratio is not None)
        return f"{own[0].mode} is {found} the speed of {base}" if own else f"what {base} costs"

    def advice(self) -> list[str]:
        """For each kind of call, whether compiling pays: a sentence; none where "compiled" was not measured."""
        return [_paying(t, self.timings[0].mode) for t in self.timings if t.mode == "compiled" and t.ratio is not None]

    def plot(self, path: str | None = None) -> Any:
        """First call and steady state of each mode as a matplotlib figure; written to `path`, if one is given.

        Raises MissingExtraError without matplotlib.
        """
        from compare.benchmarking.plots import timings_figure

        return timings_figure(self, path)


def _timing(values: Mapping[str, Any]) -> Timing:
    intervals = {
        name: (found := values[name])
        and Interval(**{end: math.inf if v == "never" else float(v) for end, v in found.items()})
        for name in ("steady", "ratio", "break_even")
    }
    return Timing(**{**values, **intervals})


def _cells(t: Timing) -> tuple[str, ...]:
    return (
        t.what,
        t.mode,
        seconds_text(t.first_call),
        seconds_text(t.steady.median),
        f"{seconds_text(t.steady.low)} - {seconds_text(t.steady.high)}",
        "" if t.ratio is None else f"{t.ratio.median:.3g}x ({t.ratio.low:.3g} - {t.ratio.high:.3g})",
        "" if t.break_even is None else calls_text(t.break_even.median),
        "" if t.memory is None else bytes_text(t.memory),
        "" if t.share_of_peak is None or t.share_of_peak < SMALL else f"{t.share_of_peak:.1%}",
    )


def calls_text(calls: float) -> str:
    """A number of calls, or "never"."""
    return "never" if calls == math.inf else f"{calls:,.0f} calls"


def _paying(t: Timing, base: str) -> str:
    """Whether the row pays beside the first one, whose mode is `base`; `t` has a ratio and a break-even."""
    assert t.ratio is not None and t.break_even is not None
    if t.ratio.low > 1:
        pays = t.break_even.median
        return f"{t.what}: compiling pays" + (" from the first call on" if pays <= 1 else f" after {calls_text(pays)}")
    if t.ratio.high < 1:
        return f"{t.what}: compiling does not pay, however often it is called: {base} is faster"
    if t.ratio.high < ALIKE * t.ratio.low:
        return f"{t.what}: compiled and {base} take about the same time, so that compiling does not pay"
    return f"{t.what}: whether compiling pays, these timings do not tell: they differ too much from call to call"


def _times(ratio: Interval) -> str:
    """A speed in a few words: a range where it is not known which of the two is faster."""
    told = ratio.low > 1 or ratio.high < 1
    return f"{ratio.median:.2g}x" if told else f"{ratio.low:.2g}x to {ratio.high:.2g}x"
