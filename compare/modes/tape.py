"""Is eager's tape wrong? It is where a graph's gradients are the derivative of its values, and eager's are not."""

from __future__ import annotations

import traceback

import numpy as np

from compare.cases.case import Case
from compare.cases.outcome import Outcome
from compare.locating.culprit import Culprit
from compare.locating.surroundings import STATE, Repeated, in_surroundings
from compare.modes.gradient_oracles import FiniteDifferences
from graphc.ops.dtypes import is_inexact

TAPE = "eager's tape"
AGREE = "finite differences agree with the graph's gradients"
FAR = 0.01  # of the largest element: what finite differences of a graph in float64 tell from eager's float32


def behind_the_graph(case: Case, mode: Repeated, label: str, outcome: Outcome) -> Culprit:
    """What is at fault where no op, pass or rule is: eager's tape, or what surrounds the graph (`in_surroundings`)."""
    around = in_surroundings(case, mode)
    return _in_tape(case, label, outcome) or around if around.part == STATE else around


def _in_tape(case: Case, label: str, outcome: Outcome) -> Culprit | None:
    """Eager's tape, if finite differences side with the gradient in `outcome`, of a graph, against eager's.

    Where all that is computed between inputs and results has a history in the graph, the gradient is the whole
    derivative: no detached tensor, and no history that capture has lost, can be what makes the difference.
    """
    if (label and label not in outcome.gradients) or outcome.error is not None or not _all_recorded(case):
        return None
    reference = case.observe(case.fn)
    if reference.error is not None and not _is_of_gradients(reference.error):
        return None
    labels = [label] if label else list(outcome.gradients)
    opinion = FiniteDifferences().run(case)
    if not labels or any(name not in opinion.gradients for name in labels):
        return None

    def agrees(found: Outcome) -> bool:
        return found.error is None and all(_near(opinion, name, found.gradients.get(name)) for name in labels)

    return Culprit(TAPE, evidence=AGREE) if agrees(outcome) and not agrees(reference) else None


def _near(opinion: Outcome, label: str, found: np.ndarray | None) -> bool:
    said = opinion.gradients[label]
    if found is None or found.shape != said.shape:
        return False
    bar = opinion.error_bars[label] + FAR * np.abs(np.ma.filled(said, 0)).max(initial=0.0)
    return not np.ma.filled(abs(said - found) > bar, False).any()


def _is_of_gradients(error: BaseException) -> bool:
    """Whether it is not the function that has raised, but eager's backward."""
    frames = traceback.walk_tb(error.__traceback__)
    return any(frame.f_code is Case._tape_gradients.__code__ for frame, _ in frames)


def _all_recorded(case: Case) -> bool:
    """Whether gradients flow through all that depends on what requires grad, as far as it is continuous."""
    program = case.program
    if program is None:
        return False
    reached = set[int]().union(*(case.input_ids(i) for i in case.wrt))
    for node in program.graph.operations():
        if not reached.isdisjoint(node.inputs) and any(is_inexact(r.dtype) for r in node.results):
            if node.id not in program.recorded.nodes:
                return False
            reached.add(node.id)
    return True
