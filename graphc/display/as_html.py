"""Blocks as HTML: a fragment for a notebook, or a page that needs nothing else. All words are escaped here."""

from __future__ import annotations

import html
from collections.abc import Iterable

from graphc.display.as_text import right_aligned
from graphc.display.blocks import Beside, Block, Code, Picture, Remark, Table

DEEPEST = 3  # level of headings; further sections are indented
LONG = 44  # letters of a cell that may be broken
# of fragments and pages: colours come from what is around them, and are readable on light and on dark
STYLE = """
.graphc { overflow-wrap: anywhere }
.graphc .line { white-space: pre-line }
.graphc .good, .graphc .bad, .graphc .open { font-weight: 600 }
.graphc .good { color: #23863d } .graphc .bad { color: #d8423f } .graphc .open { color: #a06a00 }
.graphc .note { opacity: .75; font-size: .9em }
.graphc .title { font-weight: 600 }
.graphc .inside { margin-left: 1.25em }
.graphc .scroll { overflow-x: auto; max-width: 100%; margin: .6em 0 }
.graphc table { border-collapse: collapse; font-size: .9em; font-variant-numeric: tabular-nums; margin: 0 }
.graphc th, .graphc td { padding: 3px 14px 3px 0; text-align: left; vertical-align: top; white-space: nowrap;
  overflow-wrap: normal; background: none; border: 0;
  border-bottom: 1px solid rgba(128, 128, 128, .35) }
.graphc td.long { white-space: pre-wrap; min-width: 22em }
.graphc td.number, .graphc th.number { text-align: right }
.graphc .beside { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr)); gap: 0 28px }
.graphc .beside > div { min-width: 0 }
.graphc .picture { overflow: auto; max-height: 720px; border: 1px solid rgba(128, 128, 128, .35); border-radius: 6px;
  padding: 8px; background: #fff; color: #222 }
.graphc .picture svg { max-width: none !important; display: block }
.graphc .chart svg { width: 100%; max-width: 560px; height: auto; display: block }
.graphc pre { overflow-x: auto; max-height: 480px; padding: 10px 12px; border-radius: 6px; line-height: 1.4;
  background: rgba(128, 128, 128, .12); overflow-wrap: normal; font-size: .85em; white-space: pre }
.graphc summary { cursor: pointer; font-weight: 600 }
.graphc details > details, .graphc details > .picture { margin-left: 1.25em }
.graphc g[data-group] { cursor: pointer }
.graphc .zoom button { font: inherit; min-width: 2.2em; margin: 0 4px 4px 0 }
"""
_PAGE_STYLE = """
:root { color-scheme: light dark }
* { box-sizing: border-box }
body { margin: 0 auto; max-width: 1120px; padding: 32px 20px 64px;
       font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif }
h1 { font-size: 26px; line-height: 1.25; margin: 0 0 8px }
h2 { font-size: 19px; margin: 40px 0 8px }
h3 { font-size: 15px; margin: 20px 0 6px }
@media (max-width: 560px) { body { padding: 20px 14px 48px } h1 { font-size: 22px } }
"""
# Drag a picture, or zoom it by the buttons; a click on a part of it opens the section of that name. Without scripts
# there are no buttons, boxes scroll, and sections open by their titles.
SCRIPT = """
for (const box of document.querySelectorAll(".graphc .picture")) {
  const svg = box.querySelector("svg"), bar = document.createElement("div");
  let scale = 1, from = null;
  const width = svg.viewBox.baseVal.width;
  const zoom = s => { scale = s; svg.style.width = width * s + "px"; };
  // what is still readable is shown as a whole; else the uppermost box is in the middle
  const place = () => {
    const room = (box.clientWidth - 18) / width;
    if (room > 0.6 && room < 1) zoom(room);
    const boxes = [...svg.querySelectorAll("g > title + rect")].map(b => b.getBoundingClientRect());
    const first = boxes.reduce((a, b) => b.y < a.y ? b : a, boxes[0]);
    if (first) box.scrollLeft = first.x - svg.getBoundingClientRect().x + first.width / 2 - box.clientWidth / 2;
  };
  for (const [sign, act] of [["+", () => zoom(scale * 1.25)], ["\\u2212", () => zoom(scale / 1.25)],
                             ["1:1", () => zoom(1)], ["fit", () => zoom((box.clientWidth - 18) / width)]]) {
    const button = bar.appendChild(document.createElement("button"));
    button.textContent = sign; button.onclick = act;
  }
  bar.className = "zoom"; box.before(bar); box.style.cursor = "grab";
  place();
  box.closest("details")?.addEventListener("toggle", place, {once: true});
  box.onpointerdown = e => { from = [e.clientX + box.scrollLeft, e.clientY + box.scrollTop]; };
  box.onpointermove = e => { if (from && e.buttons) box.scrollTo(from[0] - e.clientX, from[1] - e.clientY); };
  box.onwheel = e => { if (e.ctrlKey) { e.preventDefault(); zoom(scale * (e.deltaY < 0 ? 1.1 : 1 / 1.1)); } };
}
const groups = new Map([...document.querySelectorAll("details[data-group]")].map(d => [d.dataset.group, d]));
document.addEventListener("click", event => {
  const group = groups.get(event.target.closest("g[data-group]")?.dataset.group);
  if (!group) return;
  group.open = !group.open;
  if (group.open) group.scrollIntoView({behavior: "smooth", block: "nearest"});
});
if (groups.size > 1) {
  const bar = document.createElement("div");
  for (const [words, open] of [["open all", true], ["close all", false]]) {
    const button = bar.appendChild(document.createElement("button"));
    button.textContent = words; button.onclick = () => groups.forEach(d => { d.open = open; });
  }
  bar.className = "zoom"; groups.values().next().value.before(bar);
}
"""


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
