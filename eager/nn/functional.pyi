# Written by `python -m tests.stubs`: change the sources or the tables there, and run it again.
"""`torch.nn.functional`: layers, activations and losses as functions. Each family is a file of `eager.nn.functions`."""

from collections.abc import Callable, Sequence
from eager.core.dtypes import dtype
from eager.core.tensor import Tensor
from typing import Any, Literal, overload

def adaptive_avg_pool1d(input: Tensor, output_size: int | Sequence[int | None] | None) -> Tensor:
    """The means of windows that cover (N, C, *) or (C, *) in `output_size` steps. As `torch.nn.functional.adaptive_avg_pool1d`."""

def adaptive_avg_pool2d(input: Tensor, output_size: int | Sequence[int | None] | None) -> Tensor:
    """The means of windows that cover (N, C, *) or (C, *) in `output_size` steps. As `torch.nn.functional.adaptive_avg_pool2d`."""

def adaptive_avg_pool3d(input: Tensor, output_size: int | Sequence[int | None] | None) -> Tensor:
    """The means of windows that cover (N, C, *) or (C, *) in `output_size` steps. As `torch.nn.functional.adaptive_avg_pool3d`."""

@overload
def adaptive_max_pool1d(input: Tensor, output_size: int | Sequence[int | None] | None, return_indices: Literal[False] = False) -> Tensor:
    """The maxima of `output_size` windows that cover (N, C, *) or (C, *); also their places if asked for. As `torch.nn.functional.adaptive_max_pool1d`."""
@overload
def adaptive_max_pool1d(input: Tensor, output_size: int | Sequence[int | None] | None, return_indices: Literal[True]) -> tuple[Tensor, Tensor]: ...

def adaptive_max_pool1d_with_indices(input: Tensor, output_size: int | Sequence[int]) -> tuple[Tensor, Tensor]:
    """(maxima, places). As `torch.nn.functional.adaptive_max_pool1d_with_indices`."""

@overload
def adaptive_max_pool2d(input: Tensor, output_size: int | Sequence[int | None] | None, return_indices: Literal[False] = False) -> Tensor:
    """The maxima of `output_size` windows that cover (N, C, *) or (C, *); also their places if asked for. As `torch.nn.functional.adaptive_max_pool2d`."""
@overload
def adaptive_max_pool2d(input: Tensor, output_size: int | Sequence[int | None] | None, return_indices: Literal[True]) -> tuple[Tensor, Tensor]: ...

def adaptive_max_pool2d_with_indices(input: Tensor, output_size: int | Sequence[int]) -> tuple[Tensor, Tensor]:
    """(maxima, places). As `torch.nn.functional.adaptive_max_pool2d_with_indices`."""

@overload
def adaptive_max_pool3d(input: Tensor, output_size: int | Sequence[int | None] | None, return_indices: Literal[False] = False) -> Tensor:
    """The maxima of `output_size` windows that cover (N, C, *) or (C, *); also their places if asked for. As `torch.nn.functional.adaptive_max_pool3d`."""
@overload
def adaptive_max_pool3d(input: Tensor, output_size: int | Sequence[int | None] | None, return_indices: Literal[True]) -> tuple[Tensor, Tensor]: ...

def adaptive_max_pool3d_with_indices(input: Tensor, output_size: int | Sequence[int]) -> tuple[Tensor, Tensor]:
    """(maxima, places). As `torch.nn.functional.adaptive_max_pool3d_with_indices`."""

def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """The grid (N, *, d) of points that matrices theta (N, d, d + 1) map the points of an image to. As in PyTorch."""

def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout to selu's limit that keeps mean 0 and variance 1. As `torch.nn.functional.alpha_dropout`."""

def avg_pool1d(input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None) -> Tensor:
    """The mean of each window of (N, C, *) or (C, *), * 1 sizes; padding counts as zeros. As `torch.nn.functional.avg_pool1d`."""

def avg_pool2d(input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None, *, out: Tensor | None = None) -> Tensor:
    """The mean of each window of (N, C, *) or (C, *), * 2 sizes; padding counts as zeros. As `torch.nn.functional.avg_pool2d`."""

def avg_pool3d(input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None, *, out: Tensor | None = None) -> Tensor:
    """The mean of each window of (N, C, *) or (C, *), * 3 sizes; padding counts as zeros. As `torch.nn.functional.avg_pool3d`."""

def batch_norm(input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = None, bias: Tensor | None = None, training: bool = False, momentum: float = 0.1, eps: float = 1e-05) -> Tensor:
    """Normalization of each channel (dim 1) over all other dims. As `torch.nn.functional.batch_norm`.

    While `training`, with the statistics of `input`, which also move the running ones (their variance is unbiased).
    """

def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x^T W y + bias for inputs (*, n) and (*, m) and weight (out, n, m). As `torch.nn.functional.bilinear`."""

def binary_cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None, reduce: bool | None = None, reduction: str = 'mean') -> Tensor:
    """-(t log(x) + (1 - t) log(1 - x)), each log at least -100. As `torch.nn.functional.binary_cross_entropy`.

    Raises ValueError for sizes that differ, RuntimeError for an input or target outside [0, 1].
    """

def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None, reduce: bool | None = None, reduction: str = 'mean', pos_weight: Tensor | None = None) -> Tensor:
    """The binary cross entropy of sigmoid(input), without overflow. As in PyTorch. ValueError for sizes that differ."""

def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """input where positive, else alpha * (exp(input / alpha) - 1). As `torch.nn.functional.celu`."""

def celu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """`celu` in place. As `torch.nn.functional.celu_`."""

def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """The channels of (N, C, *), dealt out from `groups` groups. As `torch.nn.functional.channel_shuffle`."""

def conv1d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int | Sequence[int] = 1, padding: int | Sequence[int] | str = 0, dilation: int | Sequence[int] = 1, groups: int = 1) -> Tensor:
    """Cross-correlation of input (N, C, *) or (C, *), * 1 sizes, with weight (O, C / groups, *); `padding` is an int, a tuple, "valid" or "same". Raises RuntimeError for sizes or dtypes that do not fit. As `torch.nn.functional.conv1d`."""

def conv2d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int | Sequence[int] = 1, padding: int | Sequence[int] | str = 0, dilation: int | Sequence[int] = 1, groups: int = 1) -> Tensor:
    """Cross-correlation of input (N, C, *) or (C, *), * 2 sizes, with weight (O, C / groups, *); `padding` is an int, a tuple, "valid" or "same". Raises RuntimeError for sizes or dtypes that do not fit. As `torch.nn.functional.conv2d`."""

def conv3d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int | Sequence[int] = 1, padding: int | Sequence[int] | str = 0, dilation: int | Sequence[int] = 1, groups: int = 1) -> Tensor:
    """Cross-correlation of input (N, C, *) or (C, *), * 3 sizes, with weight (O, C / groups, *); `padding` is an int, a tuple, "valid" or "same". Raises RuntimeError for sizes or dtypes that do not fit. As `torch.nn.functional.conv3d`."""

def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """Convolution of input (time, batch, C) with weight (k, C, O). As `torch.conv_tbc`."""

def conv_transpose1d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int | Sequence[int] = 1, padding: int | Sequence[int] = 0, output_padding: int | Sequence[int] = 0, groups: int = 1, dilation: int | Sequence[int] = 1) -> Tensor:
    """The transpose of `conv1d` in its input (N, C, *) or (C, *), with weight (C, O / groups, *). As `torch.nn.functional.conv_transpose1d`."""

def conv_transpose2d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int | Sequence[int] = 1, padding: int | Sequence[int] = 0, output_padding: int | Sequence[int] = 0, groups: int = 1, dilation: int | Sequence[int] = 1) -> Tensor:
    """The transpose of `conv2d` in its input (N, C, *) or (C, *), with weight (C, O / groups, *). As `torch.nn.functional.conv_transpose2d`."""

def conv_transpose3d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int | Sequence[int] = 1, padding: int | Sequence[int] = 0, output_padding: int | Sequence[int] = 0, groups: int = 1, dilation: int | Sequence[int] = 1) -> Tensor:
    """The transpose of `conv3d` in its input (N, C, *) or (C, *), with weight (C, O / groups, *). As `torch.nn.functional.conv_transpose3d`."""

def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, size_average: bool | None = None, reduce: bool | None = None, reduction: str = 'mean') -> Tensor:
    """1 - cos where target is 1, max(0, cos - margin) where it is -1. As in PyTorch."""

def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-08) -> Tensor:
    """The cosine of the angle between x1 and x2 along `dim`, norms at least `eps`. As in PyTorch."""

def cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None, ignore_index: int = -100, reduce: bool | None = None, reduction: str = 'mean', label_smoothing: float = 0.0) -> Tensor:
    """The cross entropy of logits (N, C, *) and classes (N, *) or probabilities (N, C, *). As in PyTorch.

    Raises IndexError for a class out of bounds, RuntimeError or ValueError for sizes that do not fit.
    """

def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Sequence[int], target_lengths: Sequence[int], blank: int = 0, reduction: str = 'mean', zero_infinity: bool = False) -> Tensor:
    """Minus the log probability of label sequences, over all alignments. As `torch.nn.functional.ctc_loss`.

    log_probs: (T, N, C) or (T, C). targets: (N, S), or all in a row. Raises RuntimeError for lengths or a blank that do
    not fit. The gradient is that of log-probabilities from a softmax, as in PyTorch.
    """

def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Each element 0 with probability `p`, else divided by 1 - p; `input` itself if not `training`. As in PyTorch."""

def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Whole channels of (N, C, L) or (C, L) dropped. As `torch.nn.functional.dropout1d`."""

def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Whole channels of (N, C, H, W) dropped; (N, C, L) is taken for signals. As `torch.nn.functional.dropout2d`."""

def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Whole channels of (N, C, D, H, W) or (C, D, H, W) dropped. As `torch.nn.functional.dropout3d`."""

def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """input where positive, else alpha * (exp(input) - 1). As `torch.nn.functional.elu`."""

def elu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """`elu` in place. As `torch.nn.functional.elu_`."""

def embedding(input: Tensor, weight: Tensor, padding_idx: int | None = None, max_norm: float | None = None, norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False) -> Tensor:
    """Rows of weight (V, D) at input (*) of integers: (*, D). The row `padding_idx` gets no gradient. As in PyTorch.

    Raises IndexError for an index outside [0, V). With `sparse`, the gradient of the weight is a sparse COO tensor.
    """

def embedding_bag(input: Tensor, weight: Tensor, offsets: Tensor | None = None, max_norm: float | None = None, norm_type: float = 2, scale_grad_by_freq: bool = False, mode: str = 'mean', sparse: bool = False, per_sample_weights: Tensor | None = None, include_last_offset: bool = False, padding_idx: int | None = None) -> Tensor:
    """The sum, mean or max of the rows of weight (V, D) in each bag: (bags, D). As `torch.nn.functional.embedding_bag`.

    Bags are the rows of a 2-D input, or begin at `offsets` in a 1-D one. With `sparse`, the gradient of the
    weight is a sparse COO tensor.
    """

def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """`alpha_dropout` of whole channels. As `torch.nn.functional.feature_alpha_dropout`."""

def fold(input: Tensor, output_size: int | Sequence[int], kernel_size: int | Sequence[int], dilation: int | Sequence[int] = 1, padding: int | Sequence[int] = 0, stride: int | Sequence[int] = 1) -> Tensor:
    """Columns (N, C * kh * kw, blocks) added up to images (N, C, *output_size). As `torch.nn.functional.fold`."""

@overload
def fractional_max_pool2d(input: Tensor, kernel_size: int | Sequence[int], output_size: int | Sequence[int] | None = None, output_ratio: float | Sequence[float] | None = None, return_indices: Literal[False] = False) -> Tensor:
    """The maxima of `output_size` windows at random steps of (N, C, *) or (C, *), * 2 sizes. As `torch.nn.functional.fractional_max_pool2d`."""
@overload
def fractional_max_pool2d(input: Tensor, kernel_size: int | Sequence[int], output_size: int | Sequence[int] | None = None, output_ratio: float | Sequence[float] | None = None, *, return_indices: Literal[True]) -> tuple[Tensor, Tensor]: ...

def fractional_max_pool2d_with_indices(input: Tensor, kernel_size: int | Sequence[int], output_size: int | Sequence[int] | None = None, output_ratio: float | Sequence[float] | None = None, return_indices: bool = False) -> tuple[Tensor, Tensor]:
    """`fractional_max_pool2d` with `return_indices`. As `torch.nn.functional.fractional_max_pool2d_with_indices`."""

@overload
def fractional_max_pool3d(input: Tensor, kernel_size: int | Sequence[int], output_size: int | Sequence[int] | None = None, output_ratio: float | Sequence[float] | None = None, return_indices: Literal[False] = False) -> Tensor:
    """The maxima of `output_size` windows at random steps of (N, C, *) or (C, *), * 3 sizes. As `torch.nn.functional.fractional_max_pool3d`."""
@overload
def fractional_max_pool3d(input: Tensor, kernel_size: int | Sequence[int], output_size: int | Sequence[int] | None = None, output_ratio: float | Sequence[float] | None = None, *, return_indices: Literal[True]) -> tuple[Tensor, Tensor]: ...

def fractional_max_pool3d_with_indices(input: Tensor, kernel_size: int | Sequence[int], output_size: int | Sequence[int] | None = None, output_ratio: float | Sequence[float] | None = None, return_indices: bool = False) -> tuple[Tensor, Tensor]:
    """`fractional_max_pool3d` with `return_indices`. As `torch.nn.functional.fractional_max_pool3d_with_indices`."""

def gaussian_nll_loss(input: Tensor, target: Tensor, var: Tensor | float, full: bool = False, eps: float = 1e-06, reduction: str = 'mean') -> Tensor:
    """(log(var) + (input - target)^2 / var) / 2, with var at least `eps`. As in PyTorch."""

def gelu(input: Tensor, *, approximate: str = 'none', out: Tensor | None = None) -> Tensor:
    """input * Phi(input), Phi by erf or its "tanh" approximation. As `torch.nn.functional.gelu`."""

def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half along `dim` times the sigmoid of the second. As `torch.nn.functional.glu`."""

def grid_sample(input: Tensor, grid: Tensor, mode: str = 'bilinear', padding_mode: str = 'zeros', align_corners: bool | None = None) -> Tensor:
    """Images (N, C, *) at the points of grid (N, *, d), in [-1, 1], last dim first. As in PyTorch."""

def group_norm(input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-05) -> Tensor:
    """Normalization over each of `num_groups` groups of channels of (N, C, *). As `torch.nn.functional.group_norm`."""

def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """A sample of the relaxed categorical distribution; `hard` makes it one-hot, with the soft one's gradient.

    As `torch.nn.functional.gumbel_softmax` (Jang et al. 2016).
    """

def hardshrink(input: Tensor, lambd: float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """input where outside [-lambd, lambd], else 0. As `torch.nn.functional.hardshrink`."""

def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """input / 6 + 1 / 2, limited to [0, 1]. As `torch.nn.functional.hardsigmoid`."""

def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """input * hardsigmoid(input). As `torch.nn.functional.hardswish`."""

def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """`input` limited to [min_val, max_val]. As `torch.nn.functional.hardtanh`."""

def hardtanh_(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """`hardtanh` in place. As `torch.nn.functional.hardtanh_`."""

def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, size_average: bool | None = None, reduce: bool | None = None, reduction: str = 'mean') -> Tensor:
    """input where target is 1, max(0, margin - input) where it is -1. As in PyTorch."""

def huber_loss(input: Tensor, target: Tensor, reduction: str = 'mean', delta: float = 1.0, weight: Tensor | None = None) -> Tensor:
    """Quadratic up to `delta`, then linear: d^2 / 2 or delta * (|d| - delta / 2). As in PyTorch."""

def instance_norm(input: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None, weight: Tensor | None = None, bias: Tensor | None = None, use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-05) -> Tensor:
    """Normalization of each channel of each sample of (N, C, *). As `torch.nn.functional.instance_norm`."""

def interpolate(input: Tensor, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None, mode: str = 'nearest', align_corners: bool | None = None, recompute_scale_factor: bool | None = None, antialias: bool = False) -> Tensor:
    """(N, C, *) resized to `size` or by `scale_factor`. As `torch.nn.functional.interpolate`."""

def kl_div(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None, reduction: str = 'mean', log_target: bool = False) -> Tensor:
    """target * (log(target) - input), `input` in log space. As `torch.nn.functional.kl_div` (with "batchmean")."""

def l1_loss(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None, reduction: str = 'mean', weight: Tensor | None = None) -> Tensor:
    """|input - target|. As `torch.nn.functional.l1_loss`."""

def layer_norm(input: Tensor, normalized_shape: int | Sequence[int], weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-05) -> Tensor:
    """(input - mean) / sqrt(variance + eps) over the last dims, times weight plus bias. As in PyTorch."""

def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """input where positive, else negative_slope * input, the slope at 0 too. As `torch.nn.functional.leaky_relu`."""

def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """`leaky_relu` in place. As `torch.nn.functional.leaky_relu_`."""

def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None, *, out: Tensor | None = None) -> Tensor:
    """input @ weight.T + bias, for input (*, in), weight (out, in), bias (out,). As `torch.nn.functional.linear`."""

def linear_cross_entropy(input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Tensor | None = None, weight: Tensor | None = None, reduction: str = 'mean', ignore_index: int | None = None, label_smoothing: float = 0.0, options: Any = None) -> Tensor:
    """The cross entropy of `linear(input, linear_weight)`: (N, F) by (C, *, F). As in PyTorch.

    `options` say how PyTorch cuts the product into pieces, and change nothing here.
    """

def local_response_norm(input: Tensor, size: int, alpha: float = 0.0001, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """input / (k + alpha * mean of squares over `size` channels)^beta. As `torch.nn.functional.local_response_norm`."""

def log_softmax(input: Tensor, dim: int | None = None, dtype: dtype | None = None) -> Tensor:
    """log(softmax(input)) along `dim`. As `torch.nn.functional.log_softmax`."""

def logsigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """log(sigmoid(input)). As `torch.nn.functional.logsigmoid`."""

def lp_pool1d(input: Tensor, norm_type: float, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, ceil_mode: bool = False) -> Tensor:
    """The `norm_type`-norm of each window. As `torch.nn.functional.lp_pool1d`."""

def lp_pool2d(input: Tensor, norm_type: float, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, ceil_mode: bool = False) -> Tensor:
    """The `norm_type`-norm of each window. As `torch.nn.functional.lp_pool2d`."""

def lp_pool3d(input: Tensor, norm_type: float, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, ceil_mode: bool = False) -> Tensor:
    """The `norm_type`-norm of each window. As `torch.nn.functional.lp_pool3d`."""

def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, size_average: bool | None = None, reduce: bool | None = None, reduction: str = 'mean') -> Tensor:
    """max(0, -target * (input1 - input2) + margin). As `torch.nn.functional.margin_ranking_loss`."""

@overload
def max_pool1d(input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, ceil_mode: bool = False, return_indices: Literal[False] = False) -> Tensor:
    """The maxima of windows of (N, C, *) or (C, *), * 1 sizes; also their places if asked for. As `torch.nn.functional.max_pool1d`."""
@overload
def max_pool1d(input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, ceil_mode: bool = False, *, return_indices: Literal[True]) -> tuple[Tensor, Tensor]: ...

def max_pool1d_with_indices(input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, ceil_mode: bool = False) -> tuple[Tensor, Tensor]:
    """(maxima, places). As `torch.nn.functional.max_pool1d_with_indices`."""

@overload
def max_pool2d(input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, ceil_mode: bool = False, return_indices: Literal[False] = False) -> Tensor:
    """The maxima of windows of (N, C, *) or (C, *), * 2 sizes; also their places if asked for. As `torch.nn.functional.max_pool2d`."""
@overload
def max_pool2d(input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, ceil_mode: bool = False, *, return_indices: Literal[True]) -> tuple[Tensor, Tensor]: ...

def max_pool2d_with_indices(input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, ceil_mode: bool = False) -> tuple[Tensor, Tensor]:
    """(maxima, places). As `torch.nn.functional.max_pool2d_with_indices`."""

@overload
def max_pool3d(input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, ceil_mode: bool = False, return_indices: Literal[False] = False) -> Tensor:
    """The maxima of windows of (N, C, *) or (C, *), * 3 sizes; also their places if asked for. As `torch.nn.functional.max_pool3d`."""
@overload
def max_pool3d(input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, ceil_mode: bool = False, *, return_indices: Literal[True]) -> tuple[Tensor, Tensor]: ...

def max_pool3d_with_indices(input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, ceil_mode: bool = False) -> tuple[Tensor, Tensor]:
    """(maxima, places). As `torch.nn.functional.max_pool3d_with_indices`."""

def max_unpool1d(input: Tensor, indices: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, output_size: int | Sequence[int] | None = None) -> Tensor:
    """Each element at its place in an image of zeros: undoes `max_pool1d` with `return_indices`. As `torch.nn.functional.max_unpool1d`."""

def max_unpool2d(input: Tensor, indices: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, output_size: int | Sequence[int] | None = None) -> Tensor:
    """Each element at its place in an image of zeros: undoes `max_pool2d` with `return_indices`. As `torch.nn.functional.max_unpool2d`."""

def max_unpool3d(input: Tensor, indices: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, output_size: int | Sequence[int] | None = None) -> Tensor:
    """Each element at its place in an image of zeros: undoes `max_pool3d` with `return_indices`. As `torch.nn.functional.max_unpool3d`."""

def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """input * tanh(softplus(input)). As `torch.nn.functional.mish`."""

def mse_loss(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None, reduction: str = 'mean', weight: Tensor | None = None) -> Tensor:
    """(input - target)^2. As `torch.nn.functional.mse_loss`."""

def multi_head_attention_forward(query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: int, num_heads: int, in_proj_weight: Tensor | None, in_proj_bias: Tensor | None, bias_k: Tensor | None, bias_v: Tensor | None, add_zero_attn: bool, dropout_p: float, out_proj_weight: Tensor, out_proj_bias: Tensor | None, training: bool = True, key_padding_mask: Tensor | None = None, need_weights: bool = True, attn_mask: Tensor | None = None, use_separate_proj_weight: bool = False, q_proj_weight: Tensor | None = None, k_proj_weight: Tensor | None = None, v_proj_weight: Tensor | None = None, static_k: Tensor | None = None, static_v: Tensor | None = None, average_attn_weights: bool = True, is_causal: bool = False) -> tuple[Tensor, Tensor | None]:
    """Attention of `num_heads` heads over query (L, N, E), key (S, N, E), value (S, N, E), or without N.

    As `torch.nn.functional.multi_head_attention_forward`: (output (L, N, E), weights (N, L, S) or None). True in a
    bool mask means "do not attend". Raises AssertionError or RuntimeError for shapes that do not fit.
    """

def multi_margin_loss(input: Tensor, target: Tensor, p: int = 1, margin: float = 1.0, weight: Tensor | None = None, size_average: bool | None = None, reduce: bool | None = None, reduction: str = 'mean') -> Tensor:
    """sum_i max(0, margin - input[target] + input[i])^p / classes, i not the target. As in PyTorch."""

def multilabel_margin_loss(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None, reduction: str = 'mean') -> Tensor:
    """sum_ij max(0, 1 - input[target[j]] + input[i]) / classes, i no target; targets end at -1. As in PyTorch."""

def multilabel_soft_margin_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None, reduce: bool | None = None, reduction: str = 'mean') -> Tensor:
    """The binary cross entropy of each class, averaged over classes. As in PyTorch."""

def native_channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """The channels of (N, C, *), dealt out from `groups` groups. As `torch.nn.functional.channel_shuffle`."""

def nll_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None, ignore_index: int = -100, reduce: bool | None = None, reduction: str = 'mean') -> Tensor:
    """Minus the log probabilities (N, C, *) of the classes (N, *). As `torch.nn.functional.nll_loss`."""

def normalize(input: Tensor, p: float = 2.0, dim: int | Sequence[int] | None = 1, eps: float = 1e-12, out: Tensor | None = None) -> Tensor:
    """input / max(norm(input), eps) along `dim`. As `torch.nn.functional.normalize`."""

def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """int64 with a 1 at each class along a new last dim. As in PyTorch. RuntimeError for what is no class."""

def pad(input: Tensor, pad: int | Sequence[int], mode: str = 'constant', value: float | None = None) -> Tensor:
    """`input` with borders: `pad` is (low, high) of the last dim, then of the one before, ... As in PyTorch.

    Negative sizes crop. `mode` is "constant", "reflect", "replicate" or "circular".
    """

def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-06, keepdim: bool = False) -> Tensor:
    """The p-norm of x1 - x2 + eps along the last dim. As `torch.nn.functional.pairwise_distance`."""

def pdist(input: Tensor, p: float = 2) -> Tensor:
    """The p-norms between all pairs of rows of (n, m): (n (n - 1) / 2,). As `torch.nn.functional.pdist`."""

def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """(*, C * r^2, H, W) -> (*, C, H * r, W * r). As `torch.nn.functional.pixel_shuffle`."""

def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """(*, C, H * r, W * r) -> (*, C * r^2, H, W). As `torch.nn.functional.pixel_unshuffle`."""

def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool = True, full: bool = False, size_average: bool | None = None, eps: float = 1e-08, reduce: bool | None = None, reduction: str = 'mean') -> Tensor:
    """exp(input) - target * input, or of rates themselves; `full` adds Stirling's term. As in PyTorch."""

def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """input where positive, else weight * input; a weight a channel, or one for all. As `torch.nn.functional.prelu`."""

def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(input, 0). As `torch.nn.functional.relu`."""

def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """`input` limited to [0, 6]. As `torch.nn.functional.relu6`."""

def relu_(input: Tensor) -> Tensor:
    """`relu` in place. As `torch.nn.functional.relu_`."""

def rms_norm(input: Tensor, normalized_shape: int | Sequence[int], weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    """input / sqrt(mean(input^2) + eps) over the last dims, times weight. As in PyTorch."""

def rrelu(input: Tensor, lower: float = 0.125, upper: float = 0.3333333333333333, training: bool = False, inplace: bool = False) -> Tensor:
    """Leaky relu whose slopes are drawn from [lower, upper) while `training`. As `torch.nn.functional.rrelu`."""

def rrelu_(input: Tensor, lower: float = 0.125, upper: float = 0.3333333333333333, training: bool = False) -> Tensor:
    """`rrelu` in place. As `torch.nn.functional.rrelu_`."""

def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False) -> Tensor:
    """softmax(query @ key.T * scale + mask) @ value over the last two dims. As in PyTorch.

    A bool mask says where to attend (a row that attends nowhere gives 0); `is_causal` attends to no later position;
    `enable_gqa` lets several heads of `query` share one of `key` and `value`.
    """

def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """The self-normalizing scaled elu (Klambauer et al. 2017). As `torch.nn.functional.selu`."""

def selu_(input: Tensor) -> Tensor:
    """`selu` in place. As `torch.nn.functional.selu_`."""

def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-input)). As `torch.nn.functional.sigmoid`."""

def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """input * sigmoid(input). As `torch.nn.functional.silu`."""

def smooth_l1_loss(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None, reduction: str = 'mean', beta: float = 1.0) -> Tensor:
    """The Huber loss divided by its threshold `beta`. As `torch.nn.functional.smooth_l1_loss`."""

def soft_margin_loss(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None, reduction: str = 'mean') -> Tensor:
    """log(1 + exp(-target * input)). As `torch.nn.functional.soft_margin_loss`."""

def softmax(input: Tensor, dim: int | None = None, dtype: dtype | None = None) -> Tensor:
    """exp(input) normalized to sum 1 along `dim`. As `torch.nn.functional.softmax`."""

def softmin(input: Tensor, dim: int | None = None, dtype: dtype | None = None) -> Tensor:
    """softmax(-input). As `torch.nn.functional.softmin`."""

def softplus(input: Tensor, beta: float = 1, threshold: float = 20, *, out: Tensor | None = None) -> Tensor:
    """log(1 + exp(beta * input)) / beta; linear above `threshold`. As `torch.nn.functional.softplus`."""

def softshrink(input: Tensor, lambd: float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """input moved towards 0 by `lambd`, at most to 0. As `torch.nn.functional.softshrink`. RuntimeError for < 0."""

def softsign(input: Tensor) -> Tensor:
    """input / (1 + |input|). As `torch.nn.functional.softsign`."""

def tanh(input: Tensor) -> Tensor:
    """tanh(input). As `torch.nn.functional.tanh`."""

def tanhshrink(input: Tensor) -> Tensor:
    """input - tanh(input). As `torch.nn.functional.tanhshrink`."""

def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """input where above `threshold`, else `value`. As `torch.nn.functional.threshold`."""

def threshold_(input: Tensor, threshold: float, value: float) -> Tensor:
    """`threshold` in place. As `torch.nn.functional.threshold_`."""

def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2, eps: float = 1e-06, swap: bool = False, size_average: bool | None = None, reduce: bool | None = None, reduction: str = 'mean') -> Tensor:
    """max(0, d(anchor, positive) - d(anchor, negative) + margin) with p-norms. As in PyTorch."""

def triplet_margin_with_distance_loss(anchor: Tensor, positive: Tensor, negative: Tensor, *, distance_function: Callable[[Tensor, Tensor], Tensor] | None = None, margin: float = 1.0, swap: bool = False, reduction: str = 'mean') -> Tensor:
    """`triplet_margin_loss` with any distance. As in PyTorch."""

def unfold(input: Tensor, kernel_size: int | Sequence[int], dilation: int | Sequence[int] = 1, padding: int | Sequence[int] = 0, stride: int | Sequence[int] = 1) -> Tensor:
    """The blocks of (N, C, H, W) or (C, H, W) as columns (N, C * kh * kw, blocks). As `torch.nn.functional.unfold`."""

def upsample(input: Tensor, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None, mode: str = 'nearest', align_corners: bool | None = None) -> Tensor:
    """`interpolate` under its old name. As `torch.nn.functional.upsample`."""

def upsample_bilinear(input: Tensor, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None) -> Tensor:
    """`interpolate(mode="bilinear", align_corners=True)`. As `torch.nn.functional.upsample_bilinear`."""

def upsample_nearest(input: Tensor, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None) -> Tensor:
    """`interpolate(mode="nearest")`. As `torch.nn.functional.upsample_nearest`."""
