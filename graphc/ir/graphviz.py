"""The layout of a drawing by Graphviz's `dot`, where it is installed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from graphc.ir.graph import Graph
from graphc.ir.placement import PAD, TITLE, Measure, Path, Placement, Rect, frame_width
from graphc.ir.scopes import Group, owners

PATIENCE = 10.0  # seconds
_POINTS = 72.0  # in an inch


def by_dot(graph: Graph, group: Group, depth: int, size: Measure) -> Placement | None:
    """Where the members of `group` are drawn, those of groups down to `depth` inside their frames. None if there is no
    `dot`, or it takes too long, or fails."""
    program = shutil.which("dot")
    if program is None:
        return None
    drawn = _drawn(group, depth)
    names = {member: f"b{k}" for k, member in enumerate(drawn)}
    lines = ["digraph {", 'nodesep=0.25; ranksep=0.5; node [shape=box fixedsize=true label=""]; edge [dir=none];']
    lines += _clusters(group, depth, names, size)
    lines += [f"{names[a]} -> {names[b]};" for a, b in _edges(graph, group, drawn)]
    try:
        made = subprocess.run(
            [program, "-Tjson0"], input="\n".join([*lines, "}"]), capture_output=True, text=True, check=True,
            timeout=PATIENCE,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return _placement(json.loads(made.stdout), {name: member for member, name in names.items()}, size)


def _drawn(group: Group, depth: int) -> list[int | Group]:
    """What is a box, or a frame."""
    found: list[int | Group] = []
    for member in group.members:
        found.append(member)
        if isinstance(member, Group) and member.depth <= depth:
            found += _drawn(member, depth)
    return found


def _clusters(group: Group, depth: int, names: Mapping[int | Group, str], size: Measure) -> Iterator[str]:
    for member in group.members:
        if isinstance(member, Group) and member.depth <= depth:
            # the place of the title: a label as large as it is, of which nothing is drawn
            yield f"subgraph cluster_{names[member]} {{ margin={PAD};"
            yield f'label=<<TABLE BORDER="0" FIXEDSIZE="TRUE" WIDTH="{frame_width(member):.0f}" HEIGHT="{TITLE}">'
            yield "<TR><TD></TD></TR></TABLE>>;"
            yield from _clusters(member, depth, names, size)
            yield "}"
        else:
            width, height = size(member)
            yield f"{names[member]} [width={width / _POINTS:.4f} height={height / _POINTS:.4f}];"


def _edges(graph: Graph, group: Group, drawn: Collection[int | Group]) -> dict[tuple[Any, Any], None]:
    """Pairs of boxes, which stand for what is inside them."""
    open_groups = {member for member in drawn if isinstance(member, Group)} - _closed(drawn)
    chains = owners(group)

    def box(id: int) -> int | Group:
        return next((g for g in chains[id][1:] if g not in open_groups), id)

    found = {(box(operand), box(id)): None for id in chains for operand in graph.nodes[id].inputs if operand in chains}
    return {pair: None for pair in found if pair[0] != pair[1]}


def _closed(drawn: Collection[int | Group]) -> set[Group]:
    shown = {*drawn}
    return {m for m in drawn if isinstance(m, Group) and not any(inner in shown for inner in m.members)}


def _placement(made: Any, members: Mapping[str, int | Group], size: Measure) -> Placement:
    _, _, width, height = map(float, made["bb"].split(","))
    boxes: dict[int | Group, Rect] = {}
    frames: dict[Group, Rect] = {}
    for found in made.get("objects", ()):
        member = members[found["name"].removeprefix("cluster_")]
        if "bb" in found:
            x0, y0, x1, y1 = map(float, found["bb"].split(","))
            assert isinstance(member, Group)
            frames[member] = Rect(x0, height - y1, x1 - x0, y1 - y0)
        else:
            x, y = map(float, found["pos"].split(","))
            w, h = size(member)
            boxes[member] = Rect(x - w / 2, height - y - h / 2, w, h)
    paths = [Path(_spline(edge["pos"], height)) for edge in made.get("edges", ())]
    return Placement(boxes, frames, paths, width, height)


def _spline(points: str, height: float) -> str:
    """Graphviz's list of points as an SVG path: a start, and three for each curve; several splines have ";" between."""
    found: list[str] = []
    for spline in points.split(";"):
        pairs = [(float(x), height - float(y)) for x, y in re.findall(r"(-?[\d.e+-]+),(-?[\d.e+-]+)", spline)]
        first, *others = (f"{x:.1f} {y:.1f}" for x, y in pairs)
        found.append(f"M{first}C{' '.join(others)}")
    return "".join(found)
