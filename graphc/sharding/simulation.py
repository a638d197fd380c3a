"""`graphc.simulate`: how long a step takes on a cluster, and how much memory, as far as declarations tell."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple, final

from graphc.ir import INPUT, Graph, Node
from graphc.ops import OPS
from graphc.rewrite.cost import operations
from graphc.sharding.cluster import Cluster
from graphc.sharding.collectives import Collective, total
from graphc.sharding.correspondence import is_elementwise
from graphc.sharding.layout import layout_of
from graphc.sharding.propagation import Propagated, keys_of, propagated

_ITEM = OPS["item"]


@final
class Simulation(NamedTuple):
    """Predicted, for each device.

    seconds      of a step
    products, moving, exchanging  seconds of products, of what memory limits, and of collectives
    memory       bytes at the worst moment; `inputs` of them are parameters, state and batch
    collectives  what is exchanged
    """

    seconds: float
    products: float
    moving: float
    exchanging: float
    memory: int
    inputs: int
    collectives: tuple[Collective, ...]

    def __str__(self) -> str:
        sums = ", ".join(f"{n} {kind} ({size:,} bytes)" for kind, (n, size) in total(self.collectives).items())
        return (
            f"predicted: {self.seconds * 1e3:,.3f} ms a step (products {self.products * 1e3:,.3f}, memory traffic "
            f"{self.moving * 1e3:,.3f}, exchange {self.exchanging * 1e3:,.3f}), "
            f"{self.memory / 2**20:,.1f} MiB a device\n  {sums or 'no collectives'}"
        )


def simulate(
    graph: Graph, cluster: Cluster, mesh: Any = None, shardings: Any = None, out_shardings: Any = None
) -> Simulation:
    """What one run of `graph` takes each device of `cluster`.

    mesh, shardings, out_shardings  as of `graphc.lower`; None: each device does the same, as on one

    Products take their operations; everything else the bytes that it reads and writes, where elementwise operations
    are computed on the way to what reads them. Memory is that of inputs and of all values between their first and last
    use. Raises ValueError for a mesh of more devices than the cluster has.
    """
    layout = layout_of(graph, {"all": 1} if mesh is None else mesh, shardings, out_shardings)
    if layout.mesh.size > cluster.devices:
        raise ValueError(f"{layout.mesh} has {layout.mesh.size} devices, the cluster {cluster.devices}")
    found = propagated(graph, layout)
    if cluster.reduce_scatter:
        found = found._replace(collectives=_scattered(found))
    products = moving = 0.0
    users = graph.users()
    for node in graph.operations():
        if node.op.view or node.op is _ITEM:
            continue
        split = found.mesh.count([a for axes in found.computed.get(node.id, {}).values() for a in axes])
        if node.op.flops is not None:
            products += max(
                operations(node, graph.nodes) / split / cluster.flops, _traffic(found, node, users) / cluster.bandwidth
            )
        else:
            moving += _traffic(found, node, users) / cluster.bandwidth
    exchanging = sum(cluster.seconds(c, found.mesh) for c in found.collectives)
    memory, inputs = _memory(found)
    seconds = products + moving + exchanging * (1 - cluster.overlap)
    return Simulation(seconds, products, moving, exchanging, memory, inputs, tuple(found.collectives))


def _scattered(found: Propagated) -> list[Collective]:
    """With a reduce-scatter for each sum of which a device keeps a part along the same axes."""
    shardings, nodes = found.shardings, found.graph.nodes
    users = found.graph.users()
    kept: list[Collective] = []
    for c in found.collectives:
        reached, stack = {c.node}, [c.node]
        while stack:  # through what computes element by element
            for user in users[stack.pop()]:
                if user not in reached and (is_elementwise(nodes[user]) or nodes[user].op.view):
                    reached.add(user)
                    stack.append(user)
        split = any(set(c.axes) <= set(shardings[id].axes) for id in reached if id in shardings)
        kept.append(c._replace(kind="reduce-scatter") if c.kind == "all-reduce" and split else c)
    return kept


def _local(found: Propagated, node: Node) -> int:
    """Bytes of the results of a node on one device."""
    return sum(
        math.prod(found.shardings[key].local(aval.shape, found.mesh)) * aval.dtype.itemsize
        for key, aval in zip(keys_of(node), node.results, strict=True)
    )


def _traffic(found: Propagated, node: Node, users: Mapping[int, list[int]]) -> int:
    """Bytes that a node reads and writes: nothing of what is fused."""
    nodes, outputs = found.graph.nodes, set(found.graph.outputs)

    def stored(id: int) -> bool:
        while nodes[id].op.view and nodes[id].inputs:
            id = nodes[id].inputs[0]
        fused = is_elementwise(nodes[id]) and id not in outputs and len(users[id]) < 2
        return not fused and bool(nodes[id].inputs or nodes[id].op is INPUT)

    read = sum(_local(found, nodes[i]) for i in dict.fromkeys(node.inputs) if stored(i))
    return read + (_local(found, node) if stored(node.id) else 0)


def _memory(found: Propagated) -> tuple[int, int]:
    """Bytes at the worst moment, and of the inputs. An output takes the place of an input that lies like it, if that is
    read no more: state is donated."""
    graph = found.graph
    last: dict[int, int] = {}
    for position, node in enumerate(graph.operations()):
        for i in node.inputs:
            last[i] = position
    outputs = set(graph.outputs)
    free = [_local(found, graph.nodes[i]) for i in graph.inputs]
    live = worst = inputs = sum(free)

    def made(node: Node) -> int:
        return 0 if node.op.view or node.op is _ITEM or not node.inputs else _local(found, node)

    for position, node in enumerate(graph.operations()):
        size = made(node)
        if node.id in outputs and size in free:
            free.remove(size)
        else:
            live += size
        worst = max(worst, live)
        for i in dict.fromkeys(node.inputs):
            if last[i] == position and graph.nodes[i].op is not INPUT and i not in outputs:
                live -= made(graph.nodes[i])
    return worst, inputs
