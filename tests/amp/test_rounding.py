"""Functions that are one kernel of PyTorch: of 16-bit floats they give what float64 gives, rounded once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import eager
import graphc
from graphc.ops.dtypes import finfo

F = eager.nn.functional
SQUARE, CUBE, IMAGE = (6, 6), (3, 5, 6), (2, 4, 6, 6)

FUNCTIONS: dict[str, tuple[tuple[tuple[int, ...], ...], Callable[..., Any]]] = {
    "matmul": ((SQUARE, SQUARE), lambda x, y: x @ y),
    "a long matmul": (((2, 3000), (3000, 2)), lambda x, y: x @ y),
    "bmm": (((3, 4, 5), (3, 5, 4)), eager.bmm),
    "addmm": ((SQUARE, SQUARE, SQUARE), lambda x, y, z: eager.addmm(x, y, z, beta=0.3, alpha=1.7)),
    "baddbmm": (((3, 4, 4), (3, 4, 5), (3, 5, 4)), lambda x, y, z: eager.baddbmm(x, y, z, beta=0.3)),
    "linear": ((SQUARE, SQUARE, (6,)), F.linear),
    "linear of batches": ((CUBE, SQUARE, (6,)), F.linear),
    "conv1d": (((2, 3, 8), (4, 3, 3), (4,)), F.conv1d),
    "conv2d": ((IMAGE, (3, 4, 3, 3), (3,)), lambda x, w, b: F.conv2d(x, w, b, padding=1, stride=2)),
    "conv3d": (((1, 2, 4, 4, 4), (3, 2, 2, 2, 2), (3,)), F.conv3d),
    "conv_transpose2d": ((IMAGE, (4, 3, 3, 3), (3,)), lambda x, w, b: F.conv_transpose2d(x, w, b, stride=2)),
    "sum": (((3000,),), lambda x: (x * x).sum()),
    "mean": ((CUBE,), lambda x: x.mean(1)),
    "var": ((CUBE,), lambda x: x.var(2)),
    "logsumexp": ((CUBE,), lambda x: eager.logsumexp(x, 1)),
    "softmax": ((CUBE,), lambda x: F.softmax(x, -1)),
    "log_softmax": ((CUBE,), lambda x: F.log_softmax(x, 1)),
    "norm": ((CUBE,), lambda x: eager.linalg.vector_norm(x, 3, 1)),
    "layer_norm": ((CUBE, (6,), (6,)), lambda x, w, b: F.layer_norm(x, (6,), w, b)),
    "rms_norm": ((CUBE, (6,)), lambda x, w: F.rms_norm(x, (6,), w, 1e-5)),
    "group_norm": ((IMAGE, (4,), (4,)), lambda x, w, b: F.group_norm(x, 2, w, b)),
    "batch_norm": ((IMAGE, (4,), (4,)), lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True)),
    "batch_norm of statistics": ((IMAGE, (4,), (4,), (4,), (4,)),
                                 lambda x, m, v, w, b: F.batch_norm(x, m, v.abs(), w, b)),
    "gelu": ((CUBE,), F.gelu),
    "silu": ((CUBE,), F.silu),
    "softplus": ((CUBE,), F.softplus),
    "logit": ((CUBE,), lambda x: eager.logit(x.sigmoid(), 0.125)),
    "avg_pool2d": ((IMAGE,), lambda x: F.avg_pool2d(x, 3)),
    "huber_loss": ((CUBE, CUBE), lambda x, y: F.huber_loss(x, y, reduction="none")),
    "smooth_l1_loss": ((CUBE, CUBE), lambda x, y: F.smooth_l1_loss(x, y, reduction="none")),
    "attention": (((2, 4, 6), (2, 5, 6), (2, 5, 6)), F.scaled_dot_product_attention),
    "interpolate": ((IMAGE,), lambda x: F.interpolate(x, scale_factor=1.5, mode="bilinear")),
    "lerp": ((CUBE, CUBE, CUBE), eager.lerp),
    "addcmul": ((CUBE, CUBE, CUBE), lambda x, y, z: eager.addcmul(x, y, z, value=0.7)),
}  # fmt: skip
# first steps that round by themselves, in PyTorch, too: the rest is judged from their results on
FIRST = {"sum": lambda x: x * x, "logit": lambda x: x.sigmoid()}
REST = {"sum": lambda x: x.sum(), "logit": lambda x: eager.logit(x, 0.125)}


def ulps(name: str, dtype: Any, compiled: bool) -> float:
    """How far a function is from the rounded result of float64, in ULP of it; of a 100th of the largest, if more."""
    shapes, function = FUNCTIONS[name]
    rng = np.random.default_rng(len(name))
    operands = [eager.tensor(rng.normal(size=shape)).to(dtype) for shape in shapes]
    if name in FIRST:
        operands, function = [FIRST[name](*operands)], REST[name]
    found = (graphc.compile(function) if compiled else function)(*operands)
    assert found.dtype is dtype
    exact = function(*(x.double() for x in operands)).to(dtype).double().numpy()
    unit = float(finfo(found._dtype()).eps)
    spacing = unit * 2.0 ** np.floor(np.log2(np.maximum(np.abs(exact), np.abs(exact).max() / 100)))
    return float((np.abs(found.double().numpy() - exact) / spacing).max())


@pytest.mark.parametrize("dtype", [eager.bfloat16, eager.float16], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_eager_rounds_once(name: str, dtype: Any):
    assert ulps(name, dtype, False) <= 1


@pytest.mark.deep
@pytest.mark.parametrize("dtype", [eager.bfloat16, eager.float16], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_compiled_rounds_once(name: str, dtype: Any):
    assert ulps(name, dtype, True) <= 1


def test_two_roundings_are_found():
    """A planted fault: a product that is rounded before the bias is added."""
    x, w, b = (eager.tensor(np.random.default_rng(1).normal(size=s)).bfloat16() for s in (SQUARE, SQUARE, (6,)))
    exact = F.linear(x.double(), w.double(), b.double())
    once, twice = F.linear(x, w, b), x @ w.mT + b
    assert (once.double() - exact).abs().sum() < (twice.double() - exact).abs().sum()
