"""Elementwise ops on long operands, which kernels compute by blocks and in other ways: as on a part of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from compare.declared.operations import samples_of
from eager.core.tensor import Tensor
from eager.engine.language import E
from graphc.ops import OPS, Op
from graphc.ops.references import Each
from graphc.ops.samples import Sample

TIMES = 2500  # beyond every size at which a kernel changes its way
EACH = [op for op in OPS.values() if (op.pointwise or isinstance(op.ref, Each)) and op.differentiable and op.args]


def values(op: Op, sample: Sample, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """The results, and the gradients of their sum."""
    tensors = [Tensor._wrap(a).requires_grad_(a.dtype.kind == "f") for a in arrays]
    found: Any = getattr(E, op.name)(*tensors, **sample.params)
    results = [r for r in (found if op.several else (found,)) if r.requires_grad]
    for result in results:
        result.sum().backward(retain_graph=True)
    return [a.detach().numpy() for a in results] + [t.grad.numpy() for t in tensors if t.grad is not None]


@pytest.mark.parametrize("op", EACH, ids=lambda op: op.name)
def test_as_on_a_part(op: Op):
    sample = next(s for s in samples_of(op) if s.inputs[0].shape)
    arrays = [np.asarray(a).astype(np.float32) if np.asarray(a).dtype.kind == "f" else np.asarray(a)
              for a in sample.arrays(np.random.default_rng(3), op.domain)]  # fmt: skip
    shape = np.broadcast_shapes(*(a.shape for a in arrays))
    arrays = [np.broadcast_to(a, shape).copy() for a in arrays]
    few = values(op, sample, arrays)
    many = values(op, sample, [np.broadcast_to(a, (TIMES, *shape)).copy() for a in arrays])
    for one, long in zip(few, many, strict=True):
        np.testing.assert_allclose(long, np.broadcast_to(one, long.shape), rtol=1e-4, atol=1e-6)
