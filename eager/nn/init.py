"""Initial values with structure: diagonal, orthogonal, sparse, truncated. As in `torch.nn.init`."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from eager.core.grad_mode import no_grad
from eager.core.tensor import Tensor
from eager.engine.inplace import assign
from eager.engine.language import E
from eager.rng import distributions, fills
from eager.rng.functions import Generator
from eager.rng.sampling import check_float, sample, sample_like, source_of
from graphc.ops.dtypes import BOOL, INT64

__all__ = [
    "calculate_gain", "constant", "constant_", "dirac", "dirac_", "eye", "eye_", "kaiming_normal", "kaiming_normal_",
    "kaiming_uniform", "kaiming_uniform_", "normal", "normal_", "ones_", "orthogonal", "orthogonal_", "sparse",
    "sparse_", "trunc_normal_", "uniform", "uniform_", "xavier_normal", "xavier_normal_", "xavier_uniform",
    "xavier_uniform_", "zeros_",
]  # fmt: skip


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


LINEAR_LIKE = frozenset(
    ("linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "sigmoid")
)
GAINS = {"tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 3.0 / 4}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor by which `nonlinearity` calls for larger weights; `param` is leaky_relu's slope, 0.01 by default.

    Raises ValueError for an unknown name or a slope that is no number.
    """
    if nonlinearity in LINEAR_LIKE:
        return 1
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, (int, float)):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    try:
        return GAINS[nonlinearity]
    except KeyError:
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}") from None


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    shape = tensor._d.shape
    if len(shape) < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = math.prod(shape[2:])
    return shape[1] * field, shape[0] * field


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return _calculate_fan_in_and_fan_out(tensor)[mode == "fan_out"]


@no_grad()
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill `tensor` with uniform numbers in [a, b)."""
    return tensor.uniform_(a, b, generator=generator)


@no_grad()
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill `tensor` with normal numbers."""
    return tensor.normal_(mean, std, generator=generator)


@no_grad()
def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill `tensor` with `val`."""
    return assign(tensor, E.full(shape=tensor._d.shape, value=val, dtype=tensor._dtype()), "fill")


def ones_(tensor: Tensor) -> Tensor:
    """Fill `tensor` with ones."""
    return constant_(tensor, 1)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill `tensor` with zeros."""
    return constant_(tensor, 0)


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Glorot and Bengio (2010): uniform in +-gain * sqrt(6 / (fan_in + fan_out)). ValueError below 2 dimensions."""
    bound = math.sqrt(3.0) * _glorot_std(tensor, gain)
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Glorot and Bengio (2010): normal, std gain * sqrt(2 / (fan_in + fan_out)). ValueError below 2 dimensions."""
    return normal_(tensor, 0.0, _glorot_std(tensor, gain), generator)


def _glorot_std(tensor: Tensor, gain: float) -> float:
    return gain * math.sqrt(2.0 / float(sum(_calculate_fan_in_and_fan_out(tensor))))


def kaiming_uniform_(tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu",
                     generator: Generator | None = None) -> Tensor:  # fmt: skip
    """He et al. (2015): uniform in +-gain * sqrt(3 / fan); `a` is leaky_relu's slope. Raises ValueError as PyTorch."""
    if _is_empty(tensor):
        return tensor
    bound = math.sqrt(3.0) * _he_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu",
                    generator: Generator | None = None) -> Tensor:  # fmt: skip
    """He et al. (2015): normal, std gain / sqrt(fan); `a` is leaky_relu's slope. Raises ValueError as PyTorch."""
    if _is_empty(tensor):
        return tensor
    return normal_(tensor, 0.0, _he_std(tensor, a, mode, nonlinearity), generator)


def _he_std(tensor: Tensor, a: Any, mode: str, nonlinearity: str) -> float:
    fan = _calculate_correct_fan(tensor, mode)
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def _is_empty(tensor: Tensor) -> bool:
    if 0 not in tensor._d.shape:
        return False
    warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
    return True


def _renamed(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """`function` under the name it had before those that write in place ended in an underscore."""
    new = function.__name__
    old = new.rstrip("_")

    def deprecated(*args: Any, **kwargs: Any) -> Tensor:
        warnings.warn(f"`nn.init.{old}` is now deprecated in favor of `nn.init.{new}`.", FutureWarning, stacklevel=2)
        return function(*args, **kwargs)

    deprecated.__name__ = old
    deprecated.__doc__ = f"`{new}` under its old name."
    return deprecated


constant, dirac, eye, kaiming_normal, kaiming_uniform = map(
    _renamed, (constant_, dirac_, eye_, kaiming_normal_, kaiming_uniform_)
)
normal, orthogonal, sparse, uniform, xavier_normal, xavier_uniform = map(
    _renamed, (normal_, orthogonal_, sparse_, uniform_, xavier_normal_, xavier_uniform_)
)
