# Written by `python -m tests.stubs`: change the sources or the tables there, and run it again.
"""The modules, a family a file. As `torch.nn.modules`."""

from collections.abc import Callable, Sequence
from eager.core.dtypes import dtype
from eager.core.parameter import Parameter
from eager.core.tensor import Tensor
from eager.nn.module import Module
from eager.nn.modules.adaptive import AdaptiveLogSoftmaxWithLoss as AdaptiveLogSoftmaxWithLoss
from eager.nn.modules.batchnorm import BatchNorm1d as BatchNorm1d, BatchNorm2d as BatchNorm2d, BatchNorm3d as BatchNorm3d, InstanceNorm1d as InstanceNorm1d, InstanceNorm2d as InstanceNorm2d, InstanceNorm3d as InstanceNorm3d, SyncBatchNorm as SyncBatchNorm
from eager.nn.modules.cells import GRUCell as GRUCell, LSTMCell as LSTMCell, RNNCell as RNNCell, RNNCellBase as RNNCellBase
from eager.nn.modules.container import ModuleDict as ModuleDict, ModuleList as ModuleList, Sequential as Sequential
from eager.nn.modules.lazy_layers import LazyBatchNorm1d as LazyBatchNorm1d, LazyBatchNorm2d as LazyBatchNorm2d, LazyBatchNorm3d as LazyBatchNorm3d, LazyConv1d as LazyConv1d, LazyConv2d as LazyConv2d, LazyConv3d as LazyConv3d, LazyConvTranspose1d as LazyConvTranspose1d, LazyConvTranspose2d as LazyConvTranspose2d, LazyConvTranspose3d as LazyConvTranspose3d, LazyInstanceNorm1d as LazyInstanceNorm1d, LazyInstanceNorm2d as LazyInstanceNorm2d, LazyInstanceNorm3d as LazyInstanceNorm3d, LazyLinear as LazyLinear
from eager.nn.modules.linear import Identity as Identity, PairwiseDistance as PairwiseDistance
from eager.nn.modules.parameter_containers import ParameterDict as ParameterDict, ParameterList as ParameterList
from eager.nn.modules.rnn import GRU as GRU, LSTM as LSTM, RNN as RNN, RNNBase as RNNBase
from eager.nn.modules.sparse import Embedding as Embedding, EmbeddingBag as EmbeddingBag
from eager.nn.modules.transformer import MultiheadAttention as MultiheadAttention, Transformer as Transformer, TransformerDecoder as TransformerDecoder, TransformerDecoderLayer as TransformerDecoderLayer, TransformerEncoder as TransformerEncoder, TransformerEncoderLayer as TransformerEncoderLayer
from eager.types import Device
from typing import Any

class AdaptiveAvgPool1d(Module):
    """Adaptive average pooling of signals (N, C, L)."""
    output_size: int | Sequence[int | None] | None
    def __init__(self, output_size: int | Sequence[int | None] | None) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class AdaptiveAvgPool2d(Module):
    """Adaptive average pooling of images (N, C, H, W)."""
    output_size: int | Sequence[int | None] | None
    def __init__(self, output_size: int | Sequence[int | None] | None) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class AdaptiveAvgPool3d(Module):
    """Adaptive average pooling of volumes (N, C, D, H, W)."""
    output_size: int | Sequence[int | None] | None
    def __init__(self, output_size: int | Sequence[int | None] | None) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class AdaptiveMaxPool1d(Module):
    """Adaptive max pooling of signals (N, C, L)."""
    output_size: int | Sequence[int | None] | None
    return_indices: bool
    def __init__(self, output_size: int | Sequence[int | None] | None, return_indices: bool = False) -> None: ...
    def forward(self, input: Tensor) -> Any: ...

class AdaptiveMaxPool2d(Module):
    """Adaptive max pooling of images (N, C, H, W)."""
    output_size: int | Sequence[int | None] | None
    return_indices: bool
    def __init__(self, output_size: int | Sequence[int | None] | None, return_indices: bool = False) -> None: ...
    def forward(self, input: Tensor) -> Any: ...

class AdaptiveMaxPool3d(Module):
    """Adaptive max pooling of volumes (N, C, D, H, W)."""
    output_size: int | Sequence[int | None] | None
    return_indices: bool
    def __init__(self, output_size: int | Sequence[int | None] | None, return_indices: bool = False) -> None: ...
    def forward(self, input: Tensor) -> Any: ...

class AlphaDropout(Module):
    """Dropout that keeps mean 0 and variance 1 behind selu."""
    p: float
    inplace: bool
    def __init__(self, p: float = 0.5, inplace: bool = False) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class AvgPool1d(Module):
    """Average pooling of signals (N, C, L)."""
    kernel_size: int | Sequence[int]
    stride: int | Sequence[int] | None
    padding: int | Sequence[int]
    ceil_mode: bool
    count_include_pad: bool
    def __init__(self, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, ceil_mode: bool = False, count_include_pad: bool = True) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class AvgPool2d(Module):
    """Average pooling of images (N, C, H, W)."""
    kernel_size: int | Sequence[int]
    stride: int | Sequence[int] | None
    padding: int | Sequence[int]
    ceil_mode: bool
    count_include_pad: bool
    divisor_override: int | None
    def __init__(self, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class AvgPool3d(Module):
    """Average pooling of volumes (N, C, D, H, W)."""
    kernel_size: int | Sequence[int]
    stride: int | Sequence[int] | None
    padding: int | Sequence[int]
    ceil_mode: bool
    count_include_pad: bool
    divisor_override: int | None
    def __init__(self, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class BCELoss(Module):
    """Binary cross entropy of probabilities."""
    weight: Tensor | None
    reduction: str
    def __init__(self, weight: Tensor | None = None, size_average: bool | None = None, reduce: bool | None = None, reduction: str = 'mean') -> None: ...
    def forward(self, input: Tensor, target: Tensor) -> Tensor: ...

class BCEWithLogitsLoss(Module):
    """Binary cross entropy of sigmoid(input); `pos_weight` multiplies the positive examples' part."""
    weight: Tensor | None
    reduction: str
    pos_weight: Tensor | None
    def __init__(self, weight: Tensor | None = None, size_average: bool | None = None, reduce: bool | None = None, reduction: str = 'mean', pos_weight: Tensor | None = None) -> None: ...
    def forward(self, input: Tensor, target: Tensor) -> Tensor: ...

class Bilinear(Module):
    """x1^T weight x2 + bias. weight: (out_features, in1_features, in2_features)."""
    in1_features: int
    in2_features: int
    out_features: int
    bias: Parameter
    def __init__(self, in1_features: int, in2_features: int, out_features: int, bias: bool = True, device: Device = None, dtype: dtype | None = None) -> None: ...
    def forward(self, input1: Tensor, input2: Tensor) -> Tensor: ...

class CELU(Module):
    """x, or `alpha` * (exp(x / alpha) - 1) below zero."""
    alpha: float
    inplace: bool
    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class CTCLoss(Module):
    """Minus the log probability of label sequences, over all alignments: (T, N, C) and labels."""
    blank: int
    reduction: str
    zero_infinity: bool
    def __init__(self, blank: int = 0, reduction: str = 'mean', zero_infinity: bool = False) -> None: ...
    def forward(self, log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor) -> Tensor: ...

class ChannelShuffle(Module):
    """The channels of (N, C, *), dealt out from groups."""
    groups: int
    def __init__(self, groups: int) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class CircularPad1d(Module):
    """Borders from the other end, for signals (N, C, L)."""
    padding: int | Sequence[int]
    def __init__(self, padding: int | Sequence[int]) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class CircularPad2d(Module):
    """Borders from the other end, for images (N, C, H, W)."""
    padding: int | Sequence[int]
    def __init__(self, padding: int | Sequence[int]) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class CircularPad3d(Module):
    """Borders from the other end, for volumes (N, C, D, H, W)."""
    padding: int | Sequence[int]
    def __init__(self, padding: int | Sequence[int]) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class ConstantPad1d(Module):
    """Borders of one value, for signals (N, C, L)."""
    padding: int | Sequence[int]
    value: float
    def __init__(self, padding: int | Sequence[int], value: float) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class ConstantPad2d(Module):
    """Borders of one value, for images (N, C, H, W)."""
    padding: int | Sequence[int]
    value: float
    def __init__(self, padding: int | Sequence[int], value: float) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class ConstantPad3d(Module):
    """Borders of one value, for volumes (N, C, D, H, W)."""
    padding: int | Sequence[int]
    value: float
    def __init__(self, padding: int | Sequence[int], value: float) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class Conv1d(Module):
    """Convolution of signals (N, C, L)."""
    in_channels: int
    out_channels: int
    kernel_size: int | Sequence[int]
    stride: int | Sequence[int]
    padding: int | Sequence[int] | str
    dilation: int | Sequence[int]
    groups: int
    padding_mode: str
    def __init__(self, in_channels: int, out_channels: int, kernel_size: int | Sequence[int], stride: int | Sequence[int] = 1, padding: int | Sequence[int] | str = 0, dilation: int | Sequence[int] = 1, groups: int = 1, bias: bool = True, padding_mode: str = 'zeros', device: Device = None, dtype: dtype | None = None) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class Conv2d(Module):
    """Convolution of images (N, C, H, W)."""
    in_channels: int
    out_channels: int
    kernel_size: int | Sequence[int]
    stride: int | Sequence[int]
    padding: int | Sequence[int] | str
    dilation: int | Sequence[int]
    groups: int
    padding_mode: str
    def __init__(self, in_channels: int, out_channels: int, kernel_size: int | Sequence[int], stride: int | Sequence[int] = 1, padding: int | Sequence[int] | str = 0, dilation: int | Sequence[int] = 1, groups: int = 1, bias: bool = True, padding_mode: str = 'zeros', device: Device = None, dtype: dtype | None = None) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class Conv3d(Module):
    """Convolution of volumes (N, C, D, H, W)."""
    in_channels: int
    out_channels: int
    kernel_size: int | Sequence[int]
    stride: int | Sequence[int]
    padding: int | Sequence[int] | str
    dilation: int | Sequence[int]
    groups: int
    padding_mode: str
    def __init__(self, in_channels: int, out_channels: int, kernel_size: int | Sequence[int], stride: int | Sequence[int] = 1, padding: int | Sequence[int] | str = 0, dilation: int | Sequence[int] = 1, groups: int = 1, bias: bool = True, padding_mode: str = 'zeros', device: Device = None, dtype: dtype | None = None) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class ConvTranspose1d(Module):
    """The transpose of the convolution of signals (N, C, L)."""
    in_channels: int
    out_channels: int
    kernel_size: int | Sequence[int]
    stride: int | Sequence[int]
    padding: int | Sequence[int]
    output_padding: int | Sequence[int]
    groups: int
    dilation: int | Sequence[int]
    padding_mode: str
    def __init__(self, in_channels: int, out_channels: int, kernel_size: int | Sequence[int], stride: int | Sequence[int] = 1, padding: int | Sequence[int] = 0, output_padding: int | Sequence[int] = 0, groups: int = 1, bias: bool = True, dilation: int | Sequence[int] = 1, padding_mode: str = 'zeros', device: Device = None, dtype: dtype | None = None) -> None: ...
    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor: ...

class ConvTranspose2d(Module):
    """The transpose of the convolution of images (N, C, H, W)."""
    in_channels: int
    out_channels: int
    kernel_size: int | Sequence[int]
    stride: int | Sequence[int]
    padding: int | Sequence[int]
    output_padding: int | Sequence[int]
    groups: int
    dilation: int | Sequence[int]
    padding_mode: str
    def __init__(self, in_channels: int, out_channels: int, kernel_size: int | Sequence[int], stride: int | Sequence[int] = 1, padding: int | Sequence[int] = 0, output_padding: int | Sequence[int] = 0, groups: int = 1, bias: bool = True, dilation: int | Sequence[int] = 1, padding_mode: str = 'zeros', device: Device = None, dtype: dtype | None = None) -> None: ...
    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor: ...

class ConvTranspose3d(Module):
    """The transpose of the convolution of volumes (N, C, D, H, W)."""
    in_channels: int
    out_channels: int
    kernel_size: int | Sequence[int]
    stride: int | Sequence[int]
    padding: int | Sequence[int]
    output_padding: int | Sequence[int]
    groups: int
    dilation: int | Sequence[int]
    padding_mode: str
    def __init__(self, in_channels: int, out_channels: int, kernel_size: int | Sequence[int], stride: int | Sequence[int] = 1, padding: int | Sequence[int] = 0, output_padding: int | Sequence[int] = 0, groups: int = 1, bias: bool = True, dilation: int | Sequence[int] = 1, padding_mode: str = 'zeros', device: Device = None, dtype: dtype | None = None) -> None: ...
    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor: ...

class CosineEmbeddingLoss(Module):
    """1 - cos where target is 1, max(0, cos - margin) where it is -1."""
    margin: float
    reduction: str
    def __init__(self, margin: float = 0.0, size_average: bool | None = None, reduce: bool | None = None, reduction: str = 'mean') -> None: ...
    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor: ...

class CosineSimilarity(Module):
    """The cosine of the angle between two tensors along `dim`."""
    dim: int
    eps: float
    def __init__(self, dim: int = 1, eps: float = 1e-08) -> None: ...
    def forward(self, x1: Tensor, x2: Tensor) -> Tensor: ...

class CrossEntropyLoss(Module):
    """Softmax and negative log likelihood; `weight` is one factor for each class."""
    weight: Tensor | None
    ignore_index: int
    reduction: str
    label_smoothing: float
    def __init__(self, weight: Tensor | None = None, size_average: bool | None = None, ignore_index: int = -100, reduce: bool | None = None, reduction: str = 'mean', label_smoothing: float = 0.0) -> None: ...
    def forward(self, input: Tensor, target: Tensor) -> Tensor: ...

class CrossMapLRN2d(LocalResponseNorm):
    """LocalResponseNorm of images, under its old name."""
    size: int
    alpha: float
    beta: float
    k: float
    def __init__(self, size: int, alpha: float = 0.0001, beta: float = 0.75, k: float = 1) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class Dropout(Module):
    """In training, zeros with probability `p`, the rest scaled by 1 / (1 - p)."""
    p: float
    inplace: bool
    def __init__(self, p: float = 0.5, inplace: bool = False) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class Dropout1d(Module):
    """Dropout of whole channels of (N, C, L) or (C, L)."""
    p: float
    inplace: bool
    def __init__(self, p: float = 0.5, inplace: bool = False) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class Dropout2d(Module):
    """Dropout of whole channels of (N, C, H, W)."""
    p: float
    inplace: bool
    def __init__(self, p: float = 0.5, inplace: bool = False) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class Dropout3d(Module):
    """Dropout of whole channels of (N, C, D, H, W) or (C, D, H, W)."""
    p: float
    inplace: bool
    def __init__(self, p: float = 0.5, inplace: bool = False) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class ELU(Module):
    """x, or `alpha` * (exp(x) - 1) below zero."""
    alpha: float
    inplace: bool
    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class FeatureAlphaDropout(Module):
    """AlphaDropout of whole channels."""
    p: float
    inplace: bool
    def __init__(self, p: float = 0.5, inplace: bool = False) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class Flatten(Module):
    """The dimensions `start_dim` to `end_dim` merged into one: by default (N, *) -> (N, product of *)."""
    start_dim: int
    end_dim: int
    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class Fold(Module):
    """Columns added up to images: (N, C * kh * kw, blocks) -> (N, C, *output_size)."""
    output_size: int | Sequence[int]
    kernel_size: int | Sequence[int]
    dilation: int | Sequence[int]
    padding: int | Sequence[int]
    stride: int | Sequence[int]
    def __init__(self, output_size: int | Sequence[int], kernel_size: int | Sequence[int], dilation: int | Sequence[int] = 1, padding: int | Sequence[int] = 0, stride: int | Sequence[int] = 1) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class FractionalMaxPool2d(Module):
    """Fractional max pooling of images (N, C, H, W)."""
    kernel_size: int | Sequence[int]
    output_size: int | Sequence[int] | None
    output_ratio: float | Sequence[float] | None
    return_indices: bool
    def __init__(self, kernel_size: int | Sequence[int], output_size: int | Sequence[int] | None = None, output_ratio: float | Sequence[float] | None = None, return_indices: bool = False) -> None: ...
    def forward(self, input: Tensor) -> Any: ...

class FractionalMaxPool3d(Module):
    """Fractional max pooling of volumes (N, C, D, H, W)."""
    kernel_size: int | Sequence[int]
    output_size: int | Sequence[int] | None
    output_ratio: float | Sequence[float] | None
    return_indices: bool
    def __init__(self, kernel_size: int | Sequence[int], output_size: int | Sequence[int] | None = None, output_ratio: float | Sequence[float] | None = None, return_indices: bool = False) -> None: ...
    def forward(self, input: Tensor) -> Any: ...

class GELU(Module):
    """x * Phi(x), Phi the normal distribution function; `approximate="tanh"` for the tanh formula."""
    approximate: str
    def __init__(self, approximate: str = 'none') -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class GLU(Module):
    """The first half along `dim` times the sigmoid of the second: (*, 2 n, *) -> (*, n, *)."""
    dim: int
    def __init__(self, dim: int = -1) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class GaussianNLLLoss(Module):
    """(log(var) + (input - target)^2 / var) / 2."""
    full: bool
    eps: float
    reduction: str
    def __init__(self, *, full: bool = False, eps: float = 1e-06, reduction: str = 'mean') -> None: ...
    def forward(self, input: Tensor, target: Tensor, var: Tensor) -> Tensor: ...

class GroupNorm(Module):
    """Zero mean and unit variance over each of `num_groups` groups of channels, then weight * x + bias."""
    num_groups: int
    num_channels: int
    eps: float
    affine: bool
    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-05, affine: bool = True, device: Device = None, dtype: dtype | None = None, *, bias: bool = True) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class Hardshrink(Module):
    """x, or 0 within [-lambd, lambd]."""
    lambd: float
    def __init__(self, lambd: float = 0.5) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class Hardsigmoid(Module):
    """x / 6 + 1 / 2, limited to [0, 1], element by element."""
    inplace: bool
    def __init__(self, inplace: bool = False) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class Hardswish(Module):
    """x * hardsigmoid(x), element by element."""
    inplace: bool
    def __init__(self, inplace: bool = False) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class Hardtanh(Module):
    """x limited to [min_val, max_val]."""
    min_val: float
    max_val: float
    inplace: bool
    min_value: float | None
    max_value: float | None
    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False, min_value: float | None = None, max_value: float | None = None) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class HingeEmbeddingLoss(Module):
    """input where target is 1, max(0, margin - input) where it is -1."""
    margin: float
    reduction: str
    def __init__(self, margin: float = 1.0, size_average: bool | None = None, reduce: bool | None = None, reduction: str = 'mean') -> None: ...
    def forward(self, input: Tensor, target: Tensor) -> Tensor: ...

class HuberLoss(Module):
    """Quadratic up to `delta`, then linear."""
    reduction: str
    delta: float
    def __init__(self, reduction: str = 'mean', delta: float = 1.0) -> None: ...
    def forward(self, input: Tensor, target: Tensor) -> Tensor: ...

class KLDivLoss(Module):
    """The Kullback-Leibler divergence of input, in log space, from target."""
    reduction: str
    log_target: bool
    def __init__(self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = 'mean', log_target: bool = False) -> None: ...
    def forward(self, input: Tensor, target: Tensor) -> Tensor: ...

class L1Loss(Module):
    """|input - target|."""
    reduction: str
    def __init__(self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = 'mean') -> None: ...
    def forward(self, input: Tensor, target: Tensor) -> Tensor: ...

class LPPool1d(Module):
    """Power-average pooling of signals (N, C, L)."""
    norm_type: float
    kernel_size: int | Sequence[int]
    stride: int | Sequence[int] | None
    ceil_mode: bool
    def __init__(self, norm_type: float, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, ceil_mode: bool = False) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class LPPool2d(Module):
    """Power-average pooling of images (N, C, H, W)."""
    norm_type: float
    kernel_size: int | Sequence[int]
    stride: int | Sequence[int] | None
    ceil_mode: bool
    def __init__(self, norm_type: float, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, ceil_mode: bool = False) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class LPPool3d(Module):
    """Power-average pooling of volumes (N, C, D, H, W)."""
    norm_type: float
    kernel_size: int | Sequence[int]
    stride: int | Sequence[int] | None
    ceil_mode: bool
    def __init__(self, norm_type: float, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, ceil_mode: bool = False) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class LayerNorm(Module):
    """Zero mean and unit variance over the last dimensions, of sizes `normalized_shape`, then weight * x + bias."""
    normalized_shape: int | Sequence[int]
    eps: float
    elementwise_affine: bool
    def __init__(self, normalized_shape: int | Sequence[int], eps: float = 1e-05, elementwise_affine: bool = True, bias: bool = True, device: Device = None, dtype: dtype | None = None) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class LeakyReLU(Module):
    """x, or `negative_slope` * x below zero."""
    negative_slope: float
    inplace: bool
    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class Linear(Module):
    """x @ weight.T + bias. weight: (out_features, in_features), bias: (out_features,)."""
    in_features: int
    out_features: int
    weight: Parameter
    bias: Parameter
    def __init__(self, in_features: int, out_features: int, bias: bool = True, device: Device = None, dtype: dtype | None = None) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class LinearCrossEntropyLoss(Module):
    """`CrossEntropyLoss` of a linear layer's result; with `out_features`, of (N, C, *out_features)."""
    in_features: int
    num_classes: int
    out_features: tuple[int, ...]
    weight: Tensor | None
    reduction: str
    ignore_index: int | None
    label_smoothing: float
    options: Any
    def __init__(self, in_features: int, num_classes: int, *, out_features: tuple[int, ...] = (), bias: bool = False, device: Device = None, dtype: dtype | None = None, weight: Tensor | None = None, reduction: str = 'mean', ignore_index: int | None = None, label_smoothing: float = 0.0, options: Any = None) -> None: ...
    def forward(self, input: Tensor, target: Tensor) -> Tensor: ...

class LocalResponseNorm(Module):
    """x / (k + alpha * mean of squares over `size` channels)^beta."""
    size: int
    alpha: float
    beta: float
    k: float
    def __init__(self, size: int, alpha: float = 0.0001, beta: float = 0.75, k: float = 1.0) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class LogSigmoid(Module):
    """log(sigmoid(x)), element by element."""
    def __init__(self) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class LogSoftmax(Module):
    """The logarithm of softmax along `dim`."""
    dim: int | None
    def __init__(self, dim: int | None = None) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class MSELoss(Module):
    """(input - target) ** 2."""
    reduction: str
    def __init__(self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = 'mean') -> None: ...
    def forward(self, input: Tensor, target: Tensor) -> Tensor: ...

class MarginRankingLoss(Module):
    """max(0, -target * (input1 - input2) + margin)."""
    margin: float
    reduction: str
    def __init__(self, margin: float = 0.0, size_average: bool | None = None, reduce: bool | None = None, reduction: str = 'mean') -> None: ...
    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor: ...

class MaxPool1d(Module):
    """Max pooling of signals (N, C, L)."""
    kernel_size: int | Sequence[int]
    stride: int | Sequence[int] | None
    padding: int | Sequence[int]
    dilation: int | Sequence[int]
    return_indices: bool
    ceil_mode: bool
    def __init__(self, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, return_indices: bool = False, ceil_mode: bool = False) -> None: ...
    def forward(self, input: Tensor) -> Any: ...

class MaxPool2d(Module):
    """Max pooling of images (N, C, H, W)."""
    kernel_size: int | Sequence[int]
    stride: int | Sequence[int] | None
    padding: int | Sequence[int]
    dilation: int | Sequence[int]
    return_indices: bool
    ceil_mode: bool
    def __init__(self, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, return_indices: bool = False, ceil_mode: bool = False) -> None: ...
    def forward(self, input: Tensor) -> Any: ...

class MaxPool3d(Module):
    """Max pooling of volumes (N, C, D, H, W)."""
    kernel_size: int | Sequence[int]
    stride: int | Sequence[int] | None
    padding: int | Sequence[int]
    dilation: int | Sequence[int]
    return_indices: bool
    ceil_mode: bool
    def __init__(self, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, return_indices: bool = False, ceil_mode: bool = False) -> None: ...
    def forward(self, input: Tensor) -> Any: ...

class MaxUnpool1d(Module):
    """Max unpooling of signals (N, C, L)."""
    kernel_size: int | Sequence[int]
    stride: int | Sequence[int] | None
    padding: int | Sequence[int]
    def __init__(self, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0) -> None: ...
    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor: ...

class MaxUnpool2d(Module):
    """Max unpooling of images (N, C, H, W)."""
    kernel_size: int | Sequence[int]
    stride: int | Sequence[int] | None
    padding: int | Sequence[int]
    def __init__(self, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0) -> None: ...
    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor: ...

class MaxUnpool3d(Module):
    """Max unpooling of volumes (N, C, D, H, W)."""
    kernel_size: int | Sequence[int]
    stride: int | Sequence[int] | None
    padding: int | Sequence[int]
    def __init__(self, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0) -> None: ...
    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor: ...

class Mish(Module):
    """x * tanh(softplus(x)), element by element."""
    inplace: bool
    def __init__(self, inplace: bool = False) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class MultiLabelMarginLoss(Module):
    """Every target's score above every other's by 1."""
    reduction: str
    def __init__(self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = 'mean') -> None: ...
    def forward(self, input: Tensor, target: Tensor) -> Tensor: ...

class MultiLabelSoftMarginLoss(Module):
    """Binary cross entropy of each class, averaged."""
    weight: Tensor | None
    reduction: str
    def __init__(self, weight: Tensor | None = None, size_average: bool | None = None, reduce: bool | None = None, reduction: str = 'mean') -> None: ...
    def forward(self, input: Tensor, target: Tensor) -> Tensor: ...

class MultiMarginLoss(Module):
    """The target's score above all others by `margin`: scores (N, C) and classes (N,)."""
    p: int
    margin: float
    weight: Tensor | None
    reduction: str
    def __init__(self, p: int = 1, margin: float = 1.0, weight: Tensor | None = None, size_average: bool | None = None, reduce: bool | None = None, reduction: str = 'mean') -> None: ...
    def forward(self, input: Tensor, target: Tensor) -> Tensor: ...

class NLLLoss(Module):
    """Negative log likelihood of the given classes; `weight` is one factor for each class."""
    weight: Tensor | None
    ignore_index: int
    reduction: str
    def __init__(self, weight: Tensor | None = None, size_average: bool | None = None, ignore_index: int = -100, reduce: bool | None = None, reduction: str = 'mean') -> None: ...
    def forward(self, input: Tensor, target: Tensor) -> Tensor: ...

class NLLLoss2d(NLLLoss):
    """NLLLoss under its old name."""
    weight: Tensor | None
    ignore_index: int
    reduction: str
    def __init__(self, weight: Tensor | None = None, size_average: bool | None = None, ignore_index: int = -100, reduce: bool | None = None, reduction: str = 'mean') -> None: ...
    def forward(self, input: Tensor, target: Tensor) -> Tensor: ...

class PReLU(Module):
    """x, or weight * x below zero; a weight a channel, or one for all."""
    num_parameters: int
    init: float
    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Device = None, dtype: dtype | None = None) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class PixelShuffle(Module):
    """(*, C * r^2, H, W) -> (*, C, H * r, W * r)."""
    upscale_factor: int
    def __init__(self, upscale_factor: int) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class PixelUnshuffle(Module):
    """(*, C, H * r, W * r) -> (*, C * r^2, H, W)."""
    downscale_factor: int
    def __init__(self, downscale_factor: int) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class PoissonNLLLoss(Module):
    """exp(input) - target * input."""
    log_input: bool
    full: bool
    eps: float
    reduction: str
    def __init__(self, log_input: bool = True, full: bool = False, size_average: bool | None = None, eps: float = 1e-08, reduce: bool | None = None, reduction: str = 'mean') -> None: ...
    def forward(self, log_input: Tensor, target: Tensor) -> Tensor: ...

class RMSNorm(Module):
    """x / sqrt(mean(x^2) + eps) over the last dimensions, of sizes `normalized_shape`, times weight."""
    normalized_shape: int | Sequence[int]
    eps: float | None
    elementwise_affine: bool
    def __init__(self, normalized_shape: int | Sequence[int], eps: float | None = None, elementwise_affine: bool = True, device: Device = None, dtype: dtype | None = None) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class RReLU(Module):
    """Leaky relu whose slopes are drawn from [lower, upper) in training, and their mean in evaluation."""
    lower: float
    upper: float
    inplace: bool
    def __init__(self, lower: float = 0.125, upper: float = 0.3333333333333333, inplace: bool = False) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class ReLU(Module):
    """max(0, x), element by element."""
    inplace: bool
    def __init__(self, inplace: bool = False) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class ReLU6(Hardtanh):
    """x limited to [0, 6]."""
    inplace: bool
    def __init__(self, inplace: bool = False) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class ReflectionPad1d(Module):
    """Borders that mirror the inside, for signals (N, C, L)."""
    padding: int | Sequence[int]
    def __init__(self, padding: int | Sequence[int]) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class ReflectionPad2d(Module):
    """Borders that mirror the inside, for images (N, C, H, W)."""
    padding: int | Sequence[int]
    def __init__(self, padding: int | Sequence[int]) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class ReflectionPad3d(Module):
    """Borders that mirror the inside, for volumes (N, C, D, H, W)."""
    padding: int | Sequence[int]
    def __init__(self, padding: int | Sequence[int]) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class ReplicationPad1d(Module):
    """Borders that repeat the edge, for signals (N, C, L)."""
    padding: int | Sequence[int]
    def __init__(self, padding: int | Sequence[int]) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class ReplicationPad2d(Module):
    """Borders that repeat the edge, for images (N, C, H, W)."""
    padding: int | Sequence[int]
    def __init__(self, padding: int | Sequence[int]) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class ReplicationPad3d(Module):
    """Borders that repeat the edge, for volumes (N, C, D, H, W)."""
    padding: int | Sequence[int]
    def __init__(self, padding: int | Sequence[int]) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class SELU(Module):
    """the self-normalizing scaled elu, element by element."""
    inplace: bool
    def __init__(self, inplace: bool = False) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class SiLU(Module):
    """x * sigmoid(x), element by element."""
    inplace: bool
    def __init__(self, inplace: bool = False) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class Sigmoid(Module):
    """1 / (1 + exp(-x)), element by element."""
    def __init__(self) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class SmoothL1Loss(Module):
    """The Huber loss divided by its threshold `beta`."""
    reduction: str
    beta: float
    def __init__(self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = 'mean', beta: float = 1.0) -> None: ...
    def forward(self, input: Tensor, target: Tensor) -> Tensor: ...

class SoftMarginLoss(Module):
    """log(1 + exp(-target * input))."""
    reduction: str
    def __init__(self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = 'mean') -> None: ...
    def forward(self, input: Tensor, target: Tensor) -> Tensor: ...

class Softmax(Module):
    """exp(x) / sum(exp(x)) along `dim`."""
    dim: int | None
    def __init__(self, dim: int | None = None) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class Softmax2d(Module):
    """Softmax over the channels of (N, C, H, W) or (C, H, W)."""
    def __init__(self) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class Softmin(Module):
    """softmax(-x) along `dim`."""
    dim: int | None
    def __init__(self, dim: int | None = None) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class Softplus(Module):
    """log(1 + exp(beta * x)) / beta, or x where beta * x is beyond `threshold`."""
    beta: float
    threshold: float
    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class Softshrink(Module):
    """x moved towards 0 by `lambd`, at most to 0."""
    lambd: float
    def __init__(self, lambd: float = 0.5) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class Softsign(Module):
    """x / (1 + |x|), element by element."""
    def __init__(self) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class Tanh(Module):
    """tanh(x), element by element."""
    def __init__(self) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class Tanhshrink(Module):
    """x - tanh(x), element by element."""
    def __init__(self) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class Threshold(Module):
    """x where above `threshold`, else `value`."""
    threshold: float
    value: float
    inplace: bool
    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class TripletMarginLoss(Module):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin)."""
    margin: float
    p: float
    eps: float
    swap: bool
    reduction: str
    def __init__(self, margin: float = 1.0, p: float = 2.0, eps: float = 1e-06, swap: bool = False, size_average: bool | None = None, reduce: bool | None = None, reduction: str = 'mean') -> None: ...
    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor: ...

class TripletMarginWithDistanceLoss(Module):
    """TripletMarginLoss with any distance."""
    distance_function: Callable[[Tensor, Tensor], Tensor] | None
    margin: float
    swap: bool
    reduction: str
    def __init__(self, *, distance_function: Callable[[Tensor, Tensor], Tensor] | None = None, margin: float = 1.0, swap: bool = False, reduction: str = 'mean') -> None: ...
    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor: ...

class Unflatten(Module):
    """Dimension `dim` split into dimensions of `unflattened_size`."""
    dim: int
    unflattened_size: Sequence[int]
    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class Unfold(Module):
    """The blocks of images as columns: (N, C, H, W) -> (N, C * kh * kw, blocks)."""
    kernel_size: int | Sequence[int]
    dilation: int | Sequence[int]
    padding: int | Sequence[int]
    stride: int | Sequence[int]
    def __init__(self, kernel_size: int | Sequence[int], dilation: int | Sequence[int] = 1, padding: int | Sequence[int] = 0, stride: int | Sequence[int] = 1) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class Upsample(Module):
    """(N, C, *) resized to `size` or by `scale_factor`."""
    size: Sequence[int] | None
    scale_factor: float | Sequence[float] | None
    mode: str
    align_corners: bool | None
    recompute_scale_factor: bool | None
    def __init__(self, size: Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None, mode: str = 'nearest', align_corners: bool | None = None, recompute_scale_factor: bool | None = None) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class UpsamplingBilinear2d(Upsample):
    """Upsample with mode "bilinear", corners aligned."""
    size: Sequence[int] | None
    scale_factor: float | Sequence[float] | None
    def __init__(self, size: Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class UpsamplingNearest2d(Upsample):
    """Upsample with mode "nearest"."""
    size: Sequence[int] | None
    scale_factor: float | Sequence[float] | None
    def __init__(self, size: Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class ZeroPad1d(Module):
    """Borders of zeros, for signals (N, C, L)."""
    padding: int | Sequence[int]
    def __init__(self, padding: int | Sequence[int]) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class ZeroPad2d(Module):
    """Borders of zeros, for images (N, C, H, W)."""
    padding: int | Sequence[int]
    def __init__(self, padding: int | Sequence[int]) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class ZeroPad3d(Module):
    """Borders of zeros, for volumes (N, C, D, H, W)."""
    padding: int | Sequence[int]
    def __init__(self, padding: int | Sequence[int]) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

__all__ = ['AdaptiveAvgPool1d', 'AdaptiveAvgPool2d', 'AdaptiveAvgPool3d', 'AdaptiveLogSoftmaxWithLoss', 'AdaptiveMaxPool1d', 'AdaptiveMaxPool2d', 'AdaptiveMaxPool3d', 'AlphaDropout', 'AvgPool1d', 'AvgPool2d', 'AvgPool3d', 'BCELoss', 'BCEWithLogitsLoss', 'BatchNorm1d', 'BatchNorm2d', 'BatchNorm3d', 'Bilinear', 'CELU', 'CTCLoss', 'ChannelShuffle', 'CircularPad1d', 'CircularPad2d', 'CircularPad3d', 'ConstantPad1d', 'ConstantPad2d', 'ConstantPad3d', 'Conv1d', 'Conv2d', 'Conv3d', 'ConvTranspose1d', 'ConvTranspose2d', 'ConvTranspose3d', 'CosineEmbeddingLoss', 'CosineSimilarity', 'CrossEntropyLoss', 'CrossMapLRN2d', 'Dropout', 'Dropout1d', 'Dropout2d', 'Dropout3d', 'ELU', 'Embedding', 'EmbeddingBag', 'FeatureAlphaDropout', 'Flatten', 'Fold', 'FractionalMaxPool2d', 'FractionalMaxPool3d', 'GELU', 'GLU', 'GRU', 'GRUCell', 'GaussianNLLLoss', 'GroupNorm', 'Hardshrink', 'Hardsigmoid', 'Hardswish', 'Hardtanh', 'HingeEmbeddingLoss', 'HuberLoss', 'Identity', 'InstanceNorm1d', 'InstanceNorm2d', 'InstanceNorm3d', 'KLDivLoss', 'L1Loss', 'LPPool1d', 'LPPool2d', 'LPPool3d', 'LSTM', 'LSTMCell', 'LayerNorm', 'LazyBatchNorm1d', 'LazyBatchNorm2d', 'LazyBatchNorm3d', 'LazyConv1d', 'LazyConv2d', 'LazyConv3d', 'LazyConvTranspose1d', 'LazyConvTranspose2d', 'LazyConvTranspose3d', 'LazyInstanceNorm1d', 'LazyInstanceNorm2d', 'LazyInstanceNorm3d', 'LazyLinear', 'LeakyReLU', 'Linear', 'LinearCrossEntropyLoss', 'LocalResponseNorm', 'LogSigmoid', 'LogSoftmax', 'MSELoss', 'MarginRankingLoss', 'MaxPool1d', 'MaxPool2d', 'MaxPool3d', 'MaxUnpool1d', 'MaxUnpool2d', 'MaxUnpool3d', 'Mish', 'ModuleDict', 'ModuleList', 'MultiLabelMarginLoss', 'MultiLabelSoftMarginLoss', 'MultiMarginLoss', 'MultiheadAttention', 'NLLLoss', 'NLLLoss2d', 'PReLU', 'PairwiseDistance', 'ParameterDict', 'ParameterList', 'PixelShuffle', 'PixelUnshuffle', 'PoissonNLLLoss', 'RMSNorm', 'RNN', 'RNNBase', 'RNNCell', 'RNNCellBase', 'RReLU', 'ReLU', 'ReLU6', 'ReflectionPad1d', 'ReflectionPad2d', 'ReflectionPad3d', 'ReplicationPad1d', 'ReplicationPad2d', 'ReplicationPad3d', 'SELU', 'Sequential', 'SiLU', 'Sigmoid', 'SmoothL1Loss', 'SoftMarginLoss', 'Softmax', 'Softmax2d', 'Softmin', 'Softplus', 'Softshrink', 'Softsign', 'SyncBatchNorm', 'Tanh', 'Tanhshrink', 'Threshold', 'Transformer', 'TransformerDecoder', 'TransformerDecoderLayer', 'TransformerEncoder', 'TransformerEncoderLayer', 'TripletMarginLoss', 'TripletMarginWithDistanceLoss', 'Unflatten', 'Unfold', 'Upsample', 'UpsamplingBilinear2d', 'UpsamplingNearest2d', 'ZeroPad1d', 'ZeroPad2d', 'ZeroPad3d']
