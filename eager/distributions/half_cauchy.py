"""The half-Cauchy distribution. As `torch.distributions.half_cauchy`."""

from __future__ import annotations

import math
from operator import attrgetter
from typing import Any

from eager.core.tensor import Tensor
from eager.distributions.cauchy import Cauchy
from eager.distributions.half import Half
from eager.functional.creation import full_like
from eager.functional.data import as_tensor
from eager.functional.gathering import where

__all__ = ["HalfCauchy"]


class HalfCauchy(Half):
    """The absolute value of a Cauchy number around 0. It has no finite mean."""

    base_dist: Cauchy
    _base = Cauchy
    mean = property(lambda self: full_like(self.scale, math.inf))
    variance = property(attrgetter("base_dist.variance"))

    def log_prob(self, value: Any) -> Tensor:
        self._check(value)
        value = as_tensor(value, dtype=self.scale.dtype, device=self.scale.device)
        return where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -math.inf)
