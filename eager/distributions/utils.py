"""What distributions and transforms are made with. As `torch.distributions.utils`."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any

from eager.core.dtypes import Size
from eager.core.grad_mode import enable_grad
from eager.core.limits import finfo
from eager.core.tensor import Tensor
from eager.functional.creation import scalar_tensor
from eager.functional.lines import arange
from eager.functional.reductions import softmax
from eager.functional.shapes import broadcast_tensors
from eager.rng.functions import randn

__all__ = [
    "broadcast_all", "clamp_probs", "lazy_property", "logits_to_probs", "probs_to_logits", "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]  # fmt: skip

NUMBER = (int, float, bool)
euler_constant = 0.57721566490153286060


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Numbers and tensors as tensors of one shape; numbers take the dtype of the first tensor, else the default.

    Raises ValueError for anything else, RuntimeError for shapes that do not broadcast.
    """
    if not all(isinstance(v, (Tensor, *NUMBER)) for v in values):
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects implementing __torch_function__."
        )
    tensors = [v for v in values if isinstance(v, Tensor)]
    if len(tensors) == len(values) and len({v.shape for v in tensors}) == 1:
        return values
    dtype = tensors[0].dtype if tensors else None
    given = [v if isinstance(v, Tensor) else scalar_tensor(v, dtype=dtype) for v in values]
    return tuple(broadcast_tensors(*given))


def standard_normal(shape: Any, like: Tensor) -> Tensor:
    """Standard normal numbers of the dtype of `like`."""
    return randn(Size(shape), dtype=like.dtype, device=like.device)


def _standard_normal(shape: Any, dtype: Any, device: Any) -> Tensor:
    return randn(Size(shape), dtype=dtype, device=device)  # libraries of distributions import it from PyTorch


def sum_rightmost(value: Any, dim: int) -> Any:
    """`value` summed over its last `dim` dims."""
    return value if dim == 0 else value.reshape((*value.shape[: value.dim() - dim], -1)).sum(-1)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Probabilities of log odds (`is_binary`), or of unnormalized logarithms along the last dim."""
    return logits.sigmoid() if is_binary else softmax(logits, -1)


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities kept away from 0 and 1 by the dtype's epsilon."""
    eps = finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """The inverse of `logits_to_probs`, of clamped probabilities."""
    clamped = clamp_probs(probs)
    return clamped.log() - (-clamped).log1p() if is_binary else clamped.log()


class lazy_property:
    """A property that is computed, with gradients, when it is first asked for, and is an attribute from then on."""

    def __init__(self, wrapped: Callable[[Any], Any]):
        self.wrapped = wrapped
        update_wrapper(self, wrapped)  # type: ignore[arg-type]

    def __get__(self, instance: Any, obj_type: Any = None) -> Any:
        if instance is None:
            return _LazyProperty(self.wrapped)
        with enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


class _LazyProperty(lazy_property, property):
    """What a class shows of a lazy property: a property, for tools that read documentation."""

    def __init__(self, wrapped: Callable[[Any], Any]):
        property.__init__(self, wrapped)


def _below(n: int, diag: int) -> Tensor:
    """Which elements of an (n, n) matrix lie on or below diagonal `diag`."""
    place = arange(n)
    return place < place.view(-1, 1) + (diag + 1)


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The elements on and below diagonal `diag` of (..., n, n) matrices as (..., k) vectors, row by row.

    Raises ValueError for a diagonal that the matrices do not have.
    """
    n = mat.shape[-1]
    if diag < -n or diag >= n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    return mat[..., _below(n, diag)]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """The inverse of `tril_matrix_to_vec`, with zeros elsewhere. ValueError if no matrix has as many elements."""
    size, shift = vec.shape[-1], 1 + 2 * diag
    n = (-shift + (shift**2 + 8 * size + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2
    if round(n) - n > finfo(vec.dtype).eps:
        raise ValueError(
            f"The size of last dimension is {size} which cannot be expressed as the lower triangular part of a square "
            "D x D matrix."
        )
    matrix = vec.new_zeros((*vec.shape[:-1], round(n), round(n)))
    matrix[..., _below(round(n), diag)] = vec
    return matrix
