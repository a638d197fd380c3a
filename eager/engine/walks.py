"""The walk over the tape that chooses what it visits: the gradients of given tensors, and anomaly mode.

`backward()` on all leaves is the loop in `eager.core.tape`, which asks nothing, so that it is fast; this is for
everything else. What is carried are arrays, or Tensors: for gradients that can be differentiated again, for batches
(vmap), and for anomaly mode, which looks at what each node gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from eager.core import state, tape
from eager.core.grad_mode import set_grad_enabled
from eager.core.interpreter import on_arrays
from eager.core.sparse import Sparse
from eager.core.tensor import Tensor
from eager.engine import hooks
from eager.engine.anomaly import explained
from eager.engine.crossing import beside, crossings
from eager.engine.language import E
from graphc.ops.gradient import names_of_results, share


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


def crosses(outputs: Sequence[Tensor]) -> bool:
    """Whether some of the way back from `outputs` is on another device."""
    return any(node[tape.ABOUT].crosses for node in reachable([t._n for t in outputs]))


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
    """The gradient that arrives at each of the nodes `targets`, or None where none does.

    At a node with several outputs: the list of theirs, each or None.
    """
    wanted = {id(node) for node in targets}
    nodes = reachable(t._n for t in outputs)
    through: set[int] = set()  # nodes from which a target can be reached
    for node in reversed(nodes):
        if any(id(p) in wanted or id(p) in through for p in tape.parents_of(node)):
            through.add(id(node))
    # under an interpreter (vmap) the cotangents are no arrays
    on_tensors = (
        create_graph
        or state.anomaly.enabled
        or not all(map(on_arrays, outputs))
        or bool(crossings and any(node[tape.ABOUT].crosses for node in nodes))
    )
    carried = TENSORS if on_tensors else ARRAYS
    found: dict[int, Tensor] = {}
    with tape.lock, set_grad_enabled(create_graph):
        outer = [node[tape.SLOT] for node in nodes]  # what has arrived so far in a walk within which this one runs
        tape.walks.append(wanted | through)
        try:
            for node in nodes:
                node[tape.SLOT] = None
            for output, g in zip(outputs, cotangents, strict=True):
                _give(output._n, carried.of(g))
            for node in nodes:
                g = node[tape.SLOT]
                if g is None:
                    continue
                node[tape.SLOT] = None
                hooked = hooks.hooks_of(node)
                if hooked is not None:
                    g = carried.incoming(hooked, g)
                if id(node) in wanted:
                    found[id(node)] = carried.result(g)
                if id(node) in through:
                    _check_saved(node)
                    carried.pass_on(node, g, hooked)
                    if not keep:
                        tape.free(node)
        finally:
            tape.walks.pop()
            for node, slot in zip(nodes, outer, strict=True):
                node[tape.SLOT] = slot
    return [found.get(id(node)) for node in targets]


def _check_saved(node: tape.Node) -> None:
    """Raise unless what `node` saved is there, as it was."""
    if node[tape.SAVED] is None:
        raise RuntimeError(tape.FREED)
    tape.check_unmodified(node)


def _give(node: tape.Node, g: Any) -> None:
    """Add `g`, an array or a Tensor, to the gradient of `node`."""
    slot = node[tape.SLOT]
    node[tape.SLOT] = g if slot is None else slot + g


def _arrays_on(node: tape.Node, g: Any, hooked: hooks.Hooked | None) -> None:
    """Give the parents of `node` their shares of `g`."""
    (node[tape.BACKWARD] if hooked is None else hooked.outgoing)(node, g, [])


def _tensors_on(node: tape.Node, g: Any, hooked: hooks.Hooked | None) -> None:
    """Give the parents of `node` their shares of `g`, computed on Tensors."""
    if node[tape.ABOUT].number is not None:
        tape.hand_on(node, g, [])
        return
    with explained(node):
        shares = tensor_shares(node, g)
        if hooked is not None and hooked.after:
            shares = hooked.leaving(node, shares, g)
        for number, (parent, d) in enumerate(zip(node[tape.PARENTS :], shares, strict=True)):
            if parent is not None and d is not None:
                if not node[tape.ABOUT].crosses:  # else a rule may make it of constants
                    d = beside(d, next(x for x in tape.by_output(g) if x is not None))
                if state.anomaly.enabled and state.anomaly.check_nan:
                    check_nan(node, number, d)
                _give(parent, d)


class Carried(NamedTuple):
    """What a walk carries.

    of        f(cotangent): the same as what is carried
    incoming  f(hooked, g): what the hooks before a node leave of what has arrived there
    result    f(g): what is carried as a Tensor of the caller's own
    pass_on   f(node, g, hooked): gives the parents their shares
    """

    of: Callable[[Tensor], Any]
    incoming: Callable[[hooks.Hooked, Any], Any]
    result: Callable[[Any], Tensor]
    pass_on: Callable[[tape.Node, Any, hooks.Hooked | None], None]


def _copied(g: Any) -> Any:
    return hooks.each(lambda d: Tensor._wrap(d if d.__class__ is Sparse else np.array(d)), g)


ARRAYS = Carried(Tensor._array, hooks.Hooked.incoming_arrays, _copied, _arrays_on)
TENSORS = Carried(lambda g: g, hooks.Hooked.incoming, lambda g: g, _tensors_on)


def tensor_shares(node: tape.Node, g: Any) -> Sequence[Tensor | None]:
    """What each parent of `node` gets of `g`, computed on Tensors, so that it can be differentiated again."""
    about = node[tape.ABOUT]
    if about.decode is None:
        return about.on_tensors(node, g)
    op, params, values, parents = about.decode(node)
    parent_of = {index: parent for index, parent, _ in parents}
    tensors = {name: _rebuild(op, name, value, node, parent_of, params) for name, value in values.items()}
    shares = iter([share(E, op, index, g, tensors, shape) for index, _, shape in parents])
    return [None if p is None else next(shares) for p in node[tape.PARENTS :]]


def _rebuild(op: Any, name: str, value: Any, node: tape.Node, parent_of: dict[int, Any], params: Any) -> Any:
    """The Tensor behind a saved array: its history is the node's parent edge, so nodes need to save no Tensors."""
    if name in params or name.endswith(("_shape", "_dtype")):
        return value
    if name in names_of_results(op, "r"):
        return saved_result(op, name, value, node)
    index = op.args.index(name)
    if isinstance(value, list):
        return [with_node(v, parent_of.get(index + i)) for i, v in enumerate(value)]
    return with_node(value, parent_of.get(index))


def saved_result(op: Any, name: str, value: Any, node: tape.Node) -> Tensor | None:
    """A result of `op` that its `node` has saved under `name`, as a Tensor."""
    names = names_of_results(op, "r")
    return with_node(value, tape.output_nodes(node, len(names))[names.index(name)])


def with_node(array: Any, node: tape.Node | None) -> Tensor | None:
    """A Tensor over `array` with the history `node`."""
    if array is None:
        return None
    t = Tensor._wrap(array)
    t._n = node
    return t


def check_nan(node: tape.Node, number: int, d: Tensor) -> None:
    """Raise RuntimeError if `d`, what `node` gives its parent `number`, has a nan."""
    array = (d._d.values if d._d.__class__ is Sparse else d)._known()
    if array.dtype.kind in "fc" and np.isnan(array).any():
        raise RuntimeError(f"Function '{tape.name_of(node)}' returned nan values in its {number}th output.")
