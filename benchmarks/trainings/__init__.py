"""Models to train, each written twice: as a PyTorch user writes it for graphc, and as an expert of JAX writes it.

Arrays are NumPy's on both sides until `training_steps` puts them where they belong. The JAX losses are of the same
mathematics: weights are (in, out), channels are last, pools are reshapes, recurrent layers are scans with all of a step
inside, labels have 32 bits.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from . import generative, images, numerical, recurrent, transformers, vectors
from .training import Training, rng

__all__ = ["TRAININGS", "Training", "made"]

TRAININGS: dict[str, Callable[[], Training]] = {
    **vectors.TRAININGS,
    **images.TRAININGS,
    **generative.TRAININGS,
    **transformers.TRAININGS,
    **recurrent.TRAININGS,
    **numerical.TRAININGS,
}


def made(name: str) -> Training:
    """A training with the same batch each time."""
    rng.bit_generator.state = np.random.default_rng(0).bit_generator.state
    return TRAININGS[name]()
