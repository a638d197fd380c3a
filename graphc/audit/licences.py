"""In what sense one term may be written in place of another, found out on fixed points.

float32 is what is asked about, float64 tells which of two results is right: what overflows or loses its digits in the
one does not in the other.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

import numpy as np

from graphc.audit.terms import Term
from graphc.audit.values import CHECK, FINITE, GENERIC, NOTHING, SPECIAL, Values
from graphc.ops.dtypes import FLOAT32
from graphc.rewrite import ASSUMES, REASSOCIATES, Licence

EPS = float(np.finfo(np.float32).eps)
ULPS = 16  # by which another order of roundings may differ
SAME = 1e-9, 1e-13  # of float64: differences that are rounding, as parts of the result and of what it is made of


class Verdict(NamedTuple):
    """A licence; where it is ASSUMES, what would have to be known."""

    licence: Licence
    reason: str = ""


def behaviour(values: Values, term: Term) -> Hashable:
    """What `term` gives in float32 at all points, bit for bit; any nan is one. Terms of equal behaviour are EXACT."""
    parts: list[bytes] = []
    for kind in _kinds(term):
        value = values.of(term, kind, FLOAT32)
        if value is NOTHING:
            return NOTHING.tobytes()
        parts.append((np.where(np.isnan(value), np.nan, value) if value.dtype.kind == "f" else value).tobytes())
    return term.aval, *parts


def _kinds(*given: Term) -> tuple[int, ...]:
    return (GENERIC, CHECK, FINITE, SPECIAL) if all(t.pointwise for t in given) else (GENERIC, CHECK, FINITE)


def licence(values: Values, left: Term, right: Term) -> Verdict:
    """Whether `right` may be written in place of `left`: a term that is equal at generic points, not bit for bit."""
    for kind in _kinds(left, right):
        reason = _difference(values, left, right, kind)
        if reason:
            return Verdict(ASSUMES, reason)
    return Verdict(REASSOCIATES)


def _difference(values: Values, left: Term, right: Term, kind: int) -> str:
    """What is lost if `right` is written in place of `left`, or nothing."""
    a, b = values.of(left, kind), values.of(right, kind)
    if a is NOTHING or b is NOTHING:
        return "" if a is b else "matrices that are not singular"
    if a.dtype.kind != "f":
        return "" if np.array_equal(a, b) else "no nan"
    low, new = values.of(left, kind, FLOAT32), values.of(right, kind, FLOAT32)
    scale = np.maximum(values.scale(left, kind), values.scale(right, kind))
    if left.pointwise and right.pointwise:  # where `left` cannot be told, a finite `right` may be right
        told = ~(values.lost(left, kind) & np.isfinite(b) & np.isfinite(new))
        a, b, low, new, scale, told = np.broadcast_arrays(a, b, low, new, scale, told)
        a, b, low, new, scale = a[told], b[told], low[told], new[told], scale[told]
    if (np.isnan(a) != np.isnan(b)).any():
        return "finite numbers of the domain"
    finite = np.isfinite(a) & np.isfinite(b)
    if ((a != b) & ~finite & ~np.isnan(a)).any():
        return "finite numbers of the domain"
    if (np.abs(a - b) > SAME[0] * np.abs(b) + SAME[1] * scale)[finite].any():
        return "a sign, or another part of the domain"
    if ((low == 0) & (new == 0) & (np.signbit(low) != np.signbit(new))).any():
        return "no zero, or any sign of it"
    if (np.isfinite(low) & ~np.isfinite(new)).any():
        return "no overflow"
    error, before = np.abs(new - b), np.abs(low - b)
    allowed = ULPS * EPS * (np.abs(b) if left.pointwise else scale)
    return "digits to spare" if (error > 4 * before + allowed)[np.isfinite(low) & finite].any() else ""
