"""What losses share: the last step, "mean", "sum" or "none", and the checks before it."""

from __future__ import annotations

from typing import Any

from eager.core import operands
from eager.core.tensor import Tensor
from eager.core.warned import warn
from eager.engine.language import E
from eager.functional.arguments import ALL_AXES

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
