"""Absolute values of symmetric distributions."""

from __future__ import annotations

import math
from operator import attrgetter
from typing import Any, ClassVar

from eager.core.tensor import Tensor
from eager.distributions import constraints
from eager.distributions.transformed_distribution import TransformedDistribution
from eager.distributions.transforms import AbsTransform
from eager.functional.creation import zeros_like
from eager.functional.gathering import where

__all__ = ["Half"]


class Half(TransformedDistribution):
    """|x|, where x has the distribution `_base(0, scale)`."""

    arg_constraints: ClassVar[Any] = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _base: Any
    _expands = ()

    def __init__(self, scale: Any, validate_args: bool | None = None):
        super().__init__(self._base(0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)

    scale = property(attrgetter("base_dist.scale"), doc="The scale of x.")
    mode = property(lambda self: zeros_like(self.scale))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, prob: Tensor) -> Tensor:
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)
