"""Student's t-distribution. As `torch.distributions.studentT`."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from eager.core.tensor import Tensor
from eager.distributions import constraints
from eager.distributions.chi2 import Chi2
from eager.distributions.distribution import Distribution
from eager.distributions.utils import broadcast_all, standard_normal
from eager.functional.gathering import where

__all__ = ["StudentT"]


class StudentT(Distribution):
    """loc + scale X / sqrt(Z / df), where X is standard normal and Z chi-squared with `df` degrees of freedom."""

    df: Tensor
    loc: Tensor
    scale: Tensor
    arg_constraints: ClassVar[Any] = {
        "df": constraints.positive,
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.real
    has_rsample = True
    _expands = ("df", "loc", "scale", "_chi2")

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None):
        df, loc, scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(df)
        self._set(validate_args, df=df, loc=loc, scale=scale)

    mean = property(lambda self: where(self.df <= 1, math.nan, self.loc))
    mode = property(lambda self: self.loc)

    @property
    def variance(self) -> Tensor:
        finite = self.df > 2
        df = where(finite, self.df, 3.0)
        variance = where(finite, self.scale.pow(2) * df / (df - 2), math.inf)
        return where(self.df <= 1, math.nan, variance)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        x = standard_normal(self._extended_shape(sample_shape), self.df)
        return self.loc + self.scale * (x * (self._chi2.rsample(sample_shape) / self.df).rsqrt())

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        y = (value - self.loc) / self.scale
        half = 0.5 * (self.df + 1.0)
        normalizer = self.scale.log() + 0.5 * self.df.log() + 0.5 * math.log(math.pi)
        normalizer = normalizer + (0.5 * self.df).lgamma() - half.lgamma()
        return -half * (y**2.0 / self.df).log1p() - normalizer

    def entropy(self) -> Tensor:
        half, next_half = 0.5 * self.df, 0.5 * (self.df + 1)
        log_beta = half.lgamma() + math.lgamma(0.5) - next_half.lgamma()
        return self.scale.log() + next_half * (next_half.digamma() - half.digamma()) + 0.5 * self.df.log() + log_beta
