"""When each value of a program is alive, and what the program takes at its peak.

Units run in one order. A value lives from where it is written to where it is read last; results and arguments live all
the time, and the memory of a result may hold what is dead before the result is written (XLA's buffer_assignment.cc).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from graphc.footprint.schedule import breadth_first, with_copies
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
    """

    arguments: int
    outputs: int
    aliased: int
    temporaries: int
    spans: tuple[Span, ...]
    step: int
    order: tuple[Unit, ...]
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
        size_of([node.aval for node in aliased]) - host, temporaries, tuple(spans), step, tuple(order), host,
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
    spans: dict[int, Span] = {}
    first = {id: k for k, unit in reversed([*enumerate(order)]) for id in unit.reads}
    read = [id for id in visiting if id in first]
    scratch = [Span(((id, first[id]),), visiting[id], first[id], last[id]) for id in read]
    for k, unit in enumerate(order):
        for id, size in unit.writes:
            values, start = (), k
            for i in unit.over:
                old = spans.get(i)
                if old is not None and old.size == size and last[i] == k and i not in results:
                    values, start = old.values, old.start
                    del spans[i]
                    break
            spans[id] = Span((*values, (id, k)), size, start, last.get(id, k))
        if unit.scratch:
            scratch.append(Span(((unit.id, k),), unit.scratch, k, k))
    held = {id: [span] for id, span in spans.items() if id in results and id not in over}
    left: list[Span] = []
    temporary = [span for id, span in spans.items() if id not in results] + scratch
    for span in sorted(temporary, key=lambda s: -s.size):
        for own in held.values():
            if own[0].size >= span.size and all(o.stop < span.start or span.stop < o.start for o in own):
                own.append(span)
                break
        else:
            left.append(span)
    most, step = _most(left, end)
    return [*left, *(s for own in held.values() for s in own)], most, step


def _most(spans: Sequence[Span], end: int) -> tuple[int, int]:
    change = [0] * (end + 2)
    for span in spans:
        change[span.start] += span.size
        change[span.stop + 1] -= span.size
    most = now = step = 0
    for k, by in enumerate(change):
        now += by
        if now > most:
            most, step = now, k
    return most, step
