"""Loads JAX without a trace in NumPy's global generator, from which its modules draw while they are imported."""

from __future__ import annotations

import contextlib
import os

import numpy as np

from eager.core.state import waiters
from graphc import forking

_before = np.random.get_state()
import jax  # noqa: E402

np.random.set_state(_before)


def _settle() -> None:
    """Wait for what programs are computing: after a fork its results would never arrive in the child."""
    if not forking.xla_clients() or forking.process.lost:
        return
    for array in jax.live_arrays():
        with contextlib.suppress(RuntimeError):  # given to another program meanwhile, or the result of one that failed
            array.block_until_ready()


waiters.append(_settle)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_settle)

__all__ = ["jax"]
