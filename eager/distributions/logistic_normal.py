"""The logistic-normal distribution. As `torch.distributions.logistic_normal`."""

from __future__ import annotations

from operator import attrgetter
from typing import Any, ClassVar

from eager.distributions import constraints
from eager.distributions.independent import Independent
from eager.distributions.normal import Normal
from eager.distributions.transformed_distribution import TransformedDistribution
from eager.distributions.transforms import StickBreakingTransform

__all__ = ["LogisticNormal"]


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
