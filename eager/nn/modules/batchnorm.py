"""Normalization: by batches, by instances, by layers, by groups."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from eager.core.dtypes import int64
from eager.core.grad_mode import no_grad
from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.functional.joining import stack
from eager.nn import functional as F
from eager.nn import init
from eager.nn.layer import Layer
from eager.nn.module import Module
from eager.nn.parameters import add_parameters, affine_init, guard_training, new_parameter

__all__ = [
    "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "CrossMapLRN2d", "GroupNorm", "InstanceNorm1d", "InstanceNorm2d",
    "InstanceNorm3d", "LayerNorm", "LocalResponseNorm", "RMSNorm", "SyncBatchNorm",
]  # fmt: skip


class _NormBase(
    Layer,
    shown="{num_features}, eps={eps}, momentum={momentum}, affine={affine}, bias={bias}, "
    "track_running_stats={track_running_stats}",
):
    """Zero mean and unit variance of channels, then weight * x + bias.

    In training the running statistics move by `momentum` towards the batch's; in evaluation they are used instead.
    """

    ndims: tuple[int, ...]
    _version = 2

    def _begin(self, arguments: dict[str, Any]) -> None:
        """Keep the arguments of `__init__`, and make parameters and statistics."""
        self._keep(arguments)
        device, dtype, shape = arguments["device"], arguments["dtype"], (self.num_features,)
        add_parameters(
            self, device, dtype, weight=shape if self.affine else None,
            bias=shape if self.affine and arguments["bias"] else None,
        )  # fmt: skip
        for name in ("running_mean", "running_var"):
            tracked = new_parameter(shape, device, dtype).detach() if self.track_running_stats else None
            self.register_buffer(name, tracked)
        self.register_buffer("num_batches_tracked", no_batches() if self.track_running_stats else None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Set the running variance to ones, the mean and the count to zeros."""
        if self.running_var is not None:
            init.ones_(self.running_var)
        for zeros in (self.running_mean, self.num_batches_tracked):
            if zeros is not None:
                init.zeros_(zeros)

    def reset_parameters(self) -> None:
        """Set weight to ones, bias to zeros, and the running statistics anew."""
        self.reset_running_stats()
        affine_init(self)

    def _check_input_dim(self, input: Tensor) -> None:
        ndim = len(input._d.shape)
        if ndim not in self.ndims:
            raise ValueError(f"expected {' or '.join(f'{n}D' for n in self.ndims)} input (got {ndim}D input)")

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: Any, *args: Any, **kwargs: Any
    ) -> None:
        # the count came with version 2: older states keep the one that is there
        key = f"{prefix}num_batches_tracked"
        if (local_metadata.get("version") or 1) < 2 and self.track_running_stats and key not in state_dict:
            count = self.num_batches_tracked
            state_dict[key] = count if count is not None else no_batches()
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *args, **kwargs)


def no_batches() -> Tensor:
    """The number of batches that have moved the statistics of a new layer."""
    return E.full(shape=(), value=0, dtype=int64.numpy)


class _BatchNorm(_NormBase):
    """Statistics are over the batch and all places."""

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
                 track_running_stats: bool = True, device: Any = None, dtype: Any = None, *,
                 bias: bool = True):  # fmt: skip
        self._begin(locals())

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, *) -> the same. Raises ValueError for a wrong number of dimensions."""
        self._check_input_dim(input)
        training = guard_training(self)
        momentum = self.momentum
        if training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if momentum is None:
                momentum = 1.0 / self.num_batches_tracked.item()
        use_batch = training or (self.running_mean is None and self.running_var is None)
        moved = not training or self.track_running_stats
        return F.batch_norm(
            input, self.running_mean if moved else None, self.running_var if moved else None, self.weight, self.bias,
            use_batch, momentum or 0.0, self.eps,
        )  # fmt: skip


class BatchNorm1d(_BatchNorm):
    """Of (N, C) or (N, C, L)."""

    ndims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Of (N, C, H, W)."""

    ndims = (4,)


class BatchNorm3d(_BatchNorm):
    """Of (N, C, D, H, W)."""

    ndims = (5,)


class _InstanceNorm(_NormBase):
    """Statistics are over the places of one sample."""

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = False,
                 track_running_stats: bool = False, device: Any = None, dtype: Any = None, *,
                 bias: bool = True):  # fmt: skip
        self._begin(locals())

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, *) or (C, *) -> the same. Raises ValueError for a wrong number of dimensions."""
        self._check_input_dim(input)
        shape = tuple(input._d.shape)
        batched = len(shape) == self.ndims[-1]
        channels = shape[1 if batched else 0]
        if channels != self.num_features:
            at = f"dim={1 if batched else 0}"
            if self.affine:
                raise ValueError(
                    f"expected input's size at {at} to match num_features ({self.num_features}), but got: {channels}."
                )
            warnings.warn(
                f"input's size at {at} does not match num_features. You can silence this warning by not passing in "
                "num_features, which is not used because affine=False",
                stacklevel=2,
            )
        x = input if batched else E.reshape(input, shape=(1, *shape))
        use_input = guard_training(self) or not self.track_running_stats
        result = F.instance_norm(
            x, self.running_mean, self.running_var, self.weight, self.bias, use_input, self.momentum or 0.0, self.eps
        )
        return result if batched else E.reshape(result, shape=shape)


class InstanceNorm1d(_InstanceNorm):
    """Of (N, C, L) or (C, L)."""

    ndims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Of (N, C, H, W) or (C, H, W)."""

    ndims = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Of (N, C, D, H, W) or (C, D, H, W)."""

    ndims = (4, 5)


def replace_all_batch_norm_modules_(root: Any) -> Any:
    """Let every batch norm in `root` use the statistics of its batch and keep none: what `vmap` can map. Returns it.

    As `torch.func.replace_all_batch_norm_modules_`.
    """
    for module in root.modules():
        if isinstance(module, _BatchNorm):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root


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


class _Normalization(Layer):
    def reset_parameters(self) -> None:
        """Set weight to ones and bias to zeros."""
        affine_init(self)


def _as_shape(sizes: Any) -> tuple[int, ...]:
    return (sizes,) if isinstance(sizes, int) else tuple(sizes)


class LayerNorm(
    _Normalization, shown="{normalized_shape}, eps={eps}, elementwise_affine={elementwise_affine}, bias={bias}"
):
    """Zero mean and unit variance over the last dimensions, of sizes `normalized_shape`, then weight * x + bias."""

    def __init__(self, normalized_shape: Any, eps: float = 1e-5, elementwise_affine: bool = True, bias: bool = True,
                 device: Any = None, dtype: Any = None):  # fmt: skip
        self._keep(locals())
        self.normalized_shape = _as_shape(normalized_shape)
        shape = self.normalized_shape if elementwise_affine else None
        add_parameters(self, device, dtype, weight=shape, bias=shape if bias else None)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)


class RMSNorm(_Normalization, shown="{normalized_shape}, eps={eps}, elementwise_affine={elementwise_affine}"):
    """x / sqrt(mean(x^2) + eps) over the last dimensions, of sizes `normalized_shape`, times weight."""

    def __init__(self, normalized_shape: Any, eps: float | None = None, elementwise_affine: bool = True,
                 device: Any = None, dtype: Any = None):  # fmt: skip
        self._keep(locals())
        self.normalized_shape = _as_shape(normalized_shape)
        add_parameters(self, device, dtype, weight=self.normalized_shape if elementwise_affine else None)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)


class GroupNorm(_Normalization, shown="{num_groups}, {num_channels}, eps={eps}, affine={affine}, bias={bias}"):
    """Zero mean and unit variance over each of `num_groups` groups of channels, then weight * x + bias."""

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, device: Any = None,
                 dtype: Any = None, *, bias: bool = True):  # fmt: skip
        self._keep(locals())
        if num_channels % num_groups != 0:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        shape = (num_channels,) if affine else None
        add_parameters(self, device, dtype, weight=shape, bias=shape if bias else None)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)


class LocalResponseNorm(Layer, function=F.local_response_norm, shown="{size}, alpha={alpha}, beta={beta}, k={k}"):
    """x / (k + alpha * mean of squares over `size` channels)^beta."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0):
        self._keep(locals())


class CrossMapLRN2d(LocalResponseNorm):
    """LocalResponseNorm of images, under its old name."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1):
        super().__init__(size, alpha, beta, k)
