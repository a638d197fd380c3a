"""Every chart: figures of matplotlib, as files, and as SVG for pages."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compare.benchmarking.statistics import CONFIDENCE
from graphc.display import seconds_text
from graphc.errors import require
from graphc.files import writing

if TYPE_CHECKING:
    from compare.benchmarking.result import BenchReport, Timing
    from compare.benchmarking.scaling import ScalingReport

# real text, so that a page can be searched; and the same file for the same figures
_STYLE = {"svg.fonttype": "none", "svg.hashsalt": "graphc", "font.family": ["sans-serif"], "font.size": 9.0}
_PARTS = ("capture", "passes", "jax trace", "lower", "xla")
STYLES = ("-", "--", ":", "-.")  # lines stay apart in grey


def timings_figure(report: BenchReport, path: str | None) -> Any:
    """First call (with its parts) and steady state (with intervals) of each row."""
    figure, axes = _axes(2, 0.55 * len(report.timings) + 1.5)
    for one, draw in zip(axes, (_first_calls, _steady_states), strict=True):
        draw(one, report.timings, [f"{t.mode}\n{t.what}" for t in report.timings])
    figure.suptitle(report.title, parse_math=False)
    return _written(figure, path)


def timings_svgs(report: BenchReport) -> list[str]:
    """The same as SVG: for each kind of call the steady states, and the first calls."""
    found: list[str] = []
    for what in dict.fromkeys(t.what for t in report.timings):
        rows = [t for t in report.timings if t.what == what]
        for draw in (_steady_states, _first_calls):
            figure, (axes,) = _axes(1, 0.32 * len(rows) + 1.5)
            draw(axes, rows, [t.mode for t in rows])
            axes.set_title(f"{what}: {axes.get_title()}")
            found.append(svg_of(figure))
    return found


def scaling_figure(report: ScalingReport, path: str | None) -> Any:
    """Steady state by size, both logarithmic: a line for each mode and kind of call."""
    lines = {f"{mode}, {what}": [s * 1e3 for s in report.steady(mode, what)] for mode, what in report.series}
    return _written(lines_figure(report.title, "size", "ms", lines, [*report.reports], ("log", "log")), path)


def lines_figure(
    title: str, x_label: str, y_label: str, lines: Mapping[str, Sequence[float]], x: Sequence[float],
    scales: tuple[str, str] = ("linear", "linear"), marks: Mapping[str, float] | None = None,
) -> Any:  # fmt: skip
    """A line for each name over the same `x`, and a vertical line at each of the named `marks`."""
    figure, (axes,) = _axes(1, 3.2)
    for k, (name, values) in enumerate(lines.items()):
        points = "o" if len(x) < 20 else ""
        axes.plot(x, values, f"{points}{STYLES[k % len(STYLES)]}", label=name, linewidth=2.6 - 0.7 * min(k, 2))
    for name, at in (marks or {}).items():
        axes.axvline(at, color="black", linestyle=":", linewidth=1)
        axes.annotate(name, (at, 1), (4, -4), xycoords=("data", "axes fraction"), textcoords="offset points", va="top")
    axes.set(xscale=scales[0], yscale=scales[1], xlabel=x_label, ylabel=y_label)
    axes.set_title(title, parse_math=False)
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")
    return figure


def svg_of(figure: Any) -> str:
    """The `<svg>` element of a figure, without addresses of any kind: as wide as what it stands in."""
    text = io.StringIO()
    with _styled():
        figure.savefig(text, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    svg = text.getvalue()
    svg = re.sub(r' xmlns(:\w+)?="[^"]*"| (width|height)="[\d.]+pt"', "", svg[svg.index("<svg") :], count=4)
    return svg.strip()


def _first_calls(axes: Any, timings: Sequence[Timing], labels: Sequence[str]) -> None:
    for k, t in enumerate(timings):
        at = 0.0
        # the parts are measured apart from the call, and may exceed it
        for name, seconds in {**t.parts, "the call itself": max(t.first_call - sum(t.parts.values()), 0.0)}.items():
            color = f"C{_PARTS.index(name)}" if name in _PARTS else "grey"
            axes.barh(k, seconds, left=at, label=name, color=color)
            at += seconds
    known = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    axes.figure.legend(known.values(), known.keys(), fontsize="small", loc="outside lower center", ncols=3)
    axes.set_title("first call and its parts")
    axes.margins(x=0.04)
    _rows(axes, labels)


def _steady_states(axes: Any, timings: Sequence[Timing], labels: Sequence[str]) -> None:
    middle = [t.steady.median for t in timings]
    off = [[t.steady.median - t.steady.low for t in timings], [t.steady.high - t.steady.median for t in timings]]
    axes.errorbar(middle, range(len(timings)), xerr=off, fmt="o", color="black", capsize=3)
    for k, seconds in enumerate(middle):
        axes.annotate(seconds_text(seconds), (seconds, k), (0, 5), textcoords="offset points", ha="center",
                      fontsize="small")  # fmt: skip
    apart = max(middle) > 20 * min(middle)
    axes.set(xscale="log" if apart else "linear", title=f"steady state, {CONFIDENCE:.0%} interval")
    axes.margins(x=0.2)
    if not apart:
        axes.set_xlim(left=0)
    _rows(axes, labels)


def _rows(axes: Any, labels: Sequence[str]) -> None:
    axes.set_ylim(len(labels) - 0.5, -0.6)
    axes.set_yticks(range(len(labels)), labels)
    axes.xaxis.set_major_formatter(require("matplotlib.ticker", "a chart", "compare").EngFormatter("s"))
    axes.grid(axis="x", alpha=0.3)


def _styled() -> Any:
    return require("matplotlib", "a chart", "compare").rc_context(_STYLE)


def _axes(count: int, height: float) -> tuple[Any, Any]:
    """A figure that no window shows, and so many axes beside each other."""
    make: Callable[..., Any] = require("matplotlib.figure", "a chart", "compare").Figure
    with _styled():
        figure = make(figsize=(4.8 * count, height), layout="constrained")
        return figure, figure.subplots(1, count, squeeze=False)[0]


def _written(figure: Any, path: str | None) -> Any:
    if path is not None:
        target = Path(path if Path(path).suffix else f"{path}.png")
        with writing.draft(target) as name, _styled():
            figure.savefig(name, format=target.suffix[1:])
    return figure
