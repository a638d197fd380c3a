"""The modes that only have an opinion on gradients, in float64, and share no gradient rule with the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import final

import numpy as np

from compare.cases.case import Case
from compare.cases.joint import gradient_label
from compare.cases.outcome import Outcome
from compare.judging.float64 import widen, widen_array
from compare.judging.gradient_oracles import ELEMENTS, Differentiation
from compare.judging.work import JUDGED, compiling, work_of
from compare.locating.culprit import Culprit
from compare.locating.gradient_rules import in_gradient_rules
from compare.modes.protocol import NOT_CAPTURED
from graphc.ops import Trait
from graphc.ops.dtypes import is_floating, is_inexact

QUOTIENT = 8  # runs that a difference quotient takes
FEWEST = 4  # elements of an input, below which nothing is said


class _Opinion:
    """A mode that only has an opinion on gradients, in float64."""

    name = ""
    wide, repeats = True, False

    def run(self, case: Case) -> Outcome:
        if case.program is None:
            return Outcome(silent=NOT_CAPTURED)
        if reason := _other_gradients(case):
            return Outcome(silent=reason)
        try:
            if not case.joint.seeded:
                return Outcome(silent="nothing to differentiate")
            case.joint.graph.check()  # what a wrong rule of control flow has built may not even be a graph
            problem = differentiation(case)
            if why := case.too_large(self.work(problem, case)):
                return Outcome(silent=why)
            gradients, bars = self.gradients(case, problem)
        except Exception as error:
            return Outcome(silent=f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
        return Outcome(gradients=gradients, error_bars=bars)

    def work(self, problem: Differentiation, case: Case) -> float:
        """How much it takes to find them, and to judge them."""
        raise NotImplementedError

    def gradients(
        self, case: Case, problem: Differentiation
    ) -> tuple[Mapping[str, np.ndarray], Mapping[str, np.ndarray]]:
        """(gradients, error bars) by label."""
        raise NotImplementedError

    def locate(self, case: Case, label: str, outcome: Outcome) -> Culprit | None:
        return in_gradient_rules(case)


@final
class JaxGrad(_Opinion):
    """`jax.vjp` of the lowered forward, in float64."""

    name = "jax.grad"

    def work(self, problem: Differentiation, case: Case) -> float:
        return max(compiling(problem.graph), JUDGED * case.work)

    def gradients(
        self, case: Case, problem: Differentiation
    ) -> tuple[Mapping[str, np.ndarray], Mapping[str, np.ndarray]]:
        return _by_label(case, problem.by_jax), {}

    def spread(self, case: Case) -> Mapping[str, np.ndarray]:
        """How far rounding may move its gradients, by label (see `Differentiation.spread_by_jax`)."""
        return _by_label(case, differentiation(case).spread_by_jax)


@final
class FiniteDifferences(_Opinion):
    """Central differences of the graph on NumPy in float64."""

    name, foreign = "finite differences", False

    def work(self, problem: Differentiation, case: Case) -> float:
        asked = [i for i in case.wrt if is_floating(i.tensor._dtype()) and i.positions]
        run = work_of(problem.graph, problem.arrays, case.limit)
        return max(run * FEWEST * QUOTIENT * sum(len(i.positions) for i in asked), JUDGED * case.work)

    def gradients(
        self, case: Case, problem: Differentiation
    ) -> tuple[Mapping[str, np.ndarray], Mapping[str, np.ndarray]]:
        gradients: dict[str, np.ndarray] = {}
        bars: dict[str, np.ndarray] = {}
        run = work_of(problem.graph, problem.arrays, case.limit)
        asked = sum(len(i.positions) for i in case.wrt)  # of whose elements so many can be
        elements = int(min(ELEMENTS, case.limit / (run * QUOTIENT * max(asked, 1))))
        for i in case.wrt:
            if not is_floating(i.tensor._dtype()) or not i.positions:
                continue
            found = [problem.by_differences(p, case.seed, elements) for p in i.positions]
            label = gradient_label(i)
            gradients[label] = _total([g for g, _ in found], i.tensor._d.shape)
            # 10: the estimate is of the coarser quotient's error, but only if the next term is small
            bars[label] = 10 * np.sum([bar for _, bar in found], axis=0) + 1e-9
        return gradients, bars


def _other_gradients(case: Case) -> str:
    """Why the program's gradients are not those of its values; "" if they are."""
    program = case.captured_program
    if case.writes_leaves:
        return "a leaf is written without history: its gradient is that of the new value"
    if case.hooked or (program.recorded.rules is not None and program.recorded.rules.has_hooks):
        return "a hook of the user's may change gradients"
    for function in case.functions:
        if not function.smooth:
            return f"the gradient of the autograd.Function at {function.where} is not that of its value, on purpose"
    nodes = program.graph.nodes
    flowing = program.recorded.nodes.union(*(case.input_ids(i) for i in case.wrt))
    for id in sorted(program.recorded.nodes):
        op, inputs = nodes[id].op, nodes[id].inputs
        if op.traits & Trait.SURROGATE:
            return f"the gradient of '{op.name}' is not that of its value, on purpose"
        for argument in () if op.structured or not op.vjp else op.args:
            reaching = (i for k, i in enumerate(inputs) if op.arg_of(k) == argument and i in flowing)
            if argument not in op.vjp and any(is_inexact(nodes[i].dtype) for i in reaching):
                return f"'{op.name}' has no gradient for '{argument}'"
    return ""


def _by_label(case: Case, of: Callable[[Sequence[int]], list[np.ndarray]]) -> dict[str, np.ndarray]:
    """What `of` gives for the positions of each input that requires grad, in one array each."""
    positions = [p for i in case.wrt for p in i.positions]
    found = dict(zip(positions, of(positions), strict=True))
    return {gradient_label(i): _total([found[p] for p in i.positions], i.tensor._d.shape) for i in case.wrt}


def _total(parts: Sequence[np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
    return sum(parts[1:], start=parts[0]) if parts else np.zeros(shape)


def differentiation(case: Case) -> Differentiation:
    """The program's forward part in float64, to be differentiated by somebody else. Needs `case.program`."""
    program = case.captured_program
    with case.preserved():
        arrays = [widen_array(a) for a in case.arrays()]
    graph = widen(program.graph)
    cotangents = dict(zip(case.joint.seeded, case.cotangents, strict=True))
    recorded = program.recorded.nodes.union(*(f.inside for f in case.functions))
    return Differentiation(graph, arrays, {k: widen_array(ct) for k, ct in cotangents.items()}, recorded)
