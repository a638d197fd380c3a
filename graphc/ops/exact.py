"""What ops of linear algebra mean, in exact arithmetic: every float is a fraction, and elimination loses nothing.

References (see graphc.ops.references), which share nothing with the kernels. Of real matrices; large ones, whose
fractions grow, and singular ones have no opinion (ValueError).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

LARGEST = 6  # rows


def _fractions(x: np.ndarray) -> list[list[Any]]:
    from fractions import Fraction  # here: `import eager` stays light

    if x.shape[-1] > LARGEST or x.dtype.kind == "c" or not np.isfinite(x).all():
        raise ValueError("no small matrix of finite numbers")
    return [[Fraction(v) for v in row] for row in x.tolist()]


def _eliminated(a: list[list[Any]], b: list[list[Any]]) -> tuple[Any, list[list[Any]]]:
    """(the determinant of a, a^-1 b) by Gauss and Jordan. Raises ValueError if a is singular."""
    determinant: Any = 1
    a, b = [list(row) for row in a], [list(row) for row in b]
    for k in range(len(a)):
        pivot = next((i for i in range(k, len(a)) if a[i][k]), None)
        if pivot is None:
            raise ValueError("a singular matrix")
        if pivot != k:
            a[k], a[pivot], b[k], b[pivot] = a[pivot], a[k], b[pivot], b[k]
            determinant = -determinant
        head = a[k][k]
        determinant *= head
        a[k], b[k] = [v / head for v in a[k]], [v / head for v in b[k]]
        for i in range(len(a)):
            factor = a[i][k]
            if i != k and factor:
                a[i] = [v - factor * w for v, w in zip(a[i], a[k], strict=True)]
                b[i] = [v - factor * w for v, w in zip(b[i], b[k], strict=True)]
    return determinant, b


def _determinant(a: list[list[Any]]) -> Any:
    try:
        return _eliminated(a, [[] for _ in a])[0]
    except ValueError:
        return 0


def _each(
    function: Callable[..., Any], *arrays: np.ndarray, batch: tuple[int, ...], size: tuple[int, ...]
) -> np.ndarray:
    result = np.empty((*batch, *size))
    for at in np.ndindex(batch):
        result[at] = np.array(function(*(a[at] for a in arrays)), float).reshape(size)
    return result


def solution(x: np.ndarray, y: np.ndarray, **params: Any) -> np.ndarray:
    """x^-1 y"""
    return _each(lambda a, b: _eliminated(_fractions(a), _columns(b))[1], x, y, batch=x.shape[:-2], size=y.shape[-2:])


def quadratic_forms(x: np.ndarray, y: np.ndarray, **params: Any) -> np.ndarray:
    """y^T x^-1 y, for each column."""
    return (solution(x, y) * y).sum(-2)


def _columns(b: np.ndarray) -> list[list[Any]]:
    from fractions import Fraction

    return [[Fraction(v) for v in row] for row in b.tolist()]


def inverse(x: np.ndarray, **params: Any) -> np.ndarray:
    return solution(x, np.broadcast_to(np.eye(x.shape[-1]), x.shape))


def triangular_solution(x: np.ndarray, y: np.ndarray, upper: bool, unit: bool) -> np.ndarray:
    """The solution with the upper or lower triangle of x, its diagonal taken for ones if `unit`."""
    kept = np.zeros(x.shape)
    for *at, i, j in np.ndindex(x.shape):
        if (j > i) if upper else (j < i):
            kept[(*at, i, j)] = x[(*at, i, j)]
        elif i == j:
            kept[(*at, i, j)] = 1 if unit else x[(*at, i, j)]
    return solution(kept, y)


def determinant(x: np.ndarray) -> np.ndarray:
    return _each(lambda a: _determinant(_fractions(a)), x, batch=x.shape[:-2], size=())


def cofactors(x: np.ndarray) -> np.ndarray:
    """(-1)^(i+j) times the determinant without row i and column j."""

    def of(a: np.ndarray) -> list[list[Any]]:
        m = _fractions(a)
        n = range(len(m))
        return [
            [(-1) ** (i + j) * _determinant([[m[r][c] for c in n if c != j] for r in n if r != i]) for j in n]
            for i in n
        ]

    return _each(of, x, batch=x.shape[:-2], size=x.shape[-2:])
