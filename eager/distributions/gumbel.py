"""The Gumbel distribution. As `torch.distributions.gumbel`."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from eager.core.limits import finfo
from eager.core.tensor import Tensor
from eager.distributions import constraints
from eager.distributions.transformed_distribution import TransformedDistribution
from eager.distributions.transforms import AffineTransform, ExpTransform
from eager.distributions.uniform import Uniform
from eager.distributions.utils import broadcast_all, euler_constant
from eager.functional.creation import full_like, ones_like

__all__ = ["Gumbel"]


class Gumbel(TransformedDistribution):
    """exp(-z - exp(-z)) / scale, where z = (x - loc) / scale; that is loc - scale log(-log(u)) of uniform u."""

    arg_constraints: ClassVar[Any] = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    _expands = ("loc", "scale")

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None):
        self.loc, self.scale = broadcast_all(loc, scale)
        limits = finfo(self.loc.dtype)
        low, high = full_like(self.loc, limits.tiny), full_like(self.loc, 1 - limits.eps)
        log = ExpTransform().inv
        transforms = [
            log, AffineTransform(loc=0, scale=-ones_like(self.scale)), log, AffineTransform(loc=loc, scale=-self.scale),
        ]  # fmt: skip
        super().__init__(Uniform(low, high, validate_args=validate_args), transforms, validate_args=validate_args)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        y = (self.loc - value) / self.scale
        return y - y.exp() - self.scale.log()

    mean = property(lambda self: self.loc + self.scale * euler_constant)
    mode = property(lambda self: self.loc)
    stddev = property(lambda self: (math.pi / math.sqrt(6)) * self.scale)
    variance = property(lambda self: self.stddev.pow(2))

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + euler_constant)
