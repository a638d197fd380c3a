"""Walks over the tape that choose what they visit: the gradients of given tensors, and anomaly mode.

`backward()` on all leaves is the loop in `eager.core.tape`; this is for everything else. Gradients that can be
differentiated again are computed on Tensors, by the same rules.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np

from eager.core import state, tape
from eager.core.grad_mode import set_grad_enabled
from eager.core.interpreter import on_arrays
from eager.core.tensor import Tensor
from eager.engine import hooks
from eager.engine.anomaly import explained
from eager.engine.language import E
from eager.engine.multi_output import Part
from graphc.ops.gradient import share


def free(outputs: Sequence[Tensor]) -> None:
    """Free what the nodes behind `outputs` saved, as a walk that does not keep the graph does."""
    for node in reachable(t._n for t in outputs):
        if not tape.is_leaf(node):
            tape.free(node)


def reachable(roots: Iterable[tape.Node | None]) -> list[tape.Node]:
    """The nodes that gradients may flow to from `roots`, latest first, leaves last."""
    seen: dict[int, tape.Node] = {}
    stack = [n for n in roots if n is not None]
    while stack:
        node = stack.pop()
        if id(node) not in seen:
            seen[id(node)] = node
            stack.extend(tape.parents_of(node))
    return sorted(seen.values(), key=lambda node: node[0])


def visited() -> set[int]:
    """The ids of the nodes that the walk going on visits."""
    walk = tape.walks[-1]
    return walk if isinstance(walk, set) else {id(node) for node in reachable(walk)}


def leaf_nodes(outputs: Sequence[Tensor]) -> list[tape.Node]:
    """The nodes of the live leaf tensors that `outputs` depend on."""
    return [n for n in reachable(t._n for t in outputs) if tape.is_leaf(n) and n[tape.PARENTS]() is not None]


def gradients(
    outputs: Sequence[Tensor],
    cotangents: Sequence[Tensor],
    targets: Sequence[tape.Node],
    keep: bool,
    create_graph: bool,
) -> list[Tensor | None]:
    """The gradient that arrives at each of the nodes `targets`, or None where none does."""
    wanted = {id(node) for node in targets}
    nodes = reachable(t._n for t in outputs)
    through: set[int] = set()  # nodes from which a target can be reached
    for node in reversed(nodes):
        if any(id(p) in wanted or id(p) in through for p in tape.parents_of(node)):
            through.add(id(node))
    # under an interpreter (vmap) the cotangents are no arrays
    on_tensors = create_graph or state.anomaly.enabled or not on_arrays()
    walk = _walk_tensors if on_tensors else _walk_arrays
    with tape.lock, set_grad_enabled(create_graph):
        tape.walks.append(wanted | through)
        try:
            found = walk(nodes, outputs, cotangents, wanted, through, keep)
        finally:
            tape.walks.pop()
    return [found.get(id(node)) for node in targets]


def _walk_arrays(
    nodes: list[tape.Node], outputs: Any, cotangents: Any, wanted: Collection[int], through: set[int], keep: bool
) -> dict[int, Tensor]:
    heap: list[tape.Node] = []
    found: dict[int, Tensor] = {}
    try:
        for output, g in zip(outputs, cotangents, strict=True):
            tape.give(output._n, g._array(), heap)
        while heap:
            node = heapq.heappop(heap)
            g = node[tape.SLOT]
            node[tape.SLOT] = None
            hooked = hooks.hooks_of(node)
            if hooked is not None:
                g = hooked.incoming(Tensor._wrap(g))._array()
            if id(node) in wanted:
                found[id(node)] = Tensor._wrap(np.array(g))
            if id(node) not in through:
                continue
            _check_saved(node)
            (node[tape.BACKWARD] if hooked is None else hooked.outgoing)(node, g, heap)
            if not keep:
                tape.free(node)
    finally:
        for node in heap:
            node[tape.SLOT] = None
    return found


def _check_saved(node: tape.Node) -> None:
    """Raise unless what `node` saved is there, as it was."""
    if node[tape.SAVED] is None:
        raise RuntimeError(tape.FREED)
    tape.check_unmodified(node)


def _walk_tensors(
    nodes: list[tape.Node], outputs: Any, cotangents: Any, wanted: Collection[int], through: set[int], keep: bool
) -> dict[int, Tensor]:
    grads: dict[int, Any] = {}

    def give(node: tape.Node, g: Any) -> None:
        old = grads.get(id(node))
        if isinstance(g, Part):
            parts = grads.setdefault(id(node), {})
            parts[g.number] = g.g if g.number not in parts else parts[g.number] + g.g
        else:
            grads[id(node)] = g if old is None else old + g

    for output, g in zip(outputs, cotangents, strict=True):
        give(output._n, g)
    for node in nodes:
        g = grads.get(id(node))
        if g is None:
            continue
        hooked = hooks.hooks_of(node)
        if hooked is not None:
            g = grads[id(node)] = hooked.incoming(g)
        if id(node) not in through:
            continue
        _check_saved(node)
        with explained(node):
            given = tensor_shares(node, g)
            if hooked is not None and hooked.after:
                parents = [parent for parent, _ in given]
                given = zip(parents, hooked.leaving(node, [d for _, d in given], g), strict=True)
            for place, (parent, d) in enumerate(given):
                if state.anomaly.enabled and state.anomaly.check_nan:
                    check_nan(node, place, d)
                if d is not None:
                    give(parent, d)
        if not keep:
            tape.free(node)
    return {key: g for key, g in grads.items() if key in wanted}


def tensor_shares(node: tape.Node, g: Any) -> list[tuple[tape.Node, Any]]:
    """What each parent of `node` gets of `g`, computed on Tensors, so that it can be differentiated again."""
    function = tape.function_of(node)
    special = tape.tensor_rules.get(function)
    if special is not None:
        return special(node, g)
    if function not in tape.decoders:
        return function.tensor_shares(node, g)
    op, params, values, parents = tape.decoders[function](node)
    parent_of = {index: parent for index, parent, _ in parents}
    tensors = {name: _rebuild(op, name, value, node, parent_of, params) for name, value in values.items()}
    return [(parent, share(E, op, index, g, tensors, shape)) for index, parent, shape in parents]


def _rebuild(op: Any, name: str, value: Any, node: tape.Node, parent_of: dict[int, Any], params: Any) -> Any:
    """The Tensor behind a saved array: its history is the node's parent edge, so nodes need to save no Tensors."""
    if name in params or name.endswith(("_shape", "_dtype")):
        return value
    if name == "r":
        return with_node(value, node)
    index = op.args.index(name)
    if isinstance(value, list):
        return [with_node(v, parent_of.get(index + i)) for i, v in enumerate(value)]
    return with_node(value, parent_of.get(index))


def with_node(array: Any, node: tape.Node | None) -> Tensor | None:
    """A Tensor over `array` with the history `node`."""
    if array is None:
        return None
    t = Tensor._wrap(array)
    t._n = node
    return t


# --- anomaly mode


def check_nan(node: tape.Node, place: int, d: Any) -> None:
    """Raise RuntimeError if what `node` gives its parent number `place`, of those it has, has a nan."""
    array = (d.g if isinstance(d, Part) else d)._array() if d is not None else None
    if array is not None and array.dtype.kind in "fc" and np.isnan(array).any():
        number = [k for k, p in enumerate(node[tape.PARENTS :]) if p is not None][place]
        raise RuntimeError(f"Function '{tape.name_of(node)}' returned nan values in its {number}th output.")
