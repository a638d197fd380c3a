"""A graph as an HTML page without outside resources: a drawing for each module, which opens and closes."""

from __future__ import annotations

import html
from collections.abc import Collection, Iterator, Mapping

from graphc.ir.draw import Drawing, heading, inlined
from graphc.ir.graph import Graph
from graphc.ir.layers import layered
from graphc.ir.opened import opened
from graphc.ir.placement import edges_within
from graphc.ir.scopes import Group, scope_tree

TEXT_LINES = 2000  # of the graph's text, at most; `print(graph)` has all of it

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{title}</title>
<style>
body {{ font: 14px ui-sans-serif, system-ui, sans-serif; margin: 1.5em; color: #222 }}
details {{ border-left: 2px solid #d5dbe1; margin: .4em 0 .4em .4em; padding-left: .8em }}
summary {{ cursor: pointer; font-weight: 600 }}
summary small {{ color: #666; font-weight: 400 }}
svg {{ display: block; margin: .5em 0 }}
svg g[data-group] {{ cursor: pointer }}
svg g g:hover rect {{ stroke-width: 2.5 }}
pre {{ overflow-x: auto; background: #f6f7f9; padding: .8em }}
button {{ font: inherit; margin-right: .5em }}
</style>
</head>
<body>
<h1>{title}</h1>
<p>{signature}</p>
<p><button data-all="1">open all</button><button data-all="">close all</button>
A box with a dashed border is a module, or what a loop or a switch runs: a click on it opens it below.
Hovering shows types and lines.</p>
{body}
<details><summary>text</summary><pre>{text}</pre></details>
<script>
const groups = new Map([...document.querySelectorAll("details[data-group]")].map(d => [d.dataset.group, d]));
document.addEventListener("click", event => {{
  const box = event.target.closest("g[data-group]");
  if (box && groups.has(box.dataset.group)) {{
    const opened = groups.get(box.dataset.group);
    opened.open = !opened.open;
    if (opened.open) opened.scrollIntoView({{behavior: "smooth", block: "nearest"}});
  }}
  const all = event.target.dataset.all;
  if (all !== undefined) groups.forEach(d => {{ d.open = Boolean(all); }});
}});
</script>
</body>
</html>
"""


def to_html(graph: Graph, title: str = "") -> str:
    """`graph` as a page: modules, and what loops and switches run, as groups that open and close,
    each with a drawing of what is directly in it.

    Hovering shows the op, shape, dtype and the user's line. The page needs no other file and no network.
    """
    lines = str(graph).splitlines()
    cut = [f"... {len(lines) - TEXT_LINES} more lines"] if len(lines) > TEXT_LINES else []
    inputs = ", ".join(f"{name}: {aval}" for name, aval in zip(graph.input_names, graph.input_avals(), strict=True))
    flat, names = opened(graph)
    root = scope_tree(flat, inlined(flat))
    return _PAGE.format(
        title=html.escape(title or heading(graph)),
        signature=html.escape(f"{graph.name}({inputs})"),
        body="\n".join(_section(Drawing(flat, names), root, edges_within(flat, root), heading(graph))),
        text=html.escape("\n".join([*lines[:TEXT_LINES], *cut])),
    )


def _section(
    drawing: Drawing, group: Group, edges: Mapping[Group, Collection[tuple[int, int]]], title: str
) -> Iterator[str]:
    """The drawing of a group with its inner groups closed, and below it a section for each of these."""
    yield drawing.document(layered(edges, group, group.depth, drawing.size), title)
    for inner in group.groups():
        count = sum(1 for _ in inner.ids())
        yield (
            f'<details data-group="{html.escape(inner.path)}"><summary>{html.escape(inner.path)} '
            f"<small>{count} operations</small></summary>"
        )
        yield from _section(drawing, inner, edges, inner.path)
        yield "</details>"
