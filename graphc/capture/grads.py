"""`.grad` under a trace: what each tensor's is as the program sees it, and what the program does to it."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, final

import numpy as np

from eager.core import tape
from eager.core.grad_mode import set_grad_enabled
from eager.core.sparse import is_sparse
from eager.core.tensor import Tensor
from eager.engine import walks
from graphc import errors
from graphc.capture.location import user_line
from graphc.capture.sources import Argument, Effect, GradOf, History, Lifted, PastOf
from graphc.capture.state.places import Change
from graphc.capture.state.words import slot_of
from graphc.capture.storage.inputs import overlapping
from graphc.capture.tree import tensors_of
from graphc.ir import Symbol
from graphc.ops.aval import Aval

if TYPE_CHECKING:
    from graphc.capture.gradients import Autograd
    from graphc.capture.trace_state import TraceState


@final
class Grads:
    """The `.grad` of each tensor of one trace, and the gradients that go on to history from before it."""

    def __init__(self, state: TraceState, autograd: Autograd):
        self._state, self._autograd, self._tracer = state, autograd, autograd.tracer
        self._grads: dict[int, tuple[Tensor, Tensor | None]] = {}  # as the program sees them
        self._initial: dict[int, int | None] = {}  # the node of `.grad` before the program, None if it was None
        self._before: dict[int, Tensor] = {}  # the tensor that `.grad` was before the program
        self._past: list[tuple[Tensor, Symbol, bool]] = []  # gradients that go on to history from before the program
        self._behind: set[int] = set()  # leaves that those will reach
        # what is to be added to a `.grad` of which the program has not asked whether it is None: by id of its tensor
        self._waiting: dict[int, tuple[Tensor, list[Symbol]]] = {}

    def get_grad(self, tensor: Tensor) -> Tensor | None:
        """See `eager.core.interpreter.Interpreter`."""
        key = id(tensor)
        if key in self._behind:
            raise errors.CaptureError(errors.GRAD_OF_THE_PAST.format(used=user_line()))
        if key not in self._grads:
            _, waiting = self._waiting.pop(key, (tensor, ()))
            self._grads[key] = (tensor, self._read_grad(tensor))
            for g in waiting:
                self._add(tensor, g)
        return self._grads[key][1]

    def _read_grad(self, tensor: Tensor) -> Tensor | None:
        """The `.grad` that the tensor has before the program starts."""
        tracer = self._tracer
        owner = self._state.owner_of(tensor)
        if owner is None:
            return getattr(tensor, "_g", None) if tensor._d.__class__ is not Symbol else None
        given = self._state.given(owner)
        grad = getattr(given, "_g", None)
        if grad is not None and is_sparse(grad):
            raise errors.CaptureError(errors.SPARSE_GRAD.format(used=user_line()))
        if isinstance(owner, Argument):
            tracer.concretization.guard_argument(owner.position, _has_no_grad, grad is None, "whether .grad is None")
        else:
            what = f"whether the .grad of {tracer.concretization.called(given)} is None"
            is_lifted = isinstance(owner, Lifted)
            asked = tracer.concretization.later(given, _has_no_grad) if is_lifted else _HasNoGrad(given)
            tracer.guard(asked, grad is None, what)
        if grad is None:
            self._initial[id(tensor)] = None
            return None
        name = (self._state.name_of(tensor) or "captured") + "_grad"
        symbol = self._state.input(name, Aval(tuple(tensor._d.shape), grad._dtype()), GradOf(owner))
        self._initial[id(tensor)] = symbol.id
        before = self._before[id(tensor)] = tracer.wrap(symbol, False)
        return before

    def settle(self, to_run: bool = False) -> None:
        """Add what waits, at the end of the trace.

        to_run  whether the program is run next. A `.grad` that it gives up and makes anew will be there in the next
                call: if it is not yet, it is made of -0, to which all can be added, and the next call is this program.
        """
        for key, (tensor, waiting) in [*self._waiting.items()]:
            if key not in self._grads:
                self.get_grad(tensor)
                continue
            owner = self._state.owner_of(tensor)
            given = None if owner is None or isinstance(owner, Argument) else self._state.given(owner)
            stays = to_run and self._grads[key][1] is not None
            if stays and given is not None and given._d.__class__ is np.ndarray and given._g is None:
                given._g = Tensor._wrap(np.full_like(given._d, -0.0))
                self._state.drawn.grads.append((given, given._g))
            old = self._read_grad(tensor)
            if old is not None:  # someone may hold it
                for g in waiting:
                    self._add_to(old, g)
        self._waiting.clear()

    def is_given(self, grad: Tensor) -> bool:
        """Whether `grad` stands for the tensor that a `.grad` was before the program."""
        return any(grad is before for before in self._before.values())

    def set_grad(self, tensor: Tensor, value: Tensor | None) -> None:
        """See `eager.core.interpreter.Interpreter`."""
        self._state.owner_of(tensor)
        self._grads[id(tensor)] = (tensor, value)

    def effects(self) -> list[Effect]:
        """What the program does to the `.grad` of tensors that outlive it, and to histories from before it."""
        self.settle()
        found: list[Effect] = []
        numbers: dict[int, int] = {}
        tracer = self._tracer
        for key, (tensor, grad) in self._grads.items():
            if grad is not None and is_sparse(grad):
                continue  # see `sparse_gradients`
            owner = self._state.owner_of(tensor)
            final = None if grad is None else tracer.read(grad).id
            before = self._before.get(key)
            if owner is not None and before is not None and before is not grad:  # someone may hold it
                left = tracer.read(before).id
                if left != self._initial[key]:
                    found.append(Effect(GradOf(owner), left, self._autograd.history(before)))
            changed = key not in self._initial or final != self._initial[key] or grad is not before
            if owner is not None and changed:
                history = History.NONE if grad is None else self._autograd.history(grad)
                same = grad is None or grad is before
                number = None if same else numbers.setdefault(id(grad), len(numbers))
                found.append(Effect(GradOf(owner), final, history, number))
        self._refuse_shared(found)
        for tensor, g, keep in self._past:
            owner = self._state.owner_of(tensor)
            assert owner is not None
            found.append(Effect(PastOf(owner, keep), g.id))
        self._autograd.hooks.guard()
        return found

    def _refuse_shared(self, effects: list[Effect]) -> None:
        """Refuse to write in place what shares memory: a `.grad` with another one, or with a tensor of the call."""
        written = {e.target: e.id for e in effects if e.id is not None and e.fresh is None}
        written |= {m.origin: m.symbol.id for m in self._state.memories.written.values() if m.origin is not None}
        owners = [self._state.owner_of(self._grads[key][0]) for key in self._before]
        grads = [GradOf(owner) for owner in owners if owner is not None]
        for a, b in overlapping(
            {s: self._state.given(s) for s in (*grads, *self._state.owners.values())} if grads else {}
        ):
            id_ = written.get(a, written.get(b))
            if id_ is not None and (a in grads or b in grads):
                where = self._state.builder.nodes[id_].where or "an unknown line"
                raise errors.CaptureError(errors.SHARED_GRAD.format(used=where))

    def owned(self) -> dict[int, GradOf]:
        """The tensors, by id, that are the `.grad` of one that outlives the program: of which."""
        self.settle()
        found: dict[int, GradOf] = {}
        for tensor, grad in self._grads.values():
            owner = self._state.owner_of(tensor)
            if grad is not None and not is_sparse(grad) and owner is not None:
                found[id(grad)] = GradOf(owner)
        return found

    def accumulate(self, tensor: Tensor, g: Symbol, create_graph: bool) -> None:
        key = id(tensor)
        if create_graph or key in self._grads or key in self._behind or self._state.owner_of(tensor) is None:
            self._add(tensor, g, create_graph)
        else:
            self._waiting.setdefault(key, (tensor, []))[1].append(g)

    def _add(self, tensor: Tensor, g: Symbol, create_graph: bool = False) -> None:
        old, tracer = self.get_grad(tensor), self._tracer
        if old is None:
            self.set_grad(tensor, tracer.wrap(g, create_graph and g.id in self._autograd.live()))
        elif create_graph:
            self.set_grad(tensor, tracer.wrap(tracer.read(old) + g, True))
            self._state.recorded.add(self._state.builder.next_id - 1)
        else:
            self._add_to(old, g)

    def _add_to(self, old: Tensor, g: Symbol) -> None:
        tracer = self._tracer
        with set_grad_enabled(False):
            tracer.assign(old, tracer.wrap(tracer.read(old) + g, False), "add")

    def accumulate_sparse(self, weight: Tensor, g: Tensor) -> None:
        old = self.get_grad(weight)
        if old is None or is_sparse(old):
            self.set_grad(weight, g if old is None else old + g)  # type: ignore[operator]
        else:
            with set_grad_enabled(False):
                old.add_(g)  # type: ignore[attr-defined]

    def goes_on(self, tensor: Tensor, g: Symbol, keep: bool) -> None:
        """`tensor` has a history from before the program: the gradient goes on there, after the program."""
        owner = self._state.owner_of(tensor)
        if owner is None:
            return
        self._past.append((tensor, g, keep))
        for node in walks.reachable([self._state.given(owner)._n]):
            if tape.is_leaf(node) and (leaf := node[tape.PARENTS]()) is not None:
                self._behind.add(id(leaf))

    def sparse_changes(self) -> list[Change]:
        """What gives tensors from before the call their sparse `.grad`."""
        found: list[Change] = []
        for tensor, g in self._grads.values():
            owner = self._state.owner_of(tensor)
            if owner is None or g is None or not is_sparse(g):
                continue
            given = self._state.given(owner)
            before = getattr(given, "_g", None)
            if isinstance(owner, Argument):
                find = functools.partial(_argument, owner.position)
                found.append(Change("a sparse .grad", before, g, _put_gradient, find))
            else:
                found.append(Change("a sparse .grad", before, g, functools.partial(_put_gradient, given)))
        return found


def _put_gradient(tensor: Tensor, grad: Tensor | None) -> None:
    tensor._g = grad


def _argument(position: int, given: Any) -> Tensor:
    return list(tensors_of(given))[position]


def _has_no_grad(tensor: Tensor) -> bool:
    return getattr(tensor, "_g", None) is None


@final
class _HasNoGrad:
    """Whether the `.grad` of a tensor is None. `words`: see `graphc.capture.state.words`."""

    def __init__(self, tensor: Tensor):
        self._tensor = tensor
        self.words = slot_of(tensor, "_g")

    def __call__(self) -> bool:
        return _has_no_grad(self._tensor)
