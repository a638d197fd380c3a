"""The table of distributions that tests run through: each with parameters of several shapes, also at their edges.

A case builds its distribution from `d`, a module like `torch.distributions`, and `t`, which makes a parameter of nested
lists of numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

Build = Callable[[Any, Callable[[Any], Any]], Any]


class Case(NamedTuple):
    """name: of the class, and a number; inputs: what is passed as keywords; build: in place of the class."""

    name: str
    inputs: dict[str, Any]
    build: Build


def _of_class(name: str, given: dict[str, Any]) -> Build:
    return lambda d, t: getattr(d, name)(**{k: t(v) if isinstance(v, list) else v for k, v in given.items()})


MATRIX = [[2.0, 0.5], [0.5, 1.0]]
TRIL = [[1.5, 0.0], [0.3, 0.7]]
LOC_SCALE = [
    dict(loc=[0.5, -1.0, 2.0], scale=[1.0, 0.3, 2.5]), dict(loc=0.5, scale=2.0), dict(loc=[[0.1], [0.7]], scale=[1.0, 2.0]),  # noqa: E501
]  # fmt: skip
PROBS = [dict(probs=[0.2, 0.5, 0.9]), dict(logits=[-1.0, 0.0, 2.5]), dict(probs=0.3), dict(logits=0.7)]
EDGES = [dict(probs=[0.0, 1.0])]
CATEGORIES = [
    dict(probs=[0.2, 0.3, 0.5]), dict(logits=[[-1.0, 0.0, 2.5], [0.1, 0.2, 0.3]]), dict(probs=[[1.0, 2.0, 1.0], [0.0, 3.0, 1.0]]),  # noqa: E501
]  # fmt: skip
COUNTED = [
    dict(total_count=5, probs=[0.2, 0.5, 0.9]), dict(total_count=[4.0, 4.0], logits=[-1.0, 0.5]),
    dict(total_count=40, probs=[0.1, 0.5, 0.9]),
]  # fmt: skip
TWO_POSITIVE = [[0.6, 1.0, 3.5], [2.0, 0.8, 1.2]]
PARAMETERS: dict[str, list[dict[str, Any]]] = {
    "Bernoulli": PROBS + EDGES,
    "Beta": [
        dict(concentration1=TWO_POSITIVE[0], concentration0=TWO_POSITIVE[1]), dict(concentration1=0.7, concentration0=2.0),  # noqa: E501
        dict(concentration1=[20.0, 0.05], concentration0=[30.0, 0.1]),
    ],
    "Binomial": [*COUNTED, dict(total_count=[3.0, 7.0], probs=[0.0, 1.0])],
    "Categorical": CATEGORIES,
    "Cauchy": LOC_SCALE,
    "Chi2": [dict(df=[0.5, 3.0, 12.0]), dict(df=2.0)],
    "ContinuousBernoulli": [*PROBS, dict(probs=[0.4995, 0.5001])],
    "Dirichlet": [
        dict(concentration=[0.5, 1.5, 3.0]), dict(concentration=[[0.5, 0.6], [8.0, 20.0]]),
        dict(concentration=[[0.2, 0.1, 0.3], [30.0, 8.0, 7.0]]),
    ],
    "Exponential": [dict(rate=[0.3, 1.0, 4.0]), dict(rate=2.0)],
    "FisherSnedecor": [dict(df1=[1.0, 3.0, 6.0], df2=[2.0, 5.0, 9.0]), dict(df1=3.0, df2=5.0)],
    "Gamma": [
        dict(concentration=[0.05, 1.0, 9.5], rate=[1.0, 0.3, 4.0]), dict(concentration=2.0, rate=3.0),
        dict(concentration=[[0.5], [30.0]], rate=[1.0, 2.0]),
    ],
    "GeneralizedPareto": [
        dict(loc=[0.5, -1.0, 2.0], scale=[1.0, 0.3, 2.5], concentration=[0.3, -0.4, 0.7]),
        dict(loc=0.0, scale=1.0, concentration=0.0),
    ],
    "Geometric": [*PROBS, dict(probs=[1.0, 0.05])],
    "Gumbel": LOC_SCALE,
    "HalfCauchy": [dict(scale=[0.5, 2.0]), dict(scale=1.5)],
    "HalfNormal": [dict(scale=[0.5, 2.0]), dict(scale=1.5)],
    "InverseGamma": [dict(concentration=[0.7, 1.5, 3.5], rate=[1.0, 0.3, 4.0]), dict(concentration=2.5, rate=3.0)],
    "Kumaraswamy": [dict(concentration1=TWO_POSITIVE[0], concentration0=TWO_POSITIVE[1]), dict(concentration1=1.5, concentration0=2.0)],  # noqa: E501
    "LKJCholesky": [dict(dim=2, concentration=0.7), dict(dim=3, concentration=[0.5, 1.0, 3.0])],
    "Laplace": LOC_SCALE,
    "LogNormal": LOC_SCALE,
    "LogisticNormal": [dict(loc=[0.5, -1.0, 2.0], scale=[1.0, 0.3, 2.5]), dict(loc=0.5, scale=2.0)],
    "LowRankMultivariateNormal": [
        dict(loc=[0.5, -1.0, 0.2], cov_factor=[[1.0], [0.5], [-0.3]], cov_diag=[1.0, 0.3, 2.0]),
        dict(loc=[[0.5, -1.0], [0.1, 0.2]], cov_factor=[[1.0, 0.2], [0.5, 0.7]], cov_diag=[1.0, 0.3]),
    ],
    "Multinomial": [dict(total_count=4, **CATEGORIES[0]), dict(total_count=3, logits=[-1.0, 0.0, 2.5]), dict(total_count=2, **CATEGORIES[2])],  # noqa: E501
    "MultivariateNormal": [
        dict(loc=[0.5, -1.0], covariance_matrix=MATRIX), dict(loc=[[0.5, -1.0], [0.1, 0.2]], scale_tril=TRIL),
        dict(loc=[0.5, -1.0], precision_matrix=MATRIX), dict(loc=[0.5, -1.0], scale_tril=[TRIL, [[1.0, 0.0], [0.2, 2.0]]]),  # noqa: E501
    ],
    "NegativeBinomial": [*COUNTED[:2], dict(total_count=[0.0, 2.5], probs=[0.3, 0.6])],
    "Normal": LOC_SCALE,
    "OneHotCategorical": CATEGORIES,
    "OneHotCategoricalStraightThrough": CATEGORIES[:2],
    "Pareto": [dict(scale=[0.5, 1.0, 2.0], alpha=[0.8, 1.5, 3.0]), dict(scale=1.0, alpha=2.5)],
    "Poisson": [dict(rate=[0.3, 3.0, 25.0]), dict(rate=2.0), dict(rate=[0.0, 0.3])],
    "StudentT": [dict(df=[0.8, 1.5, 5.0], loc=[0.5, -1.0, 2.0], scale=[1.0, 0.3, 2.5]), dict(df=3.0)],
    "Uniform": [dict(low=[0.1, -1.0, 0.2], high=[0.7, 2.5, 0.9]), dict(low=0.5, high=2.0)],
    "VonMises": [dict(loc=[0.5, -1.0, 2.0], concentration=[0.1, 2.0, 30.0]), dict(loc=0.5, concentration=2.0)],
    "Weibull": [dict(scale=[0.5, 1.0, 2.0], concentration=[0.8, 1.5, 3.0]), dict(scale=1.0, concentration=2.5)],
    "Wishart": [
        dict(df=[3.5], covariance_matrix=MATRIX), dict(df=[3.0, 5.0], scale_tril=TRIL), dict(df=4.0, precision_matrix=MATRIX),  # noqa: E501
    ],
}  # fmt: skip
PARAMETERS["RelaxedBernoulli"] = [dict(temperature=[0.7], **given) for given in PROBS[:2]]
PARAMETERS["RelaxedOneHotCategorical"] = [dict(temperature=[0.7], **given) for given in CATEGORIES[:2]]

MADE: dict[str, Build] = {
    "Independent": lambda d, t: d.Independent(d.Normal(t([[0.1, 0.2], [0.3, 0.4]]), t([1.0, 2.0])), 1),
    "Independent of all": lambda d, t: d.Independent(d.Gamma(t([[0.5, 2.0]]), t([1.0, 2.0])), 2),
    "Mixture of normals": lambda d, t: d.MixtureSameFamily(
        d.Categorical(logits=t([0.3, 0.2, -0.5])), d.Normal(t([-1.0, 0.0, 2.0]), t([0.5, 1.0, 0.3]))
    ),
    "Mixture of vectors": lambda d, t: d.MixtureSameFamily(
        d.Categorical(probs=t([[0.3, 0.7], [0.5, 0.5]])),
        d.Independent(d.Laplace(t([[[0.1, 0.2], [0.3, 0.4]], [[1.0, 2.0], [3.0, 4.0]]]), t([1.0, 2.0])), 1),
    ),
    "Transformed by an affine map": lambda d, t: d.TransformedDistribution(
        d.Normal(t([0.1, 0.2]), t([1.0, 0.5])), [d.AffineTransform(t([1.0]), t([-2.0])), d.SigmoidTransform()]
    ),
    "Transformed to a simplex": lambda d, t: d.TransformedDistribution(
        d.Normal(t([0.1, 0.2, 0.3]), t([1.0, 0.5, 2.0])), d.StickBreakingTransform()
    ),
    "Transformed by tanh": lambda d, t: d.TransformedDistribution(
        d.Independent(d.Normal(t([0.1, -0.2]), t([0.3, 0.5])), 1), [d.TanhTransform(cache_size=1)]
    ),
    "Logistic": lambda d, t: d.TransformedDistribution(
        d.Uniform(t([0.0]), t([1.0])), [d.SigmoidTransform().inv, d.AffineTransform(loc=t([0.5]), scale=t([2.0]))]
    ),
}  # fmt: skip

CASES = [
    *[Case(f"{name}-{k}", given, _of_class(name, given)) for name, all_ in PARAMETERS.items() for k, given in enumerate(all_)],  # noqa: E501
    *[Case(name, {}, build) for name, build in MADE.items()],
]  # fmt: skip
