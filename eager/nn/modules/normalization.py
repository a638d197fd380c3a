"""Normalization layers that keep no statistics."""

from __future__ import annotations

from typing import Any

from eager.core.tensor import Tensor
from eager.nn import functional as F
from eager.nn.layer import Layer
from eager.nn.parameters import add_parameters, affine_init

__all__ = ["CrossMapLRN2d", "GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]


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
