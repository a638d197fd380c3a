"""In-place writes under a trace, and the inputs that share memory: a program writes such memory as a whole."""

from __future__ import annotations

import itertools
from sys import getrefcount
from typing import TYPE_CHECKING, final

import numpy as np

from eager.core.grad_mode import set_grad_enabled
from eager.core.state import grad_enabled, storage_of
from eager.core.tensor import LEAF_IN_PLACE, Tensor
from eager.core.views import LEAF_VIEW, check_recorded_write, geometry
from eager.engine.inplace import FILLS
from graphc import errors
from graphc.capture.location import user_line
from graphc.capture.sources import Argument, Captured, MemoryOf, Owner
from graphc.capture.storage.inputs import is_simple, memory_of, relation, whole_memory
from graphc.capture.storage.memory import Memory, Place, repeats
from graphc.ir import Symbol
from graphc.ops import OPS
from graphc.ops.aval import Aval
from graphc.ops.dtypes import BOOL
from graphc.ops.steps import REPEATED, Step

if TYPE_CHECKING:
    from graphc.capture.trace_state import TraceState
    from graphc.capture.tracer import Tracer

_STOP, _CLONE, _CAST = OPS["stop_gradient"], OPS["clone"], OPS["cast"]
_FULL, _WHERE = OPS["full"], OPS["where"]
_OVERWRITTEN, _STRIDED = OPS["overwritten"], OPS["as_strided"]
_COPIES = ("copy", "fill_with")  # writes whose value is a tensor of its own


@final
class Mutation:
    """The writes of one trace."""

    def __init__(self, state: TraceState, tracer: Tracer):
        self._state, self._builder, self._memories = state, state.builder, state.memories
        self._tracer = tracer
        self._memory_of: dict[int, list[Tensor]] = {}  # id of what owns memory -> the inputs that show some of it
        self._left: set[Owner] = set()  # inputs that have left their memory

    def assign(self, target: Tensor, value: Tensor, name: str, where: Tensor | None = None) -> Tensor:
        """See `eager.core.interpreter.Interpreter`."""
        self._builder.where = user_line()
        before = self._tracer.read(target)
        recorded = grad_enabled() and (value._n is not None or target._n is not None)
        start = self._builder.next_id
        symbol = self._written(value, before, name)
        computed = symbol.id if where is None and symbol.id == self._tracer.read(value).id else None
        place = self._place(target, before)
        self._check(place, before, name, anew=name in FILLS or (where is not None and not recorded))
        memory = place.memory
        if grad_enabled():
            self._check_past(self._state.owner_of(target) or memory.origin)
        behind = place.history_from if recorded else 0
        covers = len(place.steps) == behind or before.aval.size == memory.symbol.aval.size
        if recorded and covers and where is None and (value._n is None or name in _COPIES):
            # what has a past keeps it, though no gradient but zeros reaches that any more
            everywhere = self._builder.emit(_FULL, (), {"shape": before.aval.shape, "value": True, "dtype": BOOL})
            symbol = self._builder.emit(_WHERE, (everywhere, symbol, before), {})
        if behind:
            self._write_behind(target, place, symbol, start)
            return target
        whole = self._memories.whole_after(place, symbol, None if where is None else self._tracer.read(where))
        if recorded:
            self._state.recorded.update(range(start, self._builder.next_id))
        self._write(memory, whole, recorded)
        if not place.steps:
            self._state.rebind(target, memory.symbol)
        elif computed is not None:
            memory.shown.append(computed)  # the memory has what an op has computed into a view of it
        return target

    def _written(self, value: Tensor, before: Symbol, name: str) -> Symbol:
        """What is written over `before`: of its dtype, and no value that another tensor keeps."""
        symbol = self._tracer.read(value)
        if symbol.aval.dtype != before.aval.dtype:
            symbol = self._builder.emit(_CAST, (symbol,), {"dtype": before.aval.dtype})
        if name in _COPIES or self._memories.find(symbol.id) is not None:
            symbol = self._builder.emit(_CLONE, (symbol,), {})
        return symbol

    def _place(self, target: Tensor, before: Symbol) -> Place:
        """What `target` shows, of all the inputs' memory that overlaps with it."""
        place = self._tracer.place_of(target, before)
        origin = None if place.memory.replaces else place.memory.origin
        if isinstance(origin, (Argument, Captured)) and (shared := self._overlapping(origin)):
            self._merge(shared)
            place = self._tracer.place_of(target, self._tracer.read(target))
        return place

    def _check(self, place: Place, before: Symbol, name: str, anew: bool) -> None:
        """Raise where eager does, and where no write can be captured. anew: it may write an element several times."""
        memory, state = place.memory, self._state
        if state.outer is not None and memory.origin is not None:
            raise errors.CaptureError(errors.WRITE_IN_BODY.format(name=name, used=user_line()))
        if memory.origin is None and any(
            id(t) in state.fresh and (_is_seen_by_numpy(t) or self._tracer.concretization.shows(t))
            for t in memory.tensors.live()
        ):
            raise errors.CaptureError(errors.NDARRAY_MEMORY.format(used=user_line()))
        if not anew and place.repeats(before.shape):
            raise RuntimeError(REPEATED)
        if memory.leaf is not None and grad_enabled() and all(step.op.differentiable for step in place.steps):
            raise RuntimeError(LEAF_VIEW if place.steps else LEAF_IN_PLACE)

    def _check_past(self, owner: Owner | MemoryOf | None) -> None:
        """Raise where eager does for what was a view before the trace, of a leaf that it does not see."""
        if isinstance(owner, (Argument, Captured)):
            given = self._state.given(owner)
            if given._n is not None:
                check_recorded_write(given)

    def _write_behind(self, target: Tensor, place: Place, value: Symbol, start: int) -> None:
        """Write `value`, which has a history, to what looks at its memory through a detached tensor.

        That tensor, the *root*, and its views have the history; the memory, and all else that looks at it, has not.
        """
        tracer, builder, memory = self._tracer, self._builder, place.memory
        behind = place.history_from
        root = self._root(tracer.read(target).id)
        family: list[tuple[Tensor, Place]] = []
        for t in memory.tensors.live():
            id_ = self._state.held[id(t)][1].id if t._d.__class__ is not Symbol else t._d.id
            found = self._memories.find(id_)
            if found is None or found.memory is not memory or found.steps[:behind] != place.steps[:behind]:
                continue
            if self._root(id_) == root:
                family.append((t, found))
            elif memory.version:  # it may be of the same root, and has been read anew since
                raise errors.CaptureError(errors.HISTORY_BEHIND.format(used=user_line()))
        before = Memory(builder.symbol(root), None, None, None)
        after = self._memories.whole_after(Place(before, place.steps[behind:], 0, None), value)
        self._state.recorded.update(range(start, builder.next_id))
        stopped = builder.emit(_STOP, (after,), {})
        self._write(memory, self._memories.whole_after(place._replace(steps=place.steps[:behind]), stopped), False)
        for t, seen in family:
            symbol, first = after, builder.next_id
            for op, params, operands in seen.steps[behind:]:
                symbol = builder.emit(op, (symbol, *operands), params)
            self._state.recorded.update(range(first, builder.next_id))
            self._memories.put(symbol, seen._replace(version=memory.version))
            self._state.rebind(t, symbol)
            if t._n is None:
                t._n = symbol

    def _root(self, id_: int) -> int:
        """The node, on the way from a whole to its view `id_`, after which history begins."""
        nodes = self._builder.nodes
        while nodes[id_].op.differentiable:
            id_ = nodes[id_].inputs[0]
        return id_

    def set_data(self, tensor: Tensor, value: Tensor) -> None:
        """See `Interpreter`. What others see of the memory that `tensor` leaves stays as it is."""
        before, symbol = self._tracer.read(tensor), self._tracer.read(value)
        place, source = self._tracer.place_of(tensor, before), self._memories.find(symbol.id)
        if source is not None and source.memory is place.memory:
            rest = source.steps[len(place.steps) :]
            if source.steps[: len(place.steps)] == place.steps and not any(step.op.differentiable for step in rest):
                return  # tensor.data -= x, which has been written already
        why = ""
        if before.aval != symbol.aval:
            why = "the shape or dtype changes"
        elif self._state.owner_of(value) is not None or (
            source is not None and (source.steps or source.memory.origin is not None)
        ):
            why = "the value is a tensor, or a view of one, that others hold, too"
        elif place.steps or len(place.memory.tensors.live()) > 1:
            why = "the tensor is a view, or has views, which keep the old memory"
        if why:
            raise errors.CaptureError(errors.DATA_ASSIGNED.format(used=user_line(), why=why))
        if place.memory.origin is not None:
            self._replace(tensor, value, place.memory)
            return
        with set_grad_enabled(False):  # nobody else sees that memory
            self._tracer.assign(tensor, value, "copy")
        if value._n is None and source is None:
            self._state.rebind(value, place.memory.symbol)
            place.memory.tensors.add(value)

    def _replace(self, tensor: Tensor, value: Tensor, left: Memory) -> None:
        """Let `tensor`, which was there before the program, look at the memory of `value` instead of `left`."""
        tracer, builder = self._tracer, self._builder
        owner = self._state.owner_of(tensor)
        if self._state.outer is not None or owner is None:
            raise errors.CaptureError(errors.WRITE_IN_BODY.format(name="data", used=user_line()))
        builder.where = user_line()
        symbol = tracer.read(value)
        if value._n is not None:  # whose history `tensor` does not get
            symbol = builder.emit(_CLONE, (symbol,), {})
        memory = tracer.place_of(value if value._n is None else tracer.wrap(symbol, False), symbol).memory
        if tensor._n is not None:  # a leaf again: gradients stop at this node
            symbol = builder.emit(_STOP, (symbol,), {})
            self._state.leaves[symbol.id] = tensor
            memory.leaf = tensor if tensor.is_leaf else None
        if left.replaces:
            self._memories.written.pop(id(left), None)
        else:
            self._leave(tensor, owner, left)
        memory.origin, memory.replaces, memory.symbol = owner, True, symbol
        memory.version += 1
        self._memories.written[id(memory)] = memory
        self._memories.put(symbol, Place(memory, (), memory.version, memory.strides))
        self._state.rebind(tensor, symbol)
        memory.tensors.add(tensor)

    def _leave(self, tensor: Tensor, owner: Owner, memory: Memory) -> None:
        """Let another tensor stand for the memory that `owner` had before the program, for those that share it."""
        self._left.add(owner)
        stand_in = self._tracer.wrap(memory.symbol, False)
        self._state.owners[id(stand_in)] = owner
        self._state.fresh[id(stand_in)] = stand_in  # keeps its id from being used again
        memory.tensors.add(stand_in)
        for known in self._memory_of.values():
            known[:] = [stand_in if t is tensor else t for t in known]

    def show(self, tensor: Tensor, value: Tensor, name: str) -> None:
        """See `eager.core.interpreter.Interpreter`."""
        tracer, symbol = self._tracer, self._tracer.read(value)
        if self._state.owner_of(tensor) is not None or tracer.autograd.grads.is_given(tensor):
            if self._is_itself(tensor, value):
                return
            raise errors.CaptureError(errors.SHOWS_OTHERWISE.format(name=name, used=user_line()))
        memory = tracer.place_of(value, symbol).memory
        if tensor._d.__class__ is np.ndarray:  # who else sees that memory is asked of a tensor over it
            memory.tensors.add(Tensor._wrap(tensor._d))
        was_leaf = tensor._n is not None and tensor.is_leaf
        tensor._d = symbol
        memory.tensors.add(tensor)
        if was_leaf:
            tracer.leaf_changed(tensor)
        else:
            tensor._n = value._n

    def _is_itself(self, tensor: Tensor, value: Tensor) -> bool:
        """Whether `value`, a view of `tensor`, shows the same as `tensor` does."""
        before, after = (self._tracer.place_of(t, self._tracer.read(t)) for t in (tensor, value))
        made = after.steps[len(before.steps) :]
        return (
            before.memory is after.memory
            and (tensor._dtype(), tensor._d.shape) == (value._dtype(), value._d.shape)
            and (before.strides, before.offset) == (after.strides, after.offset)
            and all(step.op.differentiable for step in made)
        )

    def written(self, target: Tensor, value: Tensor, recorded: bool) -> None:
        """`target` has been written in place, and is `value` now, with that history."""
        symbol = self._tracer.read(value)
        place = self._tracer.place_of(target, self._tracer.read(target))
        self._write(place.memory, self._memories.whole_after(place, symbol), recorded)
        self._tracer.read(target)

    def _write(self, memory: Memory, whole: Symbol, recorded: bool) -> None:
        """Give a memory the value `whole`, with history if `recorded`."""
        builder, old = self._builder, memory.symbol
        live = memory.tensors.live()
        if memory.leaf is not None:  # a leaf again: gradients stop at this node
            whole = builder.emit(_STOP, (whole,), {})
            self._state.leaves[whole.id] = memory.leaf
        elif not recorded and any(t._n is not None and not self._has_own_history(t) for t in live):
            whole = builder.emit(_OVERWRITTEN, (old, whole), {})
            self._state.recorded.add(whole.id)
        self._memories.write(memory, whole)
        self._memories.put(whole, Place(memory, (), memory.version, memory.strides))
        if recorded:
            for t in live:
                if t._n is None and not self._is_detached(t):
                    t._n = whole

    def _has_own_history(self, tensor: Tensor) -> bool:
        """Whether the history of a tensor is not that of its memory."""
        return tensor.is_leaf or self._is_detached(tensor)

    def _is_detached(self, tensor: Tensor) -> bool:
        """Whether no history comes from its memory to a tensor."""
        place = self._known_place(tensor)
        return place is not None and place.history_from > 0

    def note(self, tensor: Tensor) -> None:
        """Remember whose memory an input shows; one that has been written already shows to this input, too."""
        owner = self._state.owners[id(tensor)]
        if (memory := memory_of(self._state.given(owner)._d)) is None:
            return
        self._memory_of.setdefault(id(memory), []).append(tensor)
        group = self._overlapping(owner)
        if any(p is not None and p.memory.version for t in group if (p := self._known_place(t))):
            self._merge(group)

    def _known_place(self, tensor: Tensor) -> Place | None:
        symbol = tensor._d if tensor._d.__class__ is Symbol else self._state.held[id(tensor)][1]
        return self._memories.find(symbol.id)

    def _overlapping(self, owner: Owner) -> list[Tensor]:
        """The inputs that show the memory that `owner` shows some of, itself among them.

        None if no two overlap, and no elements of it do.
        """
        array = self._state.given(owner)._d
        if (memory := memory_of(array)) is None:
            return []
        known = self._memory_of.get(id(memory), [])
        if array.__class__ is np.ndarray and repeats(array.shape, array.strides):
            return known
        if len(known) < 2:
            return []
        if array.__class__ is not np.ndarray:
            return known
        arrays = [self._state.given(self._state.owners[id(t)])._array() for t in known]
        if any(np.shares_memory(a, b) for a, b in itertools.combinations(arrays, 2)):
            return known  # all of them: a program writes this memory as a whole
        return []

    def _merge(self, tensors: list[Tensor]) -> None:
        """Let `tensors`, the inputs that show some memory, be views of it."""
        owners = [self._state.owners[id(t)] for t in tensors]
        on_device = any(self._state.given(owner)._d.__class__ is not np.ndarray for owner in owners)
        arrays = [] if on_device else [self._state.given(owner)._array() for owner in owners]
        if on_device or any(a.dtype != arrays[0].dtype for a in arrays) or not is_simple(storage_of(arrays[0])):
            raise errors.CaptureError(errors.SHARED_MEMORY.format(used=user_line()))
        places = [self._tracer.place_of(t, self._tracer.read(t)) for t in tensors]
        merged = next((p.memory for p in places if isinstance(p.memory.origin, MemoryOf)), None)
        whole = whole_memory(self._state.given(owners[0]))
        if merged is None:
            source = MemoryOf(owners[0])
            name = f"memory_{len(self._state.sources)}"
            symbol = self._state.input(name, Aval(tuple(whole._d.shape), whole._dtype()), source)
            merged = self._memories.place(symbol, source, None, None).memory
        written: list[tuple[Step, Symbol]] = []  # before they were known to be shared
        for place, array in zip(places, arrays, strict=True):
            if place.memory is not merged:
                step = Step(_STRIDED, {**geometry(whole._d, array), "layout": None})
                if place.memory.version:
                    written.append((step, place.memory.symbol))
                self._memories.merge(place.memory, merged, step)
        for step, symbol in written:  # now that all look at the whole, they are out of date
            self._write(merged, self._memories.whole_after(Place(merged, (step,), 0, None), symbol), False)
        for a, b in itertools.combinations(owners, 2):
            self._guard_overlap(a, b)

    def _guard_overlap(self, a: Owner, b: Owner) -> None:
        """The program holds for an argument, or what leaves its memory, that overlaps another input as it does now."""
        if isinstance(a, Argument) or isinstance(b, Argument) or not self._left.isdisjoint((a, b)):
            self._state.overlaps[a, b] = relation(self._state.given(a), self._state.given(b))


def _is_seen_by_numpy(tensor: Tensor) -> bool:
    """Whether something else than a concrete tensor refers to its memory, as an ndarray given to `from_numpy` does."""
    base = getattr(tensor._d, "base", None)
    return base is not None and getrefcount(base) > 3  # held by the array of the tensor, `base` and getrefcount
