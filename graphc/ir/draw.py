"""A drawing of a graph: layers from inputs (top) to results (bottom), as a standalone SVG document.

The layout is Sugiyama's: layers by longest path, order within a layer by the barycenter of neighbours, a few sweeps.
Constants are drawn inside the operations that read them, so that they do not add layers.
"""

from __future__ import annotations

import html

import networkx as nx

from graphc.ir.graph import INPUT, Graph, Node
from graphc.ir.text import names_of
from graphc.ops import OPS

WIDTH, HEIGHT, GAP_X, GAP_Y, MARGIN = 132, 40, 18, 40, 24
SWEEPS = 6
_CONSTANTS = (OPS["constant"], OPS["full"], OPS["arange"])

# family -> (fill, stroke, text); chosen to stay apart in grey too
COLORS = {
    "input": ("#e8f0fe", "#3b6fd4", "input"),
    "product": ("#fde7d7", "#c8641b", "matrix product, convolution"),
    "reduction": ("#e3f4e4", "#2f8a3c", "reduction"),
    "movement": ("#f2f2f2", "#8a8a8a", "movement"),
    "pointwise": ("#fff8d9", "#b59410", "pointwise"),
    "other": ("#f3e6f7", "#8b44a8", "other"),
}


def family(node: Node) -> str:
    """The kind of operation, for colour."""
    op = node.op
    if op is INPUT:
        return "input"
    if op.flops is not None:
        return "product"
    if op.view or op.name in ("broadcast_to", "pad_zeros", "cat", "flip"):
        return "movement"
    if "keepdims" in op.params:
        return "reduction"
    return "pointwise" if op.pointwise else "other"


def layers_of(graph: nx.DiGraph) -> list[list[int]]:
    """The nodes by length of the longest path from a source, each layer ordered to keep edges short."""
    layers = [list(layer) for layer in nx.topological_generations(graph)]
    place = {id: i for layer in layers for i, id in enumerate(layer)}
    for sweep in range(SWEEPS):
        downward = sweep % 2 == 0
        neighbours = graph.pred if downward else graph.succ
        for layer in layers if downward else reversed(layers):

            def barycenter(id: int) -> float:
                around = [place[i] for i in neighbours[id]]  # noqa: B023  (called at once)
                return sum(around) / len(around) if around else place[id]

            layer.sort(key=barycenter)
            place.update((id, i) for i, id in enumerate(layer))
    return layers


def to_svg(graph: Graph, title: str = "") -> str:
    """The drawing of `graph`, with `title` (by default its name) above it."""
    drawn = nx.DiGraph(graph.nx)
    inlined = {id for id, node in graph.nodes.items() if node.op in _CONSTANTS}
    drawn.remove_nodes_from(inlined - set(graph.outputs))
    layers = layers_of(drawn)
    widest = max((len(layer) for layer in layers), default=1)
    total = widest * (WIDTH + GAP_X) - GAP_X + 2 * MARGIN
    at: dict[int, tuple[float, float]] = {}
    for row, layer in enumerate(layers):
        indent = (total - (len(layer) * (WIDTH + GAP_X) - GAP_X)) / 2
        for column, id in enumerate(layer):
            at[id] = (indent + column * (WIDTH + GAP_X), 64 + row * (HEIGHT + GAP_Y))
    height = 64 + len(layers) * (HEIGHT + GAP_Y) + MARGIN
    names = names_of(graph)
    parts = [_edge(at[a], at[b]) for a, b in drawn.edges]
    outputs = set(graph.outputs)
    parts += [_box(graph, names, graph.nodes[id], at[id], id in outputs) for id in drawn]
    heading = html.escape(title or f"{graph.name}: {len(graph)} nodes")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total:.0f} {height:.0f}" role="img" '
        f'aria-label="{heading}" font-family="ui-sans-serif, system-ui, sans-serif" font-size="11" '
        f'style="max-width:{total:.0f}px; width:100%; height:auto">\n'
        f'<rect width="100%" height="100%" fill="white"/>\n'
        f'<text x="{MARGIN}" y="24" font-size="14" font-weight="600">{heading}</text>\n'
        f"{_legend(graph, drawn)}\n" + "\n".join(parts) + "\n</svg>\n"
    )


def _legend(graph: Graph, drawn: nx.DiGraph) -> str:
    present = {family(graph.nodes[id]) for id in drawn}
    parts, x = [], MARGIN
    for name, (fill, stroke, label) in COLORS.items():
        if name in present:
            parts.append(f'<rect x="{x}" y="34" width="10" height="10" rx="2" fill="{fill}" stroke="{stroke}"/>')
            parts.append(f'<text x="{x + 14}" y="43" fill="#444">{label}</text>')
            x += 26 + 6 * len(label)
    return "".join(parts)


def _edge(start: tuple[float, float], end: tuple[float, float]) -> str:
    x0, y0 = start[0] + WIDTH / 2, start[1] + HEIGHT
    x1, y1 = end[0] + WIDTH / 2, end[1]
    bend = max(14.0, (y1 - y0) / 2)
    return (
        f'<path d="M{x0:.0f} {y0:.0f}C{x0:.0f} {y0 + bend:.0f} {x1:.0f} {y1 - bend:.0f} {x1:.0f} {y1:.0f}" '
        'fill="none" stroke="#9aa3ad" stroke-width="1"/>'
    )


def _box(graph: Graph, names: dict[int, str], node: Node, at: tuple[float, float], is_output: bool) -> str:
    fill, stroke, _ = COLORS[family(node)]
    x, y = at
    what = names[node.id] if node.op is INPUT else node.op.name
    operands = ", ".join(_operand(graph, names, i) for i in node.inputs)
    tip = html.escape(f"{names[node.id]}: {node.aval} = {node.op.name}({operands})\n{node.where}")
    return (
        f'<g><title>{tip}</title><rect x="{x:.0f}" y="{y:.0f}" width="{WIDTH}" height="{HEIGHT}" rx="5" fill="{fill}" '
        f'stroke="{stroke}" stroke-width="{2.5 if is_output else 1}"/>'
        f'<text x="{x + WIDTH / 2:.0f}" y="{y + 17:.0f}" text-anchor="middle" font-weight="600">'
        f"{html.escape(_short(what, 20))}</text>"
        f'<text x="{x + WIDTH / 2:.0f}" y="{y + 32:.0f}" text-anchor="middle" fill="#555" font-size="10">'
        f"{html.escape(_short(_detail(graph, node), 26))}</text></g>"
    )


def _detail(graph: Graph, node: Node) -> str:
    """The type, and the numbers that the node reads."""
    numbers = [_operand(graph, {}, i) for i in node.inputs if graph.nodes[i].op in _CONSTANTS]
    return f"{node.aval}" + (f"  ({', '.join(numbers)})" if numbers else "")


def _operand(graph: Graph, names: dict[int, str], id: int) -> str:
    node = graph.nodes[id]
    if node.op is OPS["full"]:
        return f"{node.params['value']:.4g}"
    if node.op is OPS["constant"]:
        array = node.params["value"].array
        return f"{array.item():.4g}" if array.size == 1 else f"{node.aval}"
    return names.get(id, node.op.name)


def _short(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
