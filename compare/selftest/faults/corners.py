"""Textbook forms that all modes share, each right but for a corner: rounded quotients, overflow, cancellation, branch
cuts, orders of three, complex operands, elements that meet."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from compare.selftest.fault import Fault
from compare.selftest.faults.shared import row, shared_kernel, shared_rule
from compare.selftest.mutants import instead, operands, result
from compare.selftest.trials import numbers, program
from eager.engine.language import E
from graphc.ops.dtypes import FLOAT32
from graphc.ops.linalg import swap_last
from graphc.ops.matrices import adjoint

LAYER = "corners"


def _of_squares(xp: Any, x: Any, axis: Any, keepdims: bool, correction: float) -> Any:
    n = int(np.prod([x.shape[k] for k in axis]))
    squares, mean = xp.mean(x * x, axis=axis, keepdims=keepdims), xp.mean(x, axis=axis, keepdims=keepdims)
    return ((squares - mean * mean) * (n / max(n - correction, 0.5))).astype(x.dtype)


def _last_that_meets(xp: Any, src: Any, shape: Any, size: Any, stride: Any, offset: int, layout: Any) -> Any:
    places = offset + sum(np.arange(n).reshape(-1, *[1] * (len(size) - k - 1)) * s
                          for k, (n, s) in enumerate(zip(size, stride, strict=True)))  # fmt: skip
    flat = np.ravel(np.broadcast_to(places, size))
    last = np.array(sorted({int(p): k for k, p in enumerate(flat)}.values()), np.int64)  # as NumPy writes them
    whole = xp.zeros(int(np.prod(shape)), src.dtype)
    values = xp.reshape(src, -1)[last]
    if xp is np:
        whole[flat[last]] = values
    else:
        whole = whole.at[flat[last]].set(values)
    return xp.reshape(whole, shape)


def _above_the_cut(xp: Any, x: Any) -> Any:
    return xp.sqrt(x + 0 * 1j if x.dtype.kind == "c" else x).astype(x.dtype)


def _unprojected(F: Any, g: Any, r: Any) -> Any:
    """r^-H tril(r^H g) r^-1, with all of the diagonal."""
    upper = adjoint(F, r)
    inner = F.tril(upper @ g, diagonal=0)
    left = F.solve_triangular(upper, 0.5 * (inner + adjoint(F, inner)), upper=True, unit=False)
    return adjoint(F, F.solve_triangular(upper, adjoint(F, left), upper=True, unit=False))


_signed = row(-2.5, -0.5, 0.5, 3.0)
_positive = numbers(3, 3) @ numbers(3, 3).T + 2 * np.eye(3, dtype=FLOAT32)
_complex = numbers(2, 2) + 1j * numbers(2, 2, seed=6)
_three = row(3, 1, 2)

_kernel, _rule = partial(shared_kernel, layer=LAYER), partial(shared_rule, layer=LAYER)

FAULTS: tuple[Fault, ...] = (
    _kernel("the rounded quotient rounded down", instead(lambda xp, x, y: xp.floor(x / y).astype(x.dtype)),
            "floor_divide", row(1, 0.6), row(0.1, 0.1)),
    _kernel("nan for an infinite divisor", instead(lambda xp, x, y: (x - y * xp.floor(x / y)).astype(x.dtype)),
            "remainder", row(1, 5), row(np.inf, 3)),
    _kernel("squares overflow", instead(lambda xp, x, y: xp.sqrt(x * x + y * y)), "hypot", row(3e30, 3), row(4e30, 4)),
    _kernel("a difference of squares", instead(_of_squares), "var", row(10001, 10002, 10003.5), axis=(0,),
            keepdims=False, correction=1),
    _kernel("of the absolute value", operands(lambda xp, x: (abs(x),)), "lgamma", _signed),
    _kernel("nan at the ends", result(lambda xp, r: xp.where(xp.isinf(r), xp.nan, r).astype(r.dtype)), "erfinv",
            row(-1, 0.5, 1)),
    _kernel("the sign of the first", instead(lambda xp, x, y: xp.gcd(x, y) * xp.where(x < 0, -1, 1)), "gcd",
            np.array([-4, 9]), np.array([6, 6])),
    _kernel("not shifted", instead(lambda xp, x, axis: xp.log(xp.cumsum(xp.exp(x), axis=axis))), "logcumsumexp",
            row(200, 0, 199), axis=0),
    _kernel("both sides of the cut are one", instead(_above_the_cut), "sqrt",
            np.array([complex(-4, -0.0), complex(-4, 0.0)], np.complex64)),
    _kernel("nan at 0", instead(lambda xp, x: x / abs(x)), "sgn", row(0, -2)),
    _kernel("what meets is overwritten", instead(_last_that_meets), "as_strided_add",
            program(lambda x: E.as_strided(x, size=(3, 2), stride=(1, 1), offset=0, layout=None), numbers(4))),
    _rule("put where it lies, not where it came from",
            lambda F, g_values, r_indices, axis: F.gather(g_values, r_indices, axis=axis), "sort.input",
            program(lambda x: E.sort(x, axis=0, descending=False, first=None)[0], _three)),
    _rule("all of the diagonal", _unprojected, "cholesky.input", _positive),
    _rule("frequencies count once",
            lambda F, g, axes, norm: F.rfft(g, axes=axes, norm=norm, twice=False), "irfft.input",
            program(lambda x: E.irfft(E.complex(x, x * 0.5), axes=(0,), n=5, norm="none", twice=True), _three)),
    _rule("not conjugated", lambda F, g, input: swap_last(F, input) @ g, "matmul.other",
            program(lambda x, y: x @ y, _complex, _complex.T.copy())),
    _rule("log(0) at 0", lambda F, g, r, input: g * (r * F.log(input)), "pow.other", row(0, 2), row(2, 3)),
)  # fmt: skip
