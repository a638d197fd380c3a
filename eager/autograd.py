"""`backward` and `grad`: seeding the tape, choosing what to visit, and gradients that can be differentiated again."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from eager import tape
from eager.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from eager.language import E
from eager.state import current_interpreter
from eager.tensor import Tensor
from graphc.ops.gradient import share

__all__ = ["backward", "enable_grad", "grad", "inference_mode", "no_grad", "set_grad_enabled"]

NO_GRAD_FN = "element {index} of tensors does not require grad and does not have a grad_fn"
UNUSED = (
    "The differentiated Tensor at index {index} appears to not have been used in the graph. "
    "Set allow_unused=True if this is the desired behavior."
)


def as_tuple(x: Any) -> tuple[Any, ...]:
    return (x,) if isinstance(x, Tensor) or x is None else tuple(x)


def seeds(outputs: Sequence[Tensor], gradients: Any) -> list[Tensor]:
    """The cotangent of each output: the given one, or 1 for a one-element tensor. Raises PyTorch's errors."""
    given = as_tuple(gradients) if gradients is not None else (None,) * len(outputs)
    if len(given) != len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(given)} gradients")
    result = []
    for i, (output, g) in enumerate(zip(outputs, given, strict=True)):
        if output._n is None:
            raise RuntimeError(NO_GRAD_FN.format(index=i))
        if g is None:
            if math.prod(output._d.shape) != 1:
                raise RuntimeError("grad can be implicitly created only for scalar outputs")
            if output._dtype().kind == "c":
                raise RuntimeError(
                    f"grad can be implicitly created only for real scalar outputs but got {output.dtype}"
                )
            g = Tensor._wrap(np.ones(output._d.shape, output._dtype()))
        elif not isinstance(g, Tensor):
            raise TypeError(f"gradients can be either Tensors or None, but got {type(g).__name__}")
        elif g._d.shape != output._d.shape:
            raise RuntimeError(
                f"Mismatch in shape: grad_output[{i}] has a shape of {g.shape} and output[{i}] has a shape of "
                f"{output.shape}."
            )
        result.append(g)
    return result


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Accumulate into `.grad` of the leaves (or of `inputs` only) the gradients of `tensors`.

    As `torch.autograd.backward`. Raises RuntimeError for a tensor that requires no grad, a non-scalar without a
    gradient, gradients of the wrong shape, and a graph whose saved values have been freed.
    """
    outputs = as_tuple(tensors)
    cotangents = seeds(outputs, grad_tensors if grad_tensors is not None else grad_variables)
    if inputs is not None:
        inputs = as_tuple(inputs)
        if not inputs:
            raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    keep = bool(create_graph if retain_graph is None else retain_graph)
    interpreter = current_interpreter()
    if interpreter is not None:
        interpreter.backward(outputs, cotangents, inputs, create_graph, keep)
        return
    if create_graph or inputs is not None:
        targets = leaves_of(outputs) if inputs is None else inputs
        found = _gradients(outputs, cotangents, targets, keep, create_graph)
        for target, g in zip(targets, found, strict=True):
            if g is not None:
                old = getattr(target, "_g", None)
                target._g = g if old is None else old + g
        return
    heap: list[tape.Node] = []
    while cotangents:  # taken out one by one: a leaf may take over a gradient that nobody else holds
        tape.give(outputs[len(cotangents) - 1]._n, cotangents.pop()._array(), heap)
    tape.run(heap, keep)


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """The gradients of `outputs` with respect to `inputs`, as a tuple. As `torch.autograd.grad`.

    With `create_graph` the results can themselves be differentiated, to any order.
    """
    if is_grads_batched:
        raise NotImplementedError("autograd.grad(is_grads_batched=True) is not supported yet")
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    outputs, inputs = as_tuple(outputs), as_tuple(inputs)
    if not inputs:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    cotangents = seeds(outputs, grad_outputs)
    for tensor in inputs:
        if tensor._n is None:
            raise RuntimeError("One of the differentiated Tensors does not require grad")
    keep = bool(create_graph if retain_graph is None else retain_graph)
    interpreter = current_interpreter()
    if interpreter is not None:
        found = interpreter.gradients(outputs, cotangents, inputs, create_graph, keep)
    else:
        found = _gradients(outputs, cotangents, inputs, keep, create_graph)
    result = []
    for i, (tensor, g) in enumerate(zip(inputs, found, strict=True)):
        if g is None and materialize_grads:
            g = Tensor._wrap(np.zeros(tensor._d.shape, tensor._dtype()))
        if g is None and not allow_unused:
            raise RuntimeError(UNUSED.format(index=i))
        result.append(g)
    return tuple(result)


# --- gradients of chosen tensors


def reachable(roots: Iterable[tape.Node]) -> list[tape.Node]:
    """Every node that the gradient of `roots` can reach, in the order in which backward visits them."""
    seen: dict[int, tape.Node] = {}
    stack = list(roots)
    while stack:
        node = stack.pop()
        if id(node) not in seen:
            seen[id(node)] = node
            stack.extend(tape.parents_of(node))
    return sorted(seen.values(), key=lambda node: node[0])


def leaves_of(outputs: Sequence[Tensor]) -> list[Tensor]:
    """The live leaf tensors that `outputs` depend on."""
    found = [n[tape.PARENTS]() for n in reachable(t._n for t in outputs) if tape.is_leaf(n)]
    return [t for t in found if t is not None]


def _gradients(
    outputs: Sequence[Tensor], cotangents: Sequence[Tensor], inputs: Sequence[Tensor], keep: bool, create_graph: bool
) -> list[Tensor | None]:
    targets = {id(t._n) for t in inputs}
    nodes = reachable(t._n for t in outputs)
    through: set[int] = set()  # nodes from which a target can be reached
    for node in reversed(nodes):
        if any(id(p) in targets or id(p) in through for p in tape.parents_of(node)):
            through.add(id(node))
    walk = _walk_tensors if create_graph else _walk_arrays
    with tape.lock:
        found = walk(nodes, outputs, cotangents, targets, through, keep)
    return [found.get(id(t._n)) for t in inputs]


def _walk_arrays(
    nodes: list[tape.Node], outputs: Any, cotangents: Any, targets: set[int], through: set[int], keep: bool
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
            if id(node) in targets:
                found[id(node)] = Tensor._wrap(np.array(g))
            if id(node) not in through:
                continue
            if node[tape.SAVED] is None:
                raise RuntimeError(tape.FREED)
            tape.check_unmodified(node)
            node[tape.BACKWARD](node, g, heap)
            if node[tape.SAVED] and not keep:
                node[tape.SAVED] = None
    finally:
        for node in heap:
            node[tape.SLOT] = None
    return found


def _walk_tensors(
    nodes: list[tape.Node], outputs: Any, cotangents: Any, targets: set[int], through: set[int], keep: bool
) -> dict[int, Tensor]:
    grads: dict[int, Tensor] = {}

    def give(node: tape.Node, g: Tensor) -> None:
        old = grads.get(id(node))
        grads[id(node)] = g if old is None else old + g

    for output, g in zip(outputs, cotangents, strict=True):
        give(output._n, g)
    for node in nodes:
        g = grads.get(id(node))
        if g is None or id(node) not in through:
            continue
        if node[tape.SAVED] is None:
            raise RuntimeError(tape.FREED)
        tape.check_unmodified(node)
        for parent, d in tensor_shares(node, g):
            give(parent, d)
        if node[tape.SAVED] and not keep:
            node[tape.SAVED] = None
    return {key: g for key, g in grads.items() if key in targets}


def tensor_shares(node: tape.Node, g: Tensor) -> list[tuple[tape.Node, Tensor]]:
    """What each parent of `node` gets of `g`, computed on Tensors, so that it can be differentiated again."""
    special = tape.tensor_rules.get(node[tape.BACKWARD])
    if special is not None:
        return special(node, g)
    op, params, values, parents = tape.decoders[node[tape.BACKWARD]](node)
    parent_of = {index: parent for index, parent, _ in parents}
    tensors = {name: _rebuild(op, name, value, node, parent_of, params) for name, value in values.items()}
    return [(parent, share(E, op, index, g, tensors, shape)) for index, parent, shape in parents]


def _rebuild(op: Any, name: str, value: Any, node: tape.Node, parent_of: dict[int, Any], params: Any) -> Any:
    """The Tensor behind a saved array: its history is the node's parent edge, so nodes need to save no Tensors."""
    if name in params or name.endswith(("_shape", "_dtype")):
        return value
    if name == "r":
        return _with_node(value, node)
    index = op.args.index(name)
    if isinstance(value, list):
        return [_with_node(v, parent_of.get(index + i)) for i, v in enumerate(value)]
    return _with_node(value, parent_of.get(index))


def _with_node(array: Any, node: tape.Node | None) -> Tensor | None:
    if array is None:
        return None
    t = Tensor._wrap(array)
    t._n = node
    return t
