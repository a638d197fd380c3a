"""Losses that are no classifier's: likelihoods, rewards, ratings, differential equations, long formulas."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_solve

import eager as torch
from eager import nn

from .layers import mlp, squares
from .optimizers import adam, sgd
from .training import Training, floats, labels, matrices, own, rng

F = nn.functional


class GaussianProcess(nn.Module):
    """The negative log likelihood of values under an RBF kernel with noise."""

    def __init__(self, features: int):
        super().__init__()
        self.lengths = nn.Parameter(torch.zeros(features))  # logarithms all three
        self.scale = nn.Parameter(torch.zeros(()))
        self.noise = nn.Parameter(torch.tensor(-1.0))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        z = x / self.lengths.exp()
        distances = (z[:, None] - z[None]).pow(2).sum(-1)
        covariance = self.scale.exp() * torch.exp(-0.5 * distances) + self.noise.exp() * torch.eye(len(x))
        factor = torch.linalg.cholesky(covariance)
        weights = torch.cholesky_solve(y[:, None], factor)[:, 0]
        logdet = 2 * factor.diagonal().log().sum()
        return 0.5 * (y @ weights + logdet + len(x) * math.log(2 * math.pi)) / len(x)


def gaussian_process() -> Training:
    """Of 200 points in 4 dimensions."""
    model = GaussianProcess(4)

    def jax_loss(p: Any, x: Any, y: Any) -> Any:
        z = x / jnp.exp(p["lengths"])
        distances = ((z[:, None] - z[None]) ** 2).sum(-1)
        covariance = jnp.exp(p["scale"]) * jnp.exp(-0.5 * distances) + jnp.exp(p["noise"]) * jnp.eye(len(x))
        factor = jnp.linalg.cholesky(covariance)
        logdet = 2 * jnp.log(jnp.diagonal(factor)).sum()
        return 0.5 * (y @ cho_solve((factor, True), y) + logdet + len(x) * math.log(2 * math.pi)) / len(x)

    x = floats(200, 4)
    return Training(
        model,
        model,
        (x, np.sin(x.sum(1)) + 0.1 * floats(200)),
        {name: own(parameter) for name, parameter in model.named_parameters()},
        jax_loss,
        optimizer=adam(0.02),
    )


def dqn() -> Training:
    """The update of 8-128-128-4 towards a target net of that shape, 128 transitions."""
    discount = 0.99
    online, target = (
        nn.Sequential(nn.Linear(8, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 4)) for _ in range(2)
    )

    def loss(states: Any, actions: Any, rewards: Any, after: Any, ended: Any) -> torch.Tensor:
        values = online(states).gather(1, actions.unsqueeze(1)).squeeze(1)
        with torch.no_grad():
            goal = rewards + discount * (1 - ended) * target(after).max(1).values
        return F.smooth_l1_loss(values, goal)

    def jax_loss(p: Any, kept: Any, states: Any, actions: Any, rewards: Any, after: Any, ended: Any) -> Any:
        values = jnp.take_along_axis(mlp(p, states), actions[:, None], 1)[:, 0]
        error = values - (rewards + discount * (1 - ended) * mlp(kept, after).max(1))
        size = jnp.abs(error)
        return jnp.where(size < 1, 0.5 * error**2, size - 0.5).mean(), kept

    ended = (rng.random(128) < 0.1).astype(np.float32)
    return Training(
        online,
        loss,
        (floats(128, 8), labels(4, 128), floats(128), floats(128, 8), ended),
        matrices(*online),
        jax_loss,
        buffers=lambda: matrices(*target),
    )


class Chain(nn.Module):
    """Twelve pointwise operations on an array of parameters and one of data."""

    def __init__(self, *shape: int):
        super().__init__()
        self.w = nn.Parameter(torch.randn(*shape))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.tanh(self.w * x)
        h = torch.sigmoid(h - x)
        h = torch.exp(-h * h)
        h = torch.sqrt(h + 1) * torch.sin(self.w)
        return (h * h).mean()


def pointwise() -> Training:
    """On half a million elements."""
    model = Chain(512, 1024)

    def jax_loss(w: Any, x: Any) -> Any:
        h = jnp.tanh(w * x)
        h = jax.nn.sigmoid(h - x)
        h = jnp.exp(-h * h)
        h = jnp.sqrt(h + 1) * jnp.sin(w)
        return (h * h).mean()

    return Training(model, model, (floats(512, 1024),), own(model.w), jax_loss, optimizer=sgd(100.0))


class Factors(nn.Module):
    """A rating is the product of a user's and an item's vector, and a bias of each."""

    def __init__(self, users: int, items: int, size: int):
        super().__init__()
        self.users, self.items = nn.Embedding(users, size), nn.Embedding(items, size)
        self.user_bias, self.item_bias = nn.Embedding(users, 1), nn.Embedding(items, 1)

    def forward(self, user: torch.Tensor, item: torch.Tensor) -> torch.Tensor:
        products = (self.users(user) * self.items(item)).sum(1)
        return products + self.user_bias(user).squeeze(1) + self.item_bias(item).squeeze(1)


def factorization() -> Training:
    """1024 ratings by 2000 users of 3000 items, vectors of 32."""
    model = Factors(2000, 3000, 32)

    def jax_loss(p: Any, user: Any, item: Any, rating: Any) -> Any:
        products = (p["users"][user] * p["items"][item]).sum(1)
        return squares(products + p["user_bias"][user, 0] + p["item_bias"][item, 0], rating)

    return Training(
        model,
        lambda user, item, rating: F.mse_loss(model(user, item), rating),
        (labels(2000, 1024), labels(3000, 1024), floats(1024)),
        {name: own(embedding.weight) for name, embedding in model.named_children()},
        jax_loss,
    )


def physics_informed() -> Training:
    """1-64-64-1 with tanh, so that u'' = f at 256 points, and u = 0 at both ends."""
    model = nn.Sequential(nn.Linear(1, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
    x = rng.uniform(-1, 1, (256, 1)).astype(np.float32)
    ends = np.array([[-1], [1]], np.float32)

    def loss(x: torch.Tensor, f: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
        x = x.detach().requires_grad_()
        u = model(x)
        (slope,) = torch.autograd.grad(u.sum(), x, create_graph=True)
        (curvature,) = torch.autograd.grad(slope.sum(), x, create_graph=True)
        return ((curvature - f) ** 2).mean() + (model(ends) ** 2).mean()

    def jax_loss(p: Any, x: Any, f: Any, ends: Any) -> Any:
        def u(x: Any) -> Any:
            return mlp(p, x[None], jnp.tanh)[0]

        curvature = jax.vmap(jax.grad(jax.grad(u)))(x[:, 0])
        return squares(curvature, f[:, 0]) + (jax.vmap(u)(ends[:, 0]) ** 2).mean()

    return Training(
        model,
        loss,
        (x, -(np.float32(math.pi) ** 2) * np.sin(np.float32(math.pi) * x), ends),
        matrices(*model),
        jax_loss,
    )


TRAININGS: dict[str, Callable[[], Training]] = {
    "Gaussian process": gaussian_process,
    "DQN": dqn,
    "pointwise chain of 12": pointwise,
    "matrix factorization": factorization,
    "physics-informed net": physics_informed,
}
