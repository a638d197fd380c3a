"""Linear layers in a row, and what is done with their results."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import eager as torch
from eager import nn

from .layers import batch_norm, cross_entropy, linear, mlp, squares
from .optimizers import Optimizer, adam, sgd
from .training import Training, floats, labels, matrices, matrix, own, scale_shift, statistics

F = nn.functional


def perceptron(*sizes: int, batch: int = 128, optimizer: Optimizer | None = None) -> Training:
    """Linear layers with ReLU between them, and cross entropy."""
    modules: list[nn.Module] = []
    for features, results in itertools.pairwise(sizes):
        modules += [nn.Linear(features, results), nn.ReLU()]
    model = nn.Sequential(*modules[:-1])
    return Training(
        model,
        lambda x, y: F.cross_entropy(model(x), y),
        (floats(batch, sizes[0]), labels(sizes[-1], batch)),
        matrices(*model),
        lambda p, x, y: cross_entropy(mlp(p, x), y),
        optimizer=optimizer or adam(),
    )


def normed() -> Training:
    """256-256-256-10 with batch norm before each ReLU, batch 128.

    A bias before a norm has no gradient but rounding, of which Adam makes whole steps: no two programs would agree.
    """
    norms = [nn.BatchNorm1d(256), nn.BatchNorm1d(256)]
    layers, head = [nn.Linear(256, 256, bias=False) for _ in norms], nn.Linear(256, 10)
    model = nn.Sequential(layers[0], norms[0], nn.ReLU(), layers[1], norms[1], nn.ReLU(), head)

    def jax_loss(p: Any, running: Any, x: Any, y: Any) -> Any:
        after = []
        for w, norm, before in zip(p["weights"], p["norms"], running, strict=True):
            x, seen = batch_norm(norm, before, x @ w)
            x = jax.nn.relu(x)
            after.append(seen)
        return cross_entropy(linear(p["head"], x), y), after

    return Training(
        model,
        lambda x, y: F.cross_entropy(model(x), y),
        (floats(128, 256), labels(10, 128)),
        {
            "weights": [own(layer.weight).T.copy() for layer in layers],
            "norms": [scale_shift(norm) for norm in norms],
            "head": matrix(head),
        },
        jax_loss,
        buffers=lambda: [statistics(norm) for norm in norms],
    )


def autoencoder() -> Training:
    """784-128-32-128-784, batch 64; mean squared error."""
    encoder = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 32))
    decoder = nn.Sequential(nn.Linear(32, 128), nn.ReLU(), nn.Linear(128, 784), nn.Sigmoid())
    model = nn.Sequential(encoder, decoder)

    def jax_loss(p: Any, x: Any) -> Any:
        encoded, decoded = p
        return squares(jax.nn.sigmoid(mlp(decoded, mlp(encoded, x))), x)

    return Training(
        model,
        lambda x: F.mse_loss(model(x), x),
        (floats(64, 784),),
        (matrices(*encoder), matrices(*decoder)),
        jax_loss,
    )


def distillation() -> Training:
    """A student (128-64-10) of labels and of a frozen teacher (128-512-10), whose logits are softened; batch 128."""
    temperature, share = 4.0, 0.7
    student = nn.Sequential(nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))
    teacher = nn.Sequential(nn.Linear(128, 512), nn.ReLU(), nn.Linear(512, 10)).eval().requires_grad_(False)

    def loss(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        logits = student(x)
        with torch.no_grad():
            target = F.softmax(teacher(x) / temperature, dim=1)
        soft = F.kl_div(F.log_softmax(logits / temperature, dim=1), target, reduction="batchmean")
        return share * temperature**2 * soft + (1 - share) * F.cross_entropy(logits, y)

    def jax_loss(p: Any, taught: Any, x: Any, y: Any) -> Any:
        logits = mlp(p, x)
        target = jax.nn.log_softmax(mlp(taught, x) / temperature)
        ours = jax.nn.log_softmax(logits / temperature)
        soft = (jnp.exp(target) * (target - ours)).sum(-1).mean()
        return share * temperature**2 * soft + (1 - share) * cross_entropy(logits, y), taught

    return Training(
        student,
        loss,
        (floats(128, 128), labels(10, 128)),
        matrices(*student),
        jax_loss,
        buffers=lambda: matrices(*teacher),
    )


class Residuals(nn.Module):
    """Many layers of 24 units."""

    def __init__(self, depth: int):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(24, 24) for _ in range(depth))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = x + 0.1 * torch.tanh(layer(x))
        return x


def thin(depth: int, scanned: bool) -> Training:
    """Layers that JAX has in a list, or stacked and in a scan; batch 32, mean squared error."""
    model = Residuals(depth)
    parameters: Any = matrices(*model.layers)

    def residual(x: Any, layer: Any) -> Any:
        return x + 0.1 * jnp.tanh(linear(layer, x))

    def listed_loss(p: Any, x: Any, y: Any) -> Any:
        for layer in p:
            x = residual(x, layer)
        return squares(x, y)

    def stacked_loss(p: Any, x: Any, y: Any) -> Any:
        x, _ = lax.scan(lambda x, layer: (residual(x, layer), None), x, p)
        return squares(x, y)

    return Training(
        model,
        lambda x, y: F.mse_loss(model(x), y),
        (floats(32, 24), floats(32, 24)),
        tuple(np.stack(arrays) for arrays in zip(*parameters, strict=True)) if scanned else parameters,
        stacked_loss if scanned else listed_loss,
    )


def logistic_regression() -> Training:
    """Of 256 vectors of 784, in two classes."""
    model = nn.Linear(784, 1)

    def jax_loss(p: Any, x: Any, y: Any) -> Any:
        logits = linear(p, x)[:, 0]
        return (jax.nn.softplus(logits) - y * logits).mean()

    return Training(
        model,
        lambda x, y: F.binary_cross_entropy_with_logits(model(x).squeeze(1), y),
        (floats(256, 784), labels(2, 256).astype(np.float32)),
        matrix(model),
        jax_loss,
        optimizer=sgd(0.1),
    )


TRAININGS: dict[str, Callable[[], Training]] = {
    "logistic regression, SGD": logistic_regression,
    "MLP 784-256-256-10": lambda: perceptron(784, 256, 256, 10),
    "MLP, momentum and weight decay": lambda: perceptron(
        256, 512, 512, 10, batch=64, optimizer=sgd(0.01, momentum=0.9, weight_decay=1e-3)
    ),
    "MLP with batch norm": normed,
    "autoencoder": autoencoder,
    "distillation": distillation,
    "thin net x100": lambda: thin(100, scanned=False),
    "thin net x300": lambda: thin(300, scanned=False),
    "thin net x300, beside a scan": lambda: thin(300, scanned=True),
}
