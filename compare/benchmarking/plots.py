"""Figures with matplotlib, for papers and notebooks. The HTML report draws its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from compare.benchmarking.statistics import CONFIDENCE
from graphc.errors import require
from graphc.files import writing

if TYPE_CHECKING:
    from compare.benchmarking.result import BenchReport
    from compare.benchmarking.scaling import ScalingReport


def timings_figure(report: BenchReport, path: str | None) -> Any:
    """First call (with its parts) and steady state (with intervals) of each row."""
    figure, (first, steady) = _axes(2)
    labels = [f"{t.mode}\n{t.what}" for t in report.timings]
    rows = range(len(labels))
    for k, t in enumerate(report.timings):
        at = 0.0
        # the parts are measured apart from the call, and may exceed it
        for name, seconds in {**t.parts, "the call itself": max(t.first_call - sum(t.parts.values()), 0.0)}.items():
            first.barh(k, seconds * 1e3, left=at, label=name, color=_color(name))
            at += seconds * 1e3
    middle = [t.steady.median * 1e3 for t in report.timings]
    below = [(t.steady.median - t.steady.low) * 1e3 for t in report.timings]
    above = [(t.steady.high - t.steady.median) * 1e3 for t in report.timings]
    steady.errorbar(middle, list(rows), xerr=[below, above], fmt="o", color="black", capsize=3)
    known = dict(zip(*reversed(first.get_legend_handles_labels()), strict=True))
    first.legend(known.values(), known.keys(), fontsize="small", loc="upper right")
    first.set(xlabel="ms", title="first call and its parts")
    steady.set(xscale="log", xlabel="ms", title=f"steady state, {CONFIDENCE:.0%} interval")
    for axes in (first, steady):
        axes.set_ylim(len(labels) - 0.5, -0.5)
        axes.set_yticks(list(rows), labels)
        axes.grid(axis="x", alpha=0.3)
    figure.suptitle(report.title)
    return _written(figure, path)


def scaling_figure(report: ScalingReport, path: str | None) -> Any:
    """Steady state by size, both logarithmic: a line for each mode and kind of call."""
    figure, (axes,) = _axes(1)
    for mode, what in report.series:
        axes.plot(list(report.reports), [s * 1e3 for s in report.steady(mode, what)], "o-", label=f"{mode}, {what}")
    axes.set(xscale="log", yscale="log", xlabel="size", ylabel="ms", title=report.title)
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")
    return _written(figure, path)


_PARTS = ("capture", "passes", "jax trace", "lower", "xla")


def _color(part: str) -> str:
    return f"C{_PARTS.index(part)}" if part in _PARTS else "grey"


def _axes(count: int) -> tuple[Any, Any]:
    """A figure that no window shows, and so many axes beside each other."""
    figure = require("matplotlib.figure", "a plot", "compare").Figure(figsize=(6.5 * count, 4.5), layout="constrained")
    return figure, figure.subplots(1, count, squeeze=False)[0]


def _written(figure: Any, path: str | None) -> Any:
    if path is not None:
        target = Path(path if Path(path).suffix else f"{path}.png")
        with writing.draft(target) as name:
            figure.savefig(name, format=target.suffix[1:])
    return figure
