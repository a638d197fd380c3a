"""A drawing of a graph, from inputs (top) to results (bottom), as a standalone SVG document.

Graphviz's `dot` lays it out where it is installed, else layers.py. Constants are drawn inside the operations that read
them. A module is a box around its operations; of a large graph, the innermost modules are drawn closed, as one box
each. What a loop or a switch runs is a module, too (graphc.ir.opened). Boxes are as wide as their text.
"""

from __future__ import annotations

import html
from collections.abc import Collection, Mapping
from typing import NamedTuple

from graphc.ir.graph import INPUT, Graph, Node
from graphc.ir.graphviz import by_dot
from graphc.ir.layers import layered
from graphc.ir.lettering import shortened, text_width
from graphc.ir.opened import opened
from graphc.ir.placement import PAD, Path, Placement, Rect, depth_shown, edges_within
from graphc.ir.scopes import Group, scope_tree
from graphc.ops import OPS, Trait
from graphc.ops.aval import types_text

WIDTH, WIDEST, HEIGHT = 132, 280, 40  # of a box: the least and most width
MARGIN, TOP, SIDE = 24, 64, 8  # around the drawing, above it, and on the sides of the text in a box
LARGE = 11, 10  # sizes of the two lines in a box
_CONSTANTS = (OPS["constant"], OPS["full"], OPS["arange"])

# family -> (fill, stroke, text); chosen to stay apart in grey too
COLORS = {
    "input": ("#e8f0fe", "#3b6fd4", "input"),
    "product": ("#fde7d7", "#c8641b", "matrix product, convolution"),
    "reduction": ("#e3f4e4", "#2f8a3c", "reduction"),
    "movement": ("#f2f2f2", "#8a8a8a", "movement"),
    "pointwise": ("#fff8d9", "#b59410", "pointwise"),
    "other": ("#f3e6f7", "#8b44a8", "other"),
    "module": ("#eef1f4", "#5b6773", "module"),
}


def family(node: Node) -> str:
    """The kind of operation, for colour."""
    op = node.op
    if op is INPUT:
        return "input"
    if op.flops is not None:
        return "product"
    if op.view or (op.traits & Trait.MOVES and op.traits & Trait.LINEAR and not op.pointwise):
        return "movement"
    if "keepdims" in op.params:
        return "reduction"
    return "pointwise" if op.pointwise else "other"


def inlined(graph: Graph) -> set[int]:
    """The constants that are drawn inside the operations that read them."""
    return {id for id, node in graph.nodes.items() if node.op in _CONSTANTS} - set(graph.outputs)


def to_svg(graph: Graph, title: str = "", layout: str = "auto") -> str:
    """The drawing of `graph`, with `title` (by default its name) above it.

    layout  "auto": by Graphviz's `dot` where it is installed; "layers": without it
    """
    if layout not in ("auto", "layers"):
        raise ValueError(f"layout must be 'auto' or 'layers', got {layout!r}")
    flat, names = opened(graph)
    root = scope_tree(flat, inlined(flat))
    drawing, depth = Drawing(flat, names), depth_shown(root)
    placed = by_dot(flat, root, depth, drawing.size) if layout == "auto" else None
    if placed is None:
        placed = layered(edges_within(flat, root), root, depth, drawing.size)
    return drawing.document(placed, title or heading(graph))


def heading(graph: Graph) -> str:
    """The name and the size of a graph."""
    return f"{graph.name}: {len(graph)} nodes"


class Drawing:
    """SVG of the parts of one graph, whose nodes have these names."""

    def __init__(self, graph: Graph, names: dict[int, str]):
        self.graph = graph
        self.names = names
        self._outputs = set(graph.outputs)

    def size(self, member: int | Group) -> tuple[float, float]:
        """Of the box of a node, or of a closed group: as wide as its lines, within bounds."""
        lines = zip(self._texts(member), LARGE, (True, False), strict=True)
        wanted = max(text_width(*line) for line in lines) + 2 * SIDE
        return min(max(wanted, WIDTH), WIDEST), HEIGHT

    def document(self, placed: Placement, title: str) -> str:
        """A standalone SVG document."""
        families = {"module" if isinstance(m, Group) else family(self.graph.nodes[m]) for m in placed.boxes}
        families |= {"module"} if placed.frames else set()
        legend = _legend(families)
        total = 2 * MARGIN + max(placed.width, text_width(title, 14, bold=True), legend.width)
        height = TOP + placed.height + MARGIN
        heading = html.escape(title)
        frames = (self._frame(group, at) for group, at in placed.frames.items())
        boxes = (self._box(member, at) for member, at in placed.boxes.items())
        parts = "\n".join([*frames, *map(_edge, placed.paths), *boxes])
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total:.0f} {height:.0f}" role="img" '
            f'aria-label="{heading}" font-family="ui-sans-serif, system-ui, sans-serif" font-size="11" '
            f'width="{total:.0f}" style="max-width:100%; height:auto">\n'
            f'{_ARROW}<rect width="100%" height="100%" fill="white"/>\n'
            f'<text x="{MARGIN}" y="24" font-size="14" font-weight="600" fill="#222">{heading}</text>\n'
            f'{legend.svg}\n<g transform="translate({MARGIN} {TOP})">\n{parts}\n</g>\n</svg>\n'
        )

    def _texts(self, member: int | Group) -> tuple[str, str]:
        """The two lines in a box."""
        if isinstance(member, Group):
            return member.name, f"{sum(1 for _ in member.ids())} operations"
        node = self.graph.nodes[member]
        return self.names[member] if node.op is INPUT else node.op.name, detail(self.graph, node)

    def _frame(self, group: Group, at: Rect) -> str:
        fill, stroke, _ = COLORS["module"]
        return (
            f'<rect x="{at.x:.0f}" y="{at.y:.0f}" width="{at.width:.0f}" height="{at.height:.0f}" rx="8" fill="{fill}" '
            f'fill-opacity="0.6" stroke="{stroke}"><title>{html.escape(group.path)}</title></rect>'
            f'<text x="{at.x + PAD:.0f}" y="{at.y + PAD + 2:.0f}" fill="{stroke}" font-weight="600">'
            f"{html.escape(group.name)}</text>"
        )

    def _box(self, member: int | Group, at: Rect) -> str:
        what, more = self._texts(member)
        if isinstance(member, Group):
            fill, stroke, _ = COLORS["module"]
            data, line, hover = f' data-group="{html.escape(member.path)}"', 'stroke-dasharray="4 2"', member.path
        else:
            node = self.graph.nodes[member]
            fill, stroke, _ = COLORS[family(node)]
            data, hover = "", tip(self.graph, self.names, node)
            line = f'stroke-width="{2.5 if member in self._outputs else 1}"'
        middle, room = at.x + at.width / 2, at.width - 2 * SIDE
        return (
            f"<g{data}><title>{html.escape(hover)}</title>"
            f'<rect x="{at.x:.0f}" y="{at.y:.0f}" width="{at.width:.0f}" height="{at.height:.0f}" rx="5" fill="{fill}" '
            f'stroke="{stroke}" {line}/>'
            f'<text x="{middle:.0f}" y="{at.y + 17:.0f}" text-anchor="middle" font-weight="600" fill="#222">'
            f"{html.escape(shortened(what, room, LARGE[0], bold=True))}</text>"
            f'<text x="{middle:.0f}" y="{at.y + 32:.0f}" text-anchor="middle" fill="#555" font-size="{LARGE[1]}">'
            f"{html.escape(shortened(more, room, LARGE[1]))}</text></g>"
        )


# the same in every drawing, so that several of them in one page may share its name
_ARROW = (
    '<defs><marker id="graphc-arrow" viewBox="0 0 6 6" refX="6" refY="3" markerWidth="6" markerHeight="6" '
    'orient="auto"><path d="M0 0L6 3L0 6z" fill="#9aa3ad"/></marker></defs>'
)


def _edge(path: Path) -> str:
    style = ' stroke-dasharray="3 3"' if path.upward else ""
    style += ' marker-end="url(#graphc-arrow)"' if path.ends else ""
    return f'<path d="{path.d}" fill="none" stroke="#9aa3ad" stroke-width="1"{style}/>'


class _Legend(NamedTuple):
    svg: str
    width: float


def _legend(families: Collection[str]) -> _Legend:
    """What the colours mean."""
    parts: list[str] = []
    x = float(MARGIN)
    for fill, stroke, label in (color for name, color in COLORS.items() if name in families):
        parts.append(f'<rect x="{x:.0f}" y="34" width="10" height="10" rx="2" fill="{fill}" stroke="{stroke}"/>')
        parts.append(f'<text x="{x + 14:.0f}" y="43" fill="#444">{label}</text>')
        x += 30 + text_width(label, LARGE[0])
    return _Legend("".join(parts), x - MARGIN)


def tip(graph: Graph, names: Mapping[int, str], node: Node) -> str:
    """What hovering over a node shows: its statement, its user line and its module."""
    operands = ", ".join(_operand(graph, names, i) for i in node.inputs)
    own = [node.params["name"]] if node.op is INPUT else []
    places = [*own, *filter(None, (node.where, node.scope))]
    return "\n".join([f"{names[node.id]}: {types_text(node.results)} = {node.op.name}({operands})", *places])


def detail(graph: Graph, node: Node) -> str:
    """The type, and the numbers that the node reads."""
    numbers = [_operand(graph, {}, i) for i in node.inputs if graph.nodes[i].op in _CONSTANTS]
    lies = f" {graph.shardings[node.id]}" if node.id in graph.shardings else ""
    return types_text(node.results) + lies + (f"  ({', '.join(numbers)})" if numbers else "")


def _operand(graph: Graph, names: Mapping[int, str], id: int) -> str:
    node = graph.nodes[id]
    if node.op is OPS["full"]:
        return _number(node.params["value"])
    if node.op is OPS["constant"]:
        array = node.params["value"].array
        return _number(array.item()) if array.size == 1 else types_text(node.results)
    return names.get(id, node.op.name)


def _number(value: complex) -> str:
    return str(value) if isinstance(value, bool) else f"{value:.4g}"
