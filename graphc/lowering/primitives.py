"""Ops as the primitives of `jax.lax`, written out for operands whose shapes and dtypes are known.

`jax.numpy` would find out again, at each call, what the graph has settled: promotion, ranks, axes. That is two thirds
of the time that JAX takes to trace a program, and many of its functions are programs of their own (`jnp.where`), which
are then lowered as calls. The values are those of the `jax.numpy` function of the op; what has no row here, or other
dtypes than its row says, is called as before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graphc.ir.graph import Node
from graphc.ops.aval import Aval
from graphc.ops.dtypes import is_half, kind

Writer = Callable[[Node, Sequence[str], Sequence[Aval]], str | None]

# letters are kinds of dtypes (graphc.ops.dtypes.kind): the rows hold for these
_ELEMENTWISE: dict[str, str] = {
    "fciu": "add sub mul neg square", "fi": "abs",
    "fc": "div exp expm1 log sin cos tan asin acos atan sinh cosh tanh asinh acosh sqrt",
    "f": "exp2 atan2 erf erfc erfinv sigmoid lgamma floor ceil isfinite", "fciub": "eq ne", "fiub": "lt le gt ge",
    "iub": "bitwise_and bitwise_or bitwise_xor bitwise_not", "b": "logical_and logical_or logical_xor logical_not",
}  # fmt: skip
_LAX_NAMES = {
    "sigmoid": "logistic", "erfinv": "erf_inv", "isfinite": "is_finite", "logical_and": "bitwise_and",
    "logical_or": "bitwise_or", "logical_xor": "bitwise_xor", "logical_not": "bitwise_not",
}  # fmt: skip


def _ranked(names: Sequence[str], avals: Sequence[Aval]) -> list[str]:
    """Operands of one rank, as lax wants them, or of none; an extent of 1 broadcasts there as it does here."""
    ndim = max(aval.ndim for aval in avals)
    return [
        name if aval.ndim in (0, ndim) else f"lax.expand_dims({name}, {tuple(range(ndim - aval.ndim))})"
        for name, aval in zip(names, avals, strict=True)
    ]


def _elementwise(lax_name: str, kinds: str) -> Writer:
    def write(node: Node, names: Sequence[str], avals: Sequence[Aval]) -> str | None:
        for aval in avals:
            if kind(aval.dtype) not in kinds:
                return None
        return f"lax.{lax_name}({', '.join(_ranked(names, avals))})"

    return write


def _reshape(node: Node, names: Sequence[str], avals: Sequence[Aval]) -> str | None:
    return f"lax.reshape({names[0]}, {node.shape})"


def _permute(node: Node, names: Sequence[str], avals: Sequence[Aval]) -> str | None:
    return f"lax.transpose({names[0]}, {node.params['dims']})"


def _broadcast(name: str, given: tuple[int, ...], shape: tuple[int, ...]) -> str:
    return name if given == shape else f"lax.broadcast_in_dim({name}, {shape}, {_last(len(given), len(shape))})"


def _last(count: int, ndim: int) -> tuple[int, ...]:
    return tuple(range(ndim - count, ndim))


def _broadcast_to(node: Node, names: Sequence[str], avals: Sequence[Aval]) -> str | None:
    return _broadcast(names[0], avals[0].shape, node.shape)


def _where(node: Node, names: Sequence[str], avals: Sequence[Aval]) -> str | None:
    condition, *choices = (_broadcast(name, aval.shape, node.shape) for name, aval in zip(names, avals, strict=True))
    return f"lax.select({condition}, {', '.join(choices)})"


def _slice(node: Node, names: Sequence[str], avals: Sequence[Aval]) -> str | None:
    start, stop, step = (node.params[name] for name in ("start", "stop", "step"))
    steps = "" if all(n == 1 for n in step) else f", {step}"
    return f"lax.slice({names[0]}, {start}, {stop}{steps})"


def _cat(node: Node, names: Sequence[str], avals: Sequence[Aval]) -> str | None:
    return f"lax.concatenate([{', '.join(names)}], {node.params['axis'] % node.aval.ndim})"


def _kept(text: str, node: Node) -> str:
    """What is reduced, with the axes kept as extents of 1 if the node says so."""
    axis = node.params["axis"]
    return f"lax.expand_dims({text}, {axis})" if node.params["keepdims"] and axis else text


def _reduction(lax_name: str, kinds: str) -> Writer:
    def write(node: Node, names: Sequence[str], avals: Sequence[Aval]) -> str | None:
        (x,) = avals
        # 16-bit floats are accumulated in more
        if kind(x.dtype) not in kinds or is_half(x.dtype) or not x.ndim:
            return None
        return _kept(f"lax.{lax_name}({names[0]}, {node.params['axis']})", node)

    return write


_sum = _reduction("reduce_sum", "fc")


LIBRARY = 4096  # elements, from which on XLA gives a reduction on a CPU to YNNPACK, whose extremes pass over nan


def keeps_nan(shape: Sequence[Any], dtype: Any) -> bool:
    """Whether XLA's extremes of such arrays are nan if any element is."""
    return kind(dtype) != "f" or (all(type(n) is int for n in shape) and math.prod(shape) < LIBRARY)


def _extreme(lax_name: str) -> Writer:
    write = _reduction(lax_name, "f")
    return lambda node, names, avals: write(node, names, avals) if keeps_nan(avals[0].shape, avals[0].dtype) else None


def _mean(node: Node, names: Sequence[str], avals: Sequence[Aval]) -> str | None:
    total = _sum(node, names, avals)
    count = avals[0].size // max(node.aval.size, 1)
    if total is None or not count or node.dtype.kind != "f":
        return None
    return f"lax.div({total}, np.{node.dtype.name}({count}))"


WRITERS: Mapping[str, Writer] = {
    **{
        name: _elementwise(_LAX_NAMES.get(name, name), kinds)
        for kinds, names in _ELEMENTWISE.items()
        for name in names.split()
    },
    "amax": _extreme("reduce_max"),
    "amin": _extreme("reduce_min"),
    "any": _reduction("reduce_or", "b"),
    "all": _reduction("reduce_and", "b"),
    "broadcast_to": _broadcast_to,
    "cat": _cat,
    "flip": lambda node, names, avals: f"lax.rev({names[0]}, {node.params['axis']})",
    "isnan": lambda node, names, avals: f"lax.ne({names[0]}, {names[0]})" if kind(avals[0].dtype) in "fc" else None,
    "mean": _mean,
    "permute": _permute,
    "reshape": _reshape,
    "slice": _slice,
    "sum": _sum,
    "where": _where,
}


def expression(node: Node, names: Sequence[str], avals: Sequence[Aval]) -> str | None:
    """Python source for the value of `node`, which reads operands `names` of types `avals`; None if there is no row.

    It refers to `lax` and `np` only.

    >>> from graphc.ops import OPS
    >>> import numpy as np
    >>> matrix, row = Aval((3, 4), np.dtype(np.float32)), Aval((4,), np.dtype(np.float32))
    >>> expression(Node(2, OPS["add"], (0, 1), {}, matrix), ["x", "b"], [matrix, row])
    'lax.add(x, lax.expand_dims(b, (0,)))'
    """
    write = WRITERS.get(node.op.name)
    return None if write is None else write(node, names, avals)
