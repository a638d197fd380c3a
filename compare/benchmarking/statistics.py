"""What a handful of noisy times says: medians with confidence intervals that assume no distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

CONFIDENCE = 0.95


@final
@dataclass(frozen=True)
class Interval:
    """A median, and the ends of its confidence interval at level `CONFIDENCE`."""

    median: float
    low: float
    high: float


def median_interval(samples: Sequence[float]) -> Interval:
    """The median of `samples` with the interval between two of them that has the median of the distribution in it.

    How many samples lie below the median of their distribution is binomial, whatever that distribution is, so the
    k-th smallest and the k-th largest have it between them with probability 1 - 2 P(Binomial(n, 1/2) < k). Below six
    samples not even the smallest and the largest reach `CONFIDENCE`; these are given then. Raises ValueError for none.
    """
    from scipy.stats import quantile_test  # it takes a second to load

    if not samples:
        raise ValueError("a median needs at least one sample")
    found = quantile_test(samples, p=0.5).confidence_interval(CONFIDENCE)
    low = min(samples) if math.isnan(found.low) else float(found.low)
    high = max(samples) if math.isnan(found.high) else float(found.high)
    return Interval(float(np.median(samples)), low, high)


def break_even(extra: float, saving: float) -> float:
    """The number of calls from which on a mode has cost less in all than the baseline; inf if it never does.

    extra   seconds that its first call takes longer
    saving  seconds that each further call is shorter
    """
    if extra <= 0 <= saving:
        return 1.0
    return math.inf if saving <= 0 else 1.0 + math.ceil(extra / saving)


def break_even_interval(extra: float, savings: Sequence[float]) -> Interval:
    """`break_even` for the median saving of several rounds, and the ends of its interval; `extra` is measured once."""
    saving = median_interval(savings)
    return Interval(*(break_even(extra, s) for s in (saving.median, saving.high, saving.low)))
