"""Graphs with symbolic sizes (`graphc.ops.dims`), and the graphs that they stand for.

A graph that was traced with Dims among the extents of its inputs has them in the types and parameters of its nodes. It
is a pattern: `concrete` gives the graph for certain sizes, which is what passes, lowering and kernels take.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from graphc import errors
from graphc.errors import GraphError
from graphc.ir.graph import INPUT, Graph, Node, map_values
from graphc.ir.structure import bodies, with_bodies
from graphc.ops import OPS, Literal
from graphc.ops.aval import Aval, types_text
from graphc.ops.dims import Dim, Sizes, has_dim, is_dim, substituted
from graphc.ops.dtypes import scalar_array
from graphc.ops.forms import names_in

_CONSTANT, _FULL = OPS["constant"], OPS["full"]


def sizes_in(graph: Graph) -> Sizes | None:
    """Where the named sizes of a graph are kept, with their conditions; None if it has none."""
    return next((dim.sizes for node in graph.nodes.values() for dim in dims_of(node)), None)


def dims_of(node: Node) -> Iterator[Dim]:
    """The Dims in the type and the parameters of a node."""
    stack: list[Any] = [*(aval.shape for aval in node.results), *node.params.values()]
    while stack:
        x = stack.pop()
        if is_dim(x):
            yield x
        elif isinstance(x, (tuple, list)):
            stack.extend(x)
        elif isinstance(x, Graph):
            for inner in x.nodes.values():
                yield from dims_of(inner)


def concrete(graph: Graph, sizes: Mapping[str, int]) -> Graph:
    """The graph for these sizes, by name: `concrete(g, {"s0": 32})`. A graph without named sizes is returned as it is.

    Raises GraphError if a name is missing, a condition of the trace does not hold, or a node does not fit its operands.
    """
    dims = [dim for node in graph.nodes.values() for dim in dims_of(node)]
    if not dims:
        return graph
    known = dims[0].sizes
    if missing := {name for dim in dims for name in names_in(dim.form)} - sizes.keys():
        raise GraphError(errors.SIZE_MISSING.format(name=graph.name, size=min(missing)))
    if (broken := known.broken(sizes)) is not None:
        raise GraphError(
            errors.SIZE_REFUSED.format(name=graph.name, condition=broken, where=known.conditions.get(broken))
        )
    return _concrete(graph, sizes)


def _concrete(graph: Graph, sizes: Mapping[str, int] | None) -> Graph:
    nodes: dict[int, Node] = {}
    changed: set[int] = set()
    for id, node in graph.nodes.items():
        new = concrete_node(node, sizes)
        if new is not node:
            changed.add(id)
        if node.op is not INPUT and (id in changed or not changed.isdisjoint(node.inputs)):
            _check(graph, new, nodes)
        nodes[id] = new
    return graph.replace(nodes, map_values(graph.result, lambda value: substituted(value, sizes)))


def concrete_node(node: Node, sizes: Mapping[str, int] | None) -> Node:
    """The node for these sizes; None: for those of the call that is being traced, without depending on them."""
    results = tuple([_concrete_aval(aval, sizes) for aval in node.results])
    if node.op.structured and any(True for _ in bodies(node)):
        node = with_bodies(node, lambda body: _concrete(body, sizes))
    if all(a is b for a, b in zip(results, node.results, strict=True)) and not any(map(has_dim, node.params.values())):
        return node
    op, params = node.op, {name: substituted(value, sizes) for name, value in node.params.items()}
    if op is _FULL and not results[0].shape and is_dim(node.params["value"]):  # a number, as if Python had given it
        op, params = _CONSTANT, {"value": Literal(scalar_array(params["value"], results[0].dtype))}
    return Node(node.id, op, node.inputs, params, results, node.where, node.scope)


def _concrete_aval(aval: Aval, sizes: Mapping[str, int] | None) -> Aval:
    return Aval(substituted(aval.shape, sizes), aval.dtype) if has_dim(aval.shape) else aval


def _check(graph: Graph, node: Node, nodes: Mapping[int, Node]) -> None:
    try:
        inferred = node.op.rule.infer(node.op, [nodes[i].type for i in node.inputs], node.params)
    except Exception as error:  # rules raise PyTorch's errors, of any type; here they all mean the same
        raise GraphError(f"{graph.name}: {node.op.name} (v{node.id}, {node.where}): {error}") from error
    found = inferred if node.op.several else (inferred,)
    if found != node.results:
        raise GraphError(
            f"{graph.name}: {node.op.name} (v{node.id}, {node.where}) is {types_text(found)}, expected "
            f"{types_text(node.results)}"
        )
