"""The categorical distribution. As `torch.distributions.categorical`."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from eager.core.dtypes import Size
from eager.core.limits import finfo
from eager.core.tensor import Tensor
from eager.distributions import constraints
from eager.distributions.distribution import Distribution
from eager.distributions.logits import LogitsOrProbs, either, enumerated
from eager.functional.creation import full
from eager.functional.lines import arange
from eager.functional.shapes import broadcast_tensors
from eager.rng.functions import multinomial

__all__ = ["Categorical"]


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
