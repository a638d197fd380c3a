"""Figures as text, with three digits and a unit."""

from __future__ import annotations


def seconds_text(seconds: float) -> str:
    """Seconds: "12.3 us"."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def bytes_text(count: float) -> str:
    """Bytes: "1.5 MB"."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            return f"{count / scale:.3g} {unit}"
    return f"{count:.0f} B"


def plural(count: int, noun: str) -> str:
    """A number of things: "1 program", "1,200 programs"."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
