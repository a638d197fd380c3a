"""Batch normalization as modules."""

from __future__ import annotations

from typing import Any

from eager import state
from eager.dtypes import int64
from eager.language import E
from eager.nn import functional as F
from eager.nn import init
from eager.nn.layers import new_parameter
from eager.nn.module import Module
from eager.tensor import Tensor


class _BatchNorm(Module):
    """Zero mean and unit variance of each channel over the batch, then weight * x + bias.

    In training the running statistics move by `momentum` towards the batch's; in evaluation they are used instead.
    """

    ndims: tuple[int, ...]

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ):
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        shape = (num_features,)
        self.register_parameter("weight", new_parameter(shape, device, dtype) if affine else None)
        self.register_parameter("bias", new_parameter(shape, device, dtype) if affine and bias else None)
        tracked = track_running_stats
        self.register_buffer("running_mean", new_parameter(shape, device, dtype).detach() if tracked else None)
        self.register_buffer("running_var", new_parameter(shape, device, dtype).detach() if tracked else None)
        count = E.full(shape=(), value=0, dtype=int64.numpy) if tracked else None
        self.register_buffer("num_batches_tracked", count)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set weight and running variance to ones, bias, running mean and count to zeros."""
        for ones in (self.weight, self.running_var):
            if ones is not None:
                init.ones_(ones)
        for zeros in (self.bias, self.running_mean, self.num_batches_tracked):
            if zeros is not None:
                init.zeros_(zeros)

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, *) -> the same. Raises ValueError for a wrong number of dimensions."""
        ndim = len(input._d.shape)
        if ndim not in self.ndims:
            raise ValueError(f"expected {' or '.join(f'{n}D' for n in self.ndims)} input (got {ndim}D input)")
        interpreter = state.current_interpreter()
        if interpreter is not None:
            interpreter.guard(lambda: self.training, self.training)
        momentum = self.momentum
        if self.training and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if momentum is None:
                momentum = 1.0 / float(self.num_batches_tracked)
        use_batch = self.training or self.running_mean is None
        return F.batch_norm(
            input, self.running_mean, self.running_var, self.weight, self.bias, use_batch, momentum or 0.0, self.eps
        )

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )


class BatchNorm1d(_BatchNorm):
    """Of (N, C) or (N, C, L)."""

    ndims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Of (N, C, H, W)."""

    ndims = (4,)
