"""Functions of `torch.special` without derivatives: Bessel and Airy functions, orthogonal polynomials.

SciPy has them and XLA does not: under JAX those of `ON_HOST` run in the kernels given here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graphc.ops.rules import pointwise_wide
from graphc.ops.spec import Op, Trait, op

ON_HOST: list[Op] = []


def _scipy(name: str, pick: int | None = None) -> Callable[..., Any]:
    """The function `name` of scipy.special, or result number `pick` of it; imports SciPy at its first call."""

    def kernel(*arrays: Any) -> Any:
        import scipy.special

        result = getattr(scipy.special, name)(*arrays)
        return result if pick is None else result[pick]

    return kernel


# --- of one argument

_ANGLES = (np.arange(64) + 0.5) * (np.pi / 64)  # the midpoint rule over [0, pi] is exact for the integrals below


def _bessel_j(order: int) -> Callable[..., Any]:
    return lambda x: np.cos(order * _ANGLES - np.multiply.outer(x, np.sin(_ANGLES))).mean(axis=-1)


def _bessel_k(order: int, scaled: bool) -> Callable[..., Any]:
    """The integral of exp(-x (cosh t - 1)) cosh(order t) over t >= 0, times exp(-x) unless `scaled`."""
    t = np.linspace(0, 8, 401)
    weights = np.full(401, 0.02)
    weights[0] = 0.01

    def reference(x: np.ndarray) -> np.ndarray:
        fall = np.exp(-np.multiply.outer(x, np.cosh(t) - 1)) * np.cosh(order * t)
        return (fall * weights).sum(axis=-1) * (1 if scaled else np.exp(-x))

    return reference


def _with_order(name: str, order: float) -> Callable[..., Any]:
    return lambda x: _scipy(name)(order, x)


def _airy(x: Any) -> Any:
    return np.where(np.isfinite(x) & (x > 110), 0, _scipy("airy", 0)(x)).astype(x.dtype)  # SciPy has nan far out


def _airy_by_bessel(x: np.ndarray) -> np.ndarray:
    return np.sqrt(x / 3) / np.pi * _scipy("kv")(1 / 3, 2 / 3 * x**1.5)


# name in torch.special -> kernel, reference
_OF_ONE: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "airy_ai": (_airy, _airy_by_bessel),
    "bessel_j0": (_scipy("j0"), _bessel_j(0)),
    "bessel_j1": (_scipy("j1"), _bessel_j(1)),
    "bessel_y0": (_scipy("y0"), _with_order("yv", 0.0)),
    "bessel_y1": (_scipy("y1"), _with_order("yv", 1.0)),
    "modified_bessel_k0": (_scipy("k0"), _bessel_k(0, False)),
    "modified_bessel_k1": (_scipy("k1"), _bessel_k(1, False)),
    "scaled_modified_bessel_k0": (_scipy("k0e"), _bessel_k(0, True)),
    "scaled_modified_bessel_k1": (_scipy("k1e"), _bessel_k(1, True)),
}
for _name, (_kernel, _ref) in _OF_ONE.items():
    ON_HOST.append(op(f"special_{_name}", "input", impl=lambda xp, x, k=_kernel: k(x), numpy=_kernel,
                      rule=pointwise_wide, traits=Trait.ORDERS, domain=(0.3, 4.0), ref=_ref))  # fmt: skip
for _name, _order in {"i0": 0.0, "i1": 1.0}.items():
    op(f"special_modified_bessel_{_name}", "input", impl=f"special.{_name}", rule=pointwise_wide, traits=Trait.ORDERS,
       ref=_with_order("iv", _order))  # fmt: skip


def _spherical_j0(xp: Any, x: Any) -> Any:
    zero, infinite = x == 0, xp.isinf(x)
    other = zero | infinite
    safe = xp.where(other, xp.ones_like(x), x)
    return xp.where(other, zero.astype(x.dtype), xp.sin(safe) / safe)


op("special_spherical_bessel_j0", "input", impl=_spherical_j0, rule=pointwise_wide, traits=Trait.ORDERS,
   ref=lambda x: _scipy("spherical_jn")(0, x))  # fmt: skip

# --- polynomials of a degree, of which the whole part counts; 0 for a negative one

Next = Callable[[int, Any, Any, Any], Any]  # (k, x, p(k), p(k-1)) -> p(k+1)


def _polynomial(first: Callable[[Any], Any], following: Next) -> Callable[..., Any]:
    """The polynomials that start with 1 and `first`, by their recurrence, until nothing but nan is left, as PyTorch."""

    def kernel(x: Any, n: Any) -> Any:
        x, n = np.broadcast_arrays(x, n)
        degrees = n.astype(np.int64)
        before, current = np.ones_like(x), np.asarray(first(x))
        result = np.where(degrees < 0, 0, np.where(degrees == 0, before, current))
        for k in range(1, int(degrees.max(initial=0))):
            before, current = current, following(k, x, current, before)
            result = np.where(degrees > k, current, result)
            if np.isnan(current[degrees > k]).all():
                break
        return result.astype(x.dtype)

    return kernel


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


def _shifted(kernel: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, n: kernel(2 * x - 1, n)


def _by_angle(formula: Callable[..., Any], low: float, scale: float) -> Callable[..., Any]:
    return lambda x, n: formula(np.trunc(n), np.arccos(x * scale + low))


def _basis(module: str, function: str) -> Callable[..., Any]:
    """A polynomial through NumPy's series of its kind, whose last coefficient alone is not 0."""

    def value(x: float, n: float) -> Any:
        return getattr(getattr(np.polynomial, module), function)(x, [0] * int(n) + [1])

    return np.vectorize(value, otypes=[float])


_KINDS = {kind: _polynomial(first, _chebyshev) for kind, first in _FIRST.items()}
# name in torch.special -> kernel, reference, domain of the first argument
_POLYNOMIALS = {
    **{f"chebyshev_polynomial_{kind}": (kernel, _by_angle(_ANGULAR[kind], 0, 1), (-0.9, 0.9))
       for kind, kernel in _KINDS.items()},
    **{f"shifted_chebyshev_polynomial_{kind}": (_shifted(kernel), _by_angle(_ANGULAR[kind], -1, 2), (0.1, 0.9))
       for kind, kernel in _KINDS.items()},
    "hermite_polynomial_h": (
        _polynomial(lambda x: 2 * x, lambda k, x, p, before: 2 * (x * p - k * before)),
        _basis("hermite", "hermval"), (-2, 2)),
    "hermite_polynomial_he": (
        _polynomial(lambda x: x, lambda k, x, p, before: x * p - k * before), _basis("hermite_e", "hermeval"), (-2, 2)),
    "laguerre_polynomial_l": (
        _polynomial(lambda x: 1 - x, lambda k, x, p, before: ((2 * k + 1 - x) * p - k * before) / (k + 1)),
        _basis("laguerre", "lagval"), (-2, 2)),
    "legendre_polynomial_p": (
        _polynomial(lambda x: x, lambda k, x, p, before: ((2 * k + 1) * x * p - k * before) / (k + 1)),
        _basis("legendre", "legval"), (-2, 2)),
}  # fmt: skip
for _name, (_kernel, _ref, _domain) in _POLYNOMIALS.items():
    ON_HOST.append(op(f"special_{_name}", "input n", impl=lambda xp, x, n, k=_kernel: k(x, n), numpy=_kernel,
                      rule=pointwise_wide, traits=Trait.ORDERS, domain=(_domain, (0.0, 6.0)), ref=_ref))  # fmt: skip
