"""Kernels that take another way on large arrays, which the derived samples never reach, against the plain way."""

from __future__ import annotations

import numpy as np
import pytest

import eager
from eager.engine.language import E
from graphc.ops import OPS, kernels, maxima
from graphc.ops.interpret import F, run_kernel
from graphc.ops.references import Each
from graphc.ops.scans import BLOCK, WIDE, accumulate
from graphc.ops.scattering import FEW, index_added
from graphc.ops.softmax_rows import BLOCK as ROWS
from graphc.ops.softmax_rows import NARROW, SMALL
from graphc.ops.softmax_rows import WIDE as LONG_ROW
from tests.ops.cases import Case, each_case, every_case

RNG = np.random.default_rng(0)
NUMBERS = ["float16", "float32", "float64", "complex64", "uint8", "int32", "int64", "bool"]


def numbers(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return np.asarray(RNG.integers(0, 5, shape)).astype(dtype)


WHERE = {
    "rows": lambda: (RNG.integers(-20, 20, 70),),
    "matrix of rows": lambda: (RNG.integers(0, 20, (7, 10)),),
    "columns": lambda: (slice(None), RNG.integers(0, 30, 40)),
    "adjacent": lambda: (slice(None), RNG.integers(0, 30, 90), RNG.integers(-4, 4, 90)),
    "apart": lambda: (RNG.integers(0, 20, 90), slice(None), RNG.integers(0, 4, (90,))),
    "elements": lambda: (RNG.integers(0, 20, 900), RNG.integers(0, 30, 900), RNG.integers(0, 4, 900)),
}


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("place", WHERE)
def test_index_added(place: str, dtype: str) -> None:
    x, where = numbers((20, 30, 4), dtype), WHERE[place]()
    values = numbers(x[where].shape, dtype)
    assert values.size >= FEW
    expected = x.copy()
    np.add.at(expected, where, values)
    found = index_added(x, where, values)
    assert found.dtype == expected.dtype and found.flags.c_contiguous
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("lowest", [-20, 0])
@pytest.mark.parametrize("width", [1, 30])
def test_index_added_to_rows_of_a_table(width: int, lowest: int, dtype: str) -> None:
    x, where = numbers((width, 20), dtype).T, (RNG.integers(lowest, 20, 300),)
    before, expected, values = x.copy(), x.copy(), numbers((300, width), dtype)
    np.add.at(expected, where, values)
    found = index_added(x, where, values)
    assert found.dtype == expected.dtype and found.flags.c_contiguous
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_gradient_of_a_large_embedding(dtype: str) -> None:
    table = eager.ones(50, 16, dtype=getattr(eager, dtype), requires_grad=True)
    at = eager.tensor(np.arange(60) % 7)
    eager.nn.functional.embedding(at, table).sum().backward()
    assert table.grad.dtype is table.dtype
    assert table.grad[:, 0].tolist() == np.bincount(np.arange(60) % 7, minlength=50).tolist()


SCANS = [((3, 3 * BLOCK + 5), 1), ((300, WIDE), 0), ((2, 300, 40), 1), ((BLOCK + 7,), 0), ((BLOCK, 3), 0)]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool", "complex64"])
@pytest.mark.parametrize(("shape", "axis"), SCANS)
def test_cumsum_by_blocks(shape: tuple[int, ...], axis: int, dtype: str, reverse: bool) -> None:
    x = numbers(shape, dtype)
    found = run_kernel(OPS["cumsum"], [x], {"axis": axis, "reverse": reverse})
    along = np.flip(x, axis) if reverse else x
    expected = np.cumsum(along, axis, dtype=found.dtype)
    np.testing.assert_array_equal(found, np.flip(expected, axis) if reverse else expected)


@pytest.mark.parametrize("ufunc", [np.maximum, np.minimum, np.multiply, np.logaddexp], ids=lambda u: u.__name__)
@pytest.mark.parametrize(("shape", "axis"), SCANS)
def test_scans_by_blocks(shape: tuple[int, ...], axis: int, ufunc: np.ufunc) -> None:
    x = np.sign(RNG.standard_normal(shape)) if ufunc is np.multiply else RNG.standard_normal(shape)
    for array in (x, np.asfortranarray(x)):
        found = accumulate(ufunc, array, axis)
        assert found.flags.c_contiguous
        np.testing.assert_allclose(found, ufunc.accumulate(x, axis), rtol=1e-13)


def test_running_sums_of_float32_are_rounded_once() -> None:
    x = np.full(10**5, 0.1, np.float32)
    np.testing.assert_array_equal(accumulate(np.add, x, 0), np.cumsum(x, dtype=np.float64).astype(np.float32))


@pytest.mark.parametrize("middle", [0.0, -40.0, 40.0, -400.0, 1e4])
@pytest.mark.parametrize("width", [3, NARROW, NARROW + 1, LONG_ROW, ROWS + 1])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_softmax_of_many_rows(dtype: str, width: int, middle: float) -> None:
    rows = 2 * ROWS // width + 3
    x = (RNG.standard_normal((rows, width)) + middle).astype(dtype)
    wide = x.astype(np.float64)
    wide -= wide.max(1, keepdims=True)
    e = np.exp(wide)
    sums = e.sum(1, keepdims=True)
    eps = float(np.finfo(dtype).eps)
    np.testing.assert_allclose(F.softmax(x, axis=1), e / sums, rtol=(8 + width**0.5 / 8) * eps)
    np.testing.assert_allclose(F.log_softmax(x, axis=1), wide - np.log(sums), rtol=8 * eps, atol=8 * eps)


def test_softmax_does_not_round_the_distance_from_the_largest() -> None:
    x = (40 * RNG.random((SMALL, 8)) - 20).astype(np.float32)
    e = np.exp(x.astype(np.float64))
    np.testing.assert_allclose(F.softmax(x, axis=1), e / e.sum(1, keepdims=True), rtol=6 * 2**-23)


@pytest.mark.parametrize("width", [8, NARROW + 1])
def test_softmax_of_rows_with_infinities(width: int) -> None:
    x = np.tile(RNG.standard_normal((1, width)).astype(np.float32), (SMALL, 1))
    plain, plain_log = F.softmax(x, axis=1)[0], F.log_softmax(x, axis=1)[0]
    x[1], x[2, 0], x[3, 0], x[4, 1:], x[5] = -np.inf, np.inf, np.nan, -np.inf, -200
    for found, usual, low in (
        (F.softmax(x, axis=1), plain, 0),
        (F.log_softmax(x, axis=1), plain_log, -np.inf),
    ):
        assert np.isnan(found[[1, 2, 3]]).any(1).all()
        assert found[4, 1:].tolist() == [low] * (width - 1) and np.isfinite(found[5:]).all()
        np.testing.assert_allclose(found[6:], np.tile(usual, (SMALL - 6, 1)), rtol=1e-6)


@pytest.mark.parametrize("apart", [1.0, 11.0, 1e3, np.inf, np.nan])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_softmax_of_rows_far_apart(dtype: str, apart: float) -> None:
    x = (0.5 * RNG.standard_normal((300, 40))).astype(dtype)
    x += np.linspace(0, apart if np.isfinite(apart) else 1, 300, dtype=dtype)[:, None]
    if not np.isfinite(apart):
        x[:, 3] = -abs(apart)
    with np.errstate(invalid="ignore"):
        wide = x.astype(np.float64)
        e = np.exp(wide - wide.max(1, keepdims=True))
        expected = e / e.sum(1, keepdims=True)
    np.testing.assert_allclose(F.softmax(x, axis=1), expected, rtol=12 * np.finfo(dtype).eps)


LEFT = {
    "whole": lambda dtype: numbers((3, 5, 4), dtype),
    "with gaps": lambda dtype: numbers((3, 5, 8), dtype)[..., ::2],
    "transposed": lambda dtype: numbers((3, 4, 5), dtype).swapaxes(1, 2),
    "no rows": lambda dtype: numbers((3, 0, 4), dtype),
    "no terms": lambda dtype: numbers((3, 5, 0), dtype),
}


@pytest.mark.parametrize("dtype", [d for d in NUMBERS if d != "bool"])
@pytest.mark.parametrize("left", LEFT)
@pytest.mark.parametrize("columns", [0, 1, 7])
def test_many_products_with_one_matrix(columns: int, left: str, dtype: str) -> None:
    x = LEFT[left](dtype)
    y = numbers((x.shape[-1], columns), dtype)
    found, expected = F.matmul(x, y), np.matmul(x, y)
    assert found.dtype == expected.dtype and found.flags.c_contiguous
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_pools_with_many_taps() -> None:
    x, kernel, none = RNG.standard_normal((2, 3, 12, 11)), (10, 9), ((0, 0), (0, 0))
    assert np.prod(kernel) > kernels.MANY_TAPS
    windows = np.lib.stride_tricks.sliding_window_view(x, kernel, (2, 3))
    np.testing.assert_allclose(kernels.avg_pool(x, kernel, (1, 1), none), windows.mean((-1, -2)))
    np.testing.assert_array_equal(maxima.max_pool(x, kernel, (1, 1), none, (1, 1)), windows.max((-1, -2)))


@pytest.mark.parametrize(
    "options", [{}, {"reduction": "none"}, {"ignore_index": 3}, {"label_smoothing": 0.1}, {"weight": 1}]
)
def test_cross_entropy_of_many_scores_is_that_of_few(options: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    from eager.nn.functions import class_losses

    if "weight" in options:
        options = {"weight": eager.rand(100)}
    scores, target = eager.randn(60, 100), eager.tensor(RNG.integers(0, 100, 60))
    results = []
    for masked in (0, 10**9):
        monkeypatch.setattr(class_losses, "MASKED", masked)
        x = scores.clone().requires_grad_()
        loss = eager.nn.functional.cross_entropy(x, target, **options)
        loss.sum().backward()
        results.append((loss.detach().numpy(), x.grad.numpy()))
    for few, many in zip(*results, strict=True):
        np.testing.assert_allclose(few, many, rtol=1e-5, atol=1e-6)


def of_one_shape(case: Case) -> bool:
    """Whether the elements of real arrays are looked at one by one."""
    arrays = case.arrays(np.random.default_rng(0))
    each = case.op.pointwise or isinstance(case.op.ref, Each)
    return each and not case.strided and all(a.shape == (3, 4) and a.dtype.kind != "c" for a in arrays)


@pytest.mark.deep
@each_case([case for case in every_case(differentiable=True) if of_one_shape(case)])
def test_large_arrays_go_as_small_ones(case: Case, rng: np.random.Generator) -> None:
    results = []
    few = case.arrays(rng, np.float32)
    for times in (1, 2**13):
        leaves = [eager.tensor(np.tile(a, (times, 1)), requires_grad=a.dtype.kind == "f") for a in few]
        found = getattr(E, case.op.name)(*leaves, **case.sample.params)
        found.backward(eager.ones_like(found))
        results.append([x.numpy()[:3] for x in (found.detach(), *(y.grad for y in leaves if y.grad is not None))])
    for small, large in zip(*results, strict=True):
        np.testing.assert_allclose(large, small, rtol=2e-5, atol=2e-6)
