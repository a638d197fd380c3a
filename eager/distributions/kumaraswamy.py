"""The Kumaraswamy distribution. As `torch.distributions.kumaraswamy`."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from eager.core.tensor import Tensor
from eager.distributions import constraints
from eager.distributions.transformed_distribution import TransformedDistribution
from eager.distributions.transforms import AffineTransform, PowerTransform
from eager.distributions.uniform import Uniform
from eager.distributions.utils import broadcast_all, euler_constant
from eager.functional.creation import ones_like, zeros_like
from eager.functional.gathering import where

__all__ = ["Kumaraswamy"]


class Kumaraswamy(TransformedDistribution):
    """a b x^(a - 1) (1 - x^a)^(b - 1) for 0 < x < 1; a is `concentration1`, b is `concentration0`."""

    arg_constraints: ClassVar[Any] = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True
    _expands = ("concentration1", "concentration0")

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None):
        a, b = self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        transforms = [
            PowerTransform(exponent=b.reciprocal()), AffineTransform(loc=1.0, scale=-1.0),
            PowerTransform(exponent=a.reciprocal()),
        ]  # fmt: skip
        base = Uniform(zeros_like(b), ones_like(b), validate_args=validate_args)
        super().__init__(base, transforms, validate_args=validate_args)

    def _moment(self, n: int) -> Tensor:
        """The mean of x^n."""
        arg = 1 + n / self.concentration1
        b = self.concentration0
        return b * (arg.lgamma() + b.lgamma() - (arg + b).lgamma()).exp()

    mean = property(lambda self: self._moment(1))

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        log_mode = b.reciprocal() * (-b).log1p() - (-b * a).log1p()
        return where((b < 1) | (a < 1), math.nan, log_mode).exp()

    variance = property(lambda self: self._moment(2) - self.mean.pow(2))

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        harmonic = (b + 1).digamma() + euler_constant
        return (1 - b.reciprocal()) + (1 - a.reciprocal()) * harmonic - a.log() - b.log()
