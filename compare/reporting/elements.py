"""Pieces of HTML. What comes from the user's program goes through `text`."""

from __future__ import annotations

import html
from collections.abc import Sequence

STYLE = """
:root { color-scheme: light }
* { box-sizing: border-box }
body { margin: 0 auto; max-width: 1120px; padding: 32px 20px 64px; background: #fff; color: #222;
       font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; overflow-wrap: anywhere }
h1 { font-size: 26px; line-height: 1.25; margin: 0 0 8px }
h2 { font-size: 19px; margin: 40px 0 8px }
h3 { font-size: 15px; margin: 20px 0 6px }
p { max-width: 46em; margin: 8px 0 }
.note { color: #5a5a5a; font-size: 14px }
.scroll { overflow-x: auto; max-width: 100%; margin: 12px 0 20px }
table { border-collapse: collapse; font-size: 14px; font-variant-numeric: tabular-nums; overflow-wrap: normal }
th, td { padding: 5px 16px 5px 0; text-align: left; vertical-align: top; white-space: nowrap;
         border-bottom: 1px solid #e2e2de }
td.long { white-space: pre-wrap; min-width: 22em }
th { font-weight: 600; color: #555 }
.good, .bad, .open { font-weight: 600 }
.good { color: #27703a } .bad { color: #b0261b } .open { color: #7a5a00 }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr)); gap: 0 28px }
.pair > div { min-width: 0 }
.graph { overflow: auto; max-height: 720px; border: 1px solid #e2e2de; border-radius: 6px; padding: 8px }
.chart svg { width: 100%; max-width: 640px; height: auto; display: block }
pre { overflow-x: auto; max-height: 480px; padding: 12px 14px; border-radius: 6px; background: #f6f6f3;
      font: 13px/1.5 ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; overflow-wrap: normal }
ul { list-style: none; padding: 0 }
li { padding: 5px 0; border-bottom: 1px solid #e2e2de }
details { margin: 12px 0 }
summary { cursor: pointer; font-weight: 600 }
@media (max-width: 560px) {
  body { padding: 20px 14px 48px }
  h1 { font-size: 22px }
  table { font-size: 13px }
  th, td { padding-right: 10px }
}
"""


def text(value: object) -> str:
    """`value` as it is to be read."""
    return html.escape(str(value))


def section(title: str, *parts: str) -> str:
    """A heading and what is below it."""
    return f"<section>\n<h2>{text(title)}</h2>\n" + "\n".join(parts) + "\n</section>"


def paragraph(words: str, kind: str = "") -> str:
    """A paragraph; `kind` is a class of the style sheet."""
    return f'<p class="{kind}">{text(words)}</p>' if kind else f"<p>{text(words)}</p>"


def table(rows: Sequence[Sequence[object]], long: int | None = None) -> str:
    """A table in a box that scrolls by itself. `rows` have the header first; column number `long` may wrap."""
    header = "".join(f"<th>{text(cell)}</th>" for cell in rows[0])
    body = "\n".join(
        "<tr>" + "".join(f"<td{_kind(k == long, cell)}>{text(cell)}</td>" for k, cell in enumerate(row)) + "</tr>"
        for row in rows[1:]
    )
    rows_html = f"<thead><tr>{header}</tr></thead>\n<tbody>{body}</tbody>"
    return f'<div class="scroll" tabindex="0"><table>\n{rows_html}</table></div>'


def _kind(long: bool, cell: object) -> str:
    kind = "long" if long else getattr(cell, "kind", "")
    return f' class="{kind}"' if kind else ""


class Marked(str):
    """A cell's text with a class of the style sheet."""

    kind = ""

    def __new__(cls, words: str, kind: str) -> Marked:
        self = super().__new__(cls, words)
        self.kind = kind
        return self


def items(entries: Sequence[str]) -> str:
    """A list of pieces of HTML; nothing for none."""
    return "<ul>" + "\n".join(f"<li>{entry}</li>" for entry in entries) + "</ul>" if entries else ""


def details(title: str, body: str) -> str:
    """What is shown on request."""
    return f"<details><summary>{text(title)}</summary>\n{body}\n</details>"


def pre(words: str) -> str:
    """Text as it is, in a box that scrolls by itself."""
    return f'<pre tabindex="0">{text(words)}</pre>'


def page(title: str, parts: Sequence[str], data: str) -> str:
    """A document that needs nothing else; `data` is JSON, which it carries along."""
    # "<" cannot end the script early, and means the same in JSON's strings
    embedded = data.replace("<", "\\u003c")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{text(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(parts)
        + f'\n<script type="application/json" id="data">\n{embedded}\n</script>\n</body>\n</html>\n'
    )
