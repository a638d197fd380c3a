"""Functions of complex numbers, compiled, on both sides of their cuts: the sign of a zero says which."""

import numpy as np
import pytest

import eager as torch
import graphc

ZEROS, ONES = (-0.0, 0.0), (-2.0, -0.5, 0.5, 2.0)
POINTS = [complex(*pair) for x in ONES for zero in ZEROS for pair in ((x, zero), (zero, x))]


@pytest.mark.parametrize("name", ["sqrt", "rsqrt", "asin", "acos", "asinh", "acosh", "log", "atanh", "atan"])
def test_side_of_the_cut(name: str):
    z = torch.from_numpy(np.array(POINTS, np.complex64))
    function = getattr(torch, name)
    np.testing.assert_allclose(graphc.compile(function)(z).numpy(), function(z).numpy(), rtol=1e-5, atol=1e-5)
