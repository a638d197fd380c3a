"""Products with arrays that pick rows or add up what is before. All else about products is in `graphc.normal`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from graphc.facts.passed import passed_range
from graphc.ops.dtypes import FLOAT64, INT64, is_inexact
from graphc.ops.samples import Counted, Floats, Full, Ints, Picks
from graphc.passes.rules.operands import is_normal
from graphc.rewrite import EXACT, REASSOCIATES, held_array, number
from graphc.rewrite import RewriteRule as R
from graphc.rewrite.cost import WRITE

MANY = 4  # times as many rows as are read
SCATTERED = 16  # times as many elements as are read one by one


def _floating(a, *_) -> bool:
    return is_inexact(a.dtype)


def _triangle_of_ones(o, x) -> bool:
    return number(o) == 1 and o.shape[0] == o.shape[1] and o.dtype == x.dtype and is_inexact(x.dtype)


def _one_of_each_row(a, b, i, axis) -> bool:
    plain = len(a.shape) == len(b.shape) == 2 and axis % 2 == 1
    return plain and i.shape == (a.shape[0], 1) and b.shape[1] >= SCATTERED


def _one_in_each_row(i, v, axis) -> bool:
    return len(v.shape) == 2 and axis % 2 == 1 and is_inexact(v.dtype)


def _put_rows(F, i, rows, count: int):
    return F.index_put(_zeros(F, (count, *rows.shape[1:]), rows.dtype), rows, i, spec=(0,), accumulate=True)


def _put_columns(F, i, columns, count: int):
    zero = _zeros(F, (columns.shape[0], count), columns.dtype)
    return F.index_put(zero, columns, i, spec=(None, 0), accumulate=True)


def _handed_on(z, x, s, t, *_) -> bool:
    """Whether rows of a matrix are picked and added up in other places, as along the edges of a graph."""
    return number(z) == 0 and len(x.shape) == len(z.shape) == 2 and _row_list(s) and _row_list(t) and s.shape == t.shape


def _repeats(x, s, w) -> bool:
    """Whether more rows of a matrix are picked than it has."""
    return len(x.shape) == len(w.shape) == 2 and _row_list(s) and s.shape[0] > x.shape[0]


def _narrows(z, x, s, t, w, *each) -> bool:
    """Whether what is handed on is narrower after a product with `w`, and the same number times all of a row."""
    return _handed_on(z, x, s, t) and len(w.shape) == 2 and w.shape[1] < w.shape[0] and all(map(_of_each, each))


def _narrows_turned(z, x, s, t, g, *each) -> bool:
    narrower = _handed_on(z, x, s, t) and len(g.shape) == 2 and g.shape[1] < x.shape[1]
    return narrower and all(map(_of_each, each))


def _widens(z, x, s, t, w, *each) -> bool:
    return _handed_on(z, x, s, t) and len(w.shape) == 2 and w.shape[1] > w.shape[0] and all(map(_of_each, each))


def _of_each(e) -> bool:
    return len(e.shape) == 2 and e.shape[1] == 1


def _added(F, i, rows, like):
    return _put_rows(F, i, rows, like.shape[0])


def _zeros(F, shape, dtype):
    return F.full(shape=shape, value=0, dtype=dtype)


def _row(F, i, size: int):
    """A column of indices as a list; those below 0, or not below `size`, are errors."""
    return F.in_range(F.reshape(i, shape=i.shape[:1]), size=size)


def _selects(i, c, w) -> bool:
    """Whether `i == c` has a row for each number in a column `i`, with a one where it stands in 0, 1, ..."""
    counts = held_array(c)
    column = len(i.shape) == 2 and i.shape[1] == 1 and i.dtype.kind in "iu"
    return column and counts is not None and len(w.shape) == 2 and np.array_equal(counts, np.arange(w.shape[0]))


def _one_of_each(i, c, x, axis) -> bool:
    """Whether a sum over rows is of one element of each, where `i == c` stands for a number in a column `i`."""
    wide = len(x.shape) == 2 and x.shape == (i.shape[0], *c.shape[-1:])
    return wide and 1 in axis and is_inexact(x.dtype) and _counts(i, c, x)


def _one_each(F, i, c, x, axis, keepdims: bool):
    places, ok = _places(F, i, x.shape[1])
    found = F.gather(x, places, axis=1)
    found = found if ok is None else F.where(ok, found, 0)
    rest = tuple([k for k in axis if k != 1])
    found = F.sum(found, axis=rest, keepdims=True) if rest else found
    return found if keepdims else F.reshape(found, shape=() if rest else x.shape[:1])


def _picks(c, by_columns: bool = False) -> Any:
    """Of a constant matrix with one 1 in each row, or each column, and else zeros, their places; else None."""
    held = held_array(c) if len(c.shape) == 2 and is_inexact(c.dtype) else None
    if held is None or not held.size:
        return None
    held = held.T if by_columns else held
    if np.count_nonzero(held) != len(held):
        return None
    places = held.argmax(1)
    return places if (held[np.arange(len(held)), places] == 1).all() else None


def _permutes(c, by_columns: bool = False) -> bool:
    """Whether a constant matrix picks rows, or columns, in another order than its own, which sums of products know."""
    places = _picks(c, by_columns)
    return places is not None and not (np.diff(places) == 1).all()


def _is_identity(c) -> bool:
    places = _picks(c) if c.shape[0] == c.shape[-1] else None
    return places is not None and bool((places == np.arange(len(places))).all())


def _row_list(i) -> bool:
    return len(i.shape) == 1 and i.dtype == INT64


def _selected(F, i, c, w):
    places, ok = _places(F, i, w.shape[0])
    rows = F.index(w, F.reshape(places, shape=i.shape[:1]), spec=(0,))
    return rows if ok is None else F.where(ok, rows, 0)


def _put_back(F, i, c, g):
    n = math.prod(c.shape)
    places, ok = _places(F, i, n)
    return _put_rows(F, F.reshape(places, shape=i.shape[:1]), g if ok is None else F.where(ok, g, 0), n)


def _places(F, i, n: int) -> tuple[Any, Any]:
    """Indices, 0 in place of those that are not below n; and which of them are, None if all have been checked."""
    low, high = passed_range(i.id, i.builder.nodes)
    if low >= 0 and high <= n:
        return i, None
    ok = F.logical_and(i >= 0, i < n)
    return F.where(ok, i, 0), ok


def _counts(i, c, g) -> bool:
    """Whether `i == c` is as `_selects` says, and its transpose is multiplied by a matrix."""
    counts = held_array(c)
    column = len(i.shape) == 2 and i.shape[1] == 1 and i.dtype.kind in "iu" and len(g.shape) == 2
    return column and counts is not None and np.array_equal(counts.reshape(-1), np.arange(counts.size))


def _scales(a, b, c, scaled) -> bool:
    """Whether a product may be scaled instead of an operand; one that a loop computes is scaled on the way."""
    if a.dtype != b.dtype or c.shape != () or not is_normal(a, number(c)):
        return False
    size = math.prod(a.shape[:-1]) * (b.shape[-1] if len(b.shape) > 1 else 1)
    return not scaled.builder.nodes[scaled.id].op.pointwise or (1 + WRITE) * size <= scaled.aval.size


def _is_scaled_sooner(a, b, c, x) -> bool:
    """Whether an operand `x` is scaled in less time than the product of `a` and `b`."""
    if len(a.shape) < 2 or len(b.shape) < 2 or a.dtype != b.dtype or c.shape != () or not is_normal(x, number(c)):
        return False
    size = math.prod(np.broadcast_shapes(a.shape[:-2], b.shape[:-2])) * a.shape[-2] * b.shape[-1]
    return MANY * math.prod(x.shape) <= size


_ONE_HOT = {"i": Ints((6, 1), 40), "c": Counted((40,)), "w": Floats((40, 5)), "t": FLOAT64}
_ONE_EACH = {"i": Ints((6, 1), 40), "c": Counted((40,)), "x": Floats((6, 40)), "t": FLOAT64, "a": (1,), "k": False}
_ONE_HOT_TURNED = {"i": Ints((6, 1), 40), "c": Counted((40,)), "g": Floats((6, 5)), "t": FLOAT64}
_EDGES = {"z": Full((5, 6), 0.0), "s": Ints((8,), 4), "t": Ints((8,), 5)}

RULES = (
    # one of the three is the smallest
    R("matmul_scaled_left", REASSOCIATES, lambda F, a, b, c: (a * c) @ b, lambda F, a, b, c: (a @ b) * number(c),
      numbers="c", when=lambda a, b, c: _scales(a, b, c, a),
      example={"a": Floats((9, 4)), "b": Floats((4, 2)), "c": Full((), 1.7)}),
    R("matmul_scaled_right", REASSOCIATES, lambda F, a, b, c: a @ (b * c), lambda F, a, b, c: (a @ b) * number(c),
      numbers="c", when=lambda a, b, c: _scales(a, b, c, b),
      example={"a": Floats((2, 4)), "b": Floats((4, 9)), "c": Full((), 1.7)}),
    R("scaled_product_left", REASSOCIATES, lambda F, a, b, c: (a @ b) * c, lambda F, a, b, c: (a * number(c)) @ b,
      numbers="c", when=lambda a, b, c: _is_scaled_sooner(a, b, c, a),
      example={"a": Floats((9, 2)), "b": Floats((2, 40)), "c": Full((), 1.7)}),
    R("scaled_product_right", REASSOCIATES, lambda F, a, b, c: (a @ b) * c, lambda F, a, b, c: a @ (b * number(c)),
      numbers="c", when=lambda a, b, c: _is_scaled_sooner(a, b, c, b),
      example={"a": Floats((40, 2)), "b": Floats((2, 9)), "c": Full((), 1.7)}),
    # one element of each row of a product from parts of its operands
    R("one_of_each_row", REASSOCIATES, lambda F, a, b, i, k: F.gather(a @ b, i, axis=k),
      lambda F, a, b, i, k: F.sum(
          a * F.index(F.permute(b, dims=(1, 0)), _row(F, i, b.shape[1]), spec=(0,)), axis=(1,), keepdims=True),
      when=_one_of_each_row, example={"a": Floats((5, 4)), "b": Floats((4, 16)), "i": Ints((5, 1), 16), "k": 1}),
    # and its gradient: products of what is zero but for one element in each row
    R("one_in_each_row_times", REASSOCIATES, lambda F, i, v, b, k, n: F.place(i, v, axis=k, size=n) @ b,
      lambda F, i, v, b, k, n: v * F.index(b, _row(F, i, n), spec=(0,)),
      when=lambda i, v, b, k, n: _one_in_each_row(i, v, k) and len(b.shape) == 2,
      example={"i": Ints((5, 1), 16), "v": Floats((5, 1)), "b": Floats((16, 4)), "k": 1, "n": 16}),
    R("times_one_in_each_row", REASSOCIATES, lambda F, a, i, v, k, n: a @ F.place(i, v, axis=k, size=n),
      lambda F, a, i, v, k, n: _put_columns(F, _row(F, i, n), a * F.reshape(v, shape=(1, v.shape[0])), n),
      when=lambda a, i, v, k, n: _one_in_each_row(i, v, k) and len(a.shape) == 2 and n >= SCATTERED,
      example={"a": Floats((4, 5)), "i": Ints((5, 1), 16), "v": Floats((5, 1)), "k": 1, "n": 16}),
    # a triangle of ones adds up what is before, or after
    R("lower_ones_times", REASSOCIATES, lambda F, o, x: F.tril(o, diagonal=0) @ x,
      lambda F, o, x: F.cumsum(x, axis=0, reverse=False), numbers="o", when=_triangle_of_ones,
      example={"o": Full((4, 4), 1.0), "x": Floats((4, 3))}),
    R("upper_ones_times", REASSOCIATES, lambda F, o, x: F.triu(o, diagonal=0) @ x,
      lambda F, o, x: F.cumsum(x, axis=0, reverse=True), numbers="o", when=_triangle_of_ones,
      example={"o": Full((4, 4), 1.0), "x": Floats((4, 3))}),
    R("times_upper_ones", REASSOCIATES, lambda F, o, x: x @ F.triu(o, diagonal=0),
      lambda F, o, x: F.cumsum(x, axis=len(x.shape) - 1, reverse=False), numbers="o", when=_triangle_of_ones,
      example={"o": Full((4, 4), 1.0), "x": Floats((2, 3, 4))}),
    R("times_lower_ones", REASSOCIATES, lambda F, o, x: x @ F.tril(o, diagonal=0),
      lambda F, o, x: F.cumsum(x, axis=len(x.shape) - 1, reverse=True), numbers="o", when=_triangle_of_ones,
      example={"o": Full((4, 4), 1.0), "x": Floats((3, 4))}),
    R("lower_number_turned", EXACT, lambda F, o, d: F.permute(F.tril(o, diagonal=d), dims=(1, 0)),
      lambda F, o, d: F.triu(F.full(shape=o.shape[::-1], value=number(o), dtype=o.dtype), diagonal=-d),
      numbers="o", when=lambda o, d: len(o.shape) == 2, example={"o": Full((4, 3), 1.0), "d": 0}),
    R("upper_number_turned", EXACT, lambda F, o, d: F.permute(F.triu(o, diagonal=d), dims=(1, 0)),
      lambda F, o, d: F.tril(F.full(shape=o.shape[::-1], value=number(o), dtype=o.dtype), diagonal=-d),
      numbers="o", when=lambda o, d: len(o.shape) == 2, example={"o": Full((4, 3), 1.0), "d": 0}),
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
    R("rows_by_identity_turned", REASSOCIATES,
      lambda F, c, i, g: F.permute(F.index(c, i, spec=(0,)), dims=(1, 0)) @ g,
      lambda F, c, i, g: _put_rows(F, i, g, c.shape[1]),
      when=lambda c, i, g: len(g.shape) == 2 and _row_list(i) and _is_identity(c),
      example={"c": Picks((0, 1, 2, 3), 4), "i": Ints((6,), 4), "g": Floats((6, 5))}),
    R("columns_by_identity", REASSOCIATES, lambda F, c, i, w: w @ F.permute(F.index(c, i, spec=(0,)), dims=(1, 0)),
      lambda F, c, i, w: F.index(w, i, spec=(None, 0)),
      when=lambda c, i, w: len(w.shape) == 2 and _row_list(i) and _is_identity(c),
      example={"c": Picks((0, 1, 2, 3), 4), "i": Ints((6,), 4), "w": Floats((5, 4))}),
    R("columns_by_identity_turned", REASSOCIATES, lambda F, c, i, g: g @ F.index(c, i, spec=(0,)),
      lambda F, c, i, g: _put_columns(F, i, g, c.shape[1]),
      when=lambda c, i, g: len(g.shape) == 2 and _row_list(i) and _is_identity(c),
      example={"c": Picks((0, 1, 2, 3), 4), "i": Ints((6,), 4), "g": Floats((5, 6))}),
    R("rows_by_constant", REASSOCIATES, lambda F, c, w: c @ w,
      lambda F, c, w: F.index(w, c.builder.constant(_picks(c)), spec=(0,)),
      when=lambda c, w: _permutes(c), example={"c": Picks((2, 0, 0), 4), "w": Floats((4, 5))}),
    R("columns_by_constant", REASSOCIATES, lambda F, w, c: w @ c,
      lambda F, w, c: F.index(w, c.builder.constant(_picks(c, by_columns=True)), spec=(None, 0)),
      when=lambda w, c: len(w.shape) == 2 and _permutes(c, by_columns=True),
      example={"w": Floats((5, 4)), "c": Picks((2, 0, 0), 4, turned=True)}),
    # rows that are handed on along the edges of a graph, weighed by e: of a product, on its narrow side
    R("product_of_rows_handed_on", REASSOCIATES,
      lambda F, z, x, s, t, w: F.index_put(z, F.index(x, s, spec=(0,)), t, spec=(0,), accumulate=True) @ w,
      lambda F, z, x, s, t, w: _added(F, t, F.index(x @ w, s, spec=(0,)), z),
      numbers="z", when=_narrows, example={**_EDGES, "x": Floats((4, 6)), "w": Floats((6, 2))}),
    R("product_of_weighed_rows_handed_on", REASSOCIATES,
      lambda F, z, x, s, t, w, e: F.index_put(z, F.index(x, s, spec=(0,)) * e, t, spec=(0,), accumulate=True) @ w,
      lambda F, z, x, s, t, w, e: _added(F, t, F.index(x @ w, s, spec=(0,)) * e, z),
      numbers="z", when=_narrows, example={**_EDGES, "x": Floats((4, 6)), "w": Floats((6, 2)), "e": Floats((8, 1))}),
    R("picked_rows_times", REASSOCIATES, lambda F, x, s, w: F.index(x, s, spec=(0,)) @ w,
      lambda F, x, s, w: F.index(x @ w, s, spec=(0,)), when=_repeats,
      example={"x": Floats((4, 6)), "s": Ints((40,), 4), "w": Floats((6, 6))}),
    R("picked_rows_turned_times", REASSOCIATES, lambda F, x, s, g: F.permute(F.index(x, s, spec=(0,)), dims=(1, 0)) @ g,
      lambda F, x, s, g: F.permute(x, dims=(1, 0)) @ _added(F, s, g, x), when=_repeats,
      example={"x": Floats((4, 6)), "s": Ints((40,), 4), "g": Floats((40, 6))}),
    R("product_added_up", REASSOCIATES, lambda F, z, v, w, t: F.index_put(z, v @ w, t, spec=(0,), accumulate=True),
      lambda F, z, v, w, t: _added(F, t, v, z) @ w, numbers="z",
      when=lambda z, v, w, t: number(z) == 0 and len(v.shape) == len(w.shape) == 2 and _row_list(t)
      and v.shape[0] > z.shape[0],
      example={"z": Full((5, 6), 0.0), "v": Floats((40, 6)), "w": Floats((6, 6)), "t": Ints((40,), 5)}),
    R("rows_handed_on_turned", REASSOCIATES,
      lambda F, z, x, s, t, g: F.permute(
          F.index_put(z, F.index(x, s, spec=(0,)), t, spec=(0,), accumulate=True), dims=(1, 0)) @ g,
      lambda F, z, x, s, t, g: F.permute(x, dims=(1, 0)) @ _added(F, s, F.index(g, t, spec=(0,)), x),
      numbers="z", when=_narrows_turned, example={**_EDGES, "x": Floats((4, 6)), "g": Floats((5, 2))}),
    R("weighed_rows_handed_on_turned", REASSOCIATES,
      lambda F, z, x, s, t, g, e: F.permute(
          F.index_put(z, F.index(x, s, spec=(0,)) * e, t, spec=(0,), accumulate=True), dims=(1, 0)) @ g,
      lambda F, z, x, s, t, g, e: F.permute(x, dims=(1, 0)) @ _added(F, s, F.index(g, t, spec=(0,)) * e, x),
      numbers="z", when=_narrows_turned,
      example={**_EDGES, "x": Floats((4, 6)), "g": Floats((5, 2)), "e": Floats((8, 1))}),
    R("product_handed_on", REASSOCIATES,
      lambda F, z, x, s, t, w: F.index_put(z, F.index(x @ w, s, spec=(0,)), t, spec=(0,), accumulate=True),
      lambda F, z, x, s, t, w: _added(F, t, F.index(x, s, spec=(0,)), z) @ w,
      numbers="z", when=_widens, example={**_EDGES, "x": Floats((4, 2)), "w": Floats((2, 6))}),
    R("product_handed_on_and_weighed", REASSOCIATES,
      lambda F, z, x, s, t, w, e: F.index_put(z, F.index(x @ w, s, spec=(0,)) * e, t, spec=(0,), accumulate=True),
      lambda F, z, x, s, t, w, e: _added(F, t, F.index(x, s, spec=(0,)) * e, z) @ w,
      numbers="z", when=_widens, example={**_EDGES, "x": Floats((4, 2)), "w": Floats((2, 6)), "e": Floats((8, 1))}),
    R("rows_by_one_hot", REASSOCIATES, lambda F, i, c, w, t: F.cast(i == c, dtype=t) @ w,
      lambda F, i, c, w, t: _selected(F, i, c, w), when=lambda i, c, w, t: t == w.dtype and _selects(i, c, w),
      example=_ONE_HOT),
    R("rows_by_one_hot_of_integers", REASSOCIATES,
      lambda F, i, c, w, t, u: F.cast(F.cast(i == c, dtype=u), dtype=t) @ w,
      lambda F, i, c, w, t, u: _selected(F, i, c, w), when=lambda i, c, w, t, u: t == w.dtype and _selects(i, c, w),
      example={**_ONE_HOT, "u": INT64}),
    R("one_of_each_row_by_one_hot", REASSOCIATES,
      lambda F, i, c, x, t, a, k: F.sum(F.cast(i == c, dtype=t) * x, axis=a, keepdims=k),
      lambda F, i, c, x, t, a, k: _one_each(F, i, c, x, a, k),
      when=lambda i, c, x, t, a, k: t == x.dtype and _one_of_each(i, c, x, a), example=_ONE_EACH),
    R("one_of_each_row_by_one_hot_of_integers", REASSOCIATES,
      lambda F, i, c, x, t, u, a, k: F.sum(F.cast(F.cast(i == c, dtype=u), dtype=t) * x, axis=a, keepdims=k),
      lambda F, i, c, x, t, u, a, k: _one_each(F, i, c, x, a, k),
      when=lambda i, c, x, t, u, a, k: t == x.dtype and _one_of_each(i, c, x, a), example={**_ONE_EACH, "u": INT64}),
    R("rows_by_one_hot_turned", REASSOCIATES,
      lambda F, i, c, g, t: F.permute(F.cast(i == c, dtype=t), dims=(1, 0)) @ g,
      lambda F, i, c, g, t: _put_back(F, i, c, g), when=lambda i, c, g, t: t == g.dtype and _counts(i, c, g),
      example=_ONE_HOT_TURNED),
    R("rows_by_one_hot_of_integers_turned", REASSOCIATES,
      lambda F, i, c, g, t, u: F.permute(F.cast(F.cast(i == c, dtype=u), dtype=t), dims=(1, 0)) @ g,
      lambda F, i, c, g, t, u: _put_back(F, i, c, g), when=lambda i, c, g, t, u: t == g.dtype and _counts(i, c, g),
      example={**_ONE_HOT_TURNED, "u": INT64}),
)  # fmt: skip
