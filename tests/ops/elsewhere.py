"""An op on tensors that lie elsewhere than in the host's memory, against the same op there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import eager as torch
from eager.core.tensor import Tensor
from eager.engine.language import E
from graphc.ops.dtypes import FLOAT64, is_inexact
from tests.ops.cases import Case

RTOL = 1e-9


def run(case: Case, arrays: list[np.ndarray], put: Callable[[Tensor], Tensor]) -> tuple[list[Tensor], list[Any]]:
    """The results of an op on tensors that `put` has laid somewhere, and their gradients."""
    op, given = case.op, []
    for k, array in enumerate(arrays):
        t = put(torch.from_numpy(array.copy()))
        given.append(t.requires_grad_() if is_inexact(array.dtype) and op.arg_of(k) in op.vjp else t)
    found = getattr(E, op.name)(*given, **case.sample.params)
    results = list(found) if isinstance(found, tuple) else [found]
    live = [t for t in results if t._n is not None]
    if not live:
        return results, []
    leaves = [t for t in given if t.requires_grad]
    # of the squares of the results where their sign is free
    loss: Any = sum((t.abs() ** 2).sum() if op.nearest is not None or t.is_complex() else (t * 2).sum() for t in live)
    return results, list(torch.autograd.grad(loss, leaves, allow_unused=True))


def check(
    case: Case, rng: np.random.Generator, put: Callable[[Tensor], Tensor], is_there: Callable[[Tensor], bool]
) -> None:
    """Results and gradients lie where the operands do, and are those of the host."""
    arrays = case.arrays(rng, FLOAT64)
    if not arrays:
        return
    here, there = run(case, arrays, lambda t: t), run(case, arrays, put)
    free = case.op.nearest is not None
    for kind, expected, found in zip(("result", "gradient"), here, there, strict=True):
        for a, b in zip(expected, found, strict=True):
            assert (a is None) is (b is None), f"{case.id}: {kind} {b}, on the CPU {a}"
            if a is None:
                continue
            assert is_there(b), f"{case.id}: a {kind} on {b.device}"
            x, y = a.detach()._read(), b.detach()._read()
            assert (x.dtype, x.shape) == (y.dtype, y.shape), f"{case.id}: {kind}"
            scale = np.max(np.abs(x), initial=1.0, where=np.isfinite(x)) if is_inexact(x.dtype) else 0.0
            right = (free and kind == "result") or np.allclose(x, y, RTOL, RTOL * scale, equal_nan=True)
            assert right, f"{case.id}: {kind} {y}, on the CPU {x}"
