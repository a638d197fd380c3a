"""Where processes that share a batch part from one process that has all of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from compare.cases.case import Case
from compare.judging.shares import MEAN, ODD, SCALED, SUM, WHOLE, Relation, relation
from compare.locating.culprit import Culprit
from graphc.ir import INPUT, Graph
from graphc.ir.structure import ancestors
from graphc.ops import Trait

MISSING = "missing collective"
LARGEST = 1 << 26  # bytes of values that ranks send each other


def in_shares(
    case: Case, one: Case, labels: Sequence[str], gathered: Callable[[Any], list[Any]],
    alone: Callable[[], AbstractContextManager[None]],
) -> Mapping[str, Culprit]:  # fmt: skip
    """What is to blame for each of `labels`: the first op whose values of the shares do not make that of the whole.

    one: the call that has the whole batch. All ranks have to call this alike.
    """
    if not labels or not all(gathered(case.program is not None and one.program is not None)):
        return {}
    graph, whole = case.joint.graph, one.joint.graph
    computed, there = (_computed(g) for g in (graph, whole))
    ops = [graph.nodes[id].op.name for id in computed]
    size = sum(aval.nbytes for node in graph.nodes.values() for aval in node.results)
    fits = ops == [whole.nodes[id].op.name for id in there] and size <= LARGEST
    if not all(fit and other == ops for other, fit in gathered((ops, fits))):
        return {}
    ids = dict(zip(computed, there, strict=True))
    own = {id: v for id, v in case.node_values.items() if id in ids and isinstance(v, np.ndarray)}
    with alone():
        expected = one.node_values
    parts = gathered(own)
    known: dict[int, Relation] = {}
    for id in own:
        value = expected.get(ids[id])
        if isinstance(value, np.ndarray) and all(id in part for part in parts):
            known[id] = relation([part[id] for part in parts], value)
    outputs = case.joint.ids
    found = {label: _blamed(graph, outputs[label], known) for label in labels if label in outputs}
    return {label: culprit for label, culprit in found.items() if culprit is not None}


def _computed(graph: Graph) -> list[int]:
    """All nodes but constants: a number may stand for several, as long as they are equal."""
    return [id for id, node in graph.nodes.items() if node.inputs or node.op is INPUT]


def _blamed(graph: Graph, output: int, known: Mapping[int, Relation]) -> Culprit | None:
    nodes = graph.nodes
    first = ancestors(nodes, [output])
    for id in (id for id in nodes if id in first):
        node, own = nodes[id], known.get(id)
        if own is None or not node.inputs:
            continue
        operands = {i: known[i] for i in node.inputs if i in known}
        kinds = {r.kind for r in operands.values()}
        communicates = bool(node.op.traits & Trait.COMMUNICATES)
        scaled = own.kind == SCALED and (communicates or (WHOLE in kinds and SCALED not in kinds))
        if own.kind == ODD or scaled:
            given = ", ".join(f"v{i} is {r}" for i, r in operands.items())
            made = str(own) if own.kind == SCALED else "not that of the whole batch"
            part = "collective" if communicates else MISSING if kinds & {MEAN, SUM} else "share of a batch"
            evidence = f"of each rank {given}; its result is {made}"
            return Culprit(part, node.op.name, id, node.where, evidence=evidence)
    if output in known and known[output].kind not in (WHOLE, SCALED):
        reached = [n for n in graph.operations() if n.op.traits & Trait.COMMUNICATES and n.id in first]
        there = ", ".join(f"{n.op.name} of ranks {', '.join(map(str, n.params['ranks']))} ({n.where})" for n in reached)
        evidence = f"each rank has {known[output]}; on the way there is {there or 'no collective'}"
        return Culprit(MISSING, "", None, nodes[output].where, evidence=evidence)
    return None
