"""Special functions, and pointwise ops about signs and neighbours of floating numbers.

What `torch.special` alone has is called `special_<name>`: `eager.special` shows it without the prefix.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from graphc.ops import blocks, scalars
from graphc.ops.aval import Aval
from graphc.ops.dtypes import BOOL, FLOAT32, FLOAT64, INT32, is_half
from graphc.ops.pointwise import TWO_OVER_SQRT_PI, ZERO_DIVISION
from graphc.ops.references import Each
from graphc.ops.rounding import EXACT, OF_ONE, Rounding
from graphc.ops.rules import (
    accepting,
    counting,
    pointwise_float,
    pointwise_floating,
    pointwise_no_bool,
    pointwise_wide,
)
from graphc.ops.samples import Sample
from graphc.ops.spec import Kink, Rule, Trait, op


def _scipy() -> Any:
    import scipy.special

    return scipy.special


PREFIX = "special_"
COMMUTATIVE, ORDERS = Trait.COMMUTATIVE, Trait.ORDERS


def _acosh_vjp(F: Any, g: Any, input: Any, input_dtype: np.dtype) -> Any:
    if input_dtype.kind == "c":  # the branch of the two roots
        return g * (F.rsqrt(input - 1) * F.rsqrt(input + 1))
    return g * F.rsqrt(input * input - 1)


acosh = op("acosh", "input", doc="The inverse hyperbolic cosine.",
           impl="arccosh", rule=pointwise_float, domain=(1.2, 4.0), ref="math.acosh",
           vjp=dict(input=_acosh_vjp))  # fmt: skip
asinh = op("asinh", "input", doc="The inverse hyperbolic sine.", impl="arcsinh", rule=pointwise_float, ref="math.asinh",
           vjp=dict(input=lambda F, g, input: g * F.rsqrt(1 + input * input)))  # fmt: skip
atanh = op("atanh", "input", doc="The inverse hyperbolic tangent.",
           impl="arctanh", rule=pointwise_float, domain=(-0.8, 0.8), ref="math.atanh",
           vjp=dict(input=lambda F, g, input: g / (1 - input * input)))  # fmt: skip


def _copysign_vjp(F: Any, g: Any, r: Any, input: Any) -> Any:
    zero = input == 0
    return g * F.where(zero, 0, r / F.where(zero, 1, input))


def _signbit(op: Any, avals: list[Aval], params: Any) -> Aval:
    if avals[0].dtype.kind == "c":
        raise NotImplementedError("signbit is not implemented for complex tensors.")
    return Aval(avals[0].shape, BOOL)


def _is_negative(xp: Any, x: Any) -> Any:
    return xp.signbit(x) if x.dtype.kind in "fV" else x < 0 if x.dtype != bool else xp.zeros_like(x)


copysign = op("copysign", "input other", doc="|input| with the sign of `other`.",
              impl="copysign", rule=pointwise_float._replace(scalars="last"),
              traits=ORDERS | Trait.BITS | Trait.MOVES, overloads={"fs": "CopysignBackward1"},
              domain=((0.3, 2.0), (0.3, 2.0)), ref=Each(scalars.with_sign),
              slopes=dict(input=Each(scalars.copied_sign_slope), other=Each(scalars.NOTHING)),
              kinks=(Kink((0.0, 1.0), (0.0, 0.0)),),
              vjp=dict(input=_copysign_vjp, other=lambda F, g: g * 0))  # fmt: skip
signbit = op("signbit", "input", doc="Whether the sign bit is set: of negative numbers and -0.0.",
             impl=_is_negative, rule=Rule(_signbit, pointwise=True), traits=Trait.BITS,
             ref=Each(scalars.is_negative))  # fmt: skip
nextafter = op("nextafter", "input other", doc="The next number after `input` towards `other`.",
               impl="nextafter", rule=pointwise_floating, traits=ORDERS,
               ref=Each(scalars.next_number), domain=((0.3, 1.0), (1.5, 3.0)),
               slopes=dict(input=Each(scalars.neighbour_slope), other=Each(scalars.NOTHING)),
               kinks=(Kink((1.0, 1.0), (0.0, 0.0), alike=lambda x, y: x == y),),
               vjp=dict(input=lambda F, g, input, other: F.where(input == other, 0, g),
                        other=lambda F, g: g * 0))  # fmt: skip
fmod = op("fmod", "input other", doc="input modulo other, with the sign of `input`.",
          impl="fmod", numpy=blocks.fmod, rule=pointwise_no_bool._replace(scalars="last"),
          traits=ORDERS | Trait.BRANCHES,
          check=ZERO_DIVISION, label="FmodBackward1", overloads={"fs": "FmodBackward0"},
          domain=((0.1, 0.9), (1.1, 1.9)), ref=Each(scalars.truncated_remainder),
          slopes=dict(input=Each(scalars.given), other=Each(scalars.truncated_slope)),
          vjp=dict(input=lambda F, g: g, other=lambda F, g, input, other: -g * F.trunc(input / other)))  # fmt: skip


def _frexp_rule(op: Any, avals: list[Aval], params: Any) -> tuple[Aval, Aval]:
    return avals[0], Aval(avals[0].shape, INT32)


def _frexp(xp: Any, x: Any) -> tuple[Any, Any]:
    mantissa, exponent = xp.frexp(x)
    return mantissa, exponent.astype(np.int32)


def _exact_frexp(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    parts = [math.frexp(v) for v in x.ravel().tolist()]
    return tuple(np.array([p[k] for p in parts], t).reshape(x.shape) for k, t in enumerate((x.dtype, np.int32)))  # type: ignore[return-value]


frexp = op("frexp", "input", results="mantissa exponent", impl=_frexp, label="Frexp", rounding=EXACT,
           rule=Rule(_frexp_rule, accepts=accepting(
               "f", "torch.frexp() only supports floating-point dtypes", RuntimeError)),
           samples=(Sample((3, 4)), Sample(())), domain=(1.1, 1.9), ref=_exact_frexp,
           vjp=dict(input=lambda F, g_mantissa, r_exponent, input_dtype: g_mantissa / F.exp2(F.cast(
               F.stop_gradient(r_exponent), dtype=input_dtype))))  # fmt: skip

gcd, lcm = (
    op(name, "input other", doc=f"The {what}.", impl=name, rule=counting, traits=COMMUTATIVE,
       ref=Each(getattr(math, name)), domain=(-30, 30))
    for name, what in (("gcd", "greatest common divisor"), ("lcm", "least common multiple"))
)  # fmt: skip


def _logaddexp(xp: Any, x: Any, y: Any) -> Any:
    if x.dtype.kind != "c":
        return xp.logaddexp(x, y)
    high = xp.where(x.real >= y.real, x, y)
    return high + xp.log(1 + xp.exp(xp.where(x.real >= y.real, y, x) - high))


def _np_logaddexp(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return blocks.logaddexp(x, y) if x.dtype.kind != "c" else _logaddexp(np, x, y)


hypot = op("hypot", "input other", doc="sqrt(input**2 + other**2), without overflow.",
           impl="hypot", rule=pointwise_floating, traits=ORDERS, ref="math.hypot",
           domain=((0.2, 2.0), (0.3, 2.0)),
           vjp=dict(input=lambda F, g, r, input: g * (input / r),
                    other=lambda F, g, r, other: g * (other / r)))  # fmt: skip
logaddexp = op("logaddexp", "input other", doc="log(exp(input) + exp(other)), without overflow.",
               impl=_logaddexp, numpy=_np_logaddexp, rule=pointwise_floating, rounding=OF_ONE,
               ref=Each(scalars.log_of_sum),
               vjp=dict(input=lambda F, g, input, other: g / (1 + F.exp(other - input)),
                        other=lambda F, g, input, other: g / (1 + F.exp(input - other))))  # fmt: skip
logaddexp2 = op("logaddexp2", "input other", doc="log2(2**input + 2**other), without overflow.",
                impl="logaddexp2", rule=pointwise_floating, traits=ORDERS,
                rounding=OF_ONE, ref=Each(scalars.log_of_sum_of_twos),
                vjp=dict(input=lambda F, g, input, other: g / (1 + F.exp2(other - input)),
                         other=lambda F, g, input, other: g / (1 + F.exp2(input - other))))  # fmt: skip


def _x_times(name: str, log: str, label: str, shift: float, ref: Any, slope: Any) -> Any:
    """x * log(y + shift), 0 where x is 0 and y no nan; the gradients at 0 * log(0) are PyTorch's."""
    overloads = {"sf": f"{label}Backward1", "fs": f"{label}Backward2"}

    def vanishing(F: Any, g: Any, input: Any, other: Any) -> Any:
        return g * F.where((input == 0) & (other <= -shift), 0, getattr(F, log)(other))

    return op(
        name, "input other", doc=f"input {log}(other); 0 where input is 0.",
        impl=f"special.{name.removeprefix('special_')}", traits=ORDERS,
        rule=pointwise_float._replace(scalars="one"), label=label, overloads=overloads,
        domain=((-2.0, 2.0), (0.2, 3.0)), ref=Each(ref), slopes=dict(input=Each(slope)),
        vjp=dict(input=vanishing, other=lambda F, g, input, other: g * (input / (other + shift))),
        kinks=(Kink((0.0, 0.0 - shift), (0.0, math.nan)),),
    )  # fmt: skip


xlogy = _x_times("xlogy", "log", "Xlogy", 0.0, scalars.times_log, scalars.times_log_slope)
special_xlog1py = _x_times(
    "special_xlog1py", "log1p", "SpecialXlog1Py", 1.0, scalars.times_log1p, scalars.times_log1p_slope
)


def _sinc_vjp(F: Any, g: Any, input: Any) -> Any:
    scaled, square = input * math.pi, input * input * math.pi
    zero = square == 0  # also where only the square is too small a number, as in PyTorch
    return F.where(zero, 0, g * ((scaled * F.cos(scaled) - F.sin(scaled)) / F.where(zero, 1, square)))


sinc = op("sinc", "input", doc="sin(pi input) / (pi input), and 1 at 0.",
          impl="sinc", rule=pointwise_float, vjp=dict(input=_sinc_vjp),
          rounding=OF_ONE,  # the sine of pi x, rounded
          ref=Each(scalars.sine_of_pi), slopes=dict(input=Each(scalars.sine_of_pi_slope)),
          kinks=(Kink((0.0,), (0.0,)),))  # fmt: skip


def _logit_vjp(F: Any, g: Any, input: Any) -> Any:
    edge = (input == 0) | (input == 1)
    inner = F.where(edge, 0.5, input)
    return F.where((input < 0) | (input > 1), np.nan, g * F.where(edge, np.inf, 1 / (inner * (1 - inner))))


logit = op("logit", "input", doc="log(input / (1 - input)).",
           impl="special.logit", rule=pointwise_float, traits=ORDERS, domain=(0.1, 0.9),
           rounding=OF_ONE, ref=Each(scalars.logit), vjp=dict(input=_logit_vjp),
           kinks=(Kink((2.0,), (math.nan,), lambda x: (x < 0) | (x > 1)),))  # fmt: skip


def _each(function: Any) -> Any:
    return np.vectorize(function, otypes=[float])


def _normal(method: str, x: Any) -> Any:
    """A method of the standard library's normal distribution, which is imported for tests only."""
    from statistics import NormalDist

    return _each(getattr(NormalDist(), method))(x)


def _inverse_erf(y: float) -> float:
    from statistics import NormalDist

    if abs(y) == 1 or not y:
        return y * math.inf if y else y
    if abs(y) < 1e-3:  # whose digits are lost beside 1
        raise ValueError
    return NormalDist().inv_cdf((y + 1) / 2) * 0.5**0.5 if abs(y) < 1 else math.nan


def _log_ndtr_vjp(F: Any, g: Any, input: Any) -> Any:
    # the density over the distribution function, both without their exp(-x^2/2) on the left
    left = input < 1
    tail = F.special_erfcx(F.where(left, input, 1) * -(0.5**0.5)) / 2
    near = F.exp(input * input * -0.5) / ((1 + F.erf(input * 0.5**0.5)) / 2)
    return g * (F.where(left, 1 / tail, near) * (2 * math.pi) ** -0.5)


erfc = op("erfc", "input", doc="1 - erf(input).",
          impl="special.erfc", rule=pointwise_float, traits=ORDERS, ref="math.erfc",
          cpu_name="erfc_vml_cpu",
          vjp=dict(input=lambda F, g, input: g * (-TWO_OVER_SQRT_PI * F.exp(-(input * input)))))  # fmt: skip
erfinv = op("erfinv", "input", doc="The inverse of the error function.",
            impl="special.erfinv", numpy=blocks.erfinv, rule=pointwise_float, traits=ORDERS,
            cpu_name="erfinv_vml_cpu",
            domain=(-0.8, 0.8), ref=Each(_inverse_erf),
            vjp=dict(input=lambda F, g, r: g * (1 / TWO_OVER_SQRT_PI * F.exp(r * r))))  # fmt: skip
special_erfcx = op(
    "special_erfcx", "input",
    doc="exp(input**2) erfc(input).",
    impl="special.erfcx", rule=pointwise_wide, traits=ORDERS,
    ref=lambda x: np.exp(x * x) * _each(math.erfc)(x),
    vjp=dict(input=lambda F, g, r, input: g * (2 * input * r - TWO_OVER_SQRT_PI)),
)  # fmt: skip
special_ndtri = op(
    "special_ndtri", "input",
    doc="The inverse of the distribution function of the standard normal distribution.",
    impl="special.ndtri", rule=pointwise_wide, traits=ORDERS, domain=(0.1, 0.9),
    ref=lambda x: _normal("inv_cdf", x),
    vjp=dict(input=lambda F, g, r: g * ((2 * math.pi) ** 0.5 * F.exp(r * r * 0.5))),
)  # fmt: skip
special_log_ndtr = op(
    "special_log_ndtr", "input",
    doc="The logarithm of the distribution function of the standard normal distribution.",
    impl="special.log_ndtr", rule=pointwise_wide, traits=ORDERS,
    ref=lambda x: np.log(_normal("cdf", x)), vjp=dict(input=_log_ndtr_vjp),
)  # fmt: skip
special_entr = op(
    "special_entr", "input",
    doc="-input log(input); 0 at 0, -inf below.",
    impl="special.entr", rule=pointwise_float, traits=ORDERS, domain=(0.2, 3.0),
    ref=Each(scalars.entropy), vjp=dict(input=lambda F, g, input: g * (-1 - F.log(input))),
)  # fmt: skip


def _zeta_sum(s: Any, q: Any) -> Any:
    """The Hurwitz zeta function by Euler and Maclaurin's formula."""
    n = 24
    a = q + n
    head = sum((q + k) ** -s for k in range(n)) + a ** (1 - s) / (s - 1) + 0.5 * a**-s
    factors = (1 / 12, -1 / 720, 1 / 30240, -1 / 1209600)  # B(2k) / (2k)!
    rising, tail = s, 0.0
    for k, factor in enumerate(factors):
        tail = tail + factor * rising * a ** (-s - 1 - 2 * k)
        rising = rising * (s + 2 * k + 1) * (s + 2 * k + 2)
    return head + tail


def _slope_of_loggamma(x: np.ndarray) -> np.ndarray:
    from scipy.special import loggamma

    return loggamma(x + 1e-20j).imag / 1e-20


def _gamma_series(a: np.ndarray, x: np.ndarray) -> Any:
    """The regularized lower incomplete gamma function, by its power series."""
    return sum(x ** (a + k) * np.exp(-x) / _each(math.gamma)(a + k + 1) for k in range(60))


def _igamma_density(F: Any, input: Any, other: Any) -> Any:
    return F.exp((input - 1) * F.log(other) - other - F.lgamma(input))


def _np_lgamma(x: np.ndarray) -> np.ndarray:
    return np.where(np.isinf(x), np.inf, _scipy().gammaln(x)).astype(x.dtype)


def _np_zeta(s: np.ndarray, q: np.ndarray) -> np.ndarray:
    beyond = np.isposinf(q) & (s != 1)  # nan, as PyTorch's series
    return np.where(beyond, np.nan, _scipy().zeta(s, q)).astype(q.dtype)


def incomplete_gamma(xp: Any, r: Any, a: Any, x: Any, at_zero: int) -> Any:
    """The incomplete gamma function `r`, with the limits that PyTorch takes even if the other argument is nan."""
    at_infinity = xp.isposinf(x) & (a != a)
    limits = xp.where((x == 0) & (a != a) | (x != x) & xp.isposinf(a), at_zero, xp.where(at_infinity, 1 - at_zero, r))
    return limits.astype(r.dtype)


def _trigamma(xp: Any, x: Any) -> Any:
    """psi_1(x) as PyTorch computes it: reflected to x >= 1/2, shifted up by 6, then its asymptotic series.

    In float64 the shift is by 15: from 6.5 on, the series is good to 12 digits only.

    At the poles the sine of the reflection is not quite 0: there PyTorch, too, has large numbers, not infinity.
    """
    left = x < 0.5
    y = xp.where(left, 1 - x, x)
    total = 0.0
    for _ in range(15 if x.dtype == FLOAT64 else 6):
        total = total + 1 / (y * y)
        y = y + 1
    square = 1 / (y * y)
    total = (
        total
        + (
            1
            + 1 / (2 * y)
            + square * (1 / 6 - square * (1 / 30 - square * (1 / 42 - square * (1 / 30 - square * (5 / 66)))))
        )
        / y
    )
    sine = xp.sin(math.pi * x)
    return xp.where(left, math.pi**2 / (sine * sine) - total, total).astype(x.dtype)


def _at_pole(x: np.ndarray) -> np.ndarray:
    """The poles of the gamma function and its like, where rounding gives `_trigamma` a large number on either side."""
    return (x <= 0) & (x == np.floor(x))


def _trigamma_vjp(F: Any, g: Any, input: Any, input_dtype: np.dtype) -> Any:
    wide = F.cast(input, dtype=FLOAT32) if is_half(input_dtype) else input  # the zeta function has no 16-bit form
    slope = -2 * F.special_zeta(3, wide)
    return g * (F.cast(slope, dtype=input_dtype) if is_half(input_dtype) else slope)


def _next_to_poles(r: np.ndarray, x: np.ndarray) -> np.ndarray:
    """It divides by the square of a sine: 1 / d^2 at distance d from a pole, which is an ULP of x off."""
    return np.where(x < 0, 2 * np.abs(r) ** 1.5 * np.abs(x), 0.0)


trigamma = op(
    "trigamma", "input",
    doc="The second derivative of the logarithm of the gamma function.",
    impl=_trigamma, rule=pointwise_float, traits=ORDERS, domain=(0.3, 4.0), label="Polygamma",
    rounding=Rounding(terms=_next_to_poles), cpu_name="trigamma",
    ref=lambda x: _zeta_sum(2.0, x), vjp=dict(input=_trigamma_vjp), kinks=(Kink((-1.0,), (-math.inf,), _at_pole),),
)  # fmt: skip
digamma = op("digamma", "input", doc="The derivative of the logarithm of the gamma function.",
             impl="special.digamma", rule=pointwise_float, traits=ORDERS, domain=(0.3, 4.0),
             rounding=OF_ONE, cpu_name="digamma",
             ref=_slope_of_loggamma, vjp=dict(input=lambda F, g, input: g * F.trigamma(input)))  # fmt: skip
lgamma = op("lgamma", "input", doc="The logarithm of the absolute value of the gamma function.",
            impl="special.gammaln", numpy=_np_lgamma, rule=pointwise_float, traits=ORDERS,
            domain=(0.3, 4.0), ref="math.lgamma", rounding=OF_ONE, cpu_name="lgamma_vml_cpu",
            vjp=dict(input=lambda F, g, input: g * F.digamma(input)))  # fmt: skip
special_zeta = op(
    "special_zeta", "input other",
    doc="The Hurwitz zeta function.",
    impl="special.zeta", numpy=_np_zeta, rule=pointwise_wide, traits=ORDERS,
    ref=_zeta_sum, overloads={"sf": "SpecialZetaBackward1", "fs": "SpecialZetaBackward2"},
    domain=((1.5, 4.0), (0.5, 3.0)),
    vjp=dict(other=lambda F, g, input, other: g * (-input * F.special_zeta(input + 1, other))),
)  # fmt: skip


def _exponent(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The terms of the logarithm of x^a exp(-x) / gamma(a): incomplete gamma functions are multiples of that, which is
    10,000 ULP off for arguments of 1,000."""
    return np.abs(a * np.log(x)) + np.abs(x) + np.abs(_scipy().gammaln(a))


def _of_the_rest(r: np.ndarray, a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Where 1 - igamma is computed, terms cancel."""
    return np.abs(r) * _exponent(a, x) + (x <= np.maximum(a, 1.0) + 0.25)


# inf - inf in the logarithm of the density, where the function is constant: as PyTorch has it
_AT_INFINITY = (Kink((math.inf, 1.0), (0.0, math.nan), alike=lambda a, x: np.isposinf(a)),)
igamma = op("igamma", "input other", doc="The regularized lower incomplete gamma function.",
            impl="special.gammainc",
            numpy=lambda a, x: incomplete_gamma(np, _scipy().gammainc(a, x), a, x, 0), rule=pointwise_floating,
            rounding=Rounding(8.0, terms=lambda r, a, x: np.abs(r) * _exponent(a, x)),
            traits=ORDERS, ref=_gamma_series, domain=((0.5, 3.0), (0.3, 3.0)), kinks=_AT_INFINITY,
            vjp=dict(other=lambda F, g, input, other: g * _igamma_density(F, input, other)))  # fmt: skip
igammac = op("igammac", "input other", doc="The regularized upper incomplete gamma function.",
             impl="special.gammaincc",
             numpy=lambda a, x: incomplete_gamma(np, _scipy().gammaincc(a, x), a, x, 1), rule=pointwise_floating,
             rounding=Rounding(13.0, terms=_of_the_rest),
             traits=ORDERS, ref=lambda a, x: 1 - _gamma_series(a, x), domain=((0.5, 3.0), (0.3, 3.0)),
             kinks=_AT_INFINITY,
             vjp=dict(other=lambda F, g, input, other: -g * _igamma_density(F, input, other)))  # fmt: skip

_ANGLES = (np.arange(64) + 0.5) * (np.pi / 64)  # the midpoint rule over [0, pi] is exact for these integrals


def _bessel_i(order: int, scaled: bool) -> Any:
    def reference(x: np.ndarray) -> np.ndarray:
        grown = np.exp(np.multiply.outer(x, np.cos(_ANGLES))) * np.cos(order * _ANGLES)
        return grown.mean(axis=-1) * (np.exp(-np.abs(x)) if scaled else 1)

    return reference


def _over(F: Any, r: Any, input: Any) -> Any:
    """r / input where r is odd in the input, with slope 1/2 at 0."""
    zero = input == 0
    return F.where(zero, 0.5, r / F.where(zero, 1, input))


i0 = op("i0", "input", doc="The modified Bessel function of the first kind, of order 0.",
        impl="special.i0", rule=pointwise_float, traits=ORDERS, ref=_bessel_i(0, False),
        cpu_name="i0_vml_cpu", vjp=dict(input=lambda F, g, input: g * F.special_i1(input)))  # fmt: skip
special_i0e = op(
    "special_i0e", "input",
    doc="exp(-|input|) i0(input).",
    impl="special.i0e", rule=pointwise_float, traits=ORDERS, ref=_bessel_i(0, True),
    label="SpecialI0E", vjp=dict(input=lambda F, g, r, input: g * (F.special_i1e(input) - F.sign(input) * r)),
)  # fmt: skip
special_i1 = op(
    "special_i1", "input",
    doc="The modified Bessel function of the first kind, of order 1.",
    impl="special.i1", rule=pointwise_float, traits=ORDERS, ref=_bessel_i(1, False),
    vjp=dict(input=lambda F, g, r, input: g * (F.i0(input) - _over(F, r, input))),
)  # fmt: skip
special_i1e = op(
    "special_i1e", "input",
    doc="exp(-|input|) i1(input).",
    impl="special.i1e", rule=pointwise_float, traits=ORDERS, ref=_bessel_i(1, True),
    label="SpecialI1E",
    vjp=dict(input=lambda F, g, r, input: g * (F.special_i0e(input) - F.sign(input) * r - _over(F, r, input))),
)  # fmt: skip
