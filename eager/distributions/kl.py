"""Kullback-Leibler divergences. As `torch.distributions.kl`."""

from __future__ import annotations

from eager.distributions.divergences import alike, crossed, matrices
from eager.distributions.divergences.registry import kl_divergence, register_kl

__all__ = ["kl_divergence", "register_kl"]

_FORMULAS = (alike, crossed, matrices)  # importing them registers the pairs
