"""Reductions and scans. `axis` is a tuple of non-negative axes (a reduction over all axes names them all)."""

from __future__ import annotations

import builtins
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from graphc.ops import labels, parts, rows, scalars, softmax_rows
from graphc.ops.aval import Aval, size_of
from graphc.ops.dtypes import is_inexact
from graphc.ops.rounding import EXACT, Rounding
from graphc.ops.rules import (
    accumulation_dtype,
    arg_reduce,
    reduce_bool,
    reduce_float,
    reduce_nonempty,
    reduce_size,
    reduce_sum,
    same_float,
    scan_rule,
)
from graphc.ops.samples import Sample
from graphc.ops.scans import accumulate
from graphc.ops.scattering import gathered
from graphc.ops.spec import Op, Rule, Trait, either_zero, op
from graphc.ops.sums import LARGE, sums, total

OVER = {"axis": (), "keepdims": False}
ALONG = {"axis": -1}
_REDUCTIONS = (
    Sample((3, 4), axis=(0, 1), keepdims=False),
    Sample((3, 4), axis=(1,), keepdims=False),
    Sample((2, 3, 4), axis=(0, 2), keepdims=True),
    Sample((), axis=(), keepdims=False),
    Sample((1, 5), axis=(0,), keepdims=False),
)
_ROWS = (Sample((3, 4), axis=1), Sample((2, 3, 2), axis=1), Sample((5,), axis=0))


def kept(shape: tuple[int, ...], axis: tuple[int, ...]) -> tuple[int, ...]:
    """`shape` with the reduced axes kept as 1."""
    return tuple(1 if i in axis else n for i, n in enumerate(shape))


def spread(F: Any, g: Any, shape: tuple[int, ...], axis: tuple[int, ...], keepdims: bool) -> Any:
    """Undo a reduction: repeat `g` along the reduced axes."""
    if not keepdims and g.shape:
        g = F.reshape(g, shape=kept(shape, axis))
    return F.broadcast_to(g, shape=shape)


def count(shape: tuple[int, ...], axis: tuple[int, ...]) -> int:
    """How many elements each result of a reduction sees."""
    return size_of(tuple(shape[i] for i in axis))


def _sum(xp, x, axis, keepdims):
    return xp.sum(x, axis=axis, keepdims=keepdims, dtype=accumulation_dtype(x.dtype))


def _np_sum(x, axis, keepdims):
    dtype = None if is_inexact(x.dtype) else accumulation_dtype(x.dtype)
    return total(x, axis, dtype, keepdims)


def _np_mean(x, axis, keepdims):
    return total(x, axis, None, keepdims) / x.dtype.type(count(x.shape, axis))


def _np_prod(x, axis, keepdims):
    rows, first = x, x.ndim - len(axis)
    if x.size < LARGE or x.dtype.char not in "fdFD" or axis != tuple(range(first, x.ndim)):
        return np.prod(x, axis, accumulation_dtype(x.dtype), keepdims=keepdims)
    # a product of halves is vectorized, where one number after the other waits for the last
    rows = x.reshape(*x.shape[:first], -1)
    while (half := rows.shape[-1] // 2) > 4:
        odd, rows = rows[..., 2 * half :], rows[..., :half] * rows[..., half : 2 * half]
        rows[..., : odd.shape[-1]] *= odd
    result = rows[..., 0].copy()
    for k in range(1, rows.shape[-1]):
        result *= rows[..., k]
    return result.reshape(kept(x.shape, axis)) if keepdims else result


def _prod_vjp(F, g, input, input_shape, axis, keepdims):
    # the product of the others: p / x without zeros; with exactly one zero, the rest's product at that place
    zero = input == 0
    zeros = F.sum(zero, axis=axis, keepdims=True)
    safe = F.where(zero, 1, input)
    product = F.prod(safe, axis=axis, keepdims=True)
    others = F.where(zero, F.where(zeros == 1, product, 0), F.where(zeros == 0, product / safe, 0))
    return spread(F, g, input_shape, axis, keepdims) * others


def _extremum_vjp(F, g, r, input, input_shape, input_dtype, axis, keepdims):
    # ties share the gradient evenly, as PyTorch's amax and amin do
    hit = input == spread(F, r, input_shape, axis, keepdims)
    # (of nan, which equals nothing, none has it: 0/0)
    share = g / F.cast(F.sum(hit, axis=axis, keepdims=keepdims), dtype=input_dtype)
    return spread(F, share, input_shape, axis, keepdims) * F.cast(hit, dtype=input_dtype)


def _one_term(avals: Any, result: Aval, params: Any, is_zero: Any) -> bool:
    return avals[0].size == result.size


sum = op(
    "sum", "input", parts=parts.REDUCTION, params=OVER, impl=_sum, numpy=_np_sum, rule=reduce_sum, traits=Trait.LINEAR,
    lone_term=_one_term, lifting=lambda N, x, axis, keepdims: N.sum(x, axis, keepdims), ref=rows.reduced(rows.total),
    samples=(*_REDUCTIONS, Sample((0, 3), axis=(0,), keepdims=False)),
    vjp=dict(input=lambda F, g, input_shape, axis, keepdims: spread(F, g, input_shape, axis, keepdims)),
)  # fmt: skip
mean = op("mean", "input", parts=parts.REDUCTION,
          params=OVER, impl="mean", numpy=_np_mean, rule=reduce_float, traits=Trait.LINEAR,
          lone_term=_one_term,
          lifting=lambda N, x, axis, keepdims: N.scale(N.sum(x, axis, keepdims), N.ratio(1, count(x.shape, axis))),
          ref=rows.reduced(rows.mean), samples=_REDUCTIONS,
          vjp=dict(input=lambda F, g, input_shape, axis, keepdims: spread(
              F, g / builtins.max(count(input_shape, axis), 1), input_shape, axis, keepdims)))  # fmt: skip


def _square_sum(xp, x, axis, keepdims):
    squares = x * x if x.dtype.kind != "c" else x.real * x.real + x.imag * x.imag
    return xp.sum(squares, axis=axis, keepdims=keepdims)


def _freedom(shape, axis, correction):
    return builtins.max(count(shape, axis) - correction, 0.0)


def _np_var(x, axis, keepdims, correction):
    n = count(x.shape, axis)
    apart = x - total(x, axis, None, True) / n if n else x
    squares = apart * apart if x.dtype.kind != "c" else apart.real * apart.real + apart.imag * apart.imag
    freedom = n - correction
    return total(squares, axis, None, keepdims) / (freedom if freedom > 0 else 0.0)


def _var(xp, x, axis, keepdims, correction):
    apart = x - xp.mean(x, axis=axis, keepdims=True)
    return _square_sum(xp, apart, axis, keepdims) / _freedom(x.shape, axis, correction)


def _var_vjp(F, g, input, input_shape, input_dtype, axis, keepdims, correction):
    # 2 (x - mean) / (n - correction); what reaches x by the mean sums to 0
    freedom = count(input_shape, axis) - correction
    apart = input - F.mean(input, axis=axis, keepdims=True)
    if freedom <= 0 and len(axis) == len(input_shape):  # PyTorch's limit over all dims
        limit = F.cast(F.where(apart == 0, math.nan, math.inf), dtype=input_dtype)
        return spread(F, g, input_shape, axis, keepdims) * limit
    return spread(F, g * (2 / freedom if freedom else math.inf), input_shape, axis, keepdims) * apart


var = op("var", "input", parts=parts.REDUCTION,
         params={**OVER, "correction": 1}, impl=_var, numpy=_np_var, rule=reduce_size,
         ref=rows.reduced(rows.variance),
         samples=tuple(Sample(*s.inputs, **s.params, correction=c) for s in _REDUCTIONS for c in (0, 0.5)),
         vjp=dict(input=_var_vjp))  # fmt: skip
prod = op(
    "prod", "input", parts=parts.REDUCTION, params=OVER, rule=reduce_sum, samples=_REDUCTIONS,
    ref=rows.reduced(rows.product), slopes=dict(input=rows.backward(rows.product_slope)),
    impl=lambda xp, x, axis, keepdims: xp.prod(x, axis=axis, keepdims=keepdims, dtype=accumulation_dtype(x.dtype)),
    numpy=_np_prod, domain=(0.5, 2.0), traits=Trait.HOLOMORPHIC, vjp=dict(input=_prod_vjp),
)  # fmt: skip
amax, amin = (
    op(f"a{name}", "input", parts=parts.REDUCTION, params=OVER, impl=name, rule=reduce_nonempty, samples=_REDUCTIONS,
       cpu_name=f"{name}_values_cpu", traits=Trait.ORDERS | Trait.MOVES, nearest=either_zero,
       ref=rows.reduced(rows.extreme, better=better),
       slopes=dict(input=rows.backward(rows.extreme_slope, largest=name == "max")), vjp=dict(input=_extremum_vjp))
    for name, better in (("max", scalars.larger), ("min", scalars.smaller))
)  # fmt: skip
any, all = (
    op(name, "input", parts=parts.REDUCTION, params=OVER, impl=name, rule=reduce_bool, samples=_REDUCTIONS,
       ref=rows.reduced(among))
    for name, among in (("any", builtins.any), ("all", builtins.all))
)  # fmt: skip


def _first_extreme(reducer: str):
    def impl(xp, x, axis, keepdims):
        return getattr(xp, reducer)(x, axis=axis if x.ndim else None, keepdims=keepdims).astype(np.int64, copy=False)

    return impl


_ARG_SAMPLES = tuple(Sample(*s.inputs, **s.params, keepdims=k) for s in _ROWS for k in (False, True))
argmax, argmin = (
    op(name, "input", parts=parts.REDUCTION, params={"axis": 0, "keepdims": False}, impl=_first_extreme(name),
       rule=arg_reduce, samples=_ARG_SAMPLES, traits=Trait.ORDERS,
       ref=rows.reduced(rows.place_of_extreme, largest=name == "argmax"))
    for name in ("argmax", "argmin")
)  # fmt: skip


def _max_rule(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> tuple[Aval, Aval]:
    places = arg_reduce.infer(op, avals, params)
    return Aval(places.shape, avals[0].dtype), places


def _extreme_and_place(reducer: str):
    place = _first_extreme(reducer)

    def impl(xp, x, axis, keepdims):
        places = place(xp, x, axis, True)
        if not x.ndim:
            values = x + xp.zeros((), x.dtype)
        else:
            values = gathered(x, places, axis) if xp is np else xp.take_along_axis(x, places, axis)
        return (values, places) if keepdims or not x.ndim else (xp.squeeze(values, axis), xp.squeeze(places, axis))

    return impl


def _picked_vjp(F, g_values, r_indices, input_shape, axis, keepdims):
    if not input_shape:
        return g_values
    axis %= len(input_shape)
    kept = (*input_shape[:axis], 1, *input_shape[axis + 1 :])
    g, places = (x if keepdims else F.reshape(x, shape=kept) for x in (g_values, r_indices))
    return F.place(places, g, axis=axis, size=input_shape[axis])


# named as PyTorch's overloads: over one dim, and where that is
max_dim, min_dim = (
    op(f"{name}_dim", "input", results="values indices", params={"axis": 0, "keepdims": False},
       dims=labels.reduced_rows,
       impl=_extreme_and_place(f"arg{name}"), rule=Rule(_max_rule), samples=_ARG_SAMPLES, traits=Trait.ORDERS,
       label=f"{name.capitalize()}Backward0", rounding=EXACT, vjp=dict(input=_picked_vjp),
       ref=rows.picked_extreme(largest=largest))
    for name, largest in (("max", True), ("min", False))
)  # fmt: skip


def _np_cumsum(x, axis, reverse=False):
    dtype = accumulation_dtype(x.dtype)
    result = accumulate(np.add, x, axis, dtype, reverse)
    if is_inexact(dtype):
        result += 0  # the sum begins at +0: no -0
    return result


# `reverse` adds from the end; it is the transpose
cumsum = op(
    "cumsum", "input", parts=parts.cumulation("cumsum", "sum"), params={**ALONG, "reverse": False}, rule=scan_rule,
    traits=Trait.LINEAR, samples=(*_ROWS, Sample((2, 3, 2), axis=1, reverse=True)), numpy=_np_cumsum,
    impl=lambda xp, x, axis, reverse=False: (
        xp.flip(xp.cumsum(xp.flip(x, axis), axis), axis) if reverse else xp.cumsum(x, axis)
    ),
    ref=rows.scanned(rows.running_total),
    vjp=dict(input=lambda F, g, axis, reverse: F.cumsum(g, axis=axis, reverse=not reverse)),
)  # fmt: skip


def _softmax(xp, x, axis):
    e = xp.exp(x - xp.max(x, axis=axis, keepdims=True, initial=-np.inf))
    return e / xp.sum(e, axis=axis, keepdims=True)


def _log_softmax(xp, x, axis):
    shifted = x - xp.max(x, axis=axis, keepdims=True, initial=-np.inf)
    return shifted - xp.log(xp.sum(xp.exp(shifted), axis=axis, keepdims=True))


def _logsumexp(xp, x, axis, keepdims):
    # an infinite maximum would give inf - inf
    top = xp.max(x.real, axis=axis, keepdims=True, initial=-np.inf)
    top = xp.where(xp.isfinite(top), top, xp.zeros_like(top))
    result = xp.log(sums(xp, xp.exp(x - top), axis, True)) + top
    return result if keepdims else result.reshape([n for i, n in enumerate(x.shape) if i not in axis])


def _np_dot_along(x, y, axis):
    if x.ndim and axis == x.ndim - 1 and x.dtype.kind == "f":
        return np.vecdot(x, y)[..., None]  # without the products in memory
    return _np_sum(x * y, axis, True)


dot_along = op(
    "dot_along", "input other", params=ALONG, impl=lambda xp, x, y, axis: xp.sum(x * y, axis=axis, keepdims=True),
    numpy=_np_dot_along, definition=lambda F, x, y, axis: F.sum(x * y, axis=(axis,), keepdims=True),
    rule=Rule(lambda op, avals, params: Aval(
        kept(avals[0].shape, (params["axis"],)), accumulation_dtype(avals[0].dtype))),
    samples=(Sample((3, 4), (3, 4), axis=1), Sample((3, 4), (3, 4), axis=0)),
    ref=lambda x, y, axis: rows.reduced(rows.total)(x * y, (axis,), True),
    vjp=dict(input=lambda F, g, other: g * other, other=lambda F, g, input: g * input),
)  # fmt: skip
_SHARES: Any = dict(parts=parts.ROWS, params=ALONG, rule=same_float, rounding=Rounding(6.0), samples=_ROWS)
softmax = op("softmax", "input", **_SHARES, image=(0, 1), impl=_softmax, numpy=softmax_rows.softmax,
             ref=rows.scanned(rows.shares),
             vjp=dict(input=lambda F, g, r, axis: r * (g - F.dot_along(g, r, axis=axis))))  # fmt: skip
log_softmax = op("log_softmax", "input", **_SHARES, impl=_log_softmax, numpy=softmax_rows.log_softmax,
                 ref=rows.scanned(rows.log_shares),
                 vjp=dict(input=lambda F, g, r, axis: g - F.exp(r) * F.sum(
                     g, axis=(axis,), keepdims=True)))  # fmt: skip
logsumexp = op("logsumexp", "input", parts=parts.REDUCTION,
               params=OVER, impl=_logsumexp, rule=reduce_float, samples=_REDUCTIONS,
               ref=rows.reduced(rows.log_of_sum), traits=Trait.HOLOMORPHIC,
               vjp=dict(input=lambda F, g, r, input, input_shape, axis, keepdims:
                        spread(F, g, input_shape, axis, keepdims)
                        * F.exp(input - spread(F, r, input_shape, axis, keepdims))))  # fmt: skip
