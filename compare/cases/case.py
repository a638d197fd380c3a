"""A case: one call of the user's function, with its program as graphs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, cached_property, partial
from typing import Any, NamedTuple, final

import numpy as np

from compare.cases.call import Call, Input
from compare.cases.joint import Joint, joint_of
from compare.cases.user_functions import Forward, functions_of
from compare.judging.alternatives import Alternatives
from compare.judging.float64 import widen, widen_array
from compare.judging.numeric import evaluate
from compare.judging.work import work_of
from compare.judging.yardstick import Yardstick
from eager.core.tensor import Tensor
from graphc.capture import GradOf
from graphc.capture.storage.sharing import owner_of
from graphc.capture.tree import Slot
from graphc.compiling.decorator import compile
from graphc.ir import Graph
from graphc.passes import optimize
from graphc.passes.pipeline import Pass, default_passes


class Stage(NamedTuple):
    """A graph after one pass of the pipeline."""

    name: str
    run: Pass
    before: Graph
    after: Graph


@final
class Case(Call):
    """A call, and its program as graphs: what the modes run, and what they are judged by."""

    @cached_property
    def joint(self) -> Joint:
        """The program with its gradients. Needs `program`."""
        return joint_of(self, self.captured_program.graph)

    @cached_property
    def wide_joint(self) -> Joint:
        """The program in float64, and its gradients: rules hold their own numbers in float64 too."""
        if self.captured_program.recorded.rules is not None:  # traced in the program's own precision, numbers and all
            return self.joint._replace(graph=widen(self.joint.graph))
        return joint_of(self, widen(self.captured_program.graph))

    @cached_property
    def slots_left(self) -> Mapping[str, Slot]:
        """By label: which slots the program leaves in Python state."""
        program = self.program
        if program is None or not program.effects.state:
            return {}
        slots: dict[int, Slot] = {}  # by the id of the array, which the same tensor of another class has, too

        def placeholder(slot: Slot) -> Any:
            if slot.index in program.result.numbers:
                return slot
            tensor = Tensor._wrap(np.zeros(()))
            slots[id(tensor._d)] = slot
            return tensor

        leaves = {label: leaf for held in self.state_after(placeholder).values() for label, leaf in held.leaves.items()}
        found = {
            label: leaf if type(leaf) is Slot else slots.get(id(getattr(leaf, "_d", None)))
            for label, leaf in leaves.items()
        }
        return {label: slot for label, slot in found.items() if slot is not None}

    def input_ids(self, i: Input) -> list[int]:
        """The ids of the graph's inputs that are this tensor."""
        return [self.captured_program.graph.inputs[p] for p in i.positions]

    def gradient_ids(self, i: Input) -> list[int]:
        """The ids of the nodes at which gradients for this tensor stop: its inputs, and what is written into it."""
        return [*self.input_ids(i), *(id for id, p in self.captured_program.recorded.ends if p in i.positions)]

    @cached_property
    def functions(self) -> list[Forward]:
        """The calls of autograd.Functions that gradients flow through."""
        return functions_of(self.captured_program, {id for i in self.wrt for id in self.gradient_ids(i)})

    @property
    def writes_leaves(self) -> bool:
        """Whether a tensor is written, without history, whose gradient is that of its new value."""
        return self.program is not None and any(len(self.gradient_ids(i)) > len(i.positions) for i in self.wrt)

    def effect_label(self, target: Any) -> str:
        """How findings call what is written to `target`."""
        grad = isinstance(target, GradOf)
        tensor = self._tensor(owner_of(target))
        name = next(i.name for i in self.inputs if i.tensor is tensor)
        return f"{name}.grad after the call" if grad else f"{name} after the call"

    @cached_property
    def operands(self) -> list[np.ndarray]:
        """The inputs of `joint.graph`: those of the program, the cotangents, and what only the user's rules read."""
        with self.preserved():
            arrays = self.arrays()
        outputs = self.joint.graph.outputs
        nodes = self.joint.graph.nodes
        cotangents = [self.cotangent(k, nodes[outputs[k]].aval) for k in self.joint.seeded]
        return [*arrays, *cotangents, *(np.array(t._array()) for t in self.joint.late)]

    @property
    def cotangents(self) -> list[np.ndarray]:
        """Those of `operands`, one for each of `joint.seeded`."""
        first = len(self.captured_program.graph.inputs)
        return self.operands[first : first + len(self.joint.seeded)]

    @cached_property
    def node_values(self) -> dict[int, np.ndarray]:
        """The value of each node of `joint.graph` on NumPy."""
        return evaluate(self.joint.graph, self.operands, checked=False)

    @cached_property
    def work(self) -> float:
        """That of one run of `joint.graph` on NumPy; infinite if it is more than the limit, 0 if there is none."""
        try:
            graph, operands = self.joint.graph, self.operands
        except Exception:  # what differentiating raises is a finding of the graph's mode
            return 0.0
        return work_of(graph, operands, self.limit)

    def too_large(self, work: float) -> str:
        """Why so much work is not done; "" if it is."""
        if work <= self.limit:
            return ""
        much = "more than that" if work == float("inf") else f"{work:.1g}"
        return f"too large: the limit is {self.limit:.1g} numbers, this takes {much}; pass limit= to go further"

    @cached_property
    def passes(self) -> tuple[tuple[str, Pass], ...]:
        """The pipeline: (name, pass)."""
        return default_passes()

    @cached_property
    def stages(self) -> list[Stage]:
        """`joint.graph` after each pass of the pipeline."""
        found: list[Stage] = []
        before = self.joint.graph

        def record(name: str, graph: Graph) -> None:
            nonlocal before
            found.append(Stage(name, self.passes[len(found)][1], before, graph))
            before = graph

        optimize(self.joint.graph, passes=self.passes, after_each=record)
        return found

    @cached_property
    def compiled(self) -> Callable[..., Callable[..., Any]]:
        """The function under `graphc.compile` with these options; one object, so that a second run takes the cached
        program."""
        return cache(partial(compile, self.fn))

    @cached_property
    def yardstick(self) -> Yardstick:
        """The float64 run of the joint graph, and what rounding in the program's own dtypes can do to it."""
        return Yardstick(self.joint.graph, self.operands, self.seed)

    @cached_property
    def exact_gradients(self) -> Mapping[str, np.ndarray]:
        """The gradients by the same rules in float64, by label; decompositions have the signs that eager's have."""
        joint, arrays = self.wide_joint, [widen_array(a) for a in self.operands]
        free = [node.id for node in self.captured_program.graph.operations() if node.op.nearest is not None]
        chosen = evaluate(self.joint.graph, self.operands, checked=False) if free else {}
        found = evaluate(joint.graph, arrays, checked=False, choices={id: chosen[id] for id in free})
        return {label: found[id] for label, id in joint.ids.items() if label.startswith("gradient of ")}

    @cached_property
    def stable_values(self) -> list[np.ndarray]:
        """The outputs of the joint graph in float64, by the forms that passes give it: these overflow later."""
        graph = optimize(widen(self.joint.graph))
        values = evaluate(graph, [widen_array(a) for a in self.operands], checked=False)
        return [np.asarray(values[id]) for id in graph.outputs]

    @cached_property
    def alternatives(self) -> Alternatives:
        """What else is right, for modes with another arithmetic than NumPy's."""
        return Alternatives(self.joint.graph, self.operands, self.seed)

    @cached_property
    def wide_alternatives(self) -> Alternatives:
        """The same for modes that compute in float64."""
        return Alternatives(self.wide_joint.graph, [widen_array(a) for a in self.operands], self.seed)

    @cached_property
    def wide_yardstick(self) -> Yardstick:
        """The same with rounding in float64: for modes that compute in float64."""
        return Yardstick(self.wide_joint.graph, self.operands, self.seed)
