"""What random programs have found, each as the call that was wrong."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.special

import compare
import eager as torch
import graphc
from compare.declared.operations import check_ops
from compare.judging.tolerance import Verdict
from eager.language import E


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_sigmoid_has_all_digits_where_it_is_small(dtype):
    x = torch.linspace(-80.0, 80.0, 400, dtype=dtype)
    exact = [1 / (1 + math.exp(-v)) for v in x.tolist()]
    np.testing.assert_allclose(torch.sigmoid(x).numpy(), exact, rtol=20 * torch.finfo(dtype).eps)
    assert torch.sigmoid(torch.tensor([-1000.0, -math.inf, math.inf])).tolist() == [0.0, 0.0, 1.0]
    assert torch.sigmoid(torch.tensor(-40.0)).item() == pytest.approx(math.exp(-40), rel=1e-5)


@pytest.mark.parametrize("shapes", [((2, 2, 2), (3, 3)), ((3, 3), (2, 2)), ((2, 3), (2, 1))])
def test_triangular_systems_of_shapes_that_do_not_fit_are_refused(shapes):
    a, b = map(torch.ones, shapes)
    with pytest.raises(RuntimeError, match="solve_triangular"):
        E.solve_triangular(a, b, upper=True, unit=False)


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("compiled", [False, True])
def test_a_gradient_that_is_nan_or_infinite_reaches_the_maximum_of_a_pool_only(dims, compiled):
    x = torch.arange(1.0, 1.0 + 4**dims).reshape(1, 1, *[4] * dims).requires_grad_()
    pool = getattr(torch.nn.functional, f"max_pool{dims}d")

    def step(x, g):
        pool(x, 2).backward(g)
        return x.grad

    for value in (math.nan, math.inf, -1.0):
        x.grad = None
        found = (graphc.compile(step) if compiled else step)(x, torch.full([1, 1] + [2] * dims, value)).numpy()
        last = found[(0, 0, *[slice(1, None, 2)] * dims)]
        assert np.array_equal(last, np.full_like(last, value), equal_nan=True)
        assert np.count_nonzero(found) == last.size and not np.signbit(found[found == 0]).any()


def test_ops_on_integers_are_checked_on_integers():
    report = check_ops(["gcd", "bitwise_left_shift", "integer_pow"], ["graph"])
    assert all(f.verdict is Verdict.IDENTICAL and f.what != "exception" for _, r in report.reports for f in r.findings)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_compiled_erfcx_and_log_ndtr_where_erfc_is_denormal(dtype):
    x = torch.cat([torch.linspace(-4.0, 40.0, 3001, dtype=dtype), torch.tensor([1e5, math.inf], dtype=dtype)])
    erfcx, log_ndtr = graphc.compile(lambda x: (torch.special.erfcx(x), torch.special.log_ndtr(-x)))(x)
    eps = torch.finfo(dtype).eps
    np.testing.assert_allclose(erfcx.numpy(), scipy.special.erfcx(x.double().numpy()), rtol=200 * eps, atol=0)
    np.testing.assert_allclose(log_ndtr.numpy(), scipy.special.log_ndtr(-x.double().numpy()), rtol=200 * eps, atol=0)


@pytest.mark.parametrize("mask", [True, torch.tensor(True)])
def test_a_mask_of_no_dims_writes_to_a_tensor_of_no_dims(mask):
    x = torch.tensor(1.2, requires_grad=True)
    y = x * 2
    y[mask] = 0.5
    assert y.item() == 0.5
    (y * 3).backward()
    assert x.grad.item() == 0.0


I0E, NORM, COMPLEX = (
    lambda x: E.expm1(E.special_i0e(x)),
    lambda x: E.abs(E.power_norm(x.reshape(1, 1), order=3.0, axis=(0, 1))),
    lambda x: E.complex(x, x).real,
)
HALF, BRAIN = torch.float16, torch.bfloat16


@pytest.mark.parametrize("dtype, function", [(HALF, I0E), (BRAIN, I0E), (HALF, NORM), (BRAIN, NORM), (HALF, COMPLEX)])
def test_gradients_of_16_bit_scalars_are_of_16_bits(dtype, function):
    x = torch.tensor(0.5, dtype=dtype, requires_grad=True)
    assert compare.check(function, x).ok
    function(x).sum().backward()
    assert x.grad.dtype is dtype
