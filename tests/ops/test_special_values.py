"""Signed zeros, infinities and nan: PyTorch's results, recorded for the cases where NumPy's or XLA's differ."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphc.ops import OPS, Op
from graphc.ops.dtypes import FLOAT32
from graphc.ops.rules import integral
from tests.ops import checks
from tests.oracle import asked_of_torch, torch_function, torch_or_skip

NAN, INF = float("nan"), float("inf")
# op, operands, PyTorch's result
RECORDED: list[tuple[str, tuple[float, ...], float]] = [
    ("maximum", (0.0, -0.0), 0.0), ("maximum", (-0.0, 0.0), -0.0),
    ("maximum", (NAN, 1.0), NAN), ("maximum", (1.0, NAN), NAN),
    ("minimum", (0.0, -0.0), 0.0), ("minimum", (-0.0, 0.0), -0.0),
    ("minimum", (NAN, 1.0), NAN), ("minimum", (1.0, NAN), NAN),
    ("relu", (-0.0,), -0.0), ("relu", (NAN,), NAN), ("relu", (-INF,), 0.0),
    ("sign", (NAN,), 0.0), ("sign", (-0.0,), 0.0), ("sign", (-INF,), -1.0),
    ("add", (-0.0, 0.0), 0.0), ("add", (-0.0, -0.0), -0.0), ("abs", (-0.0,), 0.0), ("sqrt", (-0.0,), -0.0),
    ("sqrt", (-1.0,), NAN), ("log", (0.0,), -INF), ("reciprocal", (-0.0,), -INF), ("rsqrt", (0.0,), INF),
    ("round", (0.5,), 0.0), ("round", (1.5,), 2.0), ("round", (-0.4,), -0.0), ("pow", (NAN, 0.0), 1.0),
    ("pow", (1.0, NAN), 1.0), ("pow", (-1.0, INF), 1.0), ("pow", (0.0, 0.0), 1.0), ("remainder", (-1.0, 3.0), 2.0),
    ("remainder", (1.0, -3.0), -2.0), ("remainder", (1.0, 0.0), NAN), ("floor_divide", (1.0, 0.0), INF),
    ("floor_divide", (-1.0, 3.0), -1.0), ("softplus", (1000.0,), 1000.0), ("softplus", (-1000.0,), 0.0),
    ("sigmoid", (-1000.0,), 0.0), ("sigmoid", (1000.0,), 1.0), ("tanh", (INF,), 1.0),
    ("atan2", (0.0, -0.0), 3.141592653589793),
]  # fmt: skip
# no denormals: PyTorch's own functions differ in whether they flush them
VALUES = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -2.5, INF, -INF, NAN, 1e-30, 3e38)
# where PyTorch's float32 kernel is the one that is wrong
INEXACT_IN_PYTORCH = {
    ("logaddexp2", -1.0, -1.0), ("special_airy_ai", -2.5), *(("igammac", 1e-30, x) for x in (1.0, 0.5, 1e-30)),
    *(("special_zeta", s, q) for s, q in ((INF, 3e38), (3e38, 3e38))),
}  # fmt: skip
FLOATING = [op for op in OPS.values() if op.pointwise and op.rule.promote and op.rule.infer is not integral.infer]


def same(a: Any, b: Any) -> bool:
    """Equal, with nan equal to nan and 0.0 not to -0.0."""
    return bool(np.array_equal(a, b, equal_nan=True) and np.array_equal(np.signbit(a), np.signbit(b)))


@pytest.mark.parametrize(("name", "operands", "expected"), RECORDED)
def test_recorded_value(name: str, operands: tuple[float, ...], expected: float):
    found = checks.evaluate(OPS[name], [np.array(x) for x in operands], {})
    assert same(np.abs(found) if np.isnan(expected) else found, np.abs(expected) if np.isnan(expected) else expected)


@asked_of_torch("op", [op for op in FLOATING if not op.rule.first], ids=lambda op: op.name)
def test_special_values_are_pytorchs(op: Op):
    torch = torch_or_skip()
    function = torch_function(op.name)
    values = np.array(VALUES, FLOAT32)
    arrays = [values] if len(op.args) == 1 else [a.ravel() for a in np.meshgrid(values, values)]
    # one element at a time: PyTorch's vectorized loops differ from its scalar ones in the sign of zero
    expected = [function(*map(torch.tensor, operands)).item() for operands in zip(*arrays, strict=True)]
    found = checks.evaluate(op, arrays, {})
    differing = [
        f"{op.name}({', '.join(str(a[i]) for a in arrays)}) is {found[i]}, in PyTorch {expected[i]}"
        for i in range(found.size)
        if not _agree(found[i], expected[i]) and not _excused(op.name, [float(a[i]) for a in arrays])
    ]
    assert not differing, "\n".join(differing)


def _excused(name: str, operands: list[float]) -> bool:
    if "polynomial" in name and np.isnan(operands[0]):  # PyTorch's vectorized loops give any number
        return True
    return any(name == n and np.allclose(operands, at, rtol=1e-6, atol=0) for n, *at in INEXACT_IN_PYTORCH)


def _agree(a: Any, b: Any) -> bool:
    if np.isnan(a) or np.isnan(b) or not a or not b or np.isinf(a) or np.isinf(b):
        return same(np.abs(a), np.abs(b)) if np.isnan(a) and np.isnan(b) else same(a, b)
    return bool(np.isclose(float(a), float(b), rtol=2e-6, atol=0))


KINKS = [pytest.param(op, kink, id=f"{op.name}-{kink.at}") for op in OPS.values() for kink in op.kinks]


@asked_of_torch(("op", "kink"), KINKS)
def test_declared_subgradient_is_pytorchs(op: Op, kink: Any):
    torch = torch_or_skip()
    live = [op.arg_of(k) in op.vjp for k in range(len(kink.at))]
    pairs = zip(kink.at, live, strict=True)
    operands = [torch.tensor(x, dtype=torch.float64, requires_grad=flag) for x, flag in pairs]
    torch_function(op.name)(*operands).backward()
    found = [x.grad.item() if flag else 0.0 for x, flag in zip(operands, live, strict=True)]
    np.testing.assert_array_equal(found, kink.grads)
