"""Two versions of a graph, where it costs much less if numbers that are not known turn out to be positive.

The inverse of D + U U^T, U with few columns, is that of a small matrix if D is positive (`low_rank.py`). Where no fact
says so, the program asks D when it runs, and has what is written for every other D. It also asks that D is about as
regular as D + U U^T is at best, so that no more digits are lost than by elimination, but for two:

    0 < min D, and more elements of D than U has columns are at most 100 min D

for the least eigenvalue of D + U U^T is at most the least element of D but k, the number of columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from graphc.facts.known import Facts
from graphc.ir import INPUT, Builder, Graph, Ref, Symbol
from graphc.ir.structure import SWITCH, ancestors, emit
from graphc.ops.dtypes import BOOL, FLOAT32, INT32
from graphc.passes.dce import eliminate_dead_code
from graphc.passes.inverses import ASKED, expand_inverses
from graphc.passes.low_rank import SPREAD, LowRank
from graphc.rewrite.cost import node_cost

LEAST = 32  # rows
COLUMNS = 0.25  # for each row, at most
# of the cost of the graph as it is written, which products may have that come to nothing beside a small inverse: what
# asks for inverses and determinants must have so much
SHARE = 0.1


class Version(NamedTuple):
    """A matrix of which the program asks what its diagonal is: the user's line."""

    where: str

    def __str__(self) -> str:
        return (
            f"if the diagonal of the matrix at {self.where or 'unknown line'} is positive, and of elements of about "
            "one size, its inverse is a small one"
        )


def in_versions(graph: Graph, optimize: Callable[[Graph], Graph]) -> tuple[Graph, list[Version]]:
    """`graph` with a question and two versions of what follows, and what is asked. `optimize` is given both."""
    asking = [node for node in graph.nodes.values() if node.op in ASKED]
    if not asking or any(node.op.impure for node in graph.nodes.values()):
        return graph, []
    costs = {id: node_cost(node, graph.nodes) for id, node in graph.nodes.items()}
    if sum([costs[node.id] for node in asking]) < SHARE * sum(costs.values()):
        return graph, []
    builder = Builder(graph.nodes)
    builder.next_id = max(graph.nodes) + 1
    found = dict(_unproven(graph, builder))
    if not found:
        return graph, []
    F = builder.language
    answer = F.where(_all(list(found.values())), 1, 0)
    outside = ancestors(builder.nodes, [answer.id])
    apart = {id for id, node in graph.nodes.items() if id not in outside or not (node.inputs or node.op is INPUT)}
    inside = {id: node for id, node in graph.nodes.items() if id in apart and node.op is not INPUT}
    results = [id for id in dict.fromkeys(graph.outputs) if id in inside]
    read = sorted({i for node in inside.values() for i in node.inputs if i not in inside})
    nodes = {}
    for k, i in enumerate(read):
        given = Builder()
        given.next_id = i
        nodes |= {given.input(f"x{k}", graph.nodes[i].aval).id: given.nodes[i]}
    body = Graph(graph.name, {**nodes, **inside}, tuple(read), tuple(map(Ref, results)))
    body = eliminate_dead_code(body)
    branches = optimize(body), optimize(expand_inverses(body, frozenset(found)))
    operands = [F.cast(answer, dtype=INT32), *map(builder.symbol, read)]
    items = emit(builder, SWITCH, operands, branches=branches)
    new = {id: item.id for id, item in zip(results, items, strict=True)}
    both = graph.rewired(builder.nodes, new)
    return eliminate_dead_code(both), [Version(graph.nodes[id].where) for id in found]


def _unproven(graph: Graph, builder: Builder) -> Iterator[tuple[int, Symbol]]:
    """The matrices D + U U^T that are asked for, with D of unknown signs or sizes, and whether D is good enough."""
    facts = Facts(builder.nodes)
    known, hoping = LowRank(builder, facts), LowRank(builder, facts, graph.nodes)
    F = builder.language
    for id in dict.fromkeys([node.inputs[0] for node in graph.nodes.values() if node.op in ASKED]):
        x = builder.symbol(id)
        if len(x.shape) != 2 or type(x.shape[0]) is not int or x.shape[0] < LEAST or known.of(x) is not None:
            continue
        thin = hoping.of(x)
        if thin is None:
            continue
        d, parts = thin
        columns = sum([builder.nodes[part.factor].size for part in parts]) // x.shape[0]
        if columns > COLUMNS * x.shape[0]:
            continue
        if not d.shape:
            yield id, F.gt(d, 0)
            continue
        low = F.amin(d, axis=(0,), keepdims=False)
        alike = F.sum(F.cast(F.le(d, low * SPREAD), dtype=FLOAT32), axis=(0,), keepdims=False)
        yield id, F.logical_and(F.gt(low, 0), F.gt(alike, columns))


def _all(conditions: list[Symbol]) -> Symbol:
    F = conditions[0].builder.language
    every = conditions[0]
    for condition in conditions[1:]:
        every = F.logical_and(every, condition)
    assert every.dtype == BOOL
    return every
