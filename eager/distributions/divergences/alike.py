"""Divergences between distributions of one family."""

from __future__ import annotations

import math
from typing import Any

from eager.autograd import grad
from eager.core.tensor import Tensor
from eager.distributions.bernoulli import Bernoulli
from eager.distributions.beta import Beta
from eager.distributions.binomial import Binomial
from eager.distributions.categorical import Categorical
from eager.distributions.cauchy import Cauchy
from eager.distributions.continuous_bernoulli import ContinuousBernoulli
from eager.distributions.dirichlet import Dirichlet
from eager.distributions.divergences.registry import kl_divergence, register_kl
from eager.distributions.exp_family import ExponentialFamily
from eager.distributions.exponential import Exponential
from eager.distributions.gamma import Gamma
from eager.distributions.geometric import Geometric
from eager.distributions.gumbel import Gumbel
from eager.distributions.half_normal import HalfNormal
from eager.distributions.independent import Independent
from eager.distributions.laplace import Laplace
from eager.distributions.normal import Normal
from eager.distributions.one_hot_categorical import OneHotCategorical
from eager.distributions.pareto import Pareto
from eager.distributions.poisson import Poisson
from eager.distributions.transformed_distribution import TransformedDistribution
from eager.distributions.uniform import Uniform
from eager.distributions.utils import euler_constant, sum_rightmost
from eager.functional.gathering import where
from eager.nn.functions.activation import softplus


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Bernoulli, q: Bernoulli) -> Tensor:
    ones = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    ones = where(p.probs == 0, 0.0, where(q.probs == 0, math.inf, ones))
    zeros = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    return ones + where(p.probs == 1, 0.0, where(q.probs == 1, math.inf, zeros))


@register_kl(Beta, Beta)
def _beta(p: Beta, q: Beta) -> Tensor:
    total_p, total_q = p.concentration1 + p.concentration0, q.concentration1 + q.concentration0
    log_q = q.concentration1.lgamma() + q.concentration0.lgamma() + total_p.lgamma()
    log_p = p.concentration1.lgamma() + p.concentration0.lgamma() + total_q.lgamma()
    ones = (p.concentration1 - q.concentration1) * p.concentration1.digamma()
    zeros = (p.concentration0 - q.concentration0) * p.concentration0.digamma()
    return log_q - log_p + ones + zeros + (total_q - total_p) * total_p.digamma()


@register_kl(Binomial, Binomial)
def _binomial(p: Binomial, q: Binomial) -> Tensor:
    if (p.total_count < q.total_count).any():
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    one = p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p()
    return where(p.total_count > q.total_count, math.inf, p.total_count * one)


@register_kl(Categorical, Categorical)
def _categorical(p: Categorical, q: Categorical) -> Tensor:
    terms = p.probs * (p.logits - q.logits)
    return where(p.probs == 0, 0.0, where(q.probs == 0, math.inf, terms)).sum(-1)


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Cauchy, q: Cauchy) -> Tensor:
    # F. Chyzak, F. Nielsen, "A closed-form formula for the Kullback-Leibler divergence between Cauchy distributions"
    return ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log() - (4 * p.scale * q.scale).log()


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p: ContinuousBernoulli, q: ContinuousBernoulli) -> Tensor:
    log_p = p._cont_bern_log_norm() + (-p.probs).log1p()
    return p.mean * (p.logits - q.logits) + log_p - q._cont_bern_log_norm() - (-q.probs).log1p()


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Dirichlet, q: Dirichlet) -> Tensor:
    a, b = p.concentration, q.concentration
    log_means = a.digamma() - a.sum(-1).digamma().unsqueeze(-1)
    normalizers = a.sum(-1).lgamma() - b.sum(-1).lgamma() - (a.lgamma() - b.lgamma()).sum(-1)
    return normalizers + ((a - b) * log_means).sum(-1)


@register_kl(Exponential, Exponential)
def _exponential(p: Exponential, q: Exponential) -> Tensor:
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_family(p: ExponentialFamily, q: ExponentialFamily) -> Tensor:
    """The Bregman divergence of the log normalizer, F(q) - F(p) - <q - p, F'(p)>."""
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot"
            "                             be computed using Bregman divergences"
        )
    at_p = [x.detach().requires_grad_() for x in p._natural_params]
    normalizer = p._log_normalizer(*at_p)
    slopes = grad(normalizer.sum(), at_p, create_graph=True)
    result = q._log_normalizer(*q._natural_params) - normalizer
    for x, y, slope in zip(at_p, q._natural_params, slopes, strict=True):
        result = result - sum_rightmost((y - x) * slope, len(q.event_shape))
    return result


@register_kl(Gamma, Gamma)
def _gamma(p: Gamma, q: Gamma) -> Tensor:
    scales = q.concentration * (p.rate / q.rate).log() + q.concentration.lgamma() - p.concentration.lgamma()
    shapes = (p.concentration - q.concentration) * p.concentration.digamma()
    return scales + shapes + (q.rate - p.rate) * (p.concentration / p.rate)


@register_kl(Geometric, Geometric)
def _geometric(p: Geometric, q: Geometric) -> Tensor:
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Gumbel, q: Gumbel) -> Tensor:
    ratio, q_loc, p_loc = p.scale / q.scale, q.loc / q.scale, p.loc / q.scale
    tail = (q_loc + (1 + ratio).lgamma() - p_loc).exp()
    return -ratio.log() - q_loc + p_loc + ratio * euler_constant + tail - (1 + euler_constant)


@register_kl(Laplace, Laplace)
def _laplace(p: Laplace, q: Laplace) -> Tensor:
    ratio, distance = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + distance / q.scale + ratio * (-distance / p.scale).exp() - 1


@register_kl(Normal, Normal)
def _normal(p: Normal, q: Normal) -> Tensor:
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


@register_kl(Pareto, Pareto)
def _pareto(p: Pareto, q: Pareto) -> Tensor:
    ratio = q.alpha / p.alpha
    result = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return where(p.scale < q.scale, math.inf, result)


@register_kl(Poisson, Poisson)
def _poisson(p: Poisson, q: Poisson) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Uniform, Uniform)
def _uniform(p: Uniform, q: Uniform) -> Tensor:
    result = ((q.high - q.low) / (p.high - p.low)).log()
    return where((q.low > p.low) | (q.high < p.high), math.inf, result)


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: HalfNormal, q: HalfNormal) -> Tensor:
    return _normal(p.base_dist, q.base_dist)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot_categorical(p: OneHotCategorical, q: OneHotCategorical) -> Tensor:
    return _categorical(p._categorical, q._categorical)


@register_kl(Independent, Independent)
def _independent(p: Independent[Any], q: Independent[Any]) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: TransformedDistribution, q: TransformedDistribution) -> Tensor:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError
    return kl_divergence(p.base_dist, q.base_dist)
