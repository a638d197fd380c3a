"""Where capturing a function fails that eager runs: the op whose shape rule foretells what its kernel does not give."""

from __future__ import annotations

import numpy as np

from compare.cases.case import Case
from compare.locating.culprit import Culprit
from compare.locating.executed import executed
from graphc.ir import Builder, Graph, Ref
from graphc.ops import Op
from graphc.ops.aval import aval_of

RULE = "shape rule"


def in_capture(case: Case) -> Culprit | None:
    """The first op, of those captured until it failed, that is not what it declares; or that whose own rule raised."""
    if case.unfinished is None or case.failure is None:
        return None
    nodes, inputs, sources = case.unfinished
    with case.preserved():
        arrays = [case.array(source) for source in sources]
    graph = Graph("unfinished", nodes, inputs, tuple(Ref(id) for id in list(nodes)[-1:]))
    try:
        found = misdeclared(graph, arrays)
    except Exception:  # it is run on what it does not expect: what comes before is sound
        found = None
    return found or _raised_by_rule(case.failure)


def misdeclared(graph: Graph, arrays: list[np.ndarray]) -> Culprit | None:
    """The first node whose kernel gives something else than its rule has foretold."""
    for step in executed(graph, arrays):
        if (actual := aval_of(step.value)) != step.node.aval:
            return step.blame(RULE, f"declares {step.node.aval}, the kernel gives {actual}")
    return None


def _raised_by_rule(error: Exception) -> Culprit | None:
    """The op that was to be captured when a rule raised what no kernel does."""
    frame, op = error.__traceback__, None
    while frame is not None:
        code = frame.tb_frame.f_code
        if code is Builder.emit.__code__:
            op = frame.tb_frame.f_locals.get("op")
        frame = frame.tb_next
    return Culprit(RULE, op.name, evidence=f"raises {type(error).__name__}") if isinstance(op, Op) else None
