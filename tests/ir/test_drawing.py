"""The layout of drawings: boxes keep apart, edges run downwards, nothing is lost."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest

import eager as torch
import graphc
from eager import nn
from graphc.ir import Builder, Ref
from graphc.ir.draw import HEIGHT, WIDTH, inlined
from graphc.ir.graph import Graph
from graphc.ir.layers import GAP_X, _apart, layers_of
from graphc.ir.placement import VISIBLE, edges_within, key_of
from graphc.ir.scopes import owners, scope_tree
from graphc.ops.aval import Aval
from graphc.ops.dtypes import FLOAT32
from tests.ir import graphs
from tests.work import lines_run

LINES = 20_000  # of Python that may run for each node that is drawn: 10,000 nodes must not be compared in pairs

SVG = "{http://www.w3.org/2000/svg}"


def gradient_graph() -> Graph:
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
    x, y = torch.zeros(5, 4), torch.zeros(5, dtype=torch.int64)
    return graphc.gradients(graphc.trace(lambda x, y: nn.functional.cross_entropy(model(x), y), x, y))


def boxes(svg: str) -> list[tuple[float, float]]:
    return [(x, y) for x, y, _, _ in rects(svg)]


def test_boxes_do_not_overlap_and_lie_inside():
    svg = gradient_graph().to_svg()
    placed = boxes(svg)
    assert len(placed) > 30
    for k, (x, y) in enumerate(placed):
        assert not [1 for x2, y2 in placed[:k] if abs(x - x2) < WIDTH and abs(y - y2) < HEIGHT]
    size = re.search(r'viewBox="0 0 (\d+) (\d+)"', svg)
    assert size is not None
    assert max(x for x, _ in placed) + WIDTH <= float(size[1])
    assert max(y for _, y in placed) + HEIGHT <= float(size[2])
    assert min(min(p) for p in placed) >= 0


# --- nothing is crossed, nothing is cut off


def points(d: str) -> list[tuple[float, float]]:
    """Points on a path, close to each other."""
    found: list[tuple[float, float]] = []
    for command, numbers in re.findall(r"([MVHC])([^MVHC]*)", d):
        values = [float(n) for n in numbers.split()]
        x, y = found[-1] if found else (0.0, 0.0)
        if command == "M":
            found.append((values[0], values[1]))
            continue
        curves = {"V": [x, y, x, values[0], x, values[0]], "H": [x, y, values[0], y, values[0], y]}.get(command, values)
        for k in range(0, len(curves), 6):
            (x, y), c = found[-1], curves[k : k + 6]
            for t in np.linspace(0, 1, 41)[1:]:
                a, b, e, f = (1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3
                found.append((a * x + b * c[0] + e * c[2] + f * c[4], a * y + b * c[1] + e * c[3] + f * c[5]))
    return found


def rects(svg: str) -> list[tuple[float, ...]]:
    """(x, y, width, height) of each box."""
    found = [g.find(f"{SVG}rect") for g in ElementTree.fromstring(svg).iter(f"{SVG}g") if not g.get("transform")]
    return [tuple(float(r.get(k, "")) for k in ("x", "y", "width", "height")) for r in found if r is not None]


def crossings(svg: str) -> list[str]:
    """Edges that run through a box: by more than what a line that ends at a border may be off."""
    drawing = next(g for g in ElementTree.fromstring(svg).iter(f"{SVG}g") if g.get("transform"))
    paths = [path.get("d", "") for path in drawing.findall(f"{SVG}path")]
    assert paths
    off = 2.0
    return [
        d for d in paths for x, y in points(d) for left, top, width, height in rects(svg)
        if left + off < x < left + width - off and top + off < y < top + height - off
    ]  # fmt: skip


DRAWN: dict[str, Callable[[], Graph]] = {
    "gradients": gradient_graph,
    "modules": lambda: graphs.deep(2, 6),
    "loops": graphs.structured,
    "an edge beside a tall module": lambda: beside_a_module(),
}


def beside_a_module() -> Graph:
    b = Builder()
    x = y = b.input("x", Aval((2,), FLOAT32))
    b.scope = "tall"
    for _ in range(8):
        y = b.language.tanh(y)
    b.scope = ""
    for _ in range(3):
        x = b.language.sin(x)
    return b.graph("f", Ref(b.language.add(x, y).id))


@pytest.mark.parametrize("layout", ["auto", "layers"])
@pytest.mark.parametrize("name", DRAWN)
def test_no_edge_runs_through_a_box_and_all_is_inside(name: str, layout: str):
    svg = DRAWN[name]().to_svg(layout=layout)
    assert not crossings(svg)
    root = ElementTree.fromstring(svg)
    drawing = next(g for g in root.iter(f"{SVG}g") if g.get("transform"))
    left, top = map(float, re.findall(r"[\d.]+", drawing.get("transform", "")))
    width, height = map(float, root.get("viewBox", "").split()[2:])
    frames = [tuple(float(r.get(k, "")) for k in ("x", "y", "width", "height")) for r in drawing.findall(f"{SVG}rect")]
    for x, y, w, h in [*rects(svg), *frames]:
        assert x >= 0 and y >= 0 and x + w + left <= width and y + h + top <= height
    for path in drawing.findall(f"{SVG}path"):
        assert all(-left <= x <= width - left and -top <= y <= height - top for x, y in points(path.get("d", "")))


def test_an_edge_through_a_box_is_found():
    svg = graphs.deep(2, 6).to_svg(layout="layers")
    x, y, w, h = rects(svg)[3]
    line = f'<path d="M{x - 9} {y + h / 2}H{x + w + 9}" />'
    assert crossings(svg.replace("<path d=", line + "<path d=", 2).replace("<defs>" + line, "<defs>"))


def cut_off(svg: str) -> list[str]:
    """Labels that are wider than their boxes, in DejaVu Sans."""
    ft2font = pytest.importorskip("matplotlib.ft2font")
    import matplotlib

    def width(text: str, size: float, bold: bool) -> float:
        file = f"{matplotlib.get_data_path()}/fonts/ttf/DejaVuSans{'-Bold' if bold else ''}.ttf"
        font = ft2font.FT2Font(file)
        font.set_size(100, 72)
        font.set_text(text, 0.0, flags=ft2font.LoadFlags.NO_HINTING)
        return font.get_width_height()[0] / 64 / 100 * size

    found: list[str] = []
    for group in ElementTree.fromstring(svg).iter(f"{SVG}g"):
        rect = group.find(f"{SVG}rect")
        if rect is not None:
            for text in group.findall(f"{SVG}text"):
                size, bold = float(text.get("font-size", "11")), bool(text.get("font-weight"))
                if width(text.text or "", size, bold) > float(rect.get("width", "")):
                    found.append(text.text or "")
    return found


def test_labels_fit_their_boxes():
    b = Builder()
    longest = b.input("W_" + "m" * 60, Aval((1024, 1024, 1024), FLOAT32))
    b.input("a_name_of_28_letters_is_shown", Aval((2,), FLOAT32))
    svg = b.graph("f", Ref(b.language.square(longest).id)).to_svg()
    assert not cut_off(svg) and ">a_name_of_28_letters_is_shown<" in svg and "mm…<" in svg
    assert cut_off(svg.replace('width="2', 'width="1'))  # a box that is too narrow is found


def test_operands_stand_above_and_sources_close_to_their_users():
    graph = gradient_graph().nx
    layers = layers_of(graph)
    row = {id: r for r, layer in enumerate(layers) for id in layer}
    assert sorted(row) == sorted(graph)
    assert all(row[a] < row[b] for a, b in graph.edges)
    sources = [id for id in graph if not graph.pred[id] and graph.succ[id]]
    assert all(min(row[user] for user in graph.succ[id]) == row[id] + 1 for id in sources)


@pytest.mark.parametrize("fn", [lambda x: x, lambda x: torch.ones(3), lambda x: x * x])
def test_smallest_graphs(fn):
    ElementTree.fromstring(graphc.trace(fn, torch.zeros(3)).to_svg())


def test_places_are_the_closest_that_keep_apart():
    step = WIDTH + GAP_X
    assert _apart([0.0, 0.0], [step, step]) == [-step / 2, step / 2]
    assert _apart([0.0, 1000.0], [step, step]) == [0.0, 1000.0]
    assert _apart([], []) == []


# --- modules, and large graphs


def flat() -> Graph:
    b = Builder()
    x = b.input("x", Aval((3,), FLOAT32))
    for _ in range(10_000):
        x = b.language.tanh(x)
    return b.graph("flat", Ref(x.id))


def closed(svg: str) -> list[str]:
    groups = ElementTree.fromstring(svg).iter(f"{SVG}g")
    return [name for group in groups if (name := group.get("data-group")) is not None]


def test_modules_of_a_small_graph_are_boxes_around_their_operations():
    graph = graphs.deep(2, 6)
    svg = graph.to_svg()
    root = ElementTree.fromstring(svg)
    frames = [r for r in root.iter(f"{SVG}rect") if r.find(f"{SVG}title") is not None]
    paths = {"encoder", "encoder.0", "encoder.1"}
    paths |= {f"encoder.{k}.{m}" for k in (0, 1) for m in ("linear1", "linear2", "norm")}
    assert {str(r.findtext(f"{SVG}title")) for r in frames} == paths
    assert not closed(svg)
    assert len(boxes(svg)) == sum(1 for n in graph.nodes.values() if n.op.name != "constant")
    sides = ("x", "y", "width", "height")
    edge = {str(r.findtext(f"{SVG}title")): [float(r.get(side, "")) for side in sides] for r in frames}
    for inner, outer in [("encoder.0", "encoder"), ("encoder.1.norm", "encoder.1")]:
        (x, y, w, h), (x2, y2, w2, h2) = edge[inner], edge[outer]
        assert x2 <= x and y2 <= y and x + w <= x2 + w2 and y + h <= y2 + h2


def test_large_graphs_are_drawn_with_closed_modules_and_stay_readable():
    svg = graphs.deep(12, 40).to_svg()
    assert len(boxes(svg)) <= VISIBLE
    assert set(closed(svg)) == {f"encoder.{k}.{m}" for k in range(12) for m in ("linear1", "linear2", "norm")}


@pytest.mark.parametrize("make", [
    pytest.param(lambda: graphs.deep(12, 900), id="wide", marks=pytest.mark.deep),
    pytest.param(lambda: graphs.deep(3000, 3), id="long", marks=pytest.mark.deep),
    pytest.param(flat, id="flat"),
])  # fmt: skip
def test_huge_graphs_do_not_hang(make: Callable[[], Graph]):
    graph = make()

    def draw() -> None:
        assert len(boxes(graph.to_svg())) <= VISIBLE
        graph.to_dot()
        graph.to_html()

    assert lines_run(draw) < LINES * len(graph.nodes)


def test_modules_that_need_each_other():
    b = Builder()
    x = b.input("x", Aval((2,), FLOAT32))
    for k in range(6):
        b.scope = "ab"[k % 2] + f".{k}"
        x = b.language.tanh(x)
    for most in (1, 2, 100):
        assert sorted(scope_tree(b.graph("f", Ref(x.id)), most=max(most, 2)).ids()) == list(range(7))
    graph = b.graph("f", Ref(x.id))
    svg = graph.to_svg(layout="layers")
    assert svg.count("stroke-dasharray") >= 1 and len(boxes(svg)) == 7
    assert not crossings(svg) and not crossings(graph.to_svg())


def test_every_edge_is_drawn_between_members_of_one_group():
    graph = graphs.deep(3, 6)
    root = scope_tree(graph, inlined(graph))
    chains = owners(root)
    edges = edges_within(graph, root)
    for group, pairs in edges.items():
        keys = {key_of(member) for member in group.members}
        assert all(a in keys and b in keys and a != b for a, b in pairs)
    assert sum(map(len, edges.values())) > 0 and set(chains) == set(root.ids())


def test_dot_has_clusters_and_every_edge():
    graph = graphs.deep(2, 6)
    text = graph.to_dot()
    assert text.count("subgraph") == 9 and 'subgraph "cluster_encoder.0.linear1"' in text
    hidden = inlined(graph)
    edges = {(i, n.id) for n in graph.nodes.values() for i in n.inputs if i not in hidden}
    assert {tuple(map(int, m)) for m in re.findall(r"n(\d+) -> n(\d+);", text)} == edges
    assert text.count("{") == text.count("}")


class Balanced(HTMLParser):
    """Fails for tags that do not match, and for anything from outside."""

    def __init__(self):
        super().__init__()
        self.open: list[str] = []
        self.titles = 0

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            assert name == "xmlns" or (name not in ("src", "href") and "http" not in (value or "")), (name, value)
        self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_page_opens_and_closes_modules_and_needs_nothing_else():
    graph = graphs.deep(2, 6)
    page = graph.to_html("a <title>")
    reader = Balanced()
    reader.feed(re.sub("<meta [^>]*>", "", page))
    assert not reader.open
    groups = set(re.findall(r'<details data-group="([^"]*)"', page))
    assert groups == set(re.findall(r'<g data-group="([^"]*)"', page)) and "encoder.1.norm" in groups
    assert "a &lt;title&gt;" in page and "model.py:12" in page and "f32[4,8]" in page


def test_what_nodes_run_is_laid_open():
    graph = graphs.structured()
    flat, names = graph.opened()
    scopes = {node.scope for node in flat.nodes.values()}
    assert {"a.b.scan v3", "switch v5.branch 0", "switch v5.branch 1"} <= scopes
    inside = [names[id] for id, node in flat.nodes.items() if node.scope == "a.b.scan v3"]
    assert inside == ["c", "x", "v2", "v3"]  # as in the text
    assert [id for id in flat.nodes if flat.nodes[id].op.name == "scan"] == [3]
    seen: set[int] = set()
    for id, node in flat.nodes.items():  # from the operands of a node to what it runs, and from there to the node
        assert seen.issuperset(node.inputs)
        seen.add(id)
    reached, stack = set[int](), list(flat.outputs)
    while stack:
        id = stack.pop()
        reached.add(id)
        stack += flat.nodes[id].inputs
    assert reached == set(flat.nodes)


def test_drawings_have_what_nodes_run():
    graph = graphs.structured()
    page = graph.to_html()
    groups = set(re.findall(r'<details data-group="([^"]*)"', page))
    assert groups == {"a", "a.b", "a.b.scan v3", "switch v5", "switch v5.branch 0", "switch v5.branch 1"}
    assert page.count("<svg") == 7
    svg = graph.to_svg()
    ElementTree.fromstring(svg)
    assert "tanh" in svg and "required" in svg and ">scan v3</text>" in svg
    assert 'subgraph "cluster_switch v5.branch 1"' in graph.to_dot()


def test_large_bodies_are_drawn_closed():
    def step(h, x):
        for _ in range(400):
            h = torch.tanh(h + x)
        return h, h

    graph = graphc.trace(lambda h, xs: graphc.scan(step, h, xs), torch.zeros(3), torch.zeros(5, 3))
    assert len(boxes(graph.to_svg())) <= VISIBLE
    assert graph.to_dot().count('label="tanh') == 400


def test_texts_of_hostile_names_are_escaped():
    b = Builder()
    b.where, b.scope = '<script>alert("1")</script>', 'a"><b>.c'
    x = b.input('</title><script x="">', Aval((2,), FLOAT32))
    graph = b.graph("f", Ref(b.language.tanh(x).id))
    ElementTree.fromstring(graph.to_svg())
    page = graph.to_html()
    assert page.count("<script") == 1 and '"><b>' not in page
    assert '\\"><b>' in graph.to_dot() or '\\"&gt;' in graph.to_dot()
