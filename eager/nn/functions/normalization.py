"""Normalization. As in `torch.nn.functional`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from eager.core import operands
from eager.core.tensor import Tensor
from eager.engine.conversion import converted
from eager.engine.inplace import assign
from eager.engine.language import E
from eager.engine.node_names import whole
from eager.functional.arguments import constant, shape_of
from eager.functional.norms import vector_norm
from eager.functional.precision import rounds_once
from eager.nn.functions.padding import pad
from eager.nn.functions.pooling import avg_pool2d, avg_pool3d
from graphc.ops.dtypes import is_floating, is_half, is_inexact
from graphc.ops.rules import torch_name

__all__ = ["batch_norm", "group_norm", "instance_norm", "layer_norm", "local_response_norm", "normalize", "rms_norm"]

FEW_VALUES = "Expected more than 1 value per channel when training, got input size torch.Size({shape})"


def _check_dtype(input: Tensor, kernel: str, *parameters: Tensor | None) -> None:
    """Raise PyTorch's errors for an input that is not real and floating, and for parameters of another dtype."""
    dtype = input._dtype()
    if not is_floating(dtype):
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{torch_name(dtype)}'")
    for t in parameters:
        if t is not None and t._dtype() != dtype and (kernel != "batch_norm" or not is_half(t._dtype())):
            rest = "expect parameter to have scalar type of Float"
            if kernel == "batch_norm":
                rest = "all inputs must share same datatype."
            raise RuntimeError(f"mixed dtype (CPU): {rest}")


def _affine(x: Tensor, weight: Tensor | None, bias: Tensor | None, shape: tuple[int, ...] | None = None) -> Tensor:
    """x * weight + bias, both reshaped to `shape` if given."""
    for operand, combine in ((weight, E.mul), (bias, E.add)):
        if operand is not None:
            x = combine(x, operand if shape is None else E.reshape(operand, shape=shape))
    return x


def _last_dims(input: Tensor, normalized_shape: Any, weight: Tensor | None, bias: Tensor | None, name: str,
               comma: str) -> tuple[int, ...]:  # fmt: skip
    """The axes that `normalized_shape` covers. Raises PyTorch's errors for shapes that do not fit."""
    shape = tuple(shape_of(input, name))
    if isinstance(normalized_shape, int):
        raise TypeError(f"{name}(): argument 'normalized_shape' (position 2) must be tuple of ints, not int")
    over = tuple(normalized_shape)
    if not over:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
            "normalized_shape = []"
        )
    for what, operand in (("weight", weight), ("bias", bias)):
        if operand is not None and tuple(operands.shape(operand)) != over:
            raise RuntimeError(
                f"Expected {what} to be of same shape as normalized_shape, but got {what} of shape "
                f"{list(operand._d.shape)} and normalized_shape = {list(over)}"
            )
    if len(shape) < len(over) or shape[len(shape) - len(over) :] != over:
        raise RuntimeError(
            f"Given normalized_shape={list(over)}, expected input with shape [*{comma}{', '.join(map(str, over))}], "
            f"but got input of size{list(shape)}"
        )
    return tuple(range(len(shape) - len(over), len(shape)))


@whole("NativeLayerNormBackward0")
@rounds_once
def layer_norm(input: Tensor, normalized_shape: Any, weight: Tensor | None = None, bias: Tensor | None = None,
               eps: float = 1e-5) -> Tensor:  # fmt: skip
    """(input - mean) / sqrt(variance + eps) over the last dims, times weight plus bias. As in PyTorch."""
    axis = _last_dims(input, normalized_shape, weight, bias, "layer_norm", ", ")
    _check_dtype(input, "LayerNormKernelImpl", weight, bias)
    return _affine(E.standardize(input, axis=axis, eps=eps), weight, bias)


@rounds_once
def rms_norm(input: Tensor, normalized_shape: Any, weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    """input / sqrt(mean(input^2) + eps) over the last dims, times weight. As in PyTorch."""
    axis = _last_dims(input, normalized_shape, weight, None, "rms_norm", "")
    if not is_inexact(input._dtype()):
        _check_dtype(input, "rms_norm")
    if eps is None:
        eps = float(np.finfo(input._dtype()).eps)
    result = E.mul(input, E.rsqrt(E.add(E.mean(E.square(input), axis=axis, keepdims=True), eps)))
    return result if weight is None else E.mul(result, weight)


def _check_features(count: int, **given: Tensor | None) -> None:
    for name, t in given.items():
        if t is not None and math.prod(t._d.shape) != count:
            raise RuntimeError(f"{name} should contain {count} elements not {math.prod(t._d.shape)}")


@whole("NativeBatchNormBackward0")
@rounds_once(keep=("running_mean", "running_var"))
def batch_norm(input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = None,
               bias: Tensor | None = None, training: bool = False, momentum: float = 0.1,
               eps: float = 1e-5) -> Tensor:  # fmt: skip
    """Normalization of each channel (dim 1) over all other dims. As `torch.nn.functional.batch_norm`.

    While `training`, with the statistics of `input`, which also move the running ones (their variance is unbiased).
    """
    shape = shape_of(input, "batch_norm")
    channels = shape[1] if len(shape) > 1 else 0
    axis = (0, *range(2, len(shape)))
    channel = (1, channels, *(1,) * (len(shape) - 2))
    count = shape[0] * math.prod(shape[2:]) if shape else 1
    if training and count == 1:
        raise ValueError(FEW_VALUES.format(shape=list(shape)))
    if eps <= 0.0 if training else eps < 0.0:
        rule = "positive during training" if training else "non-negative"
        raise ValueError(f"batch_norm eps must be {rule}, but got {eps}")
    if not training:
        for name, t in (("running_mean", running_mean), ("running_var", running_var)):
            if t is None:
                raise RuntimeError(f"{name} must be defined in evaluation mode")
    _check_features(channels, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias)
    _check_dtype(input, "batch_norm", weight, bias, running_mean, running_var)
    if not math.prod(shape):
        return _affine(E.mul(input, 1), weight, bias, channel)
    if training:
        _move(input, running_mean, running_var, axis, momentum)
        return _affine(E.standardize(input, axis=axis, eps=eps), weight, bias, channel)
    return _standard(input, running_mean, running_var, weight, bias, channel, eps)


def _standard(input: Tensor, mean: Any, variance: Any, weight: Tensor | None, bias: Tensor | None,
              channel: tuple[int, ...], eps: float) -> Tensor:  # fmt: skip
    """Normalization by statistics of each channel that are given: one product and one sum, as in PyTorch."""
    mean, variance = (converted(t, input._dtype()) for t in (mean, variance))
    scale = _affine(E.rsqrt(E.add(variance, eps)), weight, None)
    shift = E.neg(E.mul(mean, scale)) if bias is None else E.sub(bias, E.mul(mean, scale))
    return _affine(input, scale, shift, channel)


def _move(input: Tensor, mean: Tensor | None, variance: Tensor | None, axis: tuple[int, ...], momentum: float) -> None:
    """Move running statistics towards those of `input` over `axis`, and over the batch; the variance is unbiased."""
    if mean is None and variance is None:
        return
    given = E.stop_gradient(input)
    average = E.mean(given, axis=axis, keepdims=True)
    if mean is not None:
        _move_one(mean, average, momentum, 1.0)
    if variance is not None:
        count = math.prod(input._d.shape[k] for k in axis)
        spread = E.mean(E.square(E.sub(given, average)), axis=axis, keepdims=True)
        _move_one(variance, spread, momentum, count / (count - 1))


def _move_one(running: Tensor, batch: Tensor, momentum: float, factor: float) -> None:
    """running = (1 - momentum) * running + momentum * factor * batch, a mean over dim 0"""
    shape = tuple(running._d.shape)
    if batch._d.shape[0] > 1:
        batch = E.mean(batch, axis=(0,), keepdims=True)
    seen = E.reshape(batch, shape=shape)
    before = converted(running, seen._dtype())
    assign(running, E.add(E.mul(before, 1 - momentum), E.mul(seen, momentum * factor)), "batch_norm")


@whole("NativeGroupNormBackward0")
@rounds_once
def group_norm(input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None,
               eps: float = 1e-5) -> Tensor:  # fmt: skip
    """Normalization over each of `num_groups` groups of channels of (N, C, *). As `torch.nn.functional.group_norm`."""
    shape = tuple(shape_of(input, "group_norm"))
    if len(shape) < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {len(shape)}")
    n, c = shape[:2]
    if num_groups < 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {num_groups}")
    if c % num_groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{list(shape)} and num_groups={num_groups}"
        )
    for what, operand in (("weight", weight), ("bias", bias)):
        if operand is not None and tuple(operand._d.shape) != (c,):
            raise RuntimeError(
                f"Expected {what} to be a vector of size equal to the number of channels in input, but got {what} of "
                f"shape {list(operand._d.shape)} and input of shape {list(shape)}"
            )
    if n * math.prod(shape[2:]) * (c // num_groups) == 1:
        flat = [n * c // num_groups, num_groups, *shape[2:]]
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {flat}")
    _check_dtype(input, "GroupNormKernelImpl", weight, bias)
    grouped = E.reshape(input, shape=(n, num_groups, math.prod(shape[2:]) * (c // num_groups)))
    result = E.reshape(E.standardize(grouped, axis=(2,), eps=eps), shape=shape)
    return _affine(result, weight, bias, (1, c, *(1,) * (len(shape) - 2)))


@whole("ViewBackward0")
@rounds_once(keep=("running_mean", "running_var"))
def instance_norm(input: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None,
                  weight: Tensor | None = None, bias: Tensor | None = None, use_input_stats: bool = True,
                  momentum: float = 0.1, eps: float = 1e-5) -> Tensor:  # fmt: skip
    """Normalization of each channel of each sample of (N, C, *). As `torch.nn.functional.instance_norm`."""
    shape = tuple(shape_of(input, "instance_norm"))
    if use_input_stats and math.prod(shape[2:]) == 1:
        raise ValueError(
            f"Expected more than 1 spatial element when training, got input size torch.Size({list(shape)})"
        )
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError("Expected running_mean and running_var to be defined when use_input_stats is false")
    c = shape[1]
    axis, channel = tuple(range(2, len(shape))), (1, c, *(1,) * (len(shape) - 2))
    for name, t in (("running_mean", running_mean), ("running_var", running_var), ("weight", weight), ("bias", bias)):
        if t is not None and math.prod(t._d.shape) != c:
            n = shape[0]
            raise RuntimeError(f"{name} should contain {n * c} elements not {n * math.prod(t._d.shape)}")
    _check_dtype(input, "batch_norm", weight, bias)
    if not use_input_stats:
        return _standard(input, running_mean, running_var, weight, bias, channel, eps)
    _move(input, running_mean, running_var, axis, momentum)
    return _affine(E.standardize(input, axis=axis, eps=eps), weight, bias, channel)


def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """input / (k + alpha * mean of squares over `size` channels)^beta. As `torch.nn.functional.local_response_norm`."""
    shape = tuple(shape_of(input, "local_response_norm"))
    if len(shape) < 3:
        raise ValueError(
            f"Expected 3D or higher dimensionality                          input (got {len(shape)} dimensions)"
        )
    if 0 in shape:
        return input
    squares = E.reshape(E.square(input), shape=(shape[0], 1, shape[1], *_plane(shape[2:])))
    if len(shape) == 3:
        mean = avg_pool2d(pad(squares, (0, 0, size // 2, (size - 1) // 2)), (size, 1), stride=1)
    else:
        mean = avg_pool3d(pad(squares, (0, 0, 0, 0, size // 2, (size - 1) // 2)), (size, 1, 1), stride=1)
    scale = E.pow(E.add(E.mul(E.reshape(mean, shape=shape), alpha), k), beta)
    return E.div(input, scale)


def _plane(sizes: tuple[int, ...]) -> tuple[int, ...]:
    return sizes if len(sizes) < 2 else (sizes[0], math.prod(sizes[1:]))


def normalize(input: Tensor, p: float = 2.0, dim: Any = 1, eps: float = 1e-12, out: Tensor | None = None) -> Tensor:
    """input / max(norm(input), eps) along `dim`. As `torch.nn.functional.normalize`."""
    length = vector_norm(input, p, dim, keepdim=True)
    result = E.div(input, E.where(E.lt(length, eps), constant(eps, length), length))
    return result if out is None else assign(out, result, "normalize")
