"""The layout of a drawing without Graphviz: layers from inputs (top) to results (bottom).

It is Sugiyama's: layers by longest path, edges cut at the layers that they cross, order within a layer by the
barycenter of neighbours in a few sweeps, places as near to the neighbours as the order allows. A module is laid out by
itself. An edge bends between layers only, and passes the boxes of a layer in a straight line of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import networkx as nx
import numpy as np

from graphc.ir.placement import PAD, TITLE, Measure, Path, Placement, Rect, Sizes, frame_width, key_of
from graphc.ir.scopes import Group

GAP_X, GAP_Y = 18, 40  # between boxes of a layer, and between layers
BEND = 2  # the width of a place where an edge passes a layer
AROUND = 8  # from an edge that runs upwards, beside all boxes, to the next one
SWEEPS = 6


def layered(graph_edges: Mapping[Group, Collection[tuple[int, int]]], group: Group, depth: int, size: Measure
            ) -> Placement:  # fmt: skip
    """Where the members of `group` are drawn, those of groups down to `depth` inside their frames."""
    return _layout(graph_edges, group, depth, size).placement(0.0, 0.0)


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


def _layout(edges: Mapping[Group, Collection[tuple[int, int]]], group: Group, depth: int, size: Measure) -> Layout:
    opened = {key_of(g): _layout(edges, g, depth, size) for g in group.groups() if g.depth <= depth}
    return Layout(group, edges[group], opened, size)


class Layout:
    """Where the members of a group are drawn, by keys: bends have negative ones.

    places   key -> (left, top) within the drawing
    bottoms  key -> where the layer ends that it is in
    edges    pairs of keys, between boxes and bends; `upward`: those between boxes that run upwards
    inner    key -> the layout of a group that is drawn open
    """

    def __init__(self, group: Group, edges: Collection[tuple[int, int]], inner: Mapping[int, Layout], size: Measure):
        self.group = group
        self.inner = dict(inner)
        members = {key_of(member): member for member in group.members}
        drawn = nx.DiGraph()
        drawn.add_nodes_from(members)
        order = {key: k for k, key in enumerate(drawn)}
        # modules as a whole may need each other: what runs backwards has no part in the layers
        drawn.add_edges_from((a, b) for a, b in edges if order[a] < order[b])
        self.sizes = {key: self._size(key, member, size) for key, member in members.items()}
        cut, layers = _with_bends(drawn, layers_of(drawn))
        x = _placed(cut, layers, self.sizes)
        self.edges = [*cut.edges]
        self.upward = [(a, b) for a, b in edges if order[a] > order[b]]
        self.places: dict[int, tuple[float, float]] = {}
        self.bottoms: dict[int, float] = {}
        top = 0.0
        for layer in layers:
            bottom = top + max((self.sizes[key][1] for key in layer if key >= 0), default=0.0)
            self.places.update((key, (x[key], top)) for key in layer)
            self.bottoms.update((key, bottom) for key in layer)
            top = bottom + GAP_Y
        self.right = max((left + _width(self.sizes, key) for key, left in x.items()), default=0.0)
        self.width = self.right + AROUND * (len(self.upward) + 1) * bool(self.upward)
        self.height = max(top - GAP_Y, 0.0)

    def _size(self, key: int, member: int | Group, size: Measure) -> tuple[float, float]:
        inside = self.inner.get(key)
        if inside is None or not isinstance(member, Group):
            return size(member)
        return max(inside.width, frame_width(member)) + 2 * PAD, inside.height + 2 * PAD + TITLE

    def placement(self, left: float, top: float) -> Placement:
        """The same with `left` and `top` as the corner, and what is inside open groups."""
        boxes: dict[int | Group, Rect] = {}
        frames: dict[Group, Rect] = {}
        paths = [self._path(a, b, left, top) for a, b in self.edges]
        paths += [self._around(a, b, left, top, k) for k, (a, b) in enumerate(self.upward, 1)]
        for member in self.group.members:
            key = key_of(member)
            x, y = self.places[key]
            rect = Rect(x + left, y + top, *self.sizes[key])
            if isinstance(member, Group) and key in self.inner:
                inside = self.inner[key].placement(rect.x + PAD, rect.y + PAD + TITLE)
                frames |= {member: rect, **inside.frames}
                boxes |= inside.boxes
                paths += inside.paths
            else:
                boxes[member] = rect
        return Placement(boxes, frames, paths, self.width, self.height)

    def _ends(self, source: int, target: int, left: float, top: float) -> tuple[float, float, float, float]:
        """(x, y) below the source and above the target."""
        (x0, y0), (x1, y1) = self.places[source], self.places[target]
        y0 += self.sizes[source][1] if source >= 0 else 0
        return (x0 + _width(self.sizes, source) / 2 + left, y0 + top, x1 + _width(self.sizes, target) / 2 + left,
                y1 + top)  # fmt: skip

    def _path(self, source: int, target: int, left: float, top: float) -> Path:
        x0, y0, x1, y1 = self._ends(source, target, left, top)
        bottom = self.bottoms[source] + top
        bend = (y1 - bottom) / 2
        curve = f"C{x0:.0f} {bottom + bend:.0f} {x1:.0f} {y1 - bend:.0f} {x1:.0f} {y1:.0f}"
        return Path(f"M{x0:.0f} {y0:.0f}V{bottom:.0f}{curve}", ends=target >= 0)

    def _around(self, source: int, target: int, left: float, top: float, number: int) -> Path:
        """An edge that runs upwards: through the gap below its layer, and beside all boxes."""
        x0, y0, x1, y1 = self._ends(source, target, left, top)
        beside = left + self.right + AROUND * number
        return Path(f"M{x0:.0f} {y0:.0f}V{self.bottoms[source] + top + 10:.0f}H{beside:.0f}V{y1 - 10:.0f}H{x1:.0f}"
                    f"V{y1:.0f}", upward=True)  # fmt: skip
