# Written by `python -m tests.stubs`: change the sources or the tables there, and run it again.
"""Automatic differentiation. As `torch.autograd`."""

from collections.abc import Sequence
from eager.autograd import anomaly_mode as anomaly_mode, forward_ad as forward_ad, function as function, functional as functional, graph as graph, profiler as profiler
from eager.autograd.anomaly_mode import detect_anomaly as detect_anomaly, set_detect_anomaly as set_detect_anomaly
from eager.autograd.gradcheck import gradcheck as gradcheck, gradgradcheck as gradgradcheck
from eager.core.grad_mode import enable_grad as enable_grad, inference_mode as inference_mode, no_grad as no_grad, set_grad_enabled as set_grad_enabled, set_multithreading_enabled as set_multithreading_enabled
from eager.core.tensor import Tensor
from eager.engine.backward import backward as backward
from eager.engine.function import Function as Function
from typing import overload

def Variable(data: Tensor, requires_grad: bool = False) -> Tensor:
    """`data` without history, requiring grad if asked: what tensors do by themselves since PyTorch 0.4."""

@overload
def grad(outputs: Tensor | Sequence[Tensor], inputs: dict[str, Tensor], grad_outputs: Tensor | Sequence[Tensor | None] | None = None, retain_graph: bool | None = None, create_graph: bool = False, only_inputs: bool = True, allow_unused: bool | None = None, is_grads_batched: bool = False, materialize_grads: bool = False) -> dict[str, Tensor]:
    """The gradients of `outputs` with respect to `inputs`, as a tuple (a dict, of a dict). As `torch.autograd.grad`.

    With `create_graph` the results can themselves be differentiated, to any order. With `is_grads_batched` each of
    `grad_outputs` has a first dim over which the gradients are stacked.
    """
@overload
def grad(outputs: Tensor | Sequence[Tensor], inputs: Tensor | Sequence[Tensor], grad_outputs: Tensor | Sequence[Tensor | None] | None = None, retain_graph: bool | None = None, create_graph: bool = False, only_inputs: bool = True, allow_unused: bool | None = None, is_grads_batched: bool = False, materialize_grads: bool = False) -> tuple[Tensor, ...]: ...
