"""The multivariate normal distribution. As `torch.distributions.multivariate_normal`."""

from __future__ import annotations

import math
from operator import attrgetter
from typing import Any, ClassVar

from eager.core.dtypes import Size
from eager.core.tensor import Tensor
from eager.distributions import constraints
from eager.distributions.distribution import Distribution
from eager.distributions.matrices import half_log_det, mahalanobis, precision_to_scale_tril, product, square
from eager.distributions.utils import lazy_property, standard_normal
from eager.functional.shapes import common_shape
from eager.linalg import cholesky
from eager.linalg.named import cholesky_inverse

__all__ = ["MultivariateNormal"]


class MultivariateNormal(Distribution):
    """exp(-(x - loc) S^-1 (x - loc) / 2) / sqrt(det(2 pi S)) of vectors (..., n), with the covariance matrix S.

    One of the (..., n, n) matrices S, its inverse and its lower Cholesky factor `scale_tril` is given.
    """

    arg_constraints: ClassVar[Any] = {
        "loc": constraints.real_vector, "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite, "scale_tril": constraints.lower_cholesky,
    }  # fmt: skip
    support = constraints.real_vector
    has_rsample = True
    _expands = ("loc", "covariance_matrix", "scale_tril", "precision_matrix")
    _keeps = ("_unbroadcasted_scale_tril",)

    def __init__(
        self, loc: Tensor, covariance_matrix: Tensor | None = None, precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None, validate_args: bool | None = None,
    ):  # fmt: skip
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        name, matrix = one_matrix(covariance_matrix, precision_matrix, scale_tril, ValueError)
        if matrix.dim() < 2:
            what = "scale_tril matrix" if name == "scale_tril" else name
            raise ValueError(f"{what} must be at least two-dimensional, with optional leading batch dimensions")
        batch_shape = Size(common_shape(matrix.shape[:-2], loc.shape[:-1]))
        setattr(self, name, matrix.expand((*batch_shape, -1, -1)))
        self.loc = loc.expand((*batch_shape, -1))
        super().__init__(batch_shape, self.loc.shape[-1:], validate_args=validate_args)
        self._unbroadcasted_scale_tril = FACTORS[name](matrix)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The lower Cholesky factor of the covariance matrix."""
        return self._unbroadcasted_scale_tril.expand(square(self._batch_shape, self._event_shape))

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance matrix."""
        factor = self._unbroadcasted_scale_tril
        return (factor @ factor.mT).expand(square(self._batch_shape, self._event_shape))

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance matrix."""
        inverse = cholesky_inverse(self._unbroadcasted_scale_tril)
        return inverse.expand(square(self._batch_shape, self._event_shape))

    mean = mode = property(attrgetter("loc"))

    @property
    def variance(self) -> Tensor:
        return self._unbroadcasted_scale_tril.pow(2).sum(-1).expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        noise = standard_normal(self._extended_shape(sample_shape), self.loc)
        return self.loc + product(self._unbroadcasted_scale_tril, noise)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        distance = mahalanobis(self._unbroadcasted_scale_tril, value - self.loc)
        normalizer = half_log_det(self._unbroadcasted_scale_tril)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + distance) - normalizer

    def entropy(self) -> Tensor:
        entropy = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi))
        return (entropy + half_log_det(self._unbroadcasted_scale_tril)).expand(self._batch_shape)


# how the lower Cholesky factor of the covariance follows from each parameter
FACTORS = {
    "scale_tril": lambda matrix: matrix,
    "covariance_matrix": cholesky,
    "precision_matrix": precision_to_scale_tril,
}


def one_matrix(
    covariance_matrix: Tensor | None, precision_matrix: Tensor | None, scale_tril: Tensor | None,
    error: type[Exception],
) -> tuple[str, Tensor]:  # fmt: skip
    """The name and the value of the one that is given. `error` unless it is one."""
    matrices = dict(covariance_matrix=covariance_matrix, precision_matrix=precision_matrix, scale_tril=scale_tril)
    given = [(name, matrix) for name, matrix in matrices.items() if matrix is not None]
    if len(given) != 1:
        raise error("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
    return given[0]
