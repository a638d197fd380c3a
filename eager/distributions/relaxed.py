"""Relaxed discrete distributions, images of others. As `torch.distributions.relaxed_bernoulli` and its like."""

from __future__ import annotations

from operator import attrgetter
from typing import Any, ClassVar

from eager.core.tensor import Tensor
from eager.distributions import constraints
from eager.distributions.categorical import Categorical, OfCategorical
from eager.distributions.distribution import Distribution
from eager.distributions.logits import LogitsOrProbs
from eager.distributions.transformed_distribution import TransformedDistribution
from eager.distributions.transforms import ExpTransform, SigmoidTransform
from eager.distributions.utils import broadcast_all, clamp_probs
from eager.functional.creation import full_like
from eager.rng.functions import rand

__all__ = ["ExpRelaxedCategorical", "LogitRelaxedBernoulli", "RelaxedBernoulli", "RelaxedOneHotCategorical"]


class Relaxed(TransformedDistribution):
    """A transform of `base_dist`, which has a temperature and `probs` or `logits`."""

    has_rsample = True
    base_dist: Any

    temperature = property(
        attrgetter("base_dist.temperature"), doc="How far from the values of the discrete distribution samples are."
    )
    logits = property(attrgetter("base_dist.logits"), doc="The logits of the discrete distribution.")
    probs = property(attrgetter("base_dist.probs"), doc="The probabilities of the discrete distribution.")


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


class ExpRelaxedCategorical(OfCategorical, Distribution):
    """log(y) of y of `RelaxedOneHotCategorical`. For the source see `LogitRelaxedBernoulli`."""

    arg_constraints: ClassVar[Any] = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.real_vector  # of vectors whose exp sums to 1
    has_rsample = True
    _expands = ("_categorical",)
    _keeps = ("temperature",)

    def __init__(self, temperature: Tensor, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        self._categorical = Categorical(probs, logits)
        self.temperature = temperature
        categorical = self._categorical
        super().__init__(categorical.batch_shape, categorical.param_shape[-1:], validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        uniform = clamp_probs(rand(shape, dtype=self.logits.dtype, device=self.logits.device))
        gumbel = -((-(uniform.log())).log())
        scores = (self.logits + gumbel) / self.temperature
        return scores - scores.logsumexp(dim=-1, keepdim=True)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        count = self._categorical._num_events
        logits, value = broadcast_all(self.logits, value)
        log_scale = full_like(self.temperature, float(count)).lgamma() + self.temperature.log().mul(count - 1)
        score = logits - value.mul(self.temperature)
        return (score - score.logsumexp(dim=-1, keepdim=True)).sum(-1) + log_scale


class RelaxedOneHotCategorical(Relaxed):
    """Vectors on the simplex that at low `temperature` come near to one-hot ones, differentiable in the parameters."""

    arg_constraints: ClassVar[Any] = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    base_dist: ExpRelaxedCategorical
    _expands = ()

    def __init__(self, temperature: Tensor, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)
