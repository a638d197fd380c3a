"""Pointwise functions with more than an op's operands: `alpha=`, `rounding_mode=`, bounds, weights, tolerances."""

from __future__ import annotations

from typing import Any

from eager.dispatch import apply_operator
from eager.functional.arguments import constant, shape_of, written
from eager.language import E
from eager.naming import enclosed, named, whole
from eager.state import sequence
from eager.tensor import Tensor
from graphc.ops.dtypes import COMPLEX128, FLOAT64, kind
from graphc.ops.spec import OPS

ALPHA = "For integral input tensors, argument alpha must not be a floating point number."
NO_BOUND = "torch.clamp: At least one of 'min' or 'max' must not be None"
NO_POWER = (
    "float_power() received an invalid combination of arguments - got ({}, {}), but expected one of:\n"
    " * (Tensor input, Tensor exponent, *, Tensor out = None)\n * (Number self, Tensor exponent, *, Tensor out = "
    "None)\n"
    " * (Tensor input, Number exponent, *, Tensor out = None)\n"
)
NEGATIVE_POWER = "Integers to negative integer powers are not allowed."
ROUNDING = "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{}'"


def kind_of(x: Any) -> str:
    """The kind of a tensor's or number's dtype: "b", "i" (and "u"), "f" or "c"."""
    if isinstance(x, Tensor):
        return kind(x._dtype())
    return "b" if isinstance(x, bool) else "i" if isinstance(x, int) else "c" if isinstance(x, complex) else "f"


def scaled(x: Any, alpha: Any, target: Any) -> Any:
    """`alpha * x`, for an operand that is added to `target`."""
    if kind_of(alpha) in "fc" and kind_of(target) in "iub" and kind_of(x) in "iub":
        raise RuntimeError(ALPHA)
    return E.mul(x, alpha) if isinstance(x, Tensor) else x * alpha


def add(input: Any, other: Any, *, alpha: Any = 1, out: Any = None) -> Tensor:
    """input + alpha * other. As `torch.add`."""
    if out is not None:
        return written(out, "add", add, input, other, alpha=alpha)
    return E.add(input, other) if alpha.__class__ is int and alpha == 1 else E.add(input, scaled(other, alpha, input))


def sub(input: Any, other: Any, *, alpha: Any = 1, out: Any = None) -> Tensor:
    """input - alpha * other. As `torch.sub`."""
    if out is not None:
        return written(out, "sub", sub, input, other, alpha=alpha)
    return E.sub(input, other) if alpha.__class__ is int and alpha == 1 else E.sub(input, scaled(other, alpha, input))


def positive(input: Tensor) -> Tensor:
    """`input` itself. As `torch.positive`. RuntimeError for bools."""
    if kind(input._dtype()) == "b":
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
    return apply_operator(OPS["div"], (other, self), {})


def rsub(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """other - alpha * input. As `torch.rsub`."""
    return sub(other, input, alpha=alpha)


def div(input: Any, other: Any, *, rounding_mode: str | None = None, out: Any = None) -> Tensor:
    """input / other; rounded towards zero ("trunc") or down ("floor") on request. As `torch.div`."""
    if out is not None:
        return written(out, "div", div, input, other, rounding_mode=rounding_mode)
    if rounding_mode is None:
        return E.div(input, other)
    since = next(sequence)
    if rounding_mode == "floor":
        return enclosed(E.floor_divide(input, other), "DivBackward2", since)
    if rounding_mode != "trunc":
        raise RuntimeError(ROUNDING.format(rounding_mode))
    if kind_of(input) in "fc" or kind_of(other) in "fc":
        return enclosed(E.trunc(E.div(input, other)), "DivBackward2", since)
    quotient = E.floor_divide(input, other)
    inexact = E.ne(E.mul(quotient, other), input)
    return E.add(quotient, E.logical_and(inexact, E.lt(quotient, 0)))


def power(input: Any, exponent: Any) -> Tensor:
    """input ** exponent. As `torch.pow`. RuntimeError for integers with a negative integer exponent."""
    number = exponent.__class__ is int or exponent.__class__ is float
    if number and isinstance(input, Tensor):
        base = kind(input._dtype())
        if exponent == 2 and base in "fc":
            return E.square(input)
        if base in "fc":
            return E.pow_scalar(input, exponent=exponent)
        if exponent.__class__ is int and exponent < 0 and base in "iub":
            raise RuntimeError(NEGATIVE_POWER)
    return E.pow(input, exponent)


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
    """`input` limited to [min, max], numbers or tensors; nan stays nan. As `torch.clamp`: gradient 1 at a bound."""
    shape_of(input, "clamp")
    if min is None and max is None:
        raise RuntimeError(NO_BOUND)
    result, since = input, next(sequence)
    if min is not None:
        result = E.where(E.lt(result, min), constant(min, result), result)
    if max is not None:
        result = E.where(E.gt(result, max), constant(max, result), result)
    if result._n is None:
        return result
    tensors = isinstance(min, Tensor) or isinstance(max, Tensor)
    return enclosed(result, "ClampBackward0" if tensors else "ClampBackward1", since)


def clamp_min(input: Tensor, min: Any) -> Tensor:
    """`input`, at least `min`. As `torch.clamp_min`."""
    return named(clamp(input, min), "ClampMinBackward1" if isinstance(min, Tensor) else "ClampMinBackward0")


def clamp_max(input: Tensor, max: Any) -> Tensor:
    """`input`, at most `max`. As `torch.clamp_max`."""
    return named(clamp(input, None, max), "ClampMaxBackward1" if isinstance(max, Tensor) else "ClampMaxBackward0")


@whole("AddcmulBackward0")
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
    """input + value * tensor1 * tensor2. As `torch.addcmul`."""
    return E.add(input, E.mul(tensor1 if value == 1 else E.mul(tensor1, value), tensor2))


@whole("AddcdivBackward0")
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
    """input + value * tensor1 / tensor2. As `torch.addcdiv`."""
    return E.add(input, E.div(tensor1 if value == 1 else E.mul(tensor1, value), tensor2))


def lerp(input: Tensor, end: Tensor, weight: Any) -> Tensor:
    """input + weight * (end - input), counted from the nearer end, as `torch.lerp` does."""
    since = next(sequence)
    way = E.sub(end, input)
    if not isinstance(weight, Tensor):
        near = abs(weight) < 0.5
        result = E.add(input, E.mul(way, weight)) if near else E.sub(end, E.mul(way, 1 - weight))
        return enclosed(result, "LerpBackward0", since)
    from_start = E.add(input, E.mul(weight, way))
    result = E.where(E.lt(E.abs(weight), 0.5), from_start, E.sub(end, E.mul(way, E.sub(1, weight))))
    return enclosed(result, "LerpBackward1", since)


def isclose(input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """|input - other| <= atol + rtol * |other|, elementwise, or equal. As `torch.isclose`."""
    bound = E.add(E.mul(E.abs(other), rtol), atol)
    distance = E.abs(E.sub(input, other))
    close = E.logical_or(E.eq(input, other), E.logical_and(E.le(distance, bound), E.isfinite(distance)))
    if equal_nan:
        close = E.logical_or(close, E.logical_and(E.isnan(input), E.isnan(other)))
    return close


def allclose(input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Whether `isclose` holds everywhere. As `torch.allclose`."""
    return bool(isclose(input, other, rtol, atol, equal_nan)._array().all())


def equal(input: Tensor, other: Tensor) -> bool:
    """Whether the two have the same shape and elements. As `torch.equal`."""
    if shape_of(input, "equal") != shape_of(other, "equal", "other", 2):
        return False
    return bool(E.eq(input, other)._array().all())
