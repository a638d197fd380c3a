"""The normal distribution. As `torch.distributions.normal`."""

from __future__ import annotations

import math
from operator import attrgetter
from typing import Any

from eager.core.grad_mode import no_grad
from eager.core.tensor import Tensor
from eager.distributions.exp_family import ExponentialFamily
from eager.distributions.location_scale import LocationScale
from eager.distributions.utils import standard_normal
from eager.rng.functions import normal

__all__ = ["Normal"]


class Normal(LocationScale, ExponentialFamily):
    """exp(-((x - loc) / scale)^2 / 2) / (scale sqrt(2 pi))."""

    _mean_carrier_measure = 0
    mean = mode = property(attrgetter("loc"))
    stddev = property(attrgetter("scale"))
    variance = property(lambda self: self.stddev.pow(2))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return normal(self.loc.expand(shape), self.scale.expand(shape))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.loc + standard_normal(self._extended_shape(sample_shape), self.loc) * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        exponent = -((value - self.loc) ** 2) / (2 * self.scale**2)
        return exponent - self.scale.log() - math.log(math.sqrt(2 * math.pi))

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return 0.5 * (1 + ((value - self.loc) * self.scale.reciprocal() / math.sqrt(2)).erf())

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * (2 * value - 1).erfinv() * math.sqrt(2)

    def entropy(self) -> Tensor:
        return 0.5 + 0.5 * math.log(2 * math.pi) + self.scale.log()

    _natural_params = property(lambda self: (self.loc / self.scale.pow(2), -0.5 * self.scale.pow(2).reciprocal()))

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        return -0.25 * x.pow(2) / y + 0.5 * (-math.pi / y).log()
