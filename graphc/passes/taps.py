"""Convolutions that are summed up over all of space, or of what is the same everywhere: no kernel slides then.

    sum over p of conv(x, w)[n, o, p] = sum over c, k of w[o, c, k] B[n, c, k], what tap k meets of x

Along each axis, B is a product of x with ones and zeros, which say what a tap meets. Sums of parts would read x again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.ir import Builder, Node, Symbol
from graphc.ops import OPS

_RANKS = (1, 2, 3)
_FORWARD, _INPUT, _WEIGHT = ({OPS[f"conv{r}d{part}"] for r in _RANKS} for part in ("", "_input", "_weight"))
LETTERS = "xyz"


def sum_over_space(builder: Builder, node: Node) -> Symbol | None:
    """The sum of a convolution over space, whose axes are kept; None for other nodes."""
    if node.op not in _FORWARD:
        return None
    x, w = (builder.symbol(i) for i in node.inputs)
    met = _space(node, x.shape[2:], w.shape[2:], node.shape[2:])
    boxes = _boxes(builder, x, met)
    own = LETTERS[: len(met)]
    found = builder.language.einsum(boxes, w, equation=f"nc{own},oc{own}->no")
    return builder.language.reshape(found, shape=(*node.shape[:2], *[1] * len(met)))


def of_what_is_everywhere(builder: Builder, node: Node, g: Symbol) -> Symbol | None:
    """A gradient of a convolution whose cotangent is `g`, one number for each image and channel, at every place."""
    if node.op not in _INPUT | _WEIGHT:
        return None
    F, other = builder.language, builder.symbol(node.inputs[1])
    back = node.op in _INPUT
    x, w = (node.shape, other.shape) if back else (other.shape, node.shape)
    met = _space(node, x[2:], w[2:], builder.nodes[node.inputs[0]].shape[2:])
    own = LETTERS[: len(met)]
    g = F.reshape(g, shape=g.shape[:2])
    if not back:
        return F.einsum(g, _boxes(builder, other, met), equation=f"no,nc{own}->oc{own}")
    found = F.einsum(g, other, equation=f"no,oc{own}->nc{own}")
    for axis, own in enumerate(met):  # the last one, which is the most work, as it lies
        found = _along(builder, found, axis, own.T)
    return found


def _space(node: Node, size: Sequence[int], kernel: Sequence[int], out: Sequence[int]) -> list[np.ndarray]:
    """Which of n places each of k taps meets, along each axis: n x k."""
    met: list[np.ndarray] = []
    for axis, (n, k, windows) in enumerate(zip(size, kernel, out, strict=True)):
        step, pad, apart = (node.params[name][axis] for name in ("stride", "padding", "dilation"))
        places = step * np.arange(windows)[:, None] + apart * np.arange(k) - pad
        met.append((places[None] == np.arange(n)[:, None, None]).any(1))
    return met


def _boxes(builder: Builder, x: Symbol, met: Sequence[np.ndarray]) -> Symbol:
    """For each tap, the sum of what it meets."""
    whole = tuple([2 + axis for axis, places in enumerate(met) if places.shape[1] == 1 and places.all()])
    if whole:
        x = builder.language.sum(x, axis=whole, keepdims=True)
    for axis in reversed(range(len(met))):
        if 2 + axis not in whole:
            x = _along(builder, x, axis, met[axis])
    return x


def _along(builder: Builder, x: Symbol, axis: int, met: np.ndarray) -> Symbol:
    """The product with ones and zeros along an axis of space."""
    own = LETTERS[: len(x.shape) - 2]
    to = own.replace(own[axis], "k")
    ones: Any = builder.constant(met, x.dtype)
    return builder.language.einsum(x, ones, equation=f"nc{own},{own[axis]}k->nc{to}")
