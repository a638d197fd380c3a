"""Which part of a result needs which parts of the operands: what ops declare as `Op.parts`.

A part is a box: (start, stop) along each axis.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from graphc.ops.dtypes import is_floating

Box = tuple[tuple[int, int], ...]
Params = Mapping[str, Any]


def _as_it_is(box: Box, shape: Sequence[int], params: Params) -> Box:
    return box


class Parts(NamedTuple):
    """How a part of a result is computed.

    reads  (box of the result, shape of an operand, params) -> the box of that operand
    least  (box, shape of the result, params) -> the smallest box around it that can be computed by itself
    make   (F, *parts of the operands, box, shape of the first operand, params) -> that part of the result, or of each;
           None: the op with the same parameters
    fixed  whether `make` depends on where the part is: another one of that size is made in another way
    """

    reads: Callable[[Box, Sequence[int], Params], Box]
    least: Callable[[Box, Sequence[int], Params], Box] = _as_it_is
    make: Callable[..., Any] | None = None
    fixed: bool = False


def whole(shape: Sequence[int]) -> Box:
    """All of an array."""
    return tuple([(0, n) for n in shape])


def sizes(box: Box) -> tuple[int, ...]:
    """The shape of a part."""
    return tuple([stop - start for start, stop in box])


def cut(F: Any, x: Any, box: Box, there: Box) -> Any:
    """The part `box` of an array, of which `x` is the part `there`."""
    if box == there:
        return x
    start, stop = zip(*[(a - c, b - c) for (a, b), (c, _) in zip(box, there, strict=True)], strict=True)
    return F.slice(x, start=start, stop=stop, step=(1,) * len(box))


def followed(parts: Parts, axis: int, result: Sequence[int], operand: Sequence[int], params: Params) -> int | None:
    """The axis of an operand of which one place is read for the same place along `axis` of the result, if any."""
    n, box = result[axis], whole(result)
    found: set[int | None] = set()
    for one in ((0, 1), (n - 1, n)):
        place = (*box[:axis], one, *box[axis + 1 :])
        read = [k for k, part in enumerate(parts.reads(place, operand, params)) if part != (0, operand[k])]
        same = len(read) == 1 and operand[read[0]] == n and parts.reads(place, operand, params)[read[0]] == one
        found.add(read[0] if same and parts.least(place, result, params) == place else None)
    return found.pop() if len(found) == 1 else None


def axes(params: Params, rank: int) -> tuple[int, ...]:
    """Those that `axis` names, one or several."""
    axis = params["axis"]
    return tuple([a % max(rank, 1) for a in (axis if isinstance(axis, tuple) else (axis,))])


def _broadcast(box: Box, shape: Sequence[int], params: Params) -> Box:
    near = box[len(box) - len(shape) :]
    return tuple([(0, 1) if n == 1 else b for n, b in zip(shape, near, strict=True)])


def _sliced(box: Box, shape: Sequence[int], params: Params) -> Box:
    steps = zip(box, params["start"], params["step"], strict=True)
    return tuple([(s + a * step, s + (b - 1) * step + 1) for (a, b), s, step in steps])


def _slice(F: Any, x: Any, box: Box, shape: Sequence[int], params: Params) -> Any:
    step = params["step"]
    return x if set(step) <= {1} else F.slice(x, start=(0,) * len(step), stop=x.shape, step=step)


def _groups(old: Sequence[int], new: Sequence[int]) -> Iterator[tuple[list[int], list[int]]]:
    """The axes of two shapes of as many elements that are reshaped into each other: the least groups of both.

    Axes of size 1 are in none.
    """
    left, right = ([k for k, n in enumerate(shape) if n != 1] for shape in (old, new))
    while left and right:
        a, b = [left.pop(0)], [right.pop(0)]
        n, m = old[a[0]], new[b[0]]
        while n != m:
            if n < m:
                a.append(left.pop(0))
                n *= old[a[-1]]
            else:
                b.append(right.pop(0))
                m *= new[b[-1]]
        yield a, b


def _unshaped(box: Box, shape: Sequence[int], params: Params) -> Box:
    part = list(whole(shape))
    for a, b in _groups(shape, params["shape"]):
        if len(a) == len(b) == 1:
            part[a[0]] = box[b[0]]
    return tuple(part)


def _reshape(F: Any, x: Any, box: Box, shape: Sequence[int], params: Params) -> Any:
    there = list(box)
    for a, b in _groups(shape, params["shape"]):
        if not len(a) == len(b) == 1:  # of several axes as one, all is read
            for k in b:
                there[k] = 0, params["shape"][k]
    return cut(F, F.reshape(x, shape=sizes(tuple(there))), box, tuple(there))


def _permuted(box: Box, shape: Sequence[int], params: Params) -> Box:
    part = [(0, 0)] * len(shape)
    for place, dim in enumerate(params["dims"]):
        part[dim] = box[place]
    return tuple(part)


def _flipped(box: Box, shape: Sequence[int], params: Params) -> Box:
    turned = axes(params, len(shape))
    return tuple([
        (n - b, n - a) if d in turned else (a, b) for d, ((a, b), n) in enumerate(zip(box, shape, strict=True))
    ])  # fmt: skip


def _reduced(box: Box, shape: Sequence[int], params: Params) -> Box:
    over, rest = axes(params, len(shape)), iter(box)
    if params["keepdims"]:
        return tuple([(0, n) if d in over else b for d, (b, n) in enumerate(zip(box, shape, strict=True))])
    return tuple([(0, n) if d in over else next(rest) for d, n in enumerate(shape)])


def _along(box: Box, shape: Sequence[int], params: Params) -> Box:
    over = axes(params, len(shape))
    return tuple([(0, n) if d in over else b for d, (b, n) in enumerate(zip(box, shape, strict=True))])


def _with(box: Box, axis: int, part: tuple[int, int]) -> Box:
    return (*box[:axis], part, *box[axis + 1 :])


def _cumulated(box: Box, shape: Sequence[int], params: Params) -> Box:
    (axis,) = axes(params, len(shape))
    start, stop = box[axis]
    return _with(box, axis, (start, shape[axis]) if params.get("reverse") else (0, stop))


def _running(box: Box, shape: Sequence[int], params: Params) -> Box:
    (axis,) = axes(params, len(shape))
    start, stop = box[axis]
    return box if stop - start == 1 else _cumulated(box, shape, params)


def cumulation(op: str, reduction: str) -> Parts:
    """Of an op that cumulates along an axis, of which one element is a `reduction` of those before it."""

    def make(F: Any, x: Any, box: Box, shape: Sequence[int], params: Params) -> Any:
        (axis,) = axes(params, len(shape))
        one = sizes(box)[axis] == 1
        return getattr(F, reduction)(x, axis=(axis,), keepdims=True) if one else getattr(F, op)(x, **params)

    return Parts(_cumulated, _running, make)


def _is_end(part: tuple[int, int], size: int) -> bool:
    """Whether a part of sorted rows is their first element, or the last one."""
    start, stop = part
    return stop - start == 1 < size and start in (0, size - 1)


def _ends(box: Box, shape: Sequence[int], params: Params) -> Box:
    if not shape:
        return box
    (axis,) = axes(params, len(shape))
    if params.get("first") is None and _is_end(box[axis], shape[axis]):
        return box
    return _with(box, axis, (0, box[axis][1]))


def _sort(F: Any, x: Any, box: Box, shape: Sequence[int], params: Params) -> Any:
    (axis,) = axes(params, len(shape))
    if shape and params.get("first") is None and _is_end(box[axis], shape[axis]):
        return _extreme(F, x, axis, first=box[axis][0] == 0, descending=params["descending"])
    return F.sort(x, **{**params, "first": box[axis][1]} if shape and box[axis][1] < shape[axis] else params)


def _argsort(F: Any, x: Any, box: Box, shape: Sequence[int], params: Params) -> Any:
    (axis,) = axes(params, len(shape))
    return _sort(F, x, box, shape, params)[1] if shape and box[axis][1] < shape[axis] else F.argsort(x, **params)


def _extreme(F: Any, x: Any, axis: int, *, first: bool, descending: bool) -> tuple[Any, Any]:
    """The first or last element of sorted rows, and its place: equal elements keep their order, nan is largest."""
    along = x if first else F.flip(x, axis=(axis,))  # what is last of equals is first there
    if first == descending:
        value = F.amax(x, axis=(axis,), keepdims=True)
        place = F.argmax(along, axis=axis, keepdims=True)
    else:
        value = x
        if is_floating(x.dtype):
            nan = F.isnan(x)
            value = F.where(nan, float("inf"), x)
            value = F.where(F.all(nan, axis=(axis,), keepdims=True), x, value)
        value = F.amin(value, axis=(axis,), keepdims=True)
        place = F.sort(along, axis=axis, descending=False, first=1)[1]
    return value, place if first else x.shape[axis] - 1 - place


def triangle(op: str) -> Parts:
    """Of an op that leaves a triangle of matrices, up to a diagonal."""

    def make(F: Any, x: Any, box: Box, shape: Sequence[int], params: Params) -> Any:
        (row, _), (column, _) = box[-2:]
        return getattr(F, op)(x, diagonal=params["diagonal"] + row - column)

    return Parts(_broadcast, make=make, fixed=True)


POINTWISE = Parts(_broadcast)
BROADCAST = Parts(_broadcast, make=lambda F, x, box, shape, params: F.broadcast_to(x, shape=sizes(box)))
NUMBERS = Parts(_broadcast, make=lambda F, box, shape, params: F.full(**{**params, "shape": sizes(box)}))
SLICE = Parts(_sliced, make=_slice)
RESHAPE = Parts(_unshaped, make=_reshape)
PERMUTE = Parts(_permuted)
FLIP = Parts(_flipped)
REDUCTION = Parts(_reduced)  # over axes
ROWS = Parts(_along, _along)  # each row along an axis by itself
SORT = Parts(_along, _ends, _sort)
ARGSORT = Parts(_along, _ends, _argsort)
