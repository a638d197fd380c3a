"""Losses that want distances or scores apart by a margin. As in `torch.nn.functional`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from eager.core import operands
from eager.core.tensor import Tensor
from eager.engine.conversion import converted
from eager.engine.inplace import check_castable
from eager.engine.language import E
from eager.engine.node_names import whole
from eager.functional.arguments import constant, shape_of
from eager.functional.arithmetic import clamp_min
from eager.functional.precision import rounds_once
from eager.nn.functions.activation import logsigmoid
from eager.nn.functions.distance import pairwise_distance
from eager.nn.functions.loss import check_reduction, chosen_reduction, reduced
from graphc.ops.dtypes import FLOAT32, INT64, is_floating, is_half, is_inexact
from graphc.ops.rules import torch_name

__all__ = [
    "cosine_embedding_loss", "hinge_embedding_loss", "margin_ranking_loss", "multi_margin_loss",
    "multilabel_margin_loss", "multilabel_soft_margin_loss", "soft_margin_loss", "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
]  # fmt: skip


def _positive(x: Tensor) -> Tensor:
    return clamp_min(x, 0)


def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, size_average: Any = None,
                         reduce: Any = None, reduction: str = "mean") -> Tensor:  # fmt: skip
    """input where target is 1, max(0, margin - input) where it is -1. As in PyTorch."""
    reduction = chosen_reduction(size_average, reduce, reduction)
    zero = constant(0, input)
    margin = float(margin) if is_inexact(input._dtype()) else int(margin)  # PyTorch's is of the dtype of `input`
    apart = E.where(E.eq(target, 1), zero, _positive(E.sub(margin, input)))
    close = E.where(E.eq(target, -1), zero, input)
    return reduced(E.add(apart, close), reduction)


def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, size_average: Any = None,
                        reduce: Any = None, reduction: str = "mean") -> Tensor:  # fmt: skip
    """max(0, -target * (input1 - input2) + margin). As `torch.nn.functional.margin_ranking_loss`."""
    reduction = chosen_reduction(size_average, reduce, reduction)
    if not len(input1._d.shape) == len(input2._d.shape) == len(operands.shape(target)):
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: "
            f"{input1.shape}, input2: {input2.shape}, target: {target.shape} "
        )
    return reduced(_positive(E.add(E.mul(E.neg(target), E.sub(input1, input2)), float(margin))), reduction)


def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, size_average: Any = None,
                          reduce: Any = None, reduction: str = "mean") -> Tensor:  # fmt: skip
    """1 - cos where target is 1, max(0, cos - margin) where it is -1. As in PyTorch."""
    reduction = chosen_reduction(size_average, reduce, reduction)
    ndim = len(operands.shape(target))
    if ndim not in (0, 1):
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    expected = ndim + 1
    if len(input1._d.shape) != expected or len(input2._d.shape) != expected:
        raise RuntimeError(
            f"{ndim}D target tensor expects {expected}D input tensors, but found inputs with sizes "
            f"{list(input1._d.shape)} and {list(input2._d.shape)}."
        )
    axis, tiny = (ndim,), 1e-12  # PyTorch's: keeps the gradient at 0 finite
    product = E.sum(E.mul(input1, input2), axis=axis, keepdims=False)
    square1 = E.add(E.sum(E.mul(input1, input1), axis=axis, keepdims=False), tiny)
    square2 = E.add(E.sum(E.mul(input2, input2), axis=axis, keepdims=False), tiny)
    cosine = E.div(product, E.sqrt(E.mul(square1, square2)))
    zero = constant(0, cosine)
    close = E.where(E.eq(target, 1), E.sub(1, cosine), zero)
    apart = E.where(E.eq(target, -1), _positive(E.sub(cosine, float(margin))), zero)
    return reduced(E.add(close, apart), reduction)


def _check_margin(margin: float) -> None:
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")


def _check_triplet(anchor: Tensor, positive: Tensor, negative: Tensor) -> None:
    a, p, n = (len(operands.shape(x)) for x in (anchor, positive, negative))
    if not a == p == n:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {a}D, positive {p}D, and negative {n}D inputs"
        )


def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2,
                        eps: float = 1e-6, swap: bool = False, size_average: Any = None, reduce: Any = None,
                        reduction: str = "mean") -> Tensor:  # fmt: skip
    """max(0, d(anchor, positive) - d(anchor, negative) + margin) with p-norms. As in PyTorch."""
    reduction = chosen_reduction(size_average, reduce, reduction)
    _check_margin(margin)
    return _triplet(anchor, positive, negative, lambda x, y: pairwise_distance(x, y, p, eps), margin, swap, reduction)


def triplet_margin_with_distance_loss(anchor: Tensor, positive: Tensor, negative: Tensor, *,
                                      distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
                                      margin: float = 1.0, swap: bool = False,
                                      reduction: str = "mean") -> Tensor:  # fmt: skip
    """`triplet_margin_loss` with any distance. As in PyTorch."""
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    _check_margin(margin)
    return _triplet(anchor, positive, negative, distance_function or pairwise_distance, margin, swap, reduction)


def _triplet(anchor: Tensor, positive: Tensor, negative: Tensor, distance: Callable[[Tensor, Tensor], Tensor],
             margin: float, swap: bool, reduction: str) -> Tensor:  # fmt: skip
    _check_triplet(anchor, positive, negative)
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = E.minimum(far, distance(positive, negative))
    return reduced(_positive(E.add(E.sub(near, far), margin)), reduction)


@whole("SoftMarginLossBackward0")
@rounds_once
def soft_margin_loss(input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None,
                     reduction: str = "mean") -> Tensor:  # fmt: skip
    """log(1 + exp(-target * input)). As `torch.nn.functional.soft_margin_loss`."""
    reduction, dtype = chosen_reduction(size_average, reduce, reduction), input._dtype()
    check_castable(FLOAT32, dtype)
    margin = E.neg(E.mul(input, target))
    losses = E.softplus(margin) if is_floating(margin._dtype()) else E.log(E.add(E.exp(margin), 1))
    return reduced(converted(losses, dtype), reduction)


def multilabel_soft_margin_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None,
                                reduce: Any = None, reduction: str = "mean") -> Tensor:  # fmt: skip
    """The binary cross entropy of each class, averaged over classes. As in PyTorch."""
    reduction = chosen_reduction(size_average, reduce, reduction)
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not valid")
    if not input._d.shape:
        raise IndexError("Dimension specified as -1 but tensor has no dimensions")
    yes, no = E.mul(target, logsigmoid(input)), E.mul(E.sub(1, target), logsigmoid(E.neg(input)))
    losses = E.neg(E.add(yes, no))
    if weight is not None:
        losses = E.mul(losses, weight)
    classes = len(input._d.shape) - 1, input._d.shape[-1]  # the dim of `losses`, which may have others before it
    losses = E.div(E.sum(losses, axis=classes[:1], keepdims=False), float(classes[1]))
    return reduced(losses, reduction)


def _rows(input: Tensor) -> tuple[Tensor, tuple[int, ...]]:
    """`input` as (n, classes), and the shape of one loss for each row."""
    shape = tuple(input._d.shape)
    classes = shape[-1] if shape else 1
    return E.reshape(input, shape=(shape[0] if len(shape) == 2 else 1, classes)), shape[:-1]


def _check_rows(input: Tensor) -> None:
    shape = input._d.shape
    if len(shape) > 2 or 0 in shape[-1:]:
        raise RuntimeError(
            f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(shape)}"
        )


def _check_dtypes(input: Tensor, target: Tensor, kernel: str) -> None:
    dtype = input._dtype()
    if not is_floating(dtype) or is_half(dtype):
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{torch_name(dtype)}'")
    if target._dtype() != INT64:
        raise RuntimeError(f"expected scalar type Long but found {torch_name(target._dtype())}")


def _check_classes(target: Tensor, low: int, high: int, message: str) -> None:
    data = target._d
    if isinstance(data, np.ndarray) and data.size and (data.min() < low or data.max() >= high):
        raise RuntimeError(message)


@whole("MultiMarginLossBackward0")
def multi_margin_loss(input: Tensor, target: Tensor, p: int = 1, margin: float = 1.0, weight: Tensor | None = None,
                      size_average: Any = None, reduce: Any = None, reduction: str = "mean") -> Tensor:  # fmt: skip
    """sum_i max(0, margin - input[target] + input[i])^p / classes, i not the target. As in PyTorch."""
    reduction = chosen_reduction(size_average, reduce, reduction)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    shape = tuple(shape_of(input, "multi_margin_loss"))
    _check_rows(input)
    rows, rest = _rows(input)
    n, classes = rows._d.shape
    if weight is not None:
        if len(weight._d.shape) != 1:
            raise ValueError("weight must be one-dimensional")
        if weight._d.shape[0] != classes:
            raise RuntimeError(f"inconsistent weight size, expected {classes} but got {list(weight._d.shape)}")
    if tuple(operands.shape(target)) != (n,) and (len(shape) == 2 or target._d.shape):
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch "
            f"size). Expected target size [{n}], but got {list(target._d.shape)}. Input has shape {list(shape)}."
        )
    check_reduction(reduction)
    _check_dtypes(input, target, "multi_margin_loss_cpu_kernel")
    _check_classes(target, 0, classes, "target out of range")
    index = E.reshape(target, shape=(n, 1))
    right = E.gather(rows, index, axis=1)
    gaps = _positive(E.add(E.sub(rows, right), margin))
    if p == 2:
        gaps = E.square(gaps)
    if weight is not None:
        gaps = E.mul(gaps, E.index(weight, index, spec=(0,)))
    others = E.ne(Tensor._wrap(np.arange(classes)), index)
    total = E.sum(E.where(others, gaps, constant(0, gaps)), axis=(1,), keepdims=False)
    losses = E.div(total, float(classes))
    return reduced(E.reshape(losses, shape=rest), reduction)


@whole("MultilabelMarginLossBackward0")
def multilabel_margin_loss(input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None,
                           reduction: str = "mean") -> Tensor:  # fmt: skip
    """sum_ij max(0, 1 - input[target[j]] + input[i]) / classes, i no target; targets end at -1. As in PyTorch."""
    reduction = chosen_reduction(size_average, reduce, reduction)
    shape = tuple(shape_of(input, "multilabel_margin_loss"))
    _check_rows(input)
    line = len(shape) < 2 and len(target._d.shape) < 2 and math.prod(shape) == math.prod(target._d.shape)
    if tuple(operands.shape(target)) != shape and not line:
        raise RuntimeError(f"inconsistent target size: {list(target._d.shape)} for input of size: {list(shape)}")
    check_reduction(reduction)
    _check_dtypes(input, target, "multilabel_margin_loss_forward_out_frame")
    rows, rest = _rows(input)
    n, classes = rows._d.shape
    _check_classes(target, -1, classes, "argument #2 'target' is out of range")
    labels = E.reshape(target, shape=(n, classes))
    ended = E.gt(E.cumsum(E.cast(E.lt(labels, 0), dtype=np.dtype(np.int64)), axis=1), 0)
    wanted = E.where(ended, 0, labels)
    hits = E.eq(E.reshape(wanted, shape=(n, classes, 1)), Tensor._wrap(np.arange(classes)))
    hits = E.bitwise_and(hits, E.reshape(E.bitwise_not(ended), shape=(n, classes, 1)))
    is_target = E.any(hits, axis=(1,), keepdims=True)  # (n, 1, classes)
    right = E.reshape(E.gather(rows, wanted, axis=1), shape=(n, classes, 1))
    gaps = _positive(E.add(E.sub(E.reshape(rows, shape=(n, 1, classes)), right), 1))
    counted = E.bitwise_and(E.reshape(E.bitwise_not(ended), shape=(n, classes, 1)), E.bitwise_not(is_target))
    total = E.sum(E.where(counted, gaps, constant(0, gaps)), axis=(1, 2), keepdims=False)
    return reduced(E.reshape(E.div(total, float(classes)), shape=rest), reduction)
