"""The binomial distribution. As `torch.distributions.binomial`."""

from __future__ import annotations

from typing import Any, ClassVar

from eager.core.grad_mode import no_grad
from eager.core.tensor import Tensor
from eager.distributions import constraints
from eager.distributions.distribution import Distribution
from eager.distributions.logits import LogitsOrProbs, enumerated
from eager.functional.lines import arange
from eager.rng.rejection import binomial

__all__ = ["Binomial"]


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
