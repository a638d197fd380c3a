"""Five models to train, each written twice: in PyTorch's API for graphc, and in idiomatic JAX.

Arrays are NumPy's on both sides until `training_steps` puts them where they belong. The JAX losses are what a JAX user
writes for the same mathematics: weights as (in, out), `jax.nn` and `lax` functions, labels of 32 bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import eager
import graphc
from eager import nn

F = nn.functional
rng = np.random.default_rng(0)


class Training(NamedTuple):
    """A model with its loss(x, y), a batch, and the same as parameters and a loss(parameters, x, y) for JAX."""

    model: nn.Module
    loss: Callable[..., Any]
    batch: tuple[np.ndarray, np.ndarray]
    parameters: Any
    jax_loss: Callable[..., Any]


def floats(*shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


def labels(classes: int, *shape: int) -> np.ndarray:
    return rng.integers(0, classes, shape)


def matrix(linear: nn.Linear) -> tuple[np.ndarray, np.ndarray]:
    """(weight as (in, out), bias) of a linear layer."""
    return linear.weight.detach().numpy().T.copy(), linear.bias.detach().numpy().copy()


def own(tensor: eager.Tensor) -> np.ndarray:
    return tensor.detach().numpy().copy()


def jax_cross_entropy(logits: Any, y: Any) -> Any:
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], axis=1).mean()


def mlp() -> Training:
    """784-256-256-10, batch 128."""
    model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))

    def jax_loss(parameters: Any, x: Any, y: Any) -> Any:
        *hidden, (w, b) = parameters
        for wh, bh in hidden:
            x = jax.nn.relu(x @ wh + bh)
        return jax_cross_entropy(x @ w + b, y)

    return Training(
        model,
        lambda x, y: F.cross_entropy(model(x), y),
        (floats(128, 784), labels(10, 128)),
        [matrix(layer) for layer in model if isinstance(layer, nn.Linear)],
        jax_loss,
    )


def cnn() -> Training:
    """Two convolutions of 3x3 with ReLU and pooling, and a linear layer, on 32 images of 28x28; NCHW on both sides."""
    convolutions = [nn.Conv2d(1, 16, 3, padding=1), nn.Conv2d(16, 32, 3, padding=1)]
    first, second = convolutions
    head = nn.Linear(32 * 7 * 7, 10)
    model = nn.Sequential(
        first, nn.ReLU(), nn.MaxPool2d(2), second, nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), head
    )  # fmt: skip

    def jax_loss(parameters: Any, x: Any, y: Any) -> Any:
        *filters, (w, b) = parameters
        for wc, bc in filters:
            x = lax.conv_general_dilated(x, wc, (1, 1), "SAME", dimension_numbers=("NCHW", "OIHW", "NCHW"))
            x = jax.nn.relu(x + bc[:, None, None])
            x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
        return jax_cross_entropy(x.reshape(x.shape[0], -1) @ w + b, y)

    return Training(
        model,
        lambda x, y: F.cross_entropy(model(x), y),
        (floats(32, 1, 28, 28), labels(10, 32)),
        [*((own(c.weight), own(c.bias)) for c in convolutions), matrix(head)],
        jax_loss,
    )


class Block(nn.Module):
    """A pre-norm Transformer block."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: eager.Tensor) -> eager.Tensor:
        batch, length, width = x.shape
        qkv = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = F.scaled_dot_product_attention(q, k, v)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


def transformer() -> Training:
    """A Transformer block of width 128 with 4 heads on 16 sequences of 64; mean squared error."""
    heads = 4
    model = Block(128, heads)

    def norm(parameters: Any, x: Any) -> Any:
        scale, shift = parameters
        mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        return (x - mean) * lax.rsqrt(variance + 1e-5) * scale + shift

    def linear(parameters: Any, x: Any) -> Any:
        w, b = parameters
        return x @ w + b

    def jax_loss(p: Any, x: Any, y: Any) -> Any:
        batch, length, width = x.shape
        qkv = linear(p["qkv"], norm(p["norm1"], x)).reshape(batch, length, 3, heads, width // heads)
        q, k, v = jnp.moveaxis(qkv, 2, 0)
        weights = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(width // heads).astype(np.float32))
        mixed = jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(batch, length, width)
        x = x + linear(p["out"], mixed)
        x = x + linear(p["down"], jax.nn.gelu(linear(p["up"], norm(p["norm2"], x)), approximate=False))
        return ((x - y) ** 2).mean()

    return Training(
        model,
        lambda x, y: ((model(x) - y) ** 2).mean(),
        (floats(16, 64, 128), floats(16, 64, 128)),
        {
            name: matrix(layer) if isinstance(layer, nn.Linear) else (own(layer.weight), own(layer.bias))
            for name, layer in model.named_children()
        },
        jax_loss,
    )


class LSTM(nn.Module):
    """One LSTM layer by hand, over x of (steps, batch, features), and a linear layer on the last state."""

    def __init__(self, features: int, size: int, classes: int, rolled: bool):
        super().__init__()
        self.wx = nn.Parameter(eager.randn(features, 4 * size) / features**0.5)
        self.wh = nn.Parameter(eager.randn(size, 4 * size) / size**0.5)
        self.b = nn.Parameter(eager.zeros(4 * size))
        self.head = nn.Linear(size, classes)
        self.size, self.rolled = size, rolled

    def cell(self, state: Any, x: eager.Tensor) -> Any:
        h, c = state
        i, f, g, o = (x @ self.wx + h @ self.wh + self.b).chunk(4, 1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        return (o.sigmoid() * c.tanh(), c), None

    def forward(self, xs: eager.Tensor) -> eager.Tensor:
        state = (eager.zeros(xs.shape[1], self.size), eager.zeros(xs.shape[1], self.size))
        if self.rolled:
            state, _ = graphc.scan(self.cell, state, xs)
        else:
            for x in xs:
                state, _ = self.cell(state, x)
        return self.head(state[0])


def lstm(steps: int, rolled: bool) -> Training:
    size = 128
    model = LSTM(64, size, 10, rolled)

    def jax_loss(p: Any, xs: Any, y: Any) -> Any:
        def cell(state: Any, x: Any) -> Any:
            h, c = state
            i, f, g, o = jnp.split(x @ p["wx"] + h @ p["wh"] + p["b"], 4, axis=1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None

        state = (jnp.zeros((xs.shape[1], size)), jnp.zeros((xs.shape[1], size)))
        if rolled:
            state, _ = lax.scan(cell, state, xs)
        else:
            for t in range(steps):
                state, _ = cell(state, xs[t])
        w, b = p["head"]
        return jax_cross_entropy(state[0] @ w + b, y)

    return Training(
        model,
        lambda x, y: F.cross_entropy(model(x), y),
        (floats(steps, 32, 64), labels(10, 32)),
        {"wx": own(model.wx), "wh": own(model.wh), "b": own(model.b), "head": matrix(model.head)},
        jax_loss,
    )


TRAININGS: dict[str, Callable[[], Training]] = {
    "MLP 784-256-256-10": mlp,
    "CNN": cnn,
    "Transformer block": transformer,
    "LSTM unrolled x16": lambda: lstm(16, rolled=False),
    "LSTM scan x64": lambda: lstm(64, rolled=True),
}
