"""The program of one device: a graph on a mesh, with values as large as one device has them, and what it exchanges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, final

from graphc.ir import INPUT, Builder, Graph, Node
from graphc.ops import OPS
from graphc.ops.aval import Aval
from graphc.sharding.by_parts import local_params
from graphc.sharding.correspondence import correspondence
from graphc.sharding.layout import Layout
from graphc.sharding.propagation import Propagated, keys_of, propagated
from graphc.sharding.sharding import Axes, Sharding

_REDUCE, _GATHER = OPS["all_reduce"], OPS["all_gather"]


def on_one_device(graph: Graph, layout: Layout | None) -> Graph:
    """What each device runs of `graph`: all, if it is on no mesh. For predictions: some parameters are of the whole."""
    return graph if layout is None else _Writer(propagated(graph, layout)).written()


@final
class _Writer:
    def __init__(self, found: Propagated):
        self._found, self._nodes = found, found.graph.nodes
        self._builder = Builder.beside(self._nodes)
        self._now: dict[int, int] = {}  # values that are exchanged after they have been computed
        self._laid: dict[tuple[int, Sequence[Axes]], int] = {}  # operands, in another layout

    def written(self) -> Graph:
        for node in self._nodes.values():
            self._write(node)
        return self._found.graph.rewired(self._builder.nodes, self._now)

    def _write(self, node: Node) -> None:
        found, builder = self._found, self._builder
        held = [found.shardings[key].dims for key in keys_of(node)]
        chosen = found.computed.get(node.id)
        builder.where, builder.scope = node.where, node.scope
        inputs = tuple([self._now.get(i, i) for i in node.inputs])
        if chosen is None:
            params = node.params
            if node.id in found.bodies:
                params = {**params, "body": _Writer(found.bodies[node.id]).written()}
            builder.nodes[node.id] = self._like(node, inputs, params, held)
            return
        c = correspondence(node, self._nodes)
        wanted = [tuple([chosen.get(w, ()) for w in labels]) for labels in c.operands]
        inputs = (
            tuple([self._in(i, dims) for i, dims in zip(node.inputs, wanted, strict=False)]) + inputs[len(wanted) :]
        )
        made = [tuple([chosen.get(w, ()) for w in labels]) for labels in c.results]
        counts = {w: found.mesh.count(axes) for w, axes in chosen.items()}
        params = node.params if node.op.several else local_params(node, c, counts)
        builder.nodes[node.id] = self._like(node, inputs, params, made)
        if node.op.several or not node.inputs:
            return
        if any(chosen.get(w) for w in c.reduced):
            self._exchange(node, _REDUCE, self._part(node.aval, made[0]))
        if made[0] != tuple(held[0]):
            self._exchange(node, _GATHER, self._part(node.aval, held[0]))

    def _exchange(self, node: Node, op: Any, aval: Aval) -> None:
        self._now[node.id] = self._builder.append(op, (self._now.get(node.id, node.id),), _ALL, (aval,))

    def _in(self, id: int, dims: tuple[Axes, ...]) -> int:
        """An operand, laid as it is needed."""
        node, now = self._nodes[id], self._now.get(id, id)
        held = self._found.shardings.get(id)
        if held is None or (not node.inputs and node.op is not INPUT) or tuple(held.dims) == dims:
            return now
        if (id, dims) not in self._laid:
            self._laid[id, dims] = self._builder.append(_GATHER, (now,), _ALL, (self._part(node.aval, dims),))
        return self._laid[id, dims]

    def _like(self, node: Node, inputs: tuple[int, ...], params: Any, dims: Sequence[Sequence[Axes]]) -> Node:
        results = tuple([self._part(aval, axes) for aval, axes in zip(node.results, dims, strict=True)])
        return Node(node.id, node.op, inputs, params, results, node.where, node.scope)

    def _part(self, aval: Aval, dims: Sequence[Axes]) -> Aval:
        return Aval(Sharding(tuple(dims)).local(aval.shape, self._found.mesh), aval.dtype)


_ALL: Mapping[str, Any] = {"ranks": ()}
