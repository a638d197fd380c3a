"""When each value of a program is alive, and what the program takes at its peak.

Units run in one order. A value lives from where it is written to where it is read last; results and arguments live all
the time, and the memory of a result may hold what is dead before the result is written (XLA's buffer_assignment.cc).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from graphc.footprint.packing import packed
from graphc.footprint.schedule import breadth_first, with_copies
from graphc.footprint.softmax import in_parts
from graphc.footprint.temporaries import size_of
from graphc.footprint.units import Unit, Units
from graphc.ir import Graph


class Span(NamedTuple):
    """Memory that is taken from step `start` to step `stop`, both included.

    values  the nodes whose values lie in it, one after the other, each with the step that writes it
    """

    values: tuple[tuple[int, int], ...]
    size: int
    start: int
    stop: int

    def at(self, step: int) -> int:
        """The node whose value lies in it at `step`."""
        return max((start, node) for node, start in self.values if start <= step)[1]


class Liveness(NamedTuple):
    """What a program takes, in bytes.

    arguments, outputs  all the time
    aliased             of the outputs, what is written over arguments
    temporaries         at most at one time, besides
    host                in the memory of the host, all the time
    spans               of the temporaries and outputs
    step                at which the peak is
    order               the units as they run
    graph               with the nodes that these are of
    """

    arguments: int
    outputs: int
    aliased: int
    temporaries: int
    spans: tuple[Span, ...]
    step: int
    order: tuple[Unit, ...]
    graph: Graph
    host: int = 0

    @property
    def peak(self) -> int:
        return self.arguments + self.outputs - self.aliased + self.temporaries


def liveness(
    graph: Graph, donated: Mapping[int, int] | None = None, on_host: Collection[int] = frozenset()
) -> Liveness:
    """What the program of `graph` takes on its device.

    donated  input number -> the number of the output that is written over it
    on_host  the numbers of donated inputs that lie on the host: they are on the device from their first reader to their
             last, and their new values until they have been written
    """
    graph = in_parts(graph)
    units = Units(graph, _inside)
    results = dict.fromkeys(units.place[id] for id in graph.outputs)
    aliases = {graph.inputs[p]: units.place[graph.outputs[k]] for p, k in (donated or {}).items()}
    order = breadth_first(with_copies(units.units, aliases), graph.inputs)
    visiting = {graph.inputs[k]: graph.nodes[graph.inputs[k]].aval for k in on_host}
    gone = {units.place[graph.outputs[(donated or {})[k]]] for k in on_host}
    spans, temporaries, step = _laid_out(
        order, results.keys() - gone, set(aliases.values()) - gone, {i: size_of([a]) for i, a in visiting.items()}
    )
    outputs = dict.fromkeys(graph.outputs)
    aliased = [graph.nodes[graph.outputs[k]] for k in (donated or {}).values()]
    host = size_of(list(visiting.values()))
    return Liveness(
        size_of(graph.input_avals()) - host, size_of([graph.nodes[id].aval for id in outputs]) - host,
        size_of([node.aval for node in aliased]) - host, temporaries, tuple(spans), step, tuple(order), graph, host,
    )  # fmt: skip


def _inside(body: Graph) -> int:
    """The bytes that a loop, or a branch, takes for its body: its carry is written twice."""
    found = liveness(body)
    return found.temporaries + found.outputs


def _laid_out(
    order: Sequence[Unit], results: Collection[int], over: Collection[int], visiting: Mapping[int, int]
) -> tuple[list[Span], int, int]:
    """The spans of all values, the most that temporaries take, and the step where. visiting: inputs, with their bytes,
    that are there while they are read"""
    end = len(order)
    last = {id: k for k, unit in enumerate(order) for id in unit.reads}
    last |= dict.fromkeys(results, end)
    first = {id: k for k, unit in reversed([*enumerate(order)]) for id in unit.reads}
    spans = {id: Span(((id, first[id]),), visiting[id], first[id], last[id]) for id in visiting if id in first}
    may: dict[int, list[int]] = {}  # what a value may be written over
    number = _numbered(order, results)
    free = min(number, default=0) - 1  # of ids
    for k, unit in enumerate(order):
        for id, size in unit.writes:
            may[id] = [i for i in unit.over if last[i] == k and i in spans and spans[i].size == size]
            spans[id] = Span(((id, k),), size, k, last.get(id, k))
            if unit.into is not None and unit.into in may[id] and unit.into not in results:
                old = spans.pop(unit.into)
                spans[id] = Span((*old.values, (id, k)), size, old.start, spans[id].stop)
        if unit.scratch:
            spans[free - k] = Span(((unit.id, k),), unit.scratch, k, k)
    held = {id: [id] for id in spans if id in results and id not in over}
    left: dict[int, Span] = {}
    for id in sorted(spans.keys() - results, key=lambda id: (-spans[id].size, number[spans[id].values[0][0]])):
        for own in held.values():
            if spans[own[0]].size >= spans[id].size and all(_fits(id, other, spans, may) for other in own):
                own.append(id)
                break
        else:
            left[id] = spans[id]
    for id in [id for id in spans if id in left]:  # as they are written
        old = next((i for i in may.get(id, ()) if i in left), None)
        if old is not None:
            before, span = left.pop(old), left[id]
            left[id] = Span((*before.values, *span.values), span.size, before.start, span.stop)
    mine = sorted(left.values(), key=lambda s: number[s.values[0][0]])
    most = packed([(span.size, span.start, span.stop) for span in mine])
    return [*mine, *(spans[id] for own in held.values() for id in own)], most, _fullest(mine, end)


def _fits(one: int, other: int, spans: Mapping[int, Span], may: Mapping[int, Sequence[int]]) -> bool:
    """Whether two values may lie in the same memory."""
    before, after = (one, other) if spans[one].start < spans[other].start else (other, one)
    free, taken = spans[before].stop, spans[after].start
    return free < taken or (free == taken and before in may.get(after, ()))


def _numbered(order: Sequence[Unit], results: Collection[int]) -> dict[int, int]:
    """The numbers that XLA gives values: operands before what is made of them, from the first result on."""
    by = {written: unit for unit in order for written, _ in unit.writes}
    found: dict[int, int] = {}
    stack = [(id, False) for id in reversed([*results, *by, *(unit.id for unit in order)])]
    while stack:
        id, done = stack.pop()
        if id in found:
            continue
        if done or id not in by:
            found[id] = len(found)
            continue
        stack.append((id, True))
        stack += [(i, False) for i in reversed(by[id].reads) if i not in found]
    return found


def _fullest(spans: Sequence[Span], end: int) -> int:
    """The step in which most is alive."""
    change = [0] * (end + 2)
    for span in spans:
        change[span.start] += span.size
        change[span.stop + 1] -= span.size
    most = now = step = 0
    for k, by in enumerate(change):
        now += by
        if now > most:
            most, step = now, k
    return step
