"""Every op gives the same wherever its operands and results lie in memory: NumPy's and SciPy's loops are not taken at
their word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from compare.layouts.layout import Layout, layout_of, layouts_of, placed
from compare.layouts.sweep import Deviation, Sweep, overlaps, rows_of, trials_of
from compare.layouts.ways import by_kernel, by_tape, ways_of
from compare.selftest.planting import declared, with_rule
from eager.core import ufunc_writes
from graphc.ops import OPS, Op
from graphc.ops.dtypes import FLOAT32, FLOAT64, INT64
from graphc.ops.interpret import run_kernel
from graphc.ops.rules import integral
from graphc.ops.spec import Vjp
from tests.ops.layout_cases import BLOCKED, FEW, LENGTHS, STEPS, SWEPT, operands_of, rows_for

SOME = ("step 4", "step -1", "column by column", "one byte off", "repeated along dim 0")


def _told(found: list[Deviation]) -> str:
    return "\n".join(map(str, found[:8]))


def _in_rows(op: Op) -> Iterator[Deviation]:
    """A pointwise op on rows: with all steps, of all lengths where its loop is NumPy's own."""
    lengths = LENGTHS if isinstance(op.kernel, np.ufunc) else FEW
    for arrays, params in rows_for(op):
        ways = ways_of(op)
        tape = {name: ways.pop(name) for name in ("eager", "out") if name in ways}
        yield from Sweep(op, params, ways).run(rows_of(arrays, lengths, STEPS, apart=False))
        yield from Sweep(op, params, ways).run(rows_of(arrays, (4, 33), (-4, -1, 1, 4), shift=1))
        yield from Sweep(op, params, ways).run(rows_of(arrays, (33,), STEPS))
        yield from Sweep(op, params, tape).run(rows_of(arrays, FEW, (-17, -8, -4, -1, 0, 1, 2, 3, 4, 8)))
        yield from overlaps(op, arrays, STEPS)


def _in_shapes(op: Op) -> Iterator[Deviation]:
    """An op on its samples in all kinds of layouts, on a large one in a few."""
    for arrays, params in operands_of(op):
        large = max((a.size for a in arrays), default=0) >= BLOCKED
        yield from Sweep(op, params).run(trials_of(arrays, SOME if large else None))


@pytest.mark.deep
@pytest.mark.parametrize("op", SWEPT, ids=lambda op: op.name)
def test_every_layout(op: Op) -> None:
    found = list(_in_shapes(op))
    found += _in_rows(op) if op.pointwise else ()
    assert not found, _told(found)


def test_every_op_in_a_few_layouts() -> None:
    found: list[Deviation] = []
    for op in SWEPT:
        arrays, params = next(operands_of(op, (FLOAT32, FLOAT64, INT64), large=False), ((), {}))
        sweep = Sweep(op, params)
        found += sweep.run(trials_of(arrays, SOME[:3]))
        assert sweep.count or not any(np.ndim(a) for a in arrays), f"{op.name} was tried in no layout"
    assert not found, _told(found)


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64], ids=str)
@pytest.mark.parametrize("name", ["neg", "isnan", "isfinite", "signbit", "add", "div"])
def test_written_results_in_every_step(name: str, dtype: np.dtype) -> None:
    """What eager writes into memory with gaps: NumPy's own loops for that are wrong for these unary ones."""
    op = OPS[name]
    ways = {name: way for name, way in ways_of(op).items() if way not in (by_kernel, by_tape)}
    for arrays, params in rows_for(op, (dtype,)):
        found = list(Sweep(op, params, ways).run(rows_of(arrays, (2, 7, 17), STEPS)))
        assert not found, _told(found)


# --- the sweep itself


def _wrong_where(condition: Callable[[np.ndarray], bool]) -> Callable[[Any], Any]:
    def wrap(kernel: Any) -> Any:
        def wrong(x: np.ndarray, *rest: Any, **params: Any) -> Any:
            result = kernel(x, *rest, **params)
            return result + result.dtype.type(1) if x.size and condition(x) else result

        return wrong

    return wrap


FAULTS: dict[str, Callable[[np.ndarray], bool]] = {
    "step 4": lambda x: x.ndim == 1 and x.strides[0] == 4 * x.itemsize,
    "backwards": lambda x: min(x.strides, default=1) < 0,
    "repeated": lambda x: 0 in x.strides and x.size > 1,
    "one byte off": lambda x: not x.flags.aligned,
    "column order": lambda x: x.ndim > 1 and x.flags.f_contiguous and not x.flags.c_contiguous,
    "not whole vectors": lambda x: x.size % 8 != 0 and not x.flags.c_contiguous,
    "integers only": lambda x: x.dtype.kind == "i" and not x.flags.c_contiguous,
    "large only": lambda x: x.size > 8192 and not x.flags.c_contiguous,
}


@pytest.mark.parametrize(
    ("name", "fault"),
    [*(("abs", fault) for fault in FAULTS if fault != "large only"), *(("cumsum", fault) for fault in FAULTS)],
)
def test_a_kernel_that_depends_on_layout_is_seen(name: str, fault: str) -> None:
    op = OPS[name]
    with declared(op, kernel=_wrong_where(FAULTS[fault])(op.kernel)):
        arrays = list(operands_of(op, (FLOAT32, INT64)))
        found = [d for given, params in arrays for d in Sweep(op, params).run(trials_of(given))]
        found += [
            d for given, params in (rows_for(op, (FLOAT32,)) if op.pointwise else ())
            for d in Sweep(op, params).run(rows_of(given, FEW, (-1, 0, 4)))
        ]  # fmt: skip
    assert found


def test_a_write_without_the_guard_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ufunc that goes wrong in memory with gaps, as NumPy's `isnan` did, written straight into it."""
    from eager.engine import inplace

    def straight(ufunc: Any, array: np.ndarray, *operands: Any) -> None:
        ufunc(*operands, out=array)
        array[..., -1:] += 1  # on any machine, whether its NumPy is right or not

    monkeypatch.setattr(inplace, "write_apart", straight)
    op = OPS["neg"]
    (arrays, params), *_ = rows_for(op, (FLOAT32,))
    assert list(Sweep(op, params).run(rows_of(arrays, (5,), (4,))))
    monkeypatch.undo()
    assert ufunc_writes.write_apart is inplace.write_apart
    assert not list(Sweep(op, params).run(rows_of(arrays, (5,), (4,))))


def test_a_wrong_gradient_rule_in_one_layout_is_seen() -> None:
    op = OPS["matmul"]
    sound = op.vjp["other"]

    def wrong(F: Any, g: Any, *saved: Any) -> Any:
        gaps = isinstance(g, np.ndarray) and not g.flags.c_contiguous
        return sound.fn(F, g, *saved) * (3 if gaps else 1)

    arrays, params = next(operands_of(op, (FLOAT32,)))
    with declared(op, vjp=with_rule(op, "other", Vjp(wrong, sound.names))):
        found = list(Sweep(op, params).run(trials_of(arrays)))
    assert found and all(d.result == 2 for d in found), _told(found)


# --- layouts


@pytest.mark.parametrize("shape", [(), (5,), (2, 3), (2, 3, 4), (0, 3)], ids=str)
def test_layouts_hold_the_values(shape: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape)).reshape(shape).astype(FLOAT32)
    for name, layout in layouts_of(shape):
        made = layout.placed(array)
        assert made.shape == shape and made.dtype == array.dtype, name
        assert made.strides == tuple(4 * s for s in layout.strides), name
        if 0 not in layout.strides:
            np.testing.assert_array_equal(made, array, name)
            assert np.ndarray(0, np.uint8).base is None and made.flags.writeable, name
        if array.size:
            found = layout_of(made)
            assert found is not None and found.strides == layout.strides, name
            np.testing.assert_array_equal(placed(made, *found), made, name)


def test_a_misaligned_layout_is_misaligned() -> None:
    made = Layout((1,), 0, 1).placed(np.arange(4.0))
    assert not made.flags.aligned and made.tolist() == [0.0, 1.0, 2.0, 3.0]


# --- one number for many: NumPy has other loops for that, too

NUMBERS = np.array(
    [0, -0.0, 0.25, 0.5, -0.5, 1 / 3, 1, -1, 1.5, -1.5, 2, -2, 3, -3, 1e30, -1e-30, 1e-40, np.inf, -np.inf, np.nan]
)
OF_SEVERAL = [op for op in OPS.values() if op.pointwise and len(op.args) > 1 and op.rule.infer is not integral.infer]


def _as_one(number: Any, count: int) -> Iterator[tuple[str, np.ndarray]]:
    """The ways to give one number where `count` are wanted."""
    yield "0-d", np.array(number)
    yield "one element", np.full(1, number)
    yield "step 0", np.broadcast_to(np.array(number), count)


def _same(found: np.ndarray, expected: np.ndarray) -> bool:
    """Equal but for the last digits, also in the signs of zeros."""
    if found.dtype != expected.dtype or found.dtype.kind != "f":
        return found.dtype == expected.dtype and bool((found == expected).all())
    close = np.isclose(found, expected, rtol=8 * np.finfo(found.dtype).eps, atol=1e-44, equal_nan=True)
    return bool((close & ((np.signbit(found) == np.signbit(expected)) | np.isnan(found))).all())


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64], ids=str)
@pytest.mark.parametrize("op", OF_SEVERAL, ids=lambda op: op.name)
@np.errstate(all="ignore")
def test_one_number_is_as_many_equal_ones(op: Op, dtype: np.dtype) -> None:
    numbers = NUMBERS.astype(dtype)
    conditions = [np.arange(len(numbers)) % 2 == 0] * op.rule.first
    operands = conditions + [numbers] * (len(op.args) - op.rule.first)
    params = {name: dtype if name == "dtype" else value for name, value in op.params.items()}
    for place in range(op.rule.first, len(operands)):
        for number in numbers:
            many = [np.full_like(numbers, number) if k == place else a for k, a in enumerate(operands)]
            expected = run_kernel(op, many, params)
            for how, one in _as_one(number, len(numbers)):
                found = run_kernel(op, [one if k == place else a for k, a in enumerate(operands)], params)
                assert _same(found, expected), f"{number} as {how} in place {place}: {found}, not {expected}"
            single = [run_kernel(op, [a[k].reshape(()) for a in many], params) for k in range(len(numbers))]
            assert _same(np.array(single), expected), f"{number} in place {place}, all 0-d: {single}, not {expected}"
