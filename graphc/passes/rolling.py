"""Repeated structure rolled into `scan`: steps of time, layers, slices that are treated alike.

A program of many steps takes XLA long to compile, and each step reads and writes at places of its own, for which XLA
makes code of its own. A loop has the code of one step. It is made where it costs no time when the program runs: of
values of each step that are read one by one, each takes longer to compile than a step, and weights that each step has
for itself are copied into one array at each call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

from graphc.ir import INPUT, Graph
from graphc.passes.cse import eliminate_common_subexpressions
from graphc.passes.dce import eliminate_dead_code
from graphc.passes.loops import Column, Loop, Unfit
from graphc.passes.repeats import FEWEST, Repeat, find_repeats, views
from graphc.passes.unrolled import base_of, laid_together, with_loops
from graphc.rewrite.cost import WRITE, node_cost

LEAST = 32  # operations that a loop is to save
# measured with XLA, on one core: what the code that reads one row takes to compile beside that of an operation; steps
# from which on a loop compiles faster though its weights are stacked, or runs faster where they lie in packs (16 layers
# 1.2 times as long, 30 layers 0.7, 100 layers 0.3 to 0.8); and the part of a step's work that stacking may take
ROW, MANY, SHARE = 25, 24, 1 / 6


class Rolled(NamedTuple):
    """A loop that was made: its steps, the operations of one, and the user's line."""

    steps: int
    operations: int
    where: str

    def __str__(self) -> str:
        where = self.where or "unknown line"
        return f"{self.steps} steps of {self.operations} operations at {where} are a scan"


def roll_repeats(graph: Graph, optimize: Callable[[Graph], Graph], fewest: int = FEWEST) -> tuple[Graph, list[Rolled]]:
    """`graph` with its repeats of `fewest` steps or more as loops, and what they are. `optimize` is given the bodies.

    Each operation computes what it did, bit for bit; XLA may round it differently.
    """
    merged = eliminate_common_subexpressions(graph)
    loops = chosen(merged, [loop for loop in _loops(merged) if loop.count >= fewest])
    if not loops:
        return graph, []
    firsts = [merged.nodes[loop.repeat.steps[0][0]] for loop in loops]
    notes = [
        Rolled(loop.count, len(loop.repeat.steps[0]), first.where) for loop, first in zip(loops, firsts, strict=True)
    ]
    return eliminate_dead_code(with_loops(merged, loops, optimize)), notes


def _loops(graph: Graph) -> Iterator[Loop]:
    for repeat in _aligned(graph, find_repeats(graph)):
        try:
            yield Loop(graph, repeat)
        except Unfit:
            continue


def _aligned(graph: Graph, repeats: list[Repeat]) -> list[Repeat]:
    """The repeats, with only those steps of one whose results another reads: then it reads them as they are stacked.

    The last step of a forward pass, say, has a backward one unlike the others.
    """
    nodes = graph.nodes
    aligned = list(repeats)
    most = [0] * len(repeats)
    place = {
        id: (r, k, j)
        for r, repeat in enumerate(repeats)
        for k, step in enumerate(repeat.steps)
        for j, id in enumerate(step)
    }
    for later in reversed(range(len(aligned))):
        steps = aligned[later].steps
        votes: dict[int, Counter[tuple[int, int]]] = {}
        for a, b in zip(steps[0], steps[-1], strict=True):
            for i, j in zip(nodes[a].inputs, nodes[b].inputs, strict=True):
                start, end = (place.get(base_of(graph, id)) for id in (i, j))
                if start is None or end is None or start[0] == later or (start[0], start[2]) != (end[0], end[2]):
                    continue
                low, high = sorted((start[1], end[1]))
                if high - low + 1 == len(steps):
                    votes.setdefault(start[0], Counter())[low, high + 1] += 1
        for earlier, found in votes.items():
            part, count = found.most_common(1)[0]
            if count > most[earlier]:
                most[earlier] = count
                aligned[earlier] = Repeat(repeats[earlier].steps[slice(*part)])
    return [repeat for repeat in aligned if len(repeat.steps) >= FEWEST]


def columns(graph: Graph) -> list[Column]:
    """The inputs that many steps would have for themselves in a loop, by place, in the order of the steps."""
    merged = eliminate_common_subexpressions(graph)
    leaves = [column for loop in _loops(merged) if loop.count >= MANY for column in loop.leaves]
    return [column for column in leaves if _are_inputs(merged, column)]


def _are_inputs(graph: Graph, column: Column) -> bool:
    return {graph.nodes[id].op for id in column} == {INPUT} and len(set(column)) == len(column)


def chosen(graph: Graph, loops: list[Loop]) -> list[Loop]:
    """The loops that shorten the first call, and do not slow the later ones."""
    fed = [loop for loop in loops if _cheap_to_feed(graph, loop)]
    large = [loop for loop in fed if _saved(loop.repeat) >= LEAST]
    kept = _read_together(graph, large)
    # values of a large loop may be read by a small one
    return kept if len(kept) == len(large) else _read_together(graph, fed)


def _read_together(graph: Graph, loops: list[Loop]) -> list[Loop]:
    """The loops whose values are read together, or few of them one by one."""
    while True:  # without one loop, another's values may be read one by one
        rows = _rows(graph, loops)
        kept = [loop for k, loop in enumerate(loops) if ROW * rows[k] <= _saved(loop.repeat)]
        if len(kept) == len(loops):
            return loops
        loops = kept


def _saved(repeat: Repeat) -> int:
    """How many operations fewer there are to compile."""
    return (len(repeat.steps) - 1) * len(repeat.steps[0])


def _cheap_to_feed(graph: Graph, loop: Loop) -> bool:
    """Whether the operands that each step has for itself are no great part of its work."""
    nodes = loop.builder.nodes
    own = [graph.nodes[column[0]] for column in loop.leaves if _are_inputs(graph, column)]
    if not own:
        return True
    work = sum(node_cost(node, nodes) for node in nodes.values())
    return loop.count >= MANY and (1 + WRITE) * sum(node.size for node in own) <= SHARE * work


def _rows(graph: Graph, loops: list[Loop]) -> Counter[int]:
    """For each loop, how many values of single steps are read, apart from the last that is passed on."""
    if not loops:
        return Counter()
    place = {id: (k, *where) for k, loop in enumerate(loops) for id, where in loop.place.items()}
    bases = {id: id for id in place}  # of these, and of views of them
    read = {id for loop in loops for id in (*loop.consts, *(carry.initial for carry in loop.carries))}
    read.update(graph.outputs)
    for id, node in graph.nodes.items():
        if views(node) and node.inputs[0] in bases:
            bases[id] = bases[node.inputs[0]]
        elif id not in place and not bases.keys().isdisjoint(node.inputs):
            runs = laid_together(graph, node) or [(i,) for i in node.inputs]
            read.update(i for run in runs if len(run) < FEWEST for i in run)
    found: Counter[int] = Counter()
    for k, step, operation in {place[bases[id]] for id in read if id in bases}:
        if step != loops[k].count - 1 or operation not in loops[k].last:
            found[k] += 1
    return found
