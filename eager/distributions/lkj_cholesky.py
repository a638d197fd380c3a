"""The LKJ distribution. As `torch.distributions.lkj_cholesky`."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from eager.core.dtypes import Size
from eager.core.grad_mode import no_grad
from eager.core.limits import finfo
from eager.core.tensor import Tensor
from eager.distributions import constraints
from eager.distributions.beta import Beta
from eager.distributions.distribution import Distribution
from eager.distributions.utils import broadcast_all, standard_normal
from eager.functional.elementwise import mvlgamma
from eager.functional.gathering import where
from eager.functional.joining import cat
from eager.functional.lines import arange

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Lower Cholesky factors of (dim, dim) correlation matrices M, of density ~ det(M)^(concentration - 1).

    Drawn by the onion method of D. Lewandowski, D. Kurowicka, H. Joe, "Generating random correlation matrices based on
    vines and extended onion method", 2009: each row is a direction and a squared length.
    """

    arg_constraints: ClassVar[Any] = {"concentration": constraints.positive}
    support = constraints.corr_cholesky
    _expands = ("concentration", "_beta")
    _keeps = ("dim",)

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None):
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        like = dict(dtype=self.concentration.dtype, device=self.concentration.device)
        offset = arange(dim - 1, **like)
        offset = cat([offset.new_zeros((1,)), offset])
        marginal = self.concentration + 0.5 * (dim - 2)
        self._beta = Beta(offset + 0.5, marginal.unsqueeze(-1) - 0.5 * offset)
        super().__init__(self.concentration.size(), Size((dim, dim)), validate_args)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            y = self._beta.sample(sample_shape).unsqueeze(-1)
            normals = standard_normal(self._extended_shape(sample_shape), y).tril(-1)
            direction = normals / normals.norm(dim=-1, keepdim=True)
            direction = where(arange(self.dim).unsqueeze(-1) == 0, 0.0, direction)  # the first row has none
            rows = y.sqrt() * direction
            rest = (1 - (rows**2).sum(-1)).clamp(min=finfo(rows.dtype).tiny).sqrt()
            return rows + rest.diag_embed()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        # det(M) and the Jacobian of M = L @ L.mT are products of powers of L's diagonal
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        order = arange(2, self.dim + 1, device=self.concentration.device)
        order = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - order
        log_density = (order * diagonal.log()).sum(-1)
        n = self.dim - 1
        alpha = self.concentration + 0.5 * n
        normalizer = 0.5 * n * math.log(math.pi) + mvlgamma(alpha - 0.5, n) - alpha.lgamma() * n
        return log_density - normalizer
