"""Ops that give something else where their operands, or their results, lie otherwise in memory: no value shows that."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from compare.cases.case import Case
from compare.layouts.sweep import Deviation, Sweep, rows_of, trials_of
from compare.layouts.ways import count_of
from compare.locating.culprit import Culprit
from compare.locating.executed import Step, executed
from compare.locating.once import once
from graphc.ops import Op

LENGTHS, STEPS = (1, 5, 8, 33), (-4, -1, 0, 2, 4, 8)
LARGEST = 4096  # elements of operands that are laid out anew; of more, the first rows
PARTS = {"kernel": "kernel", "eager": "eager form", "out": "out= form"}


@once
def in_layouts(case: Case) -> Culprit | None:
    """The first op that the program runs and that depends on layouts, with operands like those that it has there."""
    if case.program is None:
        return None
    graph = case.program.graph
    try:
        steps = list(executed(graph, case.operands[: len(graph.inputs)]))
    except Exception:  # a kernel that raises is named elsewhere
        return None
    tried: set[Any] = set()
    for step in steps:
        key = step.node.op, tuple((a.shape, a.dtype) for a in step.operands)
        if key not in tried:
            tried.add(key)
            found = next(_deviations(step), None)
            if found is not None:
                return step.blame(_part(step.node.op, found), f"{found.layout}: {found.detail}")
    return None


def _deviations(step: Step) -> Iterator[Deviation]:
    op, operands = step.node.op, step.operands
    if not all(isinstance(a, np.ndarray) for a in operands) or max((a.size for a in operands), default=0) > LARGEST:
        return
    trials = trials_of(operands)
    if op.pointwise and operands:
        columns = [
            np.resize(np.broadcast_to(a, step.value.shape), (max(LENGTHS),)) for a in operands if step.value.size
        ]
        trials = itertools.chain(trials, rows_of(columns, LENGTHS, STEPS)) if columns else trials
    yield from Sweep(op, step.node.params).run(trials)


def _part(op: Op, found: Deviation) -> str:
    gradient = found.result - count_of(op)
    if gradient < 0:
        return PARTS.get(found.way, "in-place form")
    rules = [arg for arg in op.args if arg in op.vjp]
    return f"gradient rule for '{rules[min(gradient, len(rules) - 1)]}'"
