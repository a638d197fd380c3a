"""The half-normal distribution. As `torch.distributions.half_normal`."""

from __future__ import annotations

import math

from eager.distributions.half import Half
from eager.distributions.normal import Normal

__all__ = ["HalfNormal"]


class HalfNormal(Half):
    """The absolute value of a normal number of mean 0."""

    base_dist: Normal
    _base = Normal
    mean = property(lambda self: self.scale * math.sqrt(2 / math.pi))
    variance = property(lambda self: self.scale.pow(2) * (1 - 2 / math.pi))
