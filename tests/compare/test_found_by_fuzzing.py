"""What random programs have found, each as the call that was wrong."""

from __future__ import annotations

import math
from importlib.util import find_spec

import numpy as np
import pytest
import scipy.special

import compare
import eager as torch
import graphc
from compare.declared.operations import check_ops
from compare.judging.tolerance import Verdict
from eager.engine.language import E
from tests.depth import one_in


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


def test_zeros_times_nan_are_nan_in_sums_of_products():
    def f(x):
        return (torch.zeros(2) * 1.7 * x.log()).reshape(1, 2).sum(0) * 3

    x = torch.tensor([-1.0, 2.0])
    assert math.isnan(graphc.compile(f)(x)[0]) and graphc.compile(f)(x)[1] == 0
    assert compare.check(f, x, modes=["passes"]).ok


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


WRITES = {
    "detach": lambda x: x.detach().sub_(0.5),
    "data": lambda x: x.data.mul_(2),
    "other bits": lambda x: x.view(torch.int32).bitwise_xor_(1),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
def test_the_gradient_of_a_leaf_written_without_history_is_that_of_its_new_value(write):
    def f(x):
        write(x)
        return x * x

    x = torch.tensor([1.0, -2.0], requires_grad=True)
    modes = ["graph", "passes", "compiled", "jax.grad", "finite differences"]
    modes += ["pytorch"] if find_spec("torch") else []
    report = compare.check(f, x, modes=modes)
    assert report.ok, report
    said = {finding.mode: finding.verdict for finding in report.findings}
    assert said["graph"] is said["compiled"] is Verdict.IDENTICAL
    assert said["jax.grad"] is said["finite differences"] is Verdict.NO_OPINION


def test_nobody_has_an_opinion_on_a_gradient_that_is_not_defined():
    x = torch.tensor([0.7, 1.9], requires_grad=True)
    for f in (lambda x: E.igamma(x, x), lambda x: E.special_zeta(x + 1, x)):
        report = compare.check(f, x, modes=["graph", "compiled", "jax.grad", "finite differences"])
        assert report.ok, report
        assert {f.verdict for f in report.findings if f.mode in ("jax.grad", "finite differences")} == {
            Verdict.NO_OPINION
        }


@pytest.mark.parametrize("seed", [math.inf, math.nan, 1.0])
def test_the_gradient_of_a_power_of_0_is_0(seed):
    x = torch.tensor([0.0, 2.0], requires_grad=True)
    (x**0).backward(torch.tensor([seed, seed]))
    assert x.grad.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("size", one_in(3, [3, 2, 12]))
@pytest.mark.parametrize(
    "scale", [pytest.param(0.1, marks=pytest.mark.deep), 0.6, pytest.param(1.0, marks=pytest.mark.deep), 3.0]
)
def test_exponentials_of_matrices_have_all_digits(compiled, size, scale):
    f = graphc.compile(torch.linalg.matrix_exp) if compiled else torch.linalg.matrix_exp
    x = torch.full((2, size, size), scale, dtype=torch.float64)
    x[1] = 0.0  # each matrix is scaled by itself
    exact = np.eye(size) + np.stack([np.full((size, size), np.expm1(scale * size) / size), np.zeros((size, size))])
    np.testing.assert_allclose(f(x).numpy(), exact, rtol=2e-15 * (1 + size * scale))


def test_an_exponential_that_is_infinite_or_nan_is():
    x = torch.tensor([[[1e4]], [[math.nan]], [[-1e6]], [[math.inf]]], dtype=torch.float64)
    for f in (torch.linalg.matrix_exp, graphc.compile(torch.linalg.matrix_exp)):
        found = f(x).reshape(-1).tolist()
        assert found[0] == math.inf and math.isnan(found[1]) and found[2] == 0.0 and not math.isfinite(found[3])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    "largest", [pytest.param(2.0, marks=pytest.mark.deep), 20.0, pytest.param(1000.0, marks=pytest.mark.deep)]
)
def test_incomplete_gamma_functions_are_judged_by_the_terms_of_their_exponent(dtype, largest):
    rng = np.random.default_rng(0)
    a, x = (torch.from_numpy(rng.uniform(0.0, largest, 500)).to(dtype) for _ in range(2))
    for f in (torch.igamma, torch.igammac):
        assert compare.check(f, a, x.requires_grad_(), modes=["compiled"]).ok


def test_an_exponent_jumps_where_terms_cancel_in_one_mode_only():
    def f(x):
        mantissa, exponent = torch.frexp(2 * torch.sigmoid(x) - 1)
        return torch.sigmoid(exponent.float()) + mantissa

    x = torch.tensor([-1.24e-7, 1e-9, 0.5])
    report = compare.check(f, x, modes=["compiled"])
    assert report.ok, report


def test_a_convolution_may_or_may_not_multiply_nan_with_padding():
    def f(grad, x):
        options = {"stride": (2, 1, 1), "padding": (0, 1, 0), "dilation": (1, 1, 2), "groups": 1}
        return E.conv3d_weight(grad, x, shape=(2, 1, 2, 2, 2), **options)

    grad, x = (torch.ones(shape, dtype=torch.float64) for shape in ((1, 2, 2, 4, 1), (1, 1, 4, 3, 3)))
    grad[0, 0, 0, 0, 0] = math.nan  # XLA leaves it out where it meets padding, NumPy does not
    assert compare.check(f, grad, x, modes=["graph", "compiled"]).ok


def test_a_matrix_that_is_finite_in_float32_only_takes_no_opinion_from_the_rest():
    def f(x):
        power = torch.zeros(3, 3) ** (x[0] - 2**-26 - 1.5)  # 0 ** 0 in float32, 0 ** -1.5e-8 in float64
        return torch.linalg.eigh(power)[0] * 0, torch.cos(2 * torch.cos(x))

    report = compare.check(f, torch.tensor([1.5, 0.68032336]), modes=["eager", "graph", "compiled"])
    assert report.ok, report


def test_a_backend_may_multiply_no_nan_with_padding():
    def f(grad, x, w):  # the sum is finite only if none of its terms is nan
        weights = E.conv1d_weight(grad, x, shape=(2, 3, 3), stride=(1,), padding=(0,), dilation=(1,), groups=1)
        return (weights[:, 2, :2] * w).sum()

    grad, x = torch.ones(2, 2, 3, dtype=torch.float64), torch.ones(2, 3, 5, dtype=torch.float64)
    x[1, 2, 4] = math.nan
    w = torch.ones((), dtype=torch.float64, requires_grad=True)
    for seed in range(8):
        report = compare.check(f, grad, x, w, modes=["graph", "compiled"], seed=seed)
        assert report.ok, report


def test_a_matrix_that_rounding_may_make_indefinite_is_judged():
    x = (torch.ones(8, 8) + 2e-6 * torch.eye(8)).requires_grad_()
    report = compare.check(lambda x: torch.linalg.cholesky(x).exp(), x, modes=["graph", "passes", "compiled"])
    assert report.ok, report


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("f", [torch.igamma, torch.igammac])
def test_incomplete_gamma_functions_at_their_limits(f, dtype):
    values = [-math.inf, -1.0, -0.0, 0.0, 0.5, 2.0, 30.0, math.inf, math.nan]
    a, x = (t.reshape(-1) for t in torch.meshgrid(*[torch.tensor(values, dtype=dtype)] * 2, indexing="ij"))
    torch.testing.assert_close(graphc.compile(f)(a, x), f(a, x), equal_nan=True)


def test_cotangents_of_complex_scalars_are_arrays():
    z = torch.tensor([1 + 2j, 3 - 1j]).requires_grad_()
    assert compare.check(lambda z: z[1] * 2, z, modes=["eager", "graph", "compiled"]).ok


def test_a_strided_copy_is_not_written_through():
    def f(x):
        v = E.as_strided(x, size=(3, 2), stride=(4, 1), offset=2, layout=((1, 4), 2))
        return v.sub_(v, alpha=0.25).clone(), x * 1

    assert compare.check(f, torch.ones(4, 3).requires_grad_(), modes=["eager", "graph", "compiled"]).ok


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_igamma_at_zero_is_its_limit(dtype):
    a, x = (
        torch.tensor(v, dtype=dtype) for v in ([0.0, -0.0, 0.0, 0.0, 0.0, 1.5], [0.9, 3.0, math.inf, 0.0, -1.0, 2.0])
    )
    for f, limit in ((torch.igamma, 1.0), (torch.igammac, 0.0)):
        for found in (f(a, x), graphc.compile(f)(a, x)):
            assert found[:3].tolist() == [limit] * 3
            assert found[3:5].isnan().all() and 0 < found[5].item() < 1
            assert found.dtype is dtype


def test_equal_elements_may_have_equal_errors():
    def f(x):
        # the mean of equal numbers is off or not: of what it leaves, all is positive, zero or negative
        height, width = 0.2 + 1.8 * torch.sigmoid(x[0]), 0.3 + 1.7 * torch.sigmoid(torch.ones(2))
        rows = E.standardize(torch.hypot(height, width).repeat(8)[:15].reshape(3, 5), axis=(1,), eps=1e-5)
        return torch.sigmoid(E.special_entr(rows)) * x[0]

    for seed in range(50):
        x = torch.from_numpy(-np.random.default_rng(seed).uniform(0.2, 2.0, 2).astype(np.float32)).requires_grad_()
        report = compare.check(f, x, modes=["graph"])
        assert report.ok, report


def test_nan_has_the_bits_that_a_backend_gives_it():
    def f(x):
        spread = E.avg_pool2d_spread(
            x.reshape(1, 2, 2, 2), shape=(1, 2, 4, 3), kernel=(3, 2), stride=(2, 2), padding=((0, 1), (0, 1))
        )
        first = torch.sigmoid(E.log1p(spread.reshape(-1)[0])) - 0.5
        det = E.det((first * torch.ones(2, 2) + torch.eye(2, 2) * torch.arange(2.0, 4.0)).roll(1, -2))
        bits = E.bitcast(
            16.0 * torch.sigmoid(E.special_modified_bessel_k1(det.repeat(6))) - 8, dtype=np.dtype(np.int16)
        )
        return torch.sigmoid(bits.float())

    report = compare.check(f, torch.tensor([-7.97, -1.14, 3.0, -7.97, -1.14, -7.97, -7.97, -1.14]), modes=["compiled"])
    assert report.ok, report


def test_view_as_complex_asks_for_strides_in_both_modes_and_not_in_graphs():
    def f(x):
        return torch.view_as_complex(x) * 1

    fast = graphc.compile(f)
    pairs = torch.arange(6.0).reshape(3, 2)
    for x, message in (
        (pairs, None),
        (torch.arange(6.0).reshape(2, 3).T, "a last dimension with stride 1"),
        (torch.arange(9.0).reshape(3, 3)[:, :2], "a stride divisible by 2 for all but last dimension"),
        (torch.arange(12.0).reshape(6, 2)[::2], None),
    ):
        for mode in (f, fast):
            if message is None:
                assert mode(x).tolist() == [complex(a, b) for a, b in x.tolist()]
            else:
                with pytest.raises(RuntimeError, match=message):
                    mode(x)
    graph = graphc.trace(lambda x: torch.view_as_complex(x.diagonal(dim1=2, dim2=0).reshape(3, 2)), torch.ones(3, 2, 4))
    assert graph(np.ones((3, 2, 4), np.float32)).tolist() == [1 + 1j] * 3


def test_a_simulated_run_with_values_that_a_kernel_refuses_is_judged():
    def f(x):
        row = E.standardize(x * torch.ones(3, 5), axis=(1,), eps=1e-5)
        m = torch.matmul(row[:, :3], row[:, 2:5]) * 1e5
        return torch.linalg.eigvals(torch.exp(m * 3e4)).abs()

    report = compare.check(f, torch.tensor(1.9), modes=["graph"])
    assert report.ok, report


def _parts_of_complex_written(x):
    z = torch.complex(x * 2, x * 3)
    parts = torch.view_as_real(z)
    parts[parts > 2.5] = 0.5
    return (parts.clone() * 2).sum() + (parts.reshape(-1)[:3] * 3).sum()


def _real_part_written(x):
    z = torch.complex(x, x * x)
    z.real.mul_(2)
    return (z * z).abs().sum()


def _seen_through_parts(x):
    z = torch.complex(x, x * x)
    imag = z.imag
    z.mul_(2j)
    return imag * x


def _pairs_written_as_complex(x):
    pairs = torch.stack([x, x * x], -1)
    z = torch.view_as_complex(pairs)
    z.mul_(1 + 1j)
    pairs[0].mul_(3)
    return pairs * x[0], (z * (2 - 1j)).real


@pytest.mark.parametrize(
    "f", [_parts_of_complex_written, _real_part_written, _seen_through_parts, _pairs_written_as_complex]
)
def test_writes_to_real_views_of_complex_tensors_have_gradients(f):
    x = torch.tensor([0.7, 1.2, -0.4], dtype=torch.float64, requires_grad=True)
    report = compare.check(f, x, modes=["graph", "compiled", "finite differences"], order=2)
    assert report.ok, report


def test_gradients_of_writes_to_real_views_are_pytorchs():
    a = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    parts = torch.view_as_real(torch.complex(a * 2, a * 3))
    parts[0, 0] = 0.5
    ((parts.clone() * 2).sum() + (parts.reshape(-1)[:3] * 3).sum()).backward()
    assert a.grad.tolist() == [15, 16, 10]
    assert type(parts.grad_fn).__name__ == "ViewAsRealBackward0"


def _zeros_of_sinc(x, w):
    return torch.sinc(torch.round(w)) * x


def _numbers_too_small_for_the_program(x, w):
    # two float32 are a float64 of 5e-315: not 0 in a run in float64, which casts to no float32
    tiny = E.bitcast(torch.stack([w, w * 0], -1), dtype=np.dtype("float64")).to(torch.float32)
    return x * torch.where(tiny != 0, 2.0, 3.0) + E.any(tiny, axis=(0,), keepdims=False).to(torch.float32) * x * x


def _poles_of_trigamma(x, w):
    return E.trigamma(-w) * x


def _too_small_on_the_way_back(x, w):
    return torch.sigmoid((x - x.detach()) * 1e4 - 92) * w  # sigmoid(-92) is 1.1e-40, for which float32 has 0 or that


@pytest.mark.parametrize(
    "f", [_zeros_of_sinc, _numbers_too_small_for_the_program, _poles_of_trigamma, _too_small_on_the_way_back]
)
def test_eagers_gradients_are_judged_by_what_float32_can_do(f):
    x = torch.tensor([1.2, -2.6, 3.1], requires_grad=True)
    report = compare.check(f, x, torch.tensor([1.0, 2.0, 3.0]), modes=["eager", "graph", "compiled"])
    assert report.ok, report


def test_zeta_half_way_between_negative_integers():
    s, q = torch.tensor([11.0, 31.0, 10.0, 11.0]), torch.tensor([-0.5, -0.5, -1.5, 2.5])
    torch.testing.assert_close(graphc.compile(torch.special.zeta)(s, q), torch.special.zeta(s, q))


@pytest.mark.parametrize("f", [torch.log1p, torch.atanh, lambda x: torch.special.xlog1py(1, x), torch.special.log_ndtr])
def test_logarithms_of_numbers_below_one_have_all_digits(f):
    x = torch.linspace(-0.98, 0.98, 2001, dtype=torch.float64)
    torch.testing.assert_close(graphc.compile(f)(x), f(x), rtol=4e-15, atol=1e-17)


@pytest.mark.parametrize("axis", [(1,), (0,)])  # the last axis has a way of its own
def test_gradients_of_standardized_rows_do_not_depend_on_their_mean(axis):
    def gradient(dtype, shift):
        x = (torch.linspace(-1, 1, 32, dtype=dtype).square().reshape(4, 8) + shift).requires_grad_()
        E.standardize(x, axis=axis, eps=1e-5).backward(torch.arange(32, dtype=dtype).reshape(4, 8) % 5)
        return x.grad

    narrow, exact = gradient(torch.float32, 1000.0), gradient(torch.float64, 0.0)
    torch.testing.assert_close(narrow.double(), exact, rtol=2e-3, atol=2e-3 * exact.abs().max().item())
    torch.testing.assert_close(gradient(torch.float64, 1e6), exact, rtol=1e-8, atol=1e-8)


def test_bits_of_bits():
    def f(x):
        return E.bitcast(E.bitcast(x, dtype=np.dtype("float64")), dtype=np.dtype("int16"))

    x = torch.arange(8, dtype=torch.int32).reshape(4, 2)
    assert torch.equal(graphc.compile(f)(x), f(x))


def test_bits_of_bits_for_a_function_that_runs_on_the_host():
    def f(x):
        y = E.special_scaled_modified_bessel_k1(E.bitcast(x, dtype=np.dtype("float64")))
        return y, E.bitcast(y, dtype=np.dtype("float16"))

    x = E.bitcast(torch.tensor([[0.5], [2.0], [3.0]], dtype=torch.float64), dtype=np.dtype("float16"))
    for found, expected in zip(graphc.compile(f)(x), f(x), strict=True):
        assert torch.equal(found, expected)


@pytest.mark.parametrize("name", ["hermite_polynomial_h", "hermite_polynomial_he", "legendre_polynomial_p"])
def test_polynomials_of_a_degree_beyond_the_range_of_numbers_end(name):
    x = torch.tensor([0.0, 1.5, -2.0, 3.0, math.inf] if "hermite" in name else [1.5, 3.0, -math.inf])
    n = torch.tensor([3.0, 10.0] + [2.0**62] * 3)[-len(x) :]
    found = getattr(torch.special, name)(x, n)
    assert found.isnan().tolist() == [False, False, True, True, True][-len(x) :]
    small = n < 100
    assert torch.equal(found[small], getattr(torch.special, name)(x[small], n[small]))


def _truth_of_zero(x):
    # lgamma of what is 1 but for rounding: 0 in one mode only
    return torch.all(torch.lgamma(torch.cosh(x)), 1).double()


def _order_of_a_polynomial(x):
    order = 6 * torch.sigmoid(x + 24)  # 6 in float32, and less in float64, where the logarithm is nan
    polynomial = torch.special.chebyshev_polynomial_t(torch.tensor(1.5), order)
    return torch.lgamma(1 + 1e-3 * torch.log(polynomial - 100))


@pytest.mark.parametrize(
    ("f", "x"),
    [
        (_truth_of_zero, torch.tensor([[3.75e-8, 0.33], [0.33, 3.6e-8]], dtype=torch.float64)),
        (_order_of_a_polynomial, torch.linspace(0, 1, 9)),
    ],
)
def test_decisions_that_rounding_makes(f, x):
    report = compare.check(f, x, modes=["eager", "graph", "compiled"])
    assert report.ok, report


NAN = math.nan


@pytest.mark.parametrize("rows", [[[NAN, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 1.0, 0.0]], [[1.0, 0.0], [0.0, NAN]]])
@pytest.mark.parametrize("function", [torch.linalg.inv, lambda a: torch.linalg.solve(a, torch.eye(len(a)))])
def test_a_matrix_with_nan_is_not_called_singular(rows, function):
    assert function(torch.tensor(rows)).isnan().any()
    assert graphc.compile(function)(torch.tensor(rows)).isnan().any()


def test_a_singular_matrix_still_is():
    with pytest.raises(torch.linalg.LinAlgError):
        graphc.compile(torch.linalg.inv)(torch.tensor([[1.0, 1.0], [1.0, 1.0]]))


@pytest.mark.filterwarnings("ignore:Casting complex values")
def test_complex_numbers_travel_to_callbacks_whole():
    report = compare.check_op("draw", dtypes=[np.dtype(np.complex64)], modes=["compiled"])
    assert report.ok, report


def test_a_written_input_whose_elements_repeat_is_put_back():
    def f(x):
        y = x * 2
        x.zero_()
        return y

    row = torch.tensor([1.0, 2.0])
    assert compare.check(f, row.expand(3, 2), modes=["eager", "graph", "numpy"]).ok
    assert row.tolist() == [1.0, 2.0]
