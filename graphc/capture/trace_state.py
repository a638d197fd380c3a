"""What one trace knows so far: the state that the tracer, and the files which work for it, share."""

from __future__ import annotations

import dataclasses
import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, final

from eager.core.tensor import Tensor
from graphc.capture.sources import (
    Argument,
    ArgumentGuard,
    Captured,
    Decision,
    Drawn,
    GradOf,
    Guard,
    Lifted,
    MemoryOf,
    Owner,
    Source,
)
from graphc.capture.state.lifted_numbers import LiftedNumber
from graphc.capture.storage.inputs import whole_memory
from graphc.capture.storage.memory import Memories
from graphc.ir import Builder, Symbol
from graphc.ops.aval import Aval
from graphc.ops.dims import Dim, Sizes

if TYPE_CHECKING:
    from graphc.capture.tracer import Tracer


@final
@dataclasses.dataclass(eq=False)
class TraceState:
    """See `Tracer` for `name_of`, `whole` and `outer`.

    sizes, batches   the sizes that are symbolic; and the arguments, by position, whose first dims they are
    sources          of each input
    arguments        the tensors that the call is given
    stand_ins        by id of an argument: the traced tensor in its place
    held             by id of a concrete tensor: that, and its present value
    fresh            concrete tensors made inside the trace, by id
    keepers          optimizers, and parameters of layers, made inside the trace, by id
    keepers_stay     whether they are taken for such that were there before: the function puts them somewhere
    owners           by id of a tensor: where it comes from
    lifted           what was in lifted places before the program
    lifted_tensors   by id of a tensor in such a place: the place
    lifted_numbers   numbers among the arguments
    memories         what is written, or looked at through views
    overlaps         which inputs share memory, and how
    guards, argument_guards, decisions   what the program depends on
    foretold         what XLA has computed for the first decisions: it rounds in its own way
    drawn            random numbers that were needed during the trace
    states           by id of a generator: it, and its state after the last draw that the program itself makes
    recorded         nodes that gradients flow through
    leaves           by node: the leaf tensor whose value it is
    """

    builder: Builder
    name_of: Callable[[Tensor], str | None]
    whole: bool
    outer: Tracer | None
    memories: Memories
    sizes: Sizes | None = None
    batches: Mapping[int, Dim] = dataclasses.field(default_factory=dict)
    sources: list[Source] = dataclasses.field(default_factory=list)
    arguments: list[Tensor] = dataclasses.field(default_factory=list)
    stand_ins: dict[int, Tensor] = dataclasses.field(default_factory=dict)
    held: dict[int, tuple[Tensor, Symbol]] = dataclasses.field(default_factory=dict)
    fresh: dict[int, Tensor] = dataclasses.field(default_factory=dict)
    keepers: dict[int, weakref.ref[Any]] = dataclasses.field(default_factory=dict)
    keepers_stay: bool = False
    owners: dict[int, Owner] = dataclasses.field(default_factory=dict)
    lifted: dict[Lifted, Any] = dataclasses.field(default_factory=dict)
    lifted_tensors: dict[int, Lifted] = dataclasses.field(default_factory=dict)
    lifted_numbers: dict[Source, LiftedNumber] = dataclasses.field(default_factory=dict)
    overlaps: dict[tuple[Owner, Owner], Any] = dataclasses.field(default_factory=dict)
    guards: list[Guard] = dataclasses.field(default_factory=list)
    argument_guards: list[ArgumentGuard] = dataclasses.field(default_factory=list)
    decisions: list[Decision] = dataclasses.field(default_factory=list)
    foretold: tuple[bytes, ...] = ()
    drawn: Drawn = dataclasses.field(default_factory=Drawn)
    states: dict[int, tuple[Any, Tensor]] = dataclasses.field(default_factory=dict)
    recorded: set[int] = dataclasses.field(default_factory=set)
    leaves: dict[int, Tensor] = dataclasses.field(default_factory=dict)

    def forget(self) -> None:
        """Let go of the tensors of the program around, at the end: a trace is a cycle, which lives on for a while."""
        for known in (self.sources, self.held, self.owners):
            known.clear()

    def input(self, name: str, aval: Aval, source: Source) -> Symbol:
        """Append an input to the program."""
        self.sources.append(source)
        return self.builder.input(name, aval)

    def rebind(self, tensor: Tensor, symbol: Symbol) -> None:
        """Let `symbol` be the present value of a tensor."""
        if tensor._d.__class__ is Symbol:
            tensor._d = symbol
        else:
            self.held[id(tensor)] = (tensor, symbol)

    def owner_of(self, tensor: Tensor) -> Owner | None:
        """Where a tensor that outlives the program comes from; None for one that it has made."""
        if tensor._d.__class__ is not Symbol and id(tensor) not in self.fresh and id(tensor) not in self.owners:
            stand_in = self.stand_ins.get(id(tensor))
            outside = self.lifted_tensors.get(id(tensor)) or Captured(tensor)
            self.owners[id(tensor)] = outside if stand_in is None else self.owners[id(stand_in)]
        return self.owners.get(id(tensor))

    def given(self, source: Source) -> Tensor:
        """The concrete tensor behind a source, in the call that is being traced."""
        match source:
            case Argument(position):
                return self.arguments[position]
            case Captured(tensor):
                return tensor
            case Lifted():
                return self.lifted[source]
            case GradOf(of):
                grad = self.given(of)._g
                assert grad is not None
                return grad
            case MemoryOf(of):
                return whole_memory(self.given(of))
        raise AssertionError(source)
