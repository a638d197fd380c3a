"""More calls for `tests.eager.function_cases`: special functions, calculus, distances, regions."""

from __future__ import annotations

ONE, TWO = ((3, 4),), ((3, 4), (4,))


def _of_one(name, prepare, *args):
    return ONE, lambda t, x: getattr(t, name)(prepare(x), *args)


def _special(name, prepare):
    return ONE, lambda t, x: getattr(t.special, name)(prepare(x))


def _polynomial(name, prepare):
    return ONE, lambda t, x: getattr(t.special, name)(prepare(x), t.tensor([0, 1, 3, 5]))


def _above(x):
    return x.exp() + 1.01


def _inside(x):
    return x.tanh() * 0.9


def _fraction(x):
    return x.sigmoid() * 0.8 + 0.1


def _same(x):
    return x


CASES = {
    **{name: _of_one(name, _same) for name in (
        "asinh", "erf", "erfc", "sinc", "i0", "deg2rad", "rad2deg", "frac", "nan_to_num", "round", "isposinf",
        "isneginf", "isreal", "signbit", "nansum", "nanmean",
    )},
    **{name: _of_one(name, _inside) for name in ("atanh", "arctanh", "erfinv")},
    **{name: _of_one(name, _above) for name in ("acosh", "arccosh", "digamma", "lgamma")},
    "sgn": _of_one("sgn", lambda x: x.detach()),  # PyTorch's gradient is a tensor that NumPy cannot read
    "logit": _of_one("logit", _fraction),
    "logit_eps": _of_one("logit", _fraction, 0.3),
    "mvlgamma": _of_one("mvlgamma", _above, 2),
    **{f"polygamma_{n}": (ONE, lambda t, x, n=n: t.polygamma(n, _above(x))) for n in (0, 1, 2, 4)},
    "polygamma_method": (ONE, lambda t, x: _above(x).polygamma(1)),
    "round_decimals": (ONE, lambda t, x: t.round(x, decimals=1)),
    "round_tens": (ONE, lambda t, x: (x * 100).round(decimals=-1)),
    "frexp": (ONE, lambda t, x: t.frexp(x)[0]),
    "frexp_exponent": (ONE, lambda t, x: t.frexp(x).exponent),
    "nan_to_num_given": (ONE, lambda t, x: t.nan_to_num((x - 1).log(), 2.0, 5.0, -5.0)),
    # of two tensors
    **{name: (TWO, lambda t, x, y, n=name: getattr(t, n)(x, y)) for name in (
        "copysign", "fmax", "fmin", "fmod", "hypot", "ldexp", "logaddexp", "logaddexp2", "nextafter",
    )},
    "copysign_number": (ONE, lambda t, x: t.copysign(x, -2.0)),
    "fmod_number": (ONE, lambda t, x: x.fmod(0.3)),
    "xlogy": (TWO, lambda t, x, y: t.xlogy(x, y.exp())),
    "xlogy_number": (ONE, lambda t, x: t.xlogy(2.0, x.exp())),
    "xlogy_by_number": (ONE, lambda t, x: t.xlogy(x, 3.0)),
    "igamma": (TWO, lambda t, x, y: t.igamma(x.detach().exp() + 0.5, y.exp())),
    "igammac": (TWO, lambda t, x, y: t.igammac(x.detach().exp() + 0.5, y.exp())),
    "isin": (ONE, lambda t, x: t.isin((x * 2).round(), t.tensor([0.0, 1.0, -2.0]).to(x.dtype))),
    "float_power_tensors": (TWO, lambda t, x, y: t.float_power(x.exp(), y)),
    # torch.special
    **{f"special_{name}": _special(name, _same) for name in (
        "i0e", "i1", "i1e", "ndtr", "log_ndtr", "erfcx", "expit", "bessel_j0", "bessel_j1", "modified_bessel_i0",
        "modified_bessel_i1", "spherical_bessel_j0",
    )},
    **{f"special_{name}": _special(name, _above) for name in (
        "entr", "psi", "gammaln", "bessel_y0", "bessel_y1", "modified_bessel_k0", "modified_bessel_k1",
        "scaled_modified_bessel_k0", "scaled_modified_bessel_k1",
    )},
    "special_ndtri": _special("ndtri", _fraction),
    "special_logsumexp": (ONE, lambda t, x: t.special.logsumexp(x, 1)),
    "special_zeta": (TWO, lambda t, x, y: t.special.zeta(_above(x.detach()), _above(y))),
    "special_zeta_number": (ONE, lambda t, x: t.special.zeta(3.0, _above(x))),
    "special_xlog1py": (TWO, lambda t, x, y: t.special.xlog1py(x, y.exp())),
    **{f"special_{name}": _polynomial(name, lambda x: x.tanh()) for name in (
        "chebyshev_polynomial_t", "chebyshev_polynomial_u", "chebyshev_polynomial_v", "chebyshev_polynomial_w",
        "hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p",
    )},
    **{f"special_shifted_{k}": _polynomial(f"shifted_chebyshev_polynomial_{k}", lambda x: x.sigmoid()) for k in "tuvw"},
    # calculus
    "diff": (ONE, lambda t, x: t.diff(x)),
    "diff_twice": (ONE, lambda t, x: x.diff(n=2, dim=0)),
    "diff_ends": (((3, 4), (3, 1), (3, 2)), lambda t, x, a, b: t.diff(x, prepend=a, append=b)),
    "trapezoid": (ONE, lambda t, x: t.trapezoid(x, dx=0.5)),
    "trapezoid_points": (TWO, lambda t, y, x: t.trapezoid(y, x)),
    "trapz_first": (((3, 4), (3, 4)), lambda t, y, x: t.trapz(y, x, dim=0)),
    "cumulative_trapezoid": (ONE, lambda t, x: t.cumulative_trapezoid(x, dim=0)),
    "cumulative_trapezoid_points": (TWO, lambda t, y, x: t.cumulative_trapezoid(y, x)),
    "gradient": (ONE, lambda t, x: t.gradient(x)[1]),
    "gradient_edges": (((3, 5),), lambda t, x: t.gradient(x, spacing=0.5, dim=1, edge_order=2)[0]),
    "gradient_points": (
        ((5, 3),), lambda t, x: t.gradient(x, spacing=(t.tensor([0.0, 1.0, 3.0, 4.0, 7.0]).to(x.dtype),), dim=0)[0]),
    "gradient_points_edges": (
        ((5, 3),),
        lambda t, x: t.gradient(
            x, spacing=(t.tensor([0.0, 1.0, 3.0, 4.0, 7.0]).to(x.dtype),), dim=0, edge_order=2)[0],
    ),
    # distances and products
    **{f"dist_{p}": (TWO, lambda t, x, y, p=p: t.dist(x, y, p)) for p in (1, 2, 3, float("inf"))},
    "dist_0": (TWO, lambda t, x, y: t.dist(x.detach(), y.detach(), 0)),  # PyTorch has no gradient, and says so badly
    **{f"cdist_{p}": (((2, 3, 4), (5, 4)), lambda t, x, y, p=p: t.cdist(x, y, p))
       for p in (0, 1, 2, 2.5, float("inf"))},
    "cdist_products": (
        ((3, 4), (5, 4)), lambda t, x, y: t.cdist(x, y, compute_mode="use_mm_for_euclid_dist")),
    **{f"renorm_{p}": (ONE, lambda t, x, p=p: t.renorm(x, p, 0, 1.0)) for p in (1, 2, 3, float("inf"))},
    "vdot": (((4,), (4,)), lambda t, x, y: t.vdot(x, y)),
    "cross": (((4, 3), (1, 3)), lambda t, x, y: t.cross(x, y, dim=1)),
    "cross_first": (((3, 4), (3, 4)), lambda t, x, y: x.cross(y, dim=0)),
    "cov": (ONE, lambda t, x: t.cov(x)),
    "cov_vector": (((5,),), lambda t, x: t.cov(x, correction=0)),
    "cov_weights": (
        ((3, 4), (4,)), lambda t, x, a: x.cov(fweights=t.tensor([1, 2, 3, 1]), aweights=a.exp())),
    "corrcoef": (((3, 6),), lambda t, x: x.corrcoef()),
    # regions
    "select_scatter": (((3, 4), (4,)), lambda t, x, y: t.select_scatter(x, y, 0, -1)),
    "slice_scatter": (((5, 4), (2, 4)), lambda t, x, y: x.slice_scatter(y, 0, 1, 5, 2)),
    "diagonal_scatter": (((3, 4), (3,)), lambda t, x, y: t.diagonal_scatter(x, y, 1)),
    "diagonal_scatter_batch": (((2, 3, 4), (2, 2)), lambda t, x, y: x.diagonal_scatter(y, -1, -2, -1)),
    "narrow_copy": (ONE, lambda t, x: x.narrow_copy(1, 1, 2)),
    "split_with_sizes": (ONE, lambda t, x: t.split_with_sizes(x, [1, 3], 1)[1]),
    "sum_to_size": (((2, 3, 4),), lambda t, x: x.sum_to_size(3, 1)),
    "sum_to_number": (ONE, lambda t, x: x.sum_to_size(())),
    # reductions
    "aminmax": (ONE, lambda t, x: sum(t.aminmax(x))),
    "aminmax_dim": (ONE, lambda t, x: x.aminmax(dim=1, keepdim=True).max),
    "nansum_of_nan": (ONE, lambda t, x: t.nansum(x.log(), 1)),
    "nanmean_of_nan": (ONE, lambda t, x: t.where(x > 2, float("nan"), x).nanmean(0, keepdim=True)),
}  # fmt: skip
