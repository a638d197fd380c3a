"""Line charts as inline SVG: sizes and colours are chosen to be legible at 360 pixels, and in grey."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

WIDTH, HEIGHT = 480, 300
LEFT, RIGHT, TOP, BOTTOM = 58, 14, 62, 46
TICKS = 5


class Line(NamedTuple):
    """Values at 1, 2, 3, ...; `dash` as in SVG's stroke-dasharray."""

    name: str
    values: Sequence[float]
    color: str
    width: float
    dash: str


class Mark(NamedTuple):
    """A vertical line at `x`, with a word on it."""

    x: float
    text: str


def line_chart(
    title: str, x_label: str, y_label: str, lines: Sequence[Line], marks: Sequence[Mark] = (), logarithmic: bool = False
) -> str:
    """The chart as an `<svg>` element. `logarithmic` is about the y axis, and needs positive values."""
    values = np.concatenate([line.values for line in lines])
    count = max(len(line.values) for line in lines)
    transform: Callable[[float], float] = math.log10 if logarithmic else float
    ticks = _decades(values.min(), values.max()) if logarithmic else _round_steps(0.0, float(values.max()))
    low, high = transform(min(ticks[0], values.min())), transform(max(ticks[-1], values.max()))

    def at_x(x: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * x / count

    def at_y(y: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (transform(y) - low) / (high - low)

    parts = [_text(0, 16, title, "start", 'font-size="15" font-weight="600" fill="#111"')]
    parts += _legend(lines)
    for tick in ticks:
        y = at_y(tick)
        parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#e4e4e0"/>')
        parts.append(_text(LEFT - 6, y + 4, f"{tick:g}", "end"))
    for tick in _round_steps(0.0, float(count)):
        parts.append(_text(at_x(tick), HEIGHT - BOTTOM + 18, f"{tick:g}", "middle"))
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, x_label, "middle"))
    middle = (TOP + HEIGHT - BOTTOM) / 2
    parts.append(_text(14, middle, y_label, "middle", f'transform="rotate(-90 14 {middle:.0f})"'))
    for line in lines:
        points = " ".join(f"{at_x(k):.1f},{at_y(v):.1f}" for k, v in enumerate(line.values, 1))
        dash = f' stroke-dasharray="{line.dash}"' if line.dash else ""
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{line.color}" stroke-width="{line.width}"{dash}/>'
        )
    for mark in marks:
        x = at_x(mark.x)
        anchor, shift = ("end", -5) if x > WIDTH / 2 else ("start", 5)
        parts.append(f'<path d="M{x:.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="#111" stroke-dasharray="2 3"/>')
        parts.append(_text(x + shift, TOP + 12, mark.text, anchor, 'fill="#111"'))
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{html.escape(title)}" '
        f'font-family="system-ui, sans-serif" font-size="13">{"".join(parts)}</svg>'
    )


def _text(x: float, y: float, text: str, anchor: str, more: str = 'fill="#555"') -> str:
    fill = more if "fill=" in more else f'fill="#555" {more}'
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {fill}>{html.escape(text)}</text>'


def _legend(lines: Sequence[Line]) -> list[str]:
    parts, x = [], 0.0
    for line in lines:
        dash = f' stroke-dasharray="{line.dash}"' if line.dash else ""
        parts.append(f'<path d="M{x:.0f} 38h22" stroke="{line.color}" stroke-width="{line.width}"{dash}/>')
        parts.append(_text(x + 28, 42, line.name, "start"))
        x += 46 + 7.2 * len(line.name)
    return parts


def _round_steps(low: float, high: float) -> list[float]:
    """About `TICKS` round numbers from low to high."""
    raw = (high - low) / TICKS
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * m for m in (1, 2, 5, 10) if power * m >= raw)
    return [low + step * k for k in range(int((high - low) / step + 1e-9) + 1)]


def _decades(low: float, high: float) -> list[float]:
    """The powers of ten between low and high, thinned out to at most six."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    stride = max(1, math.ceil((last - first) / 6))
    return [10.0**k for k in range(first, last + 1, stride)]
