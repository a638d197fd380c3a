"""What reports are made of. Nothing in a block is markup, but for the SVG of a picture.

`kind` says what words mean: "good", "bad", "open" (to be looked at), "note" (by the way), "title", or "" (nothing).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias, final


@final
@dataclass(frozen=True, slots=True)
class Remark:
    """A sentence, on one line or several; or a cell of a table that means something."""

    text: str
    kind: str = ""

    def __str__(self) -> str:
        return self.text


@final
@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells, below the names of the columns if they need names. The first `labels` columns say what a row is:
    text repeats them where a table is too wide, and goes on below."""

    rows: Sequence[Sequence[object]]
    head: Sequence[str] = ()
    labels: int = 1


@final
@dataclass(frozen=True, slots=True)
class Code:
    """Lines that are shown as they are, and never broken."""

    text: str


@final
@dataclass(frozen=True, slots=True)
class Picture:
    """An `<svg>` element. Text shows the words instead, if there are any. What `pans` can be larger than its box."""

    svg: str
    words: str = ""
    pans: bool = False


@final
@dataclass(frozen=True, slots=True)
class Section:
    """A title with what belongs to it. What is `closed` is opened on request in HTML, and left out in text.

    name  of what is closed: a click on a part of a picture with this `data-group` opens it
    """

    title: str | Remark
    blocks: Sequence[Block] = ()
    closed: bool = False
    name: str = ""


@final
@dataclass(frozen=True, slots=True)
class Beside:
    """Blocks beside each other where there is room."""

    blocks: Sequence[Block]


Block: TypeAlias = Remark | Table | Code | Picture | Section | Beside
