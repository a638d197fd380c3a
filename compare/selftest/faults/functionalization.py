"""Wrong reading and writing of state: what a captured program does to tensors, views, `.grad` and Python objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from compare.locating.surroundings import STATE
from compare.selftest import stateful
from compare.selftest.fault import Fault, of_part
from compare.selftest.planting import Plant, attribute, declared, entry, wrapped
from compare.selftest.stateful import CUBE, X, Y
from compare.selftest.trials import in_turn, numbers, program, session
from graphc.autodiff import reverse
from graphc.capture import Effect, GradOf, History, tracer
from graphc.capture.gradients import Autograd
from graphc.capture.grads import Grads
from graphc.capture.sources import Computed, Given, LeafFlag
from graphc.capture.state.environment import Environment
from graphc.capture.storage.memory import Memories
from graphc.capture.storage.mutation import Mutation
from graphc.capture.storage.results import Results
from graphc.execution import call_code, steps
from graphc.execution.gradients import Gradients
from graphc.ops import OPS

_fault = of_part("functionalization", STATE)
Effects = Callable[[list[Effect]], list[Effect]]


def inverse(op: str, wrong: Callable[..., Any]) -> Plant:
    """A write through the view `op` reaches the whole by `wrong`."""
    lens = OPS[op].lens
    assert lens is not None
    return lambda: declared(OPS[op], lens=lens._replace(put=wrong))


def effects(change: Effects) -> Plant:
    """What a program leaves behind goes through `change`."""
    return wrapped(tracer, "effects_of", lambda sound: lambda traced: change(sound(traced)))


def _exchanged(effects: list[Effect]) -> list[Effect]:
    """The values of the first two effects exchanged."""
    if len(effects) < 2:
        return effects
    a, b, *rest = effects
    return [a._replace(id=b.id), b._replace(id=a.id), *rest]


def _version_kept(sound: Any) -> Any:
    def write(self: Memories, memory: Any, whole: Any) -> None:
        sound(self, memory, whole)
        memory.version -= 1

    return write


def _never_written(sound: Any) -> Any:
    def write(self: Memories, memory: Any, whole: Any) -> None:
        sound(self, memory, whole)
        self.written.pop(id(memory), None)

    return write


def _twice(sound: Any) -> Any:
    def accumulate(self: Grads, tensor: Any, g: Any, create_graph: bool) -> None:
        sound(self, tensor, g, create_graph)
        sound(self, tensor, g, create_graph)

    return accumulate


def _overwritten_grad(sound: Any) -> Any:
    def accumulate(self: Grads, tensor: Any, g: Any, create_graph: bool) -> None:
        self.set_grad(tensor, None)
        sound(self, tensor, g, create_graph)

    return accumulate


def _copied(sound: Any) -> Any:
    """Results that were there before the call come back as copies."""

    def returned(self: Results, tensor: Any) -> Any:
        found = sound(self, tensor)
        if not isinstance(found, Given):
            return found
        return Computed(self._tracer.read(tensor).id, self._number(tensor))

    return returned


def _last_share(grads: dict[int, Any], key: int, d: Any) -> None:
    grads[key] = d


def _memory_replaced(tensor: Any, data: Any) -> None:
    tensor._d = data


def _histories_lost(sound: Any) -> Any:
    return lambda self, tensor: History.NONE if sound(self, tensor) is History.LIVE else sound(self, tensor)


def _completed(value: float) -> Callable[[Any], Any]:
    """Gradients that have not arrived have this value."""

    def planted(sound: Any) -> Any:
        def shares(self: Gradients, node: Any, g: Any) -> Any:
            if isinstance(g, list):
                pairs = zip(g, self.avals, strict=True)
                g = [np.full(aval.shape, value, aval.dtype) if d is None else d for d, aval in pairs]
            return sound(self, node, g)

        return shares

    return planted


_whole_state = in_turn(program(stateful.writes, X, Y), session(stateful.argument_written))

FAULTS: tuple[Fault, ...] = (
    _fault("a write through a slice is lost", inverse("slice", lambda F, whole, value, **region: whole),
           program(stateful.through_slice, X)),
    _fault("a permutation is not inverted",
           inverse("permute", lambda F, whole, value, dims: F.permute(value, dims=dims)),
           program(stateful.through_permutation, CUBE, numbers(2, 2, 2, seed=6))),
    _fault("a reshaped write arrives reversed", inverse(
        "reshape", lambda F, whole, value, shape: F.reshape(F.flip(value, axis=(0,)), shape=whole.shape)),
        program(stateful.through_reshape, numbers(8))),
    _fault("the imaginary part is lost", inverse("real", lambda F, whole, value: F.complex(value, F.real(whole))),
           program(stateful.real_part, stateful.complex_numbers())),
    _fault("views are not read anew", wrapped(Memories, "write", _version_kept), program(stateful.view_read_after, X)),
    _fault("written arguments are forgotten", wrapped(Memories, "write", _never_written), _whole_state),
    _fault("the last effect is forgotten", effects(lambda effects: effects[:-1]), _whole_state),
    _fault("written back to the wrong tensor", effects(_exchanged), _whole_state),
    _fault("the history of writes is lost", wrapped(Mutation, "_write",
        lambda sound: lambda self, memory, whole, recorded: sound(self, memory, whole, False)),
           program(stateful.through_slice, X)),
    _fault("overlapping arguments are taken apart", lambda: attribute(Mutation, "_overlapping", lambda self, owner: []),
           session(stateful.overlapping)),
    _fault("a tensor comes back as a copy", wrapped(Results, "_returned", _copied), session(stateful.returned_itself)),
    _fault("a view comes back as a copy", lambda: attribute(Results, "_base", lambda self, memory: None),
           session(stateful.returned_view)),
    _fault("results share no memory", lambda: attribute(Results, "_base", lambda self, memory: None),
           session(stateful.results_share)),
    _fault("a view comes back as a copy, of one call", lambda: attribute(Results, "_base", lambda self, memory: None),
           program(lambda x: x.view(-1), X)),
    _fault("a tensor comes back as a copy, of one call", wrapped(Results, "_returned", _copied),
           program(lambda x: x, X)),
    _fault("a write replaces the memory, of one call", lambda: entry(steps.SHARED, "overwrite", _memory_replaced),
           program(stateful.writes, X, Y)),
    _fault("a write replaces the memory", lambda: entry(steps.SHARED, "overwrite", _memory_replaced),
           session(stateful.views_held)),
    _fault(".grad is accumulated twice", wrapped(Grads, "accumulate", _twice), session(stateful.training)),
    _fault(".grad is not accumulated", wrapped(Grads, "accumulate", _overwritten_grad), session(stateful.training)),
    _fault(".grad is not cleared", lambda: attribute(call_code, "_cleared", lambda program: []),
           session(stateful.zeroed)),
    _fault(".grad is not written", effects(lambda effects: [e for e in effects if not isinstance(e.target, GradOf)]),
           session(stateful.training)),
    _fault("requires_grad is not set",
           effects(lambda effects: [e for e in effects if not isinstance(e.target, LeafFlag)]),
           session(stateful.flagged)),
    _fault("Python attributes are not written", lambda: attribute(Environment, "written", lambda self: []),
           session(stateful.counting)),
    _fault("results have no history", wrapped(Autograd, "history", _histories_lost), program(stateful.used_twice, X)),
    _fault("missing cotangents are ones", wrapped(Gradients, "shares", _completed(1.0)), session(stateful.one_of_two)),
    _fault("missing cotangents are zeros", wrapped(Gradients, "shares", _completed(0.0)),
           program(stateful.apart, X, Y)),
    _fault("of several shares of a gradient the last", lambda: attribute(reverse, "_add", _last_share),
           program(stateful.used_twice, X)),
)  # fmt: skip
