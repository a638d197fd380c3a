"""The Cauchy distribution. As `torch.distributions.cauchy`."""

from __future__ import annotations

import math
from typing import Any

from eager.core.tensor import Tensor
from eager.distributions.location_scale import LocationScale
from eager.functional.creation import full_like

__all__ = ["Cauchy"]


class Cauchy(LocationScale):
    """1 / (pi scale (1 + ((x - loc) / scale)^2)). It has no mean."""

    mean = property(lambda self: full_like(self.loc, math.nan))
    mode = property(lambda self: self.loc)
    variance = property(lambda self: full_like(self.loc, math.inf))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.loc + self.loc.new_empty(self._extended_shape(sample_shape)).cauchy_() * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return -math.log(math.pi) - self.scale.log() - (((value - self.loc) / self.scale) ** 2).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return ((value - self.loc) / self.scale).atan() / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return (math.pi * (value - 0.5)).tan() * self.scale + self.loc

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + self.scale.log()
