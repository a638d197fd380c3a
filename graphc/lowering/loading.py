"""Loads JAX without a trace in NumPy's global generator, from which its modules draw while they are imported."""

from __future__ import annotations

import numpy as np

_before = np.random.get_state()
import jax  # noqa: E402

np.random.set_state(_before)

__all__ = ["jax"]
