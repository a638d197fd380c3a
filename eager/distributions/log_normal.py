"""Transforms of normal numbers. As `torch.distributions.log_normal` and its like."""

from __future__ import annotations

from operator import attrgetter
from typing import Any, ClassVar

from eager.core.tensor import Tensor
from eager.distributions import constraints
from eager.distributions.normal import Normal
from eager.distributions.transformed_distribution import Independent, TransformedDistribution
from eager.distributions.transforms import ExpTransform, StickBreakingTransform

__all__ = ["LogNormal", "LogisticNormal"]


class LogNormal(TransformedDistribution):
    """exp(x), where x has the distribution `Normal(loc, scale)`."""

    arg_constraints: ClassVar[Any] = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True
    base_dist: Normal
    _expands = ()

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None):
        super().__init__(Normal(loc, scale, validate_args=validate_args), ExpTransform(), validate_args=validate_args)

    loc = property(attrgetter("base_dist.loc"), doc="The mean of x.")
    scale = property(attrgetter("base_dist.scale"), doc="The standard deviation of x.")
    mean = property(lambda self: (self.loc + self.scale.pow(2) / 2).exp())
    mode = property(lambda self: (self.loc - self.scale.square()).exp())

    @property
    def variance(self) -> Tensor:
        squared = self.scale.pow(2)
        return squared.expm1() * (2 * self.loc + squared).exp()

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc


class LogisticNormal(TransformedDistribution):
    """The stick-breaking transform of n normal numbers: n + 1 numbers that sum to 1."""

    arg_constraints: ClassVar[Any] = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True
    base_dist: Independent[Normal]
    _expands = ()

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None):
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    loc = property(attrgetter("base_dist.base_dist.loc"), doc="The means of the normal numbers.")
    scale = property(attrgetter("base_dist.base_dist.scale"), doc="Their standard deviations.")
