"""Opinions on gradients that share no gradient rule with the registry: JAX's reverse mode, and difference quotients."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, final

import numpy as np

from compare.judging.numeric import Rounding, evaluate
from compare.judging.tolerance import SAFETY
from graphc.ir import Graph
from graphc.lowering.reference import vjp
from graphc.ops import Op
from graphc.ops.dtypes import is_inexact
from graphc.ops.interpret import F

# The widest step, relative to the number that is moved. Halved once, the two quotients are extrapolated (4th order:
# truncation about 1e-12 f5). No round number, at which a periodic function may be what it was.
STEP = 0.9257e-3
SHRINK, LEVELS = 8.0, 8  # shorter steps, until there is no kink on the way, or no oscillation
CLOSE = 1e-5  # relative error estimate at which no shorter step is tried
ELEMENTS = 64  # larger inputs are sampled
JUMP = 1.75  # half the step doubles the quotient over a jump
KINK = 0.5  # share of the gap between one-sided quotients that does not shrink with the step: 0 if smooth, 1 at a kink
RUNS = 4  # simulated roundings of the function
SCALES = 1 + np.array([-3.0, -1.0, 1.0, 3.0]) * 2.0**-50  # alike for all numbers, so that equal ones stay equal


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

    def spread_by_jax(self, wrt: Sequence[int]) -> list[np.ndarray]:
        """How far rounding may move what `by_jax` gives: JAX's way to a derivative may be more sensitive than the
        derivative is, as that of a pseudoinverse is by singular vectors. Infinite where it may be no number.
        """
        found = self.by_jax(wrt)
        total = [np.zeros(g.shape) for g in found]
        for scale in SCALES:
            arrays = [a * scale if is_inexact(a.dtype) else a for a in self.arrays]
            moved = self._replace(arrays=arrays).by_jax(wrt)
            with np.errstate(invalid="ignore"):
                total = [np.maximum(t, np.abs(m - g)) for t, m, g in zip(total, moved, found, strict=True)]
        return [np.where(np.isnan(t), np.inf, SAFETY * t) for t in total]

    def by_differences(
        self, position: int, seed: int = 0, elements: int = ELEMENTS
    ) -> tuple[np.ma.MaskedArray, np.ndarray]:
        """(gradient, error estimate) for input number `position`, by central differences with one extrapolation,
        by the longest step on which the function is smooth; of so many `elements` at most.

        Masked: elements that were not sampled, where the function is not finite, and where it has a kink or a jump.
        """
        x = self.arrays[position]
        base = self._base(position)
        gradient, bar = np.zeros(x.shape), np.zeros(x.shape)
        mask = np.ones(x.shape, bool)
        for flat in _sampled(x.size, seed, elements):
            at = np.unravel_index(flat, x.shape)
            quotient = self._quotient(position, at, base)
            if quotient is not None:
                mask[at] = False
                gradient[at], bar[at] = quotient
        return np.ma.MaskedArray(gradient, mask), bar

    def is_smooth(self, position: int, at: tuple[int, ...]) -> bool:
        """Whether the function has a derivative at element `at` of input number `position`, as far as can be told."""
        return self._quotient(position, at, self._base(position)) is not None

    def _base(self, position: int) -> _Base:
        """The function at the point itself."""
        held = self._held()
        value, size = self._scalar(position, self.arrays[position], held)
        steady = {**held, **self._locally_constant()}
        runs = (self._scalar(0, self.arrays[0], steady, Rounding(self.graph, run))[0] for run in range(RUNS))
        deviations = [abs(run - value) for run in runs]
        return _Base(held, value, 4 * max(deviations) + 1e-15 * size if np.isfinite(deviations).all() else 1e-14 * size)

    def _locally_constant(self) -> dict[int, np.ndarray]:
        """Values that no small change of an operand changes, but for jumps: those are no rounding errors."""
        values = evaluate(self.graph, self.arrays, checked=False)
        nodes = (n for n in self.graph.operations() if not any(passes(n.op, k) for k in range(len(n.inputs))))
        return {node.id: values[node.id] for node in nodes}

    def _held(self) -> dict[int, np.ndarray]:
        """The values that gradients do not flow through, at the point itself."""
        values = evaluate(self.graph, self.arrays, checked=False)
        return {node.id: values[node.id] for node in self.graph.operations() if node.id not in self.recorded}

    def _scalar(
        self, position: int, x: np.ndarray, held: Mapping[int, np.ndarray], rounding: Rounding | None = None
    ) -> tuple[float, float]:
        """(inner product of outputs and cotangents, the sum of its terms' magnitudes)"""
        arrays = [x if k == position else a for k, a in enumerate(self.arrays)]
        values = evaluate(self.graph, arrays, held=held, checked=False, rounding=rounding)
        # the real part of a conjugated product: what cotangents of complex numbers are gradients of
        terms = [np.real(np.conj(ct) * values[self.graph.outputs[k]]) for k, ct in self.cotangents.items()]
        return float(sum(np.sum(t) for t in terms)), float(sum(np.sum(np.abs(t)) for t in terms))

    def _quotient(self, position: int, at: Sequence[Any], base: _Base) -> tuple[float, float] | None:
        """(derivative, error estimate) by the step that gives the least error; None at a kink or a jump."""
        x = self.arrays[position]
        index = tuple(at)
        here = float(x[index])
        if not np.isfinite(here):
            return None

        def moved(by: float) -> tuple[float, float]:
            other = x.copy()
            other[index] += by
            return self._scalar(position, other, base.held)[0], float(other[index]) - here

        best: tuple[float, float] | None = None
        kinks: list[float] = []
        for level in range(LEVELS):
            step = STEP * max(1.0, abs(here)) / SHRINK**level
            found = _estimate(base, [(moved(h), moved(-h)) for h in (step, step / 2)])
            if found is None:
                continue
            derivative, bar, kink = found
            rounding = 4 * base.rounding / step
            if best is not None and (kink is not None or bar > max(best[1], rounding)):
                best = (
                    None  # on a smooth stretch errors fall with the step, down to rounding: what was small was chance
                )
            if kink is None:
                if best is None or bar < best[1]:
                    best = derivative, bar
                if bar <= max(CLOSE * abs(derivative), rounding):
                    break
            else:
                kinks.append(kink)
                if len(kinks) > 2 and max(kinks[-3:]) < 1.01 * min(kinks[-3:]):  # at the point itself
                    return None
        return best


class _Base(NamedTuple):
    """The function at a point: values that are held there, its value, and the rounding error of that."""

    held: Mapping[int, np.ndarray]
    value: float
    rounding: float


def _estimate(base: _Base, moved: Sequence[Any]) -> tuple[float, float, float | None] | None:
    """(derivative, error estimate, None), or the strength of a kink or jump in the third place, from the values
    (above, below) and distances at a step and at half of it; None if a value is not finite."""
    (up, down), (near_up, near_down) = moved
    if not np.isfinite([base.value, up[0], down[0], near_up[0], near_down[0]]).all():
        return None
    wide, narrow = ((a[0] - b[0]) / (a[1] - b[1]) for a, b in moved)
    gap, near_gap = ((a[0] - base.value) / a[1] - (b[0] - base.value) / b[1] for a, b in moved)
    rounding = base.rounding / near_up[1]
    kink = 2 * near_gap - gap  # a smooth function's gap is proportional to the step
    if abs(kink) > max(KINK * abs(near_gap), rounding + 1e-9 * abs(narrow)):
        return narrow, 0.0, abs(kink)
    if abs(narrow) > JUMP * abs(wide) and abs(narrow - wide) > rounding + 1e-9 * abs(narrow):
        return narrow, 0.0, abs(narrow)
    return narrow + (narrow - wide) / 3, abs(narrow - wide) + abs(kink) / 2 + rounding, None


def passes(op: Op, k: int) -> bool:
    """Whether operand number `k` of `op` has a derivative that is not 0 wherever it exists, as that of rounding is."""
    if op.structured:
        return True
    rule = op.vjp.get(op.arg_of(k))
    if rule is None:
        return False
    return not op.pointwise or rule.names != ("g",) or bool(np.any(rule.fn(F, np.ones(()))))


def _sampled(size: int, seed: int, elements: int) -> np.ndarray:
    if size <= elements:
        return np.arange(size)
    rng = np.random.default_rng(seed)
    inner = rng.choice(np.arange(1, size - 1), max(elements - 2, 0), replace=False)
    return np.concatenate([[0], inner, [size - 1]])
