"""`x[mask]` in a trace: how many elements it has, only the values know, and mostly nobody has to.

What is done to each element alone (`x[mask] * 2 + 1`) is done to all of `x`, and where the result goes back to the
places of the same mask (`x[mask] += 1`), that is a `where`. Anything else that is asked of such a tensor, its shape
for one, makes it one of a known number of elements: the trace then holds for that count (`Concretization.count_of`).
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, final

import numpy as np

from eager.core.grad_mode import GradMode
from eager.core.interpreter import interpreting
from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.functional.counted import picked
from graphc.capture.unknown_sizes import asked_here
from graphc.ir import Symbol
from graphc.ops import OPS, Op

if TYPE_CHECKING:
    from graphc.capture.tracer import Tracer

_CLONE, _STOP = OPS["clone"], OPS["stop_gradient"]


@final
class Selection:
    """Which places: those where `mask` is true, over the dims from number `lead` on, of tensors of one shape.

    mask   as it was then, whatever is written to it later
    asked  the user's line
    """

    def __init__(self, tracer: Tracer, mask: Tensor, lead: int, shape: tuple[Any, ...], purpose: str):
        self.tracer, self.lead, self.shape, self.purpose = tracer, lead, shape, purpose
        self.symbol = tracer.read(mask)
        self.mask = tracer.apply(_CLONE, (mask,), {})
        self.asked = asked_here()

    def wide(self) -> Tensor:
        """The mask in a shape that broadcasts with those tensors."""
        dims = tuple(self.mask._d.shape)
        behind = len(self.shape) - self.lead - len(dims)
        return E.reshape(self.mask, shape=(*(1,) * self.lead, *dims, *(1,) * behind))

    def is_at(self, mask: Tensor, lead: int, shape: tuple[Any, ...]) -> bool:
        """Whether these are the places of `mask` in a tensor of `shape`."""
        if mask._d.__class__ is Symbol and mask._d.builder is not self.tracer.builder:
            return False  # one of the body of a loop or branch, in which this is a value from outside
        return lead == self.lead and shape == self.shape and self._is_same(self.tracer.read(mask).id, self.symbol.id)

    def matches(self, other: Selection) -> bool:
        """Whether `other` has the same places."""
        alike = other.tracer is self.tracer and other.lead == self.lead and other.shape == self.shape
        return self is other or (alike and self._is_same(other.symbol.id, self.symbol.id))

    def _is_same(self, a: int, b: int) -> bool:
        """Whether two nodes have the same value, since they are the same operation on the same operands."""
        nodes, todo, seen = self.tracer.builder.nodes, [(a, b)], set[tuple[int, int]]()
        while todo:
            pair = todo.pop()
            if pair[0] == pair[1] or pair in seen:
                continue
            seen.add(pair)
            x, y = (nodes[id_] for id_ in pair)
            if x.op is not y.op or x.op.impure or not x.inputs or len(x.inputs) != len(y.inputs):
                return False
            if x.aval != y.aval or x.params != y.params:
                return False
            todo += zip(x.inputs, y.inputs, strict=True)
        return True


@final
class Selected:
    """The data of a tensor with the elements of a selection, in place of a Symbol, which it becomes when it has to.

    full      a tensor with the value for each place, selected or not
    detached  the tensor of which this is the same memory, without its history
    """

    def __init__(
        self, selection: Selection, full: Tensor, guarded: bool, requires_grad: bool, detached: Tensor | None = None
    ):
        self.selection = selection
        self._full = full
        self._guarded = guarded  # whether what is not selected has been replaced by ones
        self._requires_grad = requires_grad
        self._symbol: Symbol | None = None
        self._detached = detached
        # the tensors that show this memory, if these are several
        self.shown_by: list[weakref.ref[Tensor]] = []

    @property
    def __class__(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return Symbol

    @property
    def dtype(self) -> np.dtype:
        return self._full._dtype()

    @property
    def builder(self) -> Any:
        return self.selection.tracer.builder

    def full(self) -> Tensor:
        """The values for all places. Those that are not selected are no reason for nan, here or in a gradient."""
        if not self._guarded:
            with interpreting(self.selection.tracer), GradMode(self._requires_grad):
                self._full = guarded(self.selection, self._full)
            self._guarded = True
        return self._full

    def symbol(self) -> Symbol:
        """The value, with as many elements as there are in the call that is being traced."""
        if self._symbol is None:
            selection = self.selection
            selection.symbol.check_open(selection.tracer.builder)
            concretization = selection.tracer.concretization
            before, concretization.asked = concretization.asked, selection.asked
            try:
                with interpreting(selection.tracer), GradMode(self._requires_grad):
                    if self._detached is None:
                        found = picked(self._full, selection.mask, selection.lead, selection.purpose)
                    else:
                        settled(self._detached)
                        found = E.stop_gradient(self._detached)
            finally:
                concretization.asked = before
            self._symbol = selection.tracer.read(found)
        return self._symbol

    def others(self, tensor: Tensor) -> list[Tensor]:
        """The tensors besides `tensor` that show this memory."""
        return [t for ref in self.shown_by if (t := ref()) is not None and t is not tensor]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.symbol(), name)


def guarded(selection: Selection, x: Tensor) -> Tensor:
    """`x` with ones at the places that are not selected."""
    return E.where(selection.wide(), x, Tensor._wrap(np.ones((), x._dtype())))


def settled(tensor: Tensor) -> Any:
    """The data of a tensor, which is a Symbol from now on if it was Selected; so is what shows the same memory."""
    data = tensor._d
    if type(data) is not Selected:
        return data
    symbol = tensor._d = data.symbol()
    tensor._n = symbol if tensor._n is not None else None
    for other in data.others(tensor):
        settled(other)
    return symbol


def applied(tracer: Tracer, op: Op, operands: Sequence[Any], params: Any) -> Tensor | None:
    """The result of an operation on each element of selections of the same places; None for any other operation."""
    first = next((x._d.selection for x in operands if isinstance(x, Tensor) and type(x._d) is Selected), None)
    if (
        first is None
        or first.tracer is not tracer
        or not (op.pointwise or op is _CLONE or op is _STOP)
        or op.check is not None
        or op.impure
    ):
        return None
    whole: list[Any] = []
    dtype = next(x._d.dtype for x in operands if isinstance(x, Tensor) and type(x._d) is Selected)
    for x in operands:
        if not isinstance(x, Tensor):
            whole.append(x)
        elif type(x._d) is Selected:
            if not first.matches(x._d.selection):
                return None
            whole.append(x._d.full())
        elif x._d.shape or (x._n is not None and x._dtype() != dtype):
            return None
        else:
            whole.append(x if x._n is None else guarded(first, x))
    result = tracer.apply(op, whole, params)
    return made(first, result, True) if op is not _STOP else _detached(operands[0], result)


def select(tracer: Tracer, x: Tensor, mask: Tensor, lead: int, purpose: str) -> Tensor:
    """See `eager.core.interpreter.Interpreter`."""
    selection = Selection(tracer, mask, lead, tuple(x._d.shape), purpose)
    return made(selection, tracer.apply(_CLONE, (x,), {}), False)


def made(selection: Selection, full: Tensor, guarded: bool) -> Tensor:
    """The tensor of what is selected of `full`."""
    data: Any = Selected(selection, full, guarded, full._n is not None)
    return selection.tracer.wrap(data, full._n is not None)


def _detached(tensor: Tensor, full: Tensor) -> Tensor:
    """`tensor`, a selection, without its history: writing to one of the two is writing to both."""
    of: Any = tensor._d
    data: Any = Selected(of.selection, full, True, False, tensor)
    result = of.selection.tracer.wrap(data, False)
    data.shown_by = of.shown_by
    of.shown_by += [weakref.ref(t) for t in (tensor, result)]
    return result


def replace(target: Tensor, value: Tensor) -> bool:
    """Give `target` the `value` of an in-place operation, if both are selections of the same places."""
    if type(target._d) is not Selected or type(value._d) is not Selected:
        return False
    if target._d.others(target):  # the trace has to know their memory
        settled(target)
        return False
    if not target._d.selection.matches(value._d.selection) or target._d.dtype != value._d.dtype:
        return False
    target._d, target._n = value._d, value._n
    return True
