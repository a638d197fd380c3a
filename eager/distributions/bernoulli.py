"""The Bernoulli distribution. As `torch.distributions.bernoulli`."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from eager.core.grad_mode import no_grad
from eager.core.tensor import Tensor
from eager.distributions import constraints
from eager.distributions.exp_family import ExponentialFamily
from eager.distributions.logits import LogitsOrProbs, enumerated
from eager.distributions.utils import broadcast_all
from eager.functional.elementwise import logit
from eager.functional.gathering import where
from eager.functional.lines import arange
from eager.nn.functions.loss import binary_cross_entropy_with_logits
from eager.rng.functions import bernoulli

__all__ = ["Bernoulli"]


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
