"""Memory as a program under capture sees it: in-place writes, and the views that show them.

A graph has values, not memory. So for each tensor that is written, or looked at through views, a `Memory` holds the
present value of the whole; a view is the steps that lead from the whole to it, taken again after a write; a write to a
view is a write to the whole through the inverse of these steps (*functionalization*).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, final

import numpy as np

from eager.core.state import Recent
from eager.core.tensor import Tensor
from graphc.capture.sources import MemoryOf, Owner
from graphc.ir import Builder, Node, Symbol
from graphc.ops.dims import has_dim
from graphc.ops.interpret import with_defaults
from graphc.ops.steps import Step, looked, may_repeat, numbers_seen, place_of_view, whole_after
from graphc.ops.strides import Strides


@final
class Memory:
    """What tensors that share memory look at.

    symbol   the value of the whole, now
    version  the number of writes so far
    origin   the input that is the whole, if it was there before the program
    leaf     the tensor that is the whole, if it is a leaf that requires grad
    tensors  those that look at it
    shown    the nodes whose values they show, since the latest write
    strides  how the whole lies
    replaces `origin` shows this memory from some point of the program on, in place of its own
    """

    __slots__ = ("leaf", "origin", "replaces", "shown", "strides", "symbol", "tensors", "version")

    def __init__(self, symbol: Symbol, origin: Owner | MemoryOf | None, leaf: Tensor | None, strides: Strides):
        self.symbol = symbol
        self.strides = strides
        self.version = 0
        self.origin = origin
        self.leaf = leaf
        self.replaces = False
        self.tensors = Recent()
        self.shown: list[int] = []


class Place(NamedTuple):
    """Where a tensor looks: `steps` from the whole of `memory`, as it was at `version`.

    shown   other steps that lead there, where those of the definition of an op copy and its own kernel does not
    offset  the place of the first element, in elements; None if that is not known, as of x[i]
    """

    memory: Memory
    steps: tuple[Step, ...]
    version: int
    strides: Strides
    shown: tuple[Step, ...] | None = None
    offset: int | None = 0

    def repeats(self, shape: Sequence[Any]) -> bool:
        """Whether elements of a tensor of this shape share a place in memory here."""
        return self.strides is not None and repeats(shape, self.strides)

    @property
    def history_from(self) -> int:
        """The number of the step from which on it can have a history, after one through which none comes; else 0."""
        return next((k for k in range(len(self.steps), 0, -1) if not self.steps[k - 1].op.differentiable), 0)


@final
class Memories:
    """The memories of a program, by the node whose value a tensor shows."""

    def __init__(self, builder: Builder):
        self._builder = builder
        self._places: dict[int, Place] = {}
        self.written: dict[int, Memory] = {}  # those written in place, by id, in order
        self.overwritten: dict[
            int, int
        ] = {}  # node -> the version of the memory that had its value and has not any more

    def find(self, id_: int) -> Place | None:
        """Where the tensor with the value of node `id_` looks; None if nobody has asked yet."""
        return self._places.get(id_)

    def place(self, symbol: Symbol, origin: Owner | MemoryOf | None, leaf: Tensor | None, strides: Strides) -> Place:
        """Where the tensor with the value `symbol` looks: a memory of its own, unless it is known to be a view."""
        found = self._places.get(symbol.id)
        if found is None:
            found = self.put(symbol, Place(Memory(symbol, origin, leaf, strides), (), 0, strides))
        return found

    def put(self, symbol: Symbol, place: Place) -> Place:
        """Note that the value `symbol` is what can be seen at `place`."""
        self._places[symbol.id] = place
        place.memory.shown.append(symbol.id)
        return place

    def viewed(self, source: Place, operand: Symbol, result: Symbol, made: Step) -> Place | None:
        """Note that `result`, which `made` has just computed from `operand`, is a view of it; None if it is a copy."""
        steps, strides, offset, aval, lost = list[Step](), source.strides, source.offset, operand.aval, False
        path = self._path(operand, result)
        for node in path:
            step = Step(node.op, node.params, tuple([self._builder.symbol(i) for i in node.inputs[1:]]))
            moved = step.lens.lies(aval, strides, **with_defaults(step.op, step.params))
            if moved is None and len(path) == 1:
                return None
            lost = lost or moved is None
            strides, apart = moved or (None, None)
            offset = _further(offset, apart, aval.dtype, node.dtype)
            steps.append(step)
            aval = node.aval
        if not steps:
            return source
        if lost and not has_dim(operand.shape):  # the steps of its definition copy, but it does not
            shown_at = place_of_view(made.op, made.params, operand.shape, source.strides, operand.dtype)
            strides, apart = shown_at or (None, None)
            offset = _further(source.offset, apart, operand.dtype, result.dtype)
        before = source.steps if source.shown is None else source.shown
        shown = None if source.shown is None and not lost else (*before, *([made] if lost else steps))
        return self.put(result, Place(source.memory, (*source.steps, *steps), source.version, strides, shown, offset))

    def _path(self, operand: Symbol, result: Symbol) -> list[Node]:
        """The nodes that lead from `operand` to `result`, each a function of the one before."""
        nodes, found, id_ = self._builder.nodes, list[Node](), result.id
        while id_ != operand.id:
            found.append(nodes[id_])
            id_ = nodes[id_].inputs[0]
        found.reverse()
        return found

    def again(self, place: Place) -> Symbol:
        """The value, now, of a view that was made before a write."""
        *_, symbol = looked(self._builder.emit, place.memory.symbol, place.steps)
        self.put(symbol, place._replace(version=place.memory.version))
        return symbol

    def whole_after(self, place: Place, value: Symbol, where: Symbol | None = None) -> Symbol:
        """The value of the whole, once `value` has been written where `place` looks.

        where: which elements are written, if some of them share places in memory; None for all
        """
        if may_repeat(place.steps):
            return self._through_repeats(place, value, where)
        builder = self._builder
        return whole_after(builder.language, builder.emit, place.memory.symbol, place.steps, value)

    def _through_repeats(self, place: Place, value: Symbol, where: Symbol | None) -> Symbol:
        """`whole_after` for a view of elements that repeat in memory: of those in one place, the last is what stays."""
        whole, F, constant = place.memory.symbol, self._builder.language, self._builder.constant
        seen = numbers_seen(whole.shape, place.steps).reshape(-1)
        flat, values = (F.reshape(s, shape=(math.prod(s.shape),)) for s in (whole, value))
        turns = _turns(seen, math.prod(whole.shape))
        if where is not None:
            given = F.reshape(where, shape=(seen.size,))
            numbers = F.where(given, constant(np.arange(seen.size)), constant(np.asarray(-1)))
            of_each = F.gather(numbers, constant(turns.clip(0).reshape(-1)), axis=0)
            of_each = F.where(constant(turns.reshape(-1) >= 0), of_each, constant(np.asarray(-1)))
            last = F.amax(F.reshape(of_each, shape=turns.shape), axis=(0,), keepdims=False)
        else:
            last = constant(turns.max(axis=0))
        written = F.ge(last, constant(np.asarray(0)))
        now = F.gather(values, F.maximum(last, constant(np.asarray(0))), axis=0)
        return F.reshape(F.where(written, now, flat), shape=tuple(whole.shape))

    def merge(self, memory: Memory, into: Memory, step: Step) -> None:
        """Let all that looks at `memory` look, through `step`, at the memory `into`."""
        for id_, place in list(self._places.items()):
            if place.memory is memory:
                version = 0 if place.version == memory.version else -1  # as before any write
                shown = None if place.shown is None else (step, *place.shown)
                self._places[id_] = place._replace(
                    memory=into, steps=(step, *place.steps), version=version, shown=shown,
                    offset=None if place.offset is None else place.offset + step.params["offset"],
                )  # fmt: skip
        into.tensors += memory.tensors
        into.shown += memory.shown
        self.written.pop(id(memory), None)

    def write(self, memory: Memory, whole: Symbol) -> None:
        """Give a memory a new value; what looks at it is out of date."""
        self.written[id(memory)] = memory
        for id_ in memory.shown:
            self.overwritten[id_] = memory.version
        memory.shown.clear()
        memory.symbol = whole
        memory.version += 1


def _further(offset: int | None, apart: int | None, of: np.dtype, to: np.dtype) -> int | None:
    """The place `apart` elements of `to` behind the place `offset`, in elements of `of`; None if one is not known."""
    return None if offset is None or apart is None else offset * of.itemsize // to.itemsize + apart


def repeats(shape: Sequence[Any], strides: Sequence[int]) -> bool:
    """Whether elements of an array that lies so share a place in memory."""
    return any(step == 0 and n > 1 for n, step in zip(shape, strides, strict=True))


def _turns(seen: np.ndarray, size: int) -> np.ndarray:
    """Which elements of a view show each of the `size` elements of a whole: a row for the first one each, and so on.

    seen    which element of the whole each of the view shows; -1 stands for no (further) one
    """
    order = np.argsort(seen, kind="stable")
    firsts = np.searchsorted(seen[order], np.arange(size))
    turn = np.empty(seen.size, np.int64)
    turn[order] = np.arange(seen.size) - firsts[seen[order]]
    found = np.full((int(turn.max(initial=0)) + 1, size), -1)
    found[turn, seen] = np.arange(seen.size)
    return found
