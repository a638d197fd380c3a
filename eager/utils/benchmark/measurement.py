"""What a Timer has measured, and of what. As PyTorch's `Measurement` and `TaskSpec`."""

from __future__ import annotations

import dataclasses
import math
import textwrap
from collections.abc import Iterable
from typing import Any

import numpy as np

MOST_FIGURES = 4
LEAST_INTERVAL = 25e-9  # seconds: no interval of confidence is taken to be smaller
Z = 1.645  # of the normal distribution, for an interval of 90%
SPREAD, GROSS_SPREAD = 0.1, 0.25  # interquartile ranges by the median that are worth a warning
UNITS = {"ns": (1e-9, "nanosecond"), "us": (1e-6, "microsecond"), "ms": (1e-3, "millisecond"), "s": (1, "second")}


@dataclasses.dataclass(repr=False, frozen=True)
class TaskSpec:
    """The arguments of a Timer, but for its globals."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label, or the statement."""
        sub = self.sub_label
        if self.label is not None or "\n" not in self.stmt:
            return (self.stmt if self.label is None else self.label) + (f": {sub}" if sub else "")
        return f"stmt:{f' ({sub})' if sub else ''}\n{textwrap.indent(self.stmt, '  ')}"

    def setup_str(self) -> str:
        """The setup as it is shown."""
        if self.setup == "pass" or not self.setup:
            return ""
        return f"setup:\n{textwrap.indent(self.setup, '  ')}" if "\n" in self.setup else f"setup: {self.setup}"

    def summarize(self) -> str:
        """The first lines of the text of a measurement."""
        parts = [self.title, self.description or "", self.setup_str()]
        return "\n".join(f"{part}\n" if "\n" in part else part for part in parts if part)


FIELDS = frozenset(field.name for field in dataclasses.fields(TaskSpec))


@dataclasses.dataclass(repr=False)
class Measurement:
    """Seconds of several runs of a statement, each `number_per_run` times. Its fields are also those of `task_spec`."""

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = None

    def __getattr__(self, name: str) -> Any:
        if name in FIELDS:
            return getattr(self.task_spec, name)
        raise AttributeError(f"'Measurement' object has no attribute '{name}'")

    @property
    def times(self) -> list[float]:
        """Seconds of one time, in each run."""
        return [t / self.number_per_run for t in self.raw_times]

    def _quantile(self, q: float) -> float:
        return float(np.quantile(self.times, q)) if self.raw_times else -1.0

    @property
    def median(self) -> float:
        """The median of `times`."""
        return self._quantile(0.5)

    @property
    def mean(self) -> float:
        """The mean of `times`."""
        return float(np.mean(self.times)) if self.raw_times else -1.0

    @property
    def iqr(self) -> float:
        """The interquartile range of `times`."""
        return self._quantile(0.75) - self._quantile(0.25)

    @property
    def significant_figures(self) -> int:
        """How many digits of the median mean something, by the interval of confidence of the middle half."""
        times, n = sorted(self.times), len(self.raw_times)
        middle = times[n // 4 : math.ceil(3 * n / 4)]
        interval = max(Z * float(np.std(middle)) / math.sqrt(len(middle)), LEAST_INTERVAL)
        return min(max(math.floor(math.log10(self.median / interval)), 1), MOST_FIGURES)

    def meets_confidence(self, threshold: float = SPREAD) -> bool:
        """Whether the interquartile range is less than this part of the median."""
        return self.iqr / self.median < threshold

    @property
    def _warnings(self) -> list[str]:
        if not self.raw_times or self.meets_confidence():
            return []
        cause = (
            "This could indicate system fluctuation."
            if self.meets_confidence(GROSS_SPREAD)
            else "This suggests significant environmental influence."
        )
        spread = self.iqr / self.median * 100
        return [f"  WARNING: Interquartile range is {spread:.1f}% of the median measurement.\n           {cause}"]

    @property
    def has_warnings(self) -> bool:
        """Whether the times vary much."""
        return bool(self._warnings)

    @property
    def title(self) -> str:
        """The label, or the statement."""
        return self.task_spec.title

    @property
    def as_row_name(self) -> str:
        """What a table calls it."""
        return self.sub_label or self.stmt or "[Unknown]"

    def __repr__(self) -> str:
        n, threads = len(self.raw_times), self.num_threads
        unit, scale = select_unit(self.median)
        low, high = (self._quantile(q) / scale for q in (0.25, 0.75))
        lines = [
            object.__repr__(self),
            self.task_spec.summarize(),
            f"  {'Median: ' if n > 1 else ''}{self.median / scale:.2f} {unit}",
            *([f"  IQR:    {self.iqr / scale:.2f} {unit} ({low:.2f} to {high:.2f})"] if n >= 4 else ()),
            f"  {n} measurement{'s' if n > 1 else ''}, {self.number_per_run} runs "
            f"{'per measurement,' if n > 1 else ','} {threads} thread{'s' if threads > 1 else ''}",
            *self._warnings,
        ]
        return "\n".join(lines)

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """One measurement for each task, of all its times."""
        groups: dict[TaskSpec, list[float]] = {}
        for each in measurements:
            groups.setdefault(each.task_spec, []).extend(each.times)
        return [Measurement(1, times, task) for task, times in groups.items()]


def select_unit(t: float) -> tuple[str, float]:
    """The unit for a time of `t` seconds, and its seconds."""
    unit = {-3: "ns", -2: "us", -1: "ms"}.get(int(math.log10(t) // 3) if t > 0 else 0, "s")
    return unit, UNITS[unit][0]


def unit_to_english(u: str) -> str:
    """ "ns" is a "nanosecond"."""
    return UNITS[u][1]


def trim_sigfig(x: float, n: int) -> float:
    """`x` rounded to `n` digits."""
    if n != int(n):
        raise AssertionError("Number of significant figures must be an integer")
    scale = 10.0 ** (math.ceil(math.log10(abs(x))) - n)
    return float(round(x / scale) * scale)
