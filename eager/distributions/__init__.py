"""Probability distributions: samples, densities, entropies, divergences. As `torch.distributions`.

Each module is loaded when one of its names is first used.
"""

from __future__ import annotations

from graphc.lazy import lazy

# module -> the public names that it has
_NAMES = {
    "bernoulli": "Bernoulli",
    "beta": "Beta",
    "binomial": "Binomial",
    "categorical": "Categorical",
    "cauchy": "Cauchy",
    "chi2": "Chi2",
    "constraint_registry": "biject_to transform_to",
    "continuous_bernoulli": "ContinuousBernoulli",
    "dirichlet": "Dirichlet",
    "distribution": "Distribution",
    "exp_family": "ExponentialFamily",
    "exponential": "Exponential",
    "fishersnedecor": "FisherSnedecor",
    "gamma": "Gamma",
    "generalized_pareto": "GeneralizedPareto",
    "geometric": "Geometric",
    "gumbel": "Gumbel",
    "half_cauchy": "HalfCauchy",
    "half_normal": "HalfNormal",
    "independent": "Independent",
    "inverse_gamma": "InverseGamma",
    "kl": "kl_divergence register_kl",
    "kumaraswamy": "Kumaraswamy",
    "laplace": "Laplace",
    "lkj_cholesky": "LKJCholesky",
    "log_normal": "LogNormal",
    "logistic_normal": "LogisticNormal",
    "lowrank_multivariate_normal": "LowRankMultivariateNormal",
    "mixture_same_family": "MixtureSameFamily",
    "multinomial": "Multinomial",
    "multivariate_normal": "MultivariateNormal",
    "negative_binomial": "NegativeBinomial",
    "normal": "Normal",
    "one_hot_categorical": "OneHotCategorical OneHotCategoricalStraightThrough",
    "pareto": "Pareto",
    "poisson": "Poisson",
    "relaxed_bernoulli": "RelaxedBernoulli",
    "relaxed_categorical": "RelaxedOneHotCategorical",
    "studentT": "StudentT",
    "transformed_distribution": "TransformedDistribution",
    "transforms": "AbsTransform AffineTransform CatTransform ComposeTransform CorrCholeskyTransform "
    "CumulativeDistributionTransform ExpTransform IndependentTransform LowerCholeskyTransform "
    "PositiveDefiniteTransform PowerTransform ReshapeTransform SigmoidTransform SoftmaxTransform SoftplusTransform "
    "StackTransform StickBreakingTransform TanhTransform Transform identity_transform",
    "uniform": "Uniform",
    "von_mises": "VonMises",
    "weibull": "Weibull",
    "wishart": "Wishart",
}
_LATER = {name: f"{__name__}.{module}" for module, names in _NAMES.items() for name in names.split()}

__all__ = sorted(_LATER)  # pyright: ignore[reportUnsupportedDunderAll]

__getattr__, __dir__ = lazy(__name__, _LATER, {*_NAMES, "constraints", "utils"})
