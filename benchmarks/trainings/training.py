"""What a training is, and how arrays get from PyTorch's layouts to those of JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import eager as torch
from eager import nn

from .optimizers import Optimizer, adam

rng = np.random.default_rng(0)


class Training(NamedTuple):
    """A model with its loss(*batch), and the same as parameters and a loss(parameters, *batch) for JAX.

    Where there is state beside the parameters (statistics, a frozen net), `buffers` gives its present values as a tree,
    and JAX's loss is one of (parameters, buffers, *batch) that returns (loss, new buffers).
    """

    model: nn.Module  # its parameters are trained
    loss: Callable[..., torch.Tensor]
    batch: tuple[np.ndarray, ...]
    parameters: Any
    jax_loss: Callable[..., Any]
    buffers: Callable[[], Any] | None = None
    jax_batch: tuple[np.ndarray, ...] | None = None  # where its order is another: images of (height, width, channels)
    optimizer: Optimizer = adam()


def floats(*shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


def labels(classes: int, *shape: int) -> np.ndarray:
    return rng.integers(0, classes, shape)


def own(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().numpy().copy()


def matrix(linear: nn.Linear) -> tuple[np.ndarray, np.ndarray]:
    """(weight as (in, out), bias) of a linear layer."""
    return own(linear.weight).T.copy(), own(linear.bias)


def matrices(*layers: nn.Module) -> list[tuple[np.ndarray, np.ndarray]]:
    """Those of the linear layers among `layers`."""
    return [matrix(layer) for layer in layers if isinstance(layer, nn.Linear)]


def scale_shift(norm: nn.Module) -> tuple[np.ndarray, np.ndarray]:
    return own(norm.weight), own(norm.bias)


def statistics(norm: nn.Module) -> tuple[np.ndarray, np.ndarray]:
    return own(norm.running_mean), own(norm.running_var)


def kernel(convolution: nn.Conv2d) -> tuple[np.ndarray, ...]:
    """(weight as (height, width, in, out), bias where there is one) of a convolution."""
    bias = () if convolution.bias is None else (own(convolution.bias),)
    return own(convolution.weight).transpose(2, 3, 1, 0).copy(), *bias


def transposed_kernel(convolution: nn.ConvTranspose2d) -> tuple[np.ndarray, np.ndarray]:
    """The same of a transposed one. Where kernels overlap they are turned around, so that JAX may correlate."""
    w = own(convolution.weight).transpose(2, 3, 0, 1)
    overlap = w.shape[0] > convolution.stride[0]
    return (w[::-1, ::-1] if overlap else w).copy(), own(convolution.bias)


def channels_last(images: np.ndarray) -> np.ndarray:
    return images.transpose(0, 2, 3, 1).copy()


def matrix_after_images(linear: nn.Linear, channels: int, height: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """`matrix` of a layer whose inputs are flattened images, for images with their channels last."""
    w, b = matrix(linear)
    return w.reshape(channels, height, width, -1).transpose(1, 2, 0, 3).reshape(w.shape).copy(), b


def matrix_before_images(linear: nn.Linear, channels: int, height: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """`matrix` of a layer whose outputs are such images."""

    def last(a: np.ndarray) -> np.ndarray:
        return np.moveaxis(a.reshape(-1, channels, height, width), 1, -1).reshape(a.shape)

    w, b = matrix(linear)
    return last(w), last(b)
