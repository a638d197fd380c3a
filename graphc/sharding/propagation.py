"""What follows for the values of a graph from how its inputs and outputs lie: shardings, and collectives.

A mesh axis spreads from a dim to the dims that run together with it, forwards and backwards, first through ops that
compute element by element, until nothing changes; what the user has said stays. Then each node is computed with one
sharding of each of its labels: an operand that lies otherwise is gathered or moved, a label that is summed over leaves
terms of a sum on each device, which are added at once. This is what XLA's partitioner does by its documentation; where
it chooses otherwise, `graphc.sharding.compiled` shows it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, final

from graphc.ir import INPUT, Graph, Node
from graphc.ir.definitions import without_composites
from graphc.ops import OPS
from graphc.ops.aval import Aval
from graphc.ops.local import terms
from graphc.sharding.collectives import Collective, total
from graphc.sharding.correspondence import MASKED, Correspondence, Label, correspondence, is_elementwise
from graphc.sharding.layout import Layout
from graphc.sharding.mesh import Mesh
from graphc.sharding.regions import FROM_LOCAL, TO_LOCAL, spec_of
from graphc.sharding.rotation import rotations
from graphc.sharding.sharding import Axes, Sharding

_ITEM, _SHARD, _SCAN = OPS["item"], OPS["shard"], OPS["scan"]
MOST_SWEEPS = 50  # there and back; each only ever adds axes


@final
class Propagated(NamedTuple):
    """shardings  of each value: of node `id`, or (id, k) for result k of an operation with several
    collectives  what devices exchange, in the order of the nodes
    computed     by operation: how each of its labels is split while it is computed (see `correspondence`)
    bodies       by loop: the same of its body
    """

    graph: Graph
    mesh: Mesh
    shardings: dict[Any, Sharding]
    collectives: list[Collective]
    computed: dict[int, dict[Label, Axes]]
    bodies: dict[int, Propagated]

    def __str__(self) -> str:
        return "\n".join(described(self))


def described(found: Propagated) -> list[str]:
    """Lines that say which collectives are needed, where and why."""
    lines = [f"on {found.mesh}:"]
    for c in found.collectives:
        node = found.graph.nodes[c.node]
        times = f" x{c.times}" if c.times > 1 else ""
        lines.append(
            f"  {c.kind}{times} over {'+'.join(c.axes)}, {c.bytes:,} bytes, for v{c.node} {node.op.name}: {c.why}"
            f"{f' (at {node.where})' if node.where else ''}"
        )
    sums = [f"{count} {kind} ({size:,} bytes)" for kind, (count, size) in total(found.collectives).items()]
    return [*lines, f"  in all: {', '.join(sums) or 'no collectives'}, per device"]


def propagate(
    graph: Graph, mesh: Mesh, inputs: Mapping[int, Sharding], outputs: Mapping[int, Sharding] | None = None
) -> Propagated:
    """Shardings of all values of `graph` from those of `inputs` and `outputs`, by the ids of their nodes.

    Inputs of which nothing is said are left to what uses them.
    """
    spreading = _Spreading(without_composites(graph), mesh, dict(inputs), dict(outputs or {}))
    spreading.run()
    return _Collecting(spreading).found()


def propagated(graph: Graph, layout: Layout) -> Propagated:
    """What follows from where the inputs and outputs of a program lie."""
    given = {i: s for i, s in zip(graph.inputs, layout.inputs, strict=True) if s is not None}
    kept = {i: s for i, s in zip(graph.outputs, layout.outputs, strict=True) if s is not None}
    return propagate(graph, layout.mesh, given, kept)


def annotated(graph: Graph, layout: Layout) -> Graph:
    """The same graph, whose text and drawings say how values lie on the mesh."""
    new = graph.replace(graph.nodes, graph.result)
    new.shardings = {id: s for id, s in propagated(graph, layout).shardings.items() if s.axes}
    return new


def keys_of(node: Node) -> list[Any]:
    """What the shardings of a node's results are known by."""
    return [(node.id, k) for k in range(len(node.results))] if node.op.several else [node.id]


@final
class _Spreading:
    """The state of spreading: `dims` of each value."""

    def __init__(self, graph: Graph, mesh: Mesh, inputs: dict[int, Sharding], outputs: dict[int, Sharding]):
        self.graph, self.mesh = graph, mesh
        self.dims: dict[Any, list[Axes]] = {}
        self.fixed: dict[Any, frozenset[int]] = {}  # dims that stay as they are
        self.known: dict[int, Correspondence] = {}
        self.inner: dict[int, _Spreading] = {}
        self.rotations = rotations(graph)
        users = graph.users()
        turned = {i for id in self.rotations for i in graph.nodes[id].inputs}
        self.passed = {i for i in turned if all(user in self.rotations for user in users[i])}  # never made by itself
        for node in graph.nodes.values():
            for key, aval in zip(keys_of(node), node.results, strict=True):
                self.dims[key] = [()] * len(aval.shape)
            if node.op not in (INPUT, _ITEM, _SCAN):
                self.known[node.id] = correspondence(node, graph.nodes)
            if node.op is _SCAN:
                self.inner[node.id] = _Spreading(node.params["body"], mesh, {}, {})
            if node.op is TO_LOCAL:
                self._fix(node.id, [()] * len(node.shape))
            elif node.op is FROM_LOCAL:
                self._fix(node.id, spec_of(node))
            elif node.op is _SHARD and node.params["spec"]:
                self._fix(node.id, [None if axes is None else self._named(axes) for axes in node.params["spec"]])
        for id, sharding in inputs.items():
            self._fix(id, sharding.dims)
        for id, sharding in outputs.items():
            if id not in self.fixed:
                self._fix(id, sharding.dims)

    def _named(self, axes: Sequence[Any]) -> Axes:
        names = tuple(self.mesh.names[a] if isinstance(a, int) else a for a in axes)
        for name in names:
            if name not in self.mesh.names:
                raise ValueError(f"a value is placed on mesh axis {name!r}, which {self.mesh} has not")
        return names

    def _fix(self, id: int, dims: Sequence[Axes | None]) -> None:
        """Let dims stay as they are: all but those that are None."""
        self.dims[id] = [axes or () for axes in dims]
        self.fixed[id] = frozenset(d for d, axes in enumerate(dims) if axes is not None)

    def run(self) -> None:
        """Spread until nothing changes: through what computes element by element, then one step through all."""
        nodes = list(self.graph.nodes.values())
        near = [n for n in nodes if is_elementwise(n) or n.op.view or n.op is _ITEM]
        for _ in range(MOST_SWEEPS):
            if self._sweep(near):
                continue
            if not self._sweep(nodes):
                break

    def _sweep(self, nodes: list[Node]) -> bool:
        changed = False
        for node in nodes:
            changed |= self._step(node, forwards=True)
        for node in reversed(nodes):
            changed |= self._step(node, forwards=False)
        return changed

    def _step(self, node: Node, *, forwards: bool) -> bool:
        if node.op is INPUT or node.id in self.passed:
            return False
        if (rotation := self.rotations.get(node.id)) is not None:
            return self._alike(rotation.source, node.id)
        if node.op is _ITEM:
            return self._alike((node.inputs[0], node.params["index"]), node.id)
        if node.op is _SCAN:
            return self._scan(node)
        c = self.known[node.id]
        results = keys_of(node)
        sources, targets = (node.inputs, results) if forwards else (results, node.inputs)
        given, wanted = (c.operands, c.results) if forwards else (c.results, c.operands)
        found: dict[Label, Axes] = {}
        for key, labels in zip(sources, given, strict=False):
            if key not in self.dims:
                continue
            for axes, label in zip(self.dims[key], labels, strict=False):
                if label is not None and len(axes) > len(found.get(label, ())):
                    found[label] = axes
        changed = False
        for key, labels in zip(targets, wanted, strict=False):
            if key in self.dims:
                changed |= self._extend(key, [found.get(w, ()) for w in labels], [c.sizes.get(w, 0) for w in labels])
        return changed

    def _alike(self, one: Any, other: Any) -> bool:
        """Values that are one."""
        changed = self._extend(other, self.dims[one])
        return self._extend(one, self.dims[other]) or changed

    def _extend(self, key: Any, wanted: Sequence[Axes], sizes: Sequence[int] | None = None) -> bool:
        """Split the dims of a value further as `wanted`, as far as they can be, and no axis is used twice.

        sizes  that have to be divided
        """
        fixed = self.fixed.get(key, ())
        dims, changed = self.dims[key], False
        for d, (axes, size) in enumerate(zip(wanted, sizes or [0] * len(wanted), strict=True)):
            if d in fixed or len(axes) <= len(dims[d]) or axes[: len(dims[d])] != dims[d]:
                continue
            used = {a for e, other in enumerate(dims) for a in other if e != d}
            if used.intersection(axes) or (size and size % self.mesh.count(axes)):
                continue
            dims[d], changed = axes, True
        return changed

    def _scan(self, node: Node) -> bool:
        """Spread through the body: operands and its inputs, carries in and out, its results and the loop's."""
        body, consts, carries = node.params["body"], node.params["consts"], node.params["carries"]
        inside, changed = self.inner[node.id], False
        for _ in range(2):
            for k, (outer, inner) in enumerate(zip(node.inputs, body.inputs, strict=True)):
                if outer in self.dims:
                    changed |= self._tie(outer, inside, inner, k >= consts + carries)
            for k, inner in enumerate(body.outputs):
                changed |= self._tie((node.id, k), inside, inner, k >= carries)
                if k < carries:
                    changed |= inside._alike(body.inputs[consts + k], inner)
            inside.run()
        return changed

    def _tie(self, outer: Any, inside: _Spreading, inner: int, rows: bool) -> bool:
        """A value and what the body sees of it: of `rows`, one row."""
        own = self.dims[outer]
        changed = inside._extend(inner, own[1:] if rows else own)
        back = inside.dims[inner]
        return self._extend(outer, [own[0], *back] if rows else back) or changed


@final
class _Collecting:
    """Which collectives the shardings ask for."""

    def __init__(self, spread: _Spreading):
        self._spread, self._mesh = spread, spread.mesh
        self._moved: set[Any] = set()
        self._list: list[Collective] = []
        self._computed: dict[int, dict[Label, Axes]] = {}
        self._bodies: dict[int, Propagated] = {}
        self._constant: set[int] = set()  # which every device can make by itself

    def found(self) -> Propagated:
        for node in self._spread.graph.operations():
            if all(i in self._constant for i in node.inputs) and not node.op.impure:
                self._constant.add(node.id)
            self._visit(node)
        shardings = {key: Sharding(tuple(dims)) for key, dims in self._spread.dims.items()}
        return Propagated(self._spread.graph, self._mesh, shardings, self._list, self._computed, self._bodies)

    def _visit(self, node: Node) -> None:
        spread = self._spread
        if node.op is _ITEM or node.id in spread.passed:
            return
        if node.id in spread.rotations:
            self._rotate(node)
            return
        if node.op is FROM_LOCAL:
            own = spread.graph.nodes[node.inputs[0]].aval
            for k, _, dim in terms(node.params["dims"]):
                kind, axes = "all-reduce" if dim < 0 else "reduce-scatter", (node.params["mesh"][0][k],)
                size = self._bytes(own, [()] * len(own.shape))
                self._list.append(Collective(kind, size, 1, axes, node.id, "processes have terms of it"))
            return
        if node.id in spread.inner:
            body = self._bodies[node.id] = _Collecting(spread.inner[node.id]).found()
            for c in body.collectives:
                self._list.append(c._replace(times=c.times * node.params["length"], node=node.id))
            return
        c, results = spread.known[node.id], keys_of(node)
        chosen = self._computed[node.id] = self._chosen(node, c, results)
        for i, labels in zip(node.inputs, c.operands, strict=False):
            if i in spread.dims:
                self._move(i, [chosen.get(w, ()) for w in labels], node, "an operand of it is needed otherwise")
        summed = tuple(a for w, kind in c.reduced.items() for a in chosen.get(w, ()))
        for key, labels, aval in zip(results, c.results, node.results, strict=True):
            made = [chosen.get(w, ()) for w in labels]
            held = spread.dims[key]
            if summed:
                what = "it picks from parts" if MASKED in c.reduced.values() else "devices have terms of it"
                self._list.append(Collective("all-reduce", self._bytes(aval, made), 1, summed, node.id, what))
            if node.id not in self._constant:
                self._moved_from(aval, made, held, node, "it is held otherwise than it is computed")

    def _chosen(self, node: Node, c: Correspondence, results: list[Any]) -> dict[Label, Axes]:
        """How each label is split while the node is computed: one that is summed over as all operands have it; then as
        in the results, then as in the larger operands."""
        spread = self._spread
        chosen: dict[Label, Axes] = {}
        used: set[str] = set()

        def take(labels: Sequence[Label | None], dims: Sequence[Axes]) -> None:
            for w, axes in zip(labels, dims, strict=False):
                if w is None or not axes or w in chosen or used.intersection(axes):
                    continue
                size = c.sizes.get(w, 0)
                if size % self._mesh.count(axes) == 0:
                    chosen[w] = axes
                    used.update(axes)

        operands = [(i, labels) for i, labels in zip(node.inputs, c.operands, strict=False) if i in spread.dims]
        agreed: dict[Label, set[Axes]] = {}
        for i, labels in operands:
            for w, axes in zip(labels, spread.dims[i], strict=False):
                agreed.setdefault(w, set()).add(axes)
        same = [(w, next(iter(found))) for w, found in agreed.items() if w is not None and len(found) == 1]
        take([w for w, _ in same if w in c.reduced], [axes for w, axes in same if w in c.reduced])
        if node.op is not _SHARD:
            for key, labels in zip(results, c.results, strict=True):
                take(labels, spread.dims[key])
        for i, labels in sorted(operands, key=lambda o: -spread.graph.nodes[o[0]].size):
            take(labels, spread.dims[i])
        return chosen

    def _rotate(self, node: Node) -> None:
        rotation = self._spread.rotations[node.id]
        held = self._spread.dims[node.id]
        self._move(rotation.source, held, node, "an operand of it is needed otherwise")
        if axes := held[rotation.axis]:
            local = Sharding(tuple(held)).local(node.shape, self._mesh)
            row = math.prod(n for d, n in enumerate(local) if d != rotation.axis) * node.dtype.itemsize
            for rows in rotation.rows(node.shape[rotation.axis], self._mesh.count(axes)):
                why = "rows move on to the next devices"
                self._list.append(Collective("collective-permute", rows * row, 1, axes, node.id, why))

    def _move(self, id: int, wanted: Sequence[Axes], node: Node, why: str) -> None:
        held = self._spread.dims[id]
        if id in self._constant or (id, tuple(wanted)) in self._moved:
            return
        self._moved.add((id, tuple(wanted)))
        self._moved_from(self._spread.graph.nodes[id].aval, held, wanted, node, why)

    def _moved_from(self, aval: Aval, held: Sequence[Axes], wanted: Sequence[Axes], node: Node, why: str) -> None:
        there = {a: d for d, axes in enumerate(wanted) for a in axes}
        gathered = tuple(a for axes in held for a in axes if a not in there)
        turned = tuple(a for d, axes in enumerate(held) for a in axes if there.get(a, d) != d)
        if gathered:
            kept = [tuple(a for a in axes if a not in gathered) for axes in held]
            self._list.append(Collective("all-gather", self._bytes(aval, kept), 1, gathered, node.id, why))
        if turned:
            self._list.append(Collective("all-to-all", self._bytes(aval, wanted), 1, turned, node.id, why))

    def _bytes(self, aval: Aval, dims: Sequence[Axes]) -> int:
        return math.prod(Sharding(tuple(dims)).local(aval.shape, self._mesh)) * aval.dtype.itemsize
