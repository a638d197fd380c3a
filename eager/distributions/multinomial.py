"""The multinomial distribution. As `torch.distributions.multinomial`."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from eager.core.tensor import Tensor
from eager.distributions import constraints
from eager.distributions.binomial import Binomial
from eager.distributions.categorical import Categorical
from eager.distributions.distribution import Distribution
from eager.distributions.of_categorical import OfCategorical
from eager.distributions.utils import broadcast_all
from eager.functional.creation import ones_like
from eager.functional.gathering import where

__all__ = ["Multinomial"]


class Multinomial(OfCategorical, Distribution):
    """How often each category occurs in `total_count` draws with these `probs` or `logits`."""

    arg_constraints: ClassVar[Any] = {"probs": constraints.simplex, "logits": constraints.real_vector}
    total_count: int
    _expands = ("_categorical", "_binomial")
    _keeps = ("total_count",)

    def __init__(self, total_count: int = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        self._binomial = Binomial(total_count=total_count, probs=self.probs)
        categorical = self._categorical
        super().__init__(categorical.batch_shape, categorical.param_shape[-1:], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        return constraints.multinomial(self.total_count)

    mean = property(lambda self: self.probs * self.total_count)
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        drawn = self._categorical.sample((self.total_count, *sample_shape))
        drawn = drawn.permute((*range(1, drawn.dim()), 0))
        counts = drawn.new_zeros(self._extended_shape(sample_shape))
        return counts.scatter_add(-1, drawn, ones_like(drawn)).type_as(self.probs)

    def entropy(self) -> Tensor:
        n = self.total_count
        support = self._binomial.enumerate_support(expand=False)[1:]
        of_factorials = (self._binomial.log_prob(support).exp() * (support + 1).lgamma()).sum([0, -1])
        return n * self._categorical.entropy() - math.lgamma(n + 1) + of_factorials

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        logits = where((value == 0) & (logits == -math.inf), 0.0, logits)
        log_powers = (logits * value).sum(-1)
        return (value.sum(-1) + 1).lgamma() - (value + 1).lgamma().sum(-1) + log_powers
