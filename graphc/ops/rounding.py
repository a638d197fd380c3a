"""How far off a correct kernel of an op may be. Errors are in ULP of the dtype of the result.

They are no tolerances on results: `compare` feeds them through a program, and what comes out at each element is what
rounding can do there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from graphc.ops.aval import Aval
from graphc.ops.dtypes import FLOAT32

Ulps = Callable[[list[Aval], Mapping[str, Any]], float | None]
Elements = np.ndarray | bool


class Rounding(NamedTuple):
    """What the declaration of an op says of rounding. What it does not say follows from its rule and traits.

    ulps     the relative error of a result, a number or `f(avals, params)`: 0 if the op computes nothing, 1 for one
             operation that is rounded, None for a sum, whose error follows from its length. By default 0 for an op with
             the trait MOVES, `COMPOSED` for another pointwise one, and None for any other
    length   `f(avals, result aval, params)`: how many numbers an element of the result may be the sum of, where that
             does not follow from flops or sizes
    terms    `f(result, *operands, **params)`: the size of larger terms that a result is made of, whose ULPs count, too
    operand  `f(operand)`: of an op that gives the exact result of a matrix that is a few ULP off, besides those of its
             elements: the sizes whose ULPs these are
    denominator  `f(*operands, **params)`: what the op divides by
    exact    `f(result, *operands, **params)`, in float64: the elements that float64 has not rounded
    """

    ulps: float | Ulps | None = None
    length: Callable[[list[Aval], Aval, Mapping[str, Any]], float] | None = None
    terms: Callable[..., np.ndarray | float] | None = None
    operand: Callable[[np.ndarray], np.ndarray | float] | None = None
    denominator: Callable[..., np.ndarray] | None = None
    exact: Callable[..., Elements] | None = None

    def at(self, avals: list[Aval], params: Mapping[str, Any]) -> float | None:
        """`ulps` of a result of operands of these types; None for a sum."""
        return self.ulps(avals, params) if callable(self.ulps) else self.ulps

    def completed(self, moves: bool, pointwise: bool) -> Rounding:
        """This, with the default of `ulps` for an op that is such."""
        if self.ulps is not None or not (moves or pointwise):
            return self
        return self._replace(ulps=0.0 if moves else COMPOSED)


# Functions without a measurement of their own, and compositions: the worst that was measured, erf and expm1, is 6.
COMPOSED = 6.0
EXACT = Rounding(0.0)
# add, mul, div and sqrt are bit-equal alone; contraction to fma and x/c -> x*(1/c) move them by one.
ARITHMETIC = Rounding(1.0)
# Next to the zeros of the function the error is a few ULP of 1, whatever is left.
OF_ONE = Rounding(terms=lambda r, *operands: 1.0)


def of_complex(ulps: float) -> Ulps:
    """The error of an op that rounds complex numbers only."""
    return lambda avals, params: ulps if avals[0].dtype.kind == "c" else 0.0


def largest(array: np.ndarray, axis: int | tuple[int, ...]) -> np.ndarray:
    """The largest magnitude along `axis`, which is kept; infinity counts as 0."""
    return np.nan_to_num(np.abs(array), posinf=0.0).max(axis=axis, keepdims=True, initial=0.0)


# Factorizations compute the exact result of a matrix that is a few ULP off: of its norm where they rotate, of the
# norms of its rows and columns where they eliminate (Higham, Accuracy and Stability of Numerical Algorithms, 9 and 19).


def norm(matrix: np.ndarray) -> np.ndarray | float:
    """`Rounding.operand` of an op that rotates."""
    return largest(matrix, (-2, -1)) if matrix.ndim > 1 and matrix.size else 0.0


def norms(matrix: np.ndarray) -> np.ndarray | float:
    """`Rounding.operand` of an op that eliminates."""
    if matrix.ndim < 2 or not matrix.size:
        return 0.0
    return np.sqrt(largest(matrix, -1)) * np.sqrt(largest(matrix, -2))


def along(axis: int | tuple[int, ...]) -> Callable[..., np.ndarray]:
    """`Rounding.terms` of orthogonal factors and eigenvectors: a few ULP of the largest along `axis`, not of each."""
    return lambda r, *operands, **params: largest(r, axis)


# each element comes of as many subtractions as there are rows
ELIMINATES = Rounding(length=lambda avals, result, params: avals[0].shape[-1], operand=norms)


def held(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Which elements of `array` are numbers of `dtype`."""
    with np.errstate(all="ignore"):
        return array.astype(dtype).astype(array.dtype) == array


def exact_sum(r: np.ndarray, x: np.ndarray, y: np.ndarray) -> Elements:
    """Knuth's TwoSum: where r = x + y has lost nothing."""
    back = r - x
    return (x - (r - back)) + (y - back) == 0


def exact_product(r: np.ndarray, x: np.ndarray, y: np.ndarray) -> Elements:
    """Where r = x * y, in float64, has lost nothing: 24 digits by 24 fit into the 53 there are."""
    return held(x, FLOAT32) & held(y, FLOAT32)
