"""Layers and losses as a JAX user writes them: weights (in, out), images (batch, height, width, channels)."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

EPSILON = 1e-5  # of both norms, as PyTorch has it
MOMENTUM = 0.1  # of running statistics


def linear(parameters: Any, x: Any) -> Any:
    w, b = parameters
    return x @ w + b


def mlp(parameters: Any, x: Any, activation: Any = jax.nn.relu) -> Any:
    """Linear layers, with the activation between them."""
    *hidden, last = parameters
    for layer in hidden:
        x = activation(linear(layer, x))
    return linear(last, x)


def layer_norm(parameters: Any, x: Any) -> Any:
    scale, shift = parameters
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + EPSILON) * scale + shift


def batch_norm(parameters: Any, running: Any, x: Any) -> tuple[Any, Any]:
    """(the result, the new running statistics) of a layer that trains."""
    scale, shift = parameters
    axes = tuple(range(x.ndim - 1))
    mean, variance = x.mean(axes), x.var(axes)
    count = x.size // x.shape[-1]
    seen = (mean, variance * (count / (count - 1)))
    running = tuple((1 - MOMENTUM) * old + MOMENTUM * new for old, new in zip(running, seen, strict=True))
    return (x - mean) * (lax.rsqrt(variance + EPSILON) * scale) + shift, running


def conv(parameters: Any, x: Any, stride: int = 1, padding: int = 1) -> Any:
    """Without a bias where `parameters` has none."""
    w, *bias = parameters
    pads = ((padding, padding),) * 2
    y = lax.conv_general_dilated(x, w, (stride, stride), pads, dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return y + bias[0] if bias else y


def conv_transpose(parameters: Any, x: Any) -> Any:
    """To images of twice the height and width, by kernels of 4x4.

    Each of the four pixels that become of one is a convolution of 2x2, and these are one of 3x3. The gradient of
    `lax.conv_transpose` takes up to ten times as long on a CPU.
    """
    w, b = parameters
    kernels = [jnp.pad(w[i::2, j::2], ((i, 1 - i), (j, 1 - j), (0, 0), (0, 0))) for i in range(2) for j in range(2)]
    return _larger(conv((jnp.concatenate(kernels, -1),), x)) + b


def conv_transpose_2x2(parameters: Any, x: Any) -> Any:
    """The same by kernels of 2x2, which do not overlap: a product."""
    w, b = parameters  # (2, 2, in, out)
    return _larger(x @ w.transpose(2, 0, 1, 3).reshape(w.shape[2], -1)) + b


def _larger(x: Any) -> Any:
    """Four times the channels become twice the height and width."""
    batch, height, width, channels = x.shape
    pixels = x.reshape(batch, height, width, 2, 2, channels // 4).swapaxes(2, 3)
    return pixels.reshape(batch, 2 * height, 2 * width, channels // 4)


def max_pool(x: Any) -> Any:
    """Of 2x2."""
    batch, height, width, channels = x.shape
    return x.reshape(batch, height // 2, 2, width // 2, 2, channels).max((2, 4))


def attention(q: Any, k: Any, v: Any, causal: bool) -> Any:
    """Of (batch, length, heads, size)."""
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(q.shape[-1]).astype(np.float32)
    if causal:
        scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -jnp.inf)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v)


def cross_entropy(logits: Any, y: Any) -> Any:
    """With the classes last."""
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), y[..., None], -1).mean()


def squares(x: Any, y: Any) -> Any:
    return ((x - y) ** 2).mean()


def binary_cross_entropy(logits: Any, y: Any) -> Any:
    """Of each element."""
    return -y * jax.nn.log_sigmoid(logits) - (1 - y) * jax.nn.log_sigmoid(-logits)
