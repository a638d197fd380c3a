"""How the inputs of random programs lie in memory, which of them share it, and the special numbers among them."""

from __future__ import annotations

from typing import Any

import numpy as np

from compare.layouts.layout import Layout, repeated, stepped
from graphc.ops.dtypes import finfo
from graphc.ops.strides import row_major

LAID, SHARED, REPEATED, SHIFTED, SPECIAL, MOST = 0.35, 0.75, 0.15, 0.15, 0.08, 3


def layout(rng: np.random.Generator, shape: tuple[int, ...], repeats: bool) -> Layout | None:
    """A layout that a tensor of this shape may have, or None for that of a new one. No step is negative, as in PyTorch.

    Steps to 17 elements, dims in any order, gaps between rows, memory out of alignment; `repeats`: equal elements, too.
    """
    if rng.random() >= LAID or 0 in shape:
        return None
    if repeats and shape and rng.random() < REPEATED:
        axes = [k for k in range(len(shape)) if rng.random() < 0.5] or [0]
        found = repeated(shape, axes)
    else:
        step = int(rng.choice([1, 1, 2, 4, 8, int(rng.integers(1, 18))]))
        order = rng.permutation(len(shape)).tolist()
        found = stepped(shape, step, order, gap=int(rng.integers(0, 3)))
    shift = int(rng.integers(1, 8)) if rng.random() < SHIFTED else 0
    return found._replace(offset=int(rng.integers(0, 5)), shift=shift)


def view(rng: np.random.Generator, name: str, size: int, shape: tuple[int, ...]) -> str:
    """An expression of another tensor of this shape in the memory of `name`, a new one of `size` elements.

    Its elements may lie in another order, and overlap among themselves. "" if there is none.
    """
    count = int(np.prod(shape))
    if not 0 < count <= size:
        return ""
    order = rng.permutation(len(shape))
    strides = np.zeros(len(shape), int)
    strides[order] = row_major(tuple(shape[k] for k in order))
    if len(shape) > 1 and rng.random() < 0.2:
        strides[:] = 1
    reach = sum((n - 1) * int(s) for n, s in zip(shape, strides, strict=True))
    offset = int(rng.integers(0, size - reach))
    return f"{name}.detach().as_strided({shape}, {tuple(map(int, strides))}, {offset})"


def special(rng: np.random.Generator, array: np.ndarray) -> np.ndarray:
    """`array`, now and then with numbers in it that formulas forget."""
    if not array.size or rng.random() >= SPECIAL:
        return array
    info: Any = finfo(array.dtype)
    tiny, huge = float(info.tiny), float(info.max)
    choices = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, tiny, -tiny, tiny / 8, huge, -huge, float(info.eps)]
    found = array.copy()
    for _ in range(int(rng.integers(1, MOST + 1))):
        found.flat[rng.integers(found.size)] = np.asarray(rng.choice(choices)).astype(array.dtype)
    return found
