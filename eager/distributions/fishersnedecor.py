"""The F distribution. As `torch.distributions.fishersnedecor`."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from eager.core.limits import finfo
from eager.core.tensor import Tensor
from eager.distributions import constraints
from eager.distributions.distribution import Distribution
from eager.distributions.gamma import Gamma
from eager.distributions.utils import broadcast_all
from eager.functional.gathering import where

__all__ = ["FisherSnedecor"]


class FisherSnedecor(Distribution):
    """(X1 / df1) / (X2 / df2), where X1 and X2 are chi-squared with `df1` and `df2` degrees of freedom."""

    df1: Tensor
    df2: Tensor
    arg_constraints: ClassVar[Any] = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True
    _expands = ("df1", "df2", "_gamma1", "_gamma2")

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None):
        df1, df2 = broadcast_all(df1, df2)
        self._gamma1 = Gamma(df1 * 0.5, df1)
        self._gamma2 = Gamma(df2 * 0.5, df2)
        self._set(validate_args, df1=df1, df2=df2)

    @property
    def mean(self) -> Tensor:
        df2 = where(self.df2 <= 2, math.nan, self.df2)
        return df2 / (df2 - 2)

    @property
    def mode(self) -> Tensor:
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return where(self.df1 <= 2, math.nan, mode)

    @property
    def variance(self) -> Tensor:
        df2 = where(self.df2 <= 4, math.nan, self.df2)
        return 2 * df2.pow(2) * (self.df1 + df2 - 2) / (self.df1 * (df2 - 2).pow(2) * (df2 - 4))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        x1, x2 = self._gamma1.rsample(sample_shape), self._gamma2.rsample(sample_shape)
        tiny = finfo(x2.dtype).tiny
        return (x1 / x2.clamp(min=tiny)).clamp(min=tiny)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        half1, half2, ratio = self.df1 * 0.5, self.df2 * 0.5, self.df1 / self.df2
        normalizer = (half1 + half2).lgamma() - half1.lgamma() - half2.lgamma()
        power = half1 * ratio.log() + (half1 - 1) * value.log()
        return normalizer + power - (half1 + half2) * (ratio * value).log1p()
