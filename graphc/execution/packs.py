"""State that lies in packs between calls: tensors whose data are parts of one array, which programs take over.

A program that was packed (see `graphc.passes.packing`) reads and writes, in place of many small tensors, one hidden
tensor for each pack. The small ones lie in it until somebody writes them; the next call lays those into the pack again.
How they lie there is told in `host_packs` for the CPU, in `placed_packs` for a device.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, final

from eager.core.devices import device
from eager.core.placed import Placed
from eager.core.stand_ins import Sealed
from eager.core.tensor import Tensor
from graphc.capture.program import Program
from graphc.capture.sources import Captured, Effect, GradOf, GradsOf, History, MemoryOf, Spare
from graphc.capture.state.words import Condition, Judged, slot_of
from graphc.execution.host_packs import GradientPack, StatePack, is_committed, values_of
from graphc.execution.placed_packs import PlacedGradients, PlacedPack, is_whole
from graphc.ir import Builder, Graph, Ref
from graphc.passes.packing import Packed, pack_state

# arrays of a program on a device, below which to lay them side by side takes longer than to hand them over: a step of
# 72 us with two parameters took 1.34 of hand-written JAX's time on an H100, and 1.65 with packs
FEW = 8


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

    def __init__(self, packs: Sequence[StatePack | PlacedPack]):
        self._packs = list(packs)
        self.members = [t for pack in packs for t in pack.members]
        self.hidden = [pack.tensor for pack in packs]
        self._flags = [t._n is None for t in self.members]

    def settled(self, name: Callable[[Any], str]) -> str:
        """The expression that is true if all members lie in the packs, and require grad as they did."""
        constant = [t for t, flag in zip(self.members, self._flags, strict=True) if flag]
        others = [t for t, flag in zip(self.members, self._flags, strict=True) if not flag]
        held = [pack.settled(name) for pack in self._packs]
        if constant:
            held.append(f"[t._n for t in {name(constant)}].count(None) == {len(constant)}")
        if others:
            held.append(f"None not in [t._n for t in {name(others)}]")
        return " and ".join(held) or "True"

    @property
    def condition(self) -> Condition:
        """That this is so."""
        words = [word for pack in self._packs for word in pack.words]
        flags = zip(self.members, self._flags, strict=True)
        words += [slot_of(t, "_n", None) if constant else slot_of(t, "_n") for t, constant in flags]
        known = None if None in words else [word for found in words for word in found or ()]
        return Judged(known, lambda name: f"not ({self.settled(name)})", bool)  # bool() is False

    def misfit(self) -> str:
        """Why the members cannot lie in the packs any more; "" if they can."""
        return next((why for pack in self._packs if (why := pack.misfit())), "")

    def gather(self, own: Callable[[Any], Any]) -> list[tuple[StatePack | PlacedPack, list[Tensor]]]:
        """Lay all members into the packs. Returns what `put_back` is to be given after the program."""
        return [(pack, seen) for pack in self._packs if (seen := pack.gather(own))]


def put_back(seen: Iterable[tuple[StatePack, list[Tensor]]]) -> None:
    """Write the new values of members that keep their memory, since others see it."""
    for pack, tensors in seen:
        pack.put_back(tensors)


def _may_lie(tensor: Tensor, where: device | None) -> bool:
    """Whether a tensor may lie in a pack of a program whose tensors are on the device `where`; None: on the CPU."""
    if where is None:
        return tensor._d.__class__ is not Sealed and not is_committed(tensor)
    on_host = tensor._d.__class__ is not Placed and tensor._d.__class__ is not Sealed
    return is_whole(tensor, where) or (on_host and not tensor._d.shape)  # a number, such as a count of steps


class _Candidates(NamedTuple):
    """What may lie in packs.

    state      input -> the output that is its new value
    tensors    input -> the tensor
    gradients  output -> the tensor whose new gradient it is
    """

    state: dict[int, int]
    tensors: dict[int, Tensor]
    gradients: dict[int, Tensor]


def _candidates(program: Program, graph: Graph, results: int, effects: Sequence[Effect]) -> _Candidates:
    positions = {source: k for k, source in enumerate(program.sources)}
    shared = {owner for a, b, _ in program.guarded.overlaps for owner in (a, b)}
    shared |= {Captured(g.layout) for g in program.guarded.state if g.layout is not None and g.value is not None}
    shared |= {source.of for source in program.sources if isinstance(source, MemoryOf)}
    found = _Candidates({}, {}, {})
    fresh = Counter(e.fresh for e in effects)
    for k, (target, _, history, number) in enumerate(effects, results):
        if history is not History.NONE:
            continue
        if isinstance(target, Captured) and target in positions and target not in shared:
            if _may_lie(target.tensor, program.device):
                i = graph.inputs[positions[target]]
                found.state[i], found.tensors[i] = k, target.tensor
        elif isinstance(target, GradOf) and isinstance(target.of, Captured) and number is not None:
            of = target.of.tensor
            if fresh[number] == 1 and (program.device is None) is (of._d.__class__ is not Placed):
                found.gradients[k] = of
    return found


def repacked(program: Program, graph: Graph, results: int, effects: Sequence[Effect]) -> Repacked | None:
    """`program` with its small state in packs, and on a device all its new gradients written over the old ones; None if
    there is too little.

    graph    optimized: its outputs are so many results, the values of the effects, and others
    """
    state, tensors, gradients = _candidates(program, graph, results, effects)
    if program.device is not None and len(state) + len(gradients) < FEW:
        return None
    found = pack_state(graph, state, gradients, _equal(graph, tensors))
    if found is None and (program.device is None or not gradients):
        return None
    found = found or Packed(graph, ())
    packs = [_pack_of([tensors[i] for i in p.inputs], p.equal) for p in found.packs if p.inputs]
    packed = {k for p in found.packs for k in p.outputs}
    rest = [k for k in range(len(graph.outputs)) if k not in packed]
    ids = dict(zip(rest, found.graph.outputs, strict=False))  # which the packs follow
    once = Counter(graph.outputs)
    alone = [k for k in gradients if k in ids and program.device is not None and once[graph.outputs[k]] == 1]
    hidden = iter(packs)
    targets: list[Any] = [
        Captured(next(hidden).tensor) if p.inputs else _handed_out([gradients[k] for k in p.outputs])
        for p in found.packs
    ] + [_handed_out([gradients[k]]) for k in alone]
    ends = (*found.graph.outputs[len(rest) :], *(ids[k] for k in alone))
    made = list(map(Effect, targets, ends))
    replaced = {id(e) for k, e in enumerate(effects, results) if k in packed or k in alone}
    kept = [k for k, e in enumerate(effects, results) if id(e) not in replaced]
    last = [k for k in rest if k >= results + len(effects)]
    order = (*(ids[k] for k in (*range(results), *kept)), *ends, *(ids[k] for k in last))
    builder = Builder(found.graph.nodes)
    spare = {t.spare: k for t, k in zip(targets, ends, strict=True) if isinstance(t, GradsOf) and t.spare}
    inputs = [builder.input(f"spare_{n}", found.graph.nodes[k].aval).id for n, k in enumerate(spare.values())]
    inside = {i for p in found.packs for i in p.inputs}
    sources = [s for s, i in zip(program.sources, graph.inputs, strict=True) if i not in inside]
    others = [e for e in program.effects.tensors if id(e) not in replaced]
    new = program._replace(
        sources=(*sources, *(Captured(pack.tensor) for pack in packs), *spare),
        effects=program.effects._replace(tensors=(*others, *made)),
    )
    whole = Graph(
        graph.name, builder.nodes, (*found.graph.inputs, *inputs), tuple(map(Ref, order)), found.graph.history
    )
    return Repacked(new, whole, [*(effects[k - results] for k in kept), *made], Packs(packs))


def _pack_of(members: Sequence[Tensor], equal: bool) -> StatePack | PlacedPack:
    return (PlacedPack if members[0]._d.__class__ is Placed else StatePack).of(members, equal)


def _handed_out(of: Sequence[Tensor]) -> GradsOf:
    """The effect of new gradients of tensors, in one array."""
    if of[0]._d.__class__ is not Placed:
        return GradsOf(GradientPack.of(of).give)
    gradients = PlacedGradients.of(of)
    return GradsOf(gradients.give, Spare(gradients.take, gradients.restored))


def _equal(graph: Graph, tensors: Mapping[int, Tensor]) -> list[list[int]]:
    """The inputs without dims that hold the same value."""
    found: dict[tuple[Any, ...], list[int]] = {}
    for i, t in tensors.items():
        if not graph.nodes[i].shape:
            key = graph.nodes[i].dtype, t._d.__class__ is Placed, values_of(t).tobytes()
            found.setdefault(key, []).append(i)
    return list(found.values())
