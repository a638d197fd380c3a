"""Probability distributions: samples, densities, entropies, divergences. As `torch.distributions`.

Each module is loaded when one of its names is first used.
"""

from __future__ import annotations

from graphc.lazy import lazy

# module -> the public names that it has
_NAMES = {
    "bernoulli": "Bernoulli Binomial Geometric NegativeBinomial",
    "categorical": "Categorical Multinomial OneHotCategorical OneHotCategoricalStraightThrough",
    "constraint_registry": "biject_to transform_to",
    "continuous_bernoulli": "ContinuousBernoulli",
    "dirichlet": "Beta Dirichlet",
    "distribution": "Distribution",
    "exp_family": "ExponentialFamily",
    "exponential": "Exponential Pareto Weibull",
    "gamma": "Chi2 FisherSnedecor Gamma InverseGamma StudentT",
    "generalized_pareto": "GeneralizedPareto",
    "half_normal": "HalfCauchy HalfNormal",
    "kl": "kl_divergence register_kl",
    "lkj_cholesky": "LKJCholesky",
    "log_normal": "LogNormal LogisticNormal",
    "mixture_same_family": "MixtureSameFamily",
    "multivariate_normal": "LowRankMultivariateNormal MultivariateNormal",
    "normal": "Cauchy Laplace Normal",
    "poisson": "Poisson",
    "relaxed": "RelaxedBernoulli RelaxedOneHotCategorical",
    "transformed_distribution": "Independent TransformedDistribution",
    "transforms": "AbsTransform AffineTransform CatTransform ComposeTransform CorrCholeskyTransform "
    "CumulativeDistributionTransform ExpTransform IndependentTransform LowerCholeskyTransform "
    "PositiveDefiniteTransform PowerTransform ReshapeTransform SigmoidTransform SoftmaxTransform "
    "SoftplusTransform StackTransform StickBreakingTransform TanhTransform Transform identity_transform",
    "uniform": "Gumbel Kumaraswamy Uniform",
    "von_mises": "VonMises",
    "wishart": "Wishart",
}
_LATER = {name: f"{__name__}.{module}" for module, names in _NAMES.items() for name in names.split()}

__all__ = sorted(_LATER)  # pyright: ignore[reportUnsupportedDunderAll]

__getattr__, __dir__ = lazy(__name__, _LATER, {*_NAMES, "constraints", "utils"})
