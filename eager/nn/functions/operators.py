"""`torch.<name>` of layers and losses: the operators behind `torch.nn.functional`, with the arguments of those.

They take reductions (0, the default: none; 1: mean; 2: sum) and modes as numbers, what is learned before what is
remembered, and no keyword that has been deprecated. Each calls the function of `nn.functional`, in both modes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eager.core import operands
from eager.core.tensor import Tensor
from eager.functional.naming import called
from eager.nn.functions import (
    activation,
    adaptive_pooling,
    class_losses,
    dropouts,
    embeddings,
    grid,
    loss,
    margin_losses,
    normalization,
    padding,
    pooling,
)
from eager.nn.functions import convolution as convolutions

_REDUCTIONS = "none", "mean", "sum"
_SAMPLINGS, _PADDINGS = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")


def _reduction(number: int) -> str:
    if not 0 <= number < len(_REDUCTIONS):
        raise ValueError(f"{number} is not a valid value for reduction")
    return _REDUCTIONS[number]


def threshold(input: Tensor, threshold: float, value: float) -> Tensor:
    """`input` where it is above `threshold`, else `value`. As `torch.threshold`."""
    return activation.threshold(input, threshold, value)


def celu(input: Tensor, alpha: float = 1.0) -> Tensor:
    """As `torch.celu`; see `nn.functional.celu`."""
    return activation.celu(input, alpha)


def selu(input: Tensor) -> Tensor:
    """As `torch.selu`; see `nn.functional.selu`."""
    return activation.selu(input)


def rrelu(
    input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, generator: Any = None
) -> Tensor:
    """As `torch.rrelu`; see `nn.functional.rrelu`. NotImplementedError with a generator."""
    if generator is not None:
        raise NotImplementedError("rrelu() draws from the default generator")
    return activation.rrelu(input, lower, upper, training)


def _dropout(name: str, function: Any) -> tuple[Any, Any]:
    @called(name, "See `nn.functional`.", "torch")
    def dropped(input: Tensor, p: float, train: bool) -> Tensor:
        return function(input, p, train)

    @called(f"{name}_", "In place; see `nn.functional`.", "torch")
    def dropped_(input: Tensor, p: float, train: bool) -> Tensor:
        return function(input, p, train, True)

    return dropped, dropped_


dropout, dropout_ = _dropout("dropout", dropouts.dropout)
alpha_dropout, alpha_dropout_ = _dropout("alpha_dropout", dropouts.alpha_dropout)
feature_dropout, feature_dropout_ = _dropout("feature_dropout", dropouts.dropout2d)
feature_alpha_dropout, feature_alpha_dropout_ = _dropout("feature_alpha_dropout", dropouts.feature_alpha_dropout)


def batch_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None,
    training: bool, momentum: float, eps: float, cudnn_enabled: bool,
) -> Tensor:  # fmt: skip
    """As `torch.batch_norm`; see `nn.functional.batch_norm`."""
    return normalization.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def instance_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None,
    use_input_stats: bool, momentum: float, eps: float, cudnn_enabled: bool,
) -> Tensor:  # fmt: skip
    """As `torch.instance_norm`; see `nn.functional.instance_norm`."""
    return normalization.instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)


def layer_norm(
    input: Tensor, normalized_shape: Any, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Tensor:  # fmt: skip
    """As `torch.layer_norm`; see `nn.functional.layer_norm`."""
    return normalization.layer_norm(input, normalized_shape, weight, bias, eps)


def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> Tensor:  # fmt: skip
    """As `torch.group_norm`; see `nn.functional.group_norm`."""
    return normalization.group_norm(input, num_groups, weight, bias, eps)


rms_norm = normalization.rms_norm


def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    """The norms of the slices along `dim`, of all for -1; with ones for the other dims. As `torch.norm_except_dim`."""
    ndim = len(operands.shape(v))
    if dim == -1:
        return v.norm(pow)  # type: ignore[attr-defined]
    if 0 < dim < ndim - 1:  # of a copy, as in PyTorch: `v` may be written
        return norm_except_dim(v.transpose(0, dim), pow).transpose(0, dim)  # type: ignore[attr-defined]
    axes = tuple(a for a in range(ndim) if a != dim % ndim)
    return v.contiguous().norm(pow, axes, keepdim=True)  # type: ignore[attr-defined]


def embedding(
    weight: Tensor, indices: Tensor, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False
) -> Tensor:
    """As `torch.embedding`; see `nn.functional.embedding`."""
    padding = None if padding_idx < 0 else padding_idx
    return embeddings.embedding(indices, weight, padding, scale_grad_by_freq=scale_grad_by_freq, sparse=sparse)


def embedding_renorm_(input: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """Shorten the rows at `indices` that are longer than `max_norm`, in place. As `torch.embedding_renorm_`."""
    embeddings.shorten(input, indices, max_norm, norm_type)
    return input


def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Tensor | None = None, pos_weight: Tensor | None = None, reduction: int = 0
) -> Tensor:
    """As `torch.binary_cross_entropy_with_logits`; see `nn.functional`."""
    return loss.binary_cross_entropy_with_logits(
        input, target, weight, reduction=_reduction(reduction), pos_weight=pos_weight
    )


def kl_div(input: Tensor, target: Tensor, reduction: int = 0, *, log_target: bool = False) -> Tensor:
    """As `torch.kl_div`; see `nn.functional.kl_div`."""
    return loss.divergence(input, target, _reduction(reduction), log_target)


def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int) -> Tensor:
    """As `torch.poisson_nll_loss`; see `nn.functional.poisson_nll_loss`."""
    return loss.poisson_nll_loss(input, target, log_input, full, eps=eps, reduction=_reduction(reduction))


def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 0
) -> Tensor:
    """As `torch.cosine_embedding_loss`; see `nn.functional.cosine_embedding_loss`."""
    return margin_losses.cosine_embedding_loss(input1, input2, target, margin, reduction=_reduction(reduction))


def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, reduction: int = 0) -> Tensor:
    """As `torch.hinge_embedding_loss`; see `nn.functional.hinge_embedding_loss`."""
    return margin_losses.hinge_embedding_loss(input, target, margin, reduction=_reduction(reduction))


def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 0
) -> Tensor:
    """As `torch.margin_ranking_loss`; see `nn.functional.margin_ranking_loss`."""
    return margin_losses.margin_ranking_loss(input1, input2, target, margin, reduction=_reduction(reduction))


def triplet_margin_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6,
    swap: bool = False, reduction: int = 0,
) -> Tensor:  # fmt: skip
    """As `torch.triplet_margin_loss`; see `nn.functional.triplet_margin_loss`."""
    return margin_losses.triplet_margin_loss(
        anchor, positive, negative, margin, p, eps, swap, reduction=_reduction(reduction)
    )


def ctc_loss(
    log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: int = 0, reduction: int = 0,
    zero_infinity: bool = False,
) -> Tensor:  # fmt: skip
    """As `torch.ctc_loss`; see `nn.functional.ctc_loss`."""
    return class_losses.ctc_loss(
        log_probs, targets, input_lengths, target_lengths, blank, _reduction(reduction), zero_infinity
    )


def _max_pool(rank: int) -> Any:
    pool = getattr(pooling, f"max_pool{rank}d")

    @called(f"max_pool{rank}d", "See `nn.functional`.", "torch")
    def function(
        input: Tensor, kernel_size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
    ) -> Tensor:
        return pool(input, kernel_size, None if stride == () or stride == [] else stride, padding, dilation, ceil_mode)

    return function


max_pool1d, max_pool2d, max_pool3d = map(_max_pool, (1, 2, 3))


def adaptive_max_pool1d(input: Tensor, output_size: Any) -> tuple[Tensor, Tensor]:
    """(maxima, their places). As `torch.adaptive_max_pool1d`."""
    return adaptive_pooling.adaptive_max_pool1d(input, output_size, return_indices=True)


def affine_grid_generator(theta: Tensor, size: Any, align_corners: bool) -> Tensor:
    """As `torch.affine_grid_generator`; see `nn.functional.affine_grid`."""
    return grid.affine_grid(theta, size, align_corners)


def grid_sampler(
    input: Tensor, grid_: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """As `torch.grid_sampler`; see `nn.functional.grid_sample`."""
    return grid.grid_sample(input, grid_, _SAMPLINGS[interpolation_mode], _PADDINGS[padding_mode], align_corners)


grid_sampler_2d = grid_sampler_3d = grid_sampler


def constant_pad_nd(input: Tensor, pad: Sequence[int], value: float = 0) -> Tensor:
    """As `torch.constant_pad_nd`; see `nn.functional.pad`."""
    return padding.pad(input, pad, value=value)


def convolution(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, dilation: Any, transposed: bool,
    output_padding: Any, groups: int,
) -> Tensor:  # fmt: skip
    """A convolution of as many dims as `weight` has, or its transpose. As `torch.convolution`."""
    rank = len(weight._d.shape) - 2

    def each(sizes: Any) -> Any:
        return sizes if isinstance(sizes, int) or len(sizes) > 1 else tuple(sizes) * rank

    stride, padding, dilation = map(each, (stride, padding, dilation))
    if transposed:
        function = getattr(convolutions, f"conv_transpose{rank}d")
        return function(input, weight, bias, stride, padding, each(output_padding), groups, dilation)
    return getattr(convolutions, f"conv{rank}d")(input, weight, bias, stride, padding, dilation, groups)
