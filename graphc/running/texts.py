"""Where two printed texts part: the words must be the same, and numbers nearly."""

from __future__ import annotations

import math
import re
from fnmatch import fnmatch
from itertools import zip_longest
from typing import NamedTuple

_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|inf|nan)(?!\w)")


class LineDifference(NamedTuple):
    """Line `number` in two texts; None where a text has ended."""

    number: int
    first: str | None
    second: str | None


def differences(
    first: str, second: str, rtol: float, atol: float, ignored: tuple[str, ...] = ()
) -> list[LineDifference]:
    """The lines in which two texts differ. Those that match a pattern of `ignored` ("*seconds*") in both do not.

    Numbers with a point or exponent may differ by `atol`, `rtol` of them, or one unit of the last printed digit. Space
    does not count.
    """
    pairs = enumerate(zip_longest(first.splitlines(), second.splitlines()), 1)
    return [LineDifference(k, a, b) for k, (a, b) in pairs if not _alike(a, b, rtol, atol, ignored)]


def _alike(a: str | None, b: str | None, rtol: float, atol: float, ignored: tuple[str, ...]) -> bool:
    if a is None or b is None:
        return a == b
    if a == b or any(fnmatch(a, pattern) and fnmatch(b, pattern) for pattern in ignored):
        return True
    if "".join(_NUMBER.sub("0", a).split()) != "".join(_NUMBER.sub("0", b).split()):
        return False
    return all(_close(x, y, rtol, atol) for x, y in zip(_NUMBER.findall(a), _NUMBER.findall(b), strict=True))


def _close(a: str, b: str, rtol: float, atol: float) -> bool:
    x, y = float(a), float(b)
    if x == y or (math.isnan(x) and math.isnan(y)):
        return True
    if not (math.isfinite(x) and math.isfinite(y)) or (_is_whole(a) and _is_whole(b)):
        return False
    return abs(x - y) <= max(atol, rtol * abs(y), 1.01 * _unit(a), 1.01 * _unit(b))


def _is_whole(number: str) -> bool:
    return number.lstrip("+-").isdigit()


def _unit(number: str) -> float:
    """One unit of the last digit of a number as it is printed."""
    mantissa, _, exponent = number.lower().partition("e")
    return 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
