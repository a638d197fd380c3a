"""The beta distribution. As `torch.distributions.beta`."""

from __future__ import annotations

from typing import Any, ClassVar

from eager.core.tensor import Tensor
from eager.distributions import constraints
from eager.distributions.dirichlet import Dirichlet
from eager.distributions.exp_family import ExponentialFamily
from eager.distributions.utils import broadcast_all
from eager.functional.joining import stack

__all__ = ["Beta"]


class Beta(ExponentialFamily):
    """x^(a - 1) (1 - x)^(b - 1) / B(a, b) for 0 < x < 1; a is `concentration1`, b is `concentration0`."""

    arg_constraints: ClassVar[Any] = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True
    _expands = ("_dirichlet",)

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None):
        both = stack(broadcast_all(concentration1, concentration0), -1)
        self._dirichlet = Dirichlet(both, validate_args=validate_args)
        super().__init__(self._dirichlet._batch_shape, validate_args=validate_args)

    @property
    def concentration1(self) -> Tensor:
        """The exponent of x, plus 1."""
        return self._dirichlet.concentration[..., 0]

    @property
    def concentration0(self) -> Tensor:
        """The exponent of 1 - x, plus 1."""
        return self._dirichlet.concentration[..., 1]

    mean = property(lambda self: self.concentration1 / (self.concentration1 + self.concentration0))
    mode = property(lambda self: self._dirichlet.mode[..., 0])

    @property
    def variance(self) -> Tensor:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self._dirichlet.rsample(sample_shape).select(-1, 0)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return self._dirichlet.log_prob(stack([value, 1.0 - value], -1))

    def entropy(self) -> Tensor:
        return self._dirichlet.entropy()

    _natural_params = property(lambda self: (self.concentration1, self.concentration0))

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        return x.lgamma() + y.lgamma() - (x + y).lgamma()
