"""Batch normalization with the statistics of the batches of all processes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from eager.core.grad_mode import no_grad
from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.functional.joining import stack
from eager.nn.module import Module
from eager.nn.modules.batchnorm import _BatchNorm
from eager.nn.parameters import guard_training

__all__ = ["SyncBatchNorm"]

FEW_DIMS = "expected at least 2D input (got {ndim}D input)"
NO_CHANNELS = "SyncBatchNorm number of input channels should be non-zero"


class SyncBatchNorm(_BatchNorm):
    """`BatchNorm` of any number of dims over the batches of all processes of a group. As `torch.nn.SyncBatchNorm`.

    Each process sends the mean, the biased variance and the count of its batch, channel by channel; with the counts n
    these are joined as sum(n mean) / sum(n) and sum(n (var + (mean - joined mean)^2)) / sum(n). Gradients flow back
    through the exchange. Alone, and in evaluation, it is `BatchNorm`.
    """

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
                 track_running_stats: bool = True, process_group: Any = None, device: Any = None, dtype: Any = None, *,
                 bias: bool = True):  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        shape = tuple(input._d.shape)
        if len(shape) < 2:
            raise ValueError(FEW_DIMS.format(ndim=len(shape)))
        if not shape[1]:
            raise ValueError(NO_CHANNELS)

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, *) -> the same. Raises ValueError for fewer than two dimensions, or no channels."""
        self._check_input_dim(input)
        ranks = self._ranks() if guard_training(self) else ()
        if len(ranks) < 2:
            return super().forward(input)
        mean, variance, count = self._joined(input, ranks)
        if self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            momentum = 1.0 / self.num_batches_tracked.item() if self.momentum is None else self.momentum
            with no_grad():
                self.running_mean.lerp_(mean.detach(), momentum)
                self.running_var.lerp_(variance.detach() * (count / (count - 1).clamp(min=1)), momentum)
        channel = (1, self.num_features, *(1,) * (input.dim() - 2))
        # not `F.batch_norm` with these statistics: no gradient flows to those that it is given
        result = (input - mean.reshape(channel)) * (variance + self.eps).rsqrt().reshape(channel)
        if self.weight is not None:
            result = result * self.weight.reshape(channel)
        return result if self.bias is None else result + self.bias.reshape(channel)

    def _ranks(self) -> tuple[int, ...]:
        """The processes of the group; () before they have met."""
        from eager.processes.world import is_initialized, resolved

        return resolved(self.process_group).ranks if is_initialized() else ()

    def _joined(self, input: Tensor, ranks: tuple[int, ...]) -> tuple[Tensor, Tensor, Tensor]:
        """Mean, biased variance and count of the batches of all processes, of shapes (C,), (C,) and ()."""
        shape = tuple(input._d.shape)
        axis, channels = (0, *range(2, len(shape))), shape[1]
        count = shape[0] * math.prod(shape[2:])
        mean = input.sum(axis) / max(count, 1)
        centred = input - mean.reshape(1, channels, *(1,) * (len(shape) - 2))
        variance = centred.square().sum(axis) / max(count, 1)
        counted = E.full(shape=(channels,), value=float(count), dtype=np.dtype(mean._dtype()))
        every = E.all_gather(stack([mean, variance, counted]), ranks=ranks)
        means, variances, counts = every[:, 0], every[:, 1], every[:, 2]
        total = counts.sum(0)
        joined = (counts * means).sum(0) / total
        spread = (counts * (variances + (means - joined).square())).sum(0) / total
        return joined, spread, total[0]

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """`module` with a SyncBatchNorm in place of each BatchNorm in it, which keeps its parameters and statistics."""
        result = module
        if isinstance(module, _BatchNorm):
            result = cls(
                module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats,
                process_group, bias=module.bias is not None,
            )  # fmt: skip
            result._parameters.update(module._parameters)
            result._buffers.update(module._buffers)
            result.training = module.training
        for name, child in list(module.named_children()):
            result.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return result
