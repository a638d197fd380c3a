"""The p-norm of vectors: (sum_i |x[i]|^p)^(1/p), and for p = 0 how many elements are not 0."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphc.ops.reduce import OVER, spread
from graphc.ops.rules import reduce_float
from graphc.ops.samples import Sample
from graphc.ops.spec import op


def _power_norm(xp, x, p, axis, keepdims):
    if p == 0:
        return xp.sum(x != 0, axis=axis, keepdims=keepdims, dtype=x.dtype)
    return xp.sum(xp.abs(x) ** p, axis=axis, keepdims=keepdims) ** (1 / p)


def _power_norm_vjp(F: Any, g, r, input, input_shape, input_dtype, p, axis, keepdims):
    # sgn(x) (|x| / r)^(p - 1), 0 where x is 0 and at a norm of 0: PyTorch's subgradient
    if p == 0:
        return F.full(shape=input_shape, value=0, dtype=input_dtype)
    norm = spread(F, r, input_shape, axis, keepdims)
    zero = norm == 0
    if p < 1:
        zero = zero | (input == 0)
    size, norm = F.where(zero, 1, F.abs(input)), F.where(zero, 1, norm)
    slope = F.sign(input) * (F.pow_scalar(size, exponent=p - 1) * F.pow_scalar(norm, exponent=1 - p))
    return F.where(zero, 0, slope * spread(F, g, input_shape, axis, keepdims))


def _ref_power_norm(x, p, axis, keepdims):
    if p == 0:
        return np.count_nonzero(x, axis=axis, keepdims=keepdims).astype(x.dtype)
    total = np.exp(p * np.log(np.abs(x))).sum(axis=axis, keepdims=keepdims)
    return np.exp(np.log(total) / p)


power_norm = op(
    "power_norm", "input", params={"p": 2.0, **OVER}, impl=_power_norm, rule=reduce_float, domain=(0.3, 2.0),
    label="LinalgVectorNorm",
    ref=_ref_power_norm,
    samples=(Sample((3, 4), p=3.0, axis=(0, 1), keepdims=False), Sample((2, 3), p=0.5, axis=(1,), keepdims=True),
             Sample((3,), p=-1.5, axis=(0,), keepdims=False), Sample((2, 2), p=0.0, axis=(0,), keepdims=False),
             Sample((), p=4.0, axis=(), keepdims=False)),
    vjp=dict(input=_power_norm_vjp),
)  # fmt: skip
