"""Algebra of batches of vectors and Cholesky factors."""

from __future__ import annotations

import math

from eager.core.dtypes import Size
from eager.core.tensor import Tensor
from eager.functional.creation import eye
from eager.functional.shapes import common_shape
from eager.linalg import cholesky, solve_triangular

__all__ = ["half_log_det", "mahalanobis", "precision_to_scale_tril", "product", "trace_of_square", "whitened"]


def product(matrix: Tensor, vector: Tensor) -> Tensor:
    """(..., m, n) times (..., n): (..., m)."""
    return (matrix @ vector.unsqueeze(-1)).squeeze(-1)


def half_log_det(tril: Tensor) -> Tensor:
    """log |det tril| of triangular matrices with a positive diagonal."""
    return tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def trace_of_square(matrix: Tensor) -> Tensor:
    """trace(X @ X.mT)."""
    return matrix.pow(2).sum((-2, -1))


def whitened(tril: Tensor, matrix: Tensor) -> Tensor:
    """tril^-1 @ matrix, with batch dims that broadcast."""
    batch = common_shape(tril.shape[:-2], matrix.shape[:-2])
    tril = tril.expand((*batch, *tril.shape[-2:]))
    return solve_triangular(tril, matrix.expand((*batch, *matrix.shape[-2:])), upper=False)


def mahalanobis(tril: Tensor, x: Tensor) -> Tensor:
    """|tril^-1 x|^2 of (..., n) vectors, whose batch dims end like those of `tril` or broadcast.

    Vectors that share a factor are columns of one system.
    """
    n = x.size(-1)
    lead = x.dim() - tril.dim() + 1
    if lead <= 0 or math.prod(tril.shape[:-2]) != math.prod(x.shape[lead:-1]):
        return whitened(tril, x.unsqueeze(-1)).squeeze(-1).pow(2).sum(-1)
    own = x.shape[lead:-1]
    columns = x.reshape((-1, *own, n)).movedim(0, -1)
    squares = solve_triangular(tril.reshape((*own, n, n)), columns, upper=False).pow(2).sum(-2)
    return squares.movedim(-1, 0).reshape(x.shape[:-1])


def precision_to_scale_tril(precision: Tensor) -> Tensor:
    """The lower Cholesky factor of the inverse of `precision`, without inverting it."""
    flipped = cholesky(precision.flip((-2, -1)))
    inverse = flipped.flip((-2, -1)).transpose(-2, -1)
    identity = eye(precision.shape[-1], dtype=precision.dtype, device=precision.device)
    return whitened(inverse, identity)


def square(batch: Size, event: Size) -> Size:
    """The shape of a batch of matrices for events that are vectors."""
    return batch + event + event
