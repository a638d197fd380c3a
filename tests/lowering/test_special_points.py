"""Every pointwise op under XLA at zeros of both signs, infinities, nan and whole numbers; masks of such numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import eager as torch
import graphc
from graphc.ir import Builder, Ref
from graphc.lowering import complexes, lower
from graphc.ops import OPS, Op
from graphc.ops.aval import Aval
from graphc.ops.bessel import ON_HOST
from graphc.ops.dtypes import is_inexact

POINTS = np.array([0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 3.0, 0.5, -0.5, np.inf, -np.inf, np.nan])
TOGETHER = 24  # ops of a program
POINTWISE = [op for op in OPS.values() if op.pointwise and not (op.variadic or op.params) and len(op.args) <= 2]
DENSE = np.concatenate([np.geomspace(0.1, 1e308, 1500), np.linspace(1, 800, 3000)])
GROUPS = [POINTWISE[k : k + TOGETHER] for k in range(0, len(POINTWISE), TOGETHER)]


def graph_of(ops: list[Op], dtype: np.dtype):
    """A program of those of `ops` that take numbers of the dtype, and give some."""
    builder = Builder()
    x, y = (builder.input(name, Aval((POINTS.size**2,), dtype)) for name in "xy")
    results: dict[str, Ref] = {}
    for op in ops:
        try:
            result = builder.apply(op, [x, y][: len(op.args)], {})
        except (RuntimeError, TypeError, NotImplementedError):
            continue
        if is_inexact(result.aval.dtype) and op not in ON_HOST:
            results[op.name] = Ref(result.id)
    return builder.graph("points", results)


def test_few_ops_are_left_out():
    taken = {name for ops in GROUPS for name in graph_of(ops, np.dtype(np.float64)).result}
    assert len(taken) > 60


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("ops", GROUPS, ids=lambda ops: f"{ops[0].name}-{ops[-1].name}")
def test_zeros_and_infinities_are_numpys(ops: list[Op], dtype: type):
    graph = graph_of(ops, np.dtype(dtype))
    points = [np.ascontiguousarray(a.ravel()).astype(dtype) for a in np.meshgrid(POINTS, POINTS)]
    found = lower(graph)(*points)
    for name, expected in graph(*points).items():
        got = np.asarray(found[name])
        close = np.isclose(got, expected, rtol=1e-4, atol=1e-6, equal_nan=True)
        zeros = (got == 0) & (expected == 0)
        for wrong, what in ((~close, "value"), (zeros & (np.signbit(got) != np.signbit(expected)), "sign of zero")):
            given = [tuple(float(p[k]) for p in points[: len(OPS[name].args)]) for k in np.flatnonzero(wrong)[:3]]
            assert not given, f"{name}: {what} at {given}: {got[wrong][:3]}, expected {expected[wrong][:3]}"


def near_the_largest(values: np.ndarray) -> np.ndarray:
    largest = np.finfo(values.dtype).max
    return (np.abs(values) > largest * 1e-3) & (np.abs(values) < largest * 0.9)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("ops", GROUPS, ids=lambda ops: f"{ops[0].name}-{ops[-1].name}")
def test_what_is_just_within_float32_is_so_compiled(ops: list[Op]):
    graph = graph_of([op for op in ops if len(op.args) == 1], np.dtype(np.float32))
    dense = np.concatenate([DENSE, -DENSE])
    dense = dense[np.abs(dense) < np.finfo(np.float32).max].astype(np.float32)
    dense = dense[: dense.size // POINTS.size**2 * POINTS.size**2].reshape(-1, POINTS.size**2)
    there = [graph(x, x) for x in dense]
    large = {name: near_the_largest(np.stack([values[name] for values in there])) for name in graph.result}
    places = np.concatenate([np.flatnonzero(found)[:: max(1, found.sum() // 8)] for found in large.values()])
    for chosen in np.array_split(places, max(1, -(-places.size // POINTS.size**2))):
        x = np.resize(dense.ravel()[chosen], POINTS.size**2)
        found = lower(graph)(x, x)
        for name, expected in graph(x, x).items():
            wrong = near_the_largest(expected) & ~np.isclose(np.asarray(found[name]), expected, rtol=1e-3)
            assert not wrong.any(), f"{name} at {x[wrong][:3]}: {np.asarray(found[name])[wrong][:3]}"


def test_acosh_has_a_derivative_on_the_cut_of_acos():
    z = np.array([1.5, 2.0, 7.0]) + 0j
    with jax.enable_x64(True):
        values, vjp = jax.vjp(complexes.acosh, z)
        np.testing.assert_allclose(values, np.arccosh(z), rtol=1e-14)
        np.testing.assert_allclose(vjp(np.ones_like(z))[0], 1 / np.sqrt(z * z - 1), rtol=1e-14)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_complex_numbers_with_such_parts_are_numpys(dtype: type):
    taken = [op for op in POINTWISE if len(op.args) == 1 or op is OPS["pow"]]
    graph = graph_of(taken, np.dtype(dtype))
    assert len(graph.result) >= 30
    z = np.empty((POINTS.size, POINTS.size), dtype)
    z.real, z.imag = POINTS[:, None], POINTS
    points = [z.ravel(), np.roll(z.ravel(), 50)]
    found = lower(graph)(*points)
    for name, expected in graph(*points).items():
        got = np.asarray(found[name])
        close = [
            np.isclose(part(got), part(expected), rtol=1e-4, atol=1e-6, equal_nan=True) for part in (np.real, np.imag)
        ]
        wrong = ~(close[0] & close[1])
        given = [tuple(p[k] for p in points[: len(OPS[name].args)]) for k in np.flatnonzero(wrong)[:5]]
        assert not given, f"{name}: {given}: {got[wrong][:5]}, expected {expected[wrong][:5]}"


@pytest.mark.parametrize("masked", [
    lambda x, mask: x * mask, lambda x, mask: (x == 2).to(x.dtype) * x, lambda x, mask: x.half() * mask.half(),
    lambda x, mask: mask.to(torch.complex64) * x, lambda x, mask: (x[:, None] * mask).sum(0),
    lambda x, mask: torch.func.grad(torch.amax)(x[:3]) + torch.func.grad(torch.amin)(x[2:]),
])  # fmt: skip
def test_a_mask_is_a_factor_of_nan_and_infinities(masked: Callable[..., Any]):
    x = torch.tensor([math.nan, math.inf, 2.0, -math.inf, math.nan])
    mask = torch.tensor([False, False, True, False, True])
    expected, found = masked(x, mask).numpy(), graphc.compile(masked)(x, mask).numpy()
    np.testing.assert_array_equal(found, expected)
