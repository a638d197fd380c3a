"""Places in packs: where many slices of one vector begin is told to the program when it runs.

XLA compiles an operation once for all its occurrences, if they are the same. Slices that begin elsewhere are not: each
takes as long to compile as an operation of its own, 20 times as long as the layer that reads it.
"""

from __future__ import annotations

from collections import defaultdict

from graphc.ir.graph import INPUT, Graph
from graphc.ops import OPS

FEW = 8  # slices of a vector that are compiled each by itself

_SLICE = OPS["slice"]


def in_packs(graph: Graph) -> dict[int, int]:
    """slice -> where it begins, of the slices of an input that many are taken of."""
    found: dict[int, dict[int, int]] = defaultdict(dict)
    for id, node in graph.nodes.items():
        if node.op is _SLICE and node.params["step"] == (1,):
            found[node.inputs[0]][id] = node.params["start"][0]
    many = (slices for whole, slices in found.items() if graph.nodes[whole].op is INPUT and len(slices) >= FEW)
    return {id: start for slices in many for id, start in slices.items()}
