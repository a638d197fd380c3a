"""The random generators of a process together."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from eager.rng.sampling import default_generator


class RandomState:
    """The states of torch's default generator, of `numpy.random` and of `random`, to be saved and restored."""

    def state_dict(self) -> dict[str, Any]:
        """The three states, as tensors, arrays and numbers."""
        version, words, gauss = random.getstate()
        return {
            "torch": default_generator.get_state(),
            "numpy": np.random.get_state(legacy=False),
            "python": {"version": version, "words": np.array(words, np.uint32), "gauss": gauss},
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from the three states."""
        python = state_dict["python"]
        default_generator.set_state(state_dict["torch"])
        np.random.set_state(state_dict["numpy"])
        random.setstate((python["version"], tuple(map(int, python["words"])), python["gauss"]))
