"""State that lies in packs between calls: tensors whose data are parts of one array, which programs take over.

A program that was packed (see `graphc.passes.packing`) reads and writes, in place of many small tensors, one hidden
tensor for each pack. The small ones have a `Part` for data: it says where they lie, and shows their values to whoever
looks. Whoever writes to one of them gives it data of its own; the next call lays those into the pack again.
"""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from sys import getrefcount
from typing import Any, NamedTuple, final

import numpy as np

from eager.core.stand_ins import Deferred, Sealed
from eager.core.state import note_write
from eager.core.tensor import Tensor
from graphc import forking
from graphc.capture.program import Program
from graphc.capture.sources import Captured, Effect, GradOf, GradsOf, History, MemoryOf
from graphc.capture.state.words import Condition, Judged, slot_of
from graphc.capture.storage.sharing import is_whole
from graphc.ir import Graph, Ref
from graphc.ops.stand_in import StandIn
from graphc.passes.packing import pack_state

ALONE = 4  # references to a gradient that only its tensor has: that, a row of the pack, a variable, an argument


@final
class Part(StandIn):
    """The data of a tensor that lies in the array of the hidden tensor `pack`, from element `start` on."""

    __slots__ = ("_known", "numpy_dtype", "pack", "shape", "size", "start")

    def __init__(self, pack: Tensor, start: int, shape: tuple[int, ...], dtype: np.dtype):
        self.pack = pack
        self.start = start
        self.shape = shape
        self.numpy_dtype = dtype
        self.size = int(np.prod(shape))
        self._known: Any = None

    def __eq__(self, other: object) -> bool:  # lists of data are compared, which may hold arrays
        return self is other

    __hash__ = StandIn.__hash__

    def values(self) -> np.ndarray:
        """A copy of the values."""
        array = self.pack._d.array
        if forking.process.lost and not array.is_ready():
            forking.refuse("a result that was still being computed,")
        return np.asarray(array).reshape(-1)[self.start : self.start + self.size].reshape(self.shape).copy()

    @property
    def array(self) -> np.ndarray:
        """The values, for programs that only read them: one object, as long as they are the same."""
        array = self.pack._d.array
        if self._known is None or self._known[0]() is not array:
            self._known = weakref.ref(array), self.values()  # who holds the array keeps programs from taking it over
        return self._known[1]

    def force(self, tensor: Tensor) -> np.ndarray:
        tensor._d = self.values()
        return tensor._d


def _parts(pack: Tensor, like: Iterable[Tensor], equal: bool) -> list[Part]:
    parts: list[Part] = []
    start = 0
    for t in like:
        parts.append(Part(pack, start, tuple(t._d.shape), t._dtype()))
        start += 0 if equal else parts[-1].size
    return parts


def _hidden() -> Tensor:
    tensor = object.__new__(Tensor)
    tensor._d, tensor._n, tensor._g = None, None, None
    return tensor


@final
class StatePack:
    """Tensors that lie in the array of the hidden `tensor`; with the `parts` for data, while they do.

    equal  all have one value: the array is that
    """

    def __init__(self, members: Sequence[Tensor], equal: bool):
        self.tensor = _hidden()
        self.members = list(members)
        self.equal = equal
        self.parts = _parts(self.tensor, members, equal)

    @staticmethod
    def of(members: Sequence[Tensor], equal: bool) -> StatePack:
        """That of another program, if it has the same members."""
        key = (equal, *map(id, members))
        found = _known.get(key)
        if found is None:
            found = _known[key] = StatePack(members, equal)
        return found

    def gather(self, own: Callable[[np.ndarray], Any]) -> list[Tensor]:
        """Lay the members that have other data into the pack. Returns those that keep theirs, since others see them.

        own  (array): a copy that a program may take over
        """
        apart = [k for k, t in enumerate(self.members) if t._d is not self.parts[k]]
        if not apart:
            return []
        first, last = self.parts[0], self.parts[-1]
        if self.equal:
            whole = np.array(values_of(self.members[apart[0]]))
        elif len(apart) == len(self.members):
            whole = np.empty(last.start + last.size, first.numpy_dtype)
        else:
            whole = np.array(self.tensor._d.array)
        if not self.equal:
            for k in apart:
                part = self.parts[k]
                whole[part.start : part.start + part.size] = values_of(self.members[k]).reshape(-1)
        self.tensor._d = Deferred(own(whole), whole.shape, whole.dtype)
        seen: list[Tensor] = []
        for k in apart:  # an interrupt between them leaves some apart, with the values that they have in the pack
            if _is_seen(self.members[k]):
                seen.append(self.members[k])
            else:
                self.members[k]._d = self.parts[k]
        return seen

    def put_back(self, seen: Iterable[Tensor]) -> None:
        """Write the values of those members that keep their own memory to it."""
        for t in seen:
            part = self.parts[next(k for k, member in enumerate(self.members) if member is t)]
            np.copyto(t._d, part.values())
            note_write(t._d)


_known: weakref.WeakValueDictionary[tuple[int, ...], StatePack] = weakref.WeakValueDictionary()


def values_of(tensor: Tensor) -> np.ndarray:
    """The values of a tensor whose data stay as they are."""
    d = tensor._d
    return d if d.__class__ is np.ndarray else np.asarray(d.array)


def _is_placed(tensor: Tensor) -> bool:
    """Whether the values of a tensor lie on devices that were chosen for them, and are to stay there."""
    d = tensor._d
    return d.__class__ is Deferred and getattr(d.array, "committed", False)


def _is_seen(tensor: Tensor) -> bool:
    """Whether someone else may see the memory of a tensor."""
    d = tensor._d
    # the tensor, `d` and the argument of getrefcount
    return d.__class__ is np.ndarray and (getrefcount(d) > 3 or not is_whole(d)) and d.flags.writeable


@final
class GradientPack:
    """New gradients of the tensors `of`, side by side in one array."""

    def __init__(self, of: Sequence[Tensor]):
        self._of = list(of)
        self._pack = _hidden()
        self._rows: list[tuple[Tensor, Tensor, Part]] = []

    @staticmethod
    def of(tensors: Sequence[Tensor]) -> GradientPack:
        """That of another program, if it gives gradients of the same tensors: programs may take turns."""
        key = tuple(map(id, tensors))
        found = _gradients.get(key)
        if found is None:
            found = _gradients[key] = GradientPack(tensors)
        return found

    def give(self, array: Any) -> None:
        """Let the gradients be those in `array`: the tensors of the latest ones, where nobody else has any of them."""
        rows = self._rows
        for t, g, d in rows:
            if t._g is not g or getrefcount(g) > ALONE or g._d is not d or g._n is not None:
                rows = []
                break
        if rows:
            self._pack._d.array = array
            return
        self._pack = _hidden()
        self._pack._d = Deferred(array, array.shape, array.dtype)
        self._rows = [
            (t, Tensor._wrap(part), part) for t, part in zip(self._of, _parts(self._pack, self._of, False), strict=True)
        ]
        for t, g, _ in self._rows:
            t._g = g


_gradients: weakref.WeakValueDictionary[tuple[int, ...], GradientPack] = weakref.WeakValueDictionary()


class Repacked(NamedTuple):
    """A program with its state in packs.

    program  reads and writes the hidden tensors in place of their members
    graph    its graph, whose outputs are the results, the values of `effects`, and the rest
    packs    what has to be so, see `Packs`
    """

    program: Program
    graph: Graph
    effects: list[Effect]
    packs: Packs


@final
class Packs:
    """The packs of state of one program: their `members`, and the `hidden` tensors, one for each."""

    def __init__(self, packs: Sequence[StatePack]):
        self._packs = list(packs)
        self.members = [t for pack in packs for t in pack.members]
        self._parts = [part for pack in packs for part in pack.parts]
        self.hidden = [pack.tensor for pack in packs]
        self._flags = [t._n is None for t in self.members]

    def settled(self, name: Callable[[Any], str]) -> str:
        """The expression that is true if all members lie in the packs, and require grad as they did."""
        constant = [t for t, flag in zip(self.members, self._flags, strict=True) if flag]
        others = [t for t, flag in zip(self.members, self._flags, strict=True) if not flag]
        return (
            f"{name(self._parts)} == [t._d for t in {name(self.members)}]"
            f" and [t._n for t in {name(constant)}].count(None) == {len(constant)}"
            f" and None not in [t._n for t in {name(others)}]"
        )

    @property
    def condition(self) -> Condition:
        """That this is so."""
        words = [slot_of(t, "_d", part) for t, part in zip(self.members, self._parts, strict=True)]
        flags = zip(self.members, self._flags, strict=True)
        words += [slot_of(t, "_n", None) if constant else slot_of(t, "_n") for t, constant in flags]
        known = None if None in words else [word for found in words for word in found or ()]
        return Judged(known, lambda name: f"not ({self.settled(name)})", bool)  # bool() is False

    def misfit(self) -> str:
        """Why the members cannot lie in the packs any more; "" if they can."""
        for pack in self._packs:
            apart = [t for t, part in zip(pack.members, pack.parts, strict=True) if t._d is not part]
            if any(map(_is_placed, apart)):
                return "state was moved to another device"
            if pack.equal and apart and len({values_of(t).tobytes() for t in pack.members}) > 1:
                return "numbers that were equal differ"
        return ""

    def gather(self, own: Callable[[np.ndarray], Any]) -> list[tuple[StatePack, list[Tensor]]]:
        """Lay all members into the packs. Returns what `put_back` is to be given after the program."""
        return [(pack, seen) for pack in self._packs if (seen := pack.gather(own))]


def put_back(seen: Iterable[tuple[StatePack, list[Tensor]]]) -> None:
    """Write the new values of members that keep their memory, since others see it."""
    for pack, tensors in seen:
        pack.put_back(tensors)


def repacked(program: Program, graph: Graph, results: int, effects: Sequence[Effect]) -> Repacked | None:
    """`program` with its small state in packs; None if there is too little.

    graph    optimized: its outputs are so many results, the values of the effects, and others
    """
    positions = {source: k for k, source in enumerate(program.sources)}
    shared = {owner for a, b, _ in program.guarded.overlaps for owner in (a, b)}
    shared |= {Captured(g.layout) for g in program.guarded.state if g.layout is not None and g.value is not None}
    shared |= {source.of for source in program.sources if isinstance(source, MemoryOf)}
    state: dict[int, int] = {}
    tensors: dict[int, Tensor] = {}  # of inputs
    gradients: dict[int, Tensor] = {}  # output -> of what it is the gradient
    fresh = Counter(e.fresh for e in effects)
    for k, (target, _, history, number) in enumerate(effects, results):
        if history is not History.NONE:
            continue
        if isinstance(target, Captured) and target in positions and target not in shared:
            if target.tensor._d.__class__ is not Sealed and not _is_placed(target.tensor):
                i = graph.inputs[positions[target]]
                state[i], tensors[i] = k, target.tensor
        elif (
            isinstance(target, GradOf) and isinstance(target.of, Captured) and fresh[number] == 1 and number is not None
        ):
            gradients[k] = target.of.tensor
    found = pack_state(graph, state, gradients, _equal(graph, tensors))
    if found is None:
        return None
    packs = [StatePack.of([tensors[i] for i in p.inputs], p.equal) for p in found.packs if p.inputs]
    hidden = iter(packs)
    targets = [
        Captured(next(hidden).tensor) if p.inputs else GradsOf(GradientPack.of([gradients[k] for k in p.outputs]).give)
        for p in found.packs
    ]
    packed = {k for p in found.packs for k in p.outputs}
    inside = {i for p in found.packs for i in p.inputs}
    sources = [s for s, i in zip(program.sources, graph.inputs, strict=True) if i not in inside]
    kept = [e for k, e in enumerate(effects, results) if k not in packed]
    ids = found.graph.outputs
    first = len(ids) - len(targets)
    made = list(map(Effect, targets, ids[first:]))
    split = results + len(kept)
    order = (*ids[:split], *ids[first:], *ids[split:first])
    gone = {id(e) for k, e in enumerate(effects, results) if k in packed}
    changed = program.effects._replace(tensors=(*(e for e in program.effects.tensors if id(e) not in gone), *made))
    new = program._replace(sources=(*sources, *(Captured(pack.tensor) for pack in packs)), effects=changed)
    whole = found.graph.replace(found.graph.nodes, tuple(map(Ref, order)))
    return Repacked(new, whole, [*kept, *made], Packs(packs))


def _equal(graph: Graph, tensors: Mapping[int, Tensor]) -> list[list[int]]:
    """The inputs without dims that hold the same value."""
    found: dict[tuple[Any, bytes], list[int]] = {}
    for i, t in tensors.items():
        if not graph.nodes[i].shape:
            found.setdefault((graph.nodes[i].dtype, values_of(t).tobytes()), []).append(i)
    return list(found.values())
