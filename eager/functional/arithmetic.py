"""Pointwise functions with more than an op's operands: `alpha=`, `rounding_mode=`, bounds, weights, tolerances."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from eager.core import operands
from eager.core.state import sequence
from eager.core.tensor import Tensor
from eager.engine.dispatch import apply_reflected, with_arrays
from eager.engine.language import E, single
from eager.engine.node_names import enclosed, named, whole
from eager.functional.arguments import constant, fitting, shape_of
from eager.functional.outputs import into
from eager.functional.parsing import no_overload
from eager.functional.scalars import at_once, checked_alpha, common_dtype, kind_of, number_of, same_float, traced
from graphc.ops.dtypes import BOOL, COMPLEX128, FLOAT16, FLOAT32, FLOAT64, default_float, is_inexact, kind
from graphc.ops.rules import c_name, torch_name
from graphc.ops.spec import OPS

NO_BOUND = "torch.clamp: At least one of 'min' or 'max' must not be None"
INTEGER_ADDCDIV = (
    "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a true "
    "division of tensor1 and tensor2. The historic addcdiv behavior can be implemented as (input + value * "
    "torch.trunc(tensor1 / tensor2)).to(input.dtype) for integer inputs and as (input + value * tensor1 / tensor2) for "
    "float inputs. The future addcdiv behavior is just the latter implementation: (input + value * tensor1 / tensor2), "
    "for all dtypes."
)
NO_POWER = (
    "float_power() received an invalid combination of arguments - got ({}, {}), but expected one of:\n"
    " * (Tensor input, Tensor exponent, *, Tensor out = None)\n * (Number self, Tensor exponent, *, Tensor out = "
    "None)\n"
    " * (Tensor input, Number exponent, *, Tensor out = None)\n"
)
NEGATIVE_POWER = "Integers to negative integer powers are not allowed."
ROUNDING = "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{}'"


def _scaled_sum(op: Callable[..., Tensor], input: Any, other: Any, alpha: Any) -> Tensor:
    """op(input, alpha * other), where op is a sum or a difference."""
    since = next(sequence)
    if (alpha.__class__ is float or alpha.__class__ is int) and same_float(input, other):
        return enclosed(op(input, E.mul(other, alpha)), f"{op.__name__.capitalize()}Backward0", since)
    factor = checked_alpha(alpha, common_dtype(input, other))
    if not isinstance(other, Tensor):
        return op(input, other * factor)
    result = at_once(lambda x, y: op(x, E.mul(y, factor)), input, other)
    return enclosed(result, f"{op.__name__.capitalize()}Backward0", since)


def add(input: Any, other: Any, *, alpha: Any = 1, out: Any = None) -> Tensor:
    """input + alpha * other. As `torch.add`."""
    if out is not None:
        return into(out, "add", add, input, other, alpha=alpha)
    return E.add(input, other) if alpha.__class__ is int and alpha == 1 else _scaled_sum(E.add, input, other, alpha)


def sub(input: Any, other: Any, *, alpha: Any = 1, out: Any = None) -> Tensor:
    """input - alpha * other. As `torch.sub`."""
    if out is not None:
        return into(out, "sub", sub, input, other, alpha=alpha)
    return E.sub(input, other) if alpha.__class__ is int and alpha == 1 else _scaled_sum(E.sub, input, other, alpha)


def positive(input: Tensor) -> Tensor:
    """`input` itself. As `torch.positive`. RuntimeError for bools."""
    if kind(operands.kind_of(input)) == "b":
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


def invert(self: Tensor) -> Tensor:
    """~self. TypeError for floating point and complex tensors."""
    if kind(self._dtype()) in "fc":
        raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
    return E.bitwise_not(self)


def reflected_div(self: Tensor, other: Any) -> Any:
    """other / self. Of a number as PyTorch has it, the reciprocal times that: what backward needs is the result."""
    if isinstance(other, (int, float, complex)) and kind(self._dtype()) in "fc":
        return E.mul(E.reciprocal(self), other)
    return apply_reflected(OPS["div"], (other, self), {})


def old_reflected_div(self: Tensor, other: Any) -> Tensor:
    """other / self as the reciprocal times `other`. As `torch.Tensor.__rdiv__`, the operator of Python 2."""
    return self.reciprocal() * other


def reflected_matmul(self: Tensor, other: Any) -> Any:
    """other @ self."""
    return E.matmul(other, self) if isinstance(other, Tensor) else NotImplemented


def rsub(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """other - alpha * input. As `torch.rsub`."""
    return sub(other, input, alpha=alpha)


def div(input: Any, other: Any, *, rounding_mode: str | None = None, out: Any = None) -> Tensor:
    """input / other; rounded towards zero ("trunc") or down ("floor") on request. As `torch.div`."""
    if out is not None:
        return into(out, "div", div, input, other, rounding_mode=rounding_mode)
    if rounding_mode is None:
        return E.div(input, other)
    since = next(sequence)
    if rounding_mode == "floor":
        return enclosed(E.floor_divide(input, other), "DivBackward2", since)
    if rounding_mode != "trunc":
        raise RuntimeError(ROUNDING.format(rounding_mode))
    dtype = common_dtype(input, other)
    if dtype.kind in "bc":
        raise NotImplementedError(f"\"div_trunc_cpu\" not implemented for '{torch_name(dtype)}'")
    if is_inexact(dtype):
        return enclosed(E.trunc(E.div(input, other)), "DivBackward2", since)
    quotient = E.floor_divide(input, other)
    inexact = E.ne(E.mul(quotient, other), input)
    return E.add(quotient, E.logical_and(inexact, E.lt(quotient, 0)))


def power(input: Any, exponent: Any) -> Tensor:
    """input ** exponent. As `torch.pow`. RuntimeError for integers with a negative integer number as exponent."""
    number = type(exponent) is int or type(exponent) is float  # a traced number says that its class is one of these
    if number and isinstance(input, Tensor):
        base = kind(input._dtype())
        if exponent == 2 and base in "fc":
            return E.square(input)
        # powers that are roots, PyTorch takes as such, but of float16
        if base in "fc" and not (input._dtype() == FLOAT16 and exponent in (0.5, -0.5)):
            return E.pow_scalar(input, exponent=exponent)
        if exponent.__class__ is int and base in "iu":
            if exponent < 0:
                raise RuntimeError(NEGATIVE_POWER)
            fitting(exponent, input._dtype())
    elif type(exponent) is bool and isinstance(input, Tensor) and input._dtype() == BOOL:
        return E.clone(input) if exponent else E.full(shape=tuple(input._d.shape), value=True, dtype=BOOL)
    elif (
        isinstance(exponent, Tensor)
        and exponent._d.dtype is not FLOAT32
        and kind(exponent._dtype()) in "iub"
        and kind_of(input) in "iub"
    ):
        return E.integer_pow(input, exponent)
    return E.pow(input, exponent)


def power_operator(self: Tensor, other: Any) -> Tensor:
    """self ** other, which may be an ndarray."""
    return power(*(with_arrays(OPS["pow"], (self, other)) if isinstance(other, np.ndarray) else (self, other)))


def reflected_power(self: Tensor, other: Any) -> Any:
    """other ** self."""
    if other.__class__ is float or kind(self._dtype()) not in "iub" or kind_of(other) not in "iub":
        return _reflected_float_power(self, other)
    return E.integer_pow(other, self)


_reflected_float_power = single.operator(OPS["pow"], reflected=True)
power.__name__ = "pow"


def float_power(input: Any, exponent: Any) -> Tensor:
    """input ** exponent, computed in float64 or complex128. As `torch.float_power`."""
    if not isinstance(input, Tensor) and not isinstance(exponent, Tensor):
        raise TypeError(NO_POWER.format(type(input).__name__, type(exponent).__name__))
    complex_too = "c" in (kind_of(input), kind_of(exponent))
    wide, number = (COMPLEX128, complex) if complex_too else (FLOAT64, float)
    base, up = (E.cast(x, dtype=wide) if isinstance(x, Tensor) else number(x) for x in (input, exponent))
    return power(base, up)


def clamp(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """`input` limited to [min, max], numbers or tensors; nan gives nan. As `torch.clamp`: gradient 1 at a bound.

    RuntimeError without bounds, and for a number that the dtype does not hold; NotImplementedError for complex numbers.
    """
    if not isinstance(input, Tensor):
        raise no_overload("clamp", [x for x in (input, min, max) if x is not None])
    if min is None and max is None:
        raise RuntimeError(NO_BOUND)
    if input._dtype().kind not in "f":
        _check_bounds(input, min, max)
    result, since = input, next(sequence)
    for bound, beyond, limit in ((min, E.lt, E.at_least), (max, E.gt, E.at_most)):
        if bound is None:
            continue
        if (number := traced(bound)) is None:
            result = limit(result, bound)
        else:
            passed = E.logical_or(beyond(result, bound), E.isnan(number))
            result = E.where(passed, constant(bound, result), result)
    if result._n is None:
        return result
    tensors = isinstance(min, Tensor) or isinstance(max, Tensor)
    return enclosed(result, "ClampBackward0" if tensors else "ClampBackward1", since)


def _check_bounds(input: Tensor, *bounds: Any) -> None:
    """Raise PyTorch's error for complex numbers, and for bounds that the dtype of integers does not hold."""
    dtype = common_dtype(input, *(x for x in bounds if x is not None))
    if dtype.kind == "c":
        raise NotImplementedError("clamp is not supported for complex types")
    for bound in bounds:
        if bound is not None and not isinstance(bound, Tensor):
            fitting(bound, dtype)


def _check_first(name: str, input: Any, other: Any) -> None:
    if not isinstance(input, Tensor):
        raise no_overload(name, (input, other))


def clamp_min(input: Tensor, min: Any) -> Tensor:
    """`input`, at least `min`. As `torch.clamp_min`."""
    _check_first("clamp_min", input, min)
    return named(clamp(input, min), "ClampMinBackward1" if isinstance(min, Tensor) else "ClampMinBackward0")


def clamp_max(input: Tensor, max: Any) -> Tensor:
    """`input`, at most `max`. As `torch.clamp_max`."""
    _check_first("clamp_max", input, max)
    return named(clamp(input, None, max), "ClampMaxBackward1" if isinstance(max, Tensor) else "ClampMaxBackward0")


@whole("AddcmulBackward0")
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
    """input + value * tensor1 * tensor2. As `torch.addcmul`."""
    if (value.__class__ is int or value.__class__ is float) and same_float(input, tensor1, tensor2):
        return E.add(input, E.mul(tensor1 if value == 1 else E.mul(tensor1, value), tensor2))
    dtype = _three("addcmul", input, tensor1, tensor2)
    if dtype == BOOL:
        raise NotImplementedError("\"addcmul_cpu_out\" not implemented for 'Bool'")
    factor = number_of(value, dtype)
    return at_once(lambda x, y, z: E.add(x, E.mul(y if factor == 1 else E.mul(y, factor), z)), input, tensor1, tensor2)


@whole("AddcdivBackward0")
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
    """input + value * tensor1 / tensor2. As `torch.addcdiv`. RuntimeError for a quotient of integers."""
    if (value.__class__ is int or value.__class__ is float) and same_float(input, tensor1, tensor2):
        return E.add(input, E.div(tensor1 if value == 1 else E.mul(tensor1, value), tensor2))
    dtype = _three("addcdiv", input, tensor1, tensor2)
    if kind(tensor1._dtype()) in "iub" and kind(tensor2._dtype()) in "iub":
        raise RuntimeError(INTEGER_ADDCDIV)
    factor = number_of(value, dtype)
    return at_once(lambda x, y, z: E.add(x, E.div(y if factor == 1 else E.mul(y, factor), z)), input, tensor1, tensor2)


def _three(name: str, input: Tensor, tensor1: Tensor, tensor2: Tensor) -> np.dtype:
    """The common dtype of three tensors. TypeError if one is none."""
    for position, (argument, x) in enumerate((("input", input), ("tensor1", tensor1), ("tensor2", tensor2)), 1):
        shape_of(x, name, argument, position)
    return common_dtype(input, tensor1, tensor2)


def lerp(input: Tensor, end: Tensor, weight: Any) -> Tensor:
    """input + weight * (end - input), counted from the nearer end, as `torch.lerp` does.

    RuntimeError unless the tensors have one dtype, NotImplementedError for integers.
    """
    if (weight.__class__ is float or weight.__class__ is int) and same_float(input, end):
        since = next(sequence)
        return enclosed(_lerp_by(weight)(input, end), "LerpBackward0", since)
    if not isinstance(input, Tensor) or not isinstance(end, Tensor):
        raise no_overload("lerp", (input, end, weight))
    since, dtype, by_number = next(sequence), input._dtype(), not isinstance(weight, Tensor)
    check_end(dtype, end)
    if not by_number and weight._d.shape:
        check_end(dtype, weight, "weight")
    if not is_inexact(dtype):
        kernel = f"lerp_kernel_{'scalar' if by_number else 'tensor'}"
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{torch_name(dtype)}'")
    if by_number:
        return enclosed(at_once(_lerp_by(number_of(weight, dtype)), input, end), "LerpBackward0", since)
    return enclosed(at_once(_lerp_by_tensor, input, end, weight), "LerpBackward1", since)


def check_end(dtype: np.dtype, end: Tensor, name: str = "end") -> None:
    """Raise PyTorch's RuntimeError unless `end` can be approached from an array of a dtype."""
    if end._dtype() != dtype:
        raise RuntimeError(f"expected dtype {c_name(dtype)} for `{name}` but got dtype {c_name(end._dtype())}")


def _lerp_by(weight: Any) -> Callable[[Tensor, Tensor], Tensor]:
    if abs(weight) < 0.5:
        return lambda input, end: E.add(input, E.mul(E.sub(end, input), weight))
    return lambda input, end: E.sub(end, E.mul(E.sub(end, input), 1 - weight))


def _lerp_by_tensor(input: Tensor, end: Tensor, weight: Tensor) -> Tensor:
    way = E.sub(end, input)
    from_end = E.sub(end, E.mul(way, E.sub(1, weight)))
    return E.where(E.lt(E.abs(weight), 0.5), E.add(input, E.mul(weight, way)), from_end)


def isclose(input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """|input - other| <= atol + |rtol * other|, elementwise, or equal. As `torch.isclose`.

    RuntimeError for different dtypes and for negative tolerances.
    """
    shape_of(input, "isclose")
    shape_of(other, "isclose", "other", 2)
    dtype = input._dtype()
    if dtype != other._dtype():
        raise RuntimeError(f"{torch_name(dtype)} did not match {torch_name(other._dtype())}")
    for name, bound in (("rtol", rtol), ("atol", atol)):
        if bound < 0:
            raise RuntimeError(f"{name} must be greater than or equal to zero, but got {bound:g}")
    close = E.eq(input, other)
    if equal_nan and is_inexact(dtype):
        close = E.logical_or(close, E.logical_and(E.isnan(input), E.isnan(other)))
    if rtol == 0 and atol == 0:
        return close
    size = other if is_inexact(dtype) else E.cast(other, dtype=default_float())
    bound = E.add(E.abs(E.mul(size, float(rtol))), float(atol))
    # integers are compared with what is rounded to a float, but subtracted as they are, except from bools
    distance = E.abs(E.sub(E.cast(input, dtype=default_float()) if dtype == BOOL else input, size))
    return E.logical_or(close, E.logical_and(E.isfinite(distance), E.le(distance, bound)))


def allclose(input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Whether `isclose` holds everywhere. As `torch.allclose`."""
    return bool(isclose(input, other, rtol, atol, equal_nan)._read().all())


def equal(input: Tensor, other: Tensor) -> bool:
    """Whether the two have the same shape and elements. As `torch.equal`."""
    if shape_of(input, "equal") != shape_of(other, "equal", "other", 2):
        return False
    return bool(E.eq(input, other)._read().all())
