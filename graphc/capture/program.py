"""Program: what a traced function computes, reads, returns, changes, and depends on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from eager.core.devices import device
from eager.core.tensor import Tensor
from graphc.capture.gradients import Autograd
from graphc.capture.sources import ArgumentGuard, Decision, Drawn, Effect, Guard, History, Owner, Returned, Source
from graphc.capture.state.places import Change
from graphc.capture.tree import map_leaves
from graphc.ir import Graph


class MadeLeaf(NamedTuple):
    """A leaf that a function has made and returns as leaf number `result`; `grad` is the number of its `.grad`."""

    result: int
    grad: int | None


class Result(NamedTuple):
    """What the function returns.

    structure  with a Slot for each leaf
    leaves     what each is
    numbers    which are Python numbers
    histories  what autograd knows of each
    made       those that are leaves to autograd, made by the function
    watched    (which, what registers it) of hooks on those that are views
    """

    structure: Any
    leaves: tuple[Returned, ...]
    numbers: frozenset[int]
    histories: tuple[History, ...]
    made: tuple[MadeLeaf, ...] = ()
    watched: tuple[tuple[int, Callable[[Tensor], Any]], ...] = ()

    @property
    def plain(self) -> Any:
        """`structure`, with the slots alone of tensors of a class with `__torch_function__`."""
        return map_leaves(self.structure, lambda slot, path: slot)


class Effects(NamedTuple):
    """What is to be carried out after a run.

    tensors  in-place writes and gradients
    state    what the function puts into Python state: the place, and the value with Slots, numbered on from those of
             the result
    """

    tensors: tuple[Effect, ...] = ()
    state: tuple[tuple[Change, Any], ...] = ()


class Guarded(NamedTuple):
    """What must hold for the graph to be right, besides the signature: of Python state, arguments, and memory."""

    state: tuple[Guard, ...] = ()
    arguments: tuple[ArgumentGuard, ...] = ()
    overlaps: tuple[tuple[Owner, Owner, Any], ...] = ()


class Checks(NamedTuple):
    """What a run finds out.

    decisions  the values of traced tensors that Python has read
    unread     nodes that may fail, and whose values nothing else of the program reads
    """

    decisions: tuple[Decision, ...] = ()
    unread: tuple[int, ...] = ()


class Recorded(NamedTuple):
    """What autograd has to know to differentiate the program.

    nodes   ids of those that gradients flow through (not those made under no_grad, or from detached values)
    ends    (node, number): gradients for an input that was written stop at this node, too; the leaves that the function
            has made are numbered on from the inputs
    late    numbers of the inputs that require grad only from somewhere in the function on: their gradients stop there
    broken  what backward() raises, by the node of a result
    rules   the trace, if gradients depend on autograd.Functions or hooks of the user's
    """

    nodes: frozenset[int] = frozenset()
    ends: tuple[tuple[int, int], ...] = ()
    late: frozenset[int] = frozenset()
    broken: dict[int, str] = {}  # noqa: RUF012 (nobody writes it)
    rules: Autograd | None = None


class Program(NamedTuple):
    """A traced function.

    graph    returns the function's result, or the leaves of it where that is no nest of tuples, lists and dicts
    sources  one for each input of the graph: where it comes from
    drawn    random numbers that were drawn already: for the call that was traced
    device   where it runs, if that is where its tensors are and not the CPU
    """

    graph: Graph
    sources: tuple[Source, ...]
    result: Result
    effects: Effects
    guarded: Guarded
    checks: Checks
    recorded: Recorded
    drawn: Drawn
    device: device | None = None

    @classmethod
    def simple(
        cls, graph: Graph, sources: Sequence[Source], effects: Sequence[Effect], structure: Any,
        returned: Sequence[Returned],
    ) -> Program:  # fmt: skip
        """A program that depends on nothing else, and whose results have no history."""
        result = Result(structure, tuple(returned), frozenset(), (History.NONE,) * len(returned))
        changed = Effects(tuple(effects))
        return cls(graph, tuple(sources), result, changed, Guarded(), Checks(), Recorded(), Drawn())
