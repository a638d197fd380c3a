"""The modes that run the captured and differentiated graph node by node: on NumPy, after each pass, and on XLA."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import numpy as np

from compare.cases.case import Case
from compare.cases.outcome import Outcome
from compare.cases.state import Held, arrays_in, structures_in
from compare.judging.numeric import evaluate, outputs_of
from compare.judging.tolerance import same_bits
from compare.locating import stages
from compare.locating.culprit import Culprit
from compare.locating.lowerings import in_lowering
from compare.locating.passes import in_pass
from compare.modes.protocol import NOT_CAPTURED
from compare.modes.tape import behind_the_graph
from eager.core.tensor import Tensor
from graphc.capture import History
from graphc.capture.tree import Slot
from graphc.ir import Graph
from graphc.lowering.reference import op_by_op
from graphc.ops.aval import Aval


class OnGraph:
    """A mode that computes the outputs of `case.joint`, some graph for it given, and so has an outcome.

    `derived`: whether that is another graph than the one that was captured, which then has its say on exceptions.
    """

    name = ""
    wide = repeats = False
    derived = False

    def outputs(self, case: Case) -> list[np.ndarray]:
        """One array for each of `case.joint.labels`. May raise what the program raises."""
        raise NotImplementedError

    def run(self, case: Case) -> Outcome:
        if case.program is None:
            return Outcome(silent=NOT_CAPTURED) if self.derived else Outcome(error=case.failure)
        if case.keeps_containers:
            return Outcome(silent="the result is a container that was there before the call")
        try:
            if why := case.too_large(case.work):
                return Outcome(silent=why)
            return outcome_of(case, dict(zip(case.joint.labels, self.outputs(case), strict=True)))
        except Exception as error:
            return Outcome(error=error)

    def locate(self, case: Case, label: str, outcome: Outcome) -> Culprit | None:
        found = stages.in_graph(case, label, outcome) or stages.in_traceback(outcome.error or case.failure)
        return found or behind_the_graph(case, self, label, outcome)


@final
class GraphMode(OnGraph):
    """The graph on NumPy; with `stage`, after so many passes."""

    foreign = False

    def __init__(self, stage: int = 0, pass_name: str = ""):
        self.name = f"pass {stage}: {pass_name}" if stage else "graph"
        self.derived = bool(stage)
        self._stage = stage

    def outputs(self, case: Case) -> list[np.ndarray]:
        graph: Graph = case.stages[self._stage - 1].after if self._stage else case.joint.graph
        return outputs_of(graph, evaluate(graph, case.operands))

    def locate(self, case: Case, label: str, outcome: Outcome) -> Culprit | None:
        if self._stage and outcome.error is None:
            return in_pass(case, case.stages[self._stage - 1], label)
        return super().locate(case, label, outcome)


@final
class OpByOp(OnGraph):
    """The graph on XLA, each op by itself: what the lowerings make of the ops, without what XLA makes of the whole."""

    name, derived = "xla op by op", True

    def outputs(self, case: Case) -> list[np.ndarray]:
        return op_by_op(case.joint.graph, case.operands)

    def locate(self, case: Case, label: str, outcome: Outcome) -> Culprit | None:
        return in_lowering(case) or super().locate(case, label, outcome)


def outcome_of(case: Case, outputs: Mapping[str, np.ndarray]) -> Outcome:
    """The outcome of a case, if `outputs` has the array for each of `case.joint.labels`."""
    program, joint = case.captured_program, case.joint
    ids = joint.ids
    tensors = {label: leaf.index for label, leaf in case.slots.items() if type(leaf) is Slot}
    numbers = {label for label, k in tensors.items() if k in program.result.numbers}
    held = _state(case, outputs)
    effects = {label for label in outputs if label.endswith(" after the call")} - held.keys() - case.slots_left.keys()
    changes = {label: a for label, a in outputs.items() if label in effects}
    return Outcome(
        joint.structure,
        {label: _result(outputs.get(label, leaf), label in numbers) for label, leaf in case.slots.items()},
        {label: Aval(*joint.graph.nodes[ids[label]].aval) for label in tensors if label not in numbers},
        {
            label: program.result.histories[k] is not History.NONE
            for label, k in tensors.items()
            if label not in numbers
        },
        case.as_hooks_leave({label: a for label, a in outputs.items() if label.startswith("gradient of ")}),
        {label: a for label, a in changes.items() if _changed(case, label, a)} | arrays_in(held),
        structures_in(held),
    )


def _state(case: Case, outputs: Mapping[str, np.ndarray]) -> dict[str, Held]:
    """The Python state after the call."""
    program, graph = case.captured_program, case.joint.graph
    arrays = {slot.index: outputs[label] for label, slot in case.slots_left.items()}
    ids = case.joint.ids
    given = {graph.inputs[k]: i.tensor for i in case.inputs for k in i.positions}
    same = {slot.index: given[ids[label]] for label, slot in case.slots_left.items() if ids[label] in given}

    def leaf(slot: Slot) -> Any:
        if slot.index not in arrays:
            return None  # what a later change writes over, so that nothing of it is left
        if slot.index in same:
            return same[slot.index]
        array = arrays[slot.index]
        return array.item() if slot.index in program.result.numbers else Tensor._wrap(array)

    return case.state_after(leaf)


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
