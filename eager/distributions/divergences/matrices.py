"""Divergences between multivariate normal distributions.

(log det(Sq) - log det(Sp) + trace(Sq^-1 Sp) + (mq - mp) Sq^-1 (mq - mp) - n) / 2, with means m and covariances S.
"""

from __future__ import annotations

from typing import Any

from eager.core.tensor import Tensor
from eager.distributions.divergences.registry import register_kl
from eager.distributions.lowrank_multivariate_normal import LowRankMultivariateNormal
from eager.distributions.matrices import half_log_det, mahalanobis, trace_of_square, whitened
from eager.distributions.multivariate_normal import MultivariateNormal


def _half_log_det(d: Any) -> Tensor:
    if isinstance(d, LowRankMultivariateNormal):
        return 0.5 * d._log_det()
    return half_log_det(d._unbroadcasted_scale_tril)


def _distance(q: Any, x: Tensor) -> Tensor:
    if isinstance(q, LowRankMultivariateNormal):
        return q._mahalanobis(x)
    return mahalanobis(q._unbroadcasted_scale_tril, x)


def _roots(p: Any) -> list[Tensor]:
    """Matrices R with Sp = sum of R @ R.mT."""
    if isinstance(p, LowRankMultivariateNormal):
        return [p._unbroadcasted_cov_factor, p._unbroadcasted_cov_diag.sqrt().diag_embed()]
    return [p._unbroadcasted_scale_tril]


def _trace(q: Any, root: Tensor) -> Tensor:
    """trace(Sq^-1 @ root @ root.mT)."""
    if not isinstance(q, LowRankMultivariateNormal):
        return trace_of_square(whitened(q._unbroadcasted_scale_tril, root))
    # the Woodbury identity: Sq^-1 = diag(1 / D) - A.mT @ A
    a = whitened(q._capacitance_tril, q._weighted())
    return trace_of_square(root * q._unbroadcasted_cov_diag.rsqrt().unsqueeze(-1)) - trace_of_square(a @ root)


def _divergence(p: Any, q: Any) -> Tensor:
    if p.event_shape != q.event_shape:
        kinds = {isinstance(d, LowRankMultivariateNormal) for d in (p, q)}
        kind = "(Low Rank) " if len(kinds) == 2 else "Low Rank " if kinds == {True} else ""
        raise ValueError(
            f"KL-divergence between two {kind}Multivariate Normals with"
            "                          different event shapes cannot be computed"
        )
    trace: Any = sum(_trace(q, root) for root in _roots(p))
    halves = 0.5 * (trace + _distance(q, q.loc - p.loc) - p.event_shape[0])
    return _half_log_det(q) - _half_log_det(p) + halves


for _p in (MultivariateNormal, LowRankMultivariateNormal):
    for _q in (MultivariateNormal, LowRankMultivariateNormal):
        register_kl(_p, _q)(_divergence)
