"""What the tensors that a program returns are: new ones, tensors from before the call, or views of either."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, final

from eager.core.tensor import Tensor
from graphc import errors
from graphc.capture.sources import Captured, Computed, Given, Returned, ViewOf
from graphc.capture.storage.memory import Memory, Place

if TYPE_CHECKING:
    from graphc.capture.tracer import Tracer


@final
class Results:
    """`found`: what each tensor of a result is, in order.

    Results that share memory share it after the call; a result that is alone in its memory is a tensor of its own.
    """

    def __init__(self, tracer: Tracer, tensors: list[Tensor]):
        self._tracer = tracer
        self._numbers: dict[int, int] = {}  # id of a tensor, or of a memory -> number
        different = {id(t): t for t in tensors}.values()
        places = (self._place(t) for t in different)
        self._shared = Counter(id(p.memory) for p in places if p is not None)
        self._grads = tracer.autograd.grads.owned()
        self.found: list[Returned] = [self._returned(t) for t in tensors]

    def _place(self, tensor: Tensor) -> Place | None:
        return self._tracer.state.memories.find(self._tracer.read(tensor).id)

    def _returned(self, tensor: Tensor) -> Returned:
        tracer = self._tracer
        owner = tracer.state.owner_of(tensor) or self._grads.get(id(tensor))
        if owner is not None:
            return Given(owner)
        place = self._place(tensor)
        number = self._number(tensor)
        shown = place is not None and place.steps and not any(step.operands for step in place.steps)
        base = self._base(place.memory) if place is not None and shown else None
        if base is not None and place is not None and not tensor.is_leaf and place.history_from:
            raise errors.CaptureError(errors.HISTORY_BEHIND.format(used="the end of the function"))
        if place is None or base is None:
            return Computed(tracer.read(tensor).id, number, _kind(tensor))
        steps = place.steps if place.shown is None else place.shown
        return ViewOf(base, steps, tensor._n is not None, number, _kind(tensor))

    def _base(self, memory: Memory) -> Computed | Given | None:
        if memory.origin is not None and not self._is_made_anew(memory.origin):
            return Given(memory.origin)
        whole = next((t for t in memory.tensors.live() if self._is_whole(t, memory)), memory)
        if id(whole) in self._grads:
            return Given(self._grads[id(whole)])
        if self._shared[id(memory)] < 2:
            return None
        return Computed(memory.symbol.id, self._number(whole))

    def _is_made_anew(self, origin: Any) -> bool:
        """Whether it is the parameter of a layer that each call makes: what earlier calls have returned stays."""
        return isinstance(origin, Captured) and self._tracer.keeps_inside(origin.tensor)

    def _is_whole(self, tensor: Tensor, memory: Memory) -> bool:
        place = self._place(tensor)
        return place is not None and place.memory is memory and not place.steps

    def _number(self, of: Tensor | Memory) -> int:
        return self._numbers.setdefault(id(of), len(self._numbers))


def _kind(tensor: Tensor) -> type[Tensor]:
    """The class of a tensor, if a new Tensor can be made one of it: with no attributes of its own."""
    kind = type(tensor)
    same = (kind.__basicsize__, kind.__dictoffset__) == (Tensor.__basicsize__, Tensor.__dictoffset__)
    return kind if same else Tensor
