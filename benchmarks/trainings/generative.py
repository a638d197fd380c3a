"""Nets that make images. Their noise is part of the batch: the two libraries draw different numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

import eager as torch
from eager import nn

from .layers import batch_norm, binary_cross_entropy, conv, conv_transpose, linear
from .training import (
    Training,
    channels_last,
    floats,
    kernel,
    matrix_after_images,
    matrix_before_images,
    rng,
    scale_shift,
    statistics,
    transposed_kernel,
)

F = nn.functional


class VAE(nn.Module):
    """Convolutions of stride 2 to 16 numbers, and transposed ones back."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 16, 4, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 4, 2, 1), nn.ReLU(), nn.Flatten()
        )
        self.mean, self.logvar = nn.Linear(32 * 7 * 7, 16), nn.Linear(32 * 7 * 7, 16)
        self.start = nn.Linear(16, 32 * 7 * 7)
        self.decoder = nn.Sequential(
            nn.Unflatten(1, (32, 7, 7)), nn.ReLU(),
            nn.ConvTranspose2d(32, 16, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(16, 1, 4, 2, 1),
        )  # fmt: skip

    def loss(self, x: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        encoded = self.encoder(x)
        mean, logvar = self.mean(encoded), self.logvar(encoded)
        logits = self.decoder(self.start(mean + noise * torch.exp(0.5 * logvar)))
        error = F.binary_cross_entropy_with_logits(logits, x, reduction="sum")
        divergence = -0.5 * torch.sum(1 + logvar - mean.pow(2) - logvar.exp())
        return (error + divergence) / x.shape[0]


def vae() -> Training:
    """A convolutional VAE of 16 images of 28x28."""
    model = VAE()
    images, noise = rng.random((16, 1, 28, 28), "float32"), floats(16, 16)

    def jax_loss(p: Any, x: Any, noise: Any) -> Any:
        encoded = x
        for layer in p["encoder"]:
            encoded = jax.nn.relu(conv(layer, encoded, stride=2))
        encoded = encoded.reshape(x.shape[0], -1)
        mean, logvar = linear(p["mean"], encoded), linear(p["logvar"], encoded)
        y = linear(p["start"], mean + noise * jnp.exp(0.5 * logvar)).reshape(-1, 7, 7, 32)
        for layer in p["decoder"]:
            y = conv_transpose(layer, jax.nn.relu(y))
        divergence = -0.5 * (1 + logvar - mean**2 - jnp.exp(logvar)).sum()
        return (binary_cross_entropy(y, x).sum() + divergence) / x.shape[0]

    return Training(
        model,
        model.loss,
        (images, noise),
        {
            "encoder": [kernel(model.encoder[k]) for k in (0, 2)],
            "mean": matrix_after_images(model.mean, 32, 7, 7),
            "logvar": matrix_after_images(model.logvar, 32, 7, 7),
            "start": matrix_before_images(model.start, 32, 7, 7),
            "decoder": [transposed_kernel(model.decoder[k]) for k in (2, 4)],
        },
        jax_loss,
        jax_batch=(channels_last(images), noise),
    )


def generator_step() -> Training:
    """The step of a GAN's generator, with batch norm, through a frozen discriminator; 16 images of 16x16."""
    start, norm = nn.Linear(32, 32 * 4 * 4), nn.BatchNorm2d(32)
    ups = [nn.ConvTranspose2d(32, 16, 4, 2, 1), nn.ConvTranspose2d(16, 1, 4, 2, 1)]
    generator = nn.Sequential(
        start, nn.Unflatten(1, (32, 4, 4)), norm, nn.ReLU(), ups[0], nn.ReLU(), ups[1], nn.Tanh()
    )  # fmt: skip
    downs, verdict = [nn.Conv2d(1, 16, 4, 2, 1), nn.Conv2d(16, 32, 4, 2, 1)], nn.Linear(32 * 4 * 4, 1)
    discriminator = nn.Sequential(
        downs[0], nn.LeakyReLU(0.2), downs[1], nn.LeakyReLU(0.2), nn.Flatten(), verdict
    ).requires_grad_(False)  # fmt: skip

    def loss(noise: torch.Tensor) -> torch.Tensor:
        verdicts = discriminator(generator(noise))
        return F.binary_cross_entropy_with_logits(verdicts, torch.ones_like(verdicts))

    def jax_loss(p: Any, kept: Any, noise: Any) -> Any:
        x, seen = batch_norm(p["norm"], kept["seen"], linear(p["start"], noise).reshape(-1, 4, 4, 32))
        x = jnp.tanh(conv_transpose(p["ups"][1], jax.nn.relu(conv_transpose(p["ups"][0], jax.nn.relu(x)))))
        for layer in kept["downs"]:
            x = jax.nn.leaky_relu(conv(layer, x, stride=2), 0.2)
        logits = linear(kept["verdict"], x.reshape(x.shape[0], -1))
        return jax.nn.softplus(-logits).mean(), {**kept, "seen": seen}

    return Training(
        generator,
        loss,
        (floats(16, 32),),
        {
            "start": matrix_before_images(start, 32, 4, 4),
            "norm": scale_shift(norm),
            "ups": [*map(transposed_kernel, ups)],
        },
        jax_loss,
        buffers=lambda: {
            "seen": statistics(norm),
            "downs": [*map(kernel, downs)],
            "verdict": matrix_after_images(verdict, 32, 4, 4),
        },
    )


TRAININGS: dict[str, Callable[[], Training]] = {"convolutional VAE": vae, "GAN generator": generator_step}
