"""The captured program of a case with its gradients, as one graph."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple

from compare.checking.outcome import flatten, is_number
from compare.judging.float64 import wide_dtype
from graphc.autodiff import pullback
from graphc.capture import Argument, Captured, GradOf, MemoryOf
from graphc.capture.tree import Slot
from graphc.ir import Builder, Graph, Ref

if TYPE_CHECKING:
    from compare.checking.case import Case, Input

_WRITTEN = (Argument, Captured, GradOf, MemoryOf)  # effects whose values are those of a tensor after the call


class Joint(NamedTuple):
    """The captured program with its gradients, as one graph of (inputs, cotangents) -> labelled outputs.

    seeded    numbers of the slots of the result that have a cotangent: so many outputs come before them
    labels    of the graph's outputs, in order
    """

    graph: Graph
    seeded: tuple[int, ...]
    labels: tuple[str, ...]
    structure: Any


def gradient_label(i: Input) -> str:
    """How findings call the gradient of an input."""
    return f"gradient of {i.name}"


def joint_of(case: Case, graph: Graph) -> Joint:
    """The joint graph of a case. graph: that of `case.program`, or the same in float64."""
    program = case.program
    assert program is not None
    structure, _ = flatten(program.structure, lambda x: type(x) is Slot or is_number(x))
    refs = [ref.id for ref in flatten(graph.result, lambda x: isinstance(x, Ref))[1].values()]  # one for each slot
    builder = Builder(graph.nodes)
    builder.inputs = list(graph.inputs)
    live = [k for k in case.tensor_slots if case.seeds(k, graph.nodes[refs[k]].dtype)] if case.wrt else []
    seeds: dict[int, Any] = {}
    for k in live:
        seed = builder.input(f"ct_{k}", graph.nodes[refs[k]].aval)
        seeds[refs[k]] = seeds[refs[k]] + seed if refs[k] in seeds else seed
    labels = [label for label, leaf in case.slots.items() if type(leaf) is Slot]
    result = refs[: len(labels)]
    for effect in program.effects:
        if effect.id is not None and isinstance(effect.target, _WRITTEN):
            labels.append(case.effect_label(effect.target))
            result.append(effect.id)
    for label, slot in case.slots_left.items():
        labels.append(label)
        result.append(refs[slot.index])
    if live:
        targets = [id for i in case.wrt for id in case.gradient_ids(i)]
        found = pullback(builder, seeds, targets, program.recorded)
        for i in case.wrt:
            parts = [found[id] for id in case.gradient_ids(i) if id in found]
            dtype = wide_dtype(i.tensor._dtype()) if graph is not program.graph else i.tensor._dtype()
            zero = builder.language.full(shape=tuple(i.tensor._d.shape), value=0, dtype=dtype)
            total = functools.reduce(builder.language.add, parts) if parts else zero
            labels.append(gradient_label(i))
            result.append(total.id)
    joint = builder.graph(graph.name, tuple(Ref(id) for id in result))
    return Joint(joint, tuple(live), tuple(labels), structure)
