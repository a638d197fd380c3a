"""Relaxed one-hot vectors of categories. As `torch.distributions.relaxed_categorical`."""

from __future__ import annotations

from typing import Any, ClassVar

from eager.core.tensor import Tensor
from eager.distributions import constraints
from eager.distributions.categorical import Categorical
from eager.distributions.distribution import Distribution
from eager.distributions.of_categorical import OfCategorical
from eager.distributions.relaxed import Relaxed
from eager.distributions.transforms import ExpTransform
from eager.distributions.utils import broadcast_all, clamp_probs
from eager.functional.creation import full_like
from eager.rng.functions import rand

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


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
