"""Orders and running extremes along one axis, and reductions into places that an index array gives.

Sorted values and running extremes are read with `gather` at the places that `argsort` and `argcummax` find: gradients
go to the elements picked, as in PyTorch.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Mapping
from typing import Any

import numpy as np

from graphc.ops.aval import Aval
from graphc.ops.dtypes import INT64, is_inexact
from graphc.ops.index import along
from graphc.ops.rules import accumulation_dtype, refuse_unordered, scan_rule, torch_name
from graphc.ops.samples import Floats, Ints, Sample
from graphc.ops.spec import Check, Op, Rule, Trait, op

_ROWS = ((3, 4), 1), ((2, 3, 2), 1), ((5,), 0)


def _places(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    refuse_unordered(op, [avals[0].dtype])
    return Aval(avals[0].shape, INT64)


# --- orders


def _argsort(xp: Any, x: Any, axis: int, descending: bool) -> Any:
    # of the reversed array, last to first: equal elements keep their order, and nan is the largest, as in PyTorch
    if not descending:
        return xp.argsort(x, axis=axis, stable=True).astype(np.int64)
    order = xp.argsort(xp.flip(x, axis), axis=axis, stable=True)
    return x.shape[axis] - 1 - xp.flip(order, axis).astype(np.int64)


def _ref_argsort(x, axis, descending):
    def order(row):
        places = sorted(range(len(row)), key=lambda i: -row[i] if descending else row[i])
        return np.array(places, np.int64)

    return np.apply_along_axis(order, axis, x)


argsort = op(
    "argsort", "input", params={"axis": -1, "descending": False}, impl=_argsort, rule=Rule(_places),
    traits=Trait.ORDERS, ref=_ref_argsort,
    samples=(*(Sample(s, axis=a, descending=d) for s, a in _ROWS for d in (False, True)),
             Sample(Ints((2, 9), 3), axis=1, descending=True), Sample(Ints((2, 9), 3), axis=1, descending=False)),
)  # fmt: skip


def _argcummax(xp: Any, x: Any, axis: int, largest: bool) -> Any:
    running = (xp.maximum if largest else xp.minimum).accumulate(x, axis=axis)
    return _last_hit(xp, x, running, axis)


def _last_hit(xp: Any, x: Any, running: Any, axis: int) -> Any:
    # the last of equals, and from the first nan on the last nan
    places = xp.arange(x.shape[axis]).reshape([-1 if i == axis else 1 for i in range(x.ndim)])
    hits = xp.where((x == running) | (x != x), places, 0)
    return xp.maximum.accumulate(hits, axis=axis).astype(np.int64)


def _ref_argcummax(x, axis, largest):
    def places(row):
        sign = 1 if largest else -1
        at = itertools.accumulate(range(len(row)), lambda i, j: j if sign * row[j] >= sign * row[i] else i)
        return np.array(list(at), np.int64)

    return np.apply_along_axis(places, axis, x)


argcummax = op(
    "argcummax", "input", params={"axis": -1, "largest": True}, impl=_argcummax, rule=Rule(_places),
    traits=Trait.ORDERS, ref=_ref_argcummax,
    samples=(*(Sample(s, axis=a, largest=b) for s, a in _ROWS for b in (False, True)),
             Sample(Ints((2, 9), 3), axis=1, largest=True)),
)  # fmt: skip


# --- running products and sums


def reversed_cumsum(F: Any, x: Any, axis: int) -> Any:
    """The sum of what is at and behind each place."""
    return F.flip(F.cumsum(F.flip(x, axis=(axis,)), axis=axis), axis=(axis,))


def _cumprod_vjp(F, g, r, input, axis):
    # sum over i >= k of g[i] r[i] / x[k]; at the first zero, behind which r is 0, with the product of the others
    zero = input == 0
    first = F.logical_and(zero, F.cumsum(zero, axis=axis) == 1)
    others = F.cumprod(F.where(first, 1, input), axis=axis)
    ahead = reversed_cumsum(F, g * r, axis) / F.where(zero, 1, input)
    return F.where(first, reversed_cumsum(F, g * others, axis), ahead)


cumprod = op(
    "cumprod", "input", params={"axis": -1}, rule=scan_rule, traits=Trait.HOLOMORPHIC,
    impl=lambda xp, x, axis: xp.cumprod(x, axis=axis, dtype=accumulation_dtype(x.dtype)), domain=(0.5, 2.0),
    ref=lambda x, axis: np.apply_along_axis(lambda row: np.array([*itertools.accumulate(row, operator.mul)]), axis, x),
    samples=tuple(Sample(s, axis=a) for s, a in _ROWS), vjp=dict(input=_cumprod_vjp),
)  # fmt: skip


def _logs(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    (x,) = avals
    if not is_inexact(x.dtype):
        raise NotImplementedError(f"\"logcumsumexp_out_cpu\" not implemented for '{torch_name(x.dtype)}'")
    return x


def _logcumsumexp_vjp(F, g, r, input, axis):
    # exp(x[k] + log(sum over i >= k of g[i] exp(-r[i]))), for the positive and the negative part of g: no overflow.
    # log(0) is a number far below the others, where -inf would give inf - inf in the gradient of this.
    def part(sign):
        size = F.where(sign * g > 0, sign * g, 1)
        logs = F.where(sign * g > 0, F.log(size) - r, -1e4)
        total = F.flip(F.logcumsumexp(F.flip(logs, axis=(axis,)), axis=axis), axis=(axis,))
        return F.where(total > -9e3, F.exp(total + input), 0)

    return part(1) - part(-1)


logcumsumexp = op(
    "logcumsumexp", "input", params={"axis": -1}, rule=Rule(_logs),
    impl=lambda xp, x, axis: xp.logaddexp.accumulate(x, axis=axis),
    ref=lambda x, axis: np.log(np.cumsum(np.exp(x), axis)), samples=tuple(Sample(s, axis=a) for s, a in _ROWS),
    vjp=dict(input=_logcumsumexp_vjp),
)  # fmt: skip


# --- places in a sorted sequence


def _searchsorted(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    return Aval(avals[1].shape, INT64)


def _np_searchsorted(sequence, values, right):
    side = "right" if right else "left"
    if sequence.ndim == 1:
        return np.asarray(np.searchsorted(sequence, values, side))
    rows = sequence.reshape(-1, sequence.shape[-1]), values.reshape(-1, values.shape[-1])
    found = [np.searchsorted(s, v, side) for s, v in zip(*rows, strict=True)]
    return np.array(found, np.int64).reshape(values.shape)


def _blocks(xp, sequence, values, right):
    # how many elements of the sequence lie before each value
    row = sequence[..., None, :] if sequence.ndim > 1 else sequence
    value = values[..., None]
    before = (row <= value) if right else (row < value)
    return xp.sum(before | (value != value), axis=-1, dtype=np.int64)


searchsorted = op(
    "searchsorted", "sequence values", params={"right": False}, impl=_blocks, numpy=_np_searchsorted,
    rule=Rule(_searchsorted), ref=lambda s, v, right: _blocks(np, s, v, right), traits=Trait.ORDERS,
    samples=(Sample(Floats((1,)), (2, 3), right=True), Sample(Floats((2, 1)), (2, 3), right=False)),
)  # fmt: skip


# --- reductions into places


UFUNCS = {"prod": np.multiply, "amax": np.maximum, "amin": np.minimum}


def _np_scatter_reduce(x, index, src, axis, reduce):
    result = x.copy()
    UFUNCS[reduce].at(result, along(np, index, axis), src)
    return result


def _jnp_scatter_reduce(xp, x, index, src, axis, reduce):
    target = x.at[along(xp, index, axis)]
    return {"prod": target.multiply, "amax": target.max, "amin": target.min}[reduce](src)


def _ref_scatter_reduce(x, index, src, axis, reduce):
    combine = {"prod": lambda a, b: a * b, "amax": max, "amin": min}[reduce]
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


scatter_reduce = op(
    "scatter_reduce", "input index src", params={"axis": 0, "reduce": "prod"}, numpy=_np_scatter_reduce,
    impl=_jnp_scatter_reduce, rule=Rule(lambda op, avals, params: avals[0]), ref=_ref_scatter_reduce,
    check=Check(lambda xp, x, index, src, axis, reduce: xp.all((index >= 0) & (index < x.shape[axis])), RuntimeError,
                "index out of bounds in scatter_reduce()"),
    vjp=dict(input=_reduce_input, src=_reduce_src), domain=((0.5, 2.0), (0.5, 2.0), (0.5, 2.0)),
    samples=(*(Sample((3, 4), Ints((3, 3), 4), (3, 3), axis=1, reduce=k) for k in UFUNCS),
             Sample((5,), Ints((7,), 5), (7,), axis=0, reduce="prod")),
)  # fmt: skip
