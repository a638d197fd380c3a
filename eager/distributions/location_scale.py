"""What distributions with a location and a scale have in common."""

from __future__ import annotations

from typing import Any, ClassVar

from eager.core.tensor import Tensor
from eager.distributions import constraints
from eager.distributions.distribution import Distribution


class LocationScale(Distribution):
    """A density of (x - loc) / scale, over all real numbers."""

    loc: Tensor
    scale: Tensor
    arg_constraints: ClassVar[Any] = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _expands = ("loc", "scale")

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None):
        self._set(validate_args, loc=loc, scale=scale)
