"""The captured program of a case with its gradients, as one graph."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from compare.cases.outcome import flatten, is_array, is_number
from compare.judging.float64 import wide_dtype
from eager.core.state import storage_of
from eager.core.views import geometry
from eager.rng.generator import is_left
from graphc.autodiff import pullback
from graphc.capture import Argument, Captured, GradOf, MemoryOf
from graphc.capture.tree import Slot
from graphc.errors import GraphError
from graphc.ir import Builder, Graph, Ref, Symbol

if TYPE_CHECKING:
    from compare.cases.call import Input
    from compare.cases.case import Case
    from eager.core.tensor import Tensor

_WRITTEN = (Argument, Captured, GradOf)  # effects whose values are those of a tensor after the call


class Joint(NamedTuple):
    """The captured program with its gradients, as one graph of (inputs, cotangents, late) -> labelled outputs.

    seeded    numbers of the slots of the result that have a cotangent: so many outputs come before them
    labels    of the graph's outputs, in order
    late      tensors that only gradient rules of the user's read
    lacking   why there are no gradients among the outputs, though eager has them; else ""
    """

    graph: Graph
    seeded: tuple[int, ...]
    labels: tuple[str, ...]
    structure: Any
    late: tuple[Tensor, ...] = ()
    lacking: str = ""

    @property
    def ids(self) -> dict[str, int]:
        """The node of each label."""
        return dict(zip(self.labels, self.graph.outputs, strict=True))


def gradient_label(i: Input) -> str:
    """How findings call the gradient of an input."""
    return f"gradient of {i.name}"


def written_label(i: Input) -> str:
    """How findings call what an input holds at the end."""
    return f"{i.name} after the call"


def joint_of(case: Case, graph: Graph) -> Joint:
    """The joint graph of a case. graph: that of `case.program`; or, without rules of the user's, the same in float64.

    Raises what gradient rules raise.
    """
    program = case.captured_program
    structure, _ = flatten(program.result.plain, lambda x: type(x) is Slot or is_number(x) or is_array(x))
    refs = [ref.id for ref in flatten(graph.result, lambda x: isinstance(x, Ref))[1].values()]  # one for each slot
    live = [k for k in case.tensor_slots if case.seeds(k, graph.nodes[refs[k]].dtype)] if case.wrt else []

    def seeds(builder: Builder) -> dict[int, Symbol]:
        given: dict[int, Symbol] = {}
        for k in live:
            seed = builder.input(f"ct_{k}", graph.nodes[refs[k]].aval)
            given[refs[k]] = given[refs[k]] + seed if refs[k] in given else seed
        return given

    labels = [label for label, leaf in case.slots.items() if type(leaf) is Slot]
    result = refs[: len(labels)]
    for effect in program.effects.tensors:
        if isinstance(effect.target, Captured) and is_left(effect.target.tensor):
            continue  # eager's generator has its state elsewhere
        if effect.id is not None and isinstance(effect.target, _WRITTEN):
            labels.append(case.effect_label(effect.target))
            result.append(effect.id)
    for label, slot in case.slots_left.items():
        labels.append(label)
        result.append(refs[slot.index])
    for id in program.checks.unread:  # for what they raise
        labels.append(f"unread {id}")
        result.append(id)
    builder, found, late, lacking = _pulled(case, graph, seeds) if live else (_copy(graph), {}, [], "")
    for effect in program.effects.tensors:
        if effect.id is not None and isinstance(effect.target, MemoryOf):
            for label, shown in _shown(case, effect.target, builder.symbol(effect.id)):
                labels.append(label)
                result.append(shown.id)
    if live and not lacking:
        for i in case.wrt:
            parts = [builder.symbol(found[id]) for id in case.gradient_ids(i) if id in found]
            dtype = wide_dtype(i.tensor._dtype()) if graph is not program.graph else i.tensor._dtype()
            zero = builder.language.full(shape=tuple(i.tensor._d.shape), value=0, dtype=dtype)
            total = functools.reduce(builder.language.add, parts) if parts else zero
            labels.append(gradient_label(i))
            result.append(total.id)
    joint = builder.graph(graph.name, tuple(Ref(id) for id in result))
    return Joint(joint, tuple(live), tuple(labels), structure, tuple(late), lacking)


def _shown(case: Case, memory: MemoryOf, whole: Symbol) -> Iterator[tuple[str, Symbol]]:
    """What the tensors that lie in `memory` show after the call: (label, value) of each; `whole` is all of it."""
    flat, language = case.memory(memory)._array(), whole.builder.language
    for i in case.inputs:
        array = i.tensor._array()
        if storage_of(array) is storage_of(flat):
            yield written_label(i), language.as_strided(whole, **geometry(flat, array))


def _pulled(
    case: Case, graph: Graph, seeds: Callable[[Builder], dict[int, Symbol]]
) -> tuple[Builder, dict[int, int], list[Tensor], str]:
    """`graph` with gradients: who has built them, the node of each, and `late` and `lacking` of `Joint`."""
    program = case.captured_program
    targets = [id for i in case.wrt for id in case.gradient_ids(i)]
    late: list[Tensor] = []
    try:
        if program.recorded.rules is not None:
            with case.preserved():  # the rules are the user's Python, and may write state
                traced, found, late = program.recorded.rules.pullback(graph, seeds, targets)
            builder = _copy(Graph(graph.name, traced.nodes, tuple(traced.inputs), graph.result))  # the trace is closed
        else:
            builder = _copy(graph)
            found = pullback(builder, seeds(builder), targets, program.recorded.nodes)
    except GraphError as error:  # a rule that is a Python program, inside control flow
        builder = _copy(graph)
        seeds(builder)  # the inputs are there, whoever uses them
        return builder, {}, [], str(error).partition("\n")[0]
    return builder, {id: g.id for id, g in found.items()}, late, ""


def _copy(graph: Graph) -> Builder:
    builder = Builder(graph.nodes, whole=True)
    builder.inputs = list(graph.inputs)
    return builder
