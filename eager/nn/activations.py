"""Activation functions as modules."""

from __future__ import annotations

from typing import Any

from eager.nn import functional as F
from eager.nn.module import Module
from eager.tensor import Tensor


class Identity(Module):
    """Its input, whatever it was constructed with."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        """`input` itself."""
        return input


class Tanh(Module):
    """tanh(x), element by element."""

    def forward(self, input: Tensor) -> Tensor:
        """The shape and dtype of `input`."""
        return input.tanh()


class Sigmoid(Module):
    """1 / (1 + exp(-x)), element by element."""

    def forward(self, input: Tensor) -> Tensor:
        """The shape and dtype of `input`."""
        return input.sigmoid()


class _MayWriteInPlace(Module):
    def __init__(self, inplace: bool = False):
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class ReLU(_MayWriteInPlace):
    """max(0, x), element by element."""

    def forward(self, input: Tensor) -> Tensor:
        """The shape and dtype of `input`."""
        return F.relu(input, inplace=self.inplace) if self.inplace else F.relu(input)


class SiLU(_MayWriteInPlace):
    """x * sigmoid(x), element by element."""

    def forward(self, input: Tensor) -> Tensor:
        """The shape and dtype of `input`."""
        return F.silu(input, inplace=self.inplace) if self.inplace else F.silu(input)


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


class Softmax(Module):
    """exp(x) / sum(exp(x)) along `dim`."""

    def __init__(self, dim: int | None = None):
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """The shape and dtype of `input`."""
        return F.softmax(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class LogSoftmax(Module):
    """The logarithm of softmax along `dim`."""

    def __init__(self, dim: int | None = None):
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """The shape and dtype of `input`."""
        return F.log_softmax(input, self.dim)

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
        return f"negative_slope={self.negative_slope}" + (", inplace=True" if self.inplace else "")


class ELU(Module):
    """x, or `alpha` * (exp(x) - 1) below zero."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False):
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """The shape and dtype of `input`."""
        return F.elu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}" + (", inplace=True" if self.inplace else "")


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
