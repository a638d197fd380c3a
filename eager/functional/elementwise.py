"""Pointwise functions made of the registry's ops: angles, parts of numbers, special values, the gamma family."""

from __future__ import annotations

import functools
import math
from operator import index
from typing import Any

import numpy as np

from eager import return_types
from eager.core.interpreter import on_arrays
from eager.core.state import grad_enabled, sequence
from eager.core.tensor import Tensor
from eager.engine.conversion import converted
from eager.engine.crossing import beside
from eager.engine.function import Function
from eager.engine.language import E
from eager.engine.node_names import enclosed, named, whole
from eager.functional.arguments import constant, shape_of
from eager.functional.arithmetic import clamp
from eager.functional.complexes import conj_physical, sgn
from eager.functional.naming import called
from eager.functional.scalars import at_once, common_dtype
from eager.functional.updates import in_place_of
from graphc.ops.dtypes import (
    BOOL,
    FLOAT32,
    INT64,
    default_float,
    finfo,
    is_floating,
    is_half,
    is_inexact,
    kind,
    real_of,
)
from graphc.ops.rules import torch_name


# derivatives that PyTorch refuses
class _Refused(Function):
    """A function whose gradient is an error."""

    @staticmethod
    def forward(ctx: Any, function: Any, error: Exception, *operands: Any) -> Tensor:
        ctx.error = error
        return function(*operands)

    @staticmethod
    def backward(ctx: Any, *g: Any) -> Any:
        raise ctx.error


@functools.cache
def _refusing(name: str) -> type[_Refused]:
    made = type(name, (_Refused,), {})
    made._backward_name = name
    return made


def underivable(function: Any, name: str, error: Exception, *operands: Any) -> Tensor:
    """`function(*operands)`; its node is called `name`, and going backward through it is `error`."""
    return _refusing(name).apply(function, error, *operands)


def wants_gradient(x: Any) -> bool:
    """Whether a gradient with respect to `x` may be asked for."""
    return isinstance(x, Tensor) and x._n is not None and grad_enabled()


def _tensors(name: str, input: Any, other: Any) -> None:
    shape_of(input, name)
    shape_of(other, name, "other", 2)


def _incomplete_gamma(name: str) -> Any:
    def function(input: Tensor, other: Tensor) -> Tensor:
        _tensors(name, input, other)
        op = getattr(E, name)
        if wants_gradient(input):
            error = NotImplementedError(f"the derivative for '{name}: input' is not implemented.")
            return underivable(op, f"{name.capitalize()}Backward0", error, input, other)
        return op(input, other)

    function.__name__ = function.__qualname__ = name
    side = "lower" if name == "igamma" else "upper"
    function.__doc__ = f"The regularized {side} incomplete gamma function. As `torch.{name}`: no gradient of `input`."
    return function


igamma, igammac = _incomplete_gamma("igamma"), _incomplete_gamma("igammac")


def _step(input: Tensor, values: Tensor) -> Tensor:
    return E.where(E.eq(input, 0), values, E.cast(E.gt(input, 0), dtype=input._dtype()))


def heaviside(input: Tensor, values: Tensor) -> Tensor:
    """0 below 0, 1 above, `values` at 0. As `torch.heaviside`, which has no derivative.

    RuntimeError unless both have one dtype, which is not complex.
    """
    shape_of(input, "heaviside")
    shape_of(values, "heaviside", "values", 2)
    if "c" in (input._dtype().kind, values._dtype().kind):
        raise RuntimeError("heaviside is not yet implemented for complex tensors.")
    if input._dtype() != values._dtype():
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")
    if wants_gradient(input) or wants_gradient(values):
        error = RuntimeError("derivative for aten::heaviside is not implemented")
        return underivable(_step, "NotImplemented", error, input, values)
    return _step(input, values)


def _turned(name: str, node: str, factor: float) -> Any:
    @called(name, f"Each angle times {factor:.6g}. RuntimeError for complex numbers.", "torch")
    def function(input: Tensor) -> Tensor:
        shape_of(input, name)
        if input._dtype().kind == "c":
            raise RuntimeError(f"{name} is not supported for complex tensors.")
        return named(E.mul(input, factor), node)

    return function


deg2rad = _turned("deg2rad", "Deg2RadBackward0", math.pi / 180)
rad2deg = _turned("rad2deg", "Rad2DegBackward0", 180 / math.pi)


@whole("FracBackward0")
def frac(input: Tensor) -> Tensor:
    """What is behind the point, with the sign of the number. As `torch.frac`. NotImplementedError for integers."""
    shape_of(input, "frac")
    if not is_floating(input._dtype()):
        raise NotImplementedError(f"\"frac_cpu\" not implemented for '{torch_name(input._dtype())}'")
    return E.sub(input, E.trunc(input))


def frexp(input: Tensor) -> Any:
    """Mantissas in [0.5, 1) and exponents of 2, as a named tuple. As `torch.frexp`. RuntimeError for integers."""
    shape_of(input, "frexp")
    if not is_floating(input._dtype()):
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    return return_types.frexp(*E.frexp(input))


@whole("LdexpBackward0")
def ldexp(input: Tensor, other: Tensor) -> Tensor:
    """input * 2 ** other. As `torch.ldexp`: without overflow on the way for a whole `other`."""
    _tensors("ldexp", input, other)
    if is_inexact(other._dtype()) or not is_floating(input._dtype()):
        return E.mul(input, E.pow(2.0, other))
    if other._dtype() == BOOL:
        raise NotImplementedError("\"ldexp_cpu_exp\" not implemented for 'Bool'")
    dtype = common_dtype(input, other)
    wide = FLOAT32 if is_half(dtype) else dtype
    half = E.bitwise_right_shift(converted(other, INT64), 1)
    rest = E.sub(converted(other, INT64), half)
    two = [E.pow(2.0, E.cast(part, dtype=real_of(wide))) for part in (half, rest)]  # 2 ** other alone may overflow
    return converted(E.mul(E.mul(converted(input, wide), two[0]), two[1]), dtype)


def round(input: Tensor, *, decimals: int = 0) -> Tensor:
    """The nearest multiple of 10 ** -decimals, the even one if two are. As `torch.round`."""
    shape_of(input, "round")
    if not decimals:
        return E.round(input)
    if not is_floating(input._dtype()):
        raise NotImplementedError(f"\"round_cpu\" not implemented for '{torch_name(input._dtype())}'")
    since, power = next(sequence), float(10 ** abs(decimals))
    up, down = (E.mul, E.div) if decimals > 0 else (E.div, E.mul)
    return enclosed(down(E.round(up(input, power)), power), "RoundBackward1", since)


def _pick(name: str, better: str) -> Any:
    @called(name, f"As `{'max' if name == 'fmax' else 'min'}imum`, but a number wins over nan.", "torch")
    @whole(f"{name.capitalize()}Backward0")
    def function(input: Tensor, other: Tensor) -> Tensor:
        _tensors(name, input, other)
        if "c" in (input._dtype().kind, other._dtype().kind):
            raise RuntimeError(f"{name} not implemented for complex tensors.")
        first = E.logical_or(getattr(E, better)(input, other), E.isnan(other))
        return E.where(first, input, other)

    return function


fmax, fmin = _pick("fmax", "ge"), _pick("fmin", "le")


def _replaced(x: Tensor, nan: Any, posinf: Any, neginf: Any) -> Tensor:
    limits = finfo(x._dtype())
    high = float(limits.max) if posinf is None else posinf
    low = float(limits.min) if neginf is None else neginf
    result = E.where(E.isnan(x), constant(0.0 if nan is None else nan, x), x)
    if nan in (None, 0) and posinf is None and neginf is None:
        return E.at_most(E.at_least(result, low), high)
    result = E.where(E.eq(x, math.inf), constant(high, x), result)
    return E.where(E.eq(x, -math.inf), constant(low, x), result)


@whole("NanToNumBackward0")
def nan_to_num(
    input: Tensor, nan: float | None = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    """`input` with numbers for nan and infinities: by default 0 and the largest there are. As `torch.nan_to_num`."""
    shape_of(input, "nan_to_num")
    kind = input._dtype().kind
    if kind == "c":
        return E.complex(*(_replaced(part, nan, posinf, neginf) for part in (E.real(input), E.imag(input))))
    return _replaced(input, nan, posinf, neginf) if is_inexact(input._dtype()) else E.clone(input)


def _infinite(name: str, value: float) -> Any:
    @called(name, f"Whether each element is {value}. RuntimeError for complex numbers.", "torch")
    def function(input: Tensor) -> Tensor:
        shape_of(input, name)
        if input._dtype().kind == "c":
            raise RuntimeError(f"{name} does not support complex inputs.")
        return E.eq(input, value)

    return function


isposinf, isneginf = _infinite("isposinf", math.inf), _infinite("isneginf", -math.inf)


def isreal(input: Tensor) -> Tensor:
    """Whether each element has no imaginary part. As `torch.isreal`."""
    shape = tuple(shape_of(input, "isreal"))
    if input._dtype().kind == "c":
        return E.eq(E.imag(input), 0)
    return beside(E.full(shape=shape, value=True, dtype=BOOL), input)


def isin(elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Whether each of `elements` is among `test_elements`; one of the two may be a number. As `torch.isin`."""
    if not isinstance(elements, Tensor) and not isinstance(test_elements, Tensor):
        shape_of(elements, "isin", "elements")
    for x in (elements, test_elements):
        if isinstance(x, Tensor) and kind(x._dtype()) in "bc":
            raise RuntimeError(f"Unsupported input type encountered for isin(): {torch_name(x._dtype())}")
    elements, tests = (x if isinstance(x, Tensor) else Tensor._wrap(np.array(x)) for x in (elements, test_elements))
    if on_arrays(elements):
        return Tensor._wrap(np.asarray(np.isin(elements._array(), tests._array(), assume_unique, invert)))
    flat = E.reshape(tests, shape=(math.prod(tests._d.shape),))
    hits = E.eq(E.reshape(elements, shape=(*elements._d.shape, 1)), flat)
    found = E.any(hits, axis=(len(elements._d.shape),), keepdims=False)
    return E.logical_not(found) if invert else found


def logit(input: Tensor, eps: float | None = None) -> Tensor:
    """log(input / (1 - input)), of `input` limited to [eps, 1 - eps] if that is given. As `torch.logit`."""
    shape_of(input, "logit")
    if eps is None:
        return E.logit(input)
    if is_half(input._dtype()):
        return at_once(lambda x: logit(x, eps), input)
    since = next(sequence)
    if not is_inexact(input._dtype()):
        input = E.cast(input, dtype=default_float())
    within = E.where(E.lt(input, eps), constant(eps, input), clamp(input, None, 1 - eps))
    return enclosed(E.logit(within), "LogitBackward0", since)


@whole("PolygammaBackward0")
def polygamma(n: int, input: Tensor) -> Tensor:
    """The n-th derivative of `digamma`. As `torch.polygamma`. RuntimeError for a negative n."""
    shape_of(input, "polygamma", "input", 2)
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    if n == 0:
        return E.digamma(input)
    if n == 1:
        return E.trigamma(input)
    if input._dtype().kind == "c":
        raise NotImplementedError(f"\"polygamma\" not implemented for '{torch_name(input._dtype())}'")
    if not is_inexact(input._dtype()):
        input = E.cast(input, dtype=default_float())
    factor = float((-1) ** (n + 1) * math.factorial(n))
    return at_once(lambda x: E.mul(E.special_zeta(n + 1.0, x), factor), input)


@whole("MvlgammaBackward0")
def mvlgamma(input: Tensor, p: int) -> Tensor:
    """The logarithm of the multivariate gamma function of dimension `p` >= 1. As `torch.mvlgamma`."""
    shape = tuple(shape_of(input, "mvlgamma"))
    if index(p) < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    if not is_inexact(input._dtype()):
        input = E.cast(input, dtype=default_float())
    below = Tensor._wrap(np.arange(1 - p, 1, dtype=input._dtype()) / input._dtype().type(2))
    terms = E.lgamma(E.add(E.reshape(input, shape=(*shape, 1)), below))
    return E.add(E.sum(terms, axis=(len(shape),), keepdims=False), p * (p - 1) * math.log(math.pi) / 4)


def polygamma_method(self: Tensor, n: int) -> Tensor:
    """The n-th derivative of `digamma`. As `torch.Tensor.polygamma`."""
    return polygamma(n, self)


METHODS = {
    f"{name}_": in_place_of(name, function)
    for name, function in {
        "conj_physical": conj_physical, "deg2rad": deg2rad, "frac": frac, "heaviside": heaviside, "igamma": igamma,
        "igammac": igammac, "logit": logit, "mvlgamma": mvlgamma, "nan_to_num": nan_to_num,
        "polygamma": polygamma_method, "rad2deg": rad2deg, "round": round, "sgn": sgn,
    }.items()
} | {"ldexp_": in_place_of("ldexp", ldexp, check=None)}  # fmt: skip
