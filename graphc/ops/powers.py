"""Powers by whole numbers as products, and by those between with a root.

They cost a few multiplications where `pow` costs a logarithm and an exponential.

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


def halves(exponent: Any) -> int | None:
    """2 * `exponent`, a number, if that is odd and the power is taken as a product and a root, or None."""
    if isinstance(exponent, (bool, complex)) or not LEAST <= exponent <= MOST or exponent in (-0.5, 0.5):
        return None
    return int(2 * exponent) if 2 * exponent % 2 == 1 else None


def roundings(exponents: np.ndarray) -> np.ndarray:
    """How many results are rounded on the way to a whole power: bounds the error, in units of half an ULP."""
    if exponents.dtype.kind == "c":  # never by products
        return np.zeros(exponents.shape)
    taken = (2 * exponents == np.floor(2 * exponents)) & (exponents >= LEAST) & (exponents <= MOST)
    whole = exponents == np.floor(exponents)
    return np.where(taken, np.where(exponents < 0, -2 * exponents, exponents) + np.where(whole, -1, 1), 0).clip(0)


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


def product_and_root(x: np.ndarray, half: int) -> np.ndarray:
    """x ** (half / 2) for floats: of a negative number nan, but of -inf."""
    size = np.abs(x)
    factor = 1 / size if half < 0 else size
    result = np.asarray(product(factor, abs(half) // 2) * np.sqrt(factor))
    return np.where(x < 0, np.where(np.isneginf(x), result, np.asarray(np.nan, result.dtype)), result)
