"""The log-normal distribution. As `torch.distributions.log_normal`."""

from __future__ import annotations

from operator import attrgetter
from typing import Any, ClassVar

from eager.core.tensor import Tensor
from eager.distributions import constraints
from eager.distributions.normal import Normal
from eager.distributions.transformed_distribution import TransformedDistribution
from eager.distributions.transforms import ExpTransform

__all__ = ["LogNormal"]


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
