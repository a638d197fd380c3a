"""The half-normal distribution. As `torch.distributions.half_normal`."""

from __future__ import annotations

import math

from eager.core.tensor import Tensor
from eager.distributions.half import Half
from eager.distributions.normal import Normal

__all__ = ["HalfNormal"]


class HalfNormal(Half):
    """The absolute value of a normal number of mean 0."""

    base_dist: Normal
    _base = Normal

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Tensor:
        return self.scale.pow(2) * (1 - 2 / math.pi)
