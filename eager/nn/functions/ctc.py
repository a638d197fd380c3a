"""Connectionist temporal classification (Graves et al. 2006). As `torch.nn.functional.ctc_loss`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from eager.core.state import sequence
from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.engine.node_names import enclosed
from eager.functional.arguments import constant, not_implemented, shape_of
from eager.functional.arithmetic import clamp_min
from eager.nn.functions.reductions import check_reduction, reduced
from graphc.ops.dtypes import is_floating, is_half

__all__ = ["ctc_loss"]

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
