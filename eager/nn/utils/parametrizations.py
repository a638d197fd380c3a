"""Weights of a norm, of a spectral norm, orthogonal ones. As `torch.nn.utils.parametrizations`."""

from __future__ import annotations

from typing import Any

from eager.core.grad_mode import no_grad
from eager.core.tensor import Tensor
from eager.functional.creation import eye, zeros_like
from eager.functional.distances import vdot
from eager.functional.joining import cat
from eager.functional.linear import mv
from eager.linalg import householder_product, solve
from eager.linalg.named import geqrf, matrix_exp
from eager.nn.functional import normalize
from eager.nn.functions.operators import norm_except_dim
from eager.nn.module import Module
from eager.nn.modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from eager.nn.utils.parametrize import register_parametrization
from eager.rng.functions import randn

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]

MAPS = ("matrix_exp", "cayley", "householder")
NO_INVERSE = (
    "It is not possible to assign to the matrix exponential or the Cayley parametrizations when "
    "use_trivialization=False."
)


def weight_of(module: Any, name: str) -> Any:
    """The tensor of that name. ValueError if there is none."""
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return weight


def with_norm(v: Any, g: Any, dim: int) -> Any:
    """`v` scaled to the norms `g`, one for each index along `dim`, or one for all with -1."""
    return v * (g / norm_except_dim(v, 2, dim))


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0):
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Any, weight_v: Any) -> Any:
        return with_norm(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Any) -> tuple[Any, Any]:
        return norm_except_dim(weight, 2, self.dim), weight


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Train the lengths and the directions of the slices of a weight along `dim` apart: w = g v / |v|.

    Of the whole weight if `dim` is None. State dicts of the older `torch.nn.utils.weight_norm` can be loaded. Source:
    Salimans and Kingma, arXiv:1602.07868.
    """
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def take_old_names(state: dict[str, Any], prefix: str, *rest: Any) -> None:
        old = [f"{prefix}{name}_{letter}" for letter in "gv"]
        if all(key in state for key in old):
            for i, key in enumerate(old):
                state[f"{prefix}parametrizations.{name}.original{i}"] = state.pop(key)

    module._register_load_state_dict_pre_hook(take_old_names)
    return module


def as_matrix(weight: Any, dim: int) -> Any:
    """`weight` as a matrix whose rows are its slices along `dim`."""
    moved = weight if dim == 0 else weight.permute(dim, *(d for d in range(weight.dim()) if d != dim))
    return moved.reshape(moved.size(0), -1)


def output_dim(module: Any) -> int:
    """The dim of the weight of `module` that belongs to its outputs."""
    return 1 if isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)) else 0


def check_iterations(n: int) -> None:
    """ValueError unless the power method is to do some step."""
    if n <= 0:
        raise ValueError(f"Expected n_power_iterations to be positive, but got n_power_iterations={n}")


def random_direction(weight: Any, size: int, eps: float) -> Any:
    """A random vector of norm 1 in the dtype of `weight`."""
    return normalize(weight.new_empty(size).normal_(0, 1), dim=0, eps=eps)


class _SpectralNorm(Module):
    def __init__(self, weight: Any, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12):
        super().__init__()
        rank = weight.ndim
        if not -rank <= dim < rank:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{rank}, {rank - 1}] but got {dim})")
        check_iterations(n_power_iterations)
        self.dim, self.eps = dim % rank, eps
        if rank > 1:
            self.n_power_iterations = n_power_iterations
            matrix = as_matrix(weight, self.dim)
            rows, columns = matrix.size()
            u, v = (random_direction(matrix, n, eps) for n in (rows, columns))
            self.register_buffer("_u", u)
            self.register_buffer("_v", v)
            self._power_method(matrix, 15)

    def _power_method(self, matrix: Any, steps: int) -> None:
        """Turn `_u` and `_v`, in place, towards the first singular vectors."""
        with no_grad():
            for _ in range(steps):
                self._u.copy_(normalize(mv(matrix, self._v), dim=0, eps=self.eps))
                self._v.copy_(normalize(mv(matrix.mH, self._u), dim=0, eps=self.eps))

    def forward(self, weight: Any) -> Any:
        if weight.ndim == 1:
            return normalize(weight, dim=0, eps=self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        # copies: the buffers are written again before the gradients of two results are known
        return weight / vdot(self._u.clone(), mv(matrix, self._v.clone()))

    def right_inverse(self, value: Any) -> Any:
        return value


def spectral_norm(
    module: Any, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Any:
    """Divide a weight by its largest singular value, estimated by the power method: some steps at each use in training.

    dim: that of the outputs; the weight is a matrix with them as rows. Source: Miyato et al., arXiv:1802.05957.
    """
    weight = weight_of(module, name)
    made = _SpectralNorm(weight, n_power_iterations, output_dim(module) if dim is None else dim, eps)
    register_parametrization(module, name, made)
    return module


def _is_orthogonal(q: Any) -> bool:
    from eager.core.limits import finfo
    from eager.functional.arithmetic import allclose

    return allclose(q.mH @ q, eye(q.size(-1), dtype=q.dtype), atol=10.0 * q.size(-2) * finfo(q.dtype).eps)


def _q_factor(a: Any) -> Any:
    """Q of the tall a = QR with a positive diagonal of R."""
    reflectors, tau = geqrf(a)
    return householder_product(reflectors, tau) * reflectors.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


class _Orthogonal(Module):
    def __init__(self, weight: Any, orthogonal_map: str, *, use_trivialization: bool = True):
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Any) -> Any:
        transposed = X.size(-2) < X.size(-1)
        q = self._tall(X.mT if transposed else X)
        if "base" in self._buffers:
            q = self.base @ q
        return q.mT if transposed else q

    def _tall(self, x: Any) -> Any:
        n, k = x.size(-2), x.size(-1)
        if self.orthogonal_map == "householder":
            a = x.tril(diagonal=-1)
            # tau of I - tau a a^H is given by a; the diagonal of x is +-1 and picks the sign
            q = householder_product(a, 2.0 / (1.0 + (a * a).sum(dim=-2)))
            return q * x.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)
        x = x.tril()
        if n != k:
            x = cat([x, x.new_zeros(n, n - k).expand(*x.shape[:-2], -1, -1)], dim=-1)
        a = x - x.mH  # skew: exp(a) and (1 + a/2) / (1 - a/2) are orthogonal
        if self.orthogonal_map == "matrix_exp":
            q = matrix_exp(a)
        else:
            one = eye(n, dtype=a.dtype)
            q = solve(one - 0.5 * a, one + 0.5 * a)
        return q if n == k else q[..., :k]

    def right_inverse(self, Q: Any) -> Any:
        if Q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {Q.shape}."
            )
        with no_grad():
            transposed = Q.size(-2) < Q.size(-1)
            q = Q.mT if transposed else Q
            n, k = q.size(-2), q.size(-1)
            if "base" not in self._buffers:
                if self.orthogonal_map != "householder":
                    raise NotImplementedError(NO_INVERSE)
                a, tau = geqrf(q)
                a.diagonal(dim1=-2, dim2=-1).sign_()
                # LAPACK's sign for a column that needs no reflection
                a.diagonal(dim1=-2, dim2=-1)[tau == 0.0] *= -1
                return a.mT if transposed else a
            if n != k:
                q = _q_factor(cat([q, randn(*q.size()[:-2], n, n - k, dtype=q.dtype)], dim=-1))
            else:
                q = q.clone() if _is_orthogonal(q) else _q_factor(q)
            self.base = q
            # -1 on the diagonal: exp(0) and the Cayley map of 0 are the identity, and so are k reflections with signs
            negative: Any = zeros_like(Q)
            negative.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
            return negative


def orthogonal(
    module: Any, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Any:
    """Keep a weight's columns, or its rows if it is wide, orthonormal: it is a map of a tensor that is free.

    The maps are "matrix_exp", "cayley" and "householder". With `use_trivialization` the result is times a fixed
    orthogonal matrix, so that the weight keeps its value, if that is orthogonal. Source: Lezcano, arXiv:1909.09501.
    ValueError for a vector, for another map, for complex numbers with "householder".
    """
    weight = weight_of(module, name)
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        square = weight.size(-2) == weight.size(-1)
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    if orthogonal_map not in MAPS:
        raise ValueError(
            f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}'
        )
    made = _Orthogonal(weight, orthogonal_map, use_trivialization=use_trivialization)
    register_parametrization(module, name, made, unsafe=True)
    return module
