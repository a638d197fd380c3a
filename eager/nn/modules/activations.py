"""Activation functions as modules."""

from __future__ import annotations

import warnings
from typing import Any

from eager.core.tensor import Tensor
from eager.nn import functional as F
from eager.nn import init
from eager.nn.module import Module
from eager.nn.parameters import guard_training, new_parameter


class _Activation(Module):
    """A function of one tensor, without parameters of its own."""

    function: str

    def forward(self, input: Tensor) -> Tensor:
        """The shape and dtype of `input`."""
        return getattr(F, self.function)(input)


class _MayWriteInPlace(_Activation):
    def __init__(self, inplace: bool = False):
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """The shape and dtype of `input`."""
        function = getattr(F, self.function)
        return function(input, inplace=True) if self.inplace else function(input)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class _Silent(_MayWriteInPlace):
    """Does not say in its text that it writes in place."""

    def extra_repr(self) -> str:
        return ""


def _inplace_text(module: Any) -> str:
    return ", inplace=True" if module.inplace else ""


class Tanh(_Activation):
    """tanh(x), element by element."""

    function = "tanh"


class Sigmoid(_Activation):
    """1 / (1 + exp(-x)), element by element."""

    function = "sigmoid"


class LogSigmoid(_Activation):
    """log(sigmoid(x)), element by element."""

    function = "logsigmoid"


class Softsign(_Activation):
    """x / (1 + |x|), element by element."""

    function = "softsign"


class Tanhshrink(_Activation):
    """x - tanh(x), element by element."""

    function = "tanhshrink"


class ReLU(_MayWriteInPlace):
    """max(0, x), element by element."""

    function = "relu"


class SiLU(_MayWriteInPlace):
    """x * sigmoid(x), element by element."""

    function = "silu"


class Mish(_MayWriteInPlace):
    """x * tanh(softplus(x)), element by element."""

    function = "mish"


class SELU(_MayWriteInPlace):
    """the self-normalizing scaled elu, element by element."""

    function = "selu"


class Hardswish(_Silent):
    """x * hardsigmoid(x), element by element."""

    function = "hardswish"


class Hardsigmoid(_Silent):
    """x / 6 + 1 / 2, limited to [0, 1], element by element."""

    function = "hardsigmoid"


class GELU(Module):
    """x * Phi(x), Phi the normal distribution function; `approximate="tanh"` for the tanh formula."""

    def __init__(self, approximate: str = "none"):
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        """The shape and dtype of `input`."""
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class _AlongDim(_Activation):
    def __init__(self, dim: int | None = None):
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """The shape and dtype of `input`."""
        return getattr(F, self.function)(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmax(_AlongDim):
    """exp(x) / sum(exp(x)) along `dim`."""

    function = "softmax"


class Softmin(_AlongDim):
    """softmax(-x) along `dim`."""

    function = "softmin"


class LogSoftmax(_AlongDim):
    """The logarithm of softmax along `dim`."""

    function = "log_softmax"


class Softmax2d(Module):
    """Softmax over the channels of (N, C, H, W) or (C, H, W)."""

    def forward(self, input: Tensor) -> Tensor:
        """The shape and dtype of `input`."""
        ndim = len(input._d.shape)
        if ndim not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {ndim}D instead")
        return F.softmax(input, -3)


class GLU(Module):
    """The first half along `dim` times the sigmoid of the second."""

    def __init__(self, dim: int = -1):
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """(*, 2 n, *) -> (*, n, *)."""
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class LeakyReLU(Module):
    """x, or `negative_slope` * x below zero."""

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False):
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """The shape and dtype of `input`."""
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        return f"negative_slope={self.negative_slope}{_inplace_text(self)}"


class _Exponential(_Activation):
    def __init__(self, alpha: float = 1.0, inplace: bool = False):
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """The shape and dtype of `input`."""
        return getattr(F, self.function)(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}{_inplace_text(self)}"


class ELU(_Exponential):
    """x, or `alpha` * (exp(x) - 1) below zero."""

    function = "elu"


class CELU(_Exponential):
    """x, or `alpha` * (exp(x / alpha) - 1) below zero."""

    function = "celu"


class Softplus(Module):
    """log(1 + exp(beta * x)) / beta, or x where beta * x is beyond `threshold`."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0):
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        """The shape and dtype of `input`."""
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class _Shrink(_Activation):
    def __init__(self, lambd: float = 0.5):
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        """The shape and dtype of `input`."""
        return getattr(F, self.function)(input, self.lambd)

    def extra_repr(self) -> str:
        return str(self.lambd)


class Hardshrink(_Shrink):
    """x, or 0 within [-lambd, lambd]."""

    function = "hardshrink"


class Softshrink(_Shrink):
    """x moved towards 0 by `lambd`, at most to 0."""

    function = "softshrink"


class Threshold(Module):
    """x where above `threshold`, else `value`."""

    def __init__(self, threshold: float, value: float, inplace: bool = False):
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """The shape and dtype of `input`."""
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        return f"threshold={self.threshold}, value={self.value}{_inplace_text(self)}"


class Hardtanh(Module):
    """x limited to [min_val, max_val]."""

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ):
        super().__init__()
        for old, new, value in (("min_value", "min_val", min_value), ("max_value", "max_val", max_value)):
            if value is not None:
                warnings.warn(
                    f"keyword argument `{old}` is deprecated and rename to `{new}`", FutureWarning, stacklevel=2
                )
        self.min_val = min_val if min_value is None else min_value
        self.max_val = max_val if max_value is None else max_value
        self.inplace = inplace
        if self.max_val <= self.min_val:
            raise AssertionError(f"max_val ({self.max_val}) must be greater than min_val ({self.min_val})")

    def forward(self, input: Tensor) -> Tensor:
        """The shape and dtype of `input`."""
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}{_inplace_text(self)}"


class ReLU6(Hardtanh):
    """x limited to [0, 6]."""

    def __init__(self, inplace: bool = False):
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class PReLU(Module):
    """x, or weight * x below zero; a weight a channel, or one for all."""

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None):
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = new_parameter((num_parameters,), device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weights to the initial one."""
        init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        """The shape and dtype of `input`."""
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class RReLU(Module):
    """Leaky relu whose slopes are drawn from [lower, upper) in training, and their mean in evaluation."""

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False):
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """The shape and dtype of `input`."""
        return F.rrelu(input, self.lower, self.upper, guard_training(self), self.inplace)

    def extra_repr(self) -> str:
        return f"lower={self.lower}, upper={self.upper}{_inplace_text(self)}"
