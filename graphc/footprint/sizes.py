"""Numbers of bytes, as people write and read them."""

from __future__ import annotations

import re

UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
         "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}  # fmt: skip
_TEXT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?i?B)\s*")
WRONG = (
    "memory must be a number of bytes, a text such as '2GiB' or '512 MiB', or a fraction of what the program takes by "
    "itself, as 0.5; got {!r}"
)


def budget_of(memory: int | float | str) -> int | float:
    """The bytes that `memory` stands for; a fraction as it is. Raises ValueError, or TypeError for other types.

    >>> budget_of("1.5 KiB"), budget_of(4096), budget_of(0.5), budget_of(1.0)
    (1536, 4096, 0.5, 1.0)
    """
    if isinstance(memory, str):
        match = _TEXT.fullmatch(memory)
        if match is None or match[2] not in UNITS:
            raise ValueError(WRONG.format(memory))
        return int(float(match[1]) * UNITS[match[2]])
    if isinstance(memory, bool) or not isinstance(memory, (int, float)):
        raise TypeError(WRONG.format(memory))
    if (isinstance(memory, float) and not 0 < memory <= 1) or memory <= 0:
        raise ValueError(WRONG.format(memory))
    return memory


def shown(count: float) -> str:
    """A number of bytes for readers.

    >>> shown(3 * 2**20), shown(100)
    ('3.0 MiB', '100 B')
    """
    for name in ("TiB", "GiB", "MiB", "KiB"):
        if count >= UNITS[name]:
            return f"{count / UNITS[name]:.1f} {name}"
    return f"{count:.0f} B"
