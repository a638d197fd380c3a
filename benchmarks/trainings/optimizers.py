"""Optimizers, each twice: PyTorch's, and its update of a tree for JAX."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

import eager as torch


class Optimizer(NamedTuple):
    """`of` the parameters of a model; for JAX the `slots` of a tree, and update(parameters, gradients, slots)."""

    of: Callable[[Iterable[torch.Tensor]], torch.optim.Optimizer]
    slots: Callable[[Any], Any]
    update: Callable[[Any, Any, Any], tuple[Any, Any]]


def adam(rate: float = 1e-3) -> Optimizer:
    beta1, beta2, epsilon = 0.9, 0.999, 1e-8

    def slots(parameters: Any) -> Any:
        m, v = (jax.tree.map(jnp.zeros_like, parameters) for _ in "mv")
        return m, v, jnp.zeros(())

    def update(parameters: Any, grads: Any, slots: Any) -> tuple[Any, Any]:
        m, v, t = slots
        t = t + 1
        m = jax.tree.map(lambda m, g: beta1 * m + (1 - beta1) * g, m, grads)
        v = jax.tree.map(lambda v, g: beta2 * v + (1 - beta2) * g * g, v, grads)
        step, correction = rate / (1 - beta1**t), jnp.sqrt(1 - beta2**t)
        moved = jax.tree.map(lambda p, m, v: p - step * m / (jnp.sqrt(v) / correction + epsilon), parameters, m, v)
        return moved, (m, v, t)

    return Optimizer(lambda parameters: torch.optim.Adam(parameters, lr=rate), slots, update)


def sgd(rate: float, momentum: float = 0.0, weight_decay: float = 0.0) -> Optimizer:
    def slots(parameters: Any) -> Any:
        return jax.tree.map(jnp.zeros_like, parameters) if momentum else ()

    def update(parameters: Any, grads: Any, slots: Any) -> tuple[Any, Any]:
        if weight_decay:
            grads = jax.tree.map(lambda p, g: g + weight_decay * p, parameters, grads)
        if momentum:
            grads = slots = jax.tree.map(lambda m, g: momentum * m + g, slots, grads)
        return jax.tree.map(lambda p, g: p - rate * g, parameters, grads), slots

    def of(parameters: Iterable[torch.Tensor]) -> torch.optim.Optimizer:
        return torch.optim.SGD(parameters, lr=rate, momentum=momentum, weight_decay=weight_decay)

    return Optimizer(of, slots, update)
