"""Initial values with structure: diagonal, orthogonal, sparse, truncated. As in `torch.nn.init`."""

from __future__ import annotations

import math
import warnings

import numpy as np

from eager.core.grad_mode import no_grad
from eager.core.tensor import Tensor
from eager.engine.inplace import assign
from eager.engine.language import E
from eager.rng import distributions, fills
from eager.rng.functions import Generator
from eager.rng.sampling import check_float, sample, sample_like, source_of
from graphc.ops.dtypes import BOOL, INT64


def _two_dims(tensor: Tensor) -> tuple[int, int]:
    if len(tensor._d.shape) != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor._d.shape
    return rows, columns


def _fill(tensor: Tensor, values: np.ndarray, name: str) -> Tensor:
    return _assign(tensor, Tensor._wrap(np.ascontiguousarray(values, tensor._dtype())), name)


@no_grad()
def _assign(tensor: Tensor, values: Tensor, name: str) -> Tensor:
    return assign(tensor, values, name)


def eye_(tensor: Tensor) -> Tensor:
    """Fill a matrix with the identity. ValueError unless it is 2-D."""
    return _fill(tensor, np.eye(*_two_dims(tensor)), "eye")


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill a convolution's weight so that it passes its input on. ValueError unless it is 3-, 4- or 5-D."""
    shape = tuple(tensor._d.shape)
    if len(shape) not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if shape[0] % groups:
        raise ValueError("dim 0 must be divisible by groups")
    values, per_group = np.zeros(shape), shape[0] // groups
    middle = tuple(n // 2 for n in shape[2:])
    for group in range(groups):
        for d in range(min(per_group, shape[1])):
            values[(group * per_group + d, d, *middle)] = 1
    return _fill(tensor, values, "dirac")


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Generator | None = None) -> Tensor:
    """Fill with a (semi-)orthogonal matrix times `gain` (Saxe et al. 2013); dims after the first are one."""
    shape = tuple(tensor._d.shape)
    if len(shape) < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if not math.prod(shape):
        return tensor
    rows, columns = shape[0], math.prod(shape[1:])
    dtype, source = check_float(tensor._dtype(), "normal_kernel_cpu"), source_of(generator, tensor)

    def draw(wanted: tuple[int, ...]) -> np.ndarray:
        drawn = source.normal((*wanted[: -len(shape)], rows, columns), dtype)
        q, r = np.linalg.qr(drawn.swapaxes(-1, -2) if rows < columns else drawn)
        q = q * np.sign(np.diagonal(r, axis1=-2, axis2=-1))[..., None, :]
        return ((q.swapaxes(-1, -2) if rows < columns else q) * q.dtype.type(gain)).reshape(wanted)

    return _assign(tensor, sample(draw, shape, dtype, source, tensor), "orthogonal")


@no_grad()
def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None) -> Tensor:
    """Fill with normal numbers, a fraction `sparsity` of each column zero. ValueError unless it is 2-D."""
    rows, columns = _two_dims(tensor)
    zeros = math.ceil(sparsity * rows)

    def chosen(wanted: tuple[int, ...]) -> np.ndarray:
        mask = np.zeros((math.prod(wanted[:-2]) * columns, rows), BOOL)
        for column in mask:
            column[source_of(None, tensor).permutation(rows, INT64)[:zeros]] = True
        return mask.reshape(*wanted[:-2], columns, rows).swapaxes(-1, -2)

    fills.normal_(tensor, 0, std, generator=generator)
    mask = sample(chosen, (rows, columns), BOOL, source_of(None, tensor), tensor)
    return assign(tensor, E.where(mask, 0.0, tensor), "sparse")


def trunc_normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0,
                  generator: Generator | None = None) -> Tensor:  # fmt: skip
    """Fill with normal numbers of [a, b]: those rejected are drawn anew, all at a time, as PyTorch does."""
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be "
            "incorrect.",
            stacklevel=2,
        )
    dtype, source = tensor._dtype(), source_of(generator, tensor)
    normal = fills.normals_for(tensor, source, mean, std)
    draw = lambda shape: distributions.truncated_normal(source, normal, shape, dtype, mean, std, a, b)
    return _assign(tensor, sample_like(draw, tensor, dtype, source), "trunc_normal")
