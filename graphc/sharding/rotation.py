"""Rotations: the end of an array put before its beginning, as `torch.roll` and its gradient are in a graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple, final

from graphc.ir import Graph, Node
from graphc.ops import OPS

_CAT, _SLICE = OPS["cat"], OPS["slice"]


@final
class Rotation(NamedTuple):
    """The elements of `source` moved on by `shift` along `axis`, round the end."""

    source: int
    axis: int
    shift: int

    def rows(self, size: int, devices: int) -> Iterator[int]:
        """How many rows of its part a device sends to another one, in each of the exchanges that this takes.

        A device has `size / devices` rows. Those that it needs lie on one device, or on two next to each other.
        """
        local = size // devices
        far, near = divmod(self.shift, local)
        for distance, rows in ((far, local - near), (far + 1, near)):
            if rows and distance % devices:
                yield rows


def rotations(graph: Graph) -> dict[int, Rotation]:
    """By node, those of a graph."""
    found = {id: _rotation(node, graph.nodes) for id, node in graph.nodes.items() if node.op is _CAT}
    return {id: rotation for id, rotation in found.items() if rotation is not None}


def _rotation(node: Node, nodes: Mapping[int, Node]) -> Rotation | None:
    parts = [nodes[i] for i in node.inputs]
    if len(parts) != 2 or any(p.op is not _SLICE for p in parts) or parts[0].inputs != parts[1].inputs:
        return None
    (source,) = parts[0].inputs
    shape = nodes[source].shape
    axis = node.params["axis"] % len(shape)
    cut = parts[1].params["stop"][axis]
    expected = ((cut, shape[axis]), (0, cut))
    for part, (start, stop) in zip(parts, expected, strict=True):
        box = [*zip(part.params["start"], part.params["stop"], part.params["step"], strict=True)]
        if box != [(start, stop, 1) if d == axis else (0, n, 1) for d, n in enumerate(shape)]:
            return None
    return Rotation(source, axis, shape[axis] - cut)
