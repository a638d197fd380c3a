"""Ops on 16-bit floats: XLA gives what the NumPy kernel gives, which computes in float32 and rounds once.

Every op that takes such operands, in float16 or in bfloat16. Of ops in `FREE`, of those that others define, and of
results that are not of 16 bits, the shape and the dtype only.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import numpy as np
import pytest

from eager.core.tensor import Tensor
from eager.engine.language import E
from graphc.ir import Builder, Ref
from graphc.lowering import lower
from graphc.lowering.reference import op_by_op
from graphc.ops import OPS
from graphc.ops.aval import Aval, results_of
from graphc.ops.dtypes import FLOAT16, bfloat16, finfo, is_half
from tests.ops.cases import Case, cases_of

GROUPS = 16
PLAIN = [op.name for op in OPS.values() if not op.structured]
# results that are one of several right ones, or that operands of few bits do not determine
FREE = {"eig", "eigh", "svd", "qr", "lu"}


def ulps(found: np.ndarray, expected: np.ndarray) -> float:
    """The largest distance, in ULP of the expected element, or of a 16th of the largest one where that is more."""
    unit = float(finfo(expected.dtype).eps)
    a, b = found.astype(np.float64), expected.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    scale = np.maximum(np.abs(b), np.max(np.abs(b), where=np.isfinite(b), initial=0.0) / 16)
    with np.errstate(invalid="ignore", divide="ignore"):
        distance = np.where(same, 0, np.abs(a - b) / (unit * scale))
    return float(np.max(np.where(np.isnan(distance), np.inf, distance), initial=0.0))


@pytest.mark.parametrize("group", [0, *(pytest.param(k, marks=pytest.mark.deep) for k in range(1, GROUPS))])
def test_xla_rounds_once(group: int):
    half = FLOAT16 if group % 2 else bfloat16()
    builder, rng = Builder(), np.random.default_rng(group)
    arrays: list[np.ndarray] = []
    results: list[tuple[Case, int]] = []
    for case in (case for name in PLAIN[group::GROUPS] for case in cases_of(OPS[name])):
        drawn = [np.asarray(a) for a in case.arrays(rng, half)]
        if not any(is_half(a.dtype) for a in drawn):
            continue
        inputs = [builder.input(f"x{len(arrays) + k}", Aval(a.shape, a.dtype)) for k, a in enumerate(drawn)]
        arrays += drawn
        try:
            results += [(case, s.id) for s in results_of(builder.apply(case.op, inputs, case.sample.params))]
        except RuntimeError as error:  # PyTorch refuses 16 bits there, and so does eager
            with pytest.raises(type(error)):
                getattr(E, case.op.name)(*map(Tensor._wrap, drawn), **case.sample.params)
    graph = builder.graph("halves", [Ref(id) for _, id in results]).check()
    assert len(results) > 30
    wrong = []
    for (case, _), found, expected in zip(results, lower(graph)(*arrays), graph(*arrays), strict=True):
        found = np.asarray(found)
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape), case.id
        # XLA does not round between the ops that another is defined by
        judged = case.op.name not in FREE and case.op.definition is None and is_half(expected.dtype)
        if judged and ulps(found, expected) > 2:
            wrong.append((case.id, ulps(found, expected)))
    assert not wrong


def test_distances():
    ones = np.ones(3, np.float16)
    assert ulps(ones, ones) == 0 and ulps(np.nextafter(ones, np.float16(2)), ones) == 1
    for odd in (np.nan, np.inf, 2):
        assert ulps(np.array([1, 1, odd], np.float16), ones) > 2 and ulps(ones, np.array([1, 1, odd], np.float16)) > 2


def test_op_by_op():
    builder = Builder()
    x = builder.input("x", Aval((3, 3), FLOAT16))
    graph = builder.graph("inverse", Ref(builder.language.inv(x, checked=True).id))
    array = np.eye(3, dtype=np.float16) * 2
    (found,) = op_by_op(graph, [array])
    assert found.dtype == np.float16 and (found == np.eye(3) / 2).all()


def test_operands_of_several_precisions():
    wide, half = np.eye(3, dtype=np.float32), np.array(1e-3, FLOAT16)
    for operands in ((wide, half, half), (wide.astype(FLOAT16), half, half.astype(np.float32))):
        found = E.pinv(*map(Tensor._wrap, operands), hermitian=False)
        assert found._dtype() == operands[0].dtype
        builder = Builder()
        inputs = [builder.input(f"x{k}", Aval(a.shape, a.dtype)) for k, a in enumerate(operands)]
        graph = builder.graph("pinv", Ref(builder.apply(OPS["pinv"], inputs, {"hermitian": False}).id)).check()
        assert graph(*operands).dtype == np.asarray(lower(graph)(*operands)).dtype == operands[0].dtype


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="F16C is a feature of x86")
def test_a_processor_without_float16_is_named():
    code = """
import eager as torch, graphc
f = graphc.compile(lambda x: x * 2 + 1)
assert f(torch.ones(2, dtype=torch.bfloat16)).tolist() == [3, 3]
try:
    f(torch.ones(2, dtype=torch.float16))
except graphc.errors.ProcessorError as error:
    print(error)
"""
    settings = {**os.environ, "XLA_FLAGS": "--xla_cpu_max_isa=SSE4_2", "GRAPHC_CACHE": "0"}
    done = subprocess.run([sys.executable, "-c", code], env=settings, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "cannot convert float16 on this processor" in done.stdout
