"""Multivariate normal distributions of low rank. As `torch.distributions.lowrank_multivariate_normal`."""

from __future__ import annotations

import math
from operator import attrgetter
from typing import Any, ClassVar

from eager.core.tensor import Tensor
from eager.distributions import constraints
from eager.distributions.distribution import Distribution
from eager.distributions.matrices import half_log_det, mahalanobis, product, square, whitened
from eager.distributions.utils import lazy_property, standard_normal
from eager.functional.creation import eye
from eager.functional.shapes import broadcast_tensors
from eager.linalg import cholesky

__all__ = ["LowRankMultivariateNormal"]


def _plus_identity(matrix: Tensor) -> Tensor:
    return matrix + eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)


class LowRankMultivariateNormal(Distribution):
    """Normal vectors (..., n) with the covariance matrix W @ W.mT + diag(D).

    W is `cov_factor` (..., n, m), D is `cov_diag` (..., n). By the Woodbury identity and the matrix determinant lemma
    all that is factorized is the (m, m) capacitance I + W.mT @ diag(1 / D) @ W.
    """

    arg_constraints: ClassVar[Any] = {
        "loc": constraints.real_vector, "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }  # fmt: skip
    support = constraints.real_vector
    has_rsample = True
    _expands = ("loc", "cov_factor", "cov_diag")
    _keeps = ("_unbroadcasted_cov_factor", "_unbroadcasted_cov_diag", "_capacitance_tril")

    def __init__(self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None):
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event_shape = loc.shape[-1:]
        if cov_factor.dim() < 2:
            raise ValueError("cov_factor must be at least two-dimensional, with optional leading batch dimensions")
        if cov_factor.shape[-2:-1] != event_shape:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {event_shape[0]} x m")
        if cov_diag.shape[-1:] != event_shape:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event_shape}")
        try:
            columns = broadcast_tensors(loc.unsqueeze(-1), cov_factor, cov_diag.unsqueeze(-1))
        except RuntimeError as error:
            raise ValueError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, cov_diag {cov_diag.shape}"
            ) from error
        self.loc, self.cov_factor, self.cov_diag = columns[0][..., 0], columns[1], columns[2][..., 0]
        self._unbroadcasted_cov_factor = cov_factor
        self._unbroadcasted_cov_diag = cov_diag
        self._capacitance_tril = cholesky(_plus_identity(self._weighted() @ cov_factor))
        super().__init__(self.loc.shape[:-1], event_shape, validate_args=validate_args)

    def _weighted(self) -> Tensor:
        """W.mT @ diag(1 / D)."""
        return self._unbroadcasted_cov_factor.mT / self._unbroadcasted_cov_diag.unsqueeze(-2)

    mean = mode = property(attrgetter("loc"))

    @lazy_property
    def variance(self) -> Tensor:
        variance = self._unbroadcasted_cov_factor.pow(2).sum(-1) + self._unbroadcasted_cov_diag
        return variance.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The lower Cholesky factor of the covariance matrix."""
        root = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        scaled = self._unbroadcasted_cov_factor / root
        factor = root * cholesky(_plus_identity(scaled @ scaled.mT))
        return factor.expand(square(self._batch_shape, self._event_shape))

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """W @ W.mT + diag(D)."""
        factor = self._unbroadcasted_cov_factor
        matrix = factor @ factor.mT + self._unbroadcasted_cov_diag.diag_embed()
        return matrix.expand(square(self._batch_shape, self._event_shape))

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance matrix."""
        a = whitened(self._capacitance_tril, self._weighted())
        matrix = self._unbroadcasted_cov_diag.reciprocal().diag_embed() - a.mT @ a
        return matrix.expand(square(self._batch_shape, self._event_shape))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        along = standard_normal(shape[:-1] + self.cov_factor.shape[-1:], self.loc)
        noise = standard_normal(shape, self.loc)
        shift = product(self._unbroadcasted_cov_factor, along)
        return self.loc + shift + self._unbroadcasted_cov_diag.sqrt() * noise

    def _log_det(self) -> Tensor:
        """log det of the covariance matrix."""
        return 2 * half_log_det(self._capacitance_tril) + self._unbroadcasted_cov_diag.log().sum(-1)

    def _mahalanobis(self, x: Tensor) -> Tensor:
        """x S^-1 x, where S is the covariance matrix."""
        inner = mahalanobis(self._capacitance_tril, product(self._weighted(), x))
        return (x.pow(2) / self._unbroadcasted_cov_diag).sum(-1) - inner

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        distance = self._mahalanobis(value - self.loc)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + self._log_det() + distance)

    def entropy(self) -> Tensor:
        entropy = 0.5 * (self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + self._log_det())
        return entropy.expand(self._batch_shape)
