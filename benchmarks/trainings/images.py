"""Convolutional nets. Images have their channels first for graphc, and last for JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

import eager as torch
from eager import nn

from .layers import batch_norm, conv, conv_transpose_2x2, cross_entropy, linear, max_pool
from .optimizers import sgd
from .training import (
    Training,
    channels_last,
    floats,
    kernel,
    labels,
    matrix,
    matrix_after_images,
    scale_shift,
    statistics,
    transposed_kernel,
)

F = nn.functional


def cnn() -> Training:
    """Two convolutions of 3x3 with ReLU and pooling, and a linear layer, on 32 images of 28x28."""
    first, second = nn.Conv2d(1, 16, 3, padding=1), nn.Conv2d(16, 32, 3, padding=1)
    head = nn.Linear(32 * 7 * 7, 10)
    model = nn.Sequential(
        first, nn.ReLU(), nn.MaxPool2d(2), second, nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), head
    )  # fmt: skip
    images, y = floats(32, 1, 28, 28), labels(10, 32)

    def jax_loss(parameters: Any, x: Any, y: Any) -> Any:
        *filters, last = parameters
        for layer in filters:
            x = max_pool(jax.nn.relu(conv(layer, x)))
        return cross_entropy(linear(last, x.reshape(x.shape[0], -1)), y)

    return Training(
        model,
        lambda x, y: F.cross_entropy(model(x), y),
        (images, y),
        [kernel(first), kernel(second), matrix_after_images(head, 32, 7, 7)],
        jax_loss,
        jax_batch=(channels_last(images), y),
    )


class BasicBlock(nn.Module):
    """Two convolutions with batch norm, beside a shortcut."""

    def __init__(self, channels: int, results: int, stride: int):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, results, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(results)
        self.conv2 = nn.Conv2d(results, results, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(results)
        self.shortcut = None
        if stride > 1:
            self.shortcut = nn.Sequential(nn.Conv2d(channels, results, 1, stride, bias=False), nn.BatchNorm2d(results))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return F.relu(y + (x if self.shortcut is None else self.shortcut(x)))

    def convolutions(self) -> list[nn.Conv2d]:
        return [module for module in self.modules() if isinstance(module, nn.Conv2d)]

    def norms(self) -> list[nn.BatchNorm2d]:
        return [module for module in self.modules() if isinstance(module, nn.BatchNorm2d)]


def resnet() -> Training:
    """A stem and two basic blocks with batch norm, the second of stride 2, on 8 images of 32x32; momentum."""
    stem, norm = nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16)
    blocks = [BasicBlock(16, 16, 1), BasicBlock(16, 32, 2)]
    head = nn.Linear(32, 10)
    model = nn.Sequential(stem, norm, nn.ReLU(), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), head)
    images, y = floats(8, 3, 32, 32), labels(10, 8)

    def jax_block(convolutions: Any, norms: Any, running: Any, x: Any) -> tuple[Any, Any]:
        stride = 2 if len(convolutions) == 3 else 1
        y, seen1 = batch_norm(norms[0], running[0], conv(convolutions[0], x, stride))
        y, seen2 = batch_norm(norms[1], running[1], conv(convolutions[1], jax.nn.relu(y)))
        if stride == 1:
            return jax.nn.relu(y + x), [seen1, seen2]
        x, seen3 = batch_norm(norms[2], running[2], conv(convolutions[2], x, stride, padding=0))
        return jax.nn.relu(y + x), [seen1, seen2, seen3]

    def jax_loss(p: Any, running: Any, x: Any, y: Any) -> Any:
        x, seen = batch_norm(p["norm"], running["norm"], conv(p["stem"], x))
        x, after = jax.nn.relu(x), []
        for block, before in zip(p["blocks"], running["blocks"], strict=True):
            x, new = jax_block(*block, before, x)
            after.append(new)
        return cross_entropy(linear(p["head"], x.mean((1, 2))), y), {"norm": seen, "blocks": after}

    return Training(
        model,
        lambda x, y: F.cross_entropy(model(x), y),
        (images, y),
        {
            "stem": kernel(stem),
            "norm": scale_shift(norm),
            "blocks": [([*map(kernel, b.convolutions())], [*map(scale_shift, b.norms())]) for b in blocks],
            "head": matrix(head),
        },
        jax_loss,
        buffers=lambda: {
            "norm": statistics(norm),
            "blocks": [[statistics(norm) for norm in block.norms()] for block in blocks],
        },
        jax_batch=(channels_last(images), y),
        optimizer=sgd(0.05, momentum=0.9),
    )


def twice(channels: int, results: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(channels, results, 3, padding=1), nn.ReLU(), nn.Conv2d(results, results, 3, padding=1), nn.ReLU()
    )


class UNet(nn.Module):
    """One level down, and up again."""

    def __init__(self) -> None:
        super().__init__()
        self.down, self.bottom, self.merge = twice(1, 16), twice(16, 32), twice(32, 16)
        self.up, self.head = nn.ConvTranspose2d(32, 16, 2, stride=2), nn.Conv2d(16, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        skip = self.down(x)
        x = self.up(self.bottom(F.max_pool2d(skip, 2)))
        return self.head(self.merge(torch.cat([skip, x], dim=1)))


def unet() -> Training:
    """A class for each pixel of 4 images of 32x32."""
    model = UNet()
    images, y = floats(4, 1, 32, 32), labels(2, 4, 32, 32)

    def both(layers: Any, x: Any) -> Any:
        for layer in layers:
            x = jax.nn.relu(conv(layer, x))
        return x

    def jax_loss(p: Any, x: Any, y: Any) -> Any:
        skip = both(p["down"], x)
        x = conv_transpose_2x2(p["up"], both(p["bottom"], max_pool(skip)))
        x = both(p["merge"], jnp.concatenate([skip, x], -1))
        return cross_entropy(linear(p["head"], x), y)  # a convolution of 1x1

    w, b = kernel(model.head)
    return Training(
        model,
        lambda x, y: F.cross_entropy(model(x), y),
        (images, y),
        {
            **{name: [kernel(getattr(model, name)[k]) for k in (0, 2)] for name in ("down", "bottom", "merge")},
            "up": transposed_kernel(model.up),
            "head": (w[0, 0], b),
        },
        jax_loss,
        jax_batch=(channels_last(images), y),
    )


TRAININGS: dict[str, Callable[[], Training]] = {"CNN": cnn, "ResNet, two basic blocks": resnet, "U-Net": unet}
