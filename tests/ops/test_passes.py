"""Kernels that take fewer passes over large arrays than their definitions, against these."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import eager
from eager.rng import generator
from graphc.ops import OPS, determinants, kernels, sliding, standardizing
from graphc.ops.interpret import F, run_kernel
from graphc.ops.strided import positions
from graphc.ops.sums import RUN, SHORT, of_products, total


def _definition(name: str) -> Any:
    return OPS[name].definition


def _windows(x: np.ndarray, kernel: tuple[int, ...], padding: tuple[int, ...], dilation: tuple[int, ...]) -> np.ndarray:
    """(N, C, *out, *kernel), of padded images."""
    wide = np.pad(x, [(0, 0), (0, 0), *((p, p) for p in padding)])
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    views = np.lib.stride_tricks.sliding_window_view(wide, reach, tuple(range(2, x.ndim)))  # type: ignore[call-overload]
    return views[(..., *(slice(None, None, d) for d in dilation))]


GEOMETRIES = list(
    itertools.product([(3, 3), (1, 2), (3, 1)], [(0, 0), (1, 1), (2, 0), (0, 3)], [(1, 1), (2, 1)], [1, 5, 70], [1, 2])
)


def test_convolution_slides_over_images_with_shared_borders(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sliding, "CACHED", 2**12)  # several steps, the last one not full
    for kernel, padding, dilation, count, groups in GEOMETRIES:
        x, w = rng.standard_normal((count, 2, 5, 6)), rng.standard_normal((4, 2 // groups, *kernel))
        views = _windows(x, kernel, padding, dilation)
        parts = views.reshape(count, groups, 2 // groups, *views.shape[2:])
        weights = w.reshape(groups, 4 // groups, *w.shape[1:])
        y = np.einsum("ngcpqij,gocij->ngopq", parts, weights)
        y = y.reshape(count, 4, *y.shape[3:])
        how = (1, 1), padding, dilation, groups
        np.testing.assert_allclose(kernels.conv(x, w, *how), y, atol=1e-12)
        g = rng.standard_normal(y.shape)
        in_groups = g.reshape(count, groups, 4 // groups, *g.shape[2:])
        slopes = np.einsum("ngcpqij,ngopq->gocij", parts, in_groups).reshape(w.shape)
        np.testing.assert_allclose(kernels.conv_weight(g, x, w.shape, *how), slopes, atol=1e-11)
        dx = rng.standard_normal(x.shape)  # <conv(dx), g> = <dx, conv_input(g)>
        ahead = (kernels.conv(dx, w, *how) * g).sum()
        np.testing.assert_allclose((dx * kernels.conv_input(g, w, x.shape, *how)).sum(), ahead, rtol=1e-9)


@pytest.mark.parametrize("stride", [(1, 1), (2, 3)])
@pytest.mark.parametrize("padding", [(0, 0), (1, 2)])
def test_convolution_of_single_pixels(stride: tuple[int, int], padding: tuple[int, int], rng: np.random.Generator):
    x, w = rng.standard_normal((3, 4, 3, 3)), rng.standard_normal((6, 4, 1, 1))
    how = stride, padding, (1, 1), 1
    y = np.einsum(
        "ncpq,oc->nopq", _windows(x, (1, 1), padding, (1, 1))[..., :: stride[0], :: stride[1], 0, 0], w[..., 0, 0]
    )
    np.testing.assert_allclose(kernels.conv(x, w, *how), y, atol=1e-12)
    dx, g = rng.standard_normal(x.shape), rng.standard_normal(y.shape)
    ahead = (kernels.conv(dx, w, *how) * g).sum()
    np.testing.assert_allclose((dx * kernels.conv_input(g, w, x.shape, *how)).sum(), ahead, rtol=1e-9)


@pytest.mark.parametrize("count", [SHORT - 1, SHORT, RUN, RUN + 1, 3 * RUN, 3 * RUN + 5, RUN * RUN + RUN + 3])
@pytest.mark.parametrize("axes", [(0, 2), (2,), (0, 1, 2), (1, 2), (0,)])
def test_sums_of_products(axes: tuple[int, ...], count: int, rng: np.random.Generator):
    x, y = rng.random((2, 3, 5, count))
    np.testing.assert_allclose(of_products(x, y, axes), (x * y).sum(axes), rtol=1e-12)
    np.testing.assert_allclose(total(x, axes), x.sum(axes), rtol=1e-12)


def test_the_error_of_long_sums_of_products_does_not_grow_with_their_length():
    x = np.full((2, 10**6), 0.7734375, np.float32) + np.float32(1e-4)
    for found in (of_products(x, x, (1,)), total(x * x, 1)):
        np.testing.assert_allclose(found, (x.astype(float) ** 2).sum(1), rtol=16 * 2**-24)


@pytest.mark.parametrize("shape, axis", [
    ((40, 600), (1,)), ((40, 3000), (0,)), ((4, 70, 9, 60), (0, 2, 3)), ((4, 70, 600), (2,)), ((9, 7, 8), (1,)),
])  # fmt: skip
def test_standardized_in_blocks(shape: tuple, axis: tuple, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(standardizing, "BLOCK", 2**12)
    x, g = rng.standard_normal(shape) + 3, rng.standard_normal(shape)
    r = F.standardize(x, axis=axis, eps=0.1)
    np.testing.assert_allclose(r, _definition("standardize")(F, x, axis=axis, eps=0.1), rtol=1e-10, atol=1e-12)
    found, expected = (f(g, x) for f in (
        lambda *a: F.standardize_grad(*a, axis=axis, eps=0.1),
        lambda *a: _definition("standardize_grad")(F, *a, axis=axis, eps=0.1)))  # fmt: skip
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_rows_are_standardized_in_a_buffer_of_their_length_and_the_same_bits(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
):
    x, usual = rng.standard_normal((40, 600)).astype(np.float32), np.getbufsize()
    scale = standardizing._scale
    lengths: list[int] = []

    def noted(*given):
        lengths.append(np.getbufsize())
        return scale(*given)

    monkeypatch.setattr(standardizing, "_scale", noted)
    found = standardizing._standardize(x, (1,), 1e-5)
    assert (lengths, np.getbufsize()) == ([592], usual)
    monkeypatch.setattr(standardizing, "ROWS", range(0))
    np.testing.assert_array_equal(found, standardizing._standardize(x, (1,), 1e-5))
    assert lengths == [592, usual]


@pytest.mark.parametrize("shape", [(300, 8), (3, 2**11), (2**12 + 5,), (40, 9, 11), (2**11, 1), (2**11, 3)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "int32", "bool"])
def test_products_of_halves(shape: tuple[int, ...], dtype: str, rng: np.random.Generator):
    x = np.asarray(rng.uniform(0.9, 1.1, shape)).astype(dtype)
    for first, keepdims in itertools.product(range(len(shape)), (False, True)):
        axis = tuple(range(first, len(shape)))
        found = run_kernel(OPS["prod"], [x], {"axis": axis, "keepdims": keepdims})
        expected = np.prod(x, axis, keepdims=keepdims)
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-4)


@pytest.mark.parametrize("axis", [0, 1])
def test_places_of_running_extremes(axis: int, rng: np.random.Generator):
    x = rng.integers(0, 50, (60, 70)).astype(np.float32)
    x[3, 5] = x[20, 60] = x[5, 0] = np.nan
    for largest in (False, True):
        params = {"axis": axis, "largest": largest}
        reference: Any = OPS["argcummax"].ref
        expected = reference(x, **params)
        np.testing.assert_array_equal(run_kernel(OPS["argcummax"], [x], params), expected)


def test_permutations_by_lapack_are_those_by_interchanges(monkeypatch: pytest.MonkeyPatch):
    found = []
    for many in (2, 10**9):
        monkeypatch.setattr(generator, "MANY", many)
        eager.manual_seed(5)
        found.append([eager.randperm(n).tolist() for n in (2, 3, 1000, 2047)])
    assert found[0] == found[1] and sorted(found[0][2]) == list(range(1000))


@pytest.mark.parametrize("size, stride", [
    ((4, 3, 5), (2, 1, 7)), ((30, 4), (2, 1)), ((2, 3, 3, 4, 5), (60, 10, 1, 10, 1)), ((9, 9), (0, 1)),
    ((70, 70), (1, 1)),
])  # fmt: skip
def test_windows_that_overlap_are_added_up(size: tuple[int, ...], stride: tuple[int, ...], rng: np.random.Generator):
    g = rng.standard_normal(size)
    params = {"shape": (200,), "size": size, "stride": stride, "offset": 3, "layout": None}
    expected = np.zeros(201)
    np.add.at(expected, positions((200,), size, stride, 3, None), g)
    np.testing.assert_allclose(run_kernel(OPS["as_strided_add"], [g], params), expected[:200], atol=1e-12)


def test_cofactors_of_what_has_no_inverse(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch):
    x = rng.standard_normal((6, 4, 4)).astype(np.float32)
    plain = F.cofactor(x[:3])
    x[3, 1] = x[3, 0]  # singular
    x[4] *= np.array([1, 1e-6, 1, 1], np.float32)[:, None]
    x[5, 0, 0] = np.nan
    for each, found in zip(x[3:5], F.cofactor(x)[3:5], strict=True):
        u, s, v = np.linalg.svd(each.astype(float))
        others = [np.prod(np.delete(s, k)) for k in range(4)]
        np.testing.assert_allclose(found, np.linalg.det(u) * np.linalg.det(v) * (u * others) @ v, rtol=1e-4, atol=1e-5)
    assert np.isnan(F.cofactor(x)[5]).all()
    monkeypatch.setattr(determinants, "_CERTAIN", 0.0)
    np.testing.assert_allclose(plain, F.cofactor(x[:3]), rtol=1e-5, atol=1e-5)
