"""The geometric distribution. As `torch.distributions.geometric`."""

from __future__ import annotations

from typing import Any, ClassVar

from eager.core.grad_mode import no_grad
from eager.core.limits import finfo
from eager.core.tensor import Tensor
from eager.distributions import constraints
from eager.distributions.distribution import Distribution
from eager.distributions.logits import LogitsOrProbs
from eager.distributions.utils import broadcast_all
from eager.functional.creation import zeros_like
from eager.functional.gathering import where
from eager.nn.functions.loss import binary_cross_entropy_with_logits

__all__ = ["Geometric"]


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
