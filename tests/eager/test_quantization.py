"""Rounding to few bits: values and gradients are PyTorch's in both modes."""

from __future__ import annotations

import re
from typing import Any

import pytest

import compare
import eager
from tests.oracle import torch_or_skip

# call -> the values and the gradient of the sum of squares, recorded from PyTorch 2.13
RECORDED = {
    "t.fake_quantize_per_tensor_affine(x, 0.1, 3, -8, 7)": (
        [-1.1, -1.1, -0.8, 0.2, 0.4, 0.4], [-0.0, -0.0, -1.6, 0.4, 0.0, 0.0],
    ),
    "t.fake_quantize_per_channel_affine(x.view(3, 2), t.tensor([0.1, 0.2, 0.5]), z, 0, -4, 5)": (
        [-0.4, -0.4, -0.8, 0.2, 1.5, 1.5], [-0.0, -0.0, -1.6, 0.4, 3.0, 0.0],
    ),
}  # fmt: skip
WRONG = {
    "t.fake_quantize_per_tensor_affine(x, 0.1, 30, -8, 7)": "`zero_point` must be between `quant_min` and `quant_max`.",
    "t.fake_quantize_per_tensor_affine(x, 0.1, 3, 8, 7)": "`quant_min` should be less than or",
    "t.fake_quantize_per_channel_affine(x, t.ones(2), z, 0, 0, 3)": "dimensions of scale and zero-point are not",
    "t.fake_quantize_per_channel_affine(x, t.ones(2, 2), z, 0, 0, 3)": "scale should be a 1-D tensor",
    "t.fake_quantize_per_channel_affine(x, t.ones(6), t.zeros(6).long(), 0, 0, 3)": "Zero-point must be Int32",
    "t.fake_quantize_per_tensor_affine(x.long(), 0.1, 3, -8, 7)": "not implemented for 'Long'",
}


def run(t: Any, call: str) -> tuple[list[float], list[float]]:
    x = t.tensor([-3.0, -1.4, -0.75, 0.25, 1.3, 3.0], requires_grad=True)
    y = eval(call, {"t": t, "x": x, "z": t.tensor([0, 1, 2], dtype=t.int32)})
    (y * y).sum().backward()
    return [*y.flatten().tolist()], [*x.grad.tolist()]


@pytest.mark.parametrize("call", RECORDED)
def test_values_and_gradients(call: str) -> None:
    values, gradient = run(eager, call)
    assert values == pytest.approx(RECORDED[call][0]) and gradient == pytest.approx(RECORDED[call][1])
    assert (values, gradient) == run(torch_or_skip(), call)


def test_infinities_are_bounded_and_have_no_gradient() -> None:
    x = eager.tensor([eager.inf, -eager.inf, 0.0], requires_grad=True)
    y = eager.fake_quantize_per_tensor_affine(x, eager.tensor(0.1), eager.tensor(0, dtype=eager.int32), -8, 7)
    y.sum().backward()
    assert y.tolist() == pytest.approx([0.7, -0.8, 0.0]) and x.grad is not None and x.grad.tolist() == [0.0, 0.0, 1.0]


@pytest.mark.parametrize("call", WRONG)
def test_wrong_arguments(call: str) -> None:
    with pytest.raises((RuntimeError, NotImplementedError), match=re.escape(WRONG[call])):
        run(eager, call)


def test_both_modes() -> None:
    def step(x: Any, w: Any) -> Any:
        rounded = eager.fake_quantize_per_channel_affine(w, w.detach().abs().amax(1) / 7, zeros, 0, -8, 7)
        return (eager.fake_quantize_per_tensor_affine(x, 0.05, 0, -128, 127) @ rounded).square().mean()

    zeros = eager.zeros(3, dtype=eager.int32)
    x, w = eager.randn(4, 3), eager.randn(3, 5, requires_grad=True)
    report = compare.check(step, x, w, modes=["graph", "compiled"])
    assert report.ok, report
