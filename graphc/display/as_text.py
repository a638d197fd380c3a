"""Blocks as text: plain, or for a terminal, with colours and in its width."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence

from graphc.display.blocks import Beside, Block, Code, Picture, Remark, Table

INDENT = "  "
GAP = "  "  # between columns
NARROWEST = 8  # that a column is made to fit a width
COLORS = {"good": "32", "bad": "1;31", "open": "33", "note": "2", "title": "1"}
_NUMBER = re.compile(r"[-+]?(\d[\d,.]*(e[-+]?\d+)?%?|nan|inf)")


def text(blocks: Iterable[Block], width: int | None = None, color: bool = False) -> str:
    """All lines of `blocks`; broken at `width`, except those of code; with ANSI colours for kinds of remarks."""
    return "\n".join(_lines(blocks, "", width, color)).rstrip("\n")


def right_aligned(column: Iterable[str]) -> bool:
    """Whether all cells that are not empty are numbers."""
    filled = [cell for cell in column if cell]
    return bool(filled) and all(map(_NUMBER.fullmatch, filled))


def _lines(blocks: Iterable[Block], indent: str, width: int | None, color: bool) -> Iterator[str]:
    for block in blocks:
        if isinstance(block, Remark):
            yield from (_painted(line, block.kind, color) for line in _broken(block.text, indent, width))
        elif isinstance(block, Table):
            yield from (f"{indent}{line}".rstrip() for line in _table(block, width and width - len(indent), color))
        elif isinstance(block, Code):
            yield from (f"{indent}{line}".rstrip() for line in block.text.splitlines())
        elif isinstance(block, Picture):
            yield from _broken(block.words, indent, width) if block.words else ()
        elif isinstance(block, Beside):
            yield from _lines(block.blocks, indent, width, color)
        elif not block.closed:
            title = block.title if isinstance(block.title, Remark) else Remark(block.title, "title")
            yield from _lines([title], indent, width, color)
            yield from _lines(block.blocks, indent + INDENT, width, color)


def _broken(words: str, indent: str, width: int | None) -> Iterator[str]:
    """Lines that are indented, and go on a little to the right where they are broken."""
    for line in words.split("\n"):
        start = indent + line[: len(line) - len(line.lstrip())]
        if width is None or len(indent) + len(line) <= width:
            yield f"{indent}{line}".rstrip()
        else:
            yield from textwrap.wrap(
                line.strip(), max(width, len(start) + 24), initial_indent=start, subsequent_indent=start + INDENT,
                break_on_hyphens=False, break_long_words=False,
            )  # fmt: skip


def _painted(line: str, kind: str, color: bool) -> str:
    code = COLORS.get(kind)
    return f"\x1b[{code}m{line}\x1b[0m" if color and code and line else line


def _table(table: Table, width: int | None, color: bool) -> Iterator[str]:
    """The rows in columns. What does not fit beside each other stands below, if columns have names, or is broken.
    There is an empty line below a table whose columns have names."""
    head = [[Remark(name, "title") for name in table.head]] if table.head else []
    rows = [*head, *table.rows]
    widths = [max(len(str(row[k])) for row in rows) for k in range(len(rows[0]) if rows else 0)]
    right = [right_aligned(str(row[k]) for row in table.rows) for k in range(len(widths))]
    for chosen in _chunks(widths, table.labels if table.head else len(widths), width):
        fitted = _fitted([widths[k] for k in chosen], width)
        for row in rows:
            parts = [textwrap.wrap(str(row[k]), w, break_on_hyphens=False) for k, w in zip(chosen, fitted, strict=True)]
            for at in range(max(1, *map(len, parts))):
                line = [part[at] if at < len(part) else "" for part in parts]
                padded = (c.rjust(w) if right[k] else c.ljust(w) for c, k, w in zip(line, chosen, fitted, strict=True))
                kinds = (getattr(row[k], "kind", "") for k in chosen)
                yield GAP.join(_painted(c, kind, color) for c, kind in zip(padded, kinds, strict=True))
        if table.head:
            yield ""


def _chunks(widths: Sequence[int], labels: int, width: int | None) -> Iterator[list[int]]:
    """The numbers of the columns that stand beside each other: the labels, and as many others as there is room for."""
    chosen = [*range(min(labels, len(widths)))]
    for k in range(len(chosen), len(widths)):
        needed = sum(widths[c] + len(GAP) for c in chosen) + widths[k]
        if width is not None and needed > width and len(chosen) > labels:
            yield chosen
            chosen = [*range(labels)]
        chosen.append(k)
    if chosen:
        yield chosen


def _fitted(wanted: Sequence[int], width: int | None) -> list[int]:
    """What each column gets: the widest give way until all fit, and none is made too narrow to be read."""
    found = [max(w, 1) for w in wanted]
    while width is not None and sum(found) + len(GAP) * (len(found) - 1) > width and max(found) > NARROWEST:
        found[found.index(max(found))] -= 1
    return found
