"""What losses share: the last step, "mean", "sum" or "none", and the checks before it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from eager.core import operands
from eager.core.interpreter import on_arrays
from eager.core.state import sequence
from eager.core.tensor import Tensor
from eager.core.warned import warn
from eager.engine.conversion import converted
from eager.engine.inplace import check_castable
from eager.engine.language import E
from eager.engine.node_names import enclosed, whole
from eager.functional.arguments import ALL_AXES, check_real, constant, shape_of
from eager.functional.arithmetic import clamp
from eager.functional.precision import rounds_once
from eager.functional.scalars import at_once, common_dtype
from graphc.ops.dtypes import FLOAT32, is_floating, is_inexact
from graphc.ops.rules import torch_name

__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "gaussian_nll_loss", "huber_loss", "kl_div", "l1_loss",
    "mse_loss", "poisson_nll_loss", "smooth_l1_loss",
]  # fmt: skip

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


def chosen_reduction(size_average: Any, reduce: Any, reduction: str) -> str:
    """`reduction`, unless the arguments it has replaced are given. Warns of those."""
    if size_average is None and reduce is None:
        return reduction
    average = True if size_average is None else size_average
    chosen = "none" if reduce is False else "mean" if average else "sum"
    warn(f"size_average and reduce args will be deprecated, please use reduction='{chosen}' instead.")
    return chosen


def warn_of_sizes(input: Tensor, target: Tensor) -> None:
    """Warn of a target that broadcasts: it rarely is meant."""
    if input._d.shape != operands.size(target):
        sizes = {"target": list(target._d.shape), "input": list(input._d.shape)}
        warn(SIZES.format(**sizes))


KL_MEAN = (
    "reduction: 'mean' divides the total loss by both the batch size and the support size.'batchmean' divides only by "
    "the batch size, and aligns with the KL div math definition.'mean' will be changed to behave the same as "
    "'batchmean' in the next major release."
)


def _weighted(losses: Tensor, weight: Tensor | None, reduction: str, node: str, since: int) -> Tensor:
    """`losses` reduced, as one node; with weights their mean is over the weights."""
    if weight is None:
        return enclosed(reduced(losses, reduction), node, since)
    check_reduction(reduction)
    if weight._d.shape != losses._d.shape:
        raise ValueError("Weights and input must have the same size.")
    losses = E.mul(enclosed(losses, node, since), weight)
    if reduction != "mean":
        return reduced(losses, reduction)
    return E.div(reduced(losses, "sum"), reduced(weight, "sum"))


def _difference(input: Tensor, target: Tensor, kernel: str) -> Tensor:
    """`input - target`, where one may be a mask. Raises PyTorch's NotImplementedError unless it is real floats."""
    if input._d.dtype is not FLOAT32 or target._d.dtype is not FLOAT32:
        common = common_dtype(input, target)
        input, target = converted(input, common), converted(target, common)
        check_real(input, kernel)
    return E.sub(input, target)


def mse_loss(input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean",
             weight: Tensor | None = None) -> Tensor:  # fmt: skip
    """(input - target)^2. As `torch.nn.functional.mse_loss`."""
    warn_of_sizes(input, target)
    since = next(sequence)
    difference = _difference(input, target, "mse_cpu")
    reduction = chosen_reduction(size_average, reduce, reduction)
    return _weighted(E.square(difference), weight, reduction, "MseLossBackward0", since)


def l1_loss(input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean",
            weight: Tensor | None = None) -> Tensor:  # fmt: skip
    """|input - target|. As `torch.nn.functional.l1_loss`."""
    warn_of_sizes(input, target)
    reduction = chosen_reduction(size_average, reduce, reduction)
    losses = E.abs(E.sub(input, target))
    if weight is None:
        return reduced(losses, reduction)
    return _weighted(losses, weight, reduction, "AbsBackward0", next(sequence))


def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """Quadratic up to `delta`, then linear: d^2 / 2 or delta * (|d| - delta / 2). As in PyTorch."""
    warn_of_sizes(input, target)
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    since = next(sequence)
    losses_of = lambda x, y: E.huber(_difference(x, y, "huber_cpu"), delta=delta)
    losses = at_once(losses_of, input, target)
    check_castable(losses._dtype(), input._dtype())
    losses = converted(losses, input._dtype())
    return _weighted(losses, weight, reduction, "HuberLossBackward0", since)


def smooth_l1_loss(input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean",
                   beta: float = 1.0) -> Tensor:  # fmt: skip
    """The Huber loss divided by its threshold `beta`. As `torch.nn.functional.smooth_l1_loss`."""
    reduction = chosen_reduction(size_average, reduce, reduction)
    if beta == 0.0:
        return l1_loss(input, target, reduction=reduction)
    warn_of_sizes(input, target)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    since = next(sequence)

    def losses_of(x: Tensor, y: Tensor) -> Tensor:
        losses = E.huber(_difference(x, y, "smooth_l1_cpu"), delta=beta)
        return losses if beta == 1 else E.div(losses, beta)

    return _weighted(at_once(losses_of, input, target), None, reduction, "SmoothL1LossBackward0", since)


def kl_div(input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean",
           log_target: bool = False) -> Tensor:  # fmt: skip
    """target * (log(target) - input), `input` in log space. As `torch.nn.functional.kl_div` (with "batchmean")."""
    reduction = chosen_reduction(size_average, reduce, reduction)
    if reduction == "mean":
        warn(KL_MEAN)
    return divergence(input, target, reduction, log_target)


def divergence(input: Tensor, target: Tensor, reduction: str, log_target: bool) -> Tensor:
    """`kl_div` without its warning."""
    if reduction != "batchmean":
        check_reduction(reduction)
    for t in (input, target):
        if not is_floating(operands.kind_of(t)):
            kind = "Complex" if is_inexact(t._dtype()) else "Integral"
            raise RuntimeError(f"kl_div: {kind} inputs not supported.")
    if log_target:
        losses = E.mul(E.exp(target), E.sub(target, input))
    else:
        some = E.ne(target, 0)  # 0 * log(0) counts as 0
        entropy = E.where(some, E.mul(target, E.log(E.where(some, target, 1))), 0)
        losses = E.sub(entropy, E.mul(target, input))
    if reduction == "batchmean":
        total = reduced(losses, "sum")
        return E.div(total, float(input._d.shape[0])) if input._d.shape else total
    return reduced(losses, reduction)


def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool = True, full: bool = False,
                     size_average: Any = None, eps: float = 1e-8, reduce: Any = None,
                     reduction: str = "mean") -> Tensor:  # fmt: skip
    """exp(input) - target * input, or of rates themselves; `full` adds Stirling's term. As in PyTorch."""
    reduction = chosen_reduction(size_average, reduce, reduction)
    check_reduction(reduction)
    if log_input:
        losses = E.sub(E.exp(input), E.mul(target, input))
    else:
        losses = E.sub(input, E.mul(target, E.log(E.add(input, eps))))
    if full:
        large = E.gt(target, 1)
        t = E.where(large, target, 1.0)
        term = E.add(E.sub(E.mul(t, E.log(t)), t), E.mul(E.log(E.mul(t, 2 * math.pi)), 0.5))
        losses = E.add(losses, E.where(large, term, 0.0))
    return reduced(losses, reduction)


def gaussian_nll_loss(input: Tensor, target: Tensor, var: Any, full: bool = False, eps: float = 1e-6,
                      reduction: str = "mean") -> Tensor:  # fmt: skip
    """(log(var) + (input - target)^2 / var) / 2, with var at least `eps`. As in PyTorch."""
    shape = tuple(shape_of(input, "gaussian_nll_loss"))
    if not isinstance(var, Tensor):
        if var < 0:  # Python's TypeError if it is no number
            raise ValueError("var has negative entry/entries")
        var = E.full(shape=shape, value=var, dtype=input._dtype())
    elif on_arrays(var) and bool(np.any(var._array() < 0)):
        raise ValueError("var has negative entry/entries")
    given = tuple(var._d.shape)
    if given != shape:
        if given == shape[:-1]:
            var = E.reshape(var, shape=(*given, 1))
        elif not (given[:-1] == shape[:-1] and given and given[-1] == 1):
            raise ValueError("var is of incorrect size")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not valid")
    # the bound holds for the value; the gradient is that of var itself
    least = E.where(E.lt(var, eps), E.add(E.sub(var, E.stop_gradient(var)), eps), var)
    losses = E.mul(E.add(E.log(least), E.div(E.square(E.sub(input, target)), least)), 0.5)
    if full:
        losses = E.add(losses, 0.5 * math.log(2 * math.pi))
    return reduced(losses, reduction)


def binary_cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None,
                         reduce: Any = None, reduction: str = "mean") -> Tensor:  # fmt: skip
    """-(t log(x) + (1 - t) log(1 - x)), each log at least -100. As `torch.nn.functional.binary_cross_entropy`.

    Raises ValueError for sizes that differ, RuntimeError for an input or target outside [0, 1].
    """
    if input._d.shape != operands.size(target):
        raise ValueError(
            f"Using a target size (torch.Size({list(target._d.shape)})) that is different to the input size "
            f"(torch.Size({list(input._d.shape)})) is deprecated. Please ensure they have the same size."
        )
    reduction = chosen_reduction(size_average, reduce, reduction)
    check_reduction(reduction)
    if weight is not None:
        _check_broadcasts(tuple(operands.size(weight)), tuple(target._d.shape))
    if target._dtype() != input._dtype():
        raise RuntimeError(f"Found dtype {torch_name(target._dtype())} but expected {torch_name(input._dtype())}")
    check_real(input, "binary_cross_entropy")
    if on_arrays(input):
        for name, t in (("input", input), ("target", target)):
            array = t._array()
            if not np.all((array >= 0) & (array <= 1)):
                raise RuntimeError(f"all elements of {name} should be between 0 and 1")
    return _binary(input, target, weight, reduction)


def _check_broadcasts(shape: tuple[int, ...], target: tuple[int, ...]) -> None:
    for at in range(1, min(len(shape), len(target)) + 1):
        if shape[-at] != target[-at] and 1 not in (shape[-at], target[-at]):
            raise RuntimeError(
                f"Attempting to broadcast a dimension of length {shape[-at]} at {-at}! Mismatching argument at index 1 "
                f"had torch.Size({list(shape)}); but expected shape should be broadcastable to {list(target)}"
            )


@whole("BinaryCrossEntropyBackward0")
@rounds_once
def _binary(input: Tensor, target: Tensor, weight: Tensor | None, reduction: str) -> Tensor:
    # within 1e-12 of 0 and 1 PyTorch's gradient is (x - t) / 1e-12, and the logarithms are at least -100
    edge = E.lt(E.mul(input, E.sub(1, input)), 1e-12)
    x, least = E.stop_gradient(input), math.exp(-100)
    bounded = _binary_terms(clamp(x, least), clamp(E.sub(1, x), least), target)
    slope = E.div(E.sub(x, E.stop_gradient(target)), 1e-12)
    bounded = E.add(bounded, E.mul(E.where(edge, E.sub(input, x), constant(0, x)), slope))
    inside = E.where(edge, constant(0.5, x), input)
    losses = E.where(edge, bounded, _binary_terms(inside, E.sub(1, inside), target))
    return reduced(losses if weight is None else E.mul(losses, weight), reduction)


def _binary_terms(yes: Tensor, no: Tensor, target: Tensor) -> Tensor:
    return E.sub(E.mul(E.sub(target, 1), E.log(no)), E.mul(target, E.log(yes)))


def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Tensor | None = None,
                                     size_average: Any = None, reduce: Any = None, reduction: str = "mean",
                                     pos_weight: Tensor | None = None) -> Tensor:  # fmt: skip
    """The binary cross entropy of sigmoid(input), without overflow. As in PyTorch. ValueError for sizes that differ."""
    if input._d.shape != operands.size(target):
        raise ValueError(
            f"Target size (torch.Size({list(target._d.shape)})) must be the same as input size "
            f"(torch.Size({list(input._d.shape)}))"
        )
    if is_floating(input._dtype()):
        check_castable(input._dtype(), target._dtype())
    return _binary_of_logits(input, target, weight, chosen_reduction(size_average, reduce, reduction), pos_weight)


@whole("BinaryCrossEntropyWithLogitsBackward0")
def _binary_of_logits(
    input: Tensor, target: Tensor, weight: Tensor | None, reduction: str, pos_weight: Tensor | None
) -> Tensor:
    check_real(input, "log_sigmoid_cpu")
    below = E.softplus(E.neg(input))  # -log(sigmoid(x))
    if pos_weight is not None:
        below = E.mul(below, E.add(E.mul(E.sub(pos_weight, 1), target), 1))
    losses = converted(E.add(E.mul(E.sub(1, target), input), below), target._dtype())  # as PyTorch writes them there
    return reduced(losses if weight is None else E.mul(losses, weight), reduction)
