"""The Laplace distribution. As `torch.distributions.laplace`."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from eager.core.limits import finfo
from eager.core.tensor import Tensor
from eager.distributions.location_scale import LocationScale

__all__ = ["Laplace"]


class Laplace(LocationScale):
    """exp(-|x - loc| / scale) / (2 scale)."""

    mean = mode = property(attrgetter("loc"))

    variance = property(lambda self: 2 * self.scale.pow(2))
    stddev = property(lambda self: (2**0.5) * self.scale)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        u = self.loc.new_empty(self._extended_shape(sample_shape)).uniform_(finfo(self.loc.dtype).eps - 1, 1)
        return self.loc - self.scale * u.sign() * (-u.abs()).log1p()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return -(2 * self.scale).log() - (value - self.loc).abs() / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        distance = value - self.loc
        return 0.5 - 0.5 * distance.sign() * (-distance.abs() / self.scale).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        term = value - 0.5
        return self.loc - self.scale * term.sign() * (-2 * term.abs()).log1p()

    def entropy(self) -> Tensor:
        return 1 + (2 * self.scale).log()
