"""A program within a budget of memory: what is computed again, so that it fits.

Candidates differ in how long the chains are that are computed again, and in what a byte is worth. The model of
`graphc.footprint` ranks them; XLA's own figure decides. The one that fits with the least work is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from graphc.errors import OVER_BUDGET, MemoryBudgetError
from graphc.execution.partition import Joint, Split
from graphc.execution.prices import USUAL, Recomputation, repeatable
from graphc.execution.recompute import lazily, recomputed
from graphc.footprint.liveness import liveness
from graphc.footprint.report import largest
from graphc.footprint.sizes import shown
from graphc.ir import Graph, Node
from graphc.rewrite.cost import work
from graphc.sharding.layout import Layout
from graphc.sharding.one_device import on_one_device

WORTH = (USUAL.byte, 16 * USUAL.byte, 1000 * USUAL.byte)  # what a byte is worth
LENGTHS = 13  # of chains, each twice as long as the one before
SLACK = 1.2  # the model is right within so much
ATTEMPTS = 6  # programs that XLA compiles


class Candidate(NamedTuple):
    """A way to run a program.

    predicted  bytes at its peak, by the model
    work       scalar operations that are done again
    values     how many values are computed again
    build      makes it ready: its programs, and what they are of
    """

    predicted: int
    work: float
    values: int
    build: Callable[[], tuple[Sequence[Any], Any]]


class Fitted(NamedTuple):
    """What was chosen: its programs, what they are of, and a sentence about it."""

    programs: Sequence[Any]
    made_of: Any
    note: str


def ways(nodes: Mapping[int, Node]) -> list[Recomputation]:
    """What may be tried for a program with these nodes."""
    deepest: dict[int, float] = {}
    every = Recomputation(products=True)
    for id, node in nodes.items():
        own = work(node, nodes) / max(node.size, 1) if repeatable(node, every) else 0.0
        deepest[id] = own + max([deepest[i] for i in node.inputs], default=0.0)
    depth = max(deepest.values(), default=0.0)
    found = [Recomputation(byte, depth, False) for byte in WORTH]
    chains = [USUAL.chain * 2**k for k in range(LENGTHS) if k == 0 or USUAL.chain * 2 ** (k - 1) < depth]
    return found + [Recomputation(byte, chain, True) for chain in chains for byte in WORTH[1:]]


def fitted(
    name: str, memory: int | float, base: Candidate, others: Callable[[], Iterable[Candidate]], graph: Graph
) -> Fitted:
    """The cheapest candidate that takes no more than `memory`: bytes, or a fraction of what `base` takes.

    Raises MemoryBudgetError if there is none: with the least that was found, and what of `graph` is largest.
    """
    limit = int(memory) if isinstance(memory, int) else None
    plain = None
    if limit is None or base.predicted <= SLACK * limit:
        programs, made_of = base.build()
        plain = _peak(programs, base, likely=limit is not None)
        limit = int(memory * plain) if limit is None else limit
        if plain <= limit:
            return Fitted(programs, made_of, f"memory: {shown(plain)} of {shown(limit)}, nothing is computed again")
    known = list(others())
    likely = sorted((c for c in known if c.predicted <= SLACK * limit), key=lambda c: c.work)
    # those that fit by the model come first; at the end the one that is smallest by it
    likely.sort(key=lambda c: c.predicted > limit)
    smallest = sorted(known, key=lambda c: c.predicted)[:1]
    least = base.predicted if plain is None else plain
    for candidate in [*likely[:ATTEMPTS], *(c for c in smallest if c not in likely[:ATTEMPTS])]:
        programs, made_of = candidate.build()
        peak = _peak(programs, candidate, likely=True)
        least = min(least, peak)
        if peak <= limit:
            before = base.predicted if plain is None else plain
            note = (
                f"memory: {shown(peak)} of {shown(limit)}; {candidate.values} values are computed again, "
                f"{candidate.work:,.0f} operations, which saves {shown(before - peak)}"
            )
            return Fitted(programs, made_of, note)
    raise MemoryBudgetError(
        OVER_BUDGET.format(
            name=name, limit=shown(limit), least=shown(least), bytes=least, base=shown(plain or base.predicted),
            largest=", ".join(largest(graph)),
        ),
        least,
    )  # fmt: skip


def _peak(programs: Sequence[Any], candidate: Candidate, likely: bool) -> int:
    """The bytes of the larger program; what is likely to be taken is compiled for that, and not laid out apart."""
    if likely:
        for program in programs:
            program.compile()
    plans = [program.plan() for program in programs]
    return max(p.peak for p in plans) if all(p is not None for p in plans) else candidate.predicted


def fit_step(
    graph: Graph, donated: Mapping[int, int], memory: int | float, lower: Callable[[Graph], Any], layout: Layout | None
) -> Fitted:
    """A whole step within `memory`. donated: as for `liveness`; lower: makes its program. `made_of` is its graph."""
    part = on_one_device(graph, layout)
    alive = liveness(part, donated)
    base = Candidate(alive.peak, 0.0, 0, lambda: ((lower(graph),), graph))

    def others() -> Iterable[Candidate]:
        seen: set[tuple[int, ...]] = set()
        for again in ways(graph.nodes):
            made = recomputed(graph, alive, again)
            if made is None or made.values in seen:
                continue
            seen.add(made.values)
            new = made.graph
            predicted = liveness(on_one_device(new, layout), donated).peak
            yield Candidate(predicted, made.work, len(made.values), lambda new=new: ((lower(new),), new))

    return fitted(graph.name, memory, base, others, part)


def fit_split(
    joint: Joint, memory: int | float, lower: Callable[[Split], tuple[Any, Any]],
    parts: Callable[[Split], tuple[Graph, Graph]],
) -> Fitted:  # fmt: skip
    """A forward and a backward program, each within `memory`. lower: makes the two; parts: what one device runs of
    each. `made_of` is the Split."""

    def candidate(split: Split, base: Split | None) -> Candidate:
        peak = max(liveness(part).peak for part in parts(split))
        extra = 0.0 if base is None else max(0.0, _work(split) - _work(base))
        values = 0 if base is None else max(0, len(split.backward) - len(base.backward))
        return Candidate(peak, extra, values, lambda: (lower(split), split))

    usual = joint.split()

    def others() -> Iterable[Candidate]:
        for again in ways(joint.graph.nodes):
            split = joint.split(again)
            given = len(split.backward.inputs) - (len(joint.graph.inputs) - joint.forward_inputs)
            yield candidate(split._replace(backward=lazily(split.backward, given)), usual)

    largest_part = max(parts(usual), key=lambda part: liveness(part).peak)
    return fitted(joint.graph.name, memory, candidate(usual, None), others, largest_part)


def _work(split: Split) -> float:
    return sum(work(node, split.backward.nodes) for node in split.backward.nodes.values())
