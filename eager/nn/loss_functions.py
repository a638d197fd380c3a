"""Losses. Each ends in `reduced`: the mean, the sum, or the losses one by one."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from eager.functional.arguments import ALL_AXES, constant, shape_of
from eager.functional.arithmetic import clamp
from eager.language import E
from eager.state import current_interpreter
from eager.tensor import Tensor
from graphc.ops.rules import torch_name

SIZES = (
    "Using a target size (torch.Size({target})) that is different to the input size (torch.Size({input})). "
    "This will likely lead to incorrect results due to broadcasting. Please ensure they have the same size."
)


def reduced(losses: Tensor, reduction: str) -> Tensor:
    """`losses` by "mean", "sum" or "none". Raises ValueError for another word."""
    if reduction == "mean":
        return E.mean(losses, axis=ALL_AXES[len(losses._d.shape)], keepdims=False)
    if reduction == "sum":
        return E.sum(losses, axis=ALL_AXES[len(losses._d.shape)], keepdims=False)
    check_reduction(reduction)
    return losses


def check_reduction(reduction: str) -> None:
    """Raise PyTorch's ValueError unless `reduction` is one of the three."""
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")


def _warn_of_sizes(input: Tensor, target: Tensor) -> None:
    if input._d.shape != target._d.shape:
        sizes = {"target": list(target._d.shape), "input": list(input._d.shape)}
        warnings.warn(SIZES.format(**sizes), UserWarning, stacklevel=3)


def mse_loss(input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean",
             weight: Tensor | None = None) -> Tensor:  # fmt: skip
    """(input - target)^2. As `torch.nn.functional.mse_loss`."""
    _warn_of_sizes(input, target)
    losses = E.square(E.sub(input, target))
    return reduced(losses if weight is None else E.mul(losses, weight), reduction)


def l1_loss(input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean",
            weight: Tensor | None = None) -> Tensor:  # fmt: skip
    """|input - target|. As `torch.nn.functional.l1_loss`."""
    _warn_of_sizes(input, target)
    losses = E.abs(E.sub(input, target))
    return reduced(losses if weight is None else E.mul(losses, weight), reduction)


def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """Quadratic up to `delta`, then linear: d^2 / 2 or delta * (|d| - delta / 2). As in PyTorch."""
    _warn_of_sizes(input, target)
    distance = E.abs(E.sub(input, target))
    near = E.mul(E.square(distance), 0.5)
    losses = E.where(E.lt(distance, delta), near, E.mul(E.sub(distance, 0.5 * delta), delta))
    return reduced(losses if weight is None else E.mul(losses, weight), reduction)


def smooth_l1_loss(input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean",
                   beta: float = 1.0) -> Tensor:  # fmt: skip
    """The Huber loss divided by its threshold `beta`. As `torch.nn.functional.smooth_l1_loss`."""
    if beta == 0.0:
        return l1_loss(input, target, reduction=reduction)
    _warn_of_sizes(input, target)
    distance = E.abs(E.sub(input, target))
    losses = E.where(E.lt(distance, beta), E.mul(E.square(distance), 0.5 / beta), E.sub(distance, 0.5 * beta))
    return reduced(losses, reduction)


def kl_div(input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean",
           log_target: bool = False) -> Tensor:  # fmt: skip
    """target * (log(target) - input), `input` in log space. As `torch.nn.functional.kl_div` (with "batchmean")."""
    if log_target:
        losses = E.mul(E.exp(target), E.sub(target, input))
    else:
        positive = E.gt(target, 0)  # 0 * log(0) counts as 0
        entropy = E.where(positive, E.mul(target, E.log(E.where(positive, target, 1))), 0)
        losses = E.sub(entropy, E.mul(target, input))
    if reduction == "batchmean":
        return E.div(reduced(losses, "sum"), float(input._d.shape[0]))
    return reduced(losses, reduction)


# --- two classes


def binary_cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None,
                         reduce: Any = None, reduction: str = "mean") -> Tensor:  # fmt: skip
    """-(t log(x) + (1 - t) log(1 - x)), each log at least -100. As `torch.nn.functional.binary_cross_entropy`.

    Raises ValueError for sizes that differ, RuntimeError for an input outside [0, 1].
    """
    if input._d.shape != target._d.shape:
        raise ValueError(
            f"Using a target size (torch.Size({list(target._d.shape)})) that is different to the input size "
            f"(torch.Size({list(input._d.shape)})) is deprecated. Please ensure they have the same size."
        )
    if current_interpreter() is None:
        array = input._array()
        if not np.all((array >= 0) & (array <= 1)):
            raise RuntimeError("all elements of input should be between 0 and 1")
    least = math.exp(-100)  # bounding the argument keeps the gradient finite where log(0) would make it 0 * inf
    yes = E.mul(target, E.log(clamp(input, least)))
    no = E.mul(E.sub(1, target), E.log(clamp(E.sub(1, input), least)))
    losses = E.neg(E.add(yes, no))
    return reduced(losses if weight is None else E.mul(losses, weight), reduction)


def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Tensor | None = None,
                                     size_average: Any = None, reduce: Any = None, reduction: str = "mean",
                                     pos_weight: Tensor | None = None) -> Tensor:  # fmt: skip
    """The binary cross entropy of sigmoid(input), without overflow. As in PyTorch. ValueError for sizes that differ."""
    if input._d.shape != target._d.shape:
        raise ValueError(
            f"Target size (torch.Size({list(target._d.shape)})) must be the same as input size "
            f"(torch.Size({list(input._d.shape)}))"
        )
    below = E.softplus(E.neg(input))  # -log(sigmoid(x))
    if pos_weight is not None:
        below = E.mul(below, E.add(E.mul(E.sub(pos_weight, 1), target), 1))
    losses = E.add(E.mul(E.sub(1, target), input), below)
    return reduced(losses if weight is None else E.mul(losses, weight), reduction)


# --- many classes


def cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None,
                  ignore_index: int = -100, reduce: Any = None, reduction: str = "mean",
                  label_smoothing: float = 0.0) -> Tensor:  # fmt: skip
    """The cross entropy of logits (N, C, *) and classes (N, *) or probabilities (N, C, *). As in PyTorch.

    Raises IndexError for a class out of bounds, RuntimeError or ValueError for sizes that do not fit.
    """
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    shape = shape_of(input, "cross_entropy")
    axis = 0 if len(shape) == 1 else 1
    log_probabilities = E.log_softmax(input, axis=axis)
    if target._d.shape == shape and target._dtype().kind == "f":
        return _of_probabilities(log_probabilities, target, weight, reduction, label_smoothing, axis)
    return _nll(log_probabilities, target, weight, ignore_index, reduction, label_smoothing)


def nll_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None,
             ignore_index: int = -100, reduce: Any = None, reduction: str = "mean") -> Tensor:  # fmt: skip
    """Minus the log probabilities (N, C, *) of the classes (N, *). As `torch.nn.functional.nll_loss`."""
    shape_of(input, "nll_loss")
    return _nll(input, target, weight, ignore_index, reduction, 0.0)


def _of_probabilities(
    logs: Tensor, target: Tensor, weight: Tensor | None, reduction: str, smoothing: float, axis: int
) -> Tensor:
    shape = logs._d.shape
    if smoothing:
        target = E.add(E.mul(target, 1 - smoothing), smoothing / shape[axis])
    terms = E.mul(logs, target)
    if weight is not None:
        terms = E.mul(terms, _by_class(weight, len(shape), axis))
    losses = E.neg(E.sum(terms, axis=(axis,), keepdims=False))
    if reduction == "mean":  # over the samples, also where a sample is an image
        return E.div(reduced(losses, "sum"), float(math.prod(losses._d.shape)))
    return reduced(losses, reduction)


def _by_class(weight: Tensor, ndim: int, axis: int) -> Tensor:
    return E.reshape(weight, shape=tuple(weight._d.shape[0] if i == axis else 1 for i in range(ndim)))


def _nll(logs: Tensor, target: Tensor, weight: Tensor | None, ignore: int, reduction: str, smoothing: float) -> Tensor:
    check_reduction(reduction)
    shape, at = logs._d.shape, target._d.shape
    axis = 0 if len(shape) == 1 else 1
    if shape[:axis] + shape[axis + 1 :] != at:
        _raise_sizes(shape, at)
    if target._dtype().kind not in "iu":
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {torch_name(target._dtype())}")
    classes = shape[axis]
    plain = weight is None and not smoothing
    tall = (*at[:axis], 1, *at[axis:])
    if current_interpreter() is None:
        values = target._array()
        some_ignored = _check_classes(values, classes, ignore)
        # a mask and a sum cost a third of a gather and its scatter, and their code is generated
        mask = Tensor._wrap(
            values.reshape(tall) == np.arange(classes).reshape((classes,) + (1,) * (len(shape) - axis - 1))
        )
        chosen = E.where(mask, logs, constant(0, logs))
        if plain and not some_ignored and reduction != "none":
            total = E.sum(chosen, axis=ALL_AXES[len(shape)], keepdims=False)
            return E.div(total, float(-values.size)) if reduction == "mean" else E.neg(total)
        picked = E.sum(chosen, axis=(axis,), keepdims=False)
        valid = E.ne(target, ignore) if some_ignored else None
        index = target if valid is None else E.where(valid, target, 0)
    else:
        valid = E.ne(target, ignore)
        index = E.where(valid, target, 0)
        picked = E.reshape(E.gather(logs, E.reshape(index, shape=tall), axis=axis), shape=at)
    if plain and valid is None:
        return E.neg(picked)
    return _weighted(logs, picked, index, valid, weight, reduction, smoothing, axis)


def _weighted(logs: Tensor, picked: Tensor, index: Tensor, valid: Tensor | None, weight: Tensor | None, reduction: str,
              smoothing: float, axis: int) -> Tensor:  # fmt: skip
    """The loss with class weights, ignored classes and smoothing; its mean is over the weights that count."""
    at, dtype = picked._d.shape, logs._dtype()
    if weight is None:
        mass = E.full(shape=tuple(at), value=1, dtype=dtype)
    else:
        mass = E.index(weight, index, spec=(0,))
    if valid is not None:
        zero = constant(0, logs)
        mass, picked = E.where(valid, mass, zero), E.where(valid, picked, zero)
    losses = E.neg(E.mul(picked, mass) if weight is not None else picked)
    if smoothing:
        terms = logs if weight is None else E.mul(logs, _by_class(weight, len(logs._d.shape), axis))
        smooth = E.neg(E.sum(terms, axis=(axis,), keepdims=False))
        if valid is not None:
            smooth = E.where(valid, smooth, constant(0, logs))
        losses = E.add(E.mul(losses, 1 - smoothing), E.mul(smooth, smoothing / logs._d.shape[axis]))
    if reduction == "mean":
        return E.div(reduced(losses, "sum"), reduced(mass, "sum"))
    return reduced(losses, reduction)


def _check_classes(target: np.ndarray, classes: int, ignore: int) -> bool:
    """Whether some targets are `ignore`. Raises PyTorch's IndexError for any other that is no class."""
    if not target.size:
        return False
    # as unsigned numbers, negative classes are large: one test for both ends
    if target.astype(np.uint64, copy=False).max() < classes and not 0 <= ignore < classes:
        return False
    ignored = target == ignore
    outside = target[((target < 0) | (target >= classes)) & ~ignored]
    if outside.size:
        raise IndexError(f"Target {int(outside[0])} is out of bounds.")
    return bool(ignored.any())


def _raise_sizes(shape: tuple[int, ...], target: tuple[int, ...]) -> None:
    if len(shape) > 1 and target and shape[0] != target[0]:
        raise ValueError(f"Expected input batch_size ({shape[0]}) to match target batch_size ({target[0]}).")
    if len(shape) == 2 and len(target) > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    raise RuntimeError(f"Expected target size {[*shape[:1], *shape[2:]]}, got {list(target)}")
