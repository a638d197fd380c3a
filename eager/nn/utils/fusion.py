"""A batch norm in evaluation mode as part of the layer before it. As `torch.nn.utils.fusion`."""

from __future__ import annotations

import copy
from typing import Any

from eager.core.parameter import Parameter
from eager.engine.language import E
from eager.functional.creation import ones_like, zeros_like

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]


def _fused(weight: Any, bias: Any, mean: Any, var: Any, eps: float, scale: Any, shift: Any, shape: Any) -> Any:
    """(weight, bias) of (w x + b - mean) / sqrt(var + eps) * scale + shift, the factors on w in `shape`."""
    dtype = weight.dtype if bias is None else bias.dtype
    bias = zeros_like(mean) if bias is None else bias
    scale = ones_like(mean) if scale is None else scale
    factor = scale * E.rsqrt(var + eps)
    shifted = (bias - mean) * factor + (zeros_like(mean) if shift is None else shift)
    fused = (weight * factor.reshape(shape)).to(dtype=weight.dtype), shifted.to(dtype=dtype)
    return tuple(Parameter(new, old.requires_grad) for new, old in zip(fused, (weight, bias), strict=True))


def fuse_conv_bn_weights(conv_w: Any, conv_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any, bn_b: Any,
                         transpose: bool = False) -> tuple[Parameter, Parameter]:  # fmt: skip
    """Weight and bias of a convolution (`transpose`: a transposed one) and the batch norm after it in one."""
    shape = ([1, -1] if transpose else [-1, 1]) + [1] * (conv_w.dim() - 2)
    return _fused(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, shape)


def fuse_linear_bn_weights(linear_w: Any, linear_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any,
                           bn_b: Any) -> tuple[Parameter, Parameter]:  # fmt: skip
    """Weight and bias of a Linear and the batch norm after it in one."""
    return _fused(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, [-1, 1])


def _copy_of(layer: Any, bn: Any) -> Any:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    return copy.deepcopy(layer)


def _statistics(bn: Any) -> tuple[Any, ...]:
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")
    return bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """A convolution that does what `conv` and then `bn` do. AssertionError unless both are in evaluation mode."""
    fused = _copy_of(conv, bn)
    fused.weight, fused.bias = fuse_conv_bn_weights(fused.weight, fused.bias, *_statistics(bn), transpose=transpose)
    return fused


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """A Linear that does what `linear` and then `bn` do. AssertionError unless both are in evaluation mode, and fit."""
    fused = _copy_of(linear, bn)
    if bn.num_features not in (linear.out_features, 1):
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1, got linear.out_features="
            f"{linear.out_features} and bn.num_features={bn.num_features}"
        )
    fused.weight, fused.bias = fuse_linear_bn_weights(fused.weight, fused.bias, *_statistics(bn))
    return fused
