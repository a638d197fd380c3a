"""Transforms of vectors and matrices."""

from __future__ import annotations

import math
from typing import Any

from eager.core.dtypes import Size
from eager.core.limits import finfo
from eager.core.tensor import Tensor
from eager.distributions import constraints
from eager.distributions.transforms.pointwise import clipped_sigmoid
from eager.distributions.transforms.transform import Plain, Transform, at_least
from eager.distributions.utils import tril_matrix_to_vec, vec_to_tril_matrix
from eager.functional.creation import eye
from eager.linalg import cholesky
from eager.nn.functions.activation import logsigmoid, softplus
from eager.nn.functions.padding import pad


class SoftmaxTransform(Plain):
    """y = softmax(x). Not bijective: its inverse, log(y), is one of many."""

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        probs = (x - x.max(-1, True)[0]).exp()
        return probs / probs.sum(-1, True)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def forward_shape(self, shape: Size) -> Size:
        return at_least(shape, 1)

    inverse_shape = forward_shape


class StickBreakingTransform(Plain):
    """Breaks a stick of length 1 at sigmoid(x), again and again what is left: n numbers become n + 1 that sum to 1.

    The numbers are shifted so that zeros give pieces of one length.
    """

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    @staticmethod
    def _left(x: Tensor) -> Tensor:
        """How many pieces are to come: n, ..., 1."""
        return x.shape[-1] + 1 - x.new_ones(x.shape[-1]).cumsum(-1)

    def _call(self, x: Tensor) -> Tensor:
        z = clipped_sigmoid(x - self._left(x).log())
        return pad(z, [0, 1], value=1) * pad((1 - z).cumprod(-1), [1, 0], value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        pieces = y[..., :-1]
        rest = (1 - pieces.cumsum(-1)).clamp(min=finfo(y.dtype).tiny)
        return pieces.log() - rest.log() + self._left(pieces).log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        x = x - self._left(x).log()
        return (-x + logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Size) -> Size:
        return Size((*at_least(shape, 1)[:-1], shape[-1] + 1))

    def inverse_shape(self, shape: Size) -> Size:
        return Size((*at_least(shape, 1)[:-1], shape[-1] - 1))


class LowerCholeskyTransform(Plain):
    """Lower triangular matrices with a positive diagonal: exp of the diagonal, as it is below."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(Plain):
    """L @ L.mT, with L of `LowerCholeskyTransform`."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(cholesky(y))


class CorrCholeskyTransform(Transform):
    """Vectors of D (D - 1) / 2 numbers as Cholesky factors of correlation matrices.

    tanh(x) are canonical partial correlations: each row of the factor is built from them as by breaking sticks. (D.
    Lewandowski, D. Kurowicka, H. Joe, "Generating random correlation matrices based on vines and extended onion
    method", 2009.)
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        eps = finfo(x.dtype).eps
        r = vec_to_tril_matrix(x.tanh().clamp(min=-1 + eps, max=1 - eps), diag=-1)
        rest = (1 - r**2).sqrt().cumprod(-1)
        return (r + eye(r.shape[-1], dtype=r.dtype, device=r.device)) * pad(rest[..., :-1], [1, 0], value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        rest = pad((1 - (y * y).cumsum(-1))[..., :-1], [1, 0], value=1)
        t = tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(rest, diag=-1).sqrt()
        return (t.log1p() - t.neg().log1p()) / 2  # atanh

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor, intermediates: Any = None) -> Tensor:
        rest = tril_matrix_to_vec(1 - (y * y).cumsum(-1), diag=-2)
        of_tanh = -2 * (x + softplus(-2 * x) - math.log(2.0)).sum(-1)
        return 0.5 * rest.log().sum(-1) + of_tanh

    def forward_shape(self, shape: Size) -> Size:
        n = at_least(shape, 1)[-1]
        size = round((0.25 + 2 * n) ** 0.5 + 0.5)
        if size * (size - 1) // 2 != n:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return Size((*shape[:-1], size, size))

    def inverse_shape(self, shape: Size) -> Size:
        size = at_least(shape, 2)[-1]
        if shape[-2] != size:
            raise ValueError("Input is not square")
        return Size((*shape[:-2], size * (size - 1) // 2))
