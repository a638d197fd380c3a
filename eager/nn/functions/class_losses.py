"""Losses of many classes: cross entropy, negative log likelihood. As in `torch.nn.functional`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from eager.core import operands
from eager.core.interpreter import on_arrays
from eager.core.placed import is_placed
from eager.core.state import sequence
from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.engine.node_names import enclosed, named
from eager.functional.arguments import ALL_AXES, check_real, constant, shape_of
from eager.nn.functions.activation import refused_along
from eager.nn.functions.distance import linear
from eager.nn.functions.reductions import check_reduction, chosen_reduction, reduced
from graphc.ops.dtypes import INT64, is_floating
from graphc.ops.rules import torch_name

__all__ = ["cross_entropy", "linear_cross_entropy", "nll_loss"]

MASKED = 4096  # scores: above, reading all of them through a mask costs more than picking some
TARGETS = (INT64, np.dtype(np.uint8))


def cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None,
                  ignore_index: int = -100, reduce: Any = None, reduction: str = "mean",
                  label_smoothing: float = 0.0) -> Tensor:  # fmt: skip
    """The cross entropy of logits (N, C, *) and classes (N, *) or probabilities (N, C, *). As in PyTorch.

    Raises IndexError for a class out of bounds, RuntimeError or ValueError for sizes that do not fit.
    """
    shape = shape_of(input, "cross_entropy_loss")
    reduction = chosen_reduction(size_average, reduce, reduction)
    check_reduction(reduction)
    probabilities = shape_of(target, "cross_entropy_loss", "target", 2) == shape
    _check_weight(weight, shape, "cross_entropy: " if probabilities else "")
    axis = 0 if len(shape) == 1 else 1
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    if probabilities and not is_floating(target._dtype()):
        raise RuntimeError(
            f"Expected floating point type for target with class probabilities, got {torch_name(target._dtype())}"
        )
    if not is_floating(input._dtype()):
        raise refused_along("log_softmax", axis, input)
    if probabilities:
        if ignore_index >= 0:
            raise RuntimeError("ignore_index is not supported for floating point target")
        logs = E.log_softmax(input, axis=axis)
        return _of_probabilities(logs, target, weight, reduction, label_smoothing, axis)
    return _nll(E.log_softmax(input, axis=axis), target, weight, ignore_index, reduction, label_smoothing)


def linear_cross_entropy(
    input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Tensor | None = None,
    weight: Tensor | None = None, reduction: str = "mean", ignore_index: int | None = None,
    label_smoothing: float = 0.0, options: Any = None,
) -> Tensor:  # fmt: skip
    """The cross entropy of `linear(input, linear_weight)`: (N, F) by (C, *, F). As in PyTorch.

    `options` say how PyTorch cuts the product into pieces, and change nothing here.
    """
    *sizes, features = linear_weight._d.shape
    rows = E.reshape(linear_weight, shape=(math.prod(sizes), features))
    logits = linear(input, rows, None if linear_bias is None else E.reshape(linear_bias, shape=(math.prod(sizes),)))
    if len(sizes) > 1:
        logits = E.reshape(logits, shape=(*logits._d.shape[:-1], *sizes))
    ignored = -100 if ignore_index is None else ignore_index
    return cross_entropy(
        logits, target, weight, ignore_index=ignored, reduction=reduction, label_smoothing=label_smoothing
    )


def nll_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None,
             ignore_index: int = -100, reduce: Any = None, reduction: str = "mean") -> Tensor:  # fmt: skip
    """Minus the log probabilities (N, C, *) of the classes (N, *). As `torch.nn.functional.nll_loss`."""
    shape = shape_of(input, "nll_loss_nd")
    if not shape:
        raise ValueError("Expected 1 or more dimensions (got 0)")
    reduction = chosen_reduction(size_average, reduce, reduction)
    check_reduction(reduction)
    _check_weight(weight, shape)
    check_real(input, "nll_loss_out_frame")
    return _nll(input, target, weight, ignore_index, reduction, 0.0)


def _check_weight(weight: Tensor | None, shape: tuple[int, ...], where: str = "") -> None:
    classes = shape[0] if len(shape) == 1 else shape[1] if shape else 1
    if weight is not None and tuple(operands.shape(weight)) != (classes,):
        if len(shape) > 2 and not where:
            raise RuntimeError("weight tensor should be defined either for all or no classes")
        raise RuntimeError(
            f"{where}weight tensor should be defined either for all {classes} classes or no classes but got weight "
            f"tensor of shape: {list(weight._d.shape)}"
        )


def _of_probabilities(
    logs: Tensor, target: Tensor, weight: Tensor | None, reduction: str, smoothing: float, axis: int
) -> Tensor:
    shape = logs._d.shape
    if smoothing:
        target = E.add(E.mul(target, 1 - smoothing), smoothing / shape[axis])
    terms = E.mul(logs, target)
    if weight is not None:
        terms = E.mul(terms, _by_class(weight, len(shape), axis))
    if reduction == "none":
        return E.neg(E.sum(terms, axis=(axis,), keepdims=False))
    total = E.neg(E.sum(terms, axis=ALL_AXES[len(shape)], keepdims=False))
    if reduction == "sum":
        return total
    # the mean is over the samples, also where a sample is an image
    return named(E.div(total, float(math.prod(shape[:axis] + shape[axis + 1 :]))), "DivBackward1")


def _by_class(weight: Tensor, ndim: int, axis: int) -> Tensor:
    return E.reshape(weight, shape=tuple(weight._d.shape[0] if i == axis else 1 for i in range(ndim)))


def _nll(logs: Tensor, target: Tensor, weight: Tensor | None, ignore: int, reduction: str, smoothing: float) -> Tensor:
    since = next(sequence)
    result = _nll_of_classes(logs, target, weight, ignore, reduction, smoothing)
    if smoothing:
        return enclosed(result, "AddBackward0", since)
    ndim = len(logs._d.shape)
    if ndim <= 2:
        return enclosed(result, "NllLossBackward0", since)
    # PyTorch makes an image of any other shape
    viewed = ndim != 4 and reduction == "none"
    return enclosed(result, "ViewBackward0" if viewed else "NllLoss2DBackward0", since)


def _nll_of_classes(
    logs: Tensor, target: Tensor, weight: Tensor | None, ignore: int, reduction: str, smoothing: float
) -> Tensor:
    shape, at = logs._d.shape, shape_of(target, "nll_loss_nd", "target", 2)
    axis = 0 if len(shape) == 1 else 1
    if len(shape) == 1 and at == (1,):
        target, at = E.reshape(target, shape=()), ()
    if shape[:axis] + shape[axis + 1 :] != at:
        _raise_sizes(shape, at)
    if target._dtype() not in TARGETS:
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {torch_name(target._dtype())}")
    if weight is not None and weight._dtype() != logs._dtype():
        names = torch_name(logs._dtype()), torch_name(weight._dtype())
        raise RuntimeError("expected scalar type {} but found {}".format(*names))
    classes = shape[axis]
    plain = weight is None and not smoothing
    tall = (*at[:axis], 1, *at[axis:])
    if on_arrays(target):
        values = target._array()
        some_ignored = _check_classes(values, classes, ignore)
        valid = E.ne(target, ignore) if some_ignored else None
        index = target if valid is None else E.where(valid, target, 0)
        if values.size * classes > MASKED:
            chosen = picked = _picked(logs, index, tall, axis)
        else:  # a mask and a sum cost less than a gather's calls and its scatter's, and their code is generated
            mask = Tensor._wrap(
                values.reshape(tall) == np.arange(classes).reshape((classes,) + (1,) * (len(shape) - axis - 1))
            )
            chosen, picked = E.where(mask, logs, constant(0, logs)), None
        if plain and not some_ignored and reduction != "none":
            total = E.sum(chosen, axis=ALL_AXES[len(chosen._d.shape)], keepdims=False)
            return E.div(total, float(-values.size)) if reduction == "mean" else E.neg(total)
        if picked is None:
            picked = E.sum(chosen, axis=(axis,), keepdims=False)
    else:
        if is_placed(target):
            _check_classes(target._read(), classes, ignore)
        valid = E.ne(target, ignore)
        index = E.where(valid, target, 0)
        picked = _picked(logs, index, tall, axis)
    if plain and valid is None:
        return E.neg(picked)
    return _weighted(logs, picked, index, valid, weight, reduction, smoothing, axis)


def _picked(logs: Tensor, index: Tensor, tall: tuple[int, ...], axis: int) -> Tensor:
    if index._dtype() != INT64:
        index = E.cast(index, dtype=INT64)
    return E.reshape(E.gather(logs, E.reshape(index, shape=tall), axis=axis), shape=tall[:axis] + tall[axis + 1 :])


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
        mass = E.where(valid, mass, zero)
    losses = E.neg(E.mul(picked, mass) if weight is not None else picked)
    if valid is not None:
        losses = E.where(valid, losses, constant(0, logs))
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
    if len(shape) == 4 and len(target) != 3:
        raise RuntimeError(
            f"only batches of spatial targets supported (3D tensors) but got targets of dimension: {len(target)}"
        )
    if len(shape) > 1 and shape[0] != (target[0] if target else 0):
        raise ValueError(
            f"Expected input batch_size ({shape[0]}) to match target batch_size ({target[0] if target else 0})."
        )
    if len(shape) == 4:
        raise RuntimeError(f"size mismatch (got input: {list(shape)} , target: {list(target)}")
    if len(shape) == 2 and len(target) > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    raise RuntimeError(f"Expected target size {[*shape[:1], *shape[2:]]}, got {list(target)}")
