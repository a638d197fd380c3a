"""Gradient accumulation inside one program: a loss over a batch, a part of the batch at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eager import autograd
from eager.autograd import Function
from eager.core.grad_mode import enable_grad
from eager.core.tensor import Tensor
from eager.nn import Module
from eager.nn.modules.batchnorm import _BatchNorm
from graphc.capture.flow.control import scan

UNEVEN = "microbatched: a batch of {size} does not divide into {count} parts of one size"
NO_BATCH = "microbatched: expected tensors with one and the same first dimension, got {shapes}"
NOT_MEAN = "microbatched: the loss must be one number, the mean over the batch; got a tensor of shape {shape}"
STATISTICS = (
    "microbatched: {name} computes statistics of the batch, which are others for a part of it. Remedy: put it into "
    "eval() mode, or use a norm of single samples (GroupNorm, LayerNorm)"
)


class _Known(Function):
    """A value whose gradients have been computed with it."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, count: int, *tensors: Tensor) -> Tensor:
        ctx.save_for_backward(*tensors[count:])
        ctx.count = count
        return value.clone()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        gradients = [g * d for d in ctx.saved_tensors]
        return None, None, *gradients, *(None for _ in gradients)


def microbatched(loss: Callable[..., Tensor], model: Module, count: int) -> Callable[..., Tensor]:
    """A function that returns `loss(*batch)` and its gradients, computed on `count` parts of the batch, one by one.

    loss   f(*batch): one number, the mean over the batch of what each sample gives. The tensors of the batch have one
           and the same first dimension, a multiple of `count`
    model  whose parameters get gradients, which are added up; nothing else does

    Up to rounding it is the loss of the whole batch, and so are its gradients; they are there before `backward()`, and
    cannot be differentiated again. Activations are kept for one part only. Compiled, it is a loop in the program.
    Random masks (dropout) are drawn for each part: not those of the whole batch.

    Raises ValueError for batches that do not divide, losses that are no single number, and modules in training mode
    that compute statistics of the batch (batch norm).

    >>> import eager as torch, graphc
    >>> model = torch.nn.Linear(3, 1)
    >>> mean = lambda x, y: ((model(x) - y) ** 2).mean()
    >>> x, y = torch.ones(8, 3), torch.zeros(8, 1)
    >>> step = graphc.compile(graphc.microbatched(mean, model, 4))
    >>> bool(torch.isclose(step(x, y), mean(x, y)))
    True
    """
    if type(count) is not int or count < 1:
        raise ValueError(f"microbatched: count must be a positive integer, got {count!r}")

    def accumulated(*batch: Tensor) -> Tensor:
        _check(batch, model, count)
        parameters = [p for p in model.parameters() if p.requires_grad]
        if not parameters:
            return loss(*batch)
        dtype = parameters[0].dtype
        parts = [t.reshape(count, t.shape[0] // count, *t.shape[1:]) for t in batch]

        def body(carry: Any, part: Any) -> Any:
            with enable_grad():
                value = loss(*part)
                if value.dim():
                    raise ValueError(NOT_MEAN.format(shape=tuple(value.shape)))
                found = autograd.grad(value, parameters, allow_unused=True)
            total = carry[0] + value.detach().to(dtype)
            added = [s if d is None else s + d for s, d in zip(carry[1:], found, strict=True)]
            return (total, *added), None

        with autograd.no_grad():
            start = (parameters[0].new_zeros(()), *(p.detach().new_zeros(p.shape) for p in parameters))
            total, *sums = scan(body, start, tuple(parts))[0]
            value, gradients = total / count, [s / count for s in sums]
        return _Known.apply(value, len(parameters), *parameters, *gradients)

    return accumulated


def _check(batch: tuple[Any, ...], model: Module, count: int) -> None:
    shapes = [tuple(t.shape) for t in batch if isinstance(t, Tensor)]
    if len(shapes) != len(batch) or not shapes or len({s[:1] for s in shapes}) != 1 or not shapes[0]:
        raise ValueError(NO_BATCH.format(shapes=shapes))
    if shapes[0][0] % count or not shapes[0][0]:
        raise ValueError(UNEVEN.format(size=shapes[0][0], count=count))
    for name, module in model.named_modules():
        if isinstance(module, _BatchNorm) and (module.training or not module.track_running_stats):
            raise ValueError(STATISTICS.format(name=f"{type(module).__name__} {name!r}"))
