"""A graph as an HTML page without outside resources: a drawing for each module, which opens and closes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from graphc.display import Block, Code, Picture, Remark, Section, Table, plural
from graphc.display.as_html import page
from graphc.ir.draw import Drawing, heading, inlined
from graphc.ir.graph import Graph
from graphc.ir.layers import layered
from graphc.ir.opened import opened
from graphc.ir.placement import edges_within
from graphc.ir.scopes import Group, scope_tree

TEXT_LINES = 2000  # of the graph's text, at most; `print(graph)` has all of it
_HOW = """A box with a dashed border is a module, or what a loop or a switch runs: a click on it opens it below.
Hovering shows types and lines."""


def to_html(graph: Graph, title: str = "") -> str:
    """`graph` as a page: modules, and what loops and switches run, as groups that open and close,
    each with a drawing of what is directly in it.

    Hovering shows the op, shape, dtype and the user's line. The page needs no other file and no network.
    """
    return page(title or heading(graph), _blocks(graph))


def _blocks(graph: Graph) -> Iterator[Block]:
    lines = str(graph).splitlines()
    cut = [f"... {len(lines) - TEXT_LINES} more lines"] if len(lines) > TEXT_LINES else []
    inputs = [*zip(graph.input_names, graph.input_avals(), strict=True)]
    flat, names = opened(graph)
    root = scope_tree(flat, inlined(flat))
    yield Remark(_HOW, "note")
    yield from _group(Drawing(flat, names), root, edges_within(flat, root), heading(graph))
    yield Section(plural(len(inputs), "input"), [Table(inputs, ("name", "type"))], closed=True)
    yield Section("text", [Code("\n".join([*lines[:TEXT_LINES], *cut]))], closed=True)


def _group(
    drawing: Drawing, group: Group, edges: Mapping[Group, Collection[tuple[int, int]]], title: str
) -> Iterator[Block]:
    """The drawing of a group with its inner groups closed, and below it a section for each of these."""
    yield Picture(drawing.document(layered(edges, group, group.depth, drawing.size), title), title, pans=True)
    for inner in group.groups():
        count = plural(sum(1 for _ in inner.ids()), "operation")
        yield Section(
            f"{inner.path}: {count}", [*_group(drawing, inner, edges, inner.path)], closed=True, name=inner.path
        )
