"""Every public function, compiled: values, dtypes and gradients are eager's."""

from __future__ import annotations

import numpy as np
import pytest

import eager
import eager.nn.functional
import graphc
from tests.depth import one_in
from tests.eager.function_cases import CASES

pytestmark = pytest.mark.on_numpy

# They read a mask's values to find the shape of the result, which a graph cannot: a clear error instead.
NEEDS_VALUES = {name for name in CASES if "mask" in name and "fill" not in name and "scatter" not in name}


def gradients(function, arrays, compiled):
    """The result and the gradients of a seeded weighting of it."""
    tensors = [eager.tensor(a, requires_grad=True) for a in arrays]

    def f(*tensors):
        return function(eager, *tensors)

    result = (graphc.compile(f) if compiled else f)(*tensors)
    if not result.requires_grad:
        return result, [None] * len(tensors)
    weights = np.random.default_rng(0).normal(size=tuple(result.shape)).astype(result.detach().numpy().dtype)
    return result, eager.autograd.grad((result * eager.tensor(weights)).sum(), tensors, allow_unused=True)


@pytest.mark.parametrize("name", one_in(12, CASES))  # tests/samples compiles them all
def test_compiled_function_is_eagers(name):
    shapes, function = CASES[name]
    rng = np.random.default_rng(1)
    arrays = [rng.uniform(0.2, 1.5, shape).astype(np.float32) for shape in shapes]
    try:
        got, got_grads = gradients(function, arrays, True)
    except graphc.errors.CaptureError as refused:
        assert name in NEEDS_VALUES, refused
        return
    expected, expected_grads = gradients(function, arrays, False)
    assert got.dtype is expected.dtype and got.shape == expected.shape
    np.testing.assert_allclose(got.detach().numpy(), expected.detach().numpy(), rtol=2e-5, atol=1e-6)
    for g, e in zip(got_grads, expected_grads, strict=True):
        assert (g is None) == (e is None)
        if g is not None:
            np.testing.assert_allclose(g.numpy(), e.numpy(), rtol=2e-4, atol=2e-5)
