"""All distributions: as PyTorch's, where it is installed; as SciPy's, and by finite differences; and compiled."""

from __future__ import annotations

import copy
import inspect
import pickle
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.stats

import eager as torch
import graphc
from tests.depth import one_in
from tests.distributions.cases import CASES, Case
from tests.distributions.observed import Parameters, answer, observed, same
from tests.oracle import asked_of_torch, torch_or_skip

d = torch.distributions
NAMES = [case.name for case in CASES]
BY_NAME = dict(zip(NAMES, CASES, strict=True))

# (case, question): why the answer is not PyTorch's
_MIXED = "PyTorch compares a float64 concentration with a float32 zero, and raises"
_WRITTEN = "PyTorch writes to what its own gradient needs, and raises"
DEVIATIONS = {
    **{("GeneralizedPareto-0", question): _MIXED
       for question in ("log_prob", "gradients of log_prob", "cdf", "gradients of cdf", "expanded")},
    **{(f"Wishart-{k}", "gradients of rsample"): _WRITTEN for k in range(3)},
    ("Wishart-1", "gradients of log_prob"): "PyTorch's gradient of cholesky_solve has elements above the diagonal, "
    "which are not read",
}  # fmt: skip


def _case(name: str) -> Case:
    return BY_NAME[name]


@asked_of_torch("name", NAMES)
def test_every_answer_is_that_of_torch(name: str):
    ours, theirs = observed(torch, _case(name)), observed(torch_or_skip(), _case(name))
    wrong = {q: (ours.get(q), theirs[q]) for q in theirs if not same(ours.get(q), theirs[q])}
    expected = {question for case, question in DEVIATIONS if case == name}
    assert set(wrong) == expected, wrong


@asked_of_torch("name", one_in(3, NAMES))
def test_samples_in_float32_are_those_of_torch(name: str):
    ours, theirs = (observed(t, _case(name), "float32").get("sample") for t in (torch, torch_or_skip()))
    assert same(ours, theirs), (ours, theirs)


def test_a_wrong_answer_is_noticed(monkeypatch: pytest.MonkeyPatch):
    """The comparison can fail: by a value, by a gradient, by one number drawn too many."""
    oracle = torch_or_skip()
    right = observed(oracle, _case("Normal-0"))
    sound = d.Normal.log_prob
    monkeypatch.setattr(d.Normal, "log_prob", lambda self, x: sound(self, x) + 1e-6 * self.scale.detach())
    assert not same(observed(torch, _case("Normal-0"))["log_prob"], right["log_prob"])
    monkeypatch.setattr(d.Normal, "log_prob", lambda self, x: sound(self, x.detach()))
    question = "gradients of log_prob"
    assert not same(observed(torch, _case("Normal-0"))[question], right[question])
    drawn = d.Normal.sample
    monkeypatch.setattr(d.Normal, "sample", lambda self, shape=(): (drawn(self, shape), torch.rand(1))[0])
    assert not same(observed(torch, _case("Normal-0"))["sample"], right["sample"])


def test_names_and_signatures_are_those_of_torch():
    oracle = torch_or_skip().distributions
    for ours, theirs in [(d, oracle), *((getattr(d, m), getattr(oracle, m)) for m in ("constraints", "transforms"))]:
        assert set(theirs.__all__) == set(ours.__all__)
        for name in theirs.__all__:
            mine, its = getattr(ours, name), getattr(theirs, name)
            if inspect.isclass(its):
                assert list(inspect.signature(mine).parameters) == list(inspect.signature(its).parameters), name
    assert set(oracle.utils.__all__) == set(d.utils.__all__)


# --- without PyTorch

# class -> SciPy's, frozen with the parameters of our cases
_SCIPY = {
    "Beta": lambda p: scipy.stats.beta(p["concentration1"], p["concentration0"]),
    "Binomial": lambda p: scipy.stats.binom(p["total_count"], p["probs"]),
    "Cauchy": lambda p: scipy.stats.cauchy(p["loc"], p["scale"]),
    "Chi2": lambda p: scipy.stats.chi2(p["df"]),
    "Exponential": lambda p: scipy.stats.expon(scale=1 / np.asarray(p["rate"])),
    "FisherSnedecor": lambda p: scipy.stats.f(p["df1"], p["df2"]),
    "Gamma": lambda p: scipy.stats.gamma(p["concentration"], scale=1 / np.asarray(p["rate"])),
    "GeneralizedPareto": lambda p: scipy.stats.genpareto(p["concentration"], p["loc"], p["scale"]),
    "Gumbel": lambda p: scipy.stats.gumbel_r(p["loc"], p["scale"]),
    "HalfCauchy": lambda p: scipy.stats.halfcauchy(scale=p["scale"]),
    "HalfNormal": lambda p: scipy.stats.halfnorm(scale=p["scale"]),
    "InverseGamma": lambda p: scipy.stats.invgamma(p["concentration"], scale=p["rate"]),
    "Laplace": lambda p: scipy.stats.laplace(p["loc"], p["scale"]),
    "LogNormal": lambda p: scipy.stats.lognorm(p["scale"], scale=np.exp(p["loc"])),
    "Normal": lambda p: scipy.stats.norm(p["loc"], p["scale"]),
    "Pareto": lambda p: scipy.stats.pareto(p["alpha"], scale=p["scale"]),
    "Poisson": lambda p: scipy.stats.poisson(p["rate"]),
    "StudentT": lambda p: scipy.stats.t(p["df"], p.get("loc", 0), p.get("scale", 1)),
    "Uniform": lambda p: scipy.stats.uniform(p["low"], np.subtract(p["high"], p["low"])),
    "VonMises": lambda p: scipy.stats.vonmises(p["concentration"], p["loc"]),
    "Weibull": lambda p: scipy.stats.weibull_min(p["concentration"], scale=p["scale"]),
}
OF_SCIPY = [name for name in NAMES if name.partition("-")[0] in _SCIPY and "logits" not in _case(name).inputs]


@pytest.mark.parametrize("name", OF_SCIPY)
def test_densities_and_moments_are_those_of_scipy(name: str):
    case = _case(name)
    theirs = _SCIPY[name.partition("-")[0]]({k: np.asarray(v) for k, v in case.inputs.items()})
    with torch.no_grad():
        ours = case.build(d, lambda values: torch.tensor(values, dtype=torch.float64))
        torch.manual_seed(0)
        value = ours.sample((3,))
        x = value.numpy().astype(np.float64)
        density = theirs.logpmf if hasattr(theirs, "pmf") and ours.support.is_discrete else theirs.logpdf
        tolerance = 1e-6 if name.startswith("VonMises") or value.dtype == torch.float32 else 1e-9
        np.testing.assert_allclose(ours.log_prob(value).numpy(), density(x), rtol=50 * tolerance, atol=50 * tolerance)
        if not name.startswith("VonMises"):  # whose moments are circular
            mean, variance = (np.broadcast_to(m, ours.batch_shape) for m in theirs.stats("mv"))
            known = np.isfinite(mean) & np.isfinite(variance) & np.isfinite(ours.variance.numpy())
            np.testing.assert_allclose(ours.mean.numpy()[known], mean[known], rtol=1e-5)
            np.testing.assert_allclose(ours.variance.numpy()[known], variance[known], rtol=1e-5)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            cdf = answer(lambda: ours.cdf(value))
        if isinstance(cdf, np.ndarray):
            np.testing.assert_allclose(cdf, theirs.cdf(x), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", [n for n in OF_SCIPY if not n.endswith("-1")])
def test_samples_have_the_distribution(name: str):
    case = _case(name)
    theirs = _SCIPY[name.partition("-")[0]]({k: np.asarray(v) for k, v in case.inputs.items()})
    torch.manual_seed(1)
    with torch.no_grad():
        ours = case.build(d, Parameters(torch))
        drawn = ours.sample((400,)).numpy().astype(np.float64)
    chances = theirs.cdf(drawn)
    if ours.support.is_discrete:  # uniform between the probabilities below and up to it
        low = theirs.cdf(drawn - 1)
        chances = low + (chances - low) * np.random.default_rng(0).uniform(size=drawn.shape)
    for column in chances.reshape(400, -1).T:
        if column.std() > 0:
            assert scipy.stats.kstest(column % 1, "uniform").pvalue > 1e-4


# at the edge of the parameters, or a matrix of which only one triangle is read
_EDGES = {
    "Bernoulli-4",
    "Binomial-3",
    "Geometric-4",
    "NegativeBinomial-2",
    "Poisson-2",
    "MultivariateNormal-0",
    "MultivariateNormal-2",
}
DIFFERENTIABLE = [n for n in NAMES if n not in _EDGES and n.partition("-")[0] not in ("Wishart", "LKJCholesky")]


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_of_densities_are_finite_differences(name: str):
    make = Parameters(torch)
    case = _case(name)
    first = case.build(d, make)
    torch.manual_seed(0)
    value = first.sample((2,)).detach()
    leaves = [p.detach().clone().requires_grad_() for p in make.made]
    if not leaves:
        return

    def density(*parameters: Any) -> Any:
        given = iter(parameters)
        return case.build(d, lambda _: next(given)).log_prob(value)

    with _unchecked():  # steps lead off the simplex
        if torch.isfinite(density(*leaves)).all():
            assert torch.autograd.gradcheck(density, leaves, eps=1e-6, atol=1e-4, rtol=1e-4, raise_exception=True)


class _unchecked:
    def __enter__(self) -> None:
        d.Distribution.set_default_validate_args(False)

    def __exit__(self, *error: object) -> None:
        d.Distribution.set_default_validate_args(True)


@pytest.mark.parametrize("name", NAMES)
def test_copies_and_pickles_are_alike(name: str):
    original = _case(name).build(d, lambda values: torch.tensor(values, dtype=torch.float64))
    text = repr(original)
    for other in (copy.deepcopy(original), pickle.loads(pickle.dumps(original))):
        assert repr(other) == text
        torch.manual_seed(0)
        expected = original.sample((2,))
        torch.manual_seed(0)
        assert torch.equal(other.sample((2,)), expected)


# --- compiled


@pytest.mark.on_numpy
@pytest.mark.parametrize("name", one_in(3, NAMES))
def test_compiled_programs_draw_and_differentiate_alike(name: str):
    case = _case(name)
    make = Parameters(torch)
    has_rsample = case.build(d, make).has_rsample
    leaves = [p.detach().clone().requires_grad_() for p in make.made]

    def program(*parameters: Any) -> Any:
        given = iter(parameters)
        distribution = case.build(d, lambda _: next(given))
        value = distribution.rsample((2,)) if has_rsample else distribution.sample((2,))
        return value, distribution.log_prob(value.detach()), torch.rand(2)

    compiled = graphc.compile(program, backend="numpy")
    for seed in range(3):  # programs that read no value are traced once
        results = []
        for function in (program, compiled):
            torch.manual_seed(seed)
            value, density, after = function(*leaves)
            total = density.sum() + (value.sum() if has_rsample else 0)
            slopes = torch.autograd.grad(total, leaves, allow_unused=True) if leaves and total.requires_grad else ()
            results.append([r.detach().numpy() for r in (value, density, after, *[s for s in slopes if s is not None])])
        for ours, expected in zip(*results, strict=True):
            tolerance = 1e-4 if expected.dtype == np.float32 else 1e-7
            np.testing.assert_allclose(ours, expected, rtol=tolerance, atol=tolerance)


def test_the_state_of_the_generator_goes_through_a_program():
    """Draws before, of and after a sampler by rejection; and after the call."""

    def program(a: Any) -> Any:
        return torch.randn(3), torch._standard_gamma(a), torch.rand(2), torch.poisson(5 * a), torch.randn(20)

    compiled = graphc.compile(program)
    for seed in range(3):
        a = torch.tensor([0.3, 1.0, 7.0]) * (1 + seed)
        torch.manual_seed(seed)
        expected = [*program(a), torch.get_rng_state()]
        torch.manual_seed(seed)
        found = [*compiled(a), torch.get_rng_state()]
        for ours, theirs in zip(found, expected, strict=True):
            assert torch.equal(ours, theirs)


@pytest.mark.on_numpy
def test_bad_parameters_and_values_raise_in_programs():
    compiled = graphc.compile(lambda loc, scale, x: d.Normal(loc, scale).log_prob(x), backend="numpy")
    one = torch.ones(2)
    assert torch.equal(compiled(one, one, one), d.Normal(one, one).log_prob(one))
    with pytest.raises(ValueError, match="Expected parameter scale"):
        compiled(one, -one, one)
    with pytest.raises(ValueError, match="Expected value argument"):
        compiled(one, one, one * float("nan"))


def test_vmap_draws_for_each_row():
    a = torch.tensor([[0.5, 2.0], [3.0, 8.0]])
    torch.manual_seed(0)
    expected = torch._standard_gamma(a)
    torch.manual_seed(0)
    assert torch.equal(torch.vmap(torch._standard_gamma, randomness="different")(a), expected)
    with pytest.raises(RuntimeError, match="same randomness"):
        torch.vmap(torch._standard_gamma, randomness="same")(a)
