"""Exponential families. As `torch.distributions.exp_family`."""

from __future__ import annotations

from typing import Any

from eager.autograd import grad
from eager.core.tensor import Tensor
from eager.distributions.distribution import Distribution
from eager.distributions.utils import sum_rightmost

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """Distributions with the density exp(<t(x), theta> - F(theta) + k(x)).

    A subclass declares its natural parameters theta, the log normalizer F, and the mean of the carrier measure k:
    entropies and divergences within the family follow from them and the gradient of F. (F. Nielsen, R. Nock,
    "Entropies and cross-entropies of exponential families", 2010.)
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> float:
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """F(theta) - <theta, F'(theta)> minus the mean of the carrier measure."""
        carried = self._mean_carrier_measure
        parameters = [p.detach().requires_grad_() for p in self._natural_params]
        normalizer = self._log_normalizer(*parameters)
        result: Any = normalizer - carried
        for p, slope in zip(parameters, grad(normalizer.sum(), parameters, create_graph=True), strict=True):
            result = result - sum_rightmost(p * slope, p.dim() - len(self._batch_shape))
        return result
