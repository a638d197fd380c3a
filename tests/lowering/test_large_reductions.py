"""Reductions that XLA gives to a library: of so many elements none is passed over, nan least of all."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import eager as torch
import graphc
from eager.nn import functional as F
from graphc.lowering import sorting
from graphc.lowering.primitives import LIBRARY
from graphc.ops import OPS, parts

SIDE = 70
assert SIDE**2 > LIBRARY


def with_nan(dtype: torch.dtype) -> torch.Tensor:
    x = torch.from_numpy(np.random.default_rng(0).uniform(0.5, 1.5, (SIDE, SIDE))).to(dtype)
    x[5, 6] = float("inf")
    for row in range(7, SIDE, 3):  # before and after the extreme of a row, of a column, and twice in some
        x[row, row * 5 % SIDE], x[row, row * 11 % SIDE] = float("nan"), float("nan")
    return x


def agree(f, *arguments):
    for found, expected in zip(graphc.compile(f)(*arguments), f(*arguments), strict=True):
        np.testing.assert_allclose(found.double(), expected.double(), rtol=0.02)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16], ids=str)
def test_every_reduction_of_nan_is_that_of_numpy(dtype):
    names = [op.name for op in OPS.values() if op.parts is parts.REDUCTION]
    functions = [getattr(torch, name) for name in names]
    assert {"amax", "amin", "sum"}.issubset(names)

    def f(x):
        norm = torch.linalg.vector_norm(x.float(), float("inf"))
        several = [*x.max(1), *x.min(0), *x.aminmax(dim=1), x.argmax(), x.argmin()]
        return [g(x, dim=axis) for g in functions for axis in (0, 1)] + [x.max(), x.min(), norm, *several]

    agree(f, with_nan(dtype))


def test_pools_of_large_windows():
    def f(x):
        return [
            F.max_pool2d(x[None, None], kernel, stride)
            for kernel, stride in ((SIDE, SIDE), (SIDE, 1), (65, 65), (35, 35), (12, 3))
        ]

    agree(f, with_nan(torch.float32))
    agree(
        lambda x: [F.max_pool1d(x.reshape(1, 1, -1), 4096), F.avg_pool2d(x[None, None], 65, 65)],
        with_nan(torch.float32),
    )


def test_infinities_that_cancel_are_no_nan():
    x = torch.arange(SIDE * SIDE).reshape(SIDE, SIDE) + 0.5
    x[3, 4], x[5, 6] = float("inf"), -float("inf")
    agree(lambda x: [x.amax(), x.amin(), x.amax(1), x.amin(0)], x)


def test_on_a_mesh_nothing_is_summed_over_all():
    """That would be a collective, of extremes that each device finds by itself."""
    mesh = jax.sharding.Mesh(np.array(jax.devices("cpu")[:1]), ("data",))

    def program() -> str:
        return str(jax.make_jaxpr(lambda x: sorting.reduced(x, 1))(jax.ShapeDtypeStruct((SIDE, SIDE), np.float32)))

    assert "cond" in program()
    with jax.set_mesh(mesh):
        assert "cond" not in program()
