"""The generalized Pareto distribution. As `torch.distributions.generalized_pareto`."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from eager.core.tensor import Tensor
from eager.distributions import constraints
from eager.distributions.distribution import Distribution
from eager.functional.arithmetic import isclose
from eager.functional.creation import zeros_like
from eager.functional.gathering import where
from eager.rng.functions import rand

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """(1 + c z)^(-1 / c - 1) / scale, where z = (x - loc) / scale and c is the concentration; its limit at c = 0."""

    concentration: Tensor
    loc: Tensor
    scale: Tensor
    arg_constraints: ClassVar[Any] = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True
    _expands = ("loc", "scale", "concentration")

    def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None):
        self._set(validate_args, loc=loc, scale=scale, concentration=concentration)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        bounded = self.loc - self.scale / self.concentration
        return constraints.interval(self.loc, where(self.concentration < 0, bounded, math.inf))

    @property
    def mean(self) -> Tensor:
        valid = self.concentration < 1
        return where(valid, self.loc + self.scale / (1 - where(valid, self.concentration, 0.5)), math.nan)

    mode = property(lambda self: self.loc)

    @property
    def variance(self) -> Tensor:
        valid = self.concentration < 0.5
        c = where(valid, self.concentration, 0.25)
        return where(valid, self.scale**2 / ((1 - c) ** 2 * (1 - 2 * c)), math.nan)

    def _no_power(self) -> tuple[Tensor, Tensor]:
        """Where the concentration is 0, and the concentration with 1 there."""
        zero = isclose(self.concentration, zeros_like(self.concentration))
        return zero, where(zero, 1.0, self.concentration)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(rand(shape, dtype=self.loc.dtype, device=self.loc.device))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        z = (value - self.loc) / self.scale
        zero, c = self._no_power()
        power = 1 / c + 1
        power = where(power == 0, power, power * (c * z).log1p())
        return -self.scale.log() - where(zero, z, power)

    def log_survival_function(self, value: Tensor) -> Tensor:
        """log(1 - cdf(value))."""
        self._check(value)
        z = (value - self.loc) / self.scale
        zero, c = self._no_power()
        return where(zero, -z, -(c * z).log1p() / c)

    def log_cdf(self, value: Tensor) -> Tensor:
        """log(cdf(value))."""
        return (-self.log_survival_function(value).exp()).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        return self.log_cdf(value).exp()

    def icdf(self, value: Tensor) -> Tensor:
        zero, c = self._no_power()
        log_rest = (-value).log1p()
        power = self.loc + self.scale / c * (-c * log_rest).expm1()
        return where(zero, self.loc - self.scale * log_rest, power)

    def entropy(self) -> Tensor:
        return (self.scale.log() + self.concentration + 1).expand(self._batch_shape)
