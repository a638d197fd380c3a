"""Loss functions as modules. `reduction` is "mean", "sum" or "none"."""

from __future__ import annotations

from eager.nn import functional as F
from eager.nn.module import Module
from eager.tensor import Tensor


class _Loss(Module):
    def __init__(self, reduction: str = "mean"):
        super().__init__()
        self.reduction = reduction


class _WeightedLoss(_Loss):
    weight: Tensor | None

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean"):
        super().__init__(reduction)
        self.register_buffer("weight", weight)


class MSELoss(_Loss):
    """(input - target) ** 2."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Tensors of one shape -> a 0-d tensor, or that shape if nothing is reduced."""
        return F.mse_loss(input, target, reduction=self.reduction)


class L1Loss(_Loss):
    """|input - target|."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Tensors of one shape -> a 0-d tensor, or that shape if nothing is reduced."""
        return F.l1_loss(input, target, reduction=self.reduction)


class CrossEntropyLoss(_WeightedLoss):
    """Softmax and negative log likelihood; `weight` is one factor for each class."""

    def __init__(
        self,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ):
        super().__init__(weight, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Scores (N, C) and classes (N,) or probabilities (N, C) -> a 0-d tensor, or (N,) if nothing is reduced."""
        return F.cross_entropy(
            input, target, weight=self.weight, ignore_index=self.ignore_index, reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )  # fmt: skip


class NLLLoss(_WeightedLoss):
    """Negative log likelihood of the given classes; `weight` is one factor for each class."""

    def __init__(self, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean"):
        super().__init__(weight, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Log-probabilities (N, C) and classes (N,) -> a 0-d tensor, or (N,) if nothing is reduced."""
        return F.nll_loss(
            input, target, weight=self.weight, ignore_index=self.ignore_index, reduction=self.reduction
        )  # fmt: skip


class BCEWithLogitsLoss(_WeightedLoss):
    """Binary cross entropy of sigmoid(input); `pos_weight` multiplies the positive examples' part."""

    pos_weight: Tensor | None

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean", pos_weight: Tensor | None = None):
        super().__init__(weight, reduction)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Tensors of one shape -> a 0-d tensor, or that shape if nothing is reduced."""
        return F.binary_cross_entropy_with_logits(
            input, target, weight=self.weight, pos_weight=self.pos_weight, reduction=self.reduction
        )
