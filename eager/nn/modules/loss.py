"""Loss functions as modules. `reduction` is "mean", "sum" or "none".

The result is a 0-d tensor, or the losses of all elements or samples if nothing is reduced.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from eager.core.tensor import Tensor
from eager.nn import functional as F
from eager.nn.functions.loss import chosen_reduction
from eager.nn.layer import Layer
from eager.nn.modules.linear import Linear, PairwiseDistance

__all__ = [
    "BCELoss", "BCEWithLogitsLoss", "CTCLoss", "CosineEmbeddingLoss", "CrossEntropyLoss", "GaussianNLLLoss",
    "HingeEmbeddingLoss", "HuberLoss", "KLDivLoss", "L1Loss", "LinearCrossEntropyLoss", "MSELoss", "MarginRankingLoss",
    "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss", "MultiMarginLoss", "NLLLoss", "NLLLoss2d", "PoissonNLLLoss",
    "SmoothL1Loss", "SoftMarginLoss", "TripletMarginLoss", "TripletMarginWithDistanceLoss",
]  # fmt: skip


class _Loss(Layer):
    def __init__(self, size_average: Any = None, reduce: Any = None, reduction: str = "mean"):
        self._keep(locals())

    def _keep(self, arguments: dict[str, Any], buffers: Sequence[str] = ()) -> None:
        old = arguments.get("size_average"), arguments.get("reduce")
        super()._keep({**arguments, "reduction": chosen_reduction(*old, arguments["reduction"])}, buffers)


class _WeightedLoss(_Loss):
    weight: Tensor | None

    def __init__(
        self, weight: Tensor | None = None, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
    ):
        self._keep(locals(), ["weight"])


class MSELoss(_Loss, function=F.mse_loss):
    """(input - target) ** 2."""


class L1Loss(_Loss, function=F.l1_loss):
    """|input - target|."""


class SmoothL1Loss(_Loss, function=F.smooth_l1_loss):
    """The Huber loss divided by its threshold `beta`."""

    def __init__(self, size_average: Any = None, reduce: Any = None, reduction: str = "mean", beta: float = 1.0):
        self._keep(locals())


class HuberLoss(_Loss, function=F.huber_loss):
    """Quadratic up to `delta`, then linear."""

    def __init__(self, reduction: str = "mean", delta: float = 1.0):
        self._keep(locals())


class CrossEntropyLoss(_WeightedLoss, function=F.cross_entropy):
    """Softmax and negative log likelihood; `weight` is one factor for each class."""

    def __init__(self, weight: Tensor | None = None, size_average: Any = None, ignore_index: int = -100,
                 reduce: Any = None, reduction: str = "mean", label_smoothing: float = 0.0):  # fmt: skip
        self._keep(locals(), ["weight"])


class LinearCrossEntropyLoss(
    _WeightedLoss,
    shown="in_features={in_features}, num_classes={num_classes}, out_features={out_features}, bias={bias}, "
    "reduction={reduction}, ignore_index={ignore_index}, label_smoothing={label_smoothing}, options={options}",
):
    """`CrossEntropyLoss` of a linear layer's result; with `out_features`, of (N, C, *out_features)."""

    def __init__(
        self, in_features: int, num_classes: int, *, out_features: tuple[int, ...] = (), bias: bool = False,
        device: Any = None, dtype: Any = None, weight: Tensor | None = None, reduction: str = "mean",
        ignore_index: int | None = None, label_smoothing: float = 0.0, options: Any = None,
    ):  # fmt: skip
        self._keep(locals(), ["weight"])
        self.linear = Linear(in_features, num_classes * math.prod(out_features), bias=bias, device=device, dtype=dtype)

    def extra_repr(self) -> str:
        return self._shown.format(**{**vars(self), "bias": self.linear.bias is not None})

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Input (N, in_features) and target -> the loss."""
        sizes = (self.num_classes, *self.out_features)
        bias = self.linear.bias
        return F.linear_cross_entropy(
            input, self.linear.weight.view(*sizes, self.in_features), target,
            linear_bias=None if bias is None else bias.view(*sizes), weight=self.weight, reduction=self.reduction,
            ignore_index=self.ignore_index, label_smoothing=self.label_smoothing, options=self.options,
        )  # fmt: skip


class NLLLoss(_WeightedLoss, function=F.nll_loss):
    """Negative log likelihood of the given classes; `weight` is one factor for each class."""

    def __init__(self, weight: Tensor | None = None, size_average: Any = None, ignore_index: int = -100,
                 reduce: Any = None, reduction: str = "mean"):  # fmt: skip
        self._keep(locals(), ["weight"])


class NLLLoss2d(NLLLoss):
    """NLLLoss under its old name."""


class KLDivLoss(_Loss, function=F.kl_div):
    """The Kullback-Leibler divergence of input, in log space, from target."""

    def __init__(self, size_average: Any = None, reduce: Any = None, reduction: str = "mean", log_target: bool = False):
        self._keep(locals())


class BCELoss(_WeightedLoss, function=F.binary_cross_entropy):
    """Binary cross entropy of probabilities."""


class BCEWithLogitsLoss(_WeightedLoss, function=F.binary_cross_entropy_with_logits):
    """Binary cross entropy of sigmoid(input); `pos_weight` multiplies the positive examples' part."""

    pos_weight: Tensor | None

    def __init__(self, weight: Tensor | None = None, size_average: Any = None, reduce: Any = None,
                 reduction: str = "mean", pos_weight: Tensor | None = None):  # fmt: skip
        self._keep(locals(), ["weight", "pos_weight"])


class PoissonNLLLoss(_Loss):
    """exp(input) - target * input."""

    def __init__(self, log_input: bool = True, full: bool = False, size_average: Any = None, eps: float = 1e-8,
                 reduce: Any = None, reduction: str = "mean"):  # fmt: skip
        self._keep(locals())

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        return F.poisson_nll_loss(
            log_input, target, log_input=self.log_input, full=self.full, eps=self.eps, reduction=self.reduction
        )


class GaussianNLLLoss(_Loss, function=F.gaussian_nll_loss):
    """(log(var) + (input - target)^2 / var) / 2."""

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean"):
        self._keep(locals())


class SoftMarginLoss(_Loss, function=F.soft_margin_loss):
    """log(1 + exp(-target * input))."""


class MultiLabelMarginLoss(_Loss, function=F.multilabel_margin_loss):
    """Every target's score above every other's by 1."""


class MultiLabelSoftMarginLoss(_WeightedLoss, function=F.multilabel_soft_margin_loss):
    """Binary cross entropy of each class, averaged."""


class HingeEmbeddingLoss(_Loss, function=F.hinge_embedding_loss):
    """input where target is 1, max(0, margin - input) where it is -1."""

    def __init__(self, margin: float = 1.0, size_average: Any = None, reduce: Any = None, reduction: str = "mean"):
        self._keep(locals())


class MultiMarginLoss(_WeightedLoss, function=F.multi_margin_loss):
    """The target's score above all others by `margin`: scores (N, C) and classes (N,)."""

    def __init__(self, p: int = 1, margin: float = 1.0, weight: Tensor | None = None, size_average: Any = None,
                 reduce: Any = None, reduction: str = "mean"):  # fmt: skip
        self._keep(locals(), ["weight"])
        if p not in (1, 2):
            raise ValueError("only p == 1 and p == 2 supported")
        if weight is not None and len(weight._d.shape) != 1:
            raise ValueError(
                f"MultiMarginLoss: expected weight to be None or 1D tensor, got {len(weight._d.shape)}D instead"
            )


class _PairLoss(_Loss):
    def __init__(self, margin: float = 0.0, size_average: Any = None, reduce: Any = None, reduction: str = "mean"):
        self._keep(locals())


class MarginRankingLoss(_PairLoss, function=F.margin_ranking_loss):
    """max(0, -target * (input1 - input2) + margin)."""


class CosineEmbeddingLoss(_PairLoss, function=F.cosine_embedding_loss):
    """1 - cos where target is 1, max(0, cos - margin) where it is -1."""


class _TripletLoss(_Loss):
    def _check_margin(self) -> None:
        if self.margin <= 0:
            raise ValueError(f"{type(self).__name__}: expected margin to be greater than 0, got {self.margin} instead")


class TripletMarginLoss(_TripletLoss, function=F.triplet_margin_loss):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin)."""

    def __init__(self, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, swap: bool = False,
                 size_average: Any = None, reduce: Any = None, reduction: str = "mean"):  # fmt: skip
        self._keep(locals())
        self._check_margin()


class TripletMarginWithDistanceLoss(_TripletLoss, function=F.triplet_margin_with_distance_loss):
    """TripletMarginLoss with any distance."""

    def __init__(self, *, distance_function: Callable[[Tensor, Tensor], Tensor] | None = None, margin: float = 1.0,
                 swap: bool = False, reduction: str = "mean"):  # fmt: skip
        if distance_function is None:
            distance_function = PairwiseDistance()
        self._keep(locals())
        self._check_margin()


class CTCLoss(_Loss, function=F.ctc_loss):
    """Minus the log probability of label sequences, over all alignments: (T, N, C) and labels."""

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False):
        self._keep(locals())
