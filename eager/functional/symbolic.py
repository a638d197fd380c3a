"""Numbers that may be sizes of a trace, and claims about them: `torch.sym_max`, `torch._check` and their like."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from eager.core import dtypes
from eager.core.tensor import Tensor
from graphc.ops.dims import Dim


def sym_int(a: Any) -> int:
    """`a` without its fraction. As `torch.sym_int`."""
    return math.trunc(a)


def sym_float(a: Any) -> float:
    """`a` as a float. As `torch.sym_float`."""
    return float(a)


def sym_max(a: Any, b: Any) -> Any:
    """The larger one; a float if either is. As `torch.sym_max`."""
    return _alike(max(a, b), a, b)


def sym_min(a: Any, b: Any) -> Any:
    """The smaller one; a float if either is. As `torch.sym_min`."""
    return _alike(min(a, b), a, b)


def _alike(number: Any, a: Any, b: Any) -> Any:
    return float(number) if isinstance(a, float) or isinstance(b, float) else number


def sym_not(a: Any) -> bool:
    """Whether `a` is false. As `torch.sym_not`."""
    return not a


def sym_ite(b: bool, t: Any, f: Any) -> Any:
    """`t` if `b`, else `f`. As `torch.sym_ite`."""
    return t if b else f


def sym_sum(args: Iterable[Any]) -> Any:
    """The sum. As `torch.sym_sum`."""
    return sum(args)


def sym_sqrt(a: Any) -> float:
    """The square root. As `torch.sym_sqrt`."""
    return math.sqrt(a)


class _Sizes(type):
    """The class of the classes of numbers under a trace."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return cls is SymInt and type(instance) is Dim


class SymInt(metaclass=_Sizes):
    """The sizes of a trace for any size, which are `graphc`'s Dims. For `isinstance`. As `torch.SymInt`."""


class SymFloat(metaclass=_Sizes):
    """There are none. For `isinstance`, as `torch.SymFloat`."""


class SymBool(metaclass=_Sizes):
    """There are none. For `isinstance`, as `torch.SymBool`."""


def statically_known_true(x: Any) -> bool:
    """Whether a condition holds: sizes are known here. As `torch.fx.experimental.symbolic_shapes` has it."""
    return bool(x)


guard_or_false = guard_or_true = statically_known_true


def get_proxy_mode() -> None:
    """None: no trace of PyTorch's is under way. As `torch.fx.experimental.proxy_tensor` has it."""


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
