"""Initial values with structure: diagonal, orthogonal, sparse, truncated. As in `torch.nn.init`."""

from __future__ import annotations

import math
import warnings

import numpy as np

from eager import random, random_fills
from eager.grad_mode import no_grad
from eager.inplace import assign
from eager.random import Generator
from eager.sampling import default_generator
from eager.tensor import Tensor

LIKELY = 0.3  # from this probability of [a, b] on, normal numbers are drawn for `trunc_normal_`, else uniform ones


def _two_dims(tensor: Tensor) -> tuple[int, int]:
    if len(tensor._d.shape) != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor._d.shape
    return rows, columns


@no_grad()
def _fill(tensor: Tensor, values: np.ndarray, name: str) -> Tensor:
    return assign(tensor, Tensor._wrap(np.ascontiguousarray(values, tensor._dtype())), name)


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
    drawn = random_fills.normal_(Tensor._wrap(np.empty((rows, columns), tensor._dtype())), generator=generator)._array()
    q, r = np.linalg.qr(drawn.T if rows < columns else drawn)
    q = q * np.sign(np.diagonal(r))
    values = (q.T if rows < columns else q) * q.dtype.type(gain)
    return _fill(tensor, values.reshape(shape), "orthogonal")


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None) -> Tensor:
    """Fill with normal numbers, a fraction `sparsity` of each column zero. ValueError unless it is 2-D."""
    rows, columns = _two_dims(tensor)
    zeros = math.ceil(sparsity * rows)
    values = random_fills.normal_(
        Tensor._wrap(np.empty((rows, columns), tensor._dtype())), 0, std, generator=generator
    )._array()
    for column in range(columns):
        values[random.randperm(rows)._array()[:zeros], column] = 0
    return _fill(tensor, values, "sparse")


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Fill with normal numbers of [a, b]: those rejected are drawn anew, all at a time, as PyTorch does."""
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be "
            "incorrect.",
            stacklevel=2,
        )
    shape, dtype = tuple(tensor._d.shape), tensor._dtype()
    source = default_generator if generator is None else generator
    low, high = (0.5 * math.erf((bound - mean) / std / math.sqrt(2.0)) for bound in (a, b))
    if high - low > LIKELY:
        candidates = lambda: source.normal(shape, dtype, mean, std)
        accepted = lambda x: (x >= dtype.type(a)) & (x <= dtype.type(b))
    else:
        peak = _log_density(np.array(max(a, min(mean, b)), np.float64), mean, std)
        candidates = lambda: source.uniform(shape, dtype, a, b)
        accepted = lambda x: np.log(source.uniform(shape, dtype)) <= _log_density(x, mean, std) - dtype.type(peak)
    values = candidates()
    pending = ~accepted(values)
    while pending.any():
        drawn = candidates()
        values = np.where(pending, drawn, values)
        pending &= ~accepted(drawn)
    return _fill(tensor, values, "trunc_normal")


def _log_density(x: np.ndarray, mean: float, std: float) -> np.ndarray:
    kind = x.dtype.type
    return np.square((x - kind(mean)) / kind(std)) * kind(-0.5)
