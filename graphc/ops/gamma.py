"""How random numbers that are drawn by rejection follow their parameters: gamma and Dirichlet numbers.

Whoever draws x of a distribution F(x; a) by rejection has not computed it as a function of a. Still it moves with a as
if the probability F(x; a) stayed: dx/da = -(dF/da) / (dF/dx). (M. Figurnov, S. Mohamed, A. Mnih, "Implicit
reparameterization gradients", 2018.) dF/da has no closed form. The approximations are those of PyTorch (M. Jankowiak,
F. Obermeyer, "Pathwise derivatives beyond the reparameterization trick", 2018): series near the ends, saddle point
expansions for large parameters, rational functions fitted between. They are computed in float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.ops.dtypes import FLOAT64
from graphc.ops.index_maps import itself
from graphc.ops.samples import Sample
from graphc.ops.spec import Op, Rule, Trait, op


def _polynomial(x: Any, coefficients: Sequence[Any]) -> Any:
    """c0 + c1 x + c2 x^2 + ..."""
    result = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        result = c + x * result
    return result


def _finite(F: Any, x: Any) -> Any:
    return F.where(x == x, x, 0)


# x of the distribution gamma(a), with density x^(a - 1) exp(-x) / Gamma(a)
def _gamma_near_zero(F: Any, a: Any, x: Any) -> Any:
    """By the Taylor series of exp(-t), integrated term by term."""
    term: Any = 1.0
    series, series_of_slope = 1 / a, 1 / (a * a)
    for k in range(1, 6):
        term = term * (-x / k)
        series = series + term / (a + k)
        series_of_slope = series_of_slope + term / ((a + k) * (a + k))
    slope = (F.log(x) - F.digamma(a)) * series - series_of_slope
    return _finite(F, -slope * x * F.exp(x))


def _gamma_far(F: Any, a: Any, x: Any) -> Any:
    """By a saddle point expansion for large a, away from the mean."""
    root, log_ratio = F.sqrt(8 * a), F.log(x / a)
    sign = F.where(x < a, -1.0, 1.0)
    tail = sign * F.pow(x - a - a * log_ratio, -1.5)
    term = log_ratio * (root / (a - x) + tail) - F.sqrt(2 / a) * (a + x) / ((a - x) * (a - x))
    stirling = 1 + 1 / (12 * a) * (1 + 1 / (24 * a))
    return -stirling * x * term / root


def _gamma_at_mean(a: Any, x: Any) -> Any:
    """The same where it is 0 / 0, by its Taylor series."""
    first = 1 + 24 * a * (1 + 12 * a)
    second = 1440 * (a * a) + 6 * x * (53 - 120 * x) - 65 * x * x / a + a * (107 + 3600 * x)
    return first * second / (1244160 * (a * a) * (a * a))


_FITTED_GAMMA = (
    (0.16009398, -0.094634809, 0.025146376, -0.0030648343, 1, 0.32668115, 0.10406089, 0.0014179084),
    (0.53487893, 0.1298071, 0.065735949, -0.0015649758, 0.16639465, 0.020070113, -0.0035938915, -0.00058392623),
    (0.040121004, -0.0065914022, -0.0026286047, -0.0013441777, 0.017050642, -0.0021309326, 0.00085092367,
     -1.5247877e-07),
)  # fmt: skip


def _gamma_fitted(F: Any, a: Any, x: Any) -> Any:
    """exp of a ratio of polynomials in log(x / a) and log(a)."""
    u, v = F.log(x / a), F.log(a)
    c = [_polynomial(u, powers) for powers in zip(*_FITTED_GAMMA, strict=True)]
    return F.exp(_polynomial(v, c[:4]) / _polynomial(v, c[4:]))


def gamma_slope(F: Any, a: Any, x: Any) -> Any:
    """dx/da of x drawn from the gamma distribution with concentration a. Any shapes that broadcast, float64."""
    large = F.where((0.9 * a <= x) & (x <= 1.1 * a), _gamma_at_mean(a, x), _gamma_far(F, a, x))
    middle = F.where(a > 8, large, _gamma_fitted(F, a, x))
    return F.where(x < 0.8, _gamma_near_zero(F, a, x), middle)


# x of the distribution beta(a, b), with density x^(a - 1) (1 - x)^(b - 1) / B(a, b); a + b is the total
def _beta_near_zero(F: Any, x: Any, a: Any, b: Any) -> Any:
    """dx/da / (1 - x) for x near 0, by the series of (1 - t)^(b - 1)."""
    factor = F.digamma(a) - F.digamma(a + b) - F.log(x)
    term: Any = 1.0
    series = (factor + 1 / a) / a
    for k in range(1, 11):
        term = term * ((k - b) * x / k)
        series = series + term / (a + k) * (factor + 1 / (a + k))
    return _finite(F, x * F.pow(1 - x, -b) * series)


def _beta_of_other_near_zero(F: Any, x: Any, a: Any, b: Any) -> Any:
    """dx/db / x for x near 0."""
    factor = F.digamma(a + b) - F.digamma(b)
    term: Any = 1.0
    product: Any = 1.0  # (b - 1) ... (b - k), and its slope
    slope: Any = 0.0
    series = factor / a
    for k in range(1, 9):
        term = term * (-x / k)
        slope = slope * (b - k) + product
        product = product * (b - k)
        series = series + term / (a + k) * (slope + factor * product)
    return _finite(F, -F.pow(1 - x, 1 - b) * series)


def _beta_large(F: Any, x: Any, a: Any, b: Any) -> Any:
    """dx/da / (1 - x) for large a and b, by a saddle point expansion; at the mean, where it is 0 / 0, by its series."""
    total = a + b
    mean, deviation = a / total, F.sqrt(a * b / (total + 1)) / total
    bb = b * b
    inner = (453 + 1620 * b * (1 - x) - 455 * x) * b + a * (8 * (1 - x) * (135 * b - 11))
    inner = 3 * (59 + 180 * b - 90 * x) * bb + a * inner
    poly = 47 * x * bb * bb + a * ((43 + 20 * (16 + 27 * b) * x) * bb * b + a * inner)
    scale = (1 + 12 * a) * (1 + 12 * b) / (total * total) / (12960 * a * a * a * bb * (1 + 12 * total))
    at_mean = scale / (1 - x) * poly

    stirling = _stirling(a) * _stirling(b) / _stirling(total)
    distance = a * (x - 1) + b * x
    root = F.sqrt(2 * a * b / total)
    first = (2 * a * a * (x - 1) + a * b * (x - 1) - x * bb) / (
        F.sqrt(2 * a / b) * F.pow(total, 1.5) * distance * distance
    )
    base = b * F.log(b / (total * (1 - x))) + a * F.log(a / (total * x))
    tail = F.where(x < mean, 1.0, -1.0) * F.pow(base, -1.5)
    second = 0.5 * F.log(a / (total * x)) * (2 * root / distance + tail)
    away = stirling * (-x / root) * (first + second)
    return F.where((mean - 0.1 * deviation <= x) & (x <= mean + 0.1 * deviation), at_mean, away)


def _stirling(a: Any) -> Any:
    return 1 + 1 / (12 * a) + 1 / (288 * a * a)


# of powers of log(x) (rows of rows), of log(a / x) (rows) and of the rest: numerator and denominator
_FITTED_BETA = (
    (((1.003668233, -0.01061107488, -0.0657888334, 0.01201642863),
      (0.6336835991, -0.3557432599, 0.05486251648, -0.001465281033),
      (-0.03276231906, 0.004474107445, 0.002429354597, -0.0001557569013)),
     ((0.221950385, -0.3187676331, 0.01799915743, 0.01074823814),
      (-0.2951249643, 0.06219954479, 0.01535556598, 0.001550077057),
      (0.02155310298, 0.004170831599, 0.001292462449, 6.976601077e-05)),
     ((-0.05980841433, 0.008441916499, 0.01085618172, 0.002319392565),
      (0.02911413504, 0.01400243777, -0.002721828457, 0.000751041181),
      (0.005900514878, -0.001936558688, -9.495446725e-06, 5.385558597e-05))),
    (((1, -0.02924021934, -0.04438342661, 0.007285809825),
      (0.6357567472, -0.3473456711, 0.05454656494, -0.002407477521),
      (-0.03301322327, 0.004845219414, 0.00231480583, -0.0002307248149)),
     ((0.5925320577, -0.1757678135, 0.01505928619, 0.000564515273),
      (0.1014815858, -0.06589186703, 0.01272886114, -0.0007316646956),
      (-0.007258481865, 0.001096195486, 0.0003934994223, -4.12701925e-05)),
     ((0.06469649321, -0.0236701437, 0.002902096474, -5.896963079e-05),
      (0.001925008108, -0.002869809258, 0.0008000589141, -6.063713228e-05),
      (-0.0003477407336, 6.959756487e-05, 1.097287507e-05, -1.650964693e-06))),
)  # fmt: skip


def _beta_fitted(F: Any, x: Any, a: Any, total: Any) -> Any:
    """An analytic approximation, times a ratio of polynomials."""
    u = F.log(x)
    v = F.log(a) - u
    w = F.log(total) - v
    p, q = (
        _polynomial(u, [_polynomial(v, [_polynomial(w, row) for row in rows]) for rows in table])
        for table in _FITTED_BETA
    )
    return p / q * x * (F.digamma(total) - F.digamma(a)) / (total - a)


def beta_slope(F: Any, x: Any, a: Any, total: Any) -> Any:
    """dx/da / (1 - x) of x drawn from the distribution beta(a, total - a). Any shapes that broadcast, float64."""
    b = total - a
    edge = total * x * (1 - x)
    middle = F.where((a > 6) & (b > 6), _beta_large(F, x, a, b), _beta_fitted(F, x, a, total))
    high = F.where((x >= 0.5) & (edge < 0.75), -_beta_of_other_near_zero(F, 1 - x, b, a), middle)
    return F.where((x <= 0.5) & (edge < 2.5), _beta_near_zero(F, x, a, b), high)


def _wide(F: Any, *arrays: Any) -> list[Any]:
    return [F.cast(x, dtype=FLOAT64) for x in arrays]


def _standard_gamma_vjp(F: Any, g: Any, r: Any, concentration: Any, concentration_dtype: np.dtype) -> Any:
    slope = gamma_slope(F, *_wide(F, concentration, r))
    return g * F.cast(slope, dtype=concentration_dtype)


def _dirichlet_vjp(
    F: Any, g: Any, r: Any, concentration: Any, concentration_dtype: np.dtype, concentration_shape: tuple[int, ...]
) -> Any:
    a, x = _wide(F, concentration, r)
    last = (len(concentration_shape) - 1,)
    slope = F.cast(beta_slope(F, x, a, F.sum(a, axis=last, keepdims=True)), dtype=concentration_dtype)
    return slope * (g - F.sum(r * g, axis=last, keepdims=True))


def _drawn(name: str, vjp: Any) -> Op:
    """An op that is the sample it is given, and has the slope of one that was drawn with these parameters."""
    return op(
        name, "sample concentration", impl=lambda xp, sample, concentration: sample,
        numpy=lambda sample, concentration: sample.copy(), rule=Rule(lambda op, avals, params: avals[0]),
        ref=lambda sample, concentration: itself(sample, concentration), traits=Trait.MOVES | Trait.SURROGATE,
        passes=True, domain=((0.2, 0.8), (0.5, 3.0)), samples=(Sample((3, 2), (3, 2)), Sample((4,), (4,))),
        vjp=dict(concentration=vjp),
    )  # fmt: skip


standard_gamma = _drawn("standard_gamma", _standard_gamma_vjp)
dirichlet = _drawn("dirichlet", _dirichlet_vjp)
