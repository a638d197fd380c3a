"""Control flow made smaller: what no one reads of its results, operands and carries goes, and so does what makes it.

A carry that every step returns as it came is a constant of the loop. Work on constants alone is done before the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from graphc.ir import INPUT, Graph, Node, Ref, rename
from graphc.ir.structure import CUSTOM, ITEM, SCAN, SWITCH, WHILE, ancestors
from graphc.ops import OPS, Op
from graphc.passes.dce import eliminate_dead_code

GROWTH = 2  # a result this much larger than its operands is not kept through a loop


class _Smaller(NamedTuple):
    """A structured node made smaller.

    inputs, params, aval: of the new node; place: old result number -> new one, or (operand,) that is the result.
    """

    inputs: tuple[int, ...]
    params: dict[str, Any]
    results: list[int]
    place: dict[int, int | tuple[int]]


def trim_control_flow(graph: Graph) -> Graph:
    """`graph` without the results, operands and carries of its control flow that nobody reads."""
    if not any(op.structured for op in graph.ops):
        return graph
    nodes = graph.nodes
    live = set(graph.outputs)
    used: dict[int, set[int]] = {}  # of nodes with several results: those that are read
    smaller: dict[int, _Smaller] = {}
    for id, node in reversed(list(nodes.items())):
        if id not in live and not node.op.impure:
            continue
        if node.op is ITEM:
            used.setdefault(node.inputs[0], set()).add(node.params["index"])
            live.add(node.inputs[0])
        elif node.op.structured:
            smaller[id] = found = _TRIM[node.op](node, sorted(used.get(id, ())))
            live.update(found.inputs)
            live.update(place[0] for place in found.place.values() if isinstance(place, tuple))
        else:
            live.update(node.inputs)
    return _replaced(graph, smaller)


def _replaced(graph: Graph, smaller: Mapping[int, _Smaller]) -> Graph:
    new: dict[int, int] = {}
    kept: dict[int, Node] = {}
    changed = False
    for id, node in graph.nodes.items():
        inputs = tuple(new.get(i, i) for i in node.inputs)
        if node.op is ITEM and node.inputs[0] in smaller:
            place = smaller[node.inputs[0]].place.get(node.params["index"])
            if place is None:
                continue  # read by nobody
            if isinstance(place, tuple):
                new[id] = new.get(place[0], place[0])
                continue
            params = {"index": place}
            kept[id] = Node(id, ITEM, inputs, params, node.results, node.where, node.scope)
        elif id in smaller:
            found = smaller[id]
            same = found.inputs == node.inputs and all(found.params[k] is v for k, v in node.params.items())
            changed = changed or not same
            if found.results:
                inputs = tuple(new.get(i, i) for i in found.inputs)
                results = tuple(node.results[k] for k in found.results)
                kept[id] = Node(id, node.op, inputs, found.params, results, node.where, node.scope)
        else:
            kept[id] = node.on(inputs)
    if not changed:
        return graph
    # what only the dropped items read may still be there, without its operands
    result = rename(graph.result, {id: new.get(id, id) for id in graph.outputs})
    live = ancestors(kept, [new.get(id, id) for id in graph.outputs] + [i for i, n in kept.items() if n.op.impure])
    return graph.replace({id: n for id, n in kept.items() if id in live or n.op is INPUT}, result)


def _restricted(body: Graph, inputs: Sequence[int], outputs: Sequence[int]) -> Graph:
    """`body` with only some of its outputs, and of its inputs; it must not need the others."""
    result = tuple(Ref(body.outputs[k]) for k in outputs)
    if list(inputs) == list(range(len(body.inputs))) and list(outputs) == list(range(len(body.outputs))):
        return body
    less = trim_control_flow(eliminate_dead_code(body.replace(body.nodes, result)))
    gone = set(body.inputs) - {body.inputs[k] for k in inputs}
    nodes = {id: node for id, node in less.nodes.items() if id not in gone}
    return Graph(body.name, nodes, tuple(body.inputs[k] for k in inputs), less.result, body.history)


def _read(body: Graph, outputs: Collection[int]) -> set[int]:
    """The numbers of the inputs that these outputs of `body` need."""
    found = ancestors(body.nodes, [body.outputs[k] for k in outputs])
    return {k for k, id in enumerate(body.inputs) if id in found}


def _switch(node: Node, used: list[int]) -> _Smaller:
    branches: tuple[Graph, ...] = node.params["branches"]
    # results that are the same in every branch are one
    results, place = _distinct(used, lambda k: tuple(branch.outputs[k] for branch in branches))
    read = sorted(set().union(*(_read(branch, results) for branch in branches)))
    smaller = tuple(_restricted(branch, read, results) for branch in branches)
    if all(a is b for a, b in zip(smaller, branches, strict=True)):
        smaller = branches
    inputs = (node.inputs[0], *(node.inputs[1 + k] for k in read))
    return _Smaller(inputs, {"branches": smaller}, results, place)


def _distinct(used: Sequence[int], key: Callable[[int], Any]) -> tuple[list[int], dict[int, int | tuple[int]]]:
    """The results to keep of `used`, of those with equal keys one, and the place of each."""
    first: dict[Any, int] = {}
    results: list[int] = []
    place: dict[int, int | tuple[int]] = {}
    for k in used:
        same = first.setdefault(key(k), len(results))
        if same == len(results):
            results.append(k)
        place[k] = same
    return results, place


def _loop(node: Node, used: list[int], consts: int, carries: int, bodies: Mapping[str, Graph]) -> _Smaller:
    """A scan or a while loop: its body, and perhaps a condition, have inputs (consts, carries, rows)."""
    body = bodies["body"]
    tests = [graph for name, graph in bodies.items() if name != "body"]
    fixed = {k for k in range(carries) if body.outputs[k] == body.inputs[consts + k]}  # they are constants
    live = {k for k in used if k not in fixed}
    always: set[int] = set().union(*(_read(test, [0]) for test in tests))
    while True:
        read = _read(body, live) | always
        grown = live | {k - consts for k in read if consts <= k < consts + carries and k - consts not in fixed}
        if grown == live:
            break
        live = grown
    moving = [k for k in sorted(live) if k < carries]
    ys, place = _distinct([k for k in used if k >= carries], lambda k: body.outputs[k])
    results = [*moving, *ys]
    place = {k: len(moving) + at for k, at in place.items() if isinstance(at, int)}
    place |= {k: moving.index(k) for k in used if k in live and k < carries}
    place |= {k: (node.inputs[consts + k],) for k in used if k in fixed}
    # a constant carry comes behind the constants that there are
    constant = [k for k in sorted(read) if k < consts or (k < consts + carries and k - consts in fixed)]
    rows = [k for k in sorted(read) if k >= consts + carries]
    order = [*constant, *(consts + k for k in moving), *rows]
    params: dict[str, Any] = {
        name: _restricted(graph, order, results if graph is body else [0]) for name, graph in bodies.items()
    }
    params["consts"] = len(constant)
    if "carries" in node.params:
        params["carries"] = len(moving)
    return _Smaller(tuple(node.inputs[k] for k in order), {**node.params, **params}, results, place)


def _scan(node: Node, used: list[int]) -> _Smaller:
    params = node.params
    return _loop(node, used, params["consts"], params["carries"], {"body": params["body"]})


def _while(node: Node, used: list[int]) -> _Smaller:
    consts = node.params["consts"]
    graphs = {name: node.params[name] for name in ("condition", "body")}
    return _loop(node, used, consts, len(node.inputs) - consts, graphs)


def _custom(node: Node, used: list[int]) -> _Smaller:
    results = list(range(node.params["results"])) if used else []  # the rule has a cotangent for each
    return _Smaller(node.inputs if used else (), dict(node.params), results, {k: k for k in used})


_TRIM: dict[Op, Callable[[Node, list[int]], _Smaller]] = {SWITCH: _switch, SCAN: _scan, WHILE: _while, CUSTOM: _custom}


def hoist_invariants(graph: Graph) -> Graph:
    """`graph` with the work that is the same in every step of a loop done before it.

    Not what may fail, nor what takes much more memory than its operands, nor views, which cost nothing; but a product
    with a transposed matrix copies it, each time.
    """
    if graph.ops.isdisjoint(_BODY):
        return graph
    nodes: dict[int, Node] = {}
    next_id = max(graph.nodes) + 1
    for id, node in graph.nodes.items():
        if node.op in _BODY:
            body, consts = node.params["body"], node.params["consts"]
            hoisted = _invariants(body, consts)
            if hoisted:
                new = dict(zip(body.inputs[:consts], node.inputs[:consts], strict=True))
                for inner in hoisted:
                    old = body.nodes[inner]
                    new[inner], next_id = next_id, next_id + 1
                    inputs = tuple(new[i] for i in old.inputs)
                    nodes[new[inner]] = Node(new[inner], old.op, inputs, old.params, old.results, old.where, old.scope)
                node = _with_constants(node, hoisted, [new[inner] for inner in hoisted])
        nodes[id] = node
    return graph if len(nodes) == len(graph.nodes) else graph.replace(nodes, graph.result)


_BODY = (SCAN, WHILE)
_PERMUTE = OPS["permute"]


def _invariants(body: Graph, consts: int) -> list[int]:
    """The nodes of `body` to compute before the loop, in order."""
    fixed = set(body.inputs[:consts])
    found: list[int] = []
    for id, node in body.nodes.items():
        op = node.op
        if not node.inputs and op is not INPUT:
            fixed.add(id)  # a constant, which is there in both places
        elif node.inputs and fixed.issuperset(node.inputs) and not node.op.several:
            movable = not (op.impure or op.structured or node.check is not None) and (op is _PERMUTE or not op.view)
            if movable and node.aval.size <= GROWTH * sum(body.nodes[i].aval.size for i in node.inputs):
                fixed.add(id)
                found.append(id)
    needed = ancestors(body.nodes, found)
    return [id for id, n in body.nodes.items() if id in found or (id in needed and not n.inputs and n.op is not INPUT)]


def _with_constants(node: Node, inner: Sequence[int], outer: Sequence[int]) -> Node:
    """A loop whose body gets its nodes `inner` as constants, which the nodes `outer` compute."""
    consts = node.params["consts"]
    params = dict(node.params)
    for name, graph in node.params.items():
        if isinstance(graph, Graph):
            params[name] = _with_inputs(graph, consts, inner if name == "body" else (), node.params["body"], inner)
    params["consts"] = consts + len(inner)
    inputs = (*node.inputs[:consts], *outer, *node.inputs[consts:])
    return Node(node.id, node.op, inputs, params, node.results, node.where, node.scope)


def _with_inputs(graph: Graph, at: int, replaced: Sequence[int], body: Graph, inner: Sequence[int]) -> Graph:
    """`graph` with more inputs in place `at`, with the types of the nodes `inner` of `body`. In the body itself they
    take the places of those nodes."""
    ids = list(replaced)
    free = max(graph.nodes, default=-1) + 1
    ids += range(free, free + len(inner) - len(ids))
    added = {
        id: Node(id, INPUT, (), {"name": f"fixed_{at + k}"}, body.nodes[i].results)
        for k, (id, i) in enumerate(zip(ids, inner, strict=True))
    }
    nodes = {id: node for id, node in graph.nodes.items() if id not in added}
    inputs = (*graph.inputs[:at], *ids, *graph.inputs[at:])
    return Graph(graph.name, {**added, **nodes}, inputs, graph.result, graph.history, graph.call)
