"""Rows and columns of matrix products that an index picks. All else about products is in `graphc.normal`."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphc.ops.dtypes import FLOAT64, INT64, is_inexact
from graphc.ops.samples import Counted, Floats, Full, Ints, Picks
from graphc.passes.rules.operands import is_normal
from graphc.rewrite import REASSOCIATES, held_array, number
from graphc.rewrite import RewriteRule as R

MANY = 4  # times as many rows as are read


def _floating(a, *_) -> bool:
    return is_inexact(a.dtype)


def _few(i, size: int) -> bool:
    """Whether an index is one list of few places, along an axis of this size."""
    return len(i.shape) == 1 and MANY * i.shape[0] <= size


def _rows_of(a, b, i, s) -> bool:
    return s in ((0,), (0, None)) and len(a.shape) == 2 and len(b.shape) in (1, 2) and _few(i, a.shape[0])


def _columns_of(a, b, i, s) -> bool:
    return s == (None, 0) and len(a.shape) == len(b.shape) == 2 and _few(i, b.shape[1])


def _selects(i, c, w) -> bool:
    """Whether `i == c` has a row for each number in a column `i`, with a one where it stands in 0, 1, ..."""
    counts = held_array(c)
    column = len(i.shape) == 2 and i.shape[1] == 1 and i.dtype.kind in "iu"
    return column and counts is not None and len(w.shape) == 2 and np.array_equal(counts, np.arange(w.shape[0]))


def _picks(c) -> Any:
    """Of a constant matrix with one 1 in each row, and else zeros, their places; else None."""
    held = held_array(c) if len(c.shape) == 2 and is_inexact(c.dtype) else None
    if held is None or not held.size or np.count_nonzero(held) != len(held):
        return None
    places = held.argmax(1)
    return places if (held[np.arange(len(held)), places] == 1).all() else None


def _permutes(c) -> bool:
    """Whether a constant matrix picks rows in another order than its own, which sums of products know."""
    places = _picks(c)
    return places is not None and not (np.diff(places) == 1).all()


def _is_identity(c) -> bool:
    places = _picks(c) if c.shape[0] == c.shape[-1] else None
    return places is not None and bool((places == np.arange(len(places))).all())


def _row_list(i) -> bool:
    return len(i.shape) == 1 and i.dtype == INT64


def _selected(F, i, c, w):
    ok = F.logical_and(i >= 0, i < w.shape[0])
    rows = F.index(w, F.reshape(F.where(ok, i, 0), shape=i.shape[:1]), spec=(0,))
    return F.where(ok, rows, 0)


def _scales(a, b, c) -> bool:
    return a.dtype == b.dtype and c.shape == () and is_normal(a, number(c))


_ONE_HOT = {"i": Ints((6, 1), 40), "c": Counted((40,)), "w": Floats((40, 5)), "t": FLOAT64}

RULES = (
    # one of the three is the smallest
    R("matmul_scaled_left", REASSOCIATES, lambda F, a, b, c: (a * c) @ b, lambda F, a, b, c: (a @ b) * number(c),
      numbers="c", when=_scales, example={"a": Floats((9, 4)), "b": Floats((4, 2)), "c": Full((), 1.7)}),
    R("matmul_scaled_right", REASSOCIATES, lambda F, a, b, c: a @ (b * c), lambda F, a, b, c: (a @ b) * number(c),
      numbers="c", when=_scales, example={"a": Floats((2, 4)), "b": Floats((4, 9)), "c": Full((), 1.7)}),
    # a part of a product from parts of its operands: few enough that the product may be there for others as well
    R("rows_of_product", REASSOCIATES, lambda F, a, b, i, s: F.index(a @ b, i, spec=s),
      lambda F, a, b, i, s: F.index(a, i, spec=s[:1]) @ b, when=_rows_of,
      example={"a": Floats((9, 4)), "b": Floats((4, 5)), "i": Ints((2,), 9), "s": (0,)}),
    R("columns_of_product", REASSOCIATES, lambda F, a, b, i, s: F.index(a @ b, i, spec=s),
      lambda F, a, b, i, s: a @ F.index(b, i, spec=s), when=_columns_of,
      example={"a": Floats((3, 4)), "b": Floats((4, 9)), "i": Ints((2,), 9), "s": (None, 0)}),
    # the sign of a zero that is a sum of products depends on their order: where sums begin at zeros(...)
    R("matmul_and_zero", REASSOCIATES, lambda F, a, b: a @ b + 0.0, lambda F, a, b: a @ b, when=_floating,
      example={"a": Floats((3, 4)), "b": Floats((4, 2))}),
    R("einsum_and_zero", REASSOCIATES, lambda F, a, b, e: F.einsum(a, b, equation=e) + 0.0,
      lambda F, a, b, e: F.einsum(a, b, equation=e), when=_floating,
      example={"a": Floats((3, 4)), "b": Floats((4, 2)), "e": "ij,jk->ki"}),
    # 0 * inf is nan in the product
    R("rows_by_identity", REASSOCIATES, lambda F, c, i, w: F.index(c, i, spec=(0,)) @ w,
      lambda F, c, i, w: F.index(w, i, spec=(0,)), when=lambda c, i, w: _row_list(i) and _is_identity(c),
      example={"c": Picks((0, 1, 2, 3), 4), "i": Ints((6,), 4), "w": Floats((4, 5))}),
    R("rows_by_constant", REASSOCIATES, lambda F, c, w: c @ w,
      lambda F, c, w: F.index(w, c.builder.constant(_picks(c)), spec=(0,)),
      when=lambda c, w: _permutes(c), example={"c": Picks((2, 0, 0), 4), "w": Floats((4, 5))}),
    R("columns_by_constant", REASSOCIATES, lambda F, w, c: w @ F.permute(c, dims=(1, 0)),
      lambda F, w, c: F.index(w, c.builder.constant(_picks(c)), spec=(None, 0)),
      when=lambda w, c: len(w.shape) == 2 and _permutes(c),
      example={"w": Floats((5, 4)), "c": Picks((2, 0, 0), 4)}),
    R("rows_by_one_hot", REASSOCIATES, lambda F, i, c, w, t: F.cast(i == c, dtype=t) @ w,
      lambda F, i, c, w, t: _selected(F, i, c, w), when=lambda i, c, w, t: t == w.dtype and _selects(i, c, w),
      example=_ONE_HOT),
    R("rows_by_one_hot_of_integers", REASSOCIATES,
      lambda F, i, c, w, t, u: F.cast(F.cast(i == c, dtype=u), dtype=t) @ w,
      lambda F, i, c, w, t, u: _selected(F, i, c, w), when=lambda i, c, w, t, u: t == w.dtype and _selects(i, c, w),
      example={**_ONE_HOT, "u": INT64}),
)  # fmt: skip
