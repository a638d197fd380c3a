"""Convolutional layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from eager.core.tensor import Tensor
from eager.nn import functional as F
from eager.nn.layer import Layer, of_each_rank, unusual
from eager.nn.parameters import add_parameters, fan_in_init

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]

PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


def repeated(value: Any, rank: int) -> tuple[Any, ...]:
    """`value` for every spatial dimension, unless it is one for each already."""
    return tuple(value) if isinstance(value, Sequence) else (value,) * rank


class _ConvNd(Layer):
    """What all convolutions share. `rank` is the number of spatial dimensions."""

    transposed = False
    _usual: ClassVar = {"padding": 0, "dilation": 1, "output_padding": 0}

    def _begin(self, arguments: dict[str, Any]) -> None:
        """Check and keep the arguments of `__init__`, and make the parameters."""
        self._keep(arguments)
        rank, groups, padding = self.rank, self.groups, self.padding
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if self.in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if self.out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(f"Invalid padding string {padding!r}, should be one of {{'same', 'valid'}}")
            if padding == "same" and any(s != 1 for s in repeated(self.stride, rank)):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if self.padding_mode not in PADDING_MODES:
            raise ValueError(
                f"padding_mode must be one of {set(PADDING_MODES)}, but got padding_mode='{self.padding_mode}'"
            )
        self.output_padding = arguments.get("output_padding", 0)
        for name in ("kernel_size", "stride", "padding", "dilation", "output_padding"):
            value = getattr(self, name)
            setattr(self, name, value if isinstance(value, str) else repeated(value, rank))
        self.transposed = type(self).transposed  # what PyTorch finds in a pickle of it
        self._reversed_padding_repeated_twice = self._borders()
        inner, outer = self.in_channels, self.out_channels
        channels = (inner, outer // groups) if self.transposed else (outer, inner // groups)
        add_parameters(
            self, arguments["device"], arguments["dtype"], weight=(*channels, *self.kernel_size),
            bias=(outer,) if arguments["bias"] else None,
        )  # fmt: skip
        self.reset_parameters()

    def _borders(self) -> Sequence[int]:
        """`padding` as `F.pad` takes it: last dimension first, both ends."""
        if not isinstance(self.padding, str):
            return tuple(p for p in reversed(self.padding) for _ in range(2))
        # how many sizes there are is asked where the layer is called, as in PyTorch
        same = self.padding == "same"
        totals = [d * (k - 1) if same else 0 for d, k in zip(self.dilation, self.kernel_size, strict=False)]
        totals += [0] * (len(self.kernel_size) - len(totals))
        return [end for total in reversed(totals) for end in (total // 2, total - total // 2)]

    def reset_parameters(self) -> None:
        """Draw new values: uniform in +-1 / sqrt(fan_in)."""
        if 0 not in self.weight._d.shape:
            fan_in_init(self.weight, self.bias)

    def extra_repr(self) -> str:
        usual = {name: (value,) * len(getattr(self, name)) for name, value in self._usual.items()}
        return (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
            f"{unusual(self, **usual, groups=1)}"
            f"{', bias=False' if self.bias is None else ''}{unusual(self, padding_mode='zeros')}"
        )


class _Conv(_ConvNd):
    """Convolution. weight: (out_channels, in_channels / groups, *kernel_size), bias: (out_channels,)."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
                 dilation: Any = 1, groups: int = 1, bias: bool = True, padding_mode: str = "zeros",
                 device: Any = None, dtype: Any = None):  # fmt: skip
        self._begin(locals())

    def forward(self, input: Tensor) -> Tensor:
        """(N, in_channels, *) or (in_channels, *) -> the same with out_channels and the output's sizes."""
        padding = self.padding
        if self.padding_mode != "zeros":
            input, padding = F.pad(input, self._reversed_padding_repeated_twice, self.padding_mode), 0
        return self._function(input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)


Conv1d, Conv2d, Conv3d = of_each_rank(_Conv, "Convolution of", "conv")


class _ConvTranspose(_ConvNd):
    """The transpose of a convolution. weight: (in_channels, out_channels / groups, *kernel_size)."""

    transposed = True

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
                 output_padding: Any = 0, groups: int = 1, bias: bool = True, dilation: Any = 1,
                 padding_mode: str = "zeros", device: Any = None, dtype: Any = None):  # fmt: skip
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        self._begin(locals())

    def _output_padding(self, input: Tensor, output_size: Sequence[int] | None) -> tuple[int, ...]:
        """What reaches `output_size`. Raises ValueError for a size that is out of reach."""
        if output_size is None:
            return self.output_padding
        rank, shape = self.rank, input._d.shape
        batched = len(shape) == rank + 2
        sizes = tuple(output_size)
        if len(sizes) == len(shape):
            sizes = sizes[len(shape) - rank :]
        if len(sizes) != rank:
            raise ValueError(
                f"ConvTranspose{rank}D: for {len(shape)}D input, output_size must have {rank} or "
                f"{rank + (2 if batched else 1)} elements (got {len(output_size)})"
            )
        least = [
            (n - 1) * s - 2 * p + d * (k - 1) + 1
            for n, s, p, d, k in zip(
                shape[len(shape) - rank :], self.stride, self.padding, self.dilation, self.kernel_size, strict=True
            )
        ]
        most = [n + s - 1 for n, s in zip(least, self.stride, strict=True)]
        if any(not low <= n <= high for n, low, high in zip(sizes, least, most, strict=True)):
            raise ValueError(
                f"requested an output size of {output_size}, but valid sizes range from {least} to {most} (for an "
                f"input of {input.shape[2:]})"
            )
        return tuple(n - low for n, low in zip(sizes, least, strict=True))

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """(N, in_channels, *) or (in_channels, *) -> the same with out_channels and the output's sizes."""
        extra = self._output_padding(input, output_size)
        return self._function(
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation
        )


ConvTranspose1d, ConvTranspose2d, ConvTranspose3d = of_each_rank(
    _ConvTranspose, "The transpose of the convolution of", "conv_transpose"
)
