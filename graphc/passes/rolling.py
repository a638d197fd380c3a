"""Repeated structure rolled into `scan`: layers, steps of time, updates of parameters.

Of a run that `repeats` has found, the operands are read in columns, one node a step. A column is a constant of the
loop, a carry, which is what the step before has computed, or one of the xs: its nodes are stacked. What a run returns
is known by column, too: where a later run reads what each step of an earlier one has computed, forwards or backwards,
it reads the stacked results as they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from graphc.ir import Graph
from graphc.passes.cse import eliminate_common_subexpressions
from graphc.passes.dce import eliminate_dead_code
from graphc.passes.loops import Loop, Unfit
from graphc.passes.repeats import FEWEST, Repeat, find_repeats
from graphc.passes.unrolled import with_loops


def roll_repeats(graph: Graph, optimize: Callable[[Graph], Graph]) -> tuple[Graph, list[Rolled]]:
    """`graph` with its repeats as loops, and what they are. `optimize` is given the bodies."""
    merged = eliminate_common_subexpressions(graph)
    loops: list[Loop] = []
    for repeat in _aligned(merged, find_repeats(merged)):
        try:
            loop = Loop(merged, repeat)
        except Unfit:
            continue
        if worth_rolling(loop):
            loops.append(loop)
    if not loops:
        return graph, []
    notes = [Rolled(loop.count, len(loop.builder.nodes), merged.nodes[loop.repeat.steps[0][0]].where) for loop in loops]
    return eliminate_dead_code(with_loops(merged, loops, optimize)), notes


class Rolled(NamedTuple):
    """A loop that was made: its steps, the nodes of one, and the user's line."""

    steps: int
    nodes: int
    where: str

    def __str__(self) -> str:
        return f"{self.steps} steps of {self.nodes} nodes at {self.where or 'unknown line'} are a scan"


LEAST = 60  # nodes that a loop is to save


def worth_rolling(loop: Loop) -> bool:
    return (loop.count - 1) * len(loop.builder.nodes) >= LEAST


def _aligned(graph: Graph, repeats: list[Repeat]) -> list[Repeat]:
    """The repeats, with only those steps of one whose results another reads: then it reads them as they are stacked.

    The last step of a forward pass, say, has a backward one unlike the others.
    """
    nodes = graph.nodes
    aligned = list(repeats)
    for later in reversed(range(len(aligned))):
        first, last = aligned[later].steps[0], aligned[later].steps[-1]
        for earlier in range(later):
            steps = aligned[earlier].steps
            place = {id: (k, j) for k, step in enumerate(steps) for j, id in enumerate(step)}
            votes: Counter[tuple[int, int]] = Counter()
            for a, b in zip(first, last, strict=True):
                for i, j in zip(nodes[a].inputs, nodes[b].inputs, strict=True):
                    start, end = (place.get(_base(graph, id)) for id in (i, j))
                    if start is not None and end is not None and start[1] == end[1]:
                        low, high = sorted((start[0], end[0]))
                        if high - low + 1 == len(aligned[later].steps):
                            votes[low, high + 1] += 1
            if votes:
                aligned[earlier] = Repeat(steps[slice(*votes.most_common(1)[0][0])])
    return [repeat for repeat in aligned if len(repeat.steps) >= FEWEST]


def _base(graph: Graph, id: int) -> int:
    while graph.nodes[id].op.view:
        id = graph.nodes[id].inputs[0]
    return id
