"""Dropout layers."""

from __future__ import annotations

from eager.core.tensor import Tensor
from eager.nn import functional as F
from eager.nn.module import Module
from eager.nn.parameters import guard_training


class _Dropout(Module):
    """Active in training only. Raises ValueError unless 0 <= p <= 1."""

    function: str

    def __init__(self, p: float = 0.5, inplace: bool = False):
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """The shape and dtype of `input`."""
        return getattr(F, self.function)(input, self.p, guard_training(self), self.inplace)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Dropout):
    """In training, zeros with probability `p`, the rest scaled by 1 / (1 - p)."""

    function = "dropout"


class Dropout1d(_Dropout):
    """Dropout of whole channels of (N, C, L) or (C, L)."""

    function = "dropout1d"


class Dropout2d(_Dropout):
    """Dropout of whole channels of (N, C, H, W)."""

    function = "dropout2d"


class Dropout3d(_Dropout):
    """Dropout of whole channels of (N, C, D, H, W) or (C, D, H, W)."""

    function = "dropout3d"


class AlphaDropout(_Dropout):
    """Dropout that keeps mean 0 and variance 1 behind selu."""

    function = "alpha_dropout"


class FeatureAlphaDropout(_Dropout):
    """AlphaDropout of whole channels."""

    function = "feature_alpha_dropout"
