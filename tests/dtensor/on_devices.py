"""DTensors on eight devices of JAX, which this process has. Started by `test_dtensor.py`."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import eager as torch
from eager.core.tensor import Tensor
from eager.distributed.device_mesh import init_device_mesh
from eager.distributed.tensor import DTensor, Placement, Replicate, Shard, distribute_tensor
from eager.engine.language import E
from graphc.ops.dtypes import FLOAT64, is_inexact
from tests.ops.cases import Case, by_op, every_case

pytestmark = pytest.mark.quick_xla
RTOL = 1e-9
SQUARE = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "model"))
SOME = set("mul matmul sum index_put cat".split())  # the ops of which the quick suite runs a case


def spread(t: Tensor) -> Tensor:
    """`t` in parts, along the first of its dims that divide."""
    placements: list[Placement] = []
    for n in SQUARE.shape:
        free = [d for d, size in enumerate(t.shape) if size and size % n == 0 and Shard(d) not in placements]
        placements.append(Shard(free[0]) if free else Replicate())
    return distribute_tensor(t, SQUARE, placements)


def run(case: Case, arrays: list[np.ndarray], on_mesh: bool) -> tuple[list[Tensor], list[Any]]:
    op, given = case.op, []
    for k, array in enumerate(arrays):
        t = torch.from_numpy(array.copy())
        t = spread(t) if on_mesh else t
        given.append(t.requires_grad_() if is_inexact(array.dtype) and op.arg_of(k) in op.vjp else t)
    found = getattr(E, op.name)(*given, **case.sample.params)
    results = list(found) if isinstance(found, tuple) else [found]
    live = [t for t in results if t._n is not None]
    if not live:
        return results, []
    leaves = [t for t in given if t.requires_grad]
    # of the squares of the results where their sign is free
    loss = sum((t.abs() ** 2).sum() if op.nearest is not None or t.is_complex() else (t * 2).sum() for t in live)
    return results, list(torch.autograd.grad(loss, leaves, allow_unused=True))


def check(case: Case, rng: np.random.Generator) -> None:
    arrays = case.arrays(rng, FLOAT64)
    if not arrays:
        return
    here, there = run(case, arrays, False), run(case, arrays, True)
    free = case.op.nearest is not None
    for kind, expected, found in zip(("result", "gradient"), here, there, strict=True):
        for a, b in zip(expected, found, strict=True):
            assert (a is None) is (b is None), f"{case.id}: {kind} {b}, on the CPU {a}"
            if a is None:
                continue
            assert isinstance(b, DTensor), f"{case.id}: a plain {kind}"
            x, y = a.detach()._read(), b.detach()._read()
            assert (x.dtype, x.shape) == (y.dtype, y.shape), f"{case.id}: {kind}"
            scale = np.max(np.abs(x), initial=1.0, where=np.isfinite(x)) if is_inexact(x.dtype) else 0.0
            right = (free and kind == "result") or np.allclose(x, y, RTOL, RTOL * scale, equal_nan=True)
            assert right, f"{case.id}: {kind} {y}, on the CPU {x}"


@pytest.mark.deep
@pytest.mark.parametrize("cases", by_op(every_case()))
def test_every_op(cases: list[Case], rng: np.random.Generator):
    for case in cases:
        check(case, rng)


@pytest.mark.parametrize("cases", by_op([c for c in every_case() if c.op.name in SOME]))
def test_some_ops(cases: list[Case], rng: np.random.Generator):
    check(cases[0], rng)


def test_there_are_eight_devices():
    assert len(jax.devices()) == 8
