"""One-hot vectors of categories. As `torch.distributions.one_hot_categorical`."""

from __future__ import annotations

from operator import attrgetter
from typing import Any, ClassVar

from eager.core.tensor import Tensor
from eager.distributions import constraints
from eager.distributions.categorical import Categorical
from eager.distributions.distribution import Distribution
from eager.distributions.of_categorical import OfCategorical
from eager.functional.creation import eye
from eager.functional.gathering import one_hot

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


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
