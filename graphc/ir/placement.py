"""Where the parts of a drawing are: what the two ways to lay it out, layers.py and graphviz.py, have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from graphc.ir.graph import Graph
from graphc.ir.lettering import text_width
from graphc.ir.scopes import Group, owners

PAD, TITLE = 14, 20  # of the box of a module: around what is inside, and above it
VISIBLE = 150  # boxes in a drawing; where there would be more, inner modules are closed

Sizes: TypeAlias = Mapping[int, tuple[float, float]]
Measure: TypeAlias = Callable[["int | Group"], tuple[float, float]]  # the size of a box


class Rect(NamedTuple):
    """The left upper corner, and the size."""

    x: float
    y: float
    width: float
    height: float


class Path(NamedTuple):
    """An edge as SVG has it, or a part of one. upward: of modules that need each other, the one that runs against the
    others; ends: at its target, not on the way."""

    d: str
    upward: bool = False
    ends: bool = True


class Placement(NamedTuple):
    """A drawing: nodes (ids) and closed groups as boxes, open groups as frames around them, edges."""

    boxes: Mapping[int | Group, Rect]
    frames: Mapping[Group, Rect]
    paths: Sequence[Path]
    width: float
    height: float


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


def depth_shown(root: Group) -> int:
    """How deep groups can be drawn open so that there are at most `VISIBLE` boxes; 0: only the outermost members."""
    count: dict[int, int] = {}
    for group in root.every_group():
        count[group.depth] = count.get(group.depth, 0) + len(group.members)
    depth, total = 0, count.get(0, 0)
    while depth + 1 in count and total + count[depth + 1] <= VISIBLE:
        depth += 1
        total += count[depth]
    return depth


def frame_width(group: Group) -> float:
    """What the title of an open group takes."""
    return text_width(group.name, 11, bold=True)
