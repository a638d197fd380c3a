"""Eight programs against PyTorch's API, forward and backward: what the eager engine is measured on.

Each takes the framework (torch or eager) and returns a call to time. Sizes: tiny operations (a, a2, b, c), where the
engine's own cost shows, and large arrays (d to g), where NumPy's does.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

Step = Callable[[], object]


def _array(*shape: int, seed: int = 0, scale: float = 1.0) -> np.ndarray:
    return (np.random.default_rng([seed, *shape]).standard_normal(shape) * scale).astype(np.float32)


def _leaf(torch: Any, *shape: int, seed: int = 0, scale: float = 1.0) -> Any:
    return torch.tensor(_array(*shape, seed=seed, scale=scale), requires_grad=True)


def _clear(*leaves: Any) -> None:
    for leaf in leaves:
        leaf.grad = None


def tiny_chain(torch: Any) -> Step:
    """200 pointwise operations on 8 elements."""
    x, w = _leaf(torch, 8), _leaf(torch, 8, seed=1)
    ones = torch.ones(8)

    def step() -> None:
        _clear(x, w)
        h = x
        for _ in range(50):
            h = h * w
            h = h + x
            h = h.tanh()
            h = h - w
        h.backward(ones)

    return step


def scalar_chain(torch: Any) -> Step:
    """200 pointwise operations of 8 elements with Python numbers."""
    x = _leaf(torch, 8)
    ones = torch.ones(8)

    def step() -> None:
        _clear(x)
        h = x
        for _ in range(50):
            h = h * 1.5
            h = h + 0.5
            h = h.tanh()
            h = h - 0.25
        h.backward(ones)

    return step


def small_mlp(torch: Any) -> Step:
    """A training step of Linear(16, 64), Tanh, Linear(64, 4) on 32 samples: mean squared error, SGD."""
    torch.manual_seed(0)
    nn = torch.nn
    model = nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x, y = torch.tensor(_array(32, 16)), torch.tensor(_array(32, 4))

    def step() -> None:
        optimizer.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()

    return step


def lstm(torch: Any) -> Step:
    """An LSTM of 64 units by hand, 20 steps, batch 16."""
    n, batch, steps = 64, 16, 20
    wi, wh, b = _leaf(torch, 32, 4 * n, scale=0.1), _leaf(torch, n, 4 * n, scale=0.1), _leaf(torch, 4 * n)
    inputs = [torch.tensor(_array(batch, 32, seed=t)) for t in range(steps)]
    start = torch.zeros(batch, n)

    def step() -> None:
        _clear(wi, wh, b)
        h = c = start
        for x in inputs:
            i, f, g, o = (x @ wi + h @ wh + b).chunk(4, 1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
        h.sum().backward()

    return step


def wide_mlp(torch: Any) -> Step:
    """Three layers of 1024 units, batch 128, ReLU."""
    weights = [_leaf(torch, 1024, 1024, seed=k, scale=0.03) for k in range(3)]
    biases = [_leaf(torch, 1024, seed=k) for k in range(3)]
    x = torch.tensor(_array(128, 1024))

    def step() -> None:
        _clear(*weights, *biases)
        h = x
        for w, b in zip(weights, biases, strict=True):
            h = (h @ w + b).relu()
        h.mean().backward()

    return step


def million(torch: Any) -> Step:
    """A chain of pointwise operations on a million elements."""
    x, w = _leaf(torch, 1_000_000), _leaf(torch, 1_000_000, seed=1)

    def step() -> None:
        _clear(x, w)
        h = x
        for _ in range(3):
            h = (h * w + x).tanh()
        h.sum().backward()

    return step


def convolution(torch: Any) -> Step:
    """3x3 convolution, 16 to 32 channels, 16 images of 32x32, and ReLU."""
    x, w, b = _leaf(torch, 16, 16, 32, 32), _leaf(torch, 32, 16, 3, 3, scale=0.1), _leaf(torch, 32)
    functional = torch.nn.functional

    def step() -> None:
        _clear(x, w, b)
        functional.conv2d(x, w, b, padding=1).relu().mean().backward()

    return step


def attention(torch: Any) -> Step:
    """A self-attention block: 8 sequences of 64 tokens, 128 features, 4 heads, softmax, residual and layer norm."""
    batch, length, width, heads = 8, 64, 128, 4
    size = width // heads
    x = _leaf(torch, batch, length, width)
    wqkv, wo = _leaf(torch, width, 3 * width, scale=0.1), _leaf(torch, width, width, scale=0.1)
    scale, shift = _leaf(torch, width), _leaf(torch, width, seed=1)
    functional = torch.nn.functional

    def step() -> None:
        _clear(x, wqkv, wo, scale, shift)
        q, k, v = ((x @ wqkv).view(batch, length, 3, heads, size).permute(2, 0, 3, 1, 4)).unbind(0)
        weights = (q @ k.transpose(-2, -1) / math.sqrt(size)).softmax(-1)
        mixed = (weights @ v).transpose(1, 2).reshape(batch, length, width)
        functional.layer_norm(x + mixed @ wo, (width,), scale, shift).mean().backward()

    return step


# name, program, goal (x PyTorch)
WORKLOADS: list[tuple[str, Callable[[Any], Step], float]] = [
    ("tiny chain, 200 ops on 8 elements", tiny_chain, 0.40),
    ("the same with Python scalars", scalar_chain, 0.35),
    ("small MLP step, SGD", small_mlp, 0.60),
    ("LSTM, 20 steps", lstm, 0.80),
    ("MLP 1024", wide_mlp, 1.15),
    ("a million elements", million, 0.95),
    ("convolution", convolution, 1.90),
    ("attention block", attention, 1.10),
]
