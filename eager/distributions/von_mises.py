"""The von Mises distribution. As `torch.distributions.von_mises`."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from eager.core.tensor import Tensor
from eager.distributions import constraints
from eager.distributions.distribution import Distribution
from eager.distributions.utils import lazy_property
from eager.functional.gathering import where
from eager.rng.rejection import von_mises

__all__ = ["VonMises"]

# M. Abramowitz, I. Stegun, "Handbook of mathematical functions", 9.8.1 to 9.8.4: polynomials in (x / 3.75)^2 below
# 3.75, and in 3.75 / x above, of the Bessel functions I0 and I1.
_SMALL = (
    (1.0, 3.5156229, 3.0899424, 1.2067492, 0.2659732, 0.360768e-1, 0.45813e-2),
    (0.5, 0.87890594, 0.51498869, 0.15084934, 0.2658733e-1, 0.301532e-2, 0.32411e-3),
)
_LARGE = (
    (0.39894228, 0.1328592e-1, 0.225319e-2, -0.157565e-2, 0.916281e-2, -0.2057706e-1, 0.2635537e-1, -0.1647633e-1,
     0.392377e-2),
    (0.39894228, -0.3988024e-1, -0.362018e-2, 0.163801e-2, -0.1031555e-1, 0.2282967e-1, -0.2895312e-1, 0.1787654e-1,
     -0.420059e-2),
)  # fmt: skip
_EDGE = 3.75


def _polynomial(y: Tensor, coefficients: tuple[float, ...]) -> Any:
    result: Any = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        result = c + y * result
    return result


def _log_bessel(x: Tensor, order: int) -> Tensor:
    """log I_order(x) for x > 0."""
    small = _polynomial((x / _EDGE) ** 2, _SMALL[order])
    small = (x.abs() * small if order else small).log()
    large = x - 0.5 * x.log() + _polynomial(_EDGE / x, _LARGE[order]).log()
    return where(x < _EDGE, small, large)


class VonMises(Distribution):
    """exp(concentration cos(x - loc)) / (2 pi I0(concentration)), of angles in [-pi, pi)."""

    concentration: Tensor
    loc: Tensor
    arg_constraints: ClassVar[Any] = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False
    _expands = ("loc", "concentration")

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None):
        self._set(validate_args, loc=loc, concentration=concentration)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        exponent = self.concentration * (value - self.loc).cos()
        return exponent - math.log(2 * math.pi) - _log_bessel(self.concentration, 0)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """D. J. Best, N. I. Fisher, "Efficient simulation of the von Mises distribution", 1979; drawn in float64."""
        shape = self._extended_shape(sample_shape)
        return von_mises(self.loc.detach().expand(shape), self.concentration.detach().expand(shape))

    @property
    def mean(self) -> Tensor:
        """The circular mean."""
        return self.loc

    mode = mean

    @lazy_property
    def variance(self) -> Tensor:
        """The circular variance, 1 - I1 / I0."""
        return 1 - (_log_bessel(self.concentration, 1) - _log_bessel(self.concentration, 0)).exp()
