"""The Wishart distribution. As `torch.distributions.wishart`."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import Any

from eager.core.dtypes import Size
from eager.core.interpreter import on_arrays
from eager.core.limits import finfo
from eager.core.tensor import Tensor
from eager.distributions import constraints
from eager.distributions.chi2 import Chi2
from eager.distributions.exp_family import ExponentialFamily
from eager.distributions.matrices import half_log_det
from eager.distributions.multivariate_normal import FACTORS, one_matrix
from eager.distributions.utils import NUMBER, lazy_property, standard_normal
from eager.functional.creation import eye, full
from eager.functional.elementwise import mvlgamma
from eager.functional.gathering import where
from eager.functional.grids import tril_indices
from eager.functional.lines import arange
from eager.functional.shapes import common_shape
from eager.linalg import slogdet
from eager.linalg.named import cholesky_solve

__all__ = ["Wishart"]

_LOG_2 = math.log(2)
_MOST_CORRECTIONS = 10


class Wishart(ExponentialFamily):
    """The distribution of the sum of x x^T of `df` normal vectors x of mean 0 with the covariance matrix S.

    det(X)^((df - p - 1) / 2) exp(-trace(S^-1 X) / 2) / (det(2 S)^(df / 2) Gamma_p(df / 2)) of positive definite (p, p)
    matrices X. One of S, its inverse and its lower Cholesky factor `scale_tril` is given; `df` is above p - 1. Drawn by
    Bartlett's decomposition.
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0
    _expands = ("df", "covariance_matrix", "scale_tril", "precision_matrix", "_dist_chi2")
    _keeps = ("_unbroadcasted_scale_tril",)

    def __init__(
        self, df: Any, covariance_matrix: Tensor | None = None, precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None, validate_args: bool | None = None,
    ):  # fmt: skip
        name, param = one_matrix(covariance_matrix, precision_matrix, scale_tril, AssertionError)
        if param.dim() < 2:
            raise ValueError("scale_tril must be at least two-dimensional, with optional leading batch dimensions")
        event_shape, p = param.shape[-2:], param.shape[-1]
        if isinstance(df, NUMBER):
            batch_shape = param.shape[:-2]
            self.df = full(batch_shape, df, dtype=param.dtype, device=param.device)
        else:
            batch_shape = Size(common_shape(param.shape[:-2], df.shape))
            self.df = df.expand(batch_shape)
        if on_arrays():
            if bool((self.df <= p - 1).any()):
                raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {p - 1}.")
            if bool((self.df < p).any()):
                warnings.warn(
                    "Low df values detected. Singular samples are highly likely to occur for ndim - 1 < df < ndim.",
                    stacklevel=2,
                )
        setattr(self, name, param.expand((*batch_shape, -1, -1)))
        super().__init__(batch_shape, event_shape, validate_args=validate_args)
        self._unbroadcasted_scale_tril = FACTORS[name](param)
        down = arange(p, dtype=param.dtype, device=param.device)
        self._dist_chi2 = Chi2(df=self.df.unsqueeze(-1) - down.expand((*batch_shape, -1)))

    @property
    def arg_constraints(self) -> Mapping[str, Any]:
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self.event_shape[-1] - 1),
        }

    @property
    def _columns(self) -> Tensor:
        """`df` with two more dims."""
        return self.df.unsqueeze(-1).unsqueeze(-1)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The lower Cholesky factor of S."""
        return self._unbroadcasted_scale_tril.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """S."""
        factor = self._unbroadcasted_scale_tril
        return (factor @ factor.transpose(-2, -1)).expand(self._batch_shape + self._event_shape)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of S."""
        factor = self._unbroadcasted_scale_tril
        identity = eye(self._event_shape[-1], dtype=factor.dtype, device=factor.device)
        return cholesky_solve(identity, factor).expand(self._batch_shape + self._event_shape)

    mean = property(lambda self: self._columns * self.covariance_matrix)

    @property
    def mode(self) -> Tensor:
        factor = self._columns - self.covariance_matrix.shape[-1] - 1
        return where(factor <= 0, math.nan, factor) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        matrix = self.covariance_matrix
        diagonal = matrix.diagonal(dim1=-2, dim2=-1)
        return self._columns * (matrix.pow(2) + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2))

    def _bartlett_sampling(self, sample_shape: Any) -> Tensor:
        p = self._event_shape[-1]
        lengths = self._dist_chi2.rsample(sample_shape).sqrt()
        noise = lengths.clamp(min=finfo(lengths.dtype).eps).diag_embed(dim1=-2, dim2=-1)
        i, j = tril_indices(p, p, offset=-1)
        noise[..., i, j] = standard_normal((*sample_shape, *self._batch_shape, p * (p - 1) // 2), noise)
        factor = self._unbroadcasted_scale_tril @ noise
        return factor @ factor.transpose(-2, -1)

    def rsample(self, sample_shape: Any = (), max_try_correction: int | None = None) -> Tensor:
        """Draw a sample as a differentiable function of the parameters.

        Matrices that rounding has made singular are drawn anew, at most `max_try_correction` times (10). Under a trace
        they are not: how many there are depends on the data. PyTorch takes its first test for them the wrong way round
        and draws all others anew, so that here, too, the second draw is the one that counts.
        """
        sample_shape = Size(sample_shape)
        self._bartlett_sampling(sample_shape)
        sample = self._bartlett_sampling(sample_shape)
        if not on_arrays():
            return sample
        for _ in range(_MOST_CORRECTIONS if max_try_correction is None else max_try_correction):
            singular = ~self.support.check(sample)
            if not bool(singular.any()):
                break
            warnings.warn("Singular sample detected.", stacklevel=2)
            sample = where(singular[..., None, None], self._bartlett_sampling(sample_shape), sample)
        return sample

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        nu, p, factor = self.df, self._event_shape[-1], self._unbroadcasted_scale_tril
        log_det = -nu * (p * _LOG_2 / 2 + half_log_det(factor)) - mvlgamma(nu / 2, p=p)
        power = (nu - p - 1) / 2 * slogdet(value).logabsdet
        return log_det + power - cholesky_solve(value, factor).diagonal(dim1=-2, dim2=-1).sum(-1) / 2

    def entropy(self) -> Tensor:
        nu, p = self.df, self._event_shape[-1]
        log_det = (p + 1) * (p * _LOG_2 / 2 + half_log_det(self._unbroadcasted_scale_tril))
        steps = arange(p, dtype=nu.dtype, device=nu.device) / 2
        digamma = (nu.unsqueeze(-1) / 2 - steps).digamma().sum(-1)  # the multivariate one of nu / 2
        return log_det + mvlgamma(nu / 2, p=p) - (nu - p - 1) / 2 * digamma + nu * p / 2

    _natural_params = property(lambda self: (-self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2))

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        p = self._event_shape[-1]
        half = y + (p + 1) / 2
        return half * (-slogdet(-2 * x).logabsdet + _LOG_2 * p) + mvlgamma(half, p=p)
