"""Hooks on tensors under a trace: they see the gradients that arrive in the graph.

A hook on a tensor that was there before the call stays on it, as in eager: each call registers it there (again), so
that it is the tape around the program that runs it, unless the gradient arrives within the program.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, final

from eager.core import tape
from eager.core.tensor import Tensor
from eager.engine import hooks
from graphc import errors
from graphc.capture.location import user_line
from graphc.capture.sources import Argument, Captured, Computed, Lifted, ViewOf
from graphc.capture.state.places import Change
from graphc.capture.state.words import slot_of, version_of

if TYPE_CHECKING:
    from graphc.capture.gradients import Autograd
    from graphc.capture.trace_state import TraceState

Rule = Callable[[list[Tensor]], list[Tensor | None]]


class Registry(dict[int, Callable[[Tensor], Any]]):
    """The hooks of a traced tensor, by the id of the handle."""


@final
class Hooks:
    """The hooks of one trace."""

    def __init__(self, state: TraceState, autograd: Autograd):
        self._state, self._autograd, self._tracer = state, autograd, autograd.tracer
        self._registered: dict[int, Registry] = {}  # by node
        self._reached: dict[int, Tensor] = {}  # leaves that gradients have arrived at, so that their hooks have run

    def __bool__(self) -> bool:
        return any(self._registered.values())

    def hook(self, tensor: Tensor, hook: Callable[[Tensor], Any]) -> hooks.RemovableHandle:
        """See `eager.core.interpreter.Interpreter.hook`."""
        return hooks.RemovableHandle(self._registered.setdefault(self._tracer.read(tensor).id, Registry()), hook)

    def hook_after(self, tensor: Tensor, hook: Callable[[Tensor], Any]) -> hooks.RemovableHandle:
        """See `eager.core.interpreter.Interpreter.hook_after`. CaptureError for a tensor from before the call."""
        if not isinstance(tensor._n, list) or self._state.owner_of(tensor) is not None:
            raise errors.CaptureError(errors.HOOK_STAYS.format(used=user_line()))
        return hooks.RemovableHandle(hooks.hooked(tensor._n).accumulated, hook)

    def rules(self) -> list[tuple[int, Rule]]:
        """The nodes with hooks, and those as rules. Raises CaptureError for one on a tensor of the trace around."""
        found: list[tuple[int, Rule]] = []
        for id_, registered in self._registered.items():
            if registered and id_ in self._autograd.outside:
                raise errors.CaptureError(errors.HOOK_OUTSIDE.format(used=user_line()))
            if registered:
                found.append((id_, functools.partial(_through, list(registered.values()))))
        return found

    def staying(self) -> list[Change]:
        """What registers, at a call, the hooks on tensors from before the call that have not been removed."""
        found: list[Change] = []
        for id_, registered in self._registered.items():
            tensor = self._from_before(id_)
            if tensor is not None:
                found += [Change("a hook", None, (tensor, hook), _register) for hook in registered.values()]
        return found

    def _from_before(self, id_: int) -> Tensor | None:
        """The tensor from before the call whose value is node `id_`."""
        leaf = self._state.leaves.get(id_)
        return leaf if leaf is not None and self._state.owner_of(leaf) is not None else None

    def on_view(self, id_: int, view: ViewOf) -> Iterator[Callable[[Tensor], Any]]:
        """What registers the hooks on the view of node `id_`, a result that each call makes anew.

        Raises CaptureError where the program reads a view that has hooks, for another view or anything else.
        """
        nodes, base = self._tracer.builder.nodes, view.base.id if isinstance(view.base, Computed) else None
        while id_ != base and nodes[id_].inputs:
            if found := self._registered.get(id_):
                if any(id_ in node.inputs for node in nodes.values()):
                    raise errors.CaptureError(errors.HOOK_ON_VIEW.format(made=nodes[id_].where))
                yield from (functools.partial(Tensor.register_hook, hook=hook) for hook in found.values())
            id_ = nodes[id_].inputs[0]

    def of(self, id_: int, replaying: bool) -> list[Callable[[Tensor], Any]]:
        """The hooks that a gradient meets that arrives at node `id_`; `replaying`: after the trace, on the tape."""
        leaf = self._state.leaves.get(id_)
        if replaying and self._from_before(id_) is not None:
            return []  # where the tape runs them
        found = list(self._registered.get(id_, Registry()).values())
        if leaf is not None and isinstance(leaf._n, list) and not replaying:
            self._reached[id(leaf)] = leaf
            found += _hooks_of(leaf)[0]
        return found

    def guard(self) -> None:
        """The hooks of leaves have run while the program was traced: they are to stay the same."""
        tracer = self._tracer
        captured: list[Tensor] = []
        for leaf in self._reached.values():
            match self._state.owner_of(leaf):
                case Argument(position):
                    tracer.concretization.guard_argument(position, _hooks_of, _hooks_of(leaf), "its hooks")
                case Captured(tensor):
                    captured.append(tensor)
                case Lifted():
                    what = f"the hooks of {tracer.concretization.called(leaf)}"
                    tracer.guard(tracer.concretization.later(leaf, _hooks_of), _hooks_of(leaf), what)
                case _:
                    pass
        if captured:
            called = ", ".join(map(tracer.concretization.called, captured))
            tracer.guard(_HooksOf(captured), _HooksOf(captured)(), f"the hooks of {called}")


def is_traced_handle(value: Any) -> bool:
    """Whether `value` is the handle of a hook that a program registers, which it cannot hand out."""
    return type(value) is hooks.RemovableHandle and type(value._hooks) is Registry and value.id in value._hooks


def _register(pair: tuple[Tensor, Callable[[Tensor], Any]] | None) -> None:
    if pair is not None:
        hooks.register_hook(*pair)


def _through(registered: list[Callable[[Tensor], Any]], cotangents: list[Tensor]) -> list[Tensor | None]:
    """The gradient that arrives at a tensor, as its hooks leave it."""
    (g,) = cotangents
    for hook in registered:
        result = hook(g)
        g = g if result is None else result
    return [g]


def _hooks_of(leaf: Tensor) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The hooks of a leaf: on its gradient, and after that has been accumulated."""
    found = hooks.hooks_of(leaf._n) if isinstance(leaf._n, list) else None
    return ((), ()) if found is None else (tuple(found.of_tensor.values()), tuple(found.accumulated.values()))


@final
class _HooksOf:
    """Gives the hooks of those leaves that have some.

    words  those that change before a leaf without a hook has one; None if a leaf has some already
    """

    def __init__(self, leaves: list[Tensor]):
        self._leaves = leaves
        found = [version_of(hooks.first_hooks), *(slot_of(leaf, "_n") for leaf in leaves)]
        self.words = None if None in found or self() else [word for words in found for word in words or ()]

    def __call__(self) -> list[Any]:
        return [
            (k, _hooks_of(leaf))
            for k, leaf in enumerate(self._leaves)
            if (node := leaf._n) is not None and node[tape.BACKWARD].__class__ is hooks.Hooked
        ]
