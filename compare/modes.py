"""The ways to run a case, and the registry that more can be added to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, final

import numpy as np

from compare import localize
from compare.case import Case, gradient_label
from compare.float64 import widen, widen_array
from compare.localize import Culprit
from compare.numeric import evaluate, outputs_of
from compare.opinions import Differentiation
from compare.outcome import Outcome, is_number
from compare.tolerance import same_bits
from graphc.capture import History
from graphc.ops.aval import Aval
from graphc.passes.pipeline import default_passes

NOT_CAPTURED = "the program was not captured"


class Mode(Protocol):
    """A way to run a case.

    name      unique; what findings call it
    wide      whether it computes in float64 (then only gradients are compared, against the float64 graph)
    repeats   whether a second run must be asked for, and must agree
    """

    name: str
    wide: bool
    repeats: bool

    def run(self, case: Case) -> Outcome:
        """What the mode makes of the case. Exceptions of the program go into the outcome."""
        ...

    def locate(self, case: Case, label: str, outcome: Outcome) -> Culprit | None:
        """The first place where this mode parts from eager, for a wrong array `label` (or "" for an exception)."""
        ...


@final
class Eager:
    """Define by run: the reference."""

    name, wide, repeats = "eager", False, True

    def run(self, case: Case) -> Outcome:
        return case.observe(case.fn)

    def locate(self, case: Case, label: str, outcome: Outcome) -> Culprit | None:
        return None


@final
class Compiled:
    """`graphc.compile`, gradients through the tape."""

    name, wide, repeats = "compiled", False, True

    def run(self, case: Case) -> Outcome:
        return case.observe(case.compiled)

    def locate(self, case: Case, label: str, outcome: Outcome) -> Culprit | None:
        return localize.in_lowering(case, outcome) or localize.in_graph(case, label, outcome)


@final
class GraphMode:
    """The captured and differentiated graph on NumPy, node by node; with `stage`, after so many passes."""

    wide = repeats = False

    def __init__(self, stage: int = 0, pass_name: str = ""):
        self.name = f"pass {stage}: {pass_name}" if stage else "graph"
        self._stage = stage

    def run(self, case: Case) -> Outcome:
        program = case.program
        if program is None:
            return Outcome(silent=NOT_CAPTURED) if self._stage else Outcome(error=case.failure)
        if case.keeps_containers:
            return Outcome(silent="the result is a container that was there before the call")
        try:
            joint = case.joint
            graph = case.stages[self._stage - 1].after if self._stage else joint.graph
            values = evaluate(graph, case.operands)
        except Exception as error:
            return Outcome(error=error)
        outputs = dict(zip(joint.labels, outputs_of(graph, values), strict=True))
        ids = dict(zip(joint.labels, graph.outputs, strict=True))
        changes = {label: a for label, a in outputs.items() if label.endswith(" after the call")}
        tensors = {label: leaf.index for label, leaf in case.slots.items() if not is_number(leaf)}
        numbers = {label for label, k in tensors.items() if k in program.numbers}
        return Outcome(
            joint.structure,
            {label: _result(outputs.get(label, leaf), label in numbers) for label, leaf in case.slots.items()},
            {label: Aval(*graph.nodes[ids[label]].aval) for label in tensors if label not in numbers},
            {label: program.histories[k] is not History.NONE for label, k in tensors.items() if label not in numbers},
            {label: a for label, a in outputs.items() if label.startswith("gradient of ")},
            {label: a for label, a in changes.items() if _changed(case, label, a)},
        )

    def locate(self, case: Case, label: str, outcome: Outcome) -> Culprit | None:
        if self._stage and outcome.error is None:
            return localize.in_pass(case, case.stages[self._stage - 1], label)
        return localize.in_graph(case, label, outcome)


def _result(value: Any, number: bool) -> np.ndarray:
    """A copy of a result; a number as Python has it, in double precision."""
    return np.array(value.item() if number else value)


def _changed(case: Case, label: str, array: np.ndarray) -> bool:
    """Whether an effect changes bits (it may write what is there already)."""
    for name, tensor, _ in case.inputs:
        if label == f"{name} after the call":
            return not same_bits(array, tensor._array())
        if label == f"{name}.grad after the call":
            grad = getattr(tensor, "_g", None)
            return grad is None or not same_bits(array, grad._array())
    return True


class _Opinion:
    """A mode that only has an opinion on gradients, in float64."""

    name = ""
    wide, repeats = True, False

    def run(self, case: Case) -> Outcome:
        if case.program is None or not case.joint.seeded:
            return Outcome(silent=NOT_CAPTURED if case.program is None else "nothing to differentiate")
        try:
            problem = differentiation(case)
            gradients, bars = self.gradients(case, problem)
        except Exception as error:
            return Outcome(silent=f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
        return Outcome(gradients=gradients, error_bars=bars)

    def gradients(
        self, case: Case, problem: Differentiation
    ) -> tuple[Mapping[str, np.ndarray], Mapping[str, np.ndarray]]:
        """(gradients, error bars) by label."""
        raise NotImplementedError

    def locate(self, case: Case, label: str, outcome: Outcome) -> Culprit | None:
        return localize.in_gradient_rules(case)


@final
class JaxGrad(_Opinion):
    """`jax.vjp` of the lowered forward, in float64."""

    name = "jax.grad"

    def gradients(
        self, case: Case, problem: Differentiation
    ) -> tuple[Mapping[str, np.ndarray], Mapping[str, np.ndarray]]:
        positions = [p for i in case.wrt for p in i.positions]
        found = dict(zip(positions, problem.by_jax(positions), strict=True))
        return {gradient_label(i): _total([found[p] for p in i.positions], i.tensor._d.shape) for i in case.wrt}, {}


@final
class FiniteDifferences(_Opinion):
    """Central differences of the graph on NumPy in float64."""

    name = "finite differences"

    def gradients(
        self, case: Case, problem: Differentiation
    ) -> tuple[Mapping[str, np.ndarray], Mapping[str, np.ndarray]]:
        gradients: dict[str, np.ndarray] = {}
        bars: dict[str, np.ndarray] = {}
        for i in case.wrt:
            if i.tensor._dtype().kind != "f" or not i.positions:
                continue
            found = [problem.by_differences(p, case.seed) for p in i.positions]
            label = gradient_label(i)
            gradients[label] = _total([g for g, _ in found], i.tensor._d.shape)
            # 10: the estimate is of the coarser quotient's error, but only if the next term is small
            bars[label] = 10 * np.sum([bar for _, bar in found], axis=0) + 1e-9
        return gradients, bars


def _total(parts: Sequence[np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
    total = parts[0] if parts else np.zeros(shape)
    for part in parts[1:]:
        total = total + part
    return total


def differentiation(case: Case) -> Differentiation:
    """The program's forward part in float64, to be differentiated by somebody else. Needs `case.program`."""
    program = case.program
    assert program is not None
    with case.preserved():
        arrays = [widen_array(a) for a in case.arrays()]
    graph = widen(program.graph)
    cotangents = dict(zip(case.joint.seeded, case.operands[len(arrays) :], strict=True))
    return Differentiation(graph, arrays, {k: widen_array(ct) for k, ct in cotangents.items()}, program.recorded)


# --- the registry

_modes: dict[str, Sequence[Mode]] = {}
PASSES = "passes"


def register_mode(mode: Mode) -> Mode:
    """Add `mode` to those that `check` runs; a mode of the same name is replaced."""
    _modes[mode.name] = (mode,)
    return mode


def modes_named(names: Sequence[str] | None) -> list[Mode]:
    """The registered modes of these names, or all. "passes" stands for one mode a pass. Raises ValueError."""
    after_each = [GraphMode(k, name) for k, (name, _) in enumerate(default_passes(), 1)]
    table: dict[str, Sequence[Mode]] = {}
    for name, modes in _modes.items():
        table[name] = modes
        if name == "graph":
            table[PASSES] = after_each
    wanted = list(table) if names is None else list(names)
    if unknown := [name for name in wanted if name not in table]:
        raise ValueError(f"unknown mode '{unknown[0]}'; registered are {', '.join(table)}")
    return [mode for name in wanted for mode in table[name]]


EAGER = Eager()
for _mode in (EAGER, GraphMode(), Compiled(), JaxGrad(), FiniteDifferences()):
    register_mode(_mode)
