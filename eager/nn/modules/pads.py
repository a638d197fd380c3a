"""Padding layers. `padding` is one number for all ends, or (low, high) of the last dim, then of the one before."""

from __future__ import annotations

from typing import Any

from eager.core.tensor import Tensor
from eager.nn import functional as F
from eager.nn.module import Module
from eager.nn.modules.convolutions import repeated


class _Pad(Module):
    rank: int
    mode: str

    def __init__(self, padding: Any):
        super().__init__()
        self.padding = repeated(padding, 2 * self.rank)

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, *) or (C, *) -> the same with larger sizes."""
        return F.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPad(_Pad):
    mode = "constant"

    def __init__(self, padding: Any, value: float):
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        """(*) -> the same with larger sizes."""
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class _ZeroPad(_ConstantPad):
    def __init__(self, padding: Any):
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ReflectionPad(_Pad):
    mode = "reflect"


class _ReplicationPad(_Pad):
    mode = "replicate"


class _CircularPad(_Pad):
    mode = "circular"


class ConstantPad1d(_ConstantPad):
    """Borders of one value, for signals (N, C, L)."""

    rank = 1


class ConstantPad2d(_ConstantPad):
    """Borders of one value, for images (N, C, H, W)."""

    rank = 2


class ConstantPad3d(_ConstantPad):
    """Borders of one value, for volumes (N, C, D, H, W)."""

    rank = 3


class ZeroPad1d(_ZeroPad):
    """Borders of zeros, for signals (N, C, L)."""

    rank = 1


class ZeroPad2d(_ZeroPad):
    """Borders of zeros, for images (N, C, H, W)."""

    rank = 2


class ZeroPad3d(_ZeroPad):
    """Borders of zeros, for volumes (N, C, D, H, W)."""

    rank = 3


class ReflectionPad1d(_ReflectionPad):
    """Borders that mirror the inside, for signals (N, C, L)."""

    rank = 1


class ReflectionPad2d(_ReflectionPad):
    """Borders that mirror the inside, for images (N, C, H, W)."""

    rank = 2


class ReflectionPad3d(_ReflectionPad):
    """Borders that mirror the inside, for volumes (N, C, D, H, W)."""

    rank = 3


class ReplicationPad1d(_ReplicationPad):
    """Borders that repeat the edge, for signals (N, C, L)."""

    rank = 1


class ReplicationPad2d(_ReplicationPad):
    """Borders that repeat the edge, for images (N, C, H, W)."""

    rank = 2


class ReplicationPad3d(_ReplicationPad):
    """Borders that repeat the edge, for volumes (N, C, D, H, W)."""

    rank = 3


class CircularPad1d(_CircularPad):
    """Borders from the other end, for signals (N, C, L)."""

    rank = 1


class CircularPad2d(_CircularPad):
    """Borders from the other end, for images (N, C, H, W)."""

    rank = 2


class CircularPad3d(_CircularPad):
    """Borders from the other end, for volumes (N, C, D, H, W)."""

    rank = 3
