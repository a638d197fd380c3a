"""What relaxed distributions, images of another one, take from that one."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from eager.distributions.transformed_distribution import TransformedDistribution


class Relaxed(TransformedDistribution):
    """A transform of `base_dist`, which has a temperature and `probs` or `logits`."""

    has_rsample = True
    base_dist: Any

    temperature = property(
        attrgetter("base_dist.temperature"), doc="How far from the values of the discrete distribution samples are."
    )
    logits = property(attrgetter("base_dist.logits"), doc="The logits of the discrete distribution.")
    probs = property(attrgetter("base_dist.probs"), doc="The probabilities of the discrete distribution.")
