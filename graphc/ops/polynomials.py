"""Orthogonal polynomials of `torch.special`. Of the degree, an argument, the whole part counts; 0 for a negative one.

Small degrees take the recurrence, as in PyTorch. Large ones would take as many passes over the array, of microseconds
each: Chebyshev's have closed forms, Legendre's and Laguerre's the recurrences in SciPy, which are loops in C, and their
limits for degrees of millions. All are in float64. What grows beyond the range of its dtype becomes infinite for two
degrees, and nan after that, as the recurrence of PyTorch does; those of Hermite grow so fast that nothing is left after
a few hundred steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from graphc.ops.rounding import OF_ONE
from graphc.ops.rules import pointwise_wide
from graphc.ops.spec import Op, Trait, op

Next = Callable[[int, Any, Any, Any], Any]  # (k, x, p(k), p(k-1)) -> p(k+1)
Far = Callable[[np.ndarray, np.ndarray, float], np.ndarray]  # (x, degrees, largest finite number) -> values, in float64
NEAR = 64  # the largest degree by the recurrence
FAR = 2**20  # the largest degree by SciPy's loops, which take some milliseconds for that
_TERMS = 13  # of Tricomi's series: its error is of the order n**-2.5

POLYNOMIALS: list[Op] = []


def _polynomial(first: Callable[[Any], Any], following: Next, far: Far | None = None) -> Callable[..., Any]:
    """The polynomials that start with 1 and `first`, by their recurrence; above `NEAR` by `far`, where there is one."""

    def kernel(x: Any, n: Any) -> Any:
        x, n = np.broadcast_arrays(x, n)
        degrees = n.astype(np.int64)
        before, current = np.ones_like(x), np.asarray(first(x))
        result = np.where(degrees < 0, 0, np.where(degrees == 0, before, current))
        last = int(degrees.max(initial=0))
        for k in range(1, last if far is None else min(last, NEAR)):
            before, current = current, following(k, x, current, before)
            result = np.where(degrees > k, current, result)
            if np.isnan(current[degrees > k]).all():
                break
        result = np.asarray(result, x.dtype)
        distant = degrees > NEAR
        if far is not None and distant.any():
            largest = float(np.finfo(x.dtype).max)
            with np.errstate(all="ignore"):
                result[distant] = far(x[distant].astype(np.float64), degrees[distant], largest)
        return result

    return kernel


# Chebyshev's: the real part of exp(i n angle), and its like
def _chebyshev(k: int, x: Any, p: Any, before: Any) -> Any:
    return 2 * x * p - before


_FIRST: dict[str, Callable[[Any], Any]] = {
    "t": lambda x: x, "u": lambda x: 2 * x, "v": lambda x: 2 * x - 1, "w": lambda x: 2 * x + 1,
}  # fmt: skip
_ANGULAR: dict[str, Callable[..., Any]] = {
    "t": lambda n, angle: np.cos(n * angle),
    "u": lambda n, angle: np.sin((n + 1) * angle) / np.sin(angle),
    "v": lambda n, angle: np.cos((n + 0.5) * angle) / np.cos(angle / 2),
    "w": lambda n, angle: np.sin((n + 0.5) * angle) / np.sin(angle / 2),
}
# at 1, and at -1 but for the sign of the degree
_AT_ENDS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "t": (np.ones_like, np.ones_like),
    "u": (lambda n: n + 1, lambda n: n + 1),
    "v": (np.ones_like, lambda n: 2 * n + 1),
    "w": (lambda n: 2 * n + 1, np.ones_like),
}
_MIRRORED = {"t": "t", "u": "u", "v": "w", "w": "v"}  # p(-x) is (-1)^n times this kind's


def _hyperbolic(kind: str, n: Any, x: Any) -> Any:
    """The polynomial at x > 1: hyperbolic functions of arccosh(x), without what overflows before their quotient."""
    angle = np.arccosh(x)
    steps = {"t": n, "u": n + 1}.get(kind, n + 0.5) * angle
    even = kind in "tv"
    below = {"t": 1.0, "u": np.sinh(angle), "v": np.cosh(angle / 2), "w": np.sinh(angle / 2)}[kind]
    rest = 1 + np.exp(-2 * steps) if even else -np.expm1(-2 * steps)
    return np.exp(steps - np.log(2 * below)) * rest


def _beyond(value: np.ndarray, earlier: np.ndarray, largest: float) -> np.ndarray:
    """`value`, infinite where it is above `largest`, and nan where `earlier`, of a degree two less, is infinite."""
    found = np.where(np.abs(value) > largest, np.copysign(np.inf, value), value)
    return np.where(np.isfinite(earlier) & (np.abs(earlier) <= largest), found, np.nan)


def _by_angles(kind: str) -> Far:
    """The polynomials of Chebyshev's of a kind, in closed form."""

    def far(x: np.ndarray, degrees: np.ndarray, largest: float) -> np.ndarray:
        n = degrees.astype(np.float64)
        sign = np.where((degrees % 2 == 1) & (x < 0), -1.0, 1.0)
        inner = _ANGULAR[kind](n, np.arccos(np.clip(x, -1, 1)))
        outside, size = np.abs(x) > 1, np.where(np.abs(x) > 1, np.abs(x), 2.0)
        value, earlier = (
            np.where(x > 0, _hyperbolic(kind, m, size), _hyperbolic(_MIRRORED[kind], m, size)) for m in (n, n - 2)
        )
        at_one, at_minus_one = (end(n) for end in _AT_ENDS[kind])
        found = np.where(outside, sign * _beyond(value, earlier, largest), inner)
        found = np.where(np.abs(x) == 1, sign * np.where(x > 0, at_one, at_minus_one), found)
        return np.where(np.isnan(x), np.nan, found)

    return far


def _by_scipy(name: str, limit: Callable[[np.ndarray, np.ndarray], np.ndarray], mirrored: bool = False) -> Far:
    """The polynomials of `scipy.special.<name>`, which takes integers as degrees by a loop; above `FAR` by `limit`.

    mirrored: p(-x) is (-1)^n p(x), and SciPy's loop is exact to the last digits for x > 0 only
    """

    def at(x: np.ndarray, degrees: np.ndarray) -> np.ndarray:
        import scipy.special

        distant = degrees > FAR
        result = np.asarray(getattr(scipy.special, name)(np.where(distant, 0, degrees), x))
        result[distant] = limit(x[distant], degrees[distant].astype(np.float64))
        return result

    def far(x: np.ndarray, degrees: np.ndarray, largest: float) -> np.ndarray:
        sign = np.where(mirrored & (degrees % 2 == 1) & (x < 0), -1.0, 1.0)
        x = np.abs(x) if mirrored else x
        # the recurrence multiplies by 2 n before it divides by n, and so leaves the range a little earlier
        value, earlier = at(x, degrees), 2.0 * degrees * np.maximum(np.abs(x), 1) * at(x, degrees - 3)
        return sign * _beyond(value, earlier, largest)

    return far


def _legendre_limit(x: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Legendre's of very large degrees at x >= 0: Hilb's formula with its next term (Szego, Orthogonal Polynomials,
    8.21; NIST DLMF 14.15(iii)). Its error is of the order n**-2.5, that of a rounded x larger."""
    from scipy.special import i0e, i1e, j0, j1

    u = n + 0.5
    angle = np.arccos(np.clip(x, -1, 1))
    inner = np.sqrt(angle / np.sin(angle)) * (j0(u * angle) + (1 / np.tan(angle) - 1 / angle) / (8 * u) * j1(u * angle))
    angle = np.arccosh(np.maximum(x, 1))
    outer = np.sqrt(angle / np.sinh(angle)) * (
        i0e(u * angle) - (1 / angle - 1 / np.tanh(angle)) / (8 * u) * i1e(u * angle)
    )
    return np.where(x == 1, 1.0, np.where(x < 1, inner, np.exp(u * angle) * outer))


def _laguerre_limit(x: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Laguerre's of very large degrees: Tricomi's series of Bessel functions (Szego, Orthogonal Polynomials, 8.22)."""
    from scipy.special import ive, jv

    u = n + 0.5
    terms = [np.ones_like(u), np.zeros_like(u), np.full_like(u, 0.5)]
    for m in range(2, _TERMS):
        terms.append((m * terms[m - 1] - 2 * u * terms[m - 2]) / (m + 1))
    argument, ratio = np.sqrt(4 * u * np.abs(x)), np.sqrt(np.abs(x) / (4 * u))
    inner = sum(a * ratio**m * jv(m, argument) for m, a in enumerate(terms))
    outer = sum(a * (-ratio) ** m * ive(m, argument) for m, a in enumerate(terms))
    return np.where(x < 0, np.exp(x / 2 + argument) * outer, np.exp(x / 2) * inner)


def _shifted(kernel: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, n: kernel(2 * x - 1, n)


_DEFINITIONS: dict[str, Callable[[float, float], float]] = {
    "t": lambda n, angle: math.cos(n * angle),
    "u": lambda n, angle: math.sin((n + 1) * angle) / math.sin(angle),
    "v": lambda n, angle: math.cos((n + 0.5) * angle) / math.cos(angle / 2),
    "w": lambda n, angle: math.sin((n + 0.5) * angle) / math.sin(angle / 2),
}


def _by_definition(kind: str, low: float, scale: float) -> Callable[..., Any]:
    """A polynomial of Chebyshev's at `scale * x + low`, between -1 and 1."""

    def value(x: float, n: float) -> float:
        return _DEFINITIONS[kind](math.trunc(n), math.acos(scale * x + low))

    return np.vectorize(value, otypes=[float])


def _basis(module: str, function: str) -> Callable[..., Any]:
    """A polynomial through NumPy's series of its kind, whose last coefficient alone is not 0."""

    def value(x: float, n: float) -> Any:
        return getattr(getattr(np.polynomial, module), function)(x, [0] * int(n) + [1])

    return np.vectorize(value, otypes=[float])


_KINDS = {kind: _polynomial(first, _chebyshev, _by_angles(kind)) for kind, first in _FIRST.items()}
_POLYNOMIALS = {
    **{f"chebyshev_polynomial_{kind}": (kernel, _by_definition(kind, 0, 1), (-0.9, 0.9))
       for kind, kernel in _KINDS.items()},
    **{f"shifted_chebyshev_polynomial_{kind}": (_shifted(kernel), _by_definition(kind, -1, 2), (0.1, 0.9))
       for kind, kernel in _KINDS.items()},
    "hermite_polynomial_h": (
        _polynomial(lambda x: 2 * x, lambda k, x, p, before: 2 * (x * p - k * before)),
        _basis("hermite", "hermval"), (-2, 2)),
    "hermite_polynomial_he": (
        _polynomial(lambda x: x, lambda k, x, p, before: x * p - k * before), _basis("hermite_e", "hermeval"), (-2, 2)),
    "laguerre_polynomial_l": (
        _polynomial(lambda x: 1 - x, lambda k, x, p, before: ((2 * k + 1 - x) * p - k * before) / (k + 1),
                    _by_scipy("eval_laguerre", _laguerre_limit)),
        _basis("laguerre", "lagval"), (-2, 2)),
    "legendre_polynomial_p": (
        _polynomial(lambda x: x, lambda k, x, p, before: ((2 * k + 1) * x * p - k * before) / (k + 1),
                    _by_scipy("eval_legendre", _legendre_limit, mirrored=True)),
        _basis("legendre", "legval"), (-2, 2)),
}  # fmt: skip
for _name, (_kernel, _ref, _domain) in _POLYNOMIALS.items():
    POLYNOMIALS.append(op(f"special_{_name}", "input n",
                      doc=f"The polynomial {_name.rpartition('_')[2].capitalize()}_n of "
                      f"the family `{_name.partition('_poly')[0]}`.",
                      impl=lambda xp, x, n, k=_kernel: k(x, n), numpy=_kernel,
                      rule=pointwise_wide, traits=Trait.ORDERS, rounding=OF_ONE,
                      domain=(_domain, (0.0, 6.0)), ref=_ref))  # fmt: skip
