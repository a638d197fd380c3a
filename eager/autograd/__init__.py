"""Automatic differentiation. As `torch.autograd`."""

from __future__ import annotations

from typing import Any

from eager.core.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled, set_multithreading_enabled
from eager.core.tensor import Tensor
from eager.engine import backward as engine
from eager.engine.backward import as_tuple, backward
from graphc.lazy import lazy

__all__ = [
    "Variable", "backward", "enable_grad", "grad", "inference_mode", "no_grad", "set_grad_enabled",
    "set_multithreading_enabled",
]  # fmt: skip

# public name -> module that has it, imported at first use
_LATER = {
    "Function": "eager.engine.function",
    **dict.fromkeys(("detect_anomaly", "set_detect_anomaly"), "eager.autograd.anomaly_mode"),
    **dict.fromkeys(("gradcheck", "gradgradcheck"), "eager.autograd.gradcheck"),
}
__getattr__, __dir__ = lazy(
    __name__, _LATER, ("anomaly_mode", "forward_ad", "function", "functional", "graph", "profiler")
)


def Variable(data: Any, requires_grad: bool = False) -> Tensor:
    """`data` without history, requiring grad if asked: what tensors do by themselves since PyTorch 0.4."""
    return data.detach().requires_grad_(requires_grad)


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
) -> Any:
    """The gradients of `outputs` with respect to `inputs`, as a tuple (a dict, of a dict). As `torch.autograd.grad`.

    With `create_graph` the results can themselves be differentiated, to any order. With `is_grads_batched` each of
    `grad_outputs` has a first dim over which the gradients are stacked.
    """
    options: dict[str, Any] = dict(allow_unused=allow_unused, materialize_grads=materialize_grads)
    if not is_grads_batched:
        return engine.grad(outputs, inputs, grad_outputs, retain_graph, create_graph, only_inputs, **options)
    from eager.func.mapping import vmap

    def one(*cotangents: Any) -> Any:
        return engine.grad(outputs, inputs, cotangents, retain_graph, create_graph, only_inputs, **options)

    return vmap(one)(*as_tuple(grad_outputs))
