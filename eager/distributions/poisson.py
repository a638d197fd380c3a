"""The Poisson distribution. As `torch.distributions.poisson`."""

from __future__ import annotations

from operator import attrgetter
from typing import Any, ClassVar

from eager.core.grad_mode import no_grad
from eager.core.tensor import Tensor
from eager.distributions import constraints
from eager.distributions.exp_family import ExponentialFamily
from eager.distributions.utils import broadcast_all
from eager.rng.functions import poisson

__all__ = ["Poisson"]


class Poisson(ExponentialFamily):
    """rate^k exp(-rate) / k! for k = 0, 1, ..."""

    rate: Tensor
    arg_constraints: ClassVar[Any] = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer
    _expands = ("rate",)

    def __init__(self, rate: Any, validate_args: bool | None = None):
        self._set(validate_args, rate=rate)

    mean = variance = property(attrgetter("rate"))

    mode = property(lambda self: self.rate.floor())

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        rate, value = broadcast_all(self.rate, value)
        return value.xlogy(rate) - rate - (value + 1).lgamma()

    _natural_params = property(lambda self: (self.rate.log(),))

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return x.exp()
