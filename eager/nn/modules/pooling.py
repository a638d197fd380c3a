"""Pooling layers: (N, C, *) or (C, *) -> the same with the output's sizes, if asked with the places of the maxima."""

from __future__ import annotations

from typing import Any

from eager.core.tensor import Tensor
from eager.nn import functional as F
from eager.nn.layer import Layer, of_each_rank
from eager.nn.modules.conv import repeated

__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "FractionalMaxPool2d", "FractionalMaxPool3d",
    "LPPool1d", "LPPool2d", "LPPool3d", "MaxPool1d", "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d",
    "MaxUnpool3d",
]  # fmt: skip

WINDOW = "kernel_size={kernel_size}, stride={stride}, padding={padding}"


class _MaxPool(Layer, shown=f"{WINDOW}, dilation={{dilation}}, ceil_mode={{ceil_mode}}"):
    """The maximum over windows; `stride` is `kernel_size` unless given."""

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
                 return_indices: bool = False, ceil_mode: bool = False):  # fmt: skip
        if stride is None:
            stride = kernel_size
        self._keep(locals())


MaxPool1d, MaxPool2d, MaxPool3d = of_each_rank(_MaxPool, "Max pooling of", "max_pool")


class _MaxUnpool(Layer, shown=WINDOW):
    """Undoes MaxPool given the indices; all else is zero."""

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0):
        super().__init__()
        self.kernel_size = repeated(kernel_size, self.rank)
        self.stride = repeated(stride if stride is not None else kernel_size, self.rank)
        self.padding = repeated(padding, self.rank)

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        return self._function(input, indices, self.kernel_size, self.stride, self.padding, output_size)


MaxUnpool1d, MaxUnpool2d, MaxUnpool3d = of_each_rank(_MaxUnpool, "Max unpooling of", "max_unpool")


class _AvgPool(Layer, shown=WINDOW):
    """The mean over windows; `stride` is `kernel_size` unless given."""

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
                 count_include_pad: bool = True, divisor_override: int | None = None):  # fmt: skip
        if stride is None:
            stride = kernel_size
        self._keep(locals())


class AvgPool1d(_AvgPool, rank=1, function=F.avg_pool1d):
    """Average pooling of signals (N, C, L)."""

    divisor_override = None

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
                 count_include_pad: bool = True):  # fmt: skip
        super().__init__(
            repeated(kernel_size, 1), repeated(stride if stride is not None else kernel_size, 1), repeated(padding, 1),
            ceil_mode, count_include_pad,
        )  # fmt: skip
        del self.__dict__["divisor_override"]


AvgPool2d, AvgPool3d = of_each_rank(_AvgPool, "Average pooling of", "avg_pool", (2, 3))


class _LPPool(Layer, shown="norm_type={norm_type}, kernel_size={kernel_size}, stride={stride}, ceil_mode={ceil_mode}"):
    """The p-norm of windows; `stride` is `kernel_size` unless given."""

    def __init__(self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False):
        self._keep(locals())

    def forward(self, input: Tensor) -> Tensor:
        return self._function(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


LPPool1d, LPPool2d, LPPool3d = of_each_rank(_LPPool, "Power-average pooling of", "lp_pool")


class _AdaptiveAvgPool(Layer, shown="output_size={output_size}"):
    """The means of windows that cover the input in `output_size` steps."""

    def __init__(self, output_size: Any):
        self._keep(locals())


AdaptiveAvgPool1d, AdaptiveAvgPool2d, AdaptiveAvgPool3d = of_each_rank(
    _AdaptiveAvgPool, "Adaptive average pooling of", "adaptive_avg_pool"
)


class _AdaptiveMaxPool(Layer, shown="output_size={output_size}"):
    """The maxima of windows that cover the input in `output_size` steps."""

    def __init__(self, output_size: Any, return_indices: bool = False):
        self._keep(locals())


AdaptiveMaxPool1d, AdaptiveMaxPool2d, AdaptiveMaxPool3d = of_each_rank(
    _AdaptiveMaxPool, "Adaptive max pooling of", "adaptive_max_pool"
)


class _FractionalMaxPool(Layer):
    """The maximum over windows at random steps; either `output_size` or `output_ratio` says how many."""

    _random_samples: Tensor | None

    def __init__(self, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
                 return_indices: bool = False, _random_samples: Tensor | None = None):  # fmt: skip
        self._keep(locals(), ["_random_samples"])
        rank = self.rank
        self.kernel_size = repeated(kernel_size, rank)
        if rank == 3 and min(self.kernel_size) <= 0:
            raise ValueError(f"kernel_size must be greater than 0, but got {kernel_size}")
        self.output_size = None if output_size is None else repeated(output_size, rank)
        self.output_ratio = None if output_ratio is None else repeated(output_ratio, rank)
        if output_size is None and output_ratio is None:
            raise ValueError(f"{type(self).__name__} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < ratio < 1 for ratio in self.output_ratio[:rank]):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")


FractionalMaxPool2d, FractionalMaxPool3d = of_each_rank(
    _FractionalMaxPool, "Fractional max pooling of", "fractional_max_pool", (2, 3)
)
