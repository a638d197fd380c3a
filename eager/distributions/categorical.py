"""Categorical distributions, and those made of them. As `torch.distributions.categorical` and its like."""

from __future__ import annotations

import math
from operator import attrgetter
from typing import Any, ClassVar

from eager.core.dtypes import Size
from eager.core.limits import finfo
from eager.core.tensor import Tensor
from eager.distributions import constraints
from eager.distributions.bernoulli import Binomial
from eager.distributions.distribution import Distribution
from eager.distributions.logits import LogitsOrProbs, either, enumerated
from eager.distributions.utils import broadcast_all
from eager.functional.creation import eye, full, ones_like
from eager.functional.gathering import one_hot, where
from eager.functional.grids import arange
from eager.functional.shapes import broadcast_tensors
from eager.rng.functions import multinomial

__all__ = ["Categorical", "Multinomial", "OneHotCategorical", "OneHotCategoricalStraightThrough"]


class Categorical(LogitsOrProbs, Distribution):
    """One of the integers 0, ..., n - 1, with probabilities in proportion to `probs` (..., n) or to exp(`logits`)."""

    arg_constraints: ClassVar[Any] = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _is_binary: ClassVar[bool] = False
    _expands = ("probs", "logits")
    _keeps = ("_num_events",)

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        name, value = either(probs, logits)
        if value.dim() < 1:
            raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
        if name == "probs":
            self.probs = value / value.sum(-1, keepdim=True)
        else:
            self.logits = value - value.logsumexp(dim=-1, keepdim=True)
        self._num_events = value.size()[-1]
        super().__init__(value.size()[:-1], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self) -> Tensor:
        return full(self._extended_shape(), math.nan, dtype=self.probs.dtype, device=self.probs.device)

    variance = mean
    mode = property(lambda self: self.probs.argmax(dim=-1))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        sample_shape = Size(sample_shape)
        probs = self.probs.detach().reshape((-1, self._num_events))
        drawn = multinomial(probs, sample_shape.numel(), True).T
        return drawn.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        value, log_pmf = broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return log_pmf.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        # -inf times a probability of 0 would be nan
        return -(self.logits.clamp(min=finfo(self.logits.dtype).min) * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return enumerated(self, arange(self._num_events, device=self._param.device), expand)


class OfCategorical:
    """Parameters are those of `_categorical`; events are vectors with an element for each category."""

    _categorical: Categorical

    logits = property(attrgetter("_categorical.logits"), doc="Logarithms of the probabilities.")
    probs = property(attrgetter("_categorical.probs"), doc="Probabilities, which sum to 1.")
    _param = property(attrgetter("_categorical._param"))
    param_shape = property(attrgetter("_categorical.param_shape"), doc="The shape of `probs` and `logits`.")

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._categorical._new(*args, **kwargs)


class OneHotCategorical(OfCategorical, Distribution):
    """A vector of zeros and a one, whose place has the `Categorical` distribution with these `probs` or `logits`."""

    arg_constraints: ClassVar[Any] = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot
    has_enumerate_support = True
    _expands = ("_categorical",)

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        self._categorical = Categorical(probs, logits)
        categorical = self._categorical
        super().__init__(categorical.batch_shape, categorical.param_shape[-1:], validate_args=validate_args)

    mean = property(attrgetter("probs"))
    mode = property(lambda self: one_hot(self.probs.argmax(dim=-1), num_classes=self.probs.shape[-1]).to(self.probs))
    variance = property(lambda self: self.probs * (1 - self.probs))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        probs = self.probs
        return one_hot(self._categorical.sample(sample_shape), self._categorical._num_events).to(probs)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return self._categorical.log_prob(value.max(-1)[1])

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n, batch = self._event_shape[0], self._batch_shape
        values = eye(n, dtype=self._param.dtype, device=self._param.device).view((n, *(1,) * len(batch), n))
        return values.expand((n, *batch, n)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """The same, with the gradient of the probabilities for that of the sample.

    Y. Bengio, N. Leonard, A. Courville, "Estimating or propagating gradients through stochastic neurons for
    conditional computation", 2013.
    """

    has_rsample = True

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())


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
