"""Whether an op gives the same wherever its operands and its results lie: the same as on fresh contiguous arrays.

Bit for bit, or, where NumPy takes another loop for other memory, within what rounding can do to the op.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, final

import numpy as np

from compare.judging.isolate import judge_alone, judge_gradient
from compare.judging.tolerance import Judgement, Verdict, judge, same_bits
from compare.judging.yardstick import stand_in
from compare.layouts.layout import Layout, layouts_of, repeated, stepped
from compare.layouts.ways import (
    RESULT,
    Way,
    by_kernel,
    by_tape,
    contiguous,
    cotangents,
    count_of,
    into_out,
    overlapping,
    ways_of,
    writes,
)
from graphc.ir import Node
from graphc.ops import Op
from graphc.ops.aval import aval_of
from graphc.ops.dtypes import finfo, is_inexact
from graphc.ops.interpret import operand_dtype, with_defaults

# ULP between two loops of NumPy for one function: vectors and elements one by one. Measured is 3 (cbrt, backwards).
LOOPS = 4.0


class Deviation(NamedTuple):
    """Where an op depends on memory: in which way it ran, in which dtype, how what lay, and what came of it.

    result  which of the arrays that the way gives: 0 for the op's value, then its gradients
    """

    op: str
    way: str
    dtype: np.dtype
    layout: str
    detail: str
    result: int = RESULT

    def __str__(self) -> str:
        return f"{self.op}, {self.way}, {self.dtype}, {self.layout}: {self.detail}"


class Trial(NamedTuple):
    """Operands of an op, how each of them lies (None: plainly), and how what else the way makes does."""

    name: str
    arrays: Sequence[np.ndarray]
    layouts: Sequence[Layout | None]
    place: Layout | None = None

    def operands(self) -> list[np.ndarray]:
        """New arrays that lie so."""
        pairs = zip(self.arrays, self.layouts, strict=True)
        return [contiguous(a) if lay is None else lay.placed(a) for a, lay in pairs]

    def placed(self, array: np.ndarray) -> np.ndarray:
        """`array` as what the way makes is to lie: with the strides of `place`, if it has as many dims."""
        if self.place is None or len(self.place.strides) != array.ndim or 0 in self.place.strides:
            return array
        if array.ndim == 1:
            return self.place.placed(array)
        order = sorted(range(array.ndim), key=lambda k: -abs(self.place.strides[k]))  # type: ignore[union-attr]
        step = self.place.strides[order[-1]]
        return (
            stepped(array.shape, step, order)._replace(offset=self.place.offset, shift=self.place.shift).placed(array)
        )


def promoted(op: Op, arrays: Sequence[np.ndarray], params: Mapping[str, Any]) -> list[np.ndarray]:
    """`arrays` in the dtype that `op` computes in. Raises PyTorch's error for what it refuses."""
    common = operand_dtype(op, [(a.dtype, 2 if a.ndim else 1) for a in arrays])
    found = [a if common is None or k < op.rule.first else a.astype(common) for k, a in enumerate(arrays)]
    op.rule.infer(op, [aval_of(a) for a in found], with_defaults(op, params))
    return found


def trials_of(arrays: Sequence[np.ndarray], chosen: Iterable[str] | None = None) -> Iterator[Trial]:
    """`arrays` in all kinds of layouts, or those `chosen`: all of them alike, and each of several alone."""
    arrays = [np.asarray(a) for a in arrays]
    largest = max(arrays, key=lambda a: a.ndim, default=None)
    if largest is None or not largest.ndim:
        return
    kinds = [dict(layouts_of(a.shape)) for a in arrays]
    for name, place in layouts_of(largest.shape):
        if chosen is not None and name not in chosen:
            continue
        layouts = [known.get(name) for known in kinds]
        yield Trial(name, arrays, layouts, place)
        if len(arrays) > 1:
            for k, layout in enumerate(layouts):
                if layout is not None:
                    alone = [layout if i == k else None for i in range(len(arrays))]
                    yield Trial(f"operand {k + 1}: {name}", arrays, alone, place)


def rows_of(
    arrays: Sequence[np.ndarray], lengths: Iterable[int], steps: Iterable[int], shift: int = 0, apart: bool = True
) -> Iterator[Trial]:
    """The first so many of each of `arrays`, 1-d, with each of `steps`, from places of all alignments.

    shift  bytes by which they are out of alignment
    apart  whether each operand, and what the way makes, is also laid out alone
    """
    count = len(arrays)
    for n in lengths:
        rows = [a[:n] for a in arrays]
        for step in steps:
            layout = repeated((n,), (0,)) if step == 0 else stepped((n,), step)
            layout = layout._replace(offset=(n + step) % 5, shift=shift)
            name = f"{n} elements, step {step}" + f", {shift} bytes off" * bool(shift)
            yield Trial(name, rows, [layout] * count, layout)
            if apart:
                yield Trial(f"{name}, the result alone", rows, [None] * count, layout)
                for k in range(count if count > 1 else 0):
                    yield Trial(f"{name}, operand {k + 1}", rows, [layout if i == k else None for i in range(count)])


def judge_as_loops(found: np.ndarray, expected: np.ndarray) -> Judgement:
    """Whether two results of a kernel may be those of two of NumPy's loops for the same function."""
    bar = LOOPS * float(finfo(expected.dtype).eps) * np.abs(expected) if is_inexact(expected.dtype) else 0.0
    with np.errstate(all="ignore"):
        return judge(found, expected, *stand_in(expected), error_bar=np.where(np.isfinite(bar), bar, 0.0))


@final
class Sweep:
    """The deviations of an op, run on trials.

    Where bits differ in many trials of a pointwise op, what differs is judged once, as one long array.
    """

    def __init__(self, op: Op, params: Mapping[str, Any], ways: Mapping[str, Way] | None = None):
        self.op = op
        self.params = dict(params)
        self.ways = ways_of(op) if ways is None else ways
        self.count = 0
        self._known: dict[Any, Any] = {}
        self._pooled: dict[tuple[str, int, np.dtype], list[Any]] = {}

    def run(self, trials: Iterable[Trial]) -> Iterator[Deviation]:
        """What deviates in `trials`."""
        for trial in trials:
            for name, way in self.ways.items():
                yield from self._one(name, way, trial)
        yield from self._judged()

    def _one(self, name: str, way: Way, trial: Trial) -> Iterator[Deviation]:
        if writes(way) and trial.layouts[0] is not None and 0 in trial.layouts[0].strides:
            return  # elements that are repeated cannot be written
        if way not in (by_tape, into_out) and not any(trial.layouts):
            return
        expected, operands = self._expected(name, way, trial)
        if expected is None:
            return
        self.count += 1
        dtype = operands[-1].dtype if operands else np.dtype(float)
        try:
            found = way(self.op, trial.operands(), self.params, trial.placed)
        except Exception as error:  # whatever it is: on contiguous arrays there is a result
            yield Deviation(self.op.name, name, dtype, trial.name, f"raises {type(error).__name__}: {error}")
            return
        given = [*operands, *cotangents(expected[: count_of(self.op)])]
        for k, (a, b) in enumerate(zip(found, expected, strict=True)):
            if way not in (by_kernel, by_tape) and k == RESULT:
                found[k] = a.copy()
                if spills(a):
                    yield Deviation(self.op.name, name, dtype, trial.name, "writes beside the elements")
            if not same_bits(found[k], b):
                yield from self._differ(name, k, trial.name, found, expected, given, len(operands))

    def _expected(self, name: str, way: Way, trial: Trial) -> tuple[list[np.ndarray] | None, list[np.ndarray]]:
        """What the way gives on contiguous arrays of the same values, and those; None if it refuses them."""
        if any(lay is not None and 0 in lay.strides for lay in trial.layouts):
            plain = list(map(contiguous, trial.operands()))
            return self._result(way, plain), plain
        key = name, id(trial.arrays)  # many trials are of the same arrays, which are kept meanwhile
        if key not in self._known:
            plain = list(map(contiguous, trial.arrays))
            self._known[key] = self._result(way, plain), plain, trial.arrays
        return self._known[key][:2]

    def _result(self, way: Way, operands: Sequence[np.ndarray]) -> list[np.ndarray] | None:
        try:
            return [np.array(r) for r in way(self.op, list(map(contiguous, operands)), self.params, contiguous)]
        except Exception:  # a dtype that it refuses, a result that does not fit, numbers that it does not take
            return None

    def _differ(
        self, way: str, k: int, layout: str, arrays: Sequence[np.ndarray], right: Sequence[np.ndarray],
        given: list[np.ndarray], count: int,
    ) -> Iterator[Deviation]:  # fmt: skip
        """`given`: so many operands, and cotangents."""
        found, expected = arrays[k], right[k]
        same = aval_of(found) == aval_of(expected)
        dtype = given[count - 1].dtype
        if same and self.op.pointwise and found.ndim == 1 and all(a.shape == found.shape for a in given):
            self._pooled.setdefault((way, k, dtype), []).append((layout, found, expected, given, count))
            return
        judgement = self._judgement(way, k, arrays, right, given, count) if same else None
        if judgement is None or judgement.verdict is Verdict.BUG:
            detail = f"{aval_of(found)}, not {aval_of(expected)}" if judgement is None else judgement.detail
            yield Deviation(self.op.name, way, dtype, layout, detail, k)

    def _judged(self) -> Iterator[Deviation]:
        for (way, k, dtype), known in self._pooled.items():
            found, expected = (np.concatenate([row[i] for row in known]) for i in (1, 2))
            operands = [np.concatenate(column) for column in zip(*(row[3] for row in known), strict=True)]
            judgement = self._judgement(way, k, {k: found}, {k: expected}, operands, known[0][4])
            if judgement.verdict is not Verdict.BUG:
                continue
            names = [row[0] for row in known for _ in row[1]]
            bad = np.zeros(len(names), bool) if judgement.bad is None else judgement.bad
            first = dict.fromkeys(name for name, b in zip(names, bad, strict=True) if b)
            where = "; ".join(list(first)[:4]) + f" and {len(first) - 4} more" * (len(first) > 4)
            yield Deviation(self.op.name, way, dtype, where, judgement.detail, k)
        self._pooled.clear()

    def _judgement(
        self, way: str, k: int, found: Any, expected: Any, given: Sequence[np.ndarray], count: int
    ) -> Judgement:
        """Whether array number `k` of those `found` is as right as the one `expected`."""
        near = judge_as_loops(found[k], expected[k])
        if near.verdict is not Verdict.BUG:
            return near
        op, operands = self.op, list(given[:count])
        params = with_defaults(op, self.params)
        if "itself" in way:
            operands = [operands[0]] * count
        inferred = op.rule.infer(op, [aval_of(a) for a in operands], params)
        node = Node(count, op, tuple(range(count)), params, inferred if op.several else (inferred,), "")
        first = count_of(op)
        if k < first:
            values = [tuple(a[:first]) if op.several else a[k] for a in (found, expected)]
            return judge_alone(values[0], values[1], node, operands)
        wrt = [i for i in range(count) if op.arg_of(i) in op.vjp][k - first]
        return judge_gradient(node, operands, given[count:], wrt, found[k])


def spills(array: np.ndarray) -> bool:
    """Whether anything has been written beside the elements, which are zeroed, into memory that a `Layout` has made."""
    memory = array
    while isinstance(memory.base, np.ndarray):
        memory = memory.base
    if memory is array or memory.dtype != np.uint8 or memory.ndim != 1 or array.dtype == np.uint8:
        return False
    array[...] = np.zeros((), array.dtype)
    return bool(memory.any())


def overlaps(op: Op, arrays: Sequence[np.ndarray], steps: Iterable[int]) -> Iterator[Deviation]:
    """What deviates where the second operand of the in-place form is the target, one step earlier in memory.

    PyTorch refuses that where neither has gaps. Here the result is that of the values from before the write.
    """
    way = ways_of(op).get("in place")
    if way is None or len(arrays) != 2 or arrays[0].shape != arrays[1].shape:
        return
    for step in steps:
        for n in (1, 2, 5, 8, 33):
            layout = stepped((n + 1,), step)
            try:
                expected = way(op, list(map(contiguous, overlapping(layout, arrays[0][:n]))), {}, contiguous)
                found = way(op, overlapping(layout, arrays[0][:n]), {}, contiguous)
            except Exception:
                break
            judgement = judge_as_loops(found[0], expected[0])
            if judgement.verdict is Verdict.BUG:
                where = f"operands overlap, {n} at step {step}"
                yield Deviation(op.name, "in place", arrays[0].dtype, where, judgement.detail)
                return
