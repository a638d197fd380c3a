"""Cumulations of less: of what is added up along other axes, of what is the same along them, or of whole steps.

A cumulation acts on each line by itself, and is linear. So it changes places with sums over lines and with spreading
one line over many; of every k-th of its elements, it is that of sums of k; of zeros but for every k-th element, it is
that of those, each repeated.
"""

from __future__ import annotations

from typing import Any

from graphc.ops.samples import Floats
from graphc.passes.rules.operands import floating
from graphc.rewrite import EXACT, REASSOCIATES
from graphc.rewrite import RewriteRule as R


def _put(sizes: Any, axis: int, *at: int) -> tuple[int, ...]:
    """`sizes` with others in place of that of an axis."""
    axis %= len(sizes)
    return (*sizes[:axis], *at, *sizes[axis + 1 :])


def _alone(values: Any, axis: int, rest: int) -> bool:
    """Whether all but one of the values are the same."""
    return all(n == rest for k, n in enumerate(values) if k != axis % len(values))


def _is_every_kth(x: Any, start: Any, stop: Any, step: Any, axis: int) -> bool:
    k, b = step[axis], start[axis]
    others = _alone(start, axis, 0) and _alone(step, axis, 1) and _put(stop, axis, 0) == _put(x.shape, axis, 0)
    return floating(x) and others and b < k > 1 and stop[axis] > b


def _of_sums(F: Any, x: Any, start: Any, stop: Any, step: Any, axis: int, reverse: bool) -> Any:
    n, k, b = x.shape[axis], step[axis], start[axis]
    count = -(-(stop[axis] - b) // k)
    if reverse:  # each sum begins at a place that is read, and the last one has all that follows
        low, whole = 0, -(-(n - b) // k)
        first = b
    else:  # each ends there
        low, whole, first = k - 1 - b, count, 0
    last = min(n, first + whole * k - low)
    part = F.slice(
        x, start=_put((0,) * len(x.shape), axis, first), stop=_put(x.shape, axis, last), step=(1,) * len(x.shape)
    )
    high = whole * k - low - (last - first)
    zeros = (0,) * len(x.shape)
    if low or high:
        part = F.pad_zeros(part, low=_put(zeros, axis, low), high=_put(zeros, axis, high), interior=zeros)
    sums = F.sum(F.reshape(part, shape=_put(x.shape, axis, whole, k)), axis=(axis % len(x.shape) + 1,), keepdims=False)
    found = F.cumsum(sums, axis=axis, reverse=reverse)
    return F.slice(found, start=zeros, stop=_put(found.shape, axis, count), step=(1,) * len(x.shape))


def _is_of_steps(v: Any, low: Any, high: Any, interior: Any, axis: int, reverse: bool) -> bool:
    ends = (low if reverse else high)[axis]
    others = all(_alone(given, axis, 0) for given in (low, high, interior))
    return floating(v) and others and min(low[axis], high[axis]) >= 0 and 0 <= ends <= interior[axis] > 0


def _repeated(F: Any, v: Any, low: Any, high: Any, interior: Any, axis: int, reverse: bool) -> Any:
    axis %= len(v.shape)
    k, count, zeros = interior[axis] + 1, v.shape[axis], (0,) * len(v.shape)
    found = F.reshape(F.cumsum(v, axis=axis, reverse=reverse), shape=_put(v.shape, axis, count, 1))
    found = F.broadcast_to(found, shape=_put(v.shape, axis, count, k))
    found = F.reshape(found, shape=_put(v.shape, axis, count * k))
    start, stop = (k - 1 - low[axis], count * k) if reverse else (0, (count - 1) * k + 1 + high[axis])
    found = F.slice(found, start=_put(zeros, axis, start), stop=_put(v.shape, axis, stop), step=(1,) * len(zeros))
    before, after = (zeros, high) if reverse else (low, zeros)
    return F.pad_zeros(found, low=before, high=after, interior=zeros) if any((*before, *after)) else found


def _is_same_along(x: Any, s: Any, axis: int) -> bool:
    """Whether an array spread to the shape `s` has all its elements along an axis, and is smaller."""
    axis = axis % len(s) - (len(s) - len(x.shape))
    return floating(x) and axis >= 0 and x.shape[axis] == s[axis + len(s) - len(x.shape)] and x.shape != s


def _over_lines(name: str) -> R:
    """A sum or a mean of lines that are cumulated."""

    def right(F: Any, x: Any, a: int, r: bool, t: Any, k: bool) -> Any:
        found = F.cumsum(getattr(F, name)(x, axis=t, keepdims=True), axis=a, reverse=r)
        kept = [n for axis, n in enumerate(found.shape) if k or axis not in t]
        return F.reshape(found, shape=tuple(kept))

    return R(f"{name}_of_cumsum", REASSOCIATES,
             lambda F, x, a, r, t, k: getattr(F, name)(F.cumsum(x, axis=a, reverse=r), axis=t, keepdims=k), right,
             when=lambda x, a, r, t, k: floating(x) and a % len(x.shape) not in t,
             example={"x": Floats((3, 5)), "a": 1, "r": False, "t": (0,), "k": False})  # fmt: skip


RULES = (
    _over_lines("sum"),
    _over_lines("mean"),
    R("cumsum_of_spread", EXACT, lambda F, x, s, a, r: F.cumsum(F.broadcast_to(x, shape=s), axis=a, reverse=r),
      lambda F, x, s, a, r: F.broadcast_to(F.cumsum(x, axis=a % len(s) - len(s) + len(x.shape), reverse=r), shape=s),
      when=lambda x, s, a, r: _is_same_along(x, s, a), example={"x": Floats((4,)), "s": (3, 4), "a": 1, "r": True}),
    R("every_kth_of_cumsum", REASSOCIATES,
      lambda F, x, b, e, p, a, r: F.slice(F.cumsum(x, axis=a, reverse=r), start=b, stop=e, step=p),
      lambda F, x, b, e, p, a, r: _of_sums(F, x, b, e, p, a, r),
      when=lambda x, b, e, p, a, r: _is_every_kth(x, b, e, p, a),
      example={"x": Floats((45, 2)), "b": (0, 0), "e": (45, 2), "p": (9, 1), "a": 0, "r": True}),
    R("cumsum_of_steps", REASSOCIATES,
      lambda F, v, b, e, n, a, r: F.cumsum(F.pad_zeros(v, low=b, high=e, interior=n), axis=a, reverse=r),
      lambda F, v, b, e, n, a, r: _repeated(F, v, b, e, n, a, r),
      when=lambda v, b, e, n, a, r: _is_of_steps(v, b, e, n, a, r),
      example={"v": Floats((4, 2)), "b": (8, 0), "e": (0, 0), "n": (8, 0), "a": 0, "r": True}),
)  # fmt: skip
