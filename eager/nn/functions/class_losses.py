"""Losses of classes and of sequences of them. As in `torch.nn.functional`."""

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
from eager.functional.arguments import ALL_AXES, check_real, constant, not_implemented, shape_of
from eager.functional.arithmetic import clamp_min
from eager.nn.functions.activation import refused_along
from eager.nn.functions.distance import linear
from eager.nn.functions.loss import check_reduction, chosen_reduction, reduced
from graphc.ops.dtypes import INT64, is_floating, is_half
from graphc.ops.rules import torch_name

__all__ = ["cross_entropy", "ctc_loss", "linear_cross_entropy", "nll_loss"]

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


IMPOSSIBLE = -1e30  # the logarithm of no probability, kept finite so that its gradient is


def _lengths(values: Any, name: str) -> np.ndarray:
    if isinstance(values, Tensor):
        if values._dtype().kind not in "iu":
            raise RuntimeError(f"{name} must be integral")
        return np.atleast_1d(values._known()).astype(np.int64)
    return np.atleast_1d(np.asarray(values, np.int64))


def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: int = 0,
             reduction: str = "mean", zero_infinity: bool = False) -> Tensor:  # fmt: skip
    """Minus the log probability of label sequences, over all alignments. As `torch.nn.functional.ctc_loss`.

    log_probs: (T, N, C) or (T, C). targets: (N, S), or all in a row. Raises RuntimeError for lengths or a blank that do
    not fit. The gradient is that of log-probabilities from a softmax, as in PyTorch.
    """
    check_reduction(reduction)
    shape = tuple(shape_of(log_probs, "ctc_loss", "log_probs"))
    batched = len(shape) == 3
    logs = log_probs if batched else E.reshape(log_probs, shape=(shape[0], 1, shape[1]))
    steps, n, classes = logs._d.shape
    inputs, lengths = _lengths(input_lengths, "input_lengths"), _lengths(target_lengths, "target_lengths")
    if not n:
        raise RuntimeError("log_probs tensor must not be empty")
    if not is_floating(logs._dtype()) or is_half(logs._dtype()):
        raise not_implemented("ctc_loss_cpu", logs)
    if not 0 <= blank < classes:
        raise RuntimeError("blank must be in label range")
    for name, given in (("input_lengths", inputs), ("target_lengths", lengths)):
        if len(given) != n:
            raise RuntimeError(f"{name} must be of size batch_size")
        if given.min(initial=0) < 0:
            raise RuntimeError(
                f"Expected {name} to have value at least 0, but got value {int(given.min())} (while checking arguments "
                "for ctc_loss_allocate_outputs)"
            )
    labels = _padded_labels(targets._known(), lengths, n)
    if inputs.max(initial=0) > steps:
        raise RuntimeError(
            f"Expected input_lengths to have value at most {steps}, but got value {int(inputs.max())} (while checking "
            "arguments for ctc_loss_allocate_outputs)"
        )
    since = next(sequence)
    losses = _losses(logs, labels, inputs, lengths, blank)
    infinite = E.gt(losses, -IMPOSSIBLE / 2)
    losses = E.where(infinite, constant(0.0 if zero_infinity else math.inf, losses), losses)
    losses = E.add(losses, _softmax_share(logs, inputs, infinite))
    if not batched:
        losses = E.reshape(losses, shape=())
    losses = enclosed(losses, "WhereBackward0" if zero_infinity else "CtcLossBackward0", since)
    if reduction == "mean":
        divisor = Tensor._wrap(np.maximum(lengths, 1).astype(losses._dtype()).reshape(losses._d.shape))
        losses = E.div(losses, divisor)
    return reduced(losses, reduction)


def _softmax_share(logs: Tensor, inputs: np.ndarray, dropped: Tensor) -> Tensor:
    """Zero, with gradient exp(log_probs): PyTorch's backward takes the softmax before the loss for granted."""
    valid = np.arange(logs._d.shape[0])[:, None] < inputs
    total = E.sum(E.exp(logs), axis=(2,), keepdims=False)
    total = E.sum(E.where(Tensor._wrap(valid), total, constant(0, total)), axis=(0,), keepdims=False)
    total = E.where(dropped, constant(0, total), total)
    return E.sub(total, E.stop_gradient(total))


def _padded_labels(targets: np.ndarray, lengths: np.ndarray, n: int) -> np.ndarray:
    if targets.ndim == 2:
        if lengths.max(initial=0) > targets.shape[1]:
            raise RuntimeError(
                f"Expected tensor to have size at least {int(lengths.max())} at dimension 1, but got size "
                f"{targets.shape[1]} for argument #2 'targets' (while checking arguments for ctc_loss_allocate_outputs)"
            )
        return targets[:, : max(int(lengths.max(initial=0)), 1)].astype(np.int64)
    if targets.size != lengths.sum():
        raise RuntimeError(
            f"Expected tensor to have size {int(lengths.sum())} at dimension 0, but got size {targets.size} for "
            "argument #2 'targets' (while checking arguments for ctc_loss_allocate_outputs)"
        )
    result = np.zeros((n, max(int(lengths.max(initial=0)), 1)), np.int64)
    start = 0
    for row, count in zip(result, lengths, strict=True):
        row[:count] = targets[start : start + count]
        start += count
    return result


def _losses(logs: Tensor, labels: np.ndarray, inputs: np.ndarray, lengths: np.ndarray, blank: int) -> Tensor:
    """The forward algorithm over labels with blanks around them: states (N, 2 S + 1)."""
    steps, n, _ = logs._d.shape
    states = 2 * labels.shape[1] + 1
    symbols = np.full((n, states), blank)
    symbols[:, 1::2] = np.where(np.arange(labels.shape[1]) < lengths[:, None], labels, blank)
    # from the state itself, from the one before, and past the blank between two labels that differ; all three are one
    # gather, which XLA computes once (of shifted slices it makes 3^T copies)
    sources = np.maximum(np.arange(states) - np.arange(3)[:, None], 0)
    moves = np.broadcast_to(np.arange(states) >= np.arange(3)[:, None], (n, 3, states)).copy()
    moves[:, 2, 0::2] = False
    moves[:, 2, 3::2] = symbols[:, 3::2] != symbols[:, 1:-2:2]
    barred = Tensor._wrap(np.where(moves, 0, IMPOSSIBLE).astype(logs._dtype()))
    index = Tensor._wrap(np.broadcast_to(symbols, (steps, n, states)))
    emitted = E.gather(logs, index, axis=2)
    first = np.zeros((n, states), bool)
    first[:, :2] = True
    low = constant(IMPOSSIBLE, logs)
    alpha = E.where(Tensor._wrap(first), _at(emitted, 0), low)
    for t in range(1, steps):
        taps = E.add(E.index(alpha, Tensor._wrap(sources), spec=(None, 0)), barred)
        reached = E.logsumexp(taps, axis=(1,), keepdims=False)
        moved = clamp_min(E.add(reached, _at(emitted, t)), IMPOSSIBLE)
        running = t < inputs
        alpha = moved if running.all() else E.where(Tensor._wrap(running[:, None]), moved, alpha)
    ends = np.zeros((n, states), bool)
    rows = np.arange(n)
    ends[rows, 2 * lengths] = True
    ends[rows, np.maximum(2 * lengths - 1, 0)] = True
    return E.neg(E.logsumexp(E.where(Tensor._wrap(ends), alpha, low), axis=(1,), keepdims=False))


def _at(x: Tensor, t: int) -> Tensor:
    _, n, states = x._d.shape
    return E.reshape(E.slice(x, start=(t, 0, 0), stop=(t + 1, n, states), step=(1, 1, 1)), shape=(n, states))
