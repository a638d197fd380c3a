"""Random numbers for the steps of a loop: drawn on the host before it runs, in the order in which the steps would."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from eager.core.tensor import Tensor
from graphc.capture import late_draws
from graphc.capture.sources import Draw
from graphc.capture.tracer import Tracer
from graphc.ops.aval import Aval


class _Steps:
    """What all steps draw: `arrays(k)` has draw number k of each step. The first draws for all."""

    def __init__(self, draws: Sequence[Draw], avals: Sequence[Aval], length: int, reverse: bool):
        self._draws, self._avals, self._length, self._reverse = draws, avals, length, reverse
        self._drawn: list[np.ndarray] = []

    def array(self, k: int) -> np.ndarray:
        if k == 0:
            self._drawn = [np.empty((self._length, *a.shape), a.dtype) for a in self._avals]
            for i in reversed(range(self._length)) if self._reverse else range(self._length):
                for rows, draw in zip(self._drawn, self._draws, strict=True):
                    rows[i] = draw.draw()
        return self._drawn[k]


def per_step(tracer: Tracer, draws: Sequence[Draw], avals: Sequence[Aval], length: int, reverse: bool) -> list[Tensor]:
    """Inputs of `tracer` with what `draws` give in each of `length` steps, along a first dimension."""
    steps = _Steps(draws, avals, length, reverse)
    found: list[Tensor] = []
    for draw in draws:
        late_draws.refuse(tracer, draw.generator, "control flow")
    for k, (draw, aval) in enumerate(zip(draws, avals, strict=True)):
        source = Draw(partial(steps.array, k), draw.generator)
        symbol = tracer.input(f"random_{len(tracer.state.sources)}", Aval((length, *aval.shape), aval.dtype), source)
        found.append(tracer.wrap(symbol, False))
    return found
