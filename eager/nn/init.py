"""Initial values of parameters. As `torch.nn.init`: same names, same formulas, same order of random draws."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

from eager.core.grad_mode import no_grad
from eager.core.tensor import Tensor
from eager.engine.inplace import assign
from eager.engine.language import E
from eager.nn.initializers import dirac_, eye_, orthogonal_, sparse_, trunc_normal_
from eager.rng.functions import Generator

__all__ = [
    "calculate_gain", "constant", "constant_", "dirac", "dirac_", "eye", "eye_", "kaiming_normal", "kaiming_normal_",
    "kaiming_uniform", "kaiming_uniform_", "normal", "normal_", "ones_", "orthogonal", "orthogonal_", "sparse",
    "sparse_", "trunc_normal_", "uniform", "uniform_", "xavier_normal", "xavier_normal_", "xavier_uniform",
    "xavier_uniform_", "zeros_",
]  # fmt: skip

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
