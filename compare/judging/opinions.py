"""Opinions on gradients that share no gradient rule with the registry: JAX's reverse mode, and difference quotients."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, final

import numpy as np

from compare.judging.numeric import evaluate
from graphc.ir import Graph
from graphc.lowering.reference import vjp

STEP = 1e-3  # of a 4th order quotient: truncation about 1e-12 f5, rounding about 1e-13 |f|
ELEMENTS = 64  # larger inputs are sampled
JUMP = 1.75  # half the step doubles the quotient over a jump
KINK = 0.75  # half the step halves the gap between one-sided quotients of a smooth function, and leaves that of a kink


@final
class Differentiation(NamedTuple):
    """A float64 graph, its arguments, and what to differentiate.

    cotangents  by position of the output
    recorded    ids of the nodes that gradients flow through
    """

    graph: Graph
    arrays: Sequence[np.ndarray]
    cotangents: Mapping[int, np.ndarray]
    recorded: Collection[int]

    def by_jax(self, wrt: Sequence[int]) -> list[np.ndarray]:
        """`jax.vjp` of the lowered graph, for the inputs number `wrt`. Raises what JAX raises."""
        return vjp(self.graph, self.arrays, self.cotangents, wrt, self.recorded)[1]

    def by_differences(self, position: int, seed: int = 0) -> tuple[np.ma.MaskedArray, np.ndarray]:
        """(gradient, error estimate) for input number `position`, by central differences with one extrapolation.

        Masked: elements that were not sampled, where the function is not finite, and where it has a kink or a jump.
        """
        x = self.arrays[position]
        held = self._held()
        base = self._scalar(position, x, held)
        gradient, bar = np.zeros(x.shape), np.zeros(x.shape)
        mask = np.ones(x.shape, bool)
        for flat in _sampled(x.size, seed):
            at = np.unravel_index(flat, x.shape)
            quotient = self._quotient(position, at, held, base)
            if quotient is not None:
                mask[at] = False
                gradient[at], bar[at] = quotient
        return np.ma.MaskedArray(gradient, mask), bar

    def is_smooth(self, position: int, at: tuple[int, ...]) -> bool:
        """Whether the function has a derivative at element `at` of input number `position`, as far as can be told."""
        held = self._held()
        return self._quotient(position, at, held, self._scalar(position, self.arrays[position], held)) is not None

    def _held(self) -> dict[int, np.ndarray]:
        """The values that gradients do not flow through, at the point itself."""
        values = evaluate(self.graph, self.arrays, checked=False)
        return {node.id: values[node.id] for node in self.graph.operations() if node.id not in self.recorded}

    def _scalar(self, position: int, x: np.ndarray, held: Mapping[int, np.ndarray]) -> tuple[float, float]:
        """(inner product of outputs and cotangents, the sum of its terms' magnitudes)"""
        arrays = [x if k == position else a for k, a in enumerate(self.arrays)]
        values = evaluate(self.graph, arrays, held=held, checked=False)
        # the real part of a conjugated product: what cotangents of complex numbers are gradients of
        terms = [np.real(np.conj(ct) * values[self.graph.outputs[k]]) for k, ct in self.cotangents.items()]
        return float(sum(np.sum(t) for t in terms)), float(sum(np.sum(np.abs(t)) for t in terms))

    def _quotient(
        self,
        position: int,
        at: Sequence[Any],
        held: Mapping[int, np.ndarray],
        base: tuple[float, float],
    ) -> tuple[float, float] | None:
        x = self.arrays[position]
        index = tuple(at)
        step = STEP * max(1.0, abs(float(x[index])))

        def moved(by: float) -> float:
            other = x.copy()
            other[index] += by
            return self._scalar(position, other, held)[0]

        f, size = base
        coarse, fine = (moved(step), moved(-step)), (moved(step / 2), moved(-step / 2))
        if not np.isfinite([f, *coarse, *fine]).all():
            return None
        wide, narrow = (coarse[0] - coarse[1]) / (2 * step), (fine[0] - fine[1]) / step
        gaps = [abs(up - 2 * f + down) / h for (up, down), h in ((coarse, step), (fine, step / 2))]
        rounding = 1e-14 * size / step
        if gaps[1] > KINK * gaps[0] and gaps[1] > rounding + 1e-9 * abs(narrow):
            return None
        if abs(narrow) > JUMP * abs(wide) and abs(narrow - wide) > rounding + 1e-9 * abs(narrow):
            return None
        return narrow + (narrow - wide) / 3, abs(narrow - wide) + rounding


def _sampled(size: int, seed: int) -> np.ndarray:
    if size <= ELEMENTS:
        return np.arange(size)
    rng = np.random.default_rng(seed)
    inner = rng.choice(np.arange(1, size - 1), ELEMENTS - 2, replace=False)
    return np.concatenate([[0], inner, [size - 1]])
