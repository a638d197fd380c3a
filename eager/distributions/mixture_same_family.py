"""Mixtures. As `torch.distributions.mixture_same_family`."""

from __future__ import annotations

from operator import attrgetter
from typing import Any, ClassVar

from eager.core.grad_mode import no_grad
from eager.core.tensor import Tensor
from eager.distributions import constraints
from eager.distributions.categorical import Categorical
from eager.distributions.distribution import Distribution
from eager.functional.reductions import log_softmax

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """Sum over k of probs_k p_k(x): `component_distribution` has the p_k along its last batch dim."""

    arg_constraints: ClassVar[Any] = {}
    has_rsample = False
    _expands = ("_mixture_distribution", "_component_distribution")
    _keeps = ("_num_component", "_event_ndims")

    def __init__(
        self, mixture_distribution: Categorical, component_distribution: Distribution,
        validate_args: bool | None = None,
    ):  # fmt: skip
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(" The Mixture distribution needs to be an  instance of torch.distributions.Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ValueError("The Component distribution needs to be an instance of torch.distributions.Distribution")
        mixed, batch = mixture_distribution.batch_shape, component_distribution.batch_shape[:-1]
        for size1, size2 in zip(reversed(mixed), reversed(batch), strict=False):
            if size1 != 1 and size2 != 1 and size1 != size2:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({mixed}) is not compatible with "
                    f"`component_distribution.batch_shape`({batch})"
                )
        count, components = mixture_distribution.logits.shape[-1], component_distribution.batch_shape[-1]
        if count != components:
            raise ValueError(
                f"`mixture_distribution component` ({count}) does not equal `component_distribution.batch_shape[-1]` "
                f"({components})"
            )
        self._num_component = count
        self._event_ndims = len(component_distribution.event_shape)
        super().__init__(batch, component_distribution.event_shape, validate_args=validate_args)

    @constraints.dependent_property
    def support(self) -> Any:
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    mixture_distribution = property(attrgetter("_mixture_distribution"), doc="The distribution of k.")
    component_distribution = property(attrgetter("_component_distribution"), doc="The p_k, along the last batch dim.")

    @property
    def _dim(self) -> int:
        """Where the components are."""
        return -1 - self._event_ndims

    def _mean_of(self, of_components: Tensor) -> Tensor:
        probs = self.mixture_distribution.probs
        probs = probs.reshape(probs.shape + (1,) * self._event_ndims)
        return (probs * of_components).sum(self._dim)

    mean = property(lambda self: self._mean_of(self.component_distribution.mean))

    @property
    def variance(self) -> Tensor:
        # that of the means, and the mean of those of the components
        spread = (self.component_distribution.mean - self._pad(self.mean)).pow(2.0)
        return self._mean_of(self.component_distribution.variance) + self._mean_of(spread)

    def cdf(self, x: Tensor) -> Tensor:
        return (self.component_distribution.cdf(self._pad(x)) * self.mixture_distribution.probs).sum(-1)

    def log_prob(self, x: Tensor) -> Tensor:
        self._check(x)
        log_probs = log_softmax(self.mixture_distribution.logits, dim=-1)
        return (self.component_distribution.log_prob(self._pad(x)) + log_probs).logsumexp(dim=-1)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            event = self.event_shape
            chosen = self.mixture_distribution.sample(sample_shape)
            drawn = self.component_distribution.sample(sample_shape)
            chosen = chosen.reshape(chosen.shape + (1,) * (len(event) + 1))
            chosen = chosen.expand((*drawn.shape[: self._dim], 1, *event))
            return drawn.gather(self._dim, chosen).squeeze(self._dim)

    def _pad(self, x: Tensor) -> Tensor:
        return x.unsqueeze(self._dim)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"
