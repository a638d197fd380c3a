"""The timings as inline SVG, legible at 360 pixels and in grey."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence

from compare.benchmarking import Timing
from compare.benchmarking.table import seconds_text

WIDTH, LEFT, RIGHT, ROW, TOP, BOTTOM = 440, 108, 28, 30, 44, 34
STEADY, FIRST = "#2f6f9f", "#b0561b"


def timings_chart(title: str, timings: Sequence[Timing]) -> str:
    """Seconds on a logarithmic axis, a line for each row: its steady state with the interval, and its first call."""
    times = [s for t in timings for s in (t.steady.low, t.steady.high, t.first_call)]
    low, high = math.floor(math.log10(min(times))), math.ceil(math.log10(max(times)))
    high = max(high, low + 1)
    height = TOP + ROW * len(timings) + BOTTOM

    def at(seconds: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (math.log10(seconds) - low) / (high - low)

    parts = [_text(0, 14, title, "start", 'font-weight="600" fill="#111"'), *_legend()]
    for power in range(low, high + 1, max(1, math.ceil((high - low) / 5))):
        x = at(10.0**power)
        parts.append(f'<path d="M{x:.1f} {TOP}V{height - BOTTOM}" stroke="#e2e2de"/>')
        parts.append(_text(x, height - BOTTOM + 18, seconds_text(10.0**power), "middle"))
    for k, t in enumerate(timings):
        y = TOP + ROW * (k + 0.5)
        parts.append(_text(LEFT - 8, y + 4, t.mode, "end"))
        parts.append(f'<path d="M{at(t.steady.median):.1f} {y}H{at(t.first_call):.1f}" stroke="#bbb"/>')
        parts.append(
            f'<path d="M{at(t.steady.low):.1f} {y}H{at(t.steady.high):.1f}" stroke="{STEADY}" stroke-width="5"/>'
        )
        parts.append(f'<circle cx="{at(t.steady.median):.1f}" cy="{y}" r="4.5" fill="{STEADY}"/>')
        parts.append(_ring(at(t.first_call), y))
    return (
        f'<div class="chart"><svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{html.escape(title)}" '
        f'font-family="system-ui, sans-serif" font-size="13">{"".join(parts)}</svg></div>'
    )


def _legend() -> list[str]:
    return [
        f'<circle cx="6" cy="30" r="4.5" fill="{STEADY}"/>',
        _text(16, 34, "steady state and its interval", "start"),
        _ring(230, 30),
        _text(240, 34, "first call", "start"),
    ]


def _ring(x: float, y: float) -> str:
    return f'<circle cx="{x:.1f}" cy="{y}" r="4.5" fill="#fff" stroke="{FIRST}" stroke-width="2"/>'


def _text(x: float, y: float, words: str, anchor: str, more: str = 'fill="#444"') -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>{html.escape(words)}</text>'
