"""Wrong forms of a kernel, for NumPy (`xp` is numpy) and for JAX (`xp` is jax.numpy)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphc.ops import Op

Kernel = Callable[..., Any]
Mutant = Callable[[Any, Op, Kernel], Kernel]


def result(change: Callable[[Any, Any], Any]) -> Mutant:
    """A kernel with `change(xp, result)` for its result."""
    return lambda xp, op, kernel: lambda *arrays, **params: change(xp, kernel(*arrays, **params))


def operands(change: Callable[..., Any]) -> Mutant:
    """A kernel that is given `change(xp, *operands)`."""
    return lambda xp, op, kernel: lambda *arrays, **params: kernel(*change(xp, *arrays), **params)


def ignoring(name: str, value: Any = None) -> Mutant:
    """A kernel that takes a parameter to be `value`, or its default."""

    def mutant(xp: Any, op: Op, kernel: Kernel) -> Kernel:
        fixed = op.params[name] if value is None else value
        return lambda *arrays, **params: kernel(*arrays, **{**params, name: fixed})

    return mutant


def instead(form: Callable[..., Any]) -> Mutant:
    """The kernel `form(xp, *operands, **params)`."""
    return lambda xp, op, kernel: lambda *arrays, **params: form(xp, *arrays, **params)


def _last_off(xp: Any, r: Any) -> Any:
    places = xp.arange(r.size).reshape(r.shape)
    return xp.where(places == r.size - 1, r * 1.001, r).astype(r.dtype)


def disordered(xp: Any, op: Op, kernel: Kernel) -> Kernel:
    """A kernel that is wrong where the first operand does not lie in memory row by row."""

    def wrong(x: Any, *rest: Any, **params: Any) -> Any:
        found = kernel(x, *rest, **params)
        return found if x.flags.c_contiguous else found * x.dtype.type(1.5)

    return wrong


scaled = result(lambda xp, r: r * 1.001)
last_element_off = result(_last_off)
negated = result(lambda xp, r: -r)
transposed = result(lambda xp, r: xp.swapaxes(r, -1, -2))
narrow = operands(
    lambda xp, *arrays: [a.astype("float32").astype(a.dtype) if a.dtype.kind == "f" else a for a in arrays]
)
swapped = operands(lambda xp, x, y: (y, x))
identity = instead(lambda xp, x, *rest, **params: x + 0)
one_higher = result(lambda xp, r: r + 1)
