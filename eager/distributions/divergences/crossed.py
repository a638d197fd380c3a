"""Divergences between distributions of two families: the mean of log p(x) - log q(x)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from eager.core.tensor import Tensor
from eager.distributions.bernoulli import Bernoulli
from eager.distributions.beta import Beta
from eager.distributions.binomial import Binomial
from eager.distributions.continuous_bernoulli import ContinuousBernoulli
from eager.distributions.divergences.registry import register_kl
from eager.distributions.exponential import Exponential
from eager.distributions.gamma import Gamma
from eager.distributions.gumbel import Gumbel
from eager.distributions.laplace import Laplace
from eager.distributions.normal import Normal
from eager.distributions.pareto import Pareto
from eager.distributions.poisson import Poisson
from eager.distributions.uniform import Uniform
from eager.distributions.utils import euler_constant
from eager.functional.creation import full_like
from eager.functional.gathering import where

Formula = Callable[[Any, Any], Tensor]

# p and those q that are 0 where p is not: the divergence is infinite
_INFINITE: dict[type, tuple[type, ...]] = {
    Beta: (Pareto,),
    ContinuousBernoulli: (Pareto,),
    Exponential: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gamma: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gumbel: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Laplace: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Normal: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Pareto: (Beta, ContinuousBernoulli, Uniform),
    Poisson: (Bernoulli, Binomial),
}


def _infinite(p: Any, q: Any) -> Tensor:
    name = next(
        name for name in ("loc", "rate", "concentration", "concentration1", "scale", "probs") if hasattr(p, name)
    )
    return full_like(getattr(p, name), math.inf)


for _p, _others in _INFINITE.items():
    for _q in _others:
        register_kl(_p, _q)(_infinite)


# the mean of -log q(x) over x of p


def _normal_cost(mean: Tensor, variance: Tensor, q: Normal) -> Tensor:
    return 0.5 * math.log(2 * math.pi) + q.scale.log() + (variance + (mean - q.loc).pow(2)) / (2 * q.scale.pow(2))


def _gamma_cost(mean: Tensor, log_mean: Tensor, q: Gamma) -> Tensor:
    """From the means of x and log(x)."""
    normalizer = q.concentration.lgamma() - q.concentration * q.rate.log()
    return normalizer - (q.concentration - 1) * log_mean + q.rate * mean


def _exponential_cost(p: Any, q: Exponential) -> Tensor:
    return q.rate * p.mean - q.rate.log()


def _continuous_bernoulli_cost(p: Any, q: ContinuousBernoulli) -> Tensor:
    return -p.mean * q.logits - (-q.probs).log1p() - q._cont_bern_log_norm()


def _log_mean(low: Tensor, high: Tensor) -> Tensor:
    """The mean of log(x) over [low, high]."""
    return (high.xlogy(high) - low.xlogy(low)) / (high - low) - 1


def _beta_cost(p: Uniform, q: Beta) -> Tensor:
    a, b = q.concentration1, q.concentration0
    normalizer = a.lgamma() + b.lgamma() - (a + b).lgamma()
    return normalizer - (a - 1) * _log_mean(p.low, p.high) - (b - 1) * _log_mean(1 - p.high, 1 - p.low)


def _pareto_normal_cost(p: Pareto, q: Normal) -> Tensor:
    part = p.scale / (p.alpha - 1)
    return _normal_cost(p.alpha * part, p.alpha * part.pow(2) / (p.alpha - 2), q)


def _beta_log_mean(p: Beta) -> Tensor:
    return p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()


# those p, q, and the mean of -log q(x): the divergence is that less the entropy of p, and infinite where `beyond` says
# that q is 0 where p is not
_BY_COST: list[tuple[type | tuple[type, ...], type, Formula, Formula | None]] = [
    ((Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Uniform), Normal,
     lambda p, q: _normal_cost(p.mean, p.variance, q), None),
    (Pareto, Normal, _pareto_normal_cost, lambda p, q: p.alpha <= 2),
    ((Beta, ContinuousBernoulli, Gamma), Exponential, _exponential_cost, None),
    (Uniform, Exponential, _exponential_cost, lambda p, q: p.low < 0),
    (Beta, ContinuousBernoulli, _continuous_bernoulli_cost, None),
    (Uniform, ContinuousBernoulli, _continuous_bernoulli_cost, lambda p, q: (p.high >= 1) | (p.low <= 0)),
    (Bernoulli, Poisson, lambda p, q: -(p.probs * q.rate.log() - q.rate), None),
    (Beta, Gamma, lambda p, q: _gamma_cost(p.mean, _beta_log_mean(p), q), None),
    (Exponential, Gamma, lambda p, q: _gamma_cost(p.mean, -euler_constant - p.rate.log(), q), None),
    (Uniform, Gamma, lambda p, q: _gamma_cost(p.mean, _log_mean(p.low, p.high), q), lambda p, q: p.low < 0),
    (Pareto, Gamma, lambda p, q: _gamma_cost(p.alpha * p.scale / (p.alpha - 1), p.scale.log() + 1 / p.alpha, q),
     lambda p, q: p.alpha <= 1),
    (Beta, Uniform, lambda p, q: (q.high - q.low).log(), lambda p, q: (q.low > 0) | (q.high < 1)),
    # PyTorch's condition, which also holds of intervals that are wide enough
    (ContinuousBernoulli, Uniform, lambda p, q: (q.high - q.low).log(), lambda p, q: (q.low >= 0) | (q.high <= 1)),
    (Uniform, Beta, _beta_cost, lambda p, q: (p.high > 1) | (p.low < 0)),
]  # fmt: skip


def _less_entropy(cost: Formula, beyond: Formula | None) -> Formula:
    def divergence(p: Any, q: Any) -> Tensor:
        finite = -p.entropy() + cost(p, q)
        return finite if beyond is None else where(beyond(p, q), math.inf, finite)

    return divergence


for _ps, _q, _cost, _beyond in _BY_COST:
    for _p in _ps if isinstance(_ps, tuple) else (_ps,):
        register_kl(_p, _q)(_less_entropy(_cost, _beyond))


@register_kl(Exponential, Gumbel)
def _exponential_gumbel(p: Exponential, q: Gumbel) -> Tensor:
    product, shift = p.rate * q.scale, q.loc / q.scale
    return product.log() - 1 - shift + shift.exp() * product / (product + 1) + product.reciprocal()


@register_kl(Gamma, Gumbel)
def _gamma_gumbel(p: Gamma, q: Gumbel) -> Tensor:
    product, shift, a = p.rate * q.scale, q.loc / q.scale, p.concentration
    shape = (a - 1) * a.digamma() - a.lgamma() - a
    tail = shift.exp() * (1 + product.reciprocal()).pow(-a) - shift
    return shape + product.log() + a / product + tail


@register_kl(Normal, Gumbel)
def _normal_gumbel(p: Normal, q: Gumbel) -> Tensor:
    mean, spread, shift = p.loc / q.scale, (p.scale / q.scale).pow(2), q.loc / q.scale
    tail = (-mean + 0.5 * spread + shift).exp()
    return -spread.log() * 0.5 + mean - shift + tail - 0.5 * (1 + math.log(2 * math.pi))


@register_kl(Normal, Laplace)
def _normal_laplace(p: Normal, q: Laplace) -> Tensor:
    distance = p.loc - q.loc
    z = distance / p.scale
    mean = math.sqrt(2 / math.pi) * p.scale * (-0.5 * z.pow(2)).exp() + distance * (math.sqrt(0.5) * z).erf()  # of |x|
    return -(p.scale / q.scale).log() + mean / q.scale - 0.5 * (1 + math.log(0.5 * math.pi))


@register_kl(Pareto, Exponential)
def _pareto_exponential(p: Pareto, q: Exponential) -> Tensor:
    product = p.scale * q.rate
    result = (p.alpha / product).log() - p.alpha.reciprocal() + p.alpha * product / (p.alpha - 1) - 1
    return where(p.alpha <= 1, math.inf, result)


@register_kl(Uniform, Gumbel)
def _uniform_gumbel(p: Uniform, q: Gumbel) -> Tensor:
    ratio, high, low = q.scale / (p.high - p.low), (p.high - q.loc) / q.scale, (p.low - q.loc) / q.scale
    return ratio.log() + 0.5 * (high + low) - ratio * ((-high).exp() - (-low).exp())


@register_kl(Uniform, Pareto)
def _uniform_pareto(p: Uniform, q: Pareto) -> Tensor:
    constant = (q.alpha * q.scale.pow(q.alpha) * (p.high - p.low)).log()
    return where(p.low < q.scale, math.inf, _log_mean(p.low, p.high) * (q.alpha + 1) - constant)
