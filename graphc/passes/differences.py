"""Sums of differences of two arrays, and of their squares, without the array of the differences.

    sum over j of (x - y_j)   = n (x - c) - sum over j of (y_j - c)
    sum over j of (x - y_j)^2 = n (x - mean y)^2 + sum over j of (y_j - mean y)^2

and the same for what x varies along: of all pairs of n and m points, n + m terms are added. With a number c near the
mean of y, they are of the size of the differences, and no digits are lost as where points far from the origin are
added, or squares are multiplied out. Means are taken in two steps, the second one of what is left: rounded once, a mean
may be as far from itself as close points are from each other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from graphc.ir import Builder, Node, Symbol
from graphc.ops import OPS

_SUM, _MEAN, _SQUARE, _MUL, _SUB, _RESHAPE = (OPS[k] for k in ("sum", "mean", "square", "mul", "sub", "reshape"))
LARGER = 4  # how often the elements of both arrays the differences are, at least


def differences(node: Node, builder: Builder) -> Symbol | None:
    """What stands for a sum or a mean of differences, or of their squares; None for others, or where there is little to
    save."""
    nodes = builder.nodes
    count = math.prod([nodes[node.inputs[0]].shape[k] for k in node.params["axis"]]) if node.op is _MEAN else 1
    added, axes = _added(node, nodes[node.inputs[0]], builder)
    squared = added.op is _SQUARE or (added.op is _MUL and len({*added.inputs}) == 1)
    difference = nodes[added.inputs[0]] if squared else added
    if difference.op is not _SUB or added.dtype.kind != "f":
        return None
    x, y = (_with_axes(builder.symbol(i), difference.aval.ndim) for i in difference.inputs)
    if LARGER * (x.aval.size + y.aval.size) > difference.size:
        return None
    if not (_only(y, x, axes) or _only(x, y, axes)):
        return None
    F = builder.language
    turned = _turned(x, y, axes) if squared else []
    total = _of_pairs(F, x, turned, axes) if turned else (_total if squared else _linear)(F, x, y, axes)
    return F.reshape(total * (1 / count) if count > 1 else total, shape=node.shape)


def _added(node: Node, below: Node, builder: Builder) -> tuple[Node, list[int]]:
    """What a sum, perhaps of sums, adds up, and along which axes of that."""
    axes = [*node.params["axis"]]
    while below.op is _SUM:
        inner, below = below, builder.nodes[below.inputs[0]]
        own = inner.params["axis"]
        left = [k for k in range(below.aval.ndim) if inner.params["keepdims"] or k not in own]
        axes = sorted({*own, *[left[k] for k in axes]})
    return below, axes


def _with_axes(x: Symbol, ndim: int) -> Symbol:
    """With axes of one place before its own."""
    return x.builder.language.reshape(x, shape=(1,) * (ndim - len(x.shape)) + x.shape) if len(x.shape) < ndim else x


def _only(y: Symbol, x: Symbol, axes: Sequence[int]) -> list[int]:
    """Those of the axes along which y varies, and x does not."""
    return [k for k in axes if x.shape[k] == 1 < y.shape[k]]


def _turned(x: Symbol, y: Symbol, axes: Sequence[int]) -> list[int]:
    """The axes along which one of two arrays varies that are the same but for these axes, others of which the other
    has in their place; none if they are not."""
    wholes: list[int] = []
    for z in (x, y):
        node = x.builder.nodes[z.id]
        while node.op is _RESHAPE:
            node = x.builder.nodes[node.inputs[0]]
        wholes.append(node.id)
    own, others = ([k for k, n in enumerate(z.shape) if n > 1] for z in (x, y))
    if wholes[0] != wholes[1] or [x.shape[k] for k in own] != [y.shape[k] for k in others]:
        return []
    apart = [(a, b) for a, b in zip(own, others, strict=True) if a != b]
    fine = all(a in axes and b in axes and x.shape[b] == y.shape[a] == 1 for a, b in apart)
    return [a for a, _ in apart] if fine else []


def _of_pairs(F: Any, x: Symbol, along: Sequence[int], axes: Sequence[int]) -> Symbol:
    """The sum over all pairs of places along some axes: each is the one place and the other."""
    _, rest, mean = _centred(F, x, along)
    return _times(_sum(F, F.square(rest - mean), axes), x, along) * 2.0


def _linear(F: Any, x: Symbol, y: Symbol, axes: Sequence[int]) -> Symbol:
    """The sum of differences along axes, which stay as axes of one place."""
    along = _only(y, x, axes) or _only(x, y, axes)
    about = _near_mean(F, y if _only(y, x, axes) else x, along)
    a, b = x - about, y - about
    return _times(_sum(F, a, axes), y, _only(y, a, axes)) - _times(_sum(F, b, axes), x, _only(x, b, axes))


def _total(F: Any, x: Symbol, y: Symbol, axes: Sequence[int]) -> Symbol:
    """The sum along axes, which stay as axes of one place."""
    for a, b in ((x, y), (y, x)):
        along = _only(b, a, axes)
        if along:
            about, rest, mean = _centred(F, b, along)
            inside = _times(_sum(F, F.square(rest - mean), axes), a, _only(a, b, axes))
            return inside + _times(_total(F, a - about, mean, axes), b, along)
    return _sum(F, F.square(x - y), axes)


def _times(x: Symbol, array: Symbol, axes: Sequence[int]) -> Symbol:
    """Times the places that an array has along axes."""
    count = math.prod([array.shape[k] for k in axes])
    return x * float(count) if count > 1 else x


def _centred(F: Any, x: Symbol, along: Sequence[int]) -> tuple[Symbol, Symbol, Symbol]:
    """A number near the mean, what is left of x without it, and the mean of that."""
    about = _near_mean(F, x, along)
    rest = x - about
    return about, rest, F.mean(rest, axis=tuple(along), keepdims=True)


def _near_mean(F: Any, x: Symbol, along: Sequence[int]) -> Symbol:
    """The mean, as a number that no form sees through: by its form, the mean of what is left would be 0. No gradient
    goes through it either, since the sums are the same for any."""
    return F.stop_gradient(F.mean(x, axis=tuple(along), keepdims=True))


def _sum(F: Any, x: Symbol, axes: Sequence[int]) -> Symbol:
    return F.sum(x, axis=tuple(axes), keepdims=True)
