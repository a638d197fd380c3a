"""Several passes over large arrays, one block after the other: what a pass leaves in cache is there for the next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graphc.ops.interpret import F
from graphc.ops.movement import repeated_axes, sum_to
from graphc.ops.sums import of_products

BYTES = 2**17  # of a block of one array
MANY = 2**16  # elements, from which blocks pay


def in_blocks(passes: Callable[..., Any], like: np.ndarray, *operands: np.ndarray) -> np.ndarray:
    """What `passes(out, *operands)` writes: pointwise ufuncs of operands as large as `like`, or of no dims."""
    result = np.empty_like(like)
    lines = [_line(a, result) for a in operands]
    out = result.reshape(-1, order="A")
    if any(line is None for line in lines):
        passes(result, *operands)
        return result
    step = BYTES // out.itemsize
    for start in range(0, out.size, step):
        part = slice(start, start + step)
        passes(out[part], *[line[part] if line.ndim else line for line in lines])  # type: ignore[index]
    return result


def product_to(x: np.ndarray, y: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """x * y, summed over the axes along which an operand of `shape` was repeated."""
    if x.shape != y.shape or x.shape == shape:
        product = x * y
        return product if product.shape == shape else sum_to(F, product, shape)
    return of_products(x, y, repeated_axes(x.shape, shape)).reshape(shape)


def _line(a: np.ndarray, result: np.ndarray) -> np.ndarray | None:
    """The elements of `a` in the order of `result` in memory, as a view; None if that is none."""
    if not a.ndim:
        return a
    if a.strides == result.strides and (a.flags.c_contiguous or a.flags.f_contiguous):
        return a.reshape(-1, order="A")
    if not any(a.strides):
        return np.broadcast_to(a[(0,) * a.ndim], a.size)
    return None
