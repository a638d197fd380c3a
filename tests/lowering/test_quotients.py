"""Quotients of complex numbers, compiled, of zeros and infinities of all signs: those of eager mode."""

import numpy as np
import pytest

import compare
import eager as torch
import graphc

PARTS = np.array([0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan], np.float32)
NUMBERS = np.array([complex(x, y) for x in PARTS for y in PARTS], np.complex64)
PAIRS = [torch.from_numpy(np.ascontiguousarray(a.ravel())) for a in np.broadcast_arrays(NUMBERS[:, None], NUMBERS)]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_of_zeros_and_infinities():
    found, expected = graphc.compile(torch.div)(*PAIRS), torch.div(*PAIRS)
    for a, b in ((found.real, expected.real), (found.imag, expected.imag)):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-6)
        said = ~np.isnan(b.numpy())
        assert (np.signbit(a.numpy()) == np.signbit(b.numpy()))[said].all()


@pytest.mark.parametrize("function", [torch.reciprocal, torch.rsqrt], ids=["reciprocal", "rsqrt"])
def test_no_difference_is_called_a_bug(function):
    assert compare.check(function, torch.from_numpy(NUMBERS), modes=["compiled"]).ok


def test_the_gradient_of_jax_is_that_of_the_rules():
    x, y = (torch.tensor([1 + 2j, -3 + 0.5j, 2 - 1j], requires_grad=True) for _ in "xy")
    assert compare.check(lambda x, y: torch.view_as_real(x / (y * y)).sum(), x, y, modes=["compiled", "jax.grad"]).ok
