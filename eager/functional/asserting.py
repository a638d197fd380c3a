"""`torch._check` and its like: what libraries state of their arguments, with the exception that PyTorch raises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from eager.core import dtypes
from eager.core.tensor import Tensor

OF_A_TENSOR = (
    "cond must be a bool, but got a Tensor. For tensor conditions, use torch._check_tensor_all() to assert that all "
    "elements are true."
)
FAILED = (
    "Expected cond to be True, but got False. (Could this error message be improved? If so, please report an "
    "enhancement request to PyTorch.)"
)
Message = Callable[[], object] | None


def _fail(kind: type[Exception], message: Message) -> NoReturn:
    if message is None:
        raise kind(FAILED)
    if not callable(message):
        raise TypeError("message must be a callable")
    raise kind(str(message()))


def _check_with(error_type: type[Exception], cond: bool | Tensor, message: Message = None) -> None:
    """Raise `error_type` with what `message()` gives unless `cond`. TypeError if `cond` is no bool."""
    if isinstance(cond, Tensor):
        raise TypeError(OF_A_TENSOR)
    if not isinstance(cond, bool):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if not cond:
        _fail(error_type, message)


def _check(cond: Any, message: Message = None) -> None:
    """RuntimeError unless `cond`."""
    _check_with(RuntimeError, cond, message)


def _check_index(cond: Any, message: Message = None) -> None:
    """IndexError unless `cond`."""
    _check_with(IndexError, cond, message)


def _check_value(cond: Any, message: Message = None) -> None:
    """ValueError unless `cond`."""
    _check_with(ValueError, cond, message)


def _check_type(cond: Any, message: Message = None) -> None:
    """TypeError unless `cond`."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond: Any, message: Message = None) -> None:
    """NotImplementedError unless `cond`."""
    _check_with(NotImplementedError, cond, message)


def _check_is_size(i: int, message: Message = None, *, max: int | None = None) -> None:
    """RuntimeError unless `i` is at least 0, and at most `max`."""
    _check_with(RuntimeError, bool(i >= 0 and (max is None or i <= max)), message)


def _check_tensor_all_with(error_type: type[Exception], cond: Tensor, message: Message = None) -> None:
    """Raise `error_type` unless every element of `cond`, a tensor of bool, is true."""
    if not isinstance(cond, Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype is not dtypes.bool:
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check_with(error_type, bool(cond.all()), message)


def _check_tensor_all(cond: Tensor, message: Message = None) -> None:
    """RuntimeError unless every element of `cond` is true."""
    _check_tensor_all_with(RuntimeError, cond, message)


def _assert_async(input: Tensor, assert_msg: str | None = None) -> None:
    """RuntimeError if the one element of `input` is zero. It is waited for: nothing is asynchronous here."""
    if not bool(input):
        raise RuntimeError(assert_msg or "Expected Tensor with single nonzero value, but got zero")
