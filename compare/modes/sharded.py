"""The modes that run the graph on a mesh: on its devices by XLA, or part by part on NumPy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import numpy as np

from compare.cases.case import Case
from compare.cases.outcome import Outcome
from compare.judging.isolate import judge_alone
from compare.judging.numeric import evaluate
from compare.judging.tolerance import Verdict
from compare.locating.culprit import Culprit, blame, first_line
from compare.modes.graphs import OnGraph
from graphc.ir import Graph
from graphc.ir.structure import every_node
from graphc.lowering import lower
from graphc.lowering.devices import count
from graphc.ops import OPS
from graphc.sharding import by_parts
from graphc.sharding.layout import Layout, layout_of
from graphc.sharding.mesh import Mesh, mesh_of
from graphc.sharding.propagation import propagated
from graphc.sharding.sharding import Sharding

SQUARE = Mesh((2, 2), ("data", "model"))
SIZES = (2, 1)  # of the axes of a mesh that a graph names, the first that divides what is split over them
_SHARD = OPS["shard"]
NO_DEVICES = "a mesh of {wanted} devices, and JAX has {found}"


def mesh_for(graph: Graph) -> Mesh:
    """A small mesh with the axes that `graph` names: two devices along each, or one where that does not divide."""
    split: dict[Any, list[int]] = {}
    for node in every_node(graph):
        if node.op is _SHARD:
            for size, axes in zip(node.aval.shape, node.params["spec"], strict=False):
                for k, axis in enumerate(axes or ()):
                    split.setdefault(axis, []).append(size // SIZES[0] ** k)
    unnamed = {axis for axis in split if isinstance(axis, int)}
    if set(split) <= {*SQUARE.names, 0, 1} and not any(size % 2 for sizes in split.values() for size in sizes):
        return SQUARE
    names = [axis for axis in split if isinstance(axis, str)]
    names += [f"axis {k}" for k in range(len(names), max(unnamed, default=-1) + 1)]
    return Mesh(
        tuple(next(n for n in SIZES if all(size % n == 0 for size in split.get(a, ()))) for a in names), tuple(names)
    )


def spread(graph: Graph, mesh: Mesh) -> Layout:
    """A layout for any graph: each input is split along the first of its dims that divide, one for each mesh axis."""
    found: list[Sharding] = []
    for aval in graph.input_avals():
        dims: list[tuple[str, ...]] = [()] * len(aval.shape)
        for axis, n in mesh.sizes.items():
            free = [d for d, size in enumerate(aval.shape) if not dims[d] and size and size % n == 0]
            if free:
                dims[free[0]] = (axis,)
        found.append(Sharding(tuple(dims)))
    return Layout(mesh, tuple(found), (None,) * len(graph.outputs))


class _OnMesh(OnGraph):
    """mesh: None for a small one with the axes that the program names. shardings: of inputs, by name, as `graphc.lower`
    takes them; None splits each along its first dims."""

    derived = True

    def __init__(self, mesh: Any = None, shardings: Mapping[str, Any] | None = None):
        self._mesh, self._shardings = None if mesh is None else mesh_of(mesh), shardings

    def layout(self, graph: Graph) -> Layout:
        """Where the inputs of a case's graph lie."""
        mesh = mesh_for(graph) if self._mesh is None else self._mesh
        return spread(graph, mesh) if self._shardings is None else layout_of(graph, mesh, self._shardings)

    def locate(self, case: Case, label: str, outcome: Outcome) -> Culprit | None:
        return in_sharding(case, self.layout(case.joint.graph)) or super().locate(case, label, outcome)


@final
class Sharded(_OnMesh):
    """The graph as one XLA program on the devices of a mesh."""

    name = "sharded"

    def run(self, case: Case) -> Outcome:
        if case.program is not None:
            wanted = (self._mesh or mesh_for(case.program.graph)).size
            if (found := count()) < wanted:
                return Outcome(silent=NO_DEVICES.format(wanted=wanted, found=found))
        return super().run(case)

    def outputs(self, case: Case) -> list[np.ndarray]:
        graph = case.joint.graph
        program = lower(graph, mesh=self.layout(graph))
        return [np.asarray(a) for a in program.call(*case.operands)]


@final
class ByParts(_OnMesh):
    """The graph on NumPy, each node from the parts of its operands that the devices of a mesh would have."""

    name, foreign = "parts", False

    def outputs(self, case: Case) -> list[np.ndarray]:
        graph = case.joint.graph
        values = by_parts.evaluate(propagated(graph, self.layout(graph)), case.operands)
        return [np.asarray(values[id]) for id in graph.outputs]


def in_sharding(case: Case, layout: Layout) -> Culprit | None:
    """The first node whose parts, computed one by one, do not make what it computes of whole operands."""
    graph = case.joint.graph
    values = evaluate(graph, case.operands)
    found = propagated(graph, layout)
    for node in graph.operations():
        operands = [values[i] for i in node.inputs]
        if node.op.several or node.op.structured:
            continue
        try:
            made = by_parts.of_node(found, node, operands)
        except Exception as error:
            return blame("sharding", node, f"raises {type(error).__name__}: {first_line(error)}", values)
        judgement = judge_alone(made, values[node.id], node, operands)
        if judgement.verdict is Verdict.BUG:
            split = ", ".join(f"{w} over {'+'.join(axes)}" for w, axes in found.computed.get(node.id, {}).items())
            return blame("sharding", node, f"split along {split}: {judgement.detail}", values)
    return None
