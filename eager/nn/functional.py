"""`torch.nn.functional`: layers and activations as functions. Losses are in `eager.nn.loss_functions`."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from eager import random
from eager.functional.arguments import axis_of, constant, shape_of
from eager.functional.gathering import one_hot
from eager.functional.joining import cut
from eager.functional.reductions import log_softmax as _log_softmax
from eager.functional.reductions import norm
from eager.functional.reductions import softmax as _softmax
from eager.inplace import assign
from eager.language import E
from eager.nn.loss_functions import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cross_entropy,
    huber_loss,
    kl_div,
    l1_loss,
    mse_loss,
    nll_loss,
    smooth_l1_loss,
)
from eager.nn.pooling_functions import (
    adaptive_avg_pool2d,
    avg_pool1d,
    avg_pool2d,
    conv1d,
    conv2d,
    max_pool1d,
    max_pool2d,
    pad,
)
from eager.tensor import Tensor
from graphc.ops.dtypes import BOOL

__all__ = [
    "adaptive_avg_pool2d", "avg_pool1d", "avg_pool2d", "batch_norm", "binary_cross_entropy",
    "binary_cross_entropy_with_logits", "conv1d", "conv2d", "cosine_similarity", "cross_entropy", "dropout", "elu",
    "embedding", "gelu", "glu", "hardsigmoid", "hardswish", "hardtanh", "huber_loss", "kl_div", "l1_loss", "layer_norm",
    "leaky_relu", "linear", "log_softmax", "logsigmoid", "max_pool1d", "max_pool2d", "mish", "mse_loss", "nll_loss",
    "normalize", "one_hot", "pad", "relu", "relu6", "scaled_dot_product_attention", "selu", "sigmoid", "silu",
    "smooth_l1_loss", "softmax", "softmin", "softplus", "softsign", "tanh", "tanhshrink",
]  # fmt: skip

IMPLICIT_DIM = (
    "Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument."
)


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input @ weight.T + bias, for input (*, in), weight (out, in), bias (out,). As `torch.nn.functional.linear`."""
    if len(weight._d.shape) == 2:
        transposed = E.permute(weight, dims=(1, 0))
    elif len(weight._d.shape) == 1:
        transposed = weight
    else:
        raise RuntimeError("t() expects a tensor with <= 2 dimensions, but self is " + f"{len(weight._d.shape)}D")
    if bias is None:
        return E.matmul(input, transposed)
    if len(input._d.shape) == 2:
        return E.addmm(bias, input, transposed)
    return E.add(E.matmul(input, transposed), bias)


# --- activations


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(input, 0). As `torch.nn.functional.relu`."""
    return input.relu_() if inplace else E.relu(input)  # type: ignore[attr-defined]


def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-input)). As `torch.nn.functional.sigmoid`."""
    return E.sigmoid(input)


def tanh(input: Tensor) -> Tensor:
    """tanh(input). As `torch.nn.functional.tanh`."""
    return E.tanh(input)


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """input * Phi(input), Phi by erf or its "tanh" approximation. As `torch.nn.functional.gelu`."""
    if approximate == "none":
        return E.mul(E.mul(input, 0.5), E.add(E.erf(E.mul(input, math.sqrt(0.5))), 1.0))
    if approximate != "tanh":
        raise RuntimeError("approximate argument must be either none or tanh.")
    cubed = E.mul(E.mul(E.square(input), input), 0.044715)
    inside = E.mul(E.add(input, cubed), math.sqrt(2 / math.pi))
    return E.mul(E.mul(input, 0.5), E.add(E.tanh(inside), 1.0))


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """input * sigmoid(input). As `torch.nn.functional.silu`."""
    return _into(input, E.mul(input, E.sigmoid(input)), inplace)


def _into(input: Tensor, result: Tensor, inplace: bool) -> Tensor:
    return assign(input, result, "activation") if inplace else result


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """input where positive, else negative_slope * input, the slope at 0 too. As `torch.nn.functional.leaky_relu`."""
    return _into(input, E.where(E.gt(input, 0), input, E.mul(input, negative_slope)), inplace)


def _elu(input: Tensor, alpha: float, scale: float) -> Tensor:
    positive = E.gt(input, 0)
    # expm1 sees no positive number: its overflow would turn the gradient that `where` drops into 0 * inf
    negative = E.mul(E.expm1(E.where(positive, constant(0, input), input)), alpha * scale)
    return E.where(positive, input if scale == 1 else E.mul(input, scale), negative)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """input where positive, else alpha * (exp(input) - 1). As `torch.nn.functional.elu`."""
    return _into(input, _elu(input, alpha, 1), inplace)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """The self-normalizing scaled elu (Klambauer et al. 2017). As `torch.nn.functional.selu`."""
    return _into(input, _elu(input, 1.6732632423543772, 1.0507009873554805), inplace)


def softplus(input: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    """log(1 + exp(beta * input)) / beta; linear above `threshold`. As `torch.nn.functional.softplus`."""
    if beta == 1 and threshold == 20:
        return E.softplus(input)  # equal to rounding above the threshold
    scaled = E.mul(input, beta)
    linear_part = E.gt(scaled, threshold)
    return E.where(linear_part, input, E.div(E.softplus(scaled), beta))


def logsigmoid(input: Tensor) -> Tensor:
    """log(sigmoid(input)). As `torch.nn.functional.logsigmoid`."""
    return E.neg(E.softplus(E.neg(input)))


def softsign(input: Tensor) -> Tensor:
    """input / (1 + |input|). As `torch.nn.functional.softsign`."""
    return E.div(input, E.add(E.abs(input), 1))


def tanhshrink(input: Tensor) -> Tensor:
    """input - tanh(input). As `torch.nn.functional.tanhshrink`."""
    return E.sub(input, E.tanh(input))


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """input * tanh(softplus(input)). As `torch.nn.functional.mish`."""
    return _into(input, E.mul(input, E.tanh(E.softplus(input))), inplace)


def _bounded(input: Tensor, low: float, high: float) -> Tensor:
    """`input` limited to [low, high], with gradient 0 at the bounds, as PyTorch's hard activations have it."""
    inner = E.where(E.ge(input, high), constant(high, input), input)
    return E.where(E.le(input, low), constant(low, input), inner)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """`input` limited to [min_val, max_val]. As `torch.nn.functional.hardtanh`."""
    return _into(input, _bounded(input, min_val, max_val), inplace)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """`input` limited to [0, 6]. As `torch.nn.functional.relu6`."""
    return _into(input, _bounded(input, 0.0, 6.0), inplace)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """input / 6 + 1 / 2, limited to [0, 1]. As `torch.nn.functional.hardsigmoid`."""
    return _into(input, E.div(_bounded(E.add(input, 3.0), 0.0, 6.0), 6.0), inplace)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """input * hardsigmoid(input). As `torch.nn.functional.hardswish`."""
    return _into(input, E.div(E.mul(input, _bounded(E.add(input, 3.0), 0.0, 6.0)), 6.0), inplace)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half along `dim` times the sigmoid of the second. As `torch.nn.functional.glu`."""
    shape = shape_of(input, "glu")
    axis = axis_of(dim, len(shape))
    n = shape[axis]
    if n % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {axis} is size {n}")
    return E.mul(cut(input, axis, 0, n // 2), E.sigmoid(cut(input, axis, n // 2, n)))


def _dim_or_guess(name: str, dim: int | None, ndim: int) -> int:
    if dim is not None:
        return dim
    warnings.warn(IMPLICIT_DIM.format(name=name), UserWarning, stacklevel=3)
    return 0 if ndim in (0, 1, 3) else 1


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """exp(input) normalized to sum 1 along `dim`. As `torch.nn.functional.softmax`."""
    return _softmax(input, _dim_or_guess("softmax", dim, len(input._d.shape)), dtype)


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """softmax(-input). As `torch.nn.functional.softmin`."""
    return _softmax(E.neg(input), _dim_or_guess("softmin", dim, len(input._d.shape)), dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """log(softmax(input)) along `dim`. As `torch.nn.functional.log_softmax`."""
    return _log_softmax(input, _dim_or_guess("log_softmax", dim, len(input._d.shape)), dtype)


# --- randomness, lookup


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Each element 0 with probability `p`, else divided by 1 - p; `input` itself if not `training`. As in PyTorch."""
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not training or p == 0:
        return input
    if p == 1:
        return _into(input, E.mul(input, 0.0), inplace)
    kept = random.bernoulli(input, 1 - p)
    return _into(input, E.mul(input, E.div(kept, 1 - p)), inplace)


def embedding(input: Tensor, weight: Tensor, padding_idx: int | None = None, max_norm: float | None = None,
              norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False) -> Tensor:  # fmt: skip
    """Rows of weight (V, D) at input (*) of integers: (*, D). The row `padding_idx` gets no gradient. As in PyTorch.

    Raises IndexError for an index outside [0, V), NotImplementedError for `max_norm` and `scale_grad_by_freq`.
    """
    if max_norm is not None or scale_grad_by_freq:
        raise NotImplementedError("embedding(): max_norm and scale_grad_by_freq are not supported")
    rows = E.index(weight, input, spec=(0,))
    if padding_idx is None:
        return rows
    padding = E.eq(input, padding_idx % weight._d.shape[0])
    padding = E.reshape(padding, shape=(*input._d.shape, 1))
    return E.where(padding, E.stop_gradient(rows), rows)


# --- normalization


def layer_norm(input: Tensor, normalized_shape: Any, weight: Tensor | None = None, bias: Tensor | None = None,
               eps: float = 1e-5) -> Tensor:  # fmt: skip
    """(input - mean) / sqrt(variance + eps) over the last dims, times weight plus bias. As in PyTorch."""
    shape, over = shape_of(input, "layer_norm"), tuple(normalized_shape)
    if tuple(shape[len(shape) - len(over) :]) != over:
        raise RuntimeError(
            f"Given normalized_shape={list(over)}, expected input with shape [*, {', '.join(map(str, over))}], but got "
            f"input of size{list(shape)}"
        )
    axis = tuple(range(len(shape) - len(over), len(shape)))
    centered = E.sub(input, E.mean(input, axis=axis, keepdims=True))
    variance = E.mean(E.square(centered), axis=axis, keepdims=True)
    result = E.mul(centered, E.rsqrt(E.add(variance, eps)))
    if weight is not None:
        result = E.mul(result, weight)
    return result if bias is None else E.add(result, bias)


def batch_norm(input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = None,
               bias: Tensor | None = None, training: bool = False, momentum: float = 0.1,
               eps: float = 1e-5) -> Tensor:  # fmt: skip
    """Normalization of each channel (dim 1) over all other dims. As `torch.nn.functional.batch_norm`.

    While `training`, with the statistics of `input`, which also move the running ones (their variance is unbiased).
    """
    shape = shape_of(input, "batch_norm")
    axis = (0, *range(2, len(shape)))
    channel = (1, shape[1], *(1,) * (len(shape) - 2))
    if training:
        count = math.prod(shape) // shape[1] if shape[1] else 0
        if count <= 1:
            raise ValueError(
                f"Expected more than 1 value per channel when training, got input size torch.Size({list(shape)})"
            )
        mean = E.mean(input, axis=axis, keepdims=True)
        variance = E.mean(E.square(E.sub(input, mean)), axis=axis, keepdims=True)
        if running_mean is not None and running_var is not None:
            _move(running_mean, mean, momentum, 1.0)
            _move(running_var, variance, momentum, count / (count - 1))
    elif running_mean is None or running_var is None:
        raise RuntimeError("Expected running_mean and running_var to be defined when training=False")
    else:
        mean, variance = E.reshape(running_mean, shape=channel), E.reshape(running_var, shape=channel)
    result = E.mul(E.sub(input, mean), E.rsqrt(E.add(variance, eps)))
    if weight is not None:
        result = E.mul(result, E.reshape(weight, shape=channel))
    return result if bias is None else E.add(result, E.reshape(bias, shape=channel))


def _move(running: Tensor, batch: Tensor, momentum: float, factor: float) -> None:
    """running = (1 - momentum) * running + momentum * factor * batch"""
    seen = E.reshape(E.stop_gradient(batch), shape=running._d.shape)
    assign(running, E.add(E.mul(running, 1 - momentum), E.mul(seen, momentum * factor)), "batch_norm")


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """input / max(norm(input), eps) along `dim`. As `torch.nn.functional.normalize`."""
    length = norm(input, p, dim, keepdim=True)
    return E.div(input, E.where(E.lt(length, eps), constant(eps, length), length))


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between x1 and x2 along `dim`, norms at least `eps`. As in PyTorch."""
    unit = []
    for x in (x1, x2):
        length = norm(x, 2, dim, keepdim=True)
        unit.append(E.div(x, E.where(E.lt(length, eps), constant(eps, length), length)))
    product = E.mul(*unit)
    return E.sum(product, axis=(axis_of(dim, len(product._d.shape)),), keepdims=False)


def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None,
                                 dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None,
                                 enable_gqa: bool = False) -> Tensor:  # fmt: skip
    """softmax(query @ key.T * scale + mask) @ value over the last two dims. As in PyTorch.

    A bool mask says where to attend; `is_causal` attends to no later position. NotImplementedError for `enable_gqa`.
    """
    if enable_gqa:
        raise NotImplementedError("scaled_dot_product_attention(): enable_gqa is not supported")
    if is_causal and attn_mask is not None:
        raise RuntimeError("_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True")
    ndim = len(key._d.shape)
    turned = E.permute(key, dims=(*range(ndim - 2), ndim - 1, ndim - 2))
    factor = 1 / math.sqrt(query._d.shape[-1]) if scale is None else scale
    scores = E.matmul(E.mul(query, factor), turned)
    if is_causal:
        attn_mask = Tensor._wrap(np.tri(query._d.shape[-2], key._d.shape[-2], dtype=bool))
    if attn_mask is not None:
        if attn_mask._dtype() == BOOL:
            scores = E.where(attn_mask, scores, constant(-math.inf, scores))
        else:
            scores = E.add(scores, attn_mask)
    weights = dropout(E.softmax(scores, axis=len(scores._d.shape) - 1), dropout_p)
    return E.matmul(weights, value)
