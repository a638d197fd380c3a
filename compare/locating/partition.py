"""The forward and the backward part of a compiled function: what the one hands to the other."""

from __future__ import annotations

import numpy as np

from compare.cases.case import Case
from compare.cases.joint import gradient_label
from compare.cases.outcome import Outcome
from compare.judging.numeric import evaluate, outputs_of
from compare.judging.tolerance import Verdict, judge
from compare.locating.culprit import Culprit, first_line
from eager import autograd
from graphc.capture import Effects
from graphc.execution import partition
from graphc.ops.aval import aval_of
from graphc.passes import Settings

PARTITION = "partition"
HANDED = "on NumPy both parts are right, and so is the forward part alone: what backward is given, or gives, is not"


def in_partition(case: Case, label: str, outcome: Outcome) -> Culprit | None:
    """`PARTITION`, if the program is right as one graph, and wrong in two parts: in a gradient, or by an exception."""
    if case.program is None or case.joint.lacking or not case.joint.seeded:
        return None
    if outcome.error is None and not label.startswith("gradient of "):
        return None
    try:
        found = _in_two_parts(case)
    except Exception as error:  # the parts do not fit together
        return Culprit(PARTITION, evidence=f"on NumPy raises {type(error).__name__}: {first_line(error)}")
    for name, gradient in found.items():
        detail = _differs(case, name, gradient)
        if detail:
            return Culprit(PARTITION, evidence=f"on NumPy, {name}: {detail}")
    return Culprit(PARTITION, evidence=HANDED) if _forward_is_right(case, label, outcome) else None


def _in_two_parts(case: Case) -> dict[str, np.ndarray]:
    """The gradients by label, by the forward and the backward graph on NumPy."""
    program = case.captured_program
    positions = sorted({p for i in case.wrt for p in i.positions})
    parts = partition.split(program._replace(effects=Effects()), positions, Settings())
    count = len(program.graph.inputs)
    arrays, rest = case.operands[:count], case.operands[count:]
    kept = outputs_of(parts.forward, evaluate(parts.forward, arrays, checked=False))
    residuals = kept[len(kept) - len(parts.forward.result[-1]) :]
    given = [*residuals, *(arrays[k] for k in parts.saved), *rest]
    gradients = outputs_of(parts.backward, evaluate(parts.backward, given, checked=False))
    by_position = dict(zip(parts.wrt, gradients, strict=True))
    found: dict[str, np.ndarray] = {}
    for i in case.wrt:
        if own := [by_position[p] for p in i.positions if p in by_position]:
            found[gradient_label(i)] = sum(own[1:], start=own[0])
    return found


def _differs(case: Case, label: str, found: np.ndarray) -> str:
    """How a gradient differs from that of the program as one graph; "" if it does not."""
    joint = case.joint
    if label not in joint.labels or case.writes_leaves:
        return ""
    id = joint.ids[label]
    expected = case.node_values[id]
    if aval_of(found) != aval_of(expected):
        return f"{aval_of(found)}, as one graph {aval_of(expected)}"
    judgement = judge(found, expected, *case.yardstick.of(id, expected))
    return judgement.detail if judgement.verdict is Verdict.BUG else ""


def _forward_is_right(case: Case, label: str, outcome: Outcome) -> bool:
    """Whether the compiled function is right without gradients, and the graph has the gradient that eager has."""
    reference = case.observe(case.fn)
    if reference.error is not None:
        return False
    if outcome.error is None:
        expected = reference.gradients.get(label)
        return expected is not None and not _differs(case, label, expected)
    with autograd.no_grad():
        found = case.observe(case.compiled())
    return found.error is None
