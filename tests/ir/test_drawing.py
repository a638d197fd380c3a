"""The layout of drawings: boxes keep apart, edges run downwards, nothing is lost."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

import eager as torch
import graphc
from eager import nn
from graphc.ir.draw import GAP_X, HEIGHT, WIDTH, _apart, layers_of
from graphc.ir.graph import Graph

SVG = "{http://www.w3.org/2000/svg}"


def gradient_graph() -> Graph:
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
    x, y = torch.zeros(5, 4), torch.zeros(5, dtype=torch.int64)
    return graphc.gradients(graphc.trace(lambda x, y: nn.functional.cross_entropy(model(x), y), x, y))


def boxes(svg: str) -> list[tuple[float, float]]:
    groups = ElementTree.fromstring(svg).iter(f"{SVG}g")
    rects = [group.find(f"{SVG}rect") for group in groups]
    return [(float(r.get("x", "")), float(r.get("y", ""))) for r in rects if r is not None]


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
