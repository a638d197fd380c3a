"""`scaling`: the same benchmark at several sizes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from compare.benchmarking.bench import bench
from compare.benchmarking.result import FORWARD, BenchReport
from graphc.display import Block, Displayed, Remark, Table, seconds_text


@final
@dataclass(frozen=True, repr=False)
class ScalingReport(Displayed):
    """Benchmarks of one function by size, in increasing order."""

    reports: Mapping[int, BenchReport]

    @property
    def name(self) -> str:
        """The function's."""
        return next(iter(self.reports.values())).name

    @property
    def agree(self) -> bool:
        """Whether the modes agree at every size."""
        return all(r.agree for r in self.reports.values())

    @property
    def series(self) -> list[tuple[str, str]]:
        """(mode, kind of call) of the rows that every size has."""
        rows = [[(t.mode, t.what) for t in r.timings] for r in self.reports.values()]
        return [row for row in rows[0] if all(row in other for other in rows)]

    def steady(self, mode: str, what: str = FORWARD) -> list[float]:
        """Seconds of a call at each size. Raises KeyError if they were not measured."""
        return [r.timing(mode, what).steady.median for r in self.reports.values()]

    def exponent(self, mode: str, what: str = FORWARD) -> float:
        """The power of the size that the time grows with, by least squares over the upper half of the sizes, where
        overhead hides it least (at least two; nan for a single size)."""
        sizes, times = list(self.reports), self.steady(mode, what)
        if len(sizes) == 1:
            return math.nan
        start = min(len(sizes) // 2, len(sizes) - 2)
        return float(np.polyfit(np.log(sizes[start:]), np.log(times[start:]), 1)[0])

    def crossover(self, mode: str, what: str = FORWARD) -> int | None:
        """The size from which on `mode` is faster than the first row, in each of the sizes measured; None: at none."""
        base = self.steady(self.series[0][0], what)
        found = None
        for size, ours, theirs in reversed(list(zip(self.reports, self.steady(mode, what), base, strict=True))):
            if ours >= theirs:
                break
            found = size
        return found

    def blocks(self) -> Iterator[Block]:
        """The name, and the time of each mode at each size."""
        yield Remark(self.title, "title" if self.agree else "bad")
        rows = [self._cells(mode, what) for mode, what in self.series]
        yield Table(rows, ("call", "mode", *map(str, self.reports), "exponent", "ahead from"), labels=2)
        yield Remark("exponent: the power of the size that the time grows with, among the larger sizes", "note")

    def _cells(self, mode: str, what: str) -> tuple[str, ...]:
        ahead = "" if mode == self.series[0][0] else str(self.crossover(mode, what) or "never")
        return (
            what, mode, *map(seconds_text, self.steady(mode, what)), f"{self.exponent(mode, what):.2f}", ahead,
        )  # fmt: skip

    @property
    def title(self) -> str:
        """What the table shows."""
        warning = "" if self.agree else " (the modes do NOT agree)"
        return f"{self.name}: steady state by size{warning}"

    def to_dict(self) -> dict[str, Any]:
        """The reports by size: see `BenchReport.to_dict`."""
        reports = [{"size": size, **r.to_dict()} for size, r in self.reports.items()]
        return {"name": self.name, "agree": self.agree, "sizes": reports}

    def plot(self, path: str | None = None) -> Any:
        """Time by size as a matplotlib figure; written to `path`, if one is given. Raises MissingExtraError."""
        from compare.benchmarking.plots import scaling_figure

        return scaling_figure(self, path)


def scaling(make: Callable[[int], tuple[Any, ...]], sizes: Iterable[int], **options: Any) -> ScalingReport:
    """Benchmark `make(size)`, which returns (function, args), at each of `sizes`; `options` are those of `bench`.

    Raises ValueError for no size, and what `bench` raises.
    """
    ordered = sorted(set(sizes))
    if not ordered:
        raise ValueError("scaling needs at least one size")
    reports: dict[int, BenchReport] = {}
    for size in ordered:
        fn, args = make(size)
        reports[size] = bench(fn, *args, **options)
    return ScalingReport(reports)
