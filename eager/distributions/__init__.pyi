# Written by `python -m tests.stubs`: change the sources or the tables there, and run it again.
"""Probability distributions: samples, densities, entropies, divergences. As `torch.distributions`.

Each module is loaded when one of its names is first used."""

from eager.distributions import bernoulli as bernoulli, categorical as categorical, constraint_registry as constraint_registry, constraints as constraints, continuous_bernoulli as continuous_bernoulli, dirichlet as dirichlet, distribution as distribution, exp_family as exp_family, exponential as exponential, gamma as gamma, generalized_pareto as generalized_pareto, half_normal as half_normal, kl as kl, lkj_cholesky as lkj_cholesky, log_normal as log_normal, mixture_same_family as mixture_same_family, multivariate_normal as multivariate_normal, normal as normal, poisson as poisson, relaxed as relaxed, transformed_distribution as transformed_distribution, transforms as transforms, uniform as uniform, utils as utils, von_mises as von_mises, wishart as wishart
from eager.distributions.bernoulli import Bernoulli as Bernoulli, Binomial as Binomial, Geometric as Geometric, NegativeBinomial as NegativeBinomial
from eager.distributions.categorical import Categorical as Categorical, Multinomial as Multinomial, OneHotCategorical as OneHotCategorical, OneHotCategoricalStraightThrough as OneHotCategoricalStraightThrough
from eager.distributions.constraint_registry import biject_to as biject_to, transform_to as transform_to
from eager.distributions.continuous_bernoulli import ContinuousBernoulli as ContinuousBernoulli
from eager.distributions.dirichlet import Beta as Beta, Dirichlet as Dirichlet
from eager.distributions.distribution import Distribution as Distribution
from eager.distributions.divergences.registry import kl_divergence as kl_divergence, register_kl as register_kl
from eager.distributions.exp_family import ExponentialFamily as ExponentialFamily
from eager.distributions.exponential import Exponential as Exponential, Pareto as Pareto, Weibull as Weibull
from eager.distributions.gamma import Chi2 as Chi2, FisherSnedecor as FisherSnedecor, Gamma as Gamma, InverseGamma as InverseGamma, StudentT as StudentT
from eager.distributions.generalized_pareto import GeneralizedPareto as GeneralizedPareto
from eager.distributions.half_normal import HalfCauchy as HalfCauchy, HalfNormal as HalfNormal
from eager.distributions.lkj_cholesky import LKJCholesky as LKJCholesky
from eager.distributions.log_normal import LogNormal as LogNormal, LogisticNormal as LogisticNormal
from eager.distributions.mixture_same_family import MixtureSameFamily as MixtureSameFamily
from eager.distributions.multivariate_normal import LowRankMultivariateNormal as LowRankMultivariateNormal, MultivariateNormal as MultivariateNormal
from eager.distributions.normal import Cauchy as Cauchy, Laplace as Laplace, Normal as Normal
from eager.distributions.poisson import Poisson as Poisson
from eager.distributions.relaxed import RelaxedBernoulli as RelaxedBernoulli, RelaxedOneHotCategorical as RelaxedOneHotCategorical
from eager.distributions.transformed_distribution import Independent as Independent, TransformedDistribution as TransformedDistribution
from eager.distributions.transforms.joined import CatTransform as CatTransform, StackTransform as StackTransform
from eager.distributions.transforms.pointwise import AbsTransform as AbsTransform, AffineTransform as AffineTransform, CumulativeDistributionTransform as CumulativeDistributionTransform, ExpTransform as ExpTransform, PowerTransform as PowerTransform, SigmoidTransform as SigmoidTransform, SoftplusTransform as SoftplusTransform, TanhTransform as TanhTransform
from eager.distributions.transforms.transform import ComposeTransform as ComposeTransform, IndependentTransform as IndependentTransform, ReshapeTransform as ReshapeTransform, Transform as Transform, identity_transform as identity_transform
from eager.distributions.transforms.vectors import CorrCholeskyTransform as CorrCholeskyTransform, LowerCholeskyTransform as LowerCholeskyTransform, PositiveDefiniteTransform as PositiveDefiniteTransform, SoftmaxTransform as SoftmaxTransform, StickBreakingTransform as StickBreakingTransform
from eager.distributions.uniform import Gumbel as Gumbel, Kumaraswamy as Kumaraswamy, Uniform as Uniform
from eager.distributions.von_mises import VonMises as VonMises
from eager.distributions.wishart import Wishart as Wishart
