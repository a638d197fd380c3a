"""Blocks as HTML: a fragment for a notebook, or a page that needs nothing else. All words are escaped here."""

from __future__ import annotations

import html
from collections.abc import Iterable
from pathlib import Path

from graphc.display.as_text import right_aligned
from graphc.display.blocks import Beside, Block, Code, Picture, Remark, Table

DEEPEST = 3  # level of headings; further sections are indented
LONG = 44  # letters of a cell that may be broken


def _read(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


STYLE, _PAGE_STYLE, SCRIPT = _read("fragment.css"), _read("page.css"), _read("page.js")


def fragment(blocks: Iterable[Block]) -> str:
    """HTML to be put into a page that is not ours."""
    return f'<div class="graphc"><style>{STYLE}</style>\n{"".join(_html(block, 0) for block in blocks)}</div>'


def page(title: str, blocks: Iterable[Block], data: str = "") -> str:
    """A document that needs no other file, no network and no script; `data` is JSON, which it carries along."""
    # "<" cannot end the script early, and means the same in JSON's strings
    embedded = data.replace("<", "\\u003c")
    carried = f'<script type="application/json" id="data">\n{embedded}\n</script>\n' if data else ""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escaped(title)}</title>\n<style>{_PAGE_STYLE}{STYLE}</style>\n</head>\n"
        f'<body class="graphc">\n<h1>{escaped(title)}</h1>\n'
        + "".join(_html(block, 2) for block in blocks)
        + f"{carried}<script>{SCRIPT}</script>\n</body>\n</html>\n"
    )


def escaped(value: object) -> str:
    """`value` as it is to be read."""
    return html.escape(str(value))


def _html(block: Block, level: int) -> str:
    """One block. level: of the headings of sections; 0: sections are no parts of a page, and are indented."""
    if isinstance(block, Remark):
        kind = f"line {block.kind}".strip()
        return f'<div class="{kind}">{escaped(block.text)}</div>\n' if block.text else ""
    if isinstance(block, Table):
        return _table(block)
    if isinstance(block, Code):
        return f'<pre tabindex="0">{escaped(block.text)}</pre>\n'
    if isinstance(block, Picture):
        return f'<div class="{"picture" if block.pans else "chart"}" tabindex="0">{block.svg}</div>\n'
    if isinstance(block, Beside):
        return f'<div class="beside">{"".join(f"<div>{_html(b, level)}</div>" for b in block.blocks)}</div>\n'
    inside = "".join(_html(b, level + 1 if 0 < level < DEEPEST else 0) for b in block.blocks)
    if block.closed:
        name = f' data-group="{escaped(block.name)}"' if block.name else ""
        return f"<details{name}><summary>{escaped(block.title)}</summary>\n{inside}</details>\n"
    if level:
        kind = f' class="{block.title.kind}"' if isinstance(block.title, Remark) and block.title.kind else ""
        return f"<section>\n<h{level}{kind}>{escaped(block.title)}</h{level}>\n{inside}</section>\n"
    title = block.title if isinstance(block.title, Remark) else Remark(block.title, "title")
    return f'{_html(title, 0)}<div class="inside">{inside}</div>\n'


def _table(table: Table) -> str:
    columns = zip(*([str(cell) for cell in row] for row in table.rows), strict=True)
    aligned = ["number" if right_aligned(column) else "" for column in columns]

    def row(tag: str, cells: Iterable[object]) -> str:
        made: list[str] = []
        for cell, column in zip(cells, aligned, strict=True):
            words = str(cell)
            kinds = " ".join(filter(None, (column, getattr(cell, "kind", ""), "long" if len(words) > LONG else "")))
            made.append(f'<{tag} class="{kinds}">{escaped(words)}</{tag}>')
        return f"<tr>{''.join(made)}</tr>\n"

    head = f"<thead>{row('th', table.head)}</thead>" if table.head and aligned else ""
    body = "".join(row("td", cells) for cells in table.rows)
    return f'<div class="scroll" tabindex="0"><table>{head}<tbody>\n{body}</tbody></table></div>\n'
