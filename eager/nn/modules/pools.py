"""Pooling layers."""

from __future__ import annotations

from typing import Any

from eager.core.tensor import Tensor
from eager.nn import functional as F
from eager.nn.module import Module
from eager.nn.modules.convolutions import repeated


class _MaxPool(Module):
    """The maximum over windows; `stride` is `kernel_size` unless given."""

    rank: int

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ):
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Any:
        """(N, C, *) or (C, *) -> the same with the output's sizes; with `return_indices` also where the maxima are."""
        pool = getattr(F, f"max_pool{self.rank}d")
        return pool(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices
        )

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, dilation={self.dilation}, "
            f"ceil_mode={self.ceil_mode}"
        )


class _MaxUnpool(Module):
    """Undoes MaxPool given the indices; all else is zero."""

    rank: int

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0):
        super().__init__()
        self.kernel_size = repeated(kernel_size, self.rank)
        self.stride = repeated(stride if stride is not None else kernel_size, self.rank)
        self.padding = repeated(padding, self.rank)

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        """(N, C, *) or (C, *) and their places -> the same with the larger sizes."""
        unpool = getattr(F, f"max_unpool{self.rank}d")
        return unpool(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _AvgPool(Module):
    """The mean over windows; `stride` is `kernel_size` unless given."""

    rank: int

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ):
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, *) or (C, *) -> the same with the output's sizes."""
        pool = getattr(F, f"avg_pool{self.rank}d")
        return pool(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad,
            self.divisor_override,
        )  # fmt: skip

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _LPPool(Module):
    """The p-norm of windows; `stride` is `kernel_size` unless given."""

    rank: int

    def __init__(self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False):
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, *) or (C, *) -> the same with the output's sizes."""
        pool = getattr(F, f"lp_pool{self.rank}d")
        return pool(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self) -> str:
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class _AdaptiveAvgPool(Module):
    """The means of windows that cover the input in `output_size` steps."""

    rank: int

    def __init__(self, output_size: Any):
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, *) or (C, *) -> the same with `output_size`."""
        return getattr(F, f"adaptive_avg_pool{self.rank}d")(input, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class _AdaptiveMaxPool(Module):
    """The maxima of windows that cover the input in `output_size` steps."""

    rank: int

    def __init__(self, output_size: Any, return_indices: bool = False):
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def forward(self, input: Tensor) -> Any:
        """(N, C, *) or (C, *) -> the same with `output_size`; with `return_indices` also where the maxima are."""
        return getattr(F, f"adaptive_max_pool{self.rank}d")(input, self.output_size, self.return_indices)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class MaxPool1d(_MaxPool):
    """Max pooling of signals (N, C, L)."""

    rank = 1


class MaxPool2d(_MaxPool):
    """Max pooling of images (N, C, H, W)."""

    rank = 2


class MaxPool3d(_MaxPool):
    """Max pooling of volumes (N, C, D, H, W)."""

    rank = 3


class MaxUnpool1d(_MaxUnpool):
    """Max unpooling of signals (N, C, L)."""

    rank = 1


class MaxUnpool2d(_MaxUnpool):
    """Max unpooling of images (N, C, H, W)."""

    rank = 2


class MaxUnpool3d(_MaxUnpool):
    """Max unpooling of volumes (N, C, D, H, W)."""

    rank = 3


class AvgPool1d(_AvgPool):
    """Average pooling of signals (N, C, L)."""

    rank = 1

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ):
        super().__init__(
            repeated(kernel_size, 1), repeated(stride if stride is not None else kernel_size, 1), repeated(padding, 1),
            ceil_mode, count_include_pad,
        )  # fmt: skip


class AvgPool2d(_AvgPool):
    """Average pooling of images (N, C, H, W)."""

    rank = 2


class AvgPool3d(_AvgPool):
    """Average pooling of volumes (N, C, D, H, W)."""

    rank = 3


class LPPool1d(_LPPool):
    """Power-average pooling of signals (N, C, L)."""

    rank = 1


class LPPool2d(_LPPool):
    """Power-average pooling of images (N, C, H, W)."""

    rank = 2


class LPPool3d(_LPPool):
    """Power-average pooling of volumes (N, C, D, H, W)."""

    rank = 3


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """Adaptive average pooling of signals (N, C, L)."""

    rank = 1


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """Adaptive average pooling of images (N, C, H, W)."""

    rank = 2


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """Adaptive average pooling of volumes (N, C, D, H, W)."""

    rank = 3


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """Adaptive max pooling of signals (N, C, L)."""

    rank = 1


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """Adaptive max pooling of images (N, C, H, W)."""

    rank = 2


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """Adaptive max pooling of volumes (N, C, D, H, W)."""

    rank = 3


class _FractionalMaxPool(Module):
    """The maximum over windows at random steps; either `output_size` or `output_ratio` says how many."""

    rank: int
    _random_samples: Tensor | None

    def __init__(
        self,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ):
        super().__init__()
        rank, name = self.rank, type(self).__name__
        self.kernel_size = repeated(kernel_size, rank)
        if rank == 3 and min(self.kernel_size) <= 0:
            raise ValueError(f"kernel_size must be greater than 0, but got {kernel_size}")
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else repeated(output_size, rank)
        self.output_ratio = None if output_ratio is None else repeated(output_ratio, rank)
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < ratio < 1 for ratio in self.output_ratio[:rank]):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input: Tensor) -> Any:
        """(N, C, *) or (C, *) -> the same with the output's sizes; with `return_indices` also where the maxima are."""
        pool = getattr(F, f"fractional_max_pool{self.rank}d")
        return pool(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices, self._random_samples
        )


class FractionalMaxPool2d(_FractionalMaxPool):
    """Fractional max pooling of images (N, C, H, W)."""

    rank = 2


class FractionalMaxPool3d(_FractionalMaxPool):
    """Fractional max pooling of volumes (N, C, D, H, W)."""

    rank = 3
