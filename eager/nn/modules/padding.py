"""Padding layers. `padding` is one number for all ends, or (low, high) of the last dim, then of the one before.

(N, C, *) or (C, *) -> the same with larger sizes.
"""

from __future__ import annotations

from typing import Any

from eager.core.tensor import Tensor
from eager.nn import functional as F
from eager.nn.layer import Layer, of_each_rank
from eager.nn.modules.conv import repeated

__all__ = [
    "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d",
    "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d",
    "ReplicationPad3d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]  # fmt: skip


class _Pad(Layer, shown="{padding}"):
    mode: str
    value: float | None = None

    def __init__(self, padding: Any):
        super().__init__()
        self.padding = repeated(padding, 2 * self.rank)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self.mode, self.value)


class _ConstantPad(_Pad, shown="padding={padding}, value={value}"):
    mode = "constant"

    def __init__(self, padding: Any, value: float):
        super().__init__(padding)
        self.value = value


class _ZeroPad(_ConstantPad, shown="{padding}"):
    def __init__(self, padding: Any):
        super().__init__(padding, 0.0)


class _ReflectionPad(_Pad):
    mode = "reflect"


class _ReplicationPad(_Pad):
    mode = "replicate"


class _CircularPad(_Pad):
    mode = "circular"

    def forward(self, input: Tensor) -> Tensor:
        if len(input._d.shape) - self.rank not in (1, 2):
            expected = f"{self.rank + 1}D or {self.rank + 2}D"
            raise ValueError(f"expected {expected} input (got {len(input._d.shape)}D input)")
        return super().forward(input)


ConstantPad1d, ConstantPad2d, ConstantPad3d = of_each_rank(_ConstantPad, "Borders of one value, for")
ZeroPad1d, ZeroPad2d, ZeroPad3d = of_each_rank(_ZeroPad, "Borders of zeros, for")
ReflectionPad1d, ReflectionPad2d, ReflectionPad3d = of_each_rank(_ReflectionPad, "Borders that mirror the inside, for")
ReplicationPad1d, ReplicationPad2d, ReplicationPad3d = of_each_rank(
    _ReplicationPad, "Borders that repeat the edge, for"
)
CircularPad1d, CircularPad2d, CircularPad3d = of_each_rank(_CircularPad, "Borders from the other end, for")
