"""Activation functions as modules. Unless said otherwise, the result has the shape and dtype of the input."""

from __future__ import annotations

import warnings
from typing import Any

from eager.core.tensor import Tensor
from eager.nn import functional as F
from eager.nn import init
from eager.nn.layer import Layer
from eager.nn.parameters import guard_training, new_parameter

__all__ = [
    "CELU", "ELU", "GELU", "GLU", "SELU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU",
    "LogSigmoid", "LogSoftmax", "Mish", "PReLU", "RReLU", "ReLU", "ReLU6", "SiLU", "Sigmoid", "Softmax", "Softmax2d",
    "Softmin", "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink", "Threshold",
]  # fmt: skip


class _MayWriteInPlace(Layer):
    def __init__(self, inplace: bool = False):
        self._keep(locals())

    def extra_repr(self) -> str:
        return ", ".join(part for part in (super().extra_repr(), "inplace=True" if self.inplace else "") if part)


class _Silent(_MayWriteInPlace):
    """Does not say in its text that it writes in place."""

    def extra_repr(self) -> str:
        return ""


class Tanh(Layer, function=F.tanh):
    """tanh(x), element by element."""


class Sigmoid(Layer, function=F.sigmoid):
    """1 / (1 + exp(-x)), element by element."""


class LogSigmoid(Layer, function=F.logsigmoid):
    """log(sigmoid(x)), element by element."""


class Softsign(Layer, function=F.softsign):
    """x / (1 + |x|), element by element."""


class Tanhshrink(Layer, function=F.tanhshrink):
    """x - tanh(x), element by element."""


class ReLU(_MayWriteInPlace, function=F.relu):
    """max(0, x), element by element."""


class SiLU(_MayWriteInPlace, function=F.silu):
    """x * sigmoid(x), element by element."""


class Mish(_MayWriteInPlace, function=F.mish):
    """x * tanh(softplus(x)), element by element."""


class SELU(_MayWriteInPlace, function=F.selu):
    """the self-normalizing scaled elu, element by element."""


class Hardswish(_Silent, function=F.hardswish):
    """x * hardsigmoid(x), element by element."""


class Hardsigmoid(_Silent, function=F.hardsigmoid):
    """x / 6 + 1 / 2, limited to [0, 1], element by element."""


class GELU(Layer, function=F.gelu, shown="approximate={approximate!r}"):
    """x * Phi(x), Phi the normal distribution function; `approximate="tanh"` for the tanh formula."""

    def __init__(self, approximate: str = "none"):
        self._keep(locals())


class _AlongDim(Layer, shown="dim={dim}"):
    def __init__(self, dim: int | None = None):
        self._keep(locals())


class Softmax(_AlongDim, function=F.softmax):
    """exp(x) / sum(exp(x)) along `dim`."""


class Softmin(_AlongDim, function=F.softmin):
    """softmax(-x) along `dim`."""


class LogSoftmax(_AlongDim, function=F.log_softmax):
    """The logarithm of softmax along `dim`."""


class Softmax2d(Layer):
    """Softmax over the channels of (N, C, H, W) or (C, H, W)."""

    def forward(self, input: Tensor) -> Tensor:
        ndim = len(input._d.shape)
        if ndim not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {ndim}D instead")
        return F.softmax(input, -3)


class GLU(Layer, shown="dim={dim}", function=F.glu):
    """The first half along `dim` times the sigmoid of the second: (*, 2 n, *) -> (*, n, *)."""

    def __init__(self, dim: int = -1):
        self._keep(locals())


class LeakyReLU(_MayWriteInPlace, shown="negative_slope={negative_slope}", function=F.leaky_relu):
    """x, or `negative_slope` * x below zero."""

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False):
        self._keep(locals())


class _Exponential(_MayWriteInPlace, shown="alpha={alpha}"):
    def __init__(self, alpha: float = 1.0, inplace: bool = False):
        self._keep(locals())


class ELU(_Exponential, function=F.elu):
    """x, or `alpha` * (exp(x) - 1) below zero."""


class CELU(_Exponential, function=F.celu):
    """x, or `alpha` * (exp(x / alpha) - 1) below zero."""


class Softplus(Layer, shown="beta={beta}, threshold={threshold}", function=F.softplus):
    """log(1 + exp(beta * x)) / beta, or x where beta * x is beyond `threshold`."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0):
        self._keep(locals())


class _Shrink(Layer, shown="{lambd}"):
    def __init__(self, lambd: float = 0.5):
        self._keep(locals())


class Hardshrink(_Shrink, function=F.hardshrink):
    """x, or 0 within [-lambd, lambd]."""


class Softshrink(_Shrink, function=F.softshrink):
    """x moved towards 0 by `lambd`, at most to 0."""


class Threshold(_MayWriteInPlace, shown="threshold={threshold}, value={value}", function=F.threshold):
    """x where above `threshold`, else `value`."""

    def __init__(self, threshold: float, value: float, inplace: bool = False):
        self._keep(locals())


class Hardtanh(_MayWriteInPlace, function=F.hardtanh, shown="min_val={min_val}, max_val={max_val}"):
    """x limited to [min_val, max_val]."""

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False,
                 min_value: float | None = None, max_value: float | None = None):  # fmt: skip
        super().__init__(inplace)
        for old, new, value in (("min_value", "min_val", min_value), ("max_value", "max_val", max_value)):
            if value is not None:
                warnings.warn(
                    f"keyword argument `{old}` is deprecated and rename to `{new}`", FutureWarning, stacklevel=2
                )
        self.min_val = min_val if min_value is None else min_value
        self.max_val = max_val if max_value is None else max_value
        if self.max_val <= self.min_val:
            raise AssertionError(f"max_val ({self.max_val}) must be greater than min_val ({self.min_val})")


class ReLU6(Hardtanh, shown=""):
    """x limited to [0, 6]."""

    def __init__(self, inplace: bool = False):
        super().__init__(0.0, 6.0, inplace)


class PReLU(Layer, shown="num_parameters={num_parameters}", function=F.prelu):
    """x, or weight * x below zero; a weight a channel, or one for all."""

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None):
        self._keep(locals())
        self.weight = new_parameter((num_parameters,), device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weights to the initial one."""
        init.constant_(self.weight, self.init)


class RReLU(_MayWriteInPlace, shown="lower={lower}, upper={upper}"):
    """Leaky relu whose slopes are drawn from [lower, upper) in training, and their mean in evaluation."""

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False):
        self._keep(locals())

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, guard_training(self), self.inplace)
