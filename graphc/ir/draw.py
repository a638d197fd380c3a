"""A drawing of a graph: layers from inputs (top) to results (bottom), as a standalone SVG document.

The layout is Sugiyama's: layers by longest path, edges cut at the layers that they cross, order within a layer by the
barycenter of neighbours in a few sweeps, places as near to the neighbours as the order allows.
Constants are drawn inside the operations that read them, so that they do not add layers. A module is a box around its
operations, laid out by itself; of a large graph, the innermost modules are drawn closed, as one box each. What a loop
or a switch runs is a module, too (graphc.ir.opened).
"""

from __future__ import annotations

import html
from collections.abc import Collection, Mapping, Sequence

import networkx as nx
import numpy as np

from graphc.ir.graph import INPUT, Graph, Node
from graphc.ir.opened import opened
from graphc.ir.scopes import Group, owners, scope_tree
from graphc.ops import OPS, Trait
from graphc.ops.aval import types_text

WIDTH, HEIGHT, GAP_X, GAP_Y, MARGIN = 132, 40, 18, 40, 24
BEND = 2  # the width of a place where an edge passes a layer
PAD, TITLE = 14, 20  # of the box of a module: around what is inside, and above it
VISIBLE = 150  # boxes in a drawing; where there would be more, inner modules are closed
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
    "module": ("#eef1f4", "#5b6773", "module"),
}
Sizes = Mapping[int, tuple[float, float]]


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


def _width(sizes: Sizes, id: int) -> float:
    return sizes[id][0] if id >= 0 else BEND


def _placed(graph: nx.DiGraph, layers: list[list[int]], sizes: Sizes) -> dict[int, float]:
    """The left edge of each node, from 0 on: near its neighbours, in the order of its layer."""
    x: dict[int, float] = {}
    for layer in layers:
        at = 0.0
        for id in layer:
            x[id] = at
            at += _width(sizes, id) + GAP_X
    for sweep in range(SWEEPS * 4):
        downward = sweep % 2 == 0
        for layer in layers if downward else reversed(layers):
            wanted = []
            for id in layer:
                around = [x[i] + _width(sizes, i) / 2 for i in (graph.pred if downward else graph.succ)[id]]
                wanted.append(sum(around) / len(around) - _width(sizes, id) / 2 if around else x[id])
            x.update(zip(layer, _apart(wanted, [_width(sizes, id) + GAP_X for id in layer]), strict=True))
    left = min(x.values(), default=0.0)
    return {id: value - left for id, value in x.items()}


def _apart(wanted: Sequence[float], widths: Sequence[float]) -> list[float]:
    """Positions close to `wanted` (least squares) of neighbours that do not overlap."""
    from scipy.optimize import isotonic_regression

    offsets = np.cumsum([0.0, *widths])[:-1]
    return list(isotonic_regression(np.array(wanted) - offsets).x + offsets) if len(wanted) else []


class Layout:
    """Where the members of a group are drawn.

    boxes    key -> member: a node's id, or for an inner group a number above all ids
    places   key -> (left, top) within the drawing; bends have negative keys
    edges    pairs of keys, between boxes and bends
    inner    key -> the layout of a group that is drawn open
    """

    def __init__(self, group: Group, edges: Collection[tuple[int, int]], inner: Mapping[int, Layout]):
        self.group = group
        self.inner = dict(inner)
        drawn = nx.DiGraph()
        drawn.add_nodes_from(self.keys(group))
        order = {key: k for k, key in enumerate(drawn)}
        # modules as a whole may need each other: what runs backwards has no part in the layers
        drawn.add_edges_from((a, b) for a, b in edges if order[a] < order[b])
        sizes = {key: self._size(key) for key in drawn}
        cut, layers = _with_bends(drawn, layers_of(drawn))
        x = _placed(cut, layers, sizes)
        self.edges = [*cut.edges, *((a, b) for a, b in edges if order[a] > order[b])]
        self.sizes = sizes
        self.places: dict[int, tuple[float, float]] = {}
        top = 0.0
        for layer in layers:
            self.places.update((key, (x[key], top)) for key in layer)
            top += max((sizes[key][1] for key in layer if key >= 0), default=HEIGHT) + GAP_Y
        self.width = max((left + _width(sizes, key) for key, left in x.items()), default=0.0)
        self.height = max(top - GAP_Y, 0.0)

    @staticmethod
    def keys(group: Group) -> list[int]:
        return [key_of(member) for member in group.members]

    def _size(self, key: int) -> tuple[float, float]:
        inside = self.inner.get(key)
        if inside is None:
            return WIDTH, HEIGHT
        return max(inside.width, LETTER * len(inside.group.name)) + 2 * PAD, inside.height + PAD + PAD + TITLE


_GROUP_KEYS = 1 << 40  # above all ids


def key_of(member: int | Group) -> int:
    """The key of a group's member in drawings."""
    return member if isinstance(member, int) else _GROUP_KEYS + id(member)


def edges_within(graph: Graph, root: Group) -> dict[Group, dict[tuple[int, int], None]]:
    """For each group the edges between its members, which stand for what is inside them."""
    chains = owners(root)
    found: dict[Group, dict[tuple[int, int], None]] = {group: {} for group in root.every_group()}
    for id, chain in chains.items():
        for operand in graph.nodes[id].inputs:
            other = chains.get(operand)
            if other is None:
                continue
            shared = 1
            while shared < min(len(chain), len(other)) and chain[shared] is other[shared]:
                shared += 1
            source = key_of(other[shared]) if shared < len(other) else operand
            target = key_of(chain[shared]) if shared < len(chain) else id
            found[chain[shared - 1]][source, target] = None
    return found


def inlined(graph: Graph) -> set[int]:
    """The constants that are drawn inside the operations that read them."""
    return {id for id, node in graph.nodes.items() if node.op in _CONSTANTS} - set(graph.outputs)


def depth_shown(root: Group, visible: int = VISIBLE) -> int:
    """How deep groups can be drawn open so that there are at most `visible` boxes; 0: only the outermost members."""
    count: dict[int, int] = {}
    for group in root.every_group():
        count[group.depth] = count.get(group.depth, 0) + len(group.members)
    depth, total = 0, count.get(0, 0)
    while depth + 1 in count and total + count[depth + 1] <= visible:
        depth += 1
        total += count[depth]
    return depth


def to_svg(graph: Graph, title: str = "") -> str:
    """The drawing of `graph`, with `title` (by default its name) above it."""
    flat, names = opened(graph)
    root = scope_tree(flat, inlined(flat))
    edges, depth = edges_within(flat, root), depth_shown(root)
    return Drawing(flat, names).document(_layout(root, edges, depth), title or heading(graph))


def heading(graph: Graph) -> str:
    """The name and the size of a graph."""
    return f"{graph.name}: {len(graph)} nodes"


def _layout(group: Group, edges: Mapping[Group, Collection[tuple[int, int]]], depth: int) -> Layout:
    opened = {key_of(g): _layout(g, edges, depth) for g in group.groups() if g.depth <= depth}
    return Layout(group, edges[group], opened)


class Drawing:
    """SVG of the parts of one graph, whose nodes have these names."""

    def __init__(self, graph: Graph, names: dict[int, str]):
        self.graph = graph
        self.names = names
        self._outputs = set(graph.outputs)

    def document(self, layout: Layout, title: str) -> str:
        """A standalone SVG document."""
        heading = html.escape(title)
        families = self._families(layout)
        total = max(layout.width + 2 * MARGIN, MARGIN * 2 + 8 * len(heading), _legend_width(families))
        height = 64 + layout.height + GAP_Y
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total:.0f} {height:.0f}" role="img" '
            f'aria-label="{heading}" font-family="ui-sans-serif, system-ui, sans-serif" font-size="11" '
            f'style="max-width:{total:.0f}px; width:100%; height:auto">\n'
            f'<rect width="100%" height="100%" fill="white"/>\n'
            f'<text x="{MARGIN}" y="24" font-size="14" font-weight="600">{heading}</text>\n'
            f"{_legend(families)}\n" + "\n".join(self.parts(layout, MARGIN, 64.0)) + "\n</svg>\n"
        )

    def parts(self, layout: Layout, left: float, top: float) -> list[str]:
        """The elements of a layout that is drawn at (left, top)."""
        at = {key: (x + left, y + top) for key, (x, y) in layout.places.items()}
        back = {(a, b) for a, b in layout.edges if at[a][1] >= at[b][1]}
        frames: list[str] = []
        boxes: list[str] = []
        for member in layout.group.members:
            key = key_of(member)
            if isinstance(member, int):
                boxes.append(_box(self.graph, self.names, self.graph.nodes[member], at[key], member in self._outputs))
            elif key in layout.inner:
                frames.append(self._frame(member, at[key], layout.sizes[key]))
                boxes += self.parts(layout.inner[key], at[key][0] + PAD, at[key][1] + PAD + TITLE)
            else:
                boxes.append(self._closed(member, at[key]))
        edges = [_edge(a, b, at, layout.sizes, dashed=(a, b) in back) for a, b in layout.edges]
        return [*frames, *edges, *boxes]

    def _frame(self, group: Group, at: tuple[float, float], size: tuple[float, float]) -> str:
        (x, y), (width, height) = at, size
        fill, stroke, _ = COLORS["module"]
        return (
            f'<rect x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{height:.0f}" rx="8" fill="{fill}" '
            f'fill-opacity="0.6" stroke="{stroke}"><title>{html.escape(group.path)}</title></rect>'
            f'<text x="{x + PAD:.0f}" y="{y + PAD + 2:.0f}" fill="{stroke}" font-weight="600">'
            f"{html.escape(group.name)}</text>"
        )

    def _closed(self, group: Group, at: tuple[float, float]) -> str:
        x, y = at
        fill, stroke, _ = COLORS["module"]
        count = sum(1 for _ in group.ids())
        tip = html.escape(f"{group.path}: {count} operations")
        return (
            f'<g data-group="{html.escape(group.path)}"><title>{tip}</title><rect x="{x:.0f}" y="{y:.0f}" '
            f'width="{WIDTH}" height="{HEIGHT}" rx="5" fill="{fill}" '
            f'stroke="{stroke}" stroke-dasharray="4 2"/>' + _lines(x, y, group.name, f"{count} operations") + "</g>"
        )

    def _families(self, layout: Layout) -> set[str]:
        found = {"module" if isinstance(m, Group) else family(self.graph.nodes[m]) for m in layout.group.members}
        for inside in layout.inner.values():
            found |= self._families(inside)
        return found


def _legend_entries(families: Collection[str]) -> list[tuple[str, str, str]]:
    return [color for name, color in COLORS.items() if name in families]


def _legend_width(families: Collection[str]) -> float:
    return 2 * MARGIN + sum(30 + LETTER * len(label) for _, _, label in _legend_entries(families))


def _legend(families: Collection[str]) -> str:
    parts, x = [], float(MARGIN)
    for fill, stroke, label in _legend_entries(families):
        parts.append(f'<rect x="{x:.0f}" y="34" width="10" height="10" rx="2" fill="{fill}" stroke="{stroke}"/>')
        parts.append(f'<text x="{x + 14:.0f}" y="43" fill="#444">{label}</text>')
        x += 30 + LETTER * len(label)
    return "".join(parts)


def _edge(source: int, target: int, at: Mapping[int, tuple[float, float]], sizes: Sizes, dashed: bool) -> str:
    x0, y0 = (
        at[source][0] + _width(sizes, source) / 2,
        at[source][1] + (sizes[source][1] if source >= 0 else HEIGHT / 2),
    )
    x1, y1 = at[target][0] + _width(sizes, target) / 2, at[target][1] + (0 if target >= 0 else HEIGHT / 2)
    bend = max(14.0, (y1 - y0) / 2)
    style = ' stroke-dasharray="3 3"' if dashed else ""
    return (
        f'<path d="M{x0:.0f} {y0:.0f}C{x0:.0f} {y0 + bend:.0f} {x1:.0f} {y1 - bend:.0f} {x1:.0f} {y1:.0f}" '
        f'fill="none" stroke="#9aa3ad" stroke-width="1"{style}/>'
    )


def _box(graph: Graph, names: dict[int, str], node: Node, at: tuple[float, float], is_output: bool) -> str:
    fill, stroke, _ = COLORS[family(node)]
    x, y = at
    what = names[node.id] if node.op is INPUT else node.op.name
    return (
        f'<g><title>{html.escape(tip(graph, names, node))}</title><rect x="{x:.0f}" y="{y:.0f}" width="{WIDTH}" '
        f'height="{HEIGHT}" rx="5" fill="{fill}" stroke="{stroke}" stroke-width="{2.5 if is_output else 1}"/>'
        + _lines(x, y, what, detail(graph, node))
        + "</g>"
    )


def _lines(x: float, y: float, what: str, more: str) -> str:
    """The two lines of text in a box."""
    return (
        f'<text x="{x + WIDTH / 2:.0f}" y="{y + 17:.0f}" text-anchor="middle" font-weight="600">'
        f"{html.escape(_short(what, 20))}</text>"
        f'<text x="{x + WIDTH / 2:.0f}" y="{y + 32:.0f}" text-anchor="middle" fill="#555" font-size="10">'
        f"{html.escape(_short(more, 26))}</text>"
    )


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


def _short(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
