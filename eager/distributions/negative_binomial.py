"""The negative binomial distribution. As `torch.distributions.negative_binomial`."""

from __future__ import annotations

from typing import Any, ClassVar

from eager.core.grad_mode import no_grad
from eager.core.tensor import Tensor
from eager.distributions import constraints
from eager.distributions.distribution import Distribution
from eager.distributions.gamma import Gamma
from eager.distributions.logits import LogitsOrProbs
from eager.distributions.utils import lazy_property
from eager.nn.functions.activation import logsigmoid
from eager.rng.functions import poisson

__all__ = ["NegativeBinomial"]


class NegativeBinomial(LogitsOrProbs, Distribution):
    """Gamma(n + k) / (k! Gamma(n)) (1 - p)^n p^k: how many trials succeed before `total_count` = n have failed."""

    total_count: Tensor
    arg_constraints: ClassVar[Any] = {
        "total_count": constraints.greater_than_eq(0), "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }  # fmt: skip
    support = constraints.nonnegative_integer
    _expands = ("total_count", "probs", "logits")

    def __init__(self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        self._set_either(probs, logits, validate_args, total_count)

    mean = property(lambda self: self.total_count * self.logits.exp())
    mode = property(lambda self: ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0))
    variance = property(lambda self: self.mean / (-self.logits).sigmoid())

    @lazy_property
    def _gamma(self) -> Gamma:
        return Gamma(concentration=self.total_count, rate=(-self.logits).exp(), validate_args=False)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return poisson(self._gamma.sample(sample_shape=sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        n, logits = self.total_count, self.logits
        normalizer = (1.0 + value).lgamma() + n.lgamma() - (n + value).lgamma()
        # with no failures to wait for, 0 is certain
        normalizer = normalizer.masked_fill(n + value == 0.0, 0.0)
        return n * logsigmoid(-logits) + value * logsigmoid(logits) - normalizer
