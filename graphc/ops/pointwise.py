"""Pointwise ops with floating results: arithmetic, powers, exponentials, trigonometry, activations."""

from __future__ import annotations

import builtins
import math

import numpy as np

from graphc.ops import blocks, choosing, parts, powers, scalars
from graphc.ops.dtypes import FLOAT32, FLOAT64, is_inexact
from graphc.ops.index_maps import itself
from graphc.ops.lens import Lens
from graphc.ops.references import Each
from graphc.ops.rounding import ARITHMETIC, EXACT, Rounding, exact_product, exact_sum, of_complex
from graphc.ops.rules import (
    accepting,
    cast_rule,
    integral,
    modulus,
    pointwise,
    pointwise_float,
    pointwise_floats_only,
    pointwise_no_bool,
    pointwise_number,
    refusing_bool,
    refusing_complex,
    same,
)
from graphc.ops.samples import Sample
from graphc.ops.spec import Check, Kink, Trait, op

COMMUTATIVE, BILINEAR, LINEAR, MOVES = Trait.COMMUTATIVE, Trait.BILINEAR, Trait.LINEAR, Trait.MOVES

add = op("add", "input other", doc="input + other.", impl="add", rule=pointwise, traits=COMMUTATIVE, ref="operator.add",
         lifting=lambda N, x, y: N.add(x, y),
         rounding=ARITHMETIC._replace(exact=exact_sum),
         lone_term=lambda avals, result, params, is_zero: is_zero(0, 1) or is_zero(1, 1),
         vjp=dict(input=lambda F, g: g, other=lambda F, g: g))  # fmt: skip
sub = op(
    "sub", "input other", doc="input - other.", impl="subtract", ref="operator.sub", overloads={"sf": "RsubBackward1"},
    lifting=lambda N, x, y: N.sub(x, y),
    rounding=ARITHMETIC._replace(exact=lambda r, x, y: exact_sum(r, x, -y)),
    lone_term=lambda avals, result, params, is_zero: is_zero(1, -1),
    rule=refusing_bool("Subtraction, the `-` operator, with two bool tensors is not supported. "
                       "Use the `^` or `logical_xor()` operator instead.", builtins.all,
                       "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to "
                       "invert a mask, use the `~` or `logical_not()` operator instead."),
    vjp=dict(input=lambda F, g: g, other=lambda F, g: -g),
)  # fmt: skip
mul = op("mul", "input other", doc="input * other.",
         impl="multiply", rule=pointwise, traits=COMMUTATIVE | BILINEAR, ref="operator.mul",
         lifting=lambda N, x, y: N.mul(x, y),
         rounding=ARITHMETIC._replace(exact=exact_product),
         vjp=dict(input=lambda F, g, other: g * other, other=lambda F, g, input: g * input))  # fmt: skip
div = op("div", "input other", doc="input / other.",
         impl="true_divide", rule=pointwise_float, ref=Each(scalars.quotient),
         overloads={"sf": "MulBackward0"}, rounding=ARITHMETIC._replace(denominator=lambda x, y: y),
         domain=((-2.0, 2.0), (0.5, 3.0)), lifting=lambda N, x, y: N.mul(x, N.reciprocal(y)),
         vjp=dict(input=lambda F, g, other: g / other,
                  other=lambda F, g, input, other: -g * ((input / other) / other)))  # fmt: skip
neg = op(
    "neg", "input", doc="-input.", impl="negative", traits=LINEAR | MOVES, ref="operator.neg",
    lifting=lambda N, x: N.scale(x, -1), vjp=dict(input=lambda F, g: -g),
    rule=refusing_bool(
        "Negation, the `-` operator, on a bool tensor is not supported. "
        "If you are trying to invert a mask, use the `~` or `logical_not()` operator instead."
    ),
)  # fmt: skip
positive = op("positive", "input", doc="+input.",
              impl="positive", rule=pointwise_no_bool, traits=LINEAR | MOVES, ref="operator.pos",
              lifting=lambda N, x: x,
              vjp=dict(input=lambda F, g: g))  # fmt: skip
abs = op(
    "abs", "input", doc="The absolute value; of a complex number, its modulus.", impl="abs", rule=modulus,
    traits=Trait.IDEMPOTENT | Trait.EVEN, rounding=Rounding(of_complex(2.0)), domain=(0.2, 3.0),
    ref=Each(scalars.absolute), slopes=dict(input=Each(scalars.absolute_slope)), image=(0, math.inf),
    kinks=(Kink((0.0,), (0.0,)),), vjp=dict(input=lambda F, g, input: g * F.sgn(input)),
)  # fmt: skip


def _sign(xp, x):
    # sign(nan) is 0 and sign(-0.0) is 0 in PyTorch; NumPy and XLA give nan and -0. Of a complex z: z / |z|
    if x.dtype.kind == "c":
        return xp.where(x == 0, 0, x / xp.where(x == 0, 1, xp.abs(x))).astype(x.dtype)
    return (x > 0).astype(x.dtype) - (x < 0).astype(x.dtype) if x.dtype != bool else xp.array(x)


def _sign_vjp(F, g, r, input, input_dtype):
    if input_dtype.kind != "c":
        return g * 0
    # what is left of g beside the direction r of z, over |z|
    size = F.abs(input)
    along = F.cast(F.real(F.conj(g) * r), dtype=input_dtype)
    return F.where(size == 0, 0, (g - r * along) / F.where(size == 0, 1, size))


SIGN = "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead."
sign = op("sign", "input", doc="-1, 0 or 1: the sign of each element.",
          impl=_sign, traits=Trait.ORDERS, rounding=EXACT, domain=(0.2, 3.0),
          rule=refusing_complex(pointwise, SIGN),
          ref=Each(scalars.sign), slopes=dict(input=Each(scalars.NOTHING)),
          vjp=dict(input=lambda F, g: g * 0))  # fmt: skip
sgn = op("sgn", "input", doc="The sign; of a complex number z, z / |z|, and 0 of 0.",
         impl=_sign, rule=pointwise._replace(holomorphic=False), domain=(0.2, 3.0),
         rounding=Rounding(of_complex(2.0)),
         ref=Each(scalars.sign), slopes=dict(input=Each(scalars.NOTHING)), vjp=dict(input=_sign_vjp))  # fmt: skip


def _nonzero_divisor(xp, x, y):
    return is_inexact(y.dtype) or (x is not None and x.size == 0) or xp.all(y != 0)


ZERO_DIVISION = Check(_nonzero_divisor, RuntimeError, "ZeroDivisionError", whole_only=True, about=(1,))

floor_divide = op("floor_divide", "input other", doc="input / other, rounded down.",
                  impl="floor_divide", numpy=blocks.floor_divide, rule=pointwise_no_bool, check=ZERO_DIVISION,
                  cpu_name="div_floor_cpu",
                  traits=Trait.ORDERS | Trait.BRANCHES, vjp=dict(input=lambda F, g: g * 0, other=lambda F, g: g * 0),
                  domain=((-3.0, 3.0), (0.7, 1.9)), ref=Each(scalars.floor_divide),
                  slopes=dict(input=Each(scalars.NOTHING), other=Each(scalars.NOTHING)))  # fmt: skip


def _remainder(xp, x, y):
    # the sign of the divisor, but a zero keeps the sign of the dividend (NumPy gives it the divisor's)
    r = xp.fmod(x, y)
    return xp.where((r != 0) & ((y < 0) != (r < 0)), r + y, r)


remainder = op(
    "remainder", "input other", doc="input modulo other, with the sign of `other`.", impl=_remainder,
    numpy=blocks.remainder, rule=pointwise_no_bool._replace(scalars="one"), traits=Trait.ORDERS | Trait.BRANCHES,
    rounding=ARITHMETIC, label="RemainderBackward1", overloads={"fs": "RemainderBackward0"}, check=ZERO_DIVISION,
    domain=((0.1, 0.9), (1.1, 1.9)), ref=Each(scalars.remainder),
    slopes=dict(input=Each(scalars.given), other=Each(scalars.remainder_slope)),
    vjp=dict(input=lambda F, g: g, other=lambda F, g, input, other: -g * F.floor_divide(input, other)),
)  # fmt: skip


def _pow_base(F, g, input, other):
    # 0 where the exponent is 0, as PyTorch has it: 0 * 0**-1 would be nan
    return F.where(other == 0, 0, g * (other * input ** (other - 1)))


def _pow_exponent(F, g, r, input, other):
    # 0 where base is 0 and exponent >= 0, that is r finite: r * log(0) would be nan
    return F.where((input == 0) & F.isfinite(r), 0, g * (r * F.log(input)))


def _whole_power(xp, x, y):
    return is_inexact(y.dtype) or xp.all(y >= 0)


def _np_power(x, y):
    if np.size(y) == 1 or not any(y.strides):
        exponent = np.ravel(y)[0].item() if np.size(y) else 1
        n = powers.whole(exponent)
        if n is not None and x.dtype.kind in "fiu" and x.dtype == np.result_type(x, y):
            return powers.product(np.broadcast_to(x, np.broadcast_shapes(np.shape(x), np.shape(y))), n)
        half = powers.halves(exponent)
        if half is not None and x.dtype.kind == "f" and x.dtype == np.result_type(x, y):
            return powers.product_and_root(np.broadcast_to(x, np.broadcast_shapes(np.shape(x), np.shape(y))), half)
        if exponent == 0.5:  # NumPy takes square roots: -0 and nan for -0 and -inf
            result = np.power(x, y)
            if result.dtype.kind == "f":
                result = np.where(x == 0, np.abs(result), np.where(np.isneginf(x), np.abs(x), result))
            return result
    return np.power(x, y)


def _power_terms(r, x, y):
    return powers.roundings(y) / 4 * np.abs(r)  # each is half an ULP, on top of the two of `pow`


pow = op(
    "pow", "input other", doc="input to the power `other`.", impl="power", numpy=_np_power,
    rule=pointwise_no_bool._replace(scalars="one"),
    rounding=Rounding(2.0, terms=_power_terms, denominator=lambda x, y: np.where(y < 0, x, 1.0)), cpu_name="pow",
    check=Check(_whole_power, RuntimeError, "Integers to negative integer powers are not allowed.", whole_only=True),
    label="PowBackward1", overloads={"fs": "PowBackward0", "sf": "PowBackward2"}, domain=((0.5, 2.0), (-2.0, 2.0)),
    ref=Each(scalars.power),
    slopes=dict(input=Each(scalars.power_slope_of_base), other=Each(scalars.power_slope_of_exponent)),
    kinks=(Kink((0.0, 0.0), (0.0, 0.0)),), vjp=dict(input=_pow_base, other=_pow_exponent),
)  # fmt: skip


def _integer_pow(xp, x, y):
    # to a negative power only 1 and -1 have integers; NumPy raises an error
    negative = y < 0
    reciprocal = xp.where(x == 1, 1, xp.where(x == -1, 1 - 2 * (y & 1), 0))
    return xp.where(negative, reciprocal, xp.power(x, xp.where(negative, 0, y))).astype(x.dtype)


integer_pow = op("integer_pow", "input exponent", doc="input to the power of a whole number.",
                 impl=_integer_pow, label="PowBackward1", domain=(0, 4),
                 cpu_name="pow", rule=integral._replace(accepts=pointwise_no_bool.accepts),
                 ref=Each(scalars.power))  # fmt: skip


def _pow_scalar_vjp(F, g, input, exponent, input_shape, input_dtype):
    if exponent == 0:  # 0, whatever g and input are, as PyTorch has it
        return F.full(shape=input_shape, value=0, dtype=input_dtype)
    return g * (exponent * F.pow_scalar(input, exponent=exponent - 1))


# Powers that PyTorch computes by other functions: of -0 and -inf they are not what `pow` gives.
_OTHERS = {
    0.5: (lambda F, x: F.sqrt(x), lambda xp, x: xp.sqrt(x)),
    -0.5: (lambda F, x: F.rsqrt(x), lambda xp, x: 1 / xp.sqrt(x)),
    -1: (lambda F, x: F.reciprocal(x), lambda xp, x: 1 / x),
}


def _scalar_power(F, x, exponent):
    other = _OTHERS.get(exponent)
    return F.pow(x, exponent) if other is None else other[0](F, x)


def _scalar_power_kernel(xp, x, exponent):
    other = _OTHERS.get(exponent)
    if other is not None:
        return other[1](xp, x)
    if x.dtype.kind == "f":
        if (n := powers.whole(exponent)) is not None:
            return powers.product(x, n)
        if (half := powers.halves(exponent)) is not None:
            return powers.product_and_root(x, half)
    return xp.power(x, exponent)


# a float array to the power of a Python number, in its own dtype
pow_scalar = op(
    "pow_scalar", "input", params={"exponent": 1}, impl=_scalar_power_kernel, label="Pow",
    rule=same._replace(promote="number"),
    definition=_scalar_power, domain=(0.5, 2.0), traits=Trait.HOLOMORPHIC,
    rounding=Rounding(2.0, terms=lambda r, x, exponent: _power_terms(r, x, np.asarray(exponent))),
    ref=Each(scalars.power_to_number),
    samples=(Sample((2, 3), exponent=3), *(Sample((3,), exponent=n) for n in _OTHERS), Sample((2,), exponent=0)),
    vjp=dict(input=_pow_scalar_vjp),
)  # fmt: skip
square = op("square", "input", doc="input * input.",
            impl="square", rule=pointwise_number, traits=Trait.EVEN, label="Pow",
            ref=Each(lambda x: x * x),
            lifting=lambda N, x: N.mul(x, x),
            image=lambda params, x: (max(x[0], -x[1], 0) ** 2, max(x[1], -x[0]) ** 2),
            rounding=ARITHMETIC._replace(exact=lambda r, x: exact_product(r, x, x)),
            vjp=dict(input=lambda F, g, input: g * (2 * input)))  # fmt: skip
sqrt = op("sqrt", "input", doc="The square root.",
          impl="sqrt", rule=pointwise_float, domain=(0.2, 4.0), ref=Each(scalars.square_root),
          rounding=ARITHMETIC, image=(0, math.inf),
          vjp=dict(input=lambda F, g, r: g / (2 * r)))  # fmt: skip
rsqrt = op("rsqrt", "input", doc="1 / sqrt(input).",
           impl=lambda xp, x: 1 / xp.sqrt(x), rule=pointwise_float, domain=(0.2, 4.0),
           rounding=Rounding(2.0, denominator=lambda x: x),
           ref=Each(scalars.reciprocal_root), vjp=dict(input=lambda F, g, r: g * (-0.5 * (r * r * r))))  # fmt: skip
reciprocal = op("reciprocal", "input", doc="1 / input.",
                impl=lambda xp, x: 1 / x, rule=pointwise_float, domain=(0.4, 3.0),
                rounding=ARITHMETIC._replace(denominator=lambda x: x),
                ref=Each(scalars.reciprocal), vjp=dict(input=lambda F, g, r: -g * (r * r)))  # fmt: skip

exp = op("exp", "input", doc="e to the power `input`.",
         impl="exp", rule=pointwise_float, rounding=Rounding(2.0), ref="math.exp",
         image=(0, math.inf),
         vjp=dict(input=lambda F, g, r: g * r))  # fmt: skip
exp2 = op("exp2", "input", doc="2 to the power `input`.",
          impl="exp2", rule=pointwise_float, ref=Each(scalars.power_of_two),
          vjp=dict(input=lambda F, g, r: g * (r * 0.6931471805599453)))  # fmt: skip
expm1 = op("expm1", "input", doc="exp(input) - 1, exact near 0.",
           impl="expm1", rule=pointwise_float, rounding=Rounding(6.0), ref="math.expm1",
           vjp=dict(input=lambda F, g, r: g * (r + 1)))  # fmt: skip
log = op("log", "input", doc="The natural logarithm.",
         impl="log", rule=pointwise_float, rounding=Rounding(3.0), domain=(0.2, 4.0), ref="math.log",
         vjp=dict(input=lambda F, g, input: g / input))  # fmt: skip
log2 = op("log2", "input", doc="The logarithm to base 2.",
          impl="log2", rule=pointwise_float, domain=(0.2, 4.0), ref="math.log2",
          vjp=dict(input=lambda F, g, input: g / (input * 0.6931471805599453)))  # fmt: skip
log10 = op("log10", "input", doc="The logarithm to base 10.",
           impl="log10", rule=pointwise_float, domain=(0.2, 4.0), ref="math.log10",
           vjp=dict(input=lambda F, g, input: g / (input * 2.302585092994046)))  # fmt: skip
log1p = op("log1p", "input", doc="log(1 + input), exact near 0.",
           impl="log1p", label="Log1P", rule=pointwise_float, domain=(-0.8, 4.0), ref="math.log1p",
           rounding=Rounding(3.0),
           vjp=dict(input=lambda F, g, input: g / (1 + input)))  # fmt: skip

sin = op("sin", "input", doc="The sine of radians.",
         impl="sin", rule=pointwise_float, rounding=Rounding(1.0), ref="math.sin", traits=Trait.BRANCHES,
         vjp=dict(input=lambda F, g, input: g * F.cos(input)))  # fmt: skip
cos = op("cos", "input", doc="The cosine of radians.",
         impl="cos", rule=pointwise_float, rounding=Rounding(1.0), ref="math.cos", traits=Trait.BRANCHES,
         vjp=dict(input=lambda F, g, input: -g * F.sin(input)))  # fmt: skip
tan = op("tan", "input", doc="The tangent of radians.",
         impl="tan", rule=pointwise_float, domain=(-1.2, 1.2), ref="math.tan", traits=Trait.BRANCHES,
         vjp=dict(input=lambda F, g, r: g * (1 + r * r)))  # fmt: skip
asin = op("asin", "input", doc="The inverse sine, in [-pi/2, pi/2].",
          impl="arcsin", rule=pointwise_float, domain=(-0.8, 0.8), ref="math.asin",
          vjp=dict(input=lambda F, g, input: g * F.rsqrt(1 - input * input)))  # fmt: skip
acos = op("acos", "input", doc="The inverse cosine, in [0, pi].",
          impl="arccos", rule=pointwise_float, domain=(-0.8, 0.8), ref="math.acos",
          vjp=dict(input=lambda F, g, input: -g * F.rsqrt(1 - input * input)))  # fmt: skip
atan = op("atan", "input", doc="The inverse tangent, in [-pi/2, pi/2].",
          impl="arctan", rule=pointwise_float, ref="math.atan",
          vjp=dict(input=lambda F, g, input: g / (1 + input * input)))  # fmt: skip


def _atan2_vjp(sign):
    def scale(F, other_side, input, other):
        norm = input * input + other * other
        return F.where(norm == 0, 0, sign * other_side / norm)  # PyTorch: 0 at the origin

    if sign > 0:
        return lambda F, g, input, other: g * scale(F, other, input, other)
    return lambda F, g, input, other: g * scale(F, input, input, other)


atan2 = op("atan2", "input other", doc="The angle of the point (other, input), in [-pi, pi].",
           impl="arctan2", rule=pointwise_float._replace(scalars=""),
           traits=Trait.ORDERS, domain=((-2.0, 2.0), (0.3, 2.0)), rounding=Rounding(3.0), ref=Each(scalars.angle_of),
           slopes=dict(input=Each(scalars.angle_slope(0)), other=Each(scalars.angle_slope(1))),
           kinks=(Kink((0.0, 0.0), (0.0, 0.0)),),
           vjp=dict(input=_atan2_vjp(1), other=_atan2_vjp(-1)))  # fmt: skip
sinh = op("sinh", "input", doc="The hyperbolic sine.", impl="sinh", rule=pointwise_float, ref="math.sinh",
          vjp=dict(input=lambda F, g, input: g * F.cosh(input)))  # fmt: skip
cosh = op("cosh", "input", doc="The hyperbolic cosine.",
          impl="cosh", rule=pointwise_float, traits=Trait.EVEN, ref="math.cosh",
          vjp=dict(input=lambda F, g, input: g * F.sinh(input)))  # fmt: skip
tanh = op("tanh", "input", doc="The hyperbolic tangent.",
          impl="tanh", rule=pointwise_float, rounding=Rounding(5.0), ref="math.tanh", image=(-1, 1),
          vjp=dict(input=lambda F, g, r: g * (1 - r * r)))  # fmt: skip

TWO_OVER_SQRT_PI = 1.1283791670955126


_ONE = {
    dtype: np.ones((), dtype) for dtype in (FLOAT32, FLOAT64)
}  # NumPy takes as long to convert a number as to add it


def _sigmoid(x: np.ndarray) -> np.ndarray:
    if x.dtype.kind == "c":  # exp(-x) may overflow in both parts, and their quotient is nan
        return 0.5 * np.tanh(0.5 * x) + 0.5
    r = np.negative(x, out=...)
    np.exp(r, r)  # overflow gives 0 in the end; (1 + tanh(x / 2)) / 2 has no digit left where the result is small
    np.add(r, _ONE.get(r.dtype, 1), r)
    return np.reciprocal(r, r)


erf = op("erf", "input", doc="The error function.",
         impl="special.erf", numpy=blocks.erf, rule=pointwise_float, traits=Trait.ORDERS, ref="math.erf",
         rounding=Rounding(5.0), cpu_name="erf_vml_cpu",
         vjp=dict(input=lambda F, g, input: g * (TWO_OVER_SQRT_PI * F.exp(-(input * input)))))  # fmt: skip
sigmoid = op("sigmoid", "input", doc="1 / (1 + exp(-input)).",
             impl="special.expit", numpy=_sigmoid, rule=pointwise_float,
             rounding=Rounding(4.0), ref=Each(scalars.logistic), image=(0, 1),
             vjp=dict(input=lambda F, g, r: g * (r * (1 - r))))  # fmt: skip
softplus = op(
    "softplus", "input", doc="log(1 + exp(input)).", impl=lambda xp, x: xp.logaddexp(x, 0), numpy=blocks.softplus,
    image=(0, math.inf),
    rule=pointwise_floats_only._replace(accepts=accepting("f", "\"softplus_cpu\" not implemented for '{dtype}'")),
    rounding=Rounding(6.0), ref=Each(scalars.softplus), vjp=dict(input=lambda F, g, input: g * F.sigmoid(input)),
)  # fmt: skip
# x < 0 is false for nan and -0.0: both pass through, as in PyTorch; r is not negative, and nan passes its gradient
relu = op("relu", "input", doc="max(input, 0).", impl=lambda xp, x: xp.where(x < 0, xp.zeros_like(x), x),
          rule=refusing_bool("Boolean inputs not supported for relu"),
          numpy=lambda x: choosing.at_least(x, np.zeros((), x.dtype)), traits=Trait.IDEMPOTENT | Trait.ORDERS | MOVES,
          domain=(0.1, 2.0), kinks=(Kink((0.0,), (0.0,)),), ref=Each(scalars.rectified),
          image=lambda params, x: (max(x[0], 0), max(x[1], 0)),
          slopes=dict(input=Each(scalars.rectified_slope)),
          vjp=dict(input=lambda F, g, r: g * (r != 0)))  # fmt: skip


def _cast(xp, x, dtype):
    # a complex number that becomes real loses its imaginary part
    return (x.real if x.dtype.kind == "c" and dtype.kind not in "cb" else x).astype(dtype)


cast = op("cast", "input", params={"dtype": None}, impl=_cast,
          numpy=lambda x, dtype: x.astype(dtype) if x.dtype.kind != "c" else _cast(np, x, dtype),
          rule=cast_rule, label="ToCopy", ref=Each(scalars.converted),
          rounding=ARITHMETIC._replace(exact=lambda r, x, dtype: True),
          vjp=dict(input=lambda F, g, input_dtype: F.cast(g, dtype=input_dtype)))  # fmt: skip
stop_gradient = op(
    "stop_gradient", "input", parts=parts.POINTWISE, impl=lambda xp, x: x, rule=same,
    traits=Trait.VIEW | Trait.IDEMPOTENT | MOVES | Trait.IDENTITY, lens=Lens(lambda F, whole, part: part),
    label="Detach", ref=itself, slopes=dict(input=Each(scalars.NOTHING)),
)  # fmt: skip
clone = op("clone", "input", parts=parts.POINTWISE,
           impl=lambda xp, x: xp.array(x, copy=True), rule=same, traits=LINEAR | MOVES | Trait.IDENTITY, ref=itself,
           lifting=lambda N, x: x,
           vjp=dict(input=lambda F, g: g))  # fmt: skip
