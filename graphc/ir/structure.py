"""Graphs inside graphs: the bodies that structured nodes hold as parameters."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

from graphc.errors import GraphError
from graphc.ir.builder import Builder, Symbol
from graphc.ir.graph import INPUT, Graph, Node, Ref
from graphc.ops import OPS, Op
from graphc.ops.aval import Aval
from graphc.ops.control import Body
from graphc.ops.dtypes import is_inexact
from graphc.ops.interpret import with_defaults

ITEM, SWITCH, WHILE, SCAN = OPS["item"], OPS["switch"], OPS["while_loop"], OPS["scan"]
CUSTOM = OPS["custom_vjp"]


def bodies(node: Node) -> Iterator[Graph]:
    """The graphs that `node` runs, each once."""
    if node.op.structured:
        parts = (p for value in node.params.values() for p in (value if isinstance(value, tuple) else (value,)))
        yield from {id(part): part for part in parts if isinstance(part, Graph)}.values()


def with_bodies(node: Node, fn: Callable[[Graph], Body]) -> Node:
    """`node` with `fn(body)` in place of each graph that it runs; they keep their signatures."""
    new = {id(body): fn(body) for body in bodies(node)}
    params = {name: _mapped(value, new) for name, value in node.params.items()}
    if all(params[name] is value for name, value in node.params.items()):
        return node
    return Node(node.id, node.op, node.inputs, params, node.results, node.where, node.scope)


def _mapped(value: Any, new: Mapping[int, Body]) -> Any:
    if isinstance(value, Graph):
        return new[id(value)]
    if isinstance(value, tuple):
        parts = tuple(_mapped(part, new) for part in value)
        return value if all(a is b for a, b in zip(parts, value, strict=True)) else parts
    return value


def map_bodies(graph: Graph, fn: Callable[[Graph], Graph]) -> Graph:
    """`graph` with `fn(body)` in place of each graph that its own nodes run."""
    nodes = {id: with_bodies(node, fn) if node.op.structured else node for id, node in graph.nodes.items()}
    if all(nodes[id] is node for id, node in graph.nodes.items()):
        return graph
    return graph.replace(nodes, graph.result)


def every_node(graph: Graph) -> Iterator[Node]:
    """The nodes of `graph` and of the graphs inside it."""
    for node in graph.nodes.values():
        yield node
        for body in bodies(node):
            yield from every_node(body)


def may_fail(node: Node) -> bool:
    """Whether `node`, or a node of a graph that it runs, has a run-time check."""
    return node.check is not None or any(n.check is not None for body in bodies(node) for n in every_node(body))


def check_bodies(node: Node) -> None:
    """Raise GraphError unless each graph that `node` runs is well formed and returns a flat tuple of arrays."""
    for body in bodies(node):
        body.check()
        if not isinstance(body.result, tuple) or not all(isinstance(part, Ref) for part in body.result):
            raise GraphError(f"{body.name}: a graph inside a graph returns a tuple of arrays, got {body.result!r}")


def emit(builder: Builder, op: Op, operands: Sequence[Symbol], **params: Any) -> tuple[Symbol, ...]:
    """Append a structured operation and the nodes of its results."""
    return builder.emit_several(op, operands, with_defaults(op, params))


def inline(builder: Builder, graph: Graph, operands: Sequence[Symbol]) -> list[Symbol]:
    """Append the nodes of `graph`, run on `operands`."""
    new = {id: s.id for id, s in zip(graph.inputs, operands, strict=True)}
    for node in graph.operations():
        id = new[node.id] = builder.next_id
        builder.next_id += 1
        inputs = tuple(new[i] for i in node.inputs)
        builder.nodes[id] = Node(id, node.op, inputs, node.params, node.results, node.where, node.scope)
    return [builder.symbol(new[id]) for id in graph.outputs]


def stack_more(builder: Builder, node: Node, body: Graph, ids: Sequence[int]) -> list[Symbol]:
    """Let scan `node` of `builder` also return, stacked, the values of the nodes `ids` of its body, which is `body`.

    The node keeps its id and its results: the new ones come after them. `body` may have nodes that are not needed.
    """
    carries, length = node.params["carries"], node.params["length"]
    outputs = list(body.outputs)
    place = {id: k for k, id in enumerate(outputs) if k >= carries}
    for id in ids:
        if id not in place:
            place[id] = len(outputs)
            outputs.append(id)
    live = ancestors(body.nodes, outputs) | set(body.inputs)
    nodes = {id: n for id, n in body.nodes.items() if id in live}
    extended = Graph(body.name, nodes, body.inputs, tuple(map(Ref, outputs)), body.history)
    added = (nodes[id].aval for id in outputs[len(node.results) :])
    results = (*node.results, *(Aval((length, *a.shape), a.dtype) for a in added))
    params = {**node.params, "body": extended}
    builder.nodes[node.id] = Node(node.id, node.op, node.inputs, params, results, node.where, node.scope)
    return [builder.item(node.id, place[id]) for id in ids]


def rewrite_scans(graph: Graph, write: Callable[[Builder, Node], Mapping[int, Symbol]]) -> Graph:
    """`graph` with something else in place of its scans, or of some of their results.

    write  f(builder, scan) appends the scan, if that is still needed, and others. It returns those results, by number,
           that are other nodes now
    """
    if SCAN not in graph.ops:
        return graph
    builder = Builder()
    builder.next_id = first = max(graph.nodes) + 1
    results: dict[tuple[int, int], int] = {}
    new: dict[int, int] = {}
    for id, node in graph.nodes.items():
        node = node.on(tuple([new.get(i, i) for i in node.inputs]))
        result = results.get((node.inputs[0], node.params["index"])) if node.op is ITEM else None
        if result is not None:
            new[id] = result
        elif node.op is SCAN:
            builder.where, builder.scope = node.where, node.scope
            results |= {(id, k): symbol.id for k, symbol in write(builder, node).items()}
        else:
            builder.nodes[id] = node
    if builder.next_id == first:
        return graph
    return graph.rewired(builder.nodes, new)


def ancestors(nodes: Any, roots: Iterable[int], end: Container[int] = ()) -> set[int]:
    """The ids `roots` and of all that they are computed from, not further than the nodes `end`, which it has, too."""
    seen: set[int] = set()
    stack = list(roots)
    while stack:
        id = stack.pop()
        if id not in seen:
            seen.add(id)
            if id not in end:
                stack.extend(nodes[id].inputs)
    return seen


# paths of gradients. A set of inputs is a number with a bit for each: unions are fast
def paths(graph: Graph) -> tuple[int, ...]:
    """For each output of `graph`, the inputs that gradients can flow back to."""
    number = {id: k for k, id in enumerate(graph.inputs)}
    found: dict[int, int] = {}
    several: dict[int, Sequence[int]] = {}
    for id, node in graph.nodes.items():
        if node.op is INPUT:
            found[id] = 1 << number[id] if is_inexact(node.dtype) else 0
        elif node.op is ITEM:
            found[id] = several[node.inputs[0]][node.params["index"]]
        elif node.op.several:
            several[id] = result_paths(node, [found[i] for i in node.inputs])
        elif is_inexact(node.dtype):
            sources = [i for k, i in enumerate(node.inputs) if node.op.arg_of(k) in node.op.vjp]
            found[id] = union(found[i] for i in sources)
        else:
            found[id] = 0
    return tuple(found[id] for id in graph.outputs)


def union(sets: Any) -> int:
    """The union of sets of bits."""
    whole = 0
    for part in sets:
        whole |= part
    return whole


def members(bits: int) -> Iterator[int]:
    """The numbers of the bits that are set."""
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low


def result_paths(node: Node, operands: Sequence[int]) -> list[int]:
    """For each of several results, the union of `operands[k]` over the operands k that gradients flow back to."""
    op = node.op
    if op.structured:
        return _PATHS[op](node.params, list(operands))
    sources = union(bits for k, bits in enumerate(operands) if op.arg_of(k) in op.vjp)
    return [sources if is_inexact(aval.dtype) else 0 for aval in node.results]


def _through(body: Graph, operands: list[int]) -> list[int]:
    return [union(operands[k] for k in members(path)) for path in body.paths]


def _switch_paths(params: Any, operands: list[int]) -> list[int]:
    branches = [_through(branch, operands[1:]) for branch in params["branches"]]
    return [union(parts) for parts in zip(*branches, strict=True)]


def _loop_paths(body: Graph, operands: list[int], consts: int, carries: int) -> list[int]:
    while True:
        results = _through(body, operands)
        carry = [a | b for a, b in zip(operands[consts : consts + carries], results[:carries], strict=True)]
        if carry == operands[consts : consts + carries]:
            return [*carry, *results[carries:]]
        operands = [*operands[:consts], *carry, *operands[consts + carries :]]


def _while_paths(params: Any, operands: list[int]) -> list[int]:
    consts = params["consts"]
    inexact = [is_inexact(a.dtype) for a in params["body"].input_avals()]
    operands = [bits if differentiable else 0 for bits, differentiable in zip(operands, inexact, strict=True)]
    return _loop_paths(params["body"], operands, consts, len(operands) - consts)


_PATHS: dict[Op, Callable[[Any, list[int]], list[int]]] = {
    SWITCH: _switch_paths,
    WHILE: _while_paths,
    SCAN: lambda params, operands: _loop_paths(params["body"], operands, params["consts"], params["carries"]),
    CUSTOM: lambda params, operands: [union(operands[k] for k in params["wrt"])] * params["results"],
}
