"""The exponential distribution. As `torch.distributions.exponential`."""

from __future__ import annotations

from typing import Any, ClassVar

from eager.core.tensor import Tensor
from eager.distributions import constraints
from eager.distributions.exp_family import ExponentialFamily
from eager.functional.creation import zeros_like

__all__ = ["Exponential"]


class Exponential(ExponentialFamily):
    """rate exp(-rate x) for x >= 0."""

    rate: Tensor
    arg_constraints: ClassVar[Any] = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0
    _expands = ("rate",)

    def __init__(self, rate: Any, validate_args: bool | None = None):
        self._set(validate_args, rate=rate)

    mean = property(lambda self: self.rate.reciprocal())

    stddev = mean
    mode = property(lambda self: zeros_like(self.rate))
    variance = property(lambda self: self.rate.pow(-2))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.rate.new_empty(self._extended_shape(sample_shape)).exponential_() / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return 1 - (-self.rate * value).exp()

    def icdf(self, value: Tensor) -> Tensor:
        return -(-value).log1p() / self.rate

    def entropy(self) -> Tensor:
        return 1.0 - self.rate.log()

    _natural_params = property(lambda self: (-self.rate,))

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return -(-x).log()
