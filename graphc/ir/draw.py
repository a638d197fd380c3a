"""A drawing of a graph: layers from inputs (top) to results (bottom), as a standalone SVG document.

The layout is Sugiyama's: layers by longest path, edges cut at the layers that they cross, order within a layer by the
barycenter of neighbours in a few sweeps, places as near to the neighbours as the order allows.
Constants are drawn inside the operations that read them, so that they do not add layers.
"""

from __future__ import annotations

import html

import networkx as nx

from graphc.ir.graph import INPUT, Graph, Node
from graphc.ir.text import names_of
from graphc.ops import OPS

WIDTH, HEIGHT, GAP_X, GAP_Y, MARGIN = 132, 40, 18, 40, 24
BEND = 2  # the width of a place where an edge passes a layer
LETTER = 6.2  # the mean width of a letter of the legend
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
    """The nodes by length of the longest path from a source, each layer ordered to keep edges short.

    A source without a long path below it stands just above its first user.
    """
    layers = [list(layer) for layer in nx.topological_generations(graph)]
    row = {id: i for i, layer in enumerate(layers) for id in layer}
    for id in layers[0] if layers else []:
        if graph.succ[id]:
            row[id] = min(row[user] for user in graph.succ[id]) - 1
    lowered: list[list[int]] = [[] for _ in layers]
    for id, r in row.items():
        lowered[r].append(id)
    _order(graph, lowered)
    return lowered


def _order(graph: nx.DiGraph, layers: list[list[int]]) -> None:
    """Sort each layer by the mean place of the neighbours, layer by layer, down and up again."""
    place = {id: i / len(layer) for layer in layers for i, id in enumerate(layer)}
    for sweep in range(SWEEPS):
        downward = sweep % 2 == 0
        neighbours = graph.pred if downward else graph.succ
        for layer in layers if downward else reversed(layers):

            def barycenter(id: int) -> float:
                around = [place[i] for i in neighbours[id]]  # noqa: B023  (called at once)
                return sum(around) / len(around) if around else place[id]

            layer.sort(key=barycenter)
            place.update((id, i / len(layer)) for i, id in enumerate(layer))


def _with_bends(graph: nx.DiGraph, layers: list[list[int]]) -> tuple[nx.DiGraph, list[list[int]]]:
    """`graph` with each edge that crosses layers cut at every one of them by a bend: a node with a negative id."""
    row = {id: r for r, layer in enumerate(layers) for id in layer}
    cut, rows = nx.DiGraph(), [list(layer) for layer in layers]
    cut.add_nodes_from(graph)
    bends: dict[tuple[int, int], int] = {}  # (source, layer) -> bend: the edges of one source run together
    for source, target in graph.edges:
        last = source
        for r in range(row[source] + 1, row[target]):
            bend = bends.get((source, r))
            if bend is None:
                bend = bends[source, r] = -len(bends) - 1
                rows[r].append(bend)
            cut.add_edge(last, bend)
            last = bend
        cut.add_edge(last, target)
    _order(cut, rows)
    return cut, rows


def _width(id: int) -> int:
    return WIDTH if id >= 0 else BEND


def _placed(graph: nx.DiGraph, layers: list[list[int]]) -> dict[int, float]:
    """The left edge of each node: near its neighbours, in the order of its layer."""
    x: dict[int, float] = {}
    for layer in layers:
        at = 0.0
        for id in layer:
            x[id] = at
            at += _width(id) + GAP_X
    for sweep in range(SWEEPS * 4):
        downward = sweep % 2 == 0
        for layer in layers if downward else reversed(layers):
            wanted = []
            for id in layer:
                around = [x[i] + _width(i) / 2 for i in (graph.pred if downward else graph.succ)[id]]
                wanted.append(sum(around) / len(around) - _width(id) / 2 if around else x[id])
            x.update(zip(layer, _apart(wanted, [_width(id) + GAP_X for id in layer]), strict=True))
    left = min(x.values(), default=0.0)
    return {id: value - left + MARGIN for id, value in x.items()}


def _apart(wanted: list[float], widths: list[int]) -> list[float]:
    """Positions close to `wanted` (least squares) of neighbours that do not overlap: pool adjacent violators."""
    offsets = [0.0]
    for width in widths[:-1]:
        offsets.append(offsets[-1] + width)
    blocks: list[tuple[float, int]] = []  # (mean of wanted - offset, number of nodes)
    for w, offset in zip(wanted, offsets, strict=False):
        mean, count = w - offset, 1
        while blocks and blocks[-1][0] > mean:
            other, more = blocks.pop()
            mean, count = (mean * count + other * more) / (count + more), count + more
        blocks.append((mean, count))
    means = [mean for mean, count in blocks for _ in range(count)]
    return [mean + offset for mean, offset in zip(means, offsets, strict=False)]


def to_svg(graph: Graph, title: str = "") -> str:
    """The drawing of `graph`, with `title` (by default its name) above it."""
    drawn = nx.DiGraph(graph.nx)
    inlined = {id for id, node in graph.nodes.items() if node.op in _CONSTANTS}
    drawn.remove_nodes_from(inlined - set(graph.outputs))
    cut, layers = _with_bends(drawn, layers_of(drawn))
    x = _placed(cut, layers)
    at = {id: (x[id], 64.0 + row * (HEIGHT + GAP_Y)) for row, layer in enumerate(layers) for id in layer}
    total = max((left + _width(id) for id, left in x.items()), default=0) + MARGIN
    height = 64 + len(layers) * (HEIGHT + GAP_Y)
    names = names_of(graph)
    parts = [_edge(a, b, at) for a, b in cut.edges]
    outputs = set(graph.outputs)
    parts += [_box(graph, names, graph.nodes[id], at[id], id in outputs) for id in drawn]
    heading = html.escape(title or f"{graph.name}: {len(graph)} nodes")
    total = max(total, MARGIN * 2 + 8 * len(heading), _legend_width(graph, drawn))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total:.0f} {height:.0f}" role="img" '
        f'aria-label="{heading}" font-family="ui-sans-serif, system-ui, sans-serif" font-size="11" '
        f'style="max-width:{total:.0f}px; width:100%; height:auto">\n'
        f'<rect width="100%" height="100%" fill="white"/>\n'
        f'<text x="{MARGIN}" y="24" font-size="14" font-weight="600">{heading}</text>\n'
        f"{_legend(graph, drawn)}\n" + "\n".join(parts) + "\n</svg>\n"
    )


def _legend_entries(graph: Graph, drawn: nx.DiGraph) -> list[tuple[str, str, str]]:
    present = {family(graph.nodes[id]) for id in drawn}
    return [color for name, color in COLORS.items() if name in present]


def _legend_width(graph: Graph, drawn: nx.DiGraph) -> float:
    return 2 * MARGIN + sum(30 + LETTER * len(label) for _, _, label in _legend_entries(graph, drawn))


def _legend(graph: Graph, drawn: nx.DiGraph) -> str:
    parts, x = [], float(MARGIN)
    for fill, stroke, label in _legend_entries(graph, drawn):
        parts.append(f'<rect x="{x:.0f}" y="34" width="10" height="10" rx="2" fill="{fill}" stroke="{stroke}"/>')
        parts.append(f'<text x="{x + 14:.0f}" y="43" fill="#444">{label}</text>')
        x += 30 + LETTER * len(label)
    return "".join(parts)


def _edge(source: int, target: int, at: dict[int, tuple[float, float]]) -> str:
    x0, y0 = at[source][0] + _width(source) / 2, at[source][1] + (HEIGHT if source >= 0 else HEIGHT / 2)
    x1, y1 = at[target][0] + _width(target) / 2, at[target][1] + (0 if target >= 0 else HEIGHT / 2)
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
