"""Whole powers as products, which cost a few multiplications where `pow` costs a logarithm and an exponential.

By squarings, in the order of `jax.lax.integer_pow`: both backends round alike. No factor is larger than the result
where that is above 1, nor smaller where it is below, so that nothing overflows which the result does not; of negative
powers, therefore, the reciprocal comes first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

# x ** 8 takes three squarings and is 5 ULP off at the worst, x ** -4 as much; `pow` is 1, whatever the exponent.
LEAST, MOST = -4, 8


def whole(exponent: Any) -> int | None:
    """`exponent`, a number, as the int of a power that is taken as a product, or None."""
    if isinstance(exponent, (bool, complex)) or not LEAST <= exponent <= MOST:  # nan is not
        return None
    return int(exponent) if exponent == int(exponent) else None


def roundings(exponents: np.ndarray) -> np.ndarray:
    """How many results are rounded on the way to a whole power: bounds the error, in units of half an ULP."""
    taken = (exponents == np.floor(exponents)) & (exponents >= LEAST) & (exponents <= MOST)
    return np.where(taken, np.where(exponents < 0, -2 * exponents, exponents) - 1, 0).clip(0)


def product(x: np.ndarray, n: int) -> np.ndarray:
    """x ** n, a new array, for real numbers; for integers, n is not negative."""
    if 0 <= n <= 1:
        return np.array(x) if n else np.ones_like(x)
    factor, n = (1 / x, -n) if n < 0 else (x, n)
    result = None
    while n > 1:
        if n & 1:
            result = factor if result is None else result * factor
        factor, n = factor * factor, n >> 1
    return np.asarray(factor if result is None else result * factor)
