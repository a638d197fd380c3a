"""Padding layers. `padding` is one number for all ends, or (low, high) of the last dim, then of the one before.

(N, C, *) or (C, *) -> the same with larger sizes.
"""

from __future__ import annotations

from typing import Any

from eager.core.tensor import Tensor
from eager.nn import functional as F
from eager.nn.layer import Layer
from eager.nn.modules.convolutions import repeated

__all__ = [
    "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d",
    "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d",
    "ReplicationPad3d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]  # fmt: skip


class _Pad(Layer, shown="{padding}"):
    mode: str

    def __init__(self, padding: Any):
        super().__init__()
        self.padding = repeated(padding, 2 * self.rank)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self.mode)


class _ConstantPad(_Pad, shown="padding={padding}, value={value}"):
    def __init__(self, padding: Any, value: float):
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)


class _ZeroPad(_ConstantPad, shown="{padding}"):
    def __init__(self, padding: Any):
        super().__init__(padding, 0.0)


class _ReflectionPad(_Pad):
    mode = "reflect"


class _ReplicationPad(_Pad):
    mode = "replicate"


class _CircularPad(_Pad):
    mode = "circular"


class ConstantPad1d(_ConstantPad, rank=1):
    """Borders of one value, for signals (N, C, L)."""


class ConstantPad2d(_ConstantPad, rank=2):
    """Borders of one value, for images (N, C, H, W)."""


class ConstantPad3d(_ConstantPad, rank=3):
    """Borders of one value, for volumes (N, C, D, H, W)."""


class ZeroPad1d(_ZeroPad, rank=1):
    """Borders of zeros, for signals (N, C, L)."""


class ZeroPad2d(_ZeroPad, rank=2):
    """Borders of zeros, for images (N, C, H, W)."""


class ZeroPad3d(_ZeroPad, rank=3):
    """Borders of zeros, for volumes (N, C, D, H, W)."""


class ReflectionPad1d(_ReflectionPad, rank=1):
    """Borders that mirror the inside, for signals (N, C, L)."""


class ReflectionPad2d(_ReflectionPad, rank=2):
    """Borders that mirror the inside, for images (N, C, H, W)."""


class ReflectionPad3d(_ReflectionPad, rank=3):
    """Borders that mirror the inside, for volumes (N, C, D, H, W)."""


class ReplicationPad1d(_ReplicationPad, rank=1):
    """Borders that repeat the edge, for signals (N, C, L)."""


class ReplicationPad2d(_ReplicationPad, rank=2):
    """Borders that repeat the edge, for images (N, C, H, W)."""


class ReplicationPad3d(_ReplicationPad, rank=3):
    """Borders that repeat the edge, for volumes (N, C, D, H, W)."""


class CircularPad1d(_CircularPad, rank=1):
    """Borders from the other end, for signals (N, C, L)."""


class CircularPad2d(_CircularPad, rank=2):
    """Borders from the other end, for images (N, C, H, W)."""


class CircularPad3d(_CircularPad, rank=3):
    """Borders from the other end, for volumes (N, C, D, H, W)."""
