"""Faults that show at special places only: large numbers, nan, ties, repeated and negative indices, three axes."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from compare.selftest.fault import Fault
from compare.selftest.faults.shared import row, shared_kernel, shared_rule
from compare.selftest.mutants import Mutant, instead
from compare.selftest.trials import numbers, program
from eager.engine.language import E
from graphc.ops.index import along

LAYER = "special places"


_kernel, _rule = partial(shared_kernel, layer=LAYER), partial(shared_rule, layer=LAYER)


def _without_nan(name: str) -> Mutant:
    def kernel(xp: Any, x: Any, axis: Any, keepdims: bool) -> Any:
        least = np.array(-np.inf if name == "max" else np.inf, x.dtype)
        return getattr(xp, name)(xp.where(x != x, least, x), axis=axis, keepdims=keepdims)

    return instead(kernel)


def _first_nan(xp: Any, x: Any, axis: int, descending: bool) -> Any:
    known = xp.where(x != x, np.array(-np.inf, x.dtype), x)
    order = xp.argsort(-known if descending else known, axis=axis, stable=True)
    return order.astype(np.int64)


def _first_of_equals(xp: Any, x: Any, axis: int, largest: bool) -> Any:
    sign = 1 if largest else -1
    places = xp.arange(x.shape[axis]).reshape([-1 if i == axis else 1 for i in range(x.ndim)])
    running = xp.maximum.accumulate(x * x.dtype.type(sign), axis=axis)
    before = xp.concatenate([xp.full_like(xp.take(running, np.arange(1), axis), -np.inf),
                             xp.take(running, np.arange(x.shape[axis] - 1), axis)], axis)  # fmt: skip
    return xp.maximum.accumulate(xp.where(running > before, places, 0), axis=axis).astype(np.int64)


def _from_zero(xp: Any, x: Any, *indices: Any, spec: Any) -> Any:
    found = tuple(slice(None) if s is None else xp.maximum(indices[s], 0) for s in spec)
    return x[found]


def _once(xp: Any, x: Any, index: Any, src: Any, axis: int) -> Any:
    places = along(xp, index, axis)
    src = src[tuple(map(slice, index.shape))]
    if xp is np:
        result = x.copy()
        result[places] = x[places] + src
        return result
    return x.at[places].set(x[places] + src)


def _known_spread(xp: Any, x: Any, axis: Any, keepdims: bool, correction: float) -> Any:
    n = int(np.prod([x.shape[k] for k in axis]))
    apart = x - xp.mean(x, axis=axis, keepdims=True)
    return xp.sum(apart * apart, axis=axis, keepdims=keepdims) / max(n - correction, 1e-9)


def _forgetful_cat(F: Any, g: Any, tensors_shape: Any, axis: int, position: int) -> Any:
    first = sum(shape[axis] for shape in tensors_shape[: min(position, 1)])  # where the third begins like the second
    start, stop = [0] * len(g.shape), list(g.shape)
    start[axis], stop[axis] = first, first + tensors_shape[position][axis]
    return F.slice(g, start=tuple(start), stop=tuple(stop), step=(1,) * len(start))


def _exponentials(xp: Any, x: Any) -> Any:
    return (xp.exp(x) - xp.exp(-x)) / (xp.exp(x) + xp.exp(-x))


_large = row(1000.0, 0.0, 999.0)
_huge = row(1000.0, -1000.0, 0.5)
_odd = row(1.0, np.nan, np.inf, -np.inf)
_small = np.array([1e-9, 0.5, -1e-9])
_nan_inside = row(1.0, np.nan, 3.0)

FAULTS: tuple[Fault, ...] = (
    _kernel("not shifted", instead(
        lambda xp, x, axis: x - xp.log(xp.sum(xp.exp(x), axis=axis, keepdims=True))), "log_softmax", _large, axis=0),
    _kernel("not shifted", instead(
        lambda xp, x, axis, keepdims: xp.log(xp.sum(xp.exp(x), axis=axis, keepdims=keepdims))), "logsumexp", _large,
            axis=(0,), keepdims=False),
    _kernel("a quotient of large numbers", instead(lambda xp, x: xp.exp(x) / (1 + xp.exp(x))), "sigmoid", _huge),
    _kernel("not shifted", instead(lambda xp, x: xp.log(1 + xp.exp(x))), "softplus", _huge),
    _kernel("by exponentials", instead(_exponentials), "tanh", _huge),
    _kernel("not shifted", instead(lambda xp, x, y: xp.log(xp.exp(x) + xp.exp(y))), "logaddexp", _huge, _large),
    _kernel("small numbers lost", instead(lambda xp, x: xp.exp(x) - 1), "expm1", _small),
    _kernel("small numbers lost", instead(lambda xp, x: xp.log(1 + x)), "log1p", _small),
    _kernel("nan lost", instead(lambda xp, x, y: xp.fmin(x, y)), "minimum", _nan_inside, row(np.nan, 2, 2)),
    _kernel("nan lost", _without_nan("max"), "amax", _nan_inside, axis=(0,), keepdims=False),
    _kernel("nan lost", _without_nan("argmin"), "argmin", _nan_inside, axis=0, keepdims=False),
    _kernel("nan before all", instead(_first_nan), "argsort", _nan_inside, axis=0, descending=False),
    _kernel("of equals the first", instead(_first_of_equals), "argcummax", row(1, 3, 3, 2), axis=0, largest=True),
    _kernel("negative indices are 0", instead(_from_zero), "index",
            program(lambda x, i: x[i], numbers(4), np.array([0, -1, -2]))),
    _kernel("repeated indices count once", instead(_once), "scatter_add", numbers(4), np.array([1, 1, 3]),
            numbers(3, seed=7), axis=0),
    _kernel("infinite for one number", instead(_known_spread), "var", numbers(1), axis=(0,), keepdims=False,
            correction=1),
    _kernel("0 below 0", instead(lambda xp, x: xp.sqrt(xp.maximum(x, 0))), "sqrt", row(-1, 4)),
    _kernel("-inf below 0", instead(lambda xp, x: xp.where(x < 0, -xp.inf, xp.log(x)).astype(x.dtype)), "log",
            row(-1, 4)),
    _kernel("0 for 0", instead(lambda xp, x: xp.where(x == 0, x, 1 / x)), "reciprocal", row(0, 4)),
    _kernel("0 / 0 is 0", instead(lambda xp, x, y: xp.where((x == 0) & (y == 0), x, x / y)), "div",
            program(lambda x, y: x / y, row(0, 4), row(0, 2))),
    _kernel("nan for negative bases", instead(
        lambda xp, x, y: xp.where(x < 0, xp.nan, xp.power(abs(x), y)).astype(x.dtype)), "pow", row(-2, 4), row(3, 2)),
    _kernel("only the positive one", instead(lambda xp, x: x == xp.inf), "isinf", _odd),
    _kernel("nan equals nan", instead(lambda xp, x, y: (x == y) | ((x != x) & (y != y))), "eq", _odd, _odd),
    _kernel("down, not to zero", instead(
        lambda xp, x, dtype: (xp.floor(x) if x.dtype.kind == "f" and dtype.kind == "i" else x).astype(dtype)), "cast",
            program(lambda x: E.cast(x.detach(), dtype=np.dtype(np.int64)), row(-1.5, 1.5))),
    _kernel("down, not to zero", instead(lambda xp, x: xp.floor(x)), "trunc", row(-1.5, 1.5)),
    _kernel("-0.0 is not negative", instead(lambda xp, x: x < 0), "signbit", row(-0.0, -1)),
    _kernel("0 at 0, where it is 1", instead(lambda xp, x: xp.where(x == 0, x, xp.sinc(x))), "sinc", row(0, 0.25)),
    _kernel("nan at 0 * log(0)", instead(lambda xp, x, y: x * xp.log(y)), "xlogy", row(0, 1), row(0, 2)),
    _rule("the third begins like the second", _forgetful_cat, "cat.tensors"),
)  # fmt: skip
