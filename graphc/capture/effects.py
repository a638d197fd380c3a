"""What a traced program changes besides its result, and where gradients end in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from eager.core.tensor import Tensor
from graphc.capture.sources import Argument, DataOf, Effect, History, LeafFlag, MemoryOf, Source
from graphc.capture.storage.memory import Memory

if TYPE_CHECKING:
    from graphc.capture.tracer import Tracer


def effects_of(tracer: Tracer) -> list[Effect]:
    """What the program that is being traced changes, so far."""
    found = [
        Effect(
            DataOf(memory.origin) if memory.replaces and not isinstance(memory.origin, MemoryOf) else memory.origin,
            memory.symbol.id,
            _history_of(tracer, memory),
        )
        for memory in tracer.state.memories.written.values()
        if memory.origin is not None
    ]
    found += tracer.autograd.grads.effects()
    for stand_in in {id(t): t for t in tracer.state.stand_ins.values()}.values():
        owner = tracer.state.owners[id(stand_in)]
        assert isinstance(owner, Argument)
        if stand_in.is_leaf and (flag := stand_in._n is not None) is (tracer.given(owner)._n is None):
            found.append(Effect(LeafFlag(owner, flag), None))
    # in the order of the inputs: JAX pairs donated inputs with results of the same type in order, and a program
    # that writes each state over itself needs no copies
    place = {source: k for k, source in enumerate(tracer.state.sources)}
    return sorted(found, key=lambda effect: place.get(effect.target, len(place)))  # type: ignore[arg-type]


def late_leaves(sources: Sequence[Source], effects: Sequence[Effect]) -> frozenset[int]:
    """The numbers of the inputs that require grad only from somewhere in the function on."""
    becoming = {e.target.of for e in effects if isinstance(e.target, LeafFlag) and e.target.flag}
    return frozenset(k for k, source in enumerate(sources) if source in becoming)


def _history_of(tracer: Tracer, memory: Memory) -> History:
    if memory.leaf is not None or memory.symbol.id not in tracer.state.recorded:
        return History.NONE
    return tracer.autograd.history(tracer.wrap(memory.symbol, True))


def gradient_ends(tracer: Tracer, made: Sequence[Tensor]) -> Iterator[tuple[int, int]]:
    """The nodes at which gradients stop besides the inputs: (node, number of the input or leaf that they are for).

    The leaves that the program has `made` are numbered on from the inputs.
    """
    numbers = {source: k for k, source in enumerate(tracer.state.sources)}
    own = {id(leaf): k for k, leaf in enumerate(made, len(tracer.state.sources))}
    for id_, leaf in tracer.state.leaves.items():
        k = own.get(id(leaf), numbers.get(tracer.owner_of(leaf)))  # type: ignore[arg-type]
        if k is not None and (k >= len(tracer.state.sources) or tracer.builder.inputs[k] != id_):
            yield id_, k
