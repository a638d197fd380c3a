"""The inverse gamma distribution. As `torch.distributions.inverse_gamma`."""

from __future__ import annotations

import math
from operator import attrgetter
from typing import Any, ClassVar

from eager.core.tensor import Tensor
from eager.distributions import constraints
from eager.distributions.gamma import Gamma
from eager.distributions.transformed_distribution import TransformedDistribution
from eager.distributions.transforms import PowerTransform
from eager.functional.gathering import where

__all__ = ["InverseGamma"]


class InverseGamma(TransformedDistribution):
    """1 / x, where x has the distribution `Gamma(concentration, rate)`."""

    arg_constraints: ClassVar[Any] = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True
    base_dist: Gamma
    _expands = ()

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None):
        base = Gamma(concentration, rate, validate_args=validate_args)
        super().__init__(base, PowerTransform(-base.rate.new_ones(())), validate_args=validate_args)

    concentration = property(attrgetter("base_dist.concentration"), doc="The concentration of x.")
    rate = property(attrgetter("base_dist.rate"), doc="The rate of x.")
    mean = property(lambda self: where(self.concentration > 1, self.rate / (self.concentration - 1), math.inf))
    mode = property(lambda self: self.rate / (self.concentration + 1))

    @property
    def variance(self) -> Tensor:
        a = self.concentration
        return where(a > 2, self.rate.square() / ((a - 1).square() * (a - 2)), math.inf)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()
