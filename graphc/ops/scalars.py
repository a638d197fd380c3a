"""What pointwise ops mean, as functions of Python numbers: written from the definitions, in exact or double arithmetic.

They share nothing with the kernels, and hold on everything that an op takes: zeros of both signs, infinities, nan,
ties, integers of any size. A ValueError says that there is no opinion.
"""

from __future__ import annotations

import builtins
import cmath
import math
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

INF, NAN = math.inf, math.nan


_ZERO, _MINUS_ONE = {0.0: -INF}, {-1.0: -INF}
_POLES: dict[str, dict[float, float]] = {
    "log": _ZERO, "log2": _ZERO, "log10": _ZERO, "log1p": _MINUS_ONE, "atanh": {1.0: INF, -1.0: -INF},
}  # fmt: skip


def elementary(name: str) -> Callable[[Any], Any]:
    """The function `name` of `math`, or of `cmath` for complex numbers, with IEEE's results where those raise."""
    poles = _POLES.get(name, {})

    def function(x: Any) -> Any:
        if isinstance(x, complex):
            if not cmath.isfinite(x) or not hasattr(cmath, name):
                raise ValueError("the limits of complex functions are left to the backends")
            return getattr(cmath, name)(x)
        try:
            return getattr(math, name)(x)
        except OverflowError:
            return math.copysign(INF, x) if name == "sinh" else INF
        except ValueError:
            return INF if name == "lgamma" else poles.get(x, NAN)

    return function


def quotient(x: Any, y: Any) -> Any:
    if y or (isinstance(x, complex) or isinstance(y, complex)):
        return x / y
    return NAN if not x or x != x else math.copysign(INF, x) * math.copysign(1, y)


def sign(x: Any) -> Any:
    if isinstance(x, complex):
        return x / math.hypot(x.real, x.imag) if x else 0
    return type(x)((x > 0) - (x < 0))


def absolute(x: Any) -> Any:
    if isinstance(x, complex):
        return math.hypot(x.real, x.imag)
    return -x if x < 0 else x + 0 if x else type(x)(0)


def _whole_quotient(x: Any, y: Any, rounded: Callable[[Any], int]) -> int:
    """x / y, rounded, in exact arithmetic."""
    return rounded(_fraction(x) / _fraction(y))


def _fraction(x: Any) -> Any:
    from fractions import Fraction  # here: `import eager` stays light

    return Fraction(x)


def _remains(rounded: Callable[[Any], int], beyond: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """x - y rounded(x / y), where a zero has the sign of x. beyond: what it is where y is infinite"""

    def remains(x: Any, y: Any) -> Any:
        if isinstance(y, float):
            if x != x or y != y or not y or math.isinf(x):
                return NAN
            if math.isinf(y):
                return beyond(x, y)
        exact = _fraction(x) - _fraction(y) * _whole_quotient(x, y, rounded)
        return type(x)(exact) if exact or not isinstance(x, float) else math.copysign(0.0, x)

    return remains


remainder = _remains(math.floor, lambda x, y: x if not x or (x < 0) == (y < 0) else y)
truncated_remainder = _remains(math.trunc, lambda x, y: x)


def floor_divide(x: Any, y: Any) -> Any:
    """floor(x / y)"""
    if not isinstance(y, float):
        return _whole_quotient(x, y, math.floor)
    if not y:
        return quotient(x, y)
    if x != x or y != y or math.isinf(x):
        return NAN
    if math.isinf(y):
        return -1.0 if x and (x < 0) != (y < 0) else quotient(x, y)
    whole = _whole_quotient(x, y, math.floor)
    if abs(whole) > 2**52:  # several of the floats there are as near
        raise ValueError("a quotient beyond the precision")
    return float(whole) if whole else quotient(0.0 * math.copysign(1, x), y)


def power(x: Any, y: Any) -> Any:
    """x to the power of y; of an integer to a negative power, what is whole."""
    if isinstance(x, complex) or isinstance(y, complex):
        if not x or not cmath.isfinite(x) or not cmath.isfinite(y):
            raise ValueError("the limits of complex functions are left to the backends")
        return cmath.exp(y * cmath.log(x))
    if not isinstance(x, float):
        if isinstance(y, float) and not isinstance(x, bool) and y != int(y):
            raise ValueError("no integer")
        if y >= 0:
            return builtins.pow(int(x), int(y), 2**64)  # its lowest bits
        return 1 if x == 1 else (1 if y % 2 == 0 else -1) if x == -1 else 0
    odd = math.isfinite(y) and y == math.trunc(y) and int(y) % 2 == 1
    try:
        return math.pow(x, y)
    except OverflowError:
        return math.copysign(INF, x) if odd else INF
    except ValueError:
        return (math.copysign(INF, x) if odd else INF) if not x else NAN


def power_to_number(x: Any, exponent: Any) -> Any:
    """x to the power of Python's number, as PyTorch has it."""
    return square_root(x) if exponent == 0.5 else reciprocal_root(x) if exponent == -0.5 else power(x, exponent)


def reciprocal(x: Any) -> Any:
    return quotient(1, x)


def square_root(x: Any) -> Any:
    return cmath.sqrt(x) if isinstance(x, complex) else math.sqrt(x) if not x < 0 else NAN


def reciprocal_root(x: Any) -> Any:
    return quotient(1, square_root(x))


def power_of_two(x: Any) -> Any:
    if isinstance(x, complex):
        return cmath.exp(x * math.log(2))
    try:
        return math.pow(2.0, x)
    except OverflowError:
        return INF


def softplus(x: Any) -> Any:
    """log(1 + exp(x))"""
    return log_of_sum(x, 0.0)


def log_of_sum(x: Any, y: Any) -> Any:
    """log(exp(x) + exp(y))"""
    if isinstance(x, complex) or isinstance(y, complex):
        return cmath.log(cmath.exp(x) + cmath.exp(y))
    if x == y:
        return x + math.log(2)
    if x != x or y != y:
        return NAN
    low, high = sorted((x, y))
    return high + 0.0 if low == -INF or high == INF else high + math.log1p(math.exp(low - high))


def log_of_sum_of_twos(x: float, y: float) -> float:
    """log2(2^x + 2^y)"""
    if x == y:
        return x + 1
    if x != x or y != y:
        return NAN
    low, high = sorted((x, y))
    return high + 0.0 if low == -INF or high == INF else high + math.log1p(math.pow(2, low - high)) / math.log(2)


def logistic(x: Any) -> Any:
    """1 / (1 + exp(-x))"""
    if isinstance(x, complex):
        if not cmath.isfinite(x) or abs(x.real) > 700:
            raise ValueError("the limits of complex functions are left to the backends")
        return 1 / (1 + cmath.exp(-x))
    return 1 / (1 + math.exp(-x)) if not x < 0 else math.exp(x) / (1 + math.exp(x))


def rectified(x: Any) -> Any:
    return type(x)(0) if x < 0 else x


def larger(x: Any, y: Any) -> Any:
    """The first of equals; nan before all."""
    return x if x != x or not (y > x or y != y) else y


def smaller(x: Any, y: Any) -> Any:
    return x if x != x or not (y < x or y != y) else y


def chosen(condition: bool, x: Any, y: Any) -> Any:
    return x if condition else y


def rounder(whole: Callable[[Any], int]) -> Callable[[Any], Any]:
    """A function to whole numbers, of which a zero has the sign of what was rounded."""

    def rounded(x: Any) -> Any:
        if not isinstance(x, float) or not math.isfinite(x):
            return x
        return math.copysign(float(whole(x)), x)

    return rounded


def with_sign(x: float, y: float) -> float:
    negative = struct.pack(">d", y)[0] >= 128
    return -abs(x) if negative else abs(x)


def is_negative(x: Any) -> bool:
    return struct.pack(">d", x)[0] >= 128 if isinstance(x, float) else x < 0


def next_number(x: float, y: float) -> float:
    return math.nextafter(x, y) if x != y else y


def angle_of(y: float, x: float) -> float:
    return math.atan2(y, x)


def sine_of_pi(x: Any) -> Any:
    """sin(pi x) / (pi x)"""
    if isinstance(x, complex):
        return cmath.sin(math.pi * x) / (math.pi * x) if x else 1.0
    if not x:
        return 1.0
    if not math.isfinite(x):
        return NAN
    return math.sin(math.pi * math.fmod(x, 2)) / (math.pi * x) if abs(x) < 1e3 else _far_off()


def _far_off() -> float:
    raise ValueError("pi has too few digits")


def times_log(x: float, y: float) -> float:
    """x log(y), 0 where x is 0 and y no nan."""
    return NAN if y != y else 0.0 if not x else x * elementary("log")(y)


def times_log1p(x: float, y: float) -> float:
    return NAN if y != y else 0.0 if not x else x * elementary("log1p")(y)


def entropy(x: float) -> float:
    """-x log(x), 0 at 0, -inf below"""
    return x if x != x else -INF if x < 0 else 0.0 if not x else -x * elementary("log")(x)


def logit(x: float) -> float:
    """log(x / (1 - x))"""
    if not 0 <= x <= 1:
        return NAN
    return -INF if not x else INF if x == 1 else math.log(x) - math.log1p(-x)


def converted(x: Any, dtype: np.dtype) -> Any:
    """The number of `dtype` that stands for `x`: integers lose what is behind the point, bools all but being no 0."""
    if dtype.kind == "b":
        return bool(x)
    x = x.real if isinstance(x, complex) and dtype.kind != "c" else x
    if dtype.kind in "iu":
        if isinstance(x, float) and not abs(x) < 2.0 ** (8 * dtype.itemsize - 1):
            raise ValueError("there is no such integer, and backends have what they like")
        return int(x)
    return x


def moved_bits(left: bool) -> Callable[[int, int], int]:
    """Bits moved to the left, or to the right. By their number or more: none is left but the sign."""

    def shifted(x: int, y: int) -> int:
        if not 0 <= y < 64:
            raise ValueError("no such shift")
        return x * 2**y if left else x // 2**y

    return shifted


# gradients, for a cotangent g, where the derivative jumps or has no value: PyTorch's choices
Slope = Callable[..., float]


def _nothing(g: float, *operands: float) -> float:
    return 0.0


NOTHING: Slope = _nothing


def absolute_slope(g: float, x: float) -> float:
    return g if x > 0 else -g if x < 0 else 0.0


def rectified_slope(g: float, x: float) -> float:
    return 0.0 if x <= 0 else g


def extreme_slope(better: Callable[[float, float], bool], first: bool) -> Slope:
    """All of it to the one that is chosen, half of it on a tie, all to both beside nan."""

    def slope(g: float, x: float, y: float) -> float:
        mine, other = (x, y) if first else (y, x)
        return g / 2 if mine == other else 0.0 if better(other, mine) else g

    return slope


def power_slope_of_base(g: float, x: float, y: float) -> float:
    """g y x^(y-1), 0 where y is 0"""
    return 0.0 if not y else g * (y * power(x, y - 1))


def power_slope_of_exponent(g: float, x: float, y: float) -> float:
    """g x^y log(x), 0 where x is 0 and y not negative"""
    if not x and y >= 0:
        return 0.0
    return g * (power(x, y) * elementary("log")(x))


def angle_slope(numerator: int) -> Slope:
    """Of atan2(y, x): (x g, -y g) / (x^2 + y^2), 0 at the origin"""

    def slope(g: float, y: float, x: float) -> float:
        norm = x * x + y * y
        return 0.0 if not norm else g * (-y if numerator else x) / norm

    return slope


def copied_sign_slope(g: float, x: float, y: float) -> float:
    return 0.0 if not x else NAN if not math.isfinite(x) else g if (x < 0) == is_negative(y) else -g


def neighbour_slope(g: float, x: float, y: float) -> float:
    return 0.0 if x == y else g


def times_log_slope(g: float, x: float, y: float) -> float:
    return 0.0 if not x and y <= 0 else g * elementary("log")(y)


def times_log1p_slope(g: float, x: float, y: float) -> float:
    return 0.0 if not x and y <= -1 else g * elementary("log1p")(y)


def sine_of_pi_slope(g: float, x: float) -> float:
    if not x:
        return 0.0
    if abs(x) < 1e-2:
        raise ValueError("a difference of few digits")
    angle = math.pi * x
    return g * (math.cos(angle) - math.sin(angle) / angle) / x


def where_slope(first: bool) -> Slope:
    return lambda g, condition, x, y: g if bool(condition) is first else 0.0


def given(g: float, *operands: float) -> float:
    return g


def remainder_slope(g: float, x: float, y: float) -> float:
    return -g * floor_divide(x, y)


def truncated_slope(g: float, x: float, y: float) -> float:
    return -g * _whole_quotient(x, y, math.trunc)
