"""The p-norm of vectors: (sum_i |x[i]|^order)^(1/order), and for p = 0 how many elements are not 0."""

from __future__ import annotations

from typing import Any

from graphc.ops import rows
from graphc.ops.reduce import OVER, spread
from graphc.ops.rules import reduce_size
from graphc.ops.samples import Sample
from graphc.ops.spec import op
from graphc.ops.sums import sums


def _power_norm(xp, x, order, axis, keepdims):
    if order == 0:
        return xp.sum(x != 0, axis=axis, keepdims=keepdims, dtype=x.dtype)
    return sums(xp, xp.abs(x) ** order, axis, keepdims) ** (1 / order)


def _power_norm_vjp(F: Any, g, r, input, input_shape, input_dtype, order, axis, keepdims):
    # sgn(x) (|x| / r)^(order - 1), 0 where x is 0 and at a norm of 0: PyTorch's subgradient
    if order == 0:
        return F.full(shape=input_shape, value=0, dtype=input_dtype)
    norm = spread(F, r, input_shape, axis, keepdims)
    zero = norm == 0
    if order < 1:
        zero = zero | (input == 0)
    size, norm = F.where(zero, 1, F.abs(input)), F.where(zero, 1, norm)
    slope = F.sgn(input) * (F.pow_scalar(size, exponent=order - 1) * F.pow_scalar(norm, exponent=1 - order))
    return F.where(zero, 0, slope * spread(F, g, input_shape, axis, keepdims))


power_norm = op(
    "power_norm", "input", params={"order": 2.0, **OVER}, impl=_power_norm, rule=reduce_size, domain=(0.3, 2.0),
    label="LinalgVectorNorm", ref=rows.reduced(rows.power_norm),
    slopes=dict(input=rows.backward(rows.power_norm_slope)), vjp=dict(input=_power_norm_vjp),
    samples=(Sample((3, 4), order=3.0, axis=(0, 1), keepdims=False),
             Sample((2, 3), order=0.5, axis=(1,), keepdims=True),
             Sample((3,), order=-1.5, axis=(0,), keepdims=False), Sample((2, 2), order=0.0, axis=(0,), keepdims=False),
             Sample((), order=4.0, axis=(), keepdims=False)),
)  # fmt: skip
