"""Functions of `torch.special` without derivatives: Bessel and Airy functions.

SciPy has them and XLA does not: under JAX those of `ON_HOST` run in the kernels given here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graphc.ops.polynomials import POLYNOMIALS
from graphc.ops.rules import pointwise_wide
from graphc.ops.spec import Op, Trait, op

ON_HOST: list[Op] = [*POLYNOMIALS]


def _scipy(name: str, pick: int | None = None) -> Callable[..., Any]:
    """The function `name` of scipy.special, or result number `pick` of it; imports SciPy at its first call."""

    def kernel(*arrays: Any) -> Any:
        import scipy.special

        result = getattr(scipy.special, name)(*arrays)
        return result if pick is None else result[pick]

    return kernel


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


# name in torch.special -> kernel, reference
_OF_ONE: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "airy_ai": (_airy, lambda x: np.sqrt(x / 3) / np.pi * _scipy("kv")(1 / 3, 2 / 3 * x**1.5)),
    "bessel_j0": (_scipy("j0"), _bessel_j(0)),
    "bessel_j1": (_scipy("j1"), _bessel_j(1)),
    "bessel_y0": (_scipy("y0"), _with_order("yv", 0.0)),
    "bessel_y1": (_scipy("y1"), _with_order("yv", 1.0)),
    "modified_bessel_k0": (_scipy("k0"), _bessel_k(0, False)),
    "modified_bessel_k1": (_scipy("k1"), _bessel_k(1, False)),
    "scaled_modified_bessel_k0": (_scipy("k0e"), _bessel_k(0, True)),
    "scaled_modified_bessel_k1": (_scipy("k1e"), _bessel_k(1, True)),
}
_KINDS = {"j": "first", "y": "second", "i": "first", "k": "second"}


def _described(name: str) -> str:
    """What a function of this name is: "modified_bessel_k0", say."""
    if name == "airy_ai":
        return "The Airy function Ai."
    modified = "modified " if "modified" in name else ""
    text = f"he {modified}Bessel function of the {_KINDS[name[-2]]} kind, of order {name[-1]}."
    return f"exp(input) times t{text}" if name.startswith("scaled") else f"T{text}"


for _name, (_kernel, _ref) in _OF_ONE.items():
    ON_HOST.append(op(f"special_{_name}", "input", doc=_described(_name),
                      impl=lambda xp, x, k=_kernel: k(x), numpy=_kernel,
                      rule=pointwise_wide, traits=Trait.ORDERS, domain=(0.3, 4.0), ref=_ref))  # fmt: skip
for _name, _order in {"i0": 0.0, "i1": 1.0}.items():
    op(f"special_modified_bessel_{_name}", "input", doc=_described(f"modified_bessel_{_name}"),
       impl=f"special.{_name}", rule=pointwise_wide, traits=Trait.ORDERS,
       ref=_with_order("iv", _order))  # fmt: skip


def _spherical_j0(xp: Any, x: Any) -> Any:
    zero, infinite = x == 0, xp.isinf(x)
    other = zero | infinite
    safe = xp.where(other, xp.ones_like(x), x)
    return xp.where(other, zero.astype(x.dtype), xp.sin(safe) / safe)


op("special_spherical_bessel_j0", "input", doc="The spherical Bessel function of the first kind, of order 0.",
   impl=_spherical_j0, rule=pointwise_wide, traits=Trait.ORDERS,
   ref=lambda x: _scipy("spherical_jn")(0, x))  # fmt: skip
