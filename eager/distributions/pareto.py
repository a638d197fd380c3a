"""The Pareto distribution. As `torch.distributions.pareto`."""

from __future__ import annotations

from typing import Any, ClassVar

from eager.core.tensor import Tensor
from eager.distributions import constraints
from eager.distributions.exponential import Exponential
from eager.distributions.transformed_distribution import TransformedDistribution
from eager.distributions.transforms import AffineTransform, ExpTransform
from eager.distributions.utils import broadcast_all

__all__ = ["Pareto"]


class Pareto(TransformedDistribution):
    """alpha scale^alpha / x^(alpha + 1) for x >= scale."""

    arg_constraints: ClassVar[Any] = {"alpha": constraints.positive, "scale": constraints.positive}
    _expands = ("scale", "alpha")

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None):
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base = Exponential(self.alpha, validate_args=validate_args)
        transforms = [ExpTransform(), AffineTransform(loc=0, scale=self.scale)]
        super().__init__(base, transforms, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> Tensor:
        a = self.alpha.clamp(min=1)  # infinite from there down
        return a * self.scale / (a - 1)

    mode = property(lambda self: self.scale)

    @property
    def variance(self) -> Tensor:
        a = self.alpha.clamp(min=2)
        return self.scale.pow(2) * a / ((a - 1).pow(2) * (a - 2))

    def entropy(self) -> Tensor:
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())
