"""Which formula a pair of types of distributions has."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from eager.core.tensor import Tensor
from eager.distributions.distribution import Distribution

__all__ = ["kl_divergence", "register_kl"]

_KL_REGISTRY: dict[tuple[type, type], Callable[[Any, Any], Any]] = {}
_KL_MEMOIZE: dict[tuple[type, type], Any] = {}


def register_kl(type_p: Any, type_q: Any) -> Callable[[Callable[[Any, Any], Any]], Any]:
    """Decorate `f(p, q)`, the divergence of distributions of these types, and of subclasses of them without a nearer
    one. TypeError for what is no class; other classes are taken, as libraries have distributions that are not of here.
    """
    for name, given in (("type_p", type_p), ("type_q", type_q)):
        if not isinstance(given, type):
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {given}")

    def decorator(fun: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        _KL_REGISTRY[type_p, type_q] = fun
        _KL_MEMOIZE.clear()
        return fun

    return decorator


def _nearest(types: tuple[type, type], first: int) -> tuple[type, type]:
    """The registered pair of base classes that is nearest to `types`: in place `first`, then in the other one."""
    other = 1 - first
    pairs = [pair for pair in _KL_REGISTRY if issubclass(types[0], pair[0]) and issubclass(types[1], pair[1])]
    return min(
        pairs, key=lambda pair: (types[first].__mro__.index(pair[first]), types[other].__mro__.index(pair[other]))
    )


def _dispatch_kl(type_p: type, type_q: type) -> Any:
    """The formula of the nearest pair; NotImplemented if there is none."""
    if not any(issubclass(type_p, p) and issubclass(type_q, q) for p, q in _KL_REGISTRY):
        return NotImplemented
    left, right = (_nearest((type_p, type_q), first) for first in (0, 1))
    if _KL_REGISTRY[left] is not _KL_REGISTRY[right]:
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). Please register_kl({left[0].__name__}, "
            f"{right[1].__name__})", RuntimeWarning, stacklevel=4,
        )  # fmt: skip
    return _KL_REGISTRY[left]


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The Kullback-Leibler divergence, the mean of log p(x) - log q(x) over x of p, of shape `batch_shape`.

    NotImplementedError if no formula is registered for their types.
    """
    key = type(p), type(q)
    if key not in _KL_MEMOIZE:
        _KL_MEMOIZE[key] = _dispatch_kl(*key)
    fun = _KL_MEMOIZE[key]
    if fun is NotImplemented:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {p.__class__.__name__} and q type {q.__class__.__name__}"
        )
    return fun(p, q)
