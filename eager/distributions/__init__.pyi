# Written by `python -m tests.stubs`: change the sources or the tables there, and run it again.
"""Probability distributions: samples, densities, entropies, divergences. As `torch.distributions`.

Each module is loaded when one of its names is first used."""

from eager.distributions import bernoulli as bernoulli, beta as beta, binomial as binomial, categorical as categorical, cauchy as cauchy, chi2 as chi2, constraint_registry as constraint_registry, constraints as constraints, continuous_bernoulli as continuous_bernoulli, dirichlet as dirichlet, distribution as distribution, exp_family as exp_family, exponential as exponential, fishersnedecor as fishersnedecor, gamma as gamma, generalized_pareto as generalized_pareto, geometric as geometric, gumbel as gumbel, half_cauchy as half_cauchy, half_normal as half_normal, independent as independent, inverse_gamma as inverse_gamma, kl as kl, kumaraswamy as kumaraswamy, laplace as laplace, lkj_cholesky as lkj_cholesky, log_normal as log_normal, logistic_normal as logistic_normal, lowrank_multivariate_normal as lowrank_multivariate_normal, mixture_same_family as mixture_same_family, multinomial as multinomial, multivariate_normal as multivariate_normal, negative_binomial as negative_binomial, normal as normal, one_hot_categorical as one_hot_categorical, pareto as pareto, poisson as poisson, relaxed_bernoulli as relaxed_bernoulli, relaxed_categorical as relaxed_categorical, studentT as studentT, transformed_distribution as transformed_distribution, transforms as transforms, uniform as uniform, utils as utils, von_mises as von_mises, weibull as weibull, wishart as wishart
from eager.distributions.bernoulli import Bernoulli as Bernoulli
from eager.distributions.beta import Beta as Beta
from eager.distributions.binomial import Binomial as Binomial
from eager.distributions.categorical import Categorical as Categorical
from eager.distributions.cauchy import Cauchy as Cauchy
from eager.distributions.chi2 import Chi2 as Chi2
from eager.distributions.constraint_registry import biject_to as biject_to, transform_to as transform_to
from eager.distributions.continuous_bernoulli import ContinuousBernoulli as ContinuousBernoulli
from eager.distributions.dirichlet import Dirichlet as Dirichlet
from eager.distributions.distribution import Distribution as Distribution
from eager.distributions.divergences.registry import kl_divergence as kl_divergence, register_kl as register_kl
from eager.distributions.exp_family import ExponentialFamily as ExponentialFamily
from eager.distributions.exponential import Exponential as Exponential
from eager.distributions.fishersnedecor import FisherSnedecor as FisherSnedecor
from eager.distributions.gamma import Gamma as Gamma
from eager.distributions.generalized_pareto import GeneralizedPareto as GeneralizedPareto
from eager.distributions.geometric import Geometric as Geometric
from eager.distributions.gumbel import Gumbel as Gumbel
from eager.distributions.half_cauchy import HalfCauchy as HalfCauchy
from eager.distributions.half_normal import HalfNormal as HalfNormal
from eager.distributions.independent import Independent as Independent
from eager.distributions.inverse_gamma import InverseGamma as InverseGamma
from eager.distributions.kumaraswamy import Kumaraswamy as Kumaraswamy
from eager.distributions.laplace import Laplace as Laplace
from eager.distributions.lkj_cholesky import LKJCholesky as LKJCholesky
from eager.distributions.log_normal import LogNormal as LogNormal
from eager.distributions.logistic_normal import LogisticNormal as LogisticNormal
from eager.distributions.lowrank_multivariate_normal import LowRankMultivariateNormal as LowRankMultivariateNormal
from eager.distributions.mixture_same_family import MixtureSameFamily as MixtureSameFamily
from eager.distributions.multinomial import Multinomial as Multinomial
from eager.distributions.multivariate_normal import MultivariateNormal as MultivariateNormal
from eager.distributions.negative_binomial import NegativeBinomial as NegativeBinomial
from eager.distributions.normal import Normal as Normal
from eager.distributions.one_hot_categorical import OneHotCategorical as OneHotCategorical, OneHotCategoricalStraightThrough as OneHotCategoricalStraightThrough
from eager.distributions.pareto import Pareto as Pareto
from eager.distributions.poisson import Poisson as Poisson
from eager.distributions.relaxed_bernoulli import RelaxedBernoulli as RelaxedBernoulli
from eager.distributions.relaxed_categorical import RelaxedOneHotCategorical as RelaxedOneHotCategorical
from eager.distributions.studentT import StudentT as StudentT
from eager.distributions.transformed_distribution import TransformedDistribution as TransformedDistribution
from eager.distributions.transforms.joined import CatTransform as CatTransform, StackTransform as StackTransform
from eager.distributions.transforms.pointwise import AbsTransform as AbsTransform, AffineTransform as AffineTransform, CumulativeDistributionTransform as CumulativeDistributionTransform, ExpTransform as ExpTransform, PowerTransform as PowerTransform, SigmoidTransform as SigmoidTransform, SoftplusTransform as SoftplusTransform, TanhTransform as TanhTransform
from eager.distributions.transforms.transform import ComposeTransform as ComposeTransform, IndependentTransform as IndependentTransform, ReshapeTransform as ReshapeTransform, Transform as Transform, identity_transform as identity_transform
from eager.distributions.transforms.vectors import CorrCholeskyTransform as CorrCholeskyTransform, LowerCholeskyTransform as LowerCholeskyTransform, PositiveDefiniteTransform as PositiveDefiniteTransform, SoftmaxTransform as SoftmaxTransform, StickBreakingTransform as StickBreakingTransform
from eager.distributions.uniform import Uniform as Uniform
from eager.distributions.von_mises import VonMises as VonMises
from eager.distributions.weibull import Weibull as Weibull
from eager.distributions.wishart import Wishart as Wishart
