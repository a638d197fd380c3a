"""What relaxed distributions, images of another one, take from that one."""

from __future__ import annotations

from typing import Any

from eager.core.tensor import Tensor
from eager.distributions.transformed_distribution import TransformedDistribution


class Relaxed(TransformedDistribution):
    """A transform of `base_dist`, which has a temperature and `probs` or `logits`."""

    has_rsample = True
    base_dist: Any

    @property
    def temperature(self) -> Tensor:
        """How far from the values of the discrete distribution samples are."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        """The logits of the discrete distribution."""
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        """The probabilities of the discrete distribution."""
        return self.base_dist.probs
