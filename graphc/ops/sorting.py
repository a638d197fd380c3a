"""Orders and running extremes along one axis, and reductions into places that an index array gives.

Running extremes are read with `gather` at the places that `argcummax` finds: gradients go to the elements picked, as in
PyTorch.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from graphc.ops import labels, orders, parts, rows, scalars, scans
from graphc.ops.aval import Aval
from graphc.ops.dtypes import INT64, is_inexact
from graphc.ops.gradient import numpy_dtype
from graphc.ops.index import along, ref_gather
from graphc.ops.references import everywhere
from graphc.ops.rounding import EXACT
from graphc.ops.rules import accumulation_dtype, refuse_unordered, scan_rule, torch_name
from graphc.ops.samples import Floats, Ints, Sample
from graphc.ops.scattering import gathered
from graphc.ops.spec import Op, Rule, Trait, bounded, either_zero, op

_ROWS = ((3, 4), 1), ((2, 3, 2), 1), ((5,), 0)


def _places(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    refuse_unordered(op, [avals[0].dtype])
    return Aval(avals[0].shape, INT64)


def _argsort(xp: Any, x: np.ndarray, axis: int, descending: bool) -> np.ndarray:
    return orders.order(x, axis, descending)


COMPARISON = 10  # operations for one with its move: branches are not vectorized


def _comparisons(avals: list[Aval], result: Any, params: Mapping[str, Any]) -> int:
    (aval,) = avals
    n = aval.shape[params["axis"]] if aval.shape else 1
    wanted = params.get("first") or n
    return COMPARISON * aval.size * max(int(min(n, wanted)), 1).bit_length()


argsort = op(
    "argsort", "input", parts=parts.ARGSORT, params={"axis": -1, "descending": False}, impl=_argsort,
    rule=Rule(_places), flops=_comparisons, traits=Trait.ORDERS, ref=rows.scanned(rows.order),
    samples=(*(Sample(s, axis=a, descending=d) for s, a in _ROWS for d in (False, True)),
             Sample(Ints((2, 9), 3), axis=1, descending=True), Sample(Ints((2, 9), 3), axis=1, descending=False)),
)  # fmt: skip


def _sort(xp: Any, x: np.ndarray, axis: int, descending: bool, first: int | None) -> tuple[np.ndarray, np.ndarray]:
    places = orders.order(x, axis, descending, first)
    return (gathered(x, places, axis) if x.ndim else x.copy()), places


def _values_and_places(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> tuple[Aval, Aval]:
    places, first, axis = _places(op, avals, params), params["first"], params["axis"]
    shape = list(places.shape)
    if first is not None:
        shape[axis] = min(first, shape[axis])
    return Aval(tuple(shape), avals[0].dtype), Aval(tuple(shape), INT64)


@everywhere
def _ref_sort(x: np.ndarray, axis: int, descending: bool, first: int | None) -> tuple[np.ndarray, np.ndarray]:
    places = rows.scanned(rows.order)(x, axis=axis, descending=descending)
    if first is not None:
        places = np.take(places, range(min(first, x.shape[axis])), axis)
    return ref_gather(x, places, axis), places


# first: how many of each row, from its beginning; None: all
sort = op(
    "sort", "input", parts=parts.SORT, results="values indices",
    params={"axis": -1, "descending": False, "first": None}, impl=_sort,
    rule=Rule(_values_and_places), flops=_comparisons, traits=Trait.ORDERS, ref=_ref_sort,
    samples=(*argsort.samples[: 2 * len(_ROWS)],
             *(Sample((2, 40), axis=1, descending=d, first=3) for d in (False, True)),
             Sample((7, 3), axis=0, descending=True, first=5), Sample((30,), axis=0, first=2)),
    rounding=EXACT,
    # no two elements come from one place
    vjp=dict(input=lambda F, g_values, r_indices, input_shape, axis: F.scatter(
        F.full(shape=input_shape, value=0, dtype=numpy_dtype(g_values)), r_indices, g_values, axis=axis % max(
            len(input_shape), 1), distinct=True)),
)  # fmt: skip


def _argcummax(xp: Any, x: Any, axis: int, largest: bool) -> Any:
    if not x.size or not x.ndim:
        return np.zeros(x.shape, np.int64)
    running = scans.accumulate(np.maximum if largest else np.minimum, x, axis)
    # the last of equals, and from the first nan on the last nan
    hits = x == running
    if is_inexact(x.dtype) and np.isnan(running.take(-1, axis)).any():
        hits |= x != x
    count = x.shape[axis]
    if x.size > scans.BLOCK and axis % x.ndim == x.ndim - 1:  # a row's first is one: each place stays until the next
        found = np.flatnonzero(hits)
        return np.repeat(found % count, np.diff(found, append=x.size)).reshape(x.shape)
    places = np.arange(count).reshape([-1 if i == axis % x.ndim else 1 for i in range(x.ndim)])
    return scans.accumulate(np.maximum, hits * places, axis)


argcummax = op(
    "argcummax", "input", params={"axis": -1, "largest": True}, dims=labels.rows, impl=_argcummax, rule=Rule(_places),
    traits=Trait.ORDERS, ref=rows.scanned(rows.running_place_of_extreme),
    samples=(*(Sample(s, axis=a, largest=b) for s, a in _ROWS for b in (False, True)),
             Sample(Ints((2, 9), 3), axis=1, largest=True)),
)  # fmt: skip


def _cumprod_vjp(F, g, r, input, axis):
    # sum over i >= k of g[i] r[i] / x[k]; at the first zero, behind which r is 0, with the product of the others
    zero = input == 0
    zeros = F.cumsum(zero, axis=axis)
    first = F.logical_and(zero, zeros == 1)
    others = F.cumprod(F.where(first, 1, input), axis=axis)
    behind = F.cumsum(F.where(zeros == 1, g * others, 0), axis=axis, reverse=True)
    ahead = F.cumsum(F.where(zeros == 0, g * r, 0), axis=axis, reverse=True) / F.where(zero, 1, input)
    return F.where(zeros == 0, ahead, F.where(first, behind, 0))


cumprod = op(
    "cumprod", "input", parts=parts.cumulation("cumprod", "prod"),
    params={"axis": -1}, rule=scan_rule, traits=Trait.HOLOMORPHIC,
    impl=lambda xp, x, axis: xp.cumprod(x, axis=axis, dtype=accumulation_dtype(x.dtype)), domain=(0.5, 2.0),
    numpy=lambda x, axis: scans.accumulate(np.multiply, x, axis, accumulation_dtype(x.dtype)),
    ref=rows.scanned(rows.running_product), slopes=dict(input=rows.running_product_slope),
    samples=tuple(Sample(s, axis=a) for s, a in _ROWS), vjp=dict(input=_cumprod_vjp),
)  # fmt: skip


def _logs(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    (x,) = avals
    if not is_inexact(x.dtype):
        raise NotImplementedError(f"\"logcumsumexp_out_cpu\" not implemented for '{torch_name(x.dtype)}'")
    return x


def logaddexp(xp: Any, a: Any, b: Any) -> Any:
    """log(exp(a) + exp(b)) of complex numbers, the larger real part taken out."""
    first = (a.real >= b.real) | (a.real != a.real)
    high, low = xp.where(first, a, b), xp.where(first, b, a)
    known = xp.isfinite(high.real)
    # both infinitely far off: the sum itself. One: the other is nothing to it
    apart = xp.where(known, high + xp.log1p(xp.exp(xp.where(known, low - high, 0))), high)
    return xp.where(~known & (low.real == high.real) & (high.real > 0), xp.log(xp.exp(high) + xp.exp(low)), apart)


def zeros_alike(xp: Any, x: Any) -> Any:
    """The complex logarithms `x` with one logarithm of 0, which has no phase."""
    return xp.where(x.real == -np.inf, np.array(-np.inf, x.dtype), x)


def _np_logcumsumexp(x, axis):
    if x.dtype.kind != "c":
        return scans.accumulate(np.logaddexp, x, axis) + 0  # the first is log(exp(x)): no -0
    return scans.accumulate(functools.partial(logaddexp, np), zeros_alike(np, x), axis)


def _logcumsumexp_vjp(F, g, r, input, input_dtype, axis):
    # exp(x[k] + log(sum over i >= k of g[i] exp(-r[i]))), for the positive and the negative part of g: no overflow.
    # log(0) is a number far below the others, where -inf would give inf - inf in the gradient of this.
    lowest = -6e4 if input_dtype == np.float16 else -1e37

    def part(size, some):
        logs = F.where(some, F.log(F.where(some, size, 1)), lowest) - r
        total = F.flip(F.logcumsumexp(F.flip(logs, axis=(axis,)), axis=axis), axis=(axis,))
        return total, F.exp(total + input)

    if input_dtype.kind == "c":
        return part(g, F.ne(g, 0))[1]

    def known(total, size):  # nan and what is infinite go on to what they make nan
        return F.where((total < lowest / 2) & (total > -np.inf), 0, size)

    return known(*part(g, g > 0)) - known(*part(-g, g < 0))


logcumsumexp = op(
    "logcumsumexp", "input", parts=parts.cumulation("logcumsumexp", "logsumexp"),
    params={"axis": -1}, rule=Rule(_logs), traits=Trait.HOLOMORPHIC,
    impl="logcumsumexp", numpy=_np_logcumsumexp,
    ref=rows.scanned(rows.running_log_of_sum), samples=tuple(Sample(s, axis=a) for s, a in _ROWS),
    vjp=dict(input=_logcumsumexp_vjp),
)  # fmt: skip


def _searchsorted(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    dtype = avals[0].dtype
    if dtype.kind in "bc":
        raise NotImplementedError(f"\"searchsorted_out_cpu\" not implemented for '{torch_name(dtype)}'")
    return Aval(avals[1].shape, INT64)


def bisect(xp: Any, sequence: Any, values: Any, right: bool) -> Any:
    """Where PyTorch's binary search ends: a nan, in the sequence or among the values, sends it to the right."""
    start, end = xp.zeros(values.shape, np.int64), xp.full(values.shape, sequence.shape[0], np.int64)
    for _ in range(sequence.shape[0].bit_length()):
        middle = start + (end - start) // 2
        found = sequence[xp.minimum(middle, sequence.shape[0] - 1)]
        on = ~(found > values) if right else ~(found >= values)
        open_ = start < end
        start, end = xp.where(open_ & on, middle + 1, start), xp.where(open_ & ~on, middle, end)
    return start


def _np_searchsorted(sequence, values, right):
    side = "right" if right else "left"
    if sequence.ndim == 1:
        if sequence.size and sequence[-1] != sequence[-1]:
            return np.asarray(bisect(np, sequence, values, right))
        return np.asarray(np.searchsorted(sequence, values, side))
    if not sequence.size or not values.size:
        return np.zeros(values.shape, np.int64)
    rows = sequence.reshape(-1, sequence.shape[-1]), values.reshape(-1, values.shape[-1])
    if np.any(sequence[..., -1] != sequence[..., -1]):
        found = [bisect(np, s, v, right) for s, v in zip(*rows, strict=True)]
    else:
        found = [np.searchsorted(s, v, side) for s, v in zip(*rows, strict=True)]
    return np.array(found, np.int64).reshape(values.shape)


def _blocks(xp, sequence, values, right):
    # how many elements of the sequence lie before each value
    row = sequence[..., None, :] if sequence.ndim > 1 else sequence
    value = values[..., None]
    before = (row <= value) if right else (row < value)
    return xp.sum(before | (value != value), axis=-1, dtype=np.int64)


@everywhere
def _ref_searchsorted(sequence, values, right):
    """How many elements of the sequence lie before each value; a nan lies behind all."""
    if np.isnan(sequence).any():
        raise ValueError("a sequence with nan is in no order")
    result = np.zeros(values.shape, np.int64)
    for at in np.ndindex(values.shape):
        row, v = sequence[at[:-1]] if sequence.ndim > 1 else sequence, values[at]
        result[at] = sum(bool(v != v or (s <= v if right else s < v)) for s in row)
    return result


searchsorted = op(
    "searchsorted", "sequence values", params={"right": False}, impl=_blocks, numpy=_np_searchsorted,
    rule=Rule(_searchsorted), ref=_ref_searchsorted, traits=Trait.ORDERS,
    samples=(Sample(Floats((1,)), (4, 5), right=True), Sample(Floats((2, 1)), (2, 3), right=False)),
)  # fmt: skip


UFUNCS = {"prod": np.multiply, "amax": np.maximum, "amin": np.minimum}


def _np_scatter_reduce(x, index, src, axis, reduce):
    result = x.copy()
    UFUNCS[reduce].at(result, along(np, index, axis), src)
    return result


def _jnp_scatter_reduce(xp, x, index, src, axis, reduce):
    target = x.at[along(xp, index, axis)]
    return {"prod": target.multiply, "amax": target.max, "amin": target.min}[reduce](src)


@everywhere
def _ref_scatter_reduce(x, index, src, axis, reduce):
    combine = {"prod": lambda a, b: a * b, "amax": scalars.larger, "amin": scalars.smaller}[reduce]
    result = x.copy()
    for at in np.ndindex(index.shape):
        to = (*at[:axis], index[at], *at[axis + 1 :])
        result[to] = combine(result[to], src[at])
    return result


def _share_of_each(F, r, input, index, src, dtype, axis):
    """Which elements of input and src are the extreme, as ones, and how many of each result."""
    mine = F.cast(input == r, dtype=dtype)
    theirs = F.cast(src == F.gather(r, index, axis=axis), dtype=dtype)
    return mine, theirs, F.scatter_add(mine, index, theirs, axis=axis)


def _reduce_input(F, g, r, input, input_dtype, index, src, axis, reduce):
    if reduce == "prod":
        safe = F.where(input == 0, 1, input)
        return g * F.scatter_reduce(safe, index, src, axis=axis, reduce=reduce) / safe
    mine, _, count = _share_of_each(F, r, input, index, src, input_dtype, axis)
    return mine * (g / count)


def _reduce_src(F, g, r, input, input_dtype, index, src, axis, reduce):
    if reduce != "prod":
        _, theirs, count = _share_of_each(F, r, input, index, src, input_dtype, axis)
        return theirs * F.gather(g / count, index, axis=axis)
    zero = src == 0
    counted = F.cast(zero, dtype=input_dtype)
    zeros = F.gather(F.scatter_add(input * 0, index, counted, axis=axis), index, axis=axis)
    alone = F.logical_and(zero, zeros == 1)
    others = F.scatter_reduce(input, index, F.where(alone, 1, src), axis=axis, reduce=reduce)
    rest = F.gather(g * r, index, axis=axis) / F.where(zero, 1, src)
    return F.where(alone, F.gather(g * others, index, axis=axis), rest)


def _shares(
    g: np.ndarray, x: np.ndarray, index: np.ndarray, src: np.ndarray, axis: int, reduce: str
) -> list[np.ndarray]:
    """What of `g` goes to each element of `x` and of `src`: equal extremes share it, a factor gets the others."""
    met = {at: [(0, at)] for at in np.ndindex(x.shape)}
    for at in np.ndindex(index.shape):
        met[(*at[:axis], int(index[at]), *at[axis + 1 :])].append((1, at))
    found = [np.zeros(x.shape), np.zeros(src.shape)]
    for to, terms in met.items():
        values = [float((x, src)[k][at]) for k, at in terms]
        if not all(map(math.isfinite, values)):
            raise ValueError("the limits are left to the rule")
        best = max(values) if reduce == "amax" else min(values)
        for i, (k, at) in enumerate(terms):
            others = math.prod(values[:i] + values[i + 1 :])
            found[k][at] = g[to] * (others if reduce == "prod" else (values[i] == best) / values.count(best))
    return found


scatter_reduce = op(
    "scatter_reduce", "input index src", params={"axis": 0, "reduce": "prod"}, dims=labels.adding_along_axis,
    numpy=_np_scatter_reduce,
    impl=_jnp_scatter_reduce, rule=Rule(lambda op, avals, params: avals[0]), ref=_ref_scatter_reduce,
    check=bounded(lambda x, index, src, axis, reduce: [(index, 0, x.shape[axis])], RuntimeError,
                  "index out of bounds in scatter_reduce()"),
    nearest=either_zero, vjp=dict(input=_reduce_input, src=_reduce_src), domain=((0.5, 2.0), (0.5, 2.0), (0.5, 2.0)),
    slopes=dict(input=lambda *given, **params: _shares(*given, **params)[0],
                src=lambda *given, **params: _shares(*given, **params)[1]),
    samples=(*(Sample((3, 4), Ints((3, 3), 4), (3, 3), axis=1, reduce=k) for k in UFUNCS),
             Sample((5,), Ints((7,), 5), (7,), axis=0, reduce="prod")),
)  # fmt: skip
