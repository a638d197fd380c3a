"""How wide a text is, without the font: classes of letters, none narrower than in DejaVu Sans, a wide font."""

from __future__ import annotations

REGULAR = 0.93  # of the width of bold letters
_NARROW, _BROAD, _WIDE = frozenset("ijl'.,:;|!()[] ftr/\\IJ-_`"), frozenset("#+<=>^~&"), frozenset("mwMW@%")


def text_width(text: str, size: float, bold: bool = False) -> float:
    """The most that `text` takes in pixels."""
    return size * sum(map(_width, text)) * (1 if bold else REGULAR)


def shortened(text: str, room: float, size: float, bold: bool = False) -> str:
    """`text`, or as much of it as there is room for."""
    if text_width(text, size, bold) <= room:
        return text
    kept = len(text)
    while kept and text_width(text[:kept] + "…", size, bold) > room:
        kept -= 1
    return text[:kept] + "…"


def _width(letter: str) -> float:
    if letter in _NARROW:
        return 0.5
    if letter in _WIDE:
        return 1.1
    if letter in _BROAD or "A" <= letter <= "Z":
        return 0.91
    return 0.73 if letter.isascii() else 1.0
