"""`backward` and `grad`: seeding the tape, choosing what to visit, and gradients that can be differentiated again."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from eager.core import sparse, state, tape
from eager.core.interpreter import current_interpreter
from eager.core.layouts import laid_out
from eager.core.placed import Placed, data_of, filled, is_elsewhere
from eager.core.sparse import is_sparse
from eager.core.state import GRAD_ENABLED
from eager.core.tensor import Tensor
from eager.engine import hooks
from eager.engine.crossing import laid_as
from eager.engine.language import E
from eager.engine.node_names import named

IN_TRANSFORM = (
    "backward() called inside a functorch transform. This is not supported, please use functorch.grad or functorch.vjp "
    "instead or call backward() outside of functorch transforms."
)
NO_GRAD_FN = "element {index} of tensors does not require grad and does not have a grad_fn"
UNUSED = (
    "The differentiated Tensor at index {index} appears to not have been used in the graph. "
    "Set allow_unused=True if this is the desired behavior."
)


def as_tuple(x: Any) -> tuple[Any, ...]:
    single = x is None or hasattr(x, "output_nr")  # a Tensor or a GradientEdge
    return (x,) if single else tuple(x)  # type: ignore[arg-type]


def seeds(outputs: Sequence[Tensor], gradients: Any) -> list[Tensor]:
    """The cotangent of each output: the given one, or 1 for a one-element tensor. Raises PyTorch's errors."""
    given = as_tuple(gradients) if gradients is not None else (None,) * len(outputs)
    if len(given) < len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(given)} gradients")
    result = []
    for i, (output, g) in enumerate(zip(outputs, given, strict=False)):
        if output._n is None or tape.is_dead_end(output._n):
            raise RuntimeError(NO_GRAD_FN.format(index=i))
        if g is None:
            if math.prod(output._d.shape) != 1:
                raise RuntimeError("grad can be implicitly created only for scalar outputs")
            if output._dtype().kind == "c":
                raise RuntimeError(
                    f"grad can be implicitly created only for real scalar outputs but got {output.dtype}"
                )
            shape, dtype = output._d.shape, output._dtype()
            g = Tensor._wrap(filled(shape, dtype, 1, output._d))
        elif not isinstance(g, Tensor):
            raise TypeError(f"gradients can be either Tensors or None, but got {type(g).__name__}")
        elif is_sparse(output):  # of which the values have the history
            g = sparse.hooks["in_pattern"](g, output._d)
        elif g._d.shape != output._d.shape:
            raise RuntimeError(
                f"Mismatch in shape: grad_output[{i}] has a shape of {g.shape} and output[{i}] has a shape of "
                f"{output.shape}."
            )
        elif (g._dtype().kind == "c") != (output._dtype().kind == "c"):
            raise RuntimeError(
                "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in "
                f"dtype: grad_output[{i}] has a dtype of {g.dtype} and output[{i}] has a dtype of {output.dtype}."
            )
        result.append(g)
    return result


def node_of(x: Any) -> Any:
    """The node of a Tensor or GradientEdge to differentiate with respect to. RuntimeError if it has none."""
    node = x._n if isinstance(x, Tensor) else x.node._node
    if node is None:
        raise RuntimeError("One of the differentiated Tensors does not require grad")
    return node


def accumulate(node: tape.Node, g: Tensor, create_graph: bool, inputs: Any) -> None:
    """Add `g` to `.grad` of the leaf behind `node`, or of the one of `inputs` that has that node."""
    tensor = node[tape.PARENTS]() if tape.is_leaf(node) else next(t for t in inputs if t._n is node)
    if tensor._n is not None:  # else it is to have no gradient any more
        _add_gradient(tensor, g, create_graph)
    found = hooks.hooks_of(node)
    if found is not None:
        found.has_accumulated(node)


def _add_gradient(tensor: Any, g: Tensor, create_graph: bool) -> None:
    old = getattr(tensor, "_g", None)
    if old is None:
        tensor._g = made = named(E.clone(g), "CopyBackwards") if create_graph else g
        if made._d.__class__ is np.ndarray:
            made._d = laid_out(made._d, tensor._d, copy=False)
        elif made._d.__class__ is Placed and not create_graph:
            tensor._g = laid_as(made, tensor)  # others may have it, too
    elif create_graph:
        tensor._g = old + g
    elif is_elsewhere(old):
        current_interpreter().assign(old, E.add(old, g), "add")
    else:
        old._add_gradient(data_of(g))


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
    if state.active_transforms():
        raise RuntimeError(IN_TRANSFORM)
    outputs = as_tuple(tensors)
    cotangents = seeds(outputs, grad_tensors if grad_tensors is not None else grad_variables)
    if inputs is not None:
        inputs = as_tuple(inputs)
        if not inputs:
            raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
        if any(isinstance(t, Tensor) and t._n is None for t in inputs):
            raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    keep = bool(create_graph if retain_graph is None else retain_graph)
    inputs = inputs if inputs is None else tuple(map(_values, inputs))
    before = GRAD_ENABLED.set(create_graph)  # for hooks of every kind
    try:
        current_interpreter().backward(tuple(map(_values, outputs)), cotangents, inputs, create_graph, keep)
    finally:
        GRAD_ENABLED.reset(before)


def _values(x: Any) -> Any:
    """What has the history of `x`: the values of a sparse tensor, any other itself."""
    return x._d.values if isinstance(x, Tensor) and is_sparse(x) else x


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    materialize_grads: bool = False,
) -> Any:
    """The gradients of `outputs` with respect to `inputs`, as a tuple (a dict, of a dict). As `torch.autograd.grad`.

    With `create_graph` the results can themselves be differentiated, to any order.
    """
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    if isinstance(inputs, Mapping):
        found = grad(outputs, tuple(inputs.values()), grad_outputs, retain_graph, create_graph, only_inputs,
                     allow_unused, materialize_grads)  # fmt: skip
        return dict(zip(inputs, found, strict=True))
    outputs, inputs = as_tuple(outputs), as_tuple(inputs)
    if not inputs:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    cotangents = seeds(outputs, grad_outputs)
    for t in inputs:
        node_of(t)
    keep = bool(create_graph if retain_graph is None else retain_graph)
    with_history = [tuple(map(_values, tensors)) for tensors in (outputs, inputs)]
    found = current_interpreter().gradients(with_history[0], cotangents, with_history[1], create_graph, keep)
    result = []
    for i, (tensor, g) in enumerate(zip(inputs, found, strict=True)):
        if isinstance(g, list):
            g = g[tensor.output_nr]
        if g is None and materialize_grads:
            g = Tensor._wrap(filled(tensor._d.shape, tensor._dtype(), 0, tensor._d))
        if g is not None and isinstance(tensor, Tensor) and is_sparse(tensor):
            g = sparse.hooks["gradient"](tensor._d, g)
        if g is None and not allow_unused:
            raise RuntimeError(UNUSED.format(index=i))
        result.append(g)
    return tuple(result)


def backward_of(
    self: Tensor, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False, inputs: Any = None
) -> None:
    """Add the gradient of this tensor to `.grad` of the leaves it depends on. As `torch.Tensor.backward`."""
    backward(self, gradient, retain_graph, create_graph, inputs=inputs)
