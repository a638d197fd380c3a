"""Images and the taps of windows that slide over them.

Images are (N, *spatial, C), with their channels last: XLA's loops on the CPU then run over channels, and it copies
any other form into this one. `graphc.lowering.layouts` arranges programs so that images seldom change their form.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

Sizes = tuple[int, ...]
Borders = tuple[tuple[int, int], ...]


def last(shape: Sizes) -> Sizes:
    """The shape (N, C, *spatial) with its channels last."""
    return (shape[0], *shape[2:], shape[1])


def around(padding: Borders) -> list[tuple[int, int]]:
    """`padding` of the spatial dimensions as that of all."""
    return [(0, 0), *padding, (0, 0)]


def cuts(spatial: Sizes, kernel: Sizes, stride: Sizes, padding: Borders, dilation: Sizes) -> Iterator[Any]:
    """For each tap of the window, the elements of the padded image that it meets."""
    sizes = zip(spatial, kernel, stride, padding, dilation, strict=True)
    out = [(n + a + b - d * (k - 1) - 1) // s + 1 for n, k, s, (a, b), d in sizes]
    for tap in itertools.product(*map(range, kernel)):
        steps = zip(tap, dilation, out, stride, strict=True)
        yield tuple(slice(i * d, i * d + (n - 1) * s + 1, s) for i, d, n, s in steps)
