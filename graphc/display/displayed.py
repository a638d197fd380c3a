"""`Displayed`: one line where a result is named, readable text in print, HTML in a notebook, JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from graphc.display.as_html import fragment
from graphc.display.as_text import text
from graphc.display.blocks import Block
from graphc.display.plain import plain

WIDTH = 96  # of a line that names a result, without its brackets
MOST = 60  # lines in print


class Displayed:
    """A base of what people look at. A subclass says what it consists of: `blocks()`.

    `repr(x)` is the first line, `str(x)` at most 60 lines, `x.text()` all of them; `"words" in x` asks for a part.
    `x.to_dict()` has the fields as plain values, `x.to_json()` as JSON.
    """

    __slots__ = ()

    def blocks(self) -> Iterable[Block]:
        """What is shown. The first block is one line, or a section whose title is one."""
        raise NotImplementedError(type(self).__name__)

    def text(self, width: int | None = None, *, color: bool = False) -> str:
        """All of it as text. Lines and cells are broken at `width`, code is not; `color` adds ANSI's."""
        return text(self.blocks(), width, color)

    def __str__(self) -> str:
        lines = self.text().split("\n")
        if len(lines) <= MOST:
            return "\n".join(lines)
        return "\n".join([*lines[: MOST - 1], f"... {len(lines) - MOST + 1:,} more lines: .text() has all of them"])

    def __repr__(self) -> str:
        room = WIDTH - len(type(self).__name__)
        first = self.text().lstrip().split("\n", 1)[0].rstrip(":")
        return f"<{type(self).__name__} {first if len(first) <= room else f'{first[: room - 3]}...'}>"

    def __contains__(self, words: str) -> bool:
        return words in self.text()

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return fragment(self.blocks())

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, which JSON has."""
        return plain(self)

    def to_json(self) -> str:
        """`to_dict` as JSON text."""
        return json.dumps(self.to_dict(), indent=2)
