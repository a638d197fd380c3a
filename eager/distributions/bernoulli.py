"""Distributions of trials with one probability. As `torch.distributions.bernoulli` and its like."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from eager.core.grad_mode import no_grad
from eager.core.limits import finfo
from eager.core.tensor import Tensor
from eager.distributions import constraints
from eager.distributions.distribution import Distribution
from eager.distributions.exp_family import ExponentialFamily
from eager.distributions.gamma import Gamma
from eager.distributions.logits import LogitsOrProbs, enumerated
from eager.distributions.utils import broadcast_all, lazy_property
from eager.functional.creation import zeros_like
from eager.functional.elementwise import logit
from eager.functional.gathering import where
from eager.functional.grids import arange
from eager.nn.functions.activation import logsigmoid
from eager.nn.functions.loss import binary_cross_entropy_with_logits
from eager.rng.functions import bernoulli, poisson
from eager.rng.rejection import binomial

__all__ = ["Bernoulli", "Binomial", "Geometric", "NegativeBinomial"]


class Bernoulli(LogitsOrProbs, ExponentialFamily):
    """1 with probability `probs`, else 0; `logits` are log(probs / (1 - probs))."""

    arg_constraints: ClassVar[Any] = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0
    _expands = ("probs", "logits")

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        self._set_either(probs, logits, validate_args)

    mean = property(lambda self: self.probs)
    mode = property(lambda self: where(self.probs == 0.5, math.nan, (self.probs >= 0.5).to(self.probs)))
    variance = property(lambda self: self.probs * (1 - self.probs))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Tensor:
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return enumerated(self, arange(2, dtype=self._param.dtype, device=self._param.device), expand)

    _natural_params = property(lambda self: (logit(self.probs),))

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return x.exp().log1p()


def _clamp_by_zero(x: Tensor) -> Tensor:
    # like clamp(min=0), but with the derivative 1/2 at 0
    return (x.clamp(min=0) + x - x.clamp(max=0)) / 2


class Binomial(LogitsOrProbs, Distribution):
    """n! / (k! (n - k)!) p^k (1 - p)^(n - k): how many, k, of `total_count` = n trials succeed."""

    total_count: Tensor
    arg_constraints: ClassVar[Any] = {
        "total_count": constraints.nonnegative_integer, "probs": constraints.unit_interval, "logits": constraints.real,
    }  # fmt: skip
    has_enumerate_support = True
    _expands = ("total_count", "probs", "logits")

    def __init__(self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        self._set_either(probs, logits, validate_args, total_count)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self.total_count)

    mean = property(lambda self: self.total_count * self.probs)
    mode = property(lambda self: ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count))
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        n, logits = self.total_count, self.logits
        log_rest = n * _clamp_by_zero(logits) + n * (-logits.abs()).exp().log1p() - (n + 1).lgamma()
        return value * logits - (value + 1).lgamma() - (n - value + 1).lgamma() - log_rest

    def entropy(self) -> Tensor:
        self._one_count("entropy")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(log_prob.exp() * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        count = self._one_count("enumerate_support")
        return enumerated(self, arange(1 + count, dtype=self._param.dtype, device=self._param.device), expand)

    def _one_count(self, asked: str) -> int:
        """The count of trials. NotImplementedError if there are several."""
        count = int(self.total_count.max())
        if int(self.total_count.min()) != count:
            raise NotImplementedError(f"Inhomogeneous total count not supported by `{asked}`.")
        return count


class _Positive(constraints.Constraint):
    """Probabilities that are not 0, as PyTorch's message calls them."""

    def check(self, value: Tensor) -> Any:
        return value > 0


class Geometric(LogitsOrProbs, Distribution):
    """(1 - p)^k p: how many trials fail, k = 0, 1, ..., before the first success, of probability p."""

    arg_constraints: ClassVar[Any] = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer
    _expands = ("probs", "logits")

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        self._set_either(probs, logits, validate_args)
        if self._validate_args and probs is not None:
            self._require(_Positive(), self.probs, "parameter probs", "of distribution {} to be positive")

    mean = property(lambda self: 1.0 / self.probs - 1.0)
    mode = property(lambda self: zeros_like(self.probs))
    variance = property(lambda self: (1.0 / self.probs - 1.0) / self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            u = self.probs.new_empty(self._extended_shape(sample_shape)).uniform_(finfo(self.probs.dtype).tiny, 1)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        value, probs = broadcast_all(value, self.probs)
        probs = where((probs == 1) & (value == 0), 0.0, probs)  # not 0 * -inf
        return value * (-probs).log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs


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
