"""Relaxed Bernoulli distributions. As `torch.distributions.relaxed_bernoulli`."""

from __future__ import annotations

from typing import Any, ClassVar

from eager.core.tensor import Tensor
from eager.distributions import constraints
from eager.distributions.distribution import Distribution
from eager.distributions.logits import LogitsOrProbs
from eager.distributions.relaxed import Relaxed
from eager.distributions.transforms import SigmoidTransform
from eager.distributions.utils import broadcast_all, clamp_probs
from eager.rng.functions import rand

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(LogitsOrProbs, Distribution):
    """log(y / (1 - y)) of y of `RelaxedBernoulli`.

    C. J. Maddison, A. Mnih, Y. W. Teh, "The concrete distribution: a continuous relaxation of discrete random
    variables", 2017; E. Jang, S. Gu, B. Poole, "Categorical reparameterization with Gumbel-softmax", 2017.
    """

    arg_constraints: ClassVar[Any] = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    _expands = ("probs", "logits")
    _keeps = ("temperature",)

    def __init__(self, temperature: Tensor, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        self.temperature = temperature
        self._set_either(probs, logits, validate_args)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        uniform = clamp_probs(rand(shape, dtype=probs.dtype, device=probs.device))
        noise = uniform.log() - (-uniform).log1p()
        return (noise + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        difference = logits - value.mul(self.temperature)
        return self.temperature.log() + difference - 2 * difference.exp().log1p()


class RelaxedBernoulli(Relaxed):
    """Numbers in (0, 1) that at low `temperature` come near to Bernoulli's, differentiable in `probs` or `logits`."""

    arg_constraints: ClassVar[Any] = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    base_dist: LogitRelaxedBernoulli
    _expands = ()

    def __init__(self, temperature: Tensor, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        super().__init__(
            LogitRelaxedBernoulli(temperature, probs, logits), SigmoidTransform(), validate_args=validate_args
        )
