"""Dropout layers."""

from __future__ import annotations

from eager.core.tensor import Tensor
from eager.nn import functional as F
from eager.nn.layer import Layer
from eager.nn.parameters import guard_training

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]


class _Dropout(Layer, shown="p={p}, inplace={inplace}"):
    """Active in training only. Raises ValueError unless 0 <= p <= 1."""

    def __init__(self, p: float = 0.5, inplace: bool = False):
        self._keep(locals())
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")

    def forward(self, input: Tensor) -> Tensor:
        return self._function(input, self.p, guard_training(self), self.inplace)


class Dropout(_Dropout, function=F.dropout):
    """In training, zeros with probability `p`, the rest scaled by 1 / (1 - p)."""


class Dropout1d(_Dropout, function=F.dropout1d):
    """Dropout of whole channels of (N, C, L) or (C, L)."""


class Dropout2d(_Dropout, function=F.dropout2d):
    """Dropout of whole channels of (N, C, H, W)."""


class Dropout3d(_Dropout, function=F.dropout3d):
    """Dropout of whole channels of (N, C, D, H, W) or (C, D, H, W)."""


class AlphaDropout(_Dropout, function=F.alpha_dropout):
    """Dropout that keeps mean 0 and variance 1 behind selu."""


class FeatureAlphaDropout(_Dropout, function=F.feature_alpha_dropout):
    """AlphaDropout of whole channels."""
