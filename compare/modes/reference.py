"""The mode that shares nothing: every node of the graph, judged by the independent reference of its op."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import final

import numpy as np

from compare.cases.case import Case
from compare.cases.outcome import Objected, Outcome
from compare.judging.dtypes import objection
from compare.judging.references import disputes
from compare.judging.tolerance import Verdict
from compare.locating.culprit import Culprit
from compare.locating.executed import Step, executed
from compare.modes.protocol import NOT_CAPTURED
from graphc.ir import Graph
from graphc.ops.aval import aval_of

PROMOTION = "promotion of dtypes"
ALIKE = 16  # nodes of one op with operands of the same types, so many are looked at


@final
class Reference:
    """The ops of a program, on the operands that they have there, by their definitions.

    It has no result of its own, but objections: to a kernel, a shape rule, or what a gradient rule gives at a kink, a
    tie or a limit, where derivatives do not tell who is right.
    """

    name, wide, repeats, foreign = "reference", False, False, False

    def run(self, case: Case) -> Outcome:
        if case.program is None:
            return Outcome(silent=NOT_CAPTURED)
        return Outcome(objections=(*_promotions(case), *_objections(case)))

    def locate(self, case: Case, label: str, outcome: Outcome) -> Culprit | None:
        return outcome.objections[0].culprit if outcome.objections else None


def _promotions(case: Case) -> Iterator[Objected]:
    """What PyTorch's recorded promotions say of those that the eager engine has made: all modes capture their casts."""
    lines = {node.op.name: node.where for node in reversed(list(case.captured_program.graph.operations()))}
    for made in sorted(case.promoted, key=lambda made: made.op.name):
        if detail := objection(made):
            culprit = Culprit(PROMOTION, made.op.name, where=lines.get(made.op.name, ""), evidence=detail)
            yield Objected(f"{made.op.name}: {PROMOTION}", Verdict.BUG, detail, culprit)


def _objections(case: Case) -> Iterator[Objected]:
    program = case.captured_program
    seen = Counter[object]()
    said: set[tuple[str, str]] = set()
    try:
        graph, operands = case.joint.graph, case.operands
    except Exception:  # what differentiating raises is a finding of the graph's mode
        with case.preserved():
            graph, operands = program.graph, case.arrays()
    for step in _until_it_fails(graph, operands):
        node = step.node
        kind = node.op, tuple((a.shape, a.dtype) for a in step.operands if isinstance(a, np.ndarray))
        seen[kind] += 1
        if seen[kind] > ALIKE or not all(isinstance(a, np.ndarray) for a in step.operands):
            continue
        for part, detail in disputes(node, step.operands, step.value, step.outer.id in program.recorded.nodes):
            if (node.op.name, part) not in said:
                said.add((node.op.name, part))
                yield Objected(f"{node.op.name}: {part}", Verdict.BUG, detail, step.blame(part, detail))
        if isinstance(step.value, np.ndarray) and aval_of(step.value) != node.aval:
            return  # a false declaration: what comes after it is not what its rules were asked about


def _until_it_fails(graph: Graph, operands: list[np.ndarray]) -> Iterator[Step]:
    try:
        yield from executed(graph, operands)
    except Exception:  # the modes that run the graph have that as a finding
        return
