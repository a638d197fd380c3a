"""`graphc.plan`: which strategy a training step is predicted to be fastest with, on a cluster, and why."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, Literal, NamedTuple, final

from graphc.ir import Graph
from graphc.sharding.cluster import Cluster
from graphc.sharding.gathering import Held, gathering
from graphc.sharding.layout import Layout
from graphc.sharding.mesh import Mesh
from graphc.sharding.proposing import Proposal, proposed
from graphc.sharding.sharding import Sharding, sharding_of
from graphc.sharding.simulation import Simulation, simulate


@final
class Candidate(NamedTuple):
    """A strategy, on a mesh; what is predicted of it; whether it fits into memory.

    tensor_parallel  the rules by which parameters are split over the mesh axis "model"
    reasons          why, where they were proposed
    """

    name: str
    mesh: Mesh
    simulation: Simulation
    fits: bool
    tensor_parallel: Mapping[str, Any] = {}
    reasons: tuple[str, ...] = ()


@final
class Plan(NamedTuple):
    """Candidates, the best one first: those that fit, by time, then the others, by memory."""

    candidates: tuple[Candidate, ...]
    cluster: Cluster

    @property
    def best(self) -> Candidate:
        return self.candidates[0]

    def __str__(self) -> str:
        lines = [f"{'predicted':30} {'ms/step':>10} {'products':>10} {'memory':>8} {'exchange':>9} {'GiB/device':>11}"]
        for c in self.candidates:
            s = c.simulation
            lines.append(
                f"{c.name + ' on ' + _short(c.mesh):30} {s.seconds * 1e3:10,.1f} {s.products * 1e3:10,.1f} "
                f"{s.moving * 1e3:8,.1f} {s.exchanging * 1e3:9,.1f} {s.memory / 2**30:11,.1f}"
                + ("" if c.fits else "  does not fit")
            )
        return "\n".join([*lines, f"{self.best.name}: {self.why()}", *(f"  {r}" for r in self.best.reasons)])

    def why(self) -> str:
        """Why the first one is first."""
        best, others = self.best, self.candidates[1:]
        if not best.fits:
            return f"nothing fits into {self.cluster.memory / 2**30:,.0f} GiB; this takes least"
        faster = [c for c in others if not c.fits and c.simulation.seconds < best.simulation.seconds]
        rest = [c for c in others if c.fits]
        text = f"the fastest that fits into {self.cluster.memory / 2**30:,.0f} GiB"
        if faster:
            text += f"; {faster[0].name} would be faster and does not fit"
        if rest:
            slower = rest[0].simulation.seconds / best.simulation.seconds
            text += f"; {rest[0].name} on {_short(rest[0].mesh)} takes {slower:.2f} times as long"
        return text


def _short(mesh: Mesh) -> str:
    return " x ".join(f"{n}" for n in mesh.shape)


def plan(
    graph: Graph, cluster: Cluster, batch: Collection[str],
    tensor_parallel: Mapping[str, Any] | Literal["auto"] | None = None,
) -> Plan:  # fmt: skip
    """Simulate a step with data parallelism, ZeRO 3 (FSDP), and both with tensor parallelism, on every mesh.

    batch            names of the inputs that are split along their first dim; all others are parameters and state
    tensor_parallel  {pattern of names: placements or spec} over the mesh axes ("data", "model"); "auto" proposes them,
                     for each mesh, by a search over the matrices that are multiplied, and says why. It simulates the
                     step some ten times for each kind of layer
    """
    found: list[Candidate] = []
    for model in [n for n in range(1, cluster.devices + 1) if cluster.devices % n == 0]:
        mesh = Mesh((cluster.devices // model, model), ("data", "model"))
        proposal = Proposal({}, ())
        if model > 1:
            if tensor_parallel == "auto":
                proposal = proposed(graph, batch, partial(_predicted, graph, cluster, mesh, batch))
            else:
                proposal = Proposal(tensor_parallel or {}, ())
            if not proposal.rules:
                continue
        for split in (False, True):
            laid = _laid(graph, mesh, batch, proposal.rules, split)
            if laid is None or (split and mesh.shape[0] == 1):
                continue
            simulation = simulate(laid[0], cluster, laid[1])
            name = ("FSDP" if split else "data parallel") + (f" x tensor parallel {model}" if model > 1 else "")
            found.append(Candidate(name, mesh, simulation, simulation.memory <= cluster.memory, *proposal))
    if not found:
        raise ValueError("plan: no mesh divides the batch")
    ranked = sorted(found, key=lambda c: (not c.fits, c.simulation.seconds if c.fits else c.simulation.memory))
    return Plan(tuple(ranked), cluster)


def _predicted(
    graph: Graph, cluster: Cluster, mesh: Mesh, batch: Collection[str], rules: Mapping[str, Any]
) -> Simulation | None:
    """A step with data and tensor parallelism; None where the mesh does not divide."""
    laid = _laid(graph, mesh, batch, rules, split=False)
    return None if laid is None else simulate(laid[0], cluster, laid[1])


def _laid(
    graph: Graph, mesh: Mesh, batch: Collection[str], tensor_parallel: Mapping[str, Any], split: bool
) -> tuple[Graph, Layout] | None:
    """The graph with what it gathers, and where its inputs and outputs lie; None where the mesh does not divide."""
    held: dict[int, Held] = {}
    for id, name in zip(graph.inputs, graph.input_names, strict=True):
        shape = graph.nodes[id].shape
        if name in batch:
            if shape[0] % mesh.shape[0]:
                return None
            held[id] = Held.alike(Sharding((("data",), *((),) * (len(shape) - 1))))
            continue
        said = next((s for p, s in tensor_parallel.items() if fnmatchcase(name, p)), None)
        used = sharding_of(said, len(shape), mesh)
        if any(n % mesh.count(axes) for n, axes in zip(shape, used.dims, strict=True)):
            return None
        dim = next((d for d, n in enumerate(shape) if n % (mesh.shape[0] * mesh.count(used.dims[d])) == 0), None)
        if not split or dim is None:
            held[id] = Held.alike(used)
        else:
            dims = tuple((*axes, "data") if d == dim else axes for d, axes in enumerate(used.dims))
            held[id] = Held(Sharding(dims), used, Sharding(dims))
    gathered, _ = gathering(graph, held)
    # a gradient, or a new parameter, lies as the parameter does, where one of its shape is returned in its order
    return gathered, Layout(mesh, tuple(held[id].held for id in graph.inputs), _outputs(gathered, held))


def _outputs(graph: Graph, held: Mapping[int, Held]) -> tuple[Sharding | None, ...]:
    """Of a result {name: gradient} as of those inputs; of others, left to the compiler."""
    named = {graph.nodes[i].params["name"]: h.state for i, h in held.items()}
    found: dict[int, Sharding] = {}

    def visit(tree: Any) -> None:
        if isinstance(tree, dict):
            for key, value in tree.items():
                if key in named and hasattr(value, "id"):
                    found[value.id] = named[key]
                else:
                    visit(value)
        elif isinstance(tree, (tuple, list)) and not hasattr(tree, "id"):
            for value in tree:
                visit(value)

    visit(graph.result)
    return tuple(found.get(id) for id in graph.outputs)
