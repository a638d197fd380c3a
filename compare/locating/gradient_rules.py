"""The op whose gradient rule is wrong: of the ops in a program, of those in control flow, and control flow's own."""

from __future__ import annotations

from collections.abc import Iterator

from compare.cases.case import Case
from compare.judging.isolate import Objection, objections
from compare.judging.references import disputes
from compare.judging.structured import structured_objections
from compare.locating.culprit import BACKWARD, KINK, Culprit, first_line
from compare.locating.executed import Step, executed
from compare.locating.once import once
from graphc.ops.dtypes import is_inexact


@once
def in_gradient_rules(case: Case) -> Culprit | None:
    """The first op whose gradient rule somebody else contradicts, on the operands it has here.

    What control flow runs is looked at before control flow itself: its gradient is made of theirs. If the only
    contradiction is at points without a derivative, the culprit's part is `KINK`.
    """
    kink: Culprit | None = None
    seen: set[int] = set()  # nodes; those of loops run again and again
    for step in _differentiated(case):
        node = step.node
        found = list(_objections(step, case.seed, id(step.node) not in seen))
        by_tape_only = all(o.by_tape or o.kink for o in found)  # who knows nothing of eager's code has no objection
        for argument, evidence, at_kink, lowered, by_tape in found:
            for part, detail in disputes(node, step.operands, step.value, differentiated=False):
                return step.blame(part, detail)  # the rule of another function
            if lowered:
                return step.blame("lowering", evidence)
            if by_tape and by_tape_only:
                return step.blame("eager form", evidence)
            if not at_kink:
                rule = "gradient rule" if node.op.structured else f"gradient rule for '{argument}'"
                return step.blame(rule, evidence)
            kink = kink or step.blame(KINK, evidence)
        for part, detail in () if node.op.structured else disputes(node, step.operands, step.value, True):
            return step.blame(part, detail)  # a rule that is the derivative, and yet is not what is declared
        seen.add(id(node))
    return kink or _backward_of_the_users(case)


def _differentiated(case: Case) -> Iterator[Step]:
    """The operations that gradients flow through."""
    program = case.captured_program
    graph = program.graph
    with case.preserved():
        arrays = case.arrays()
    for step in executed(graph, arrays, wholes=True):
        if step.outer.id in program.recorded.nodes and (step.node.op.vjp or step.node.op.structured):
            yield step


def _objections(step: Step, seed: int, first: bool) -> Iterator[Objection]:
    if step.node.op.structured:
        yield from structured_objections(step.node, step.operands, seed)
        return
    try:
        yield from objections(step.node, step.operands, seed, by_jax=first)
    except Exception as error:  # a rule may raise anything
        live = [step.node.op.arg_of(k) for k, a in enumerate(step.operands) if is_inexact(a.dtype)]
        argument = next((name for name in live if name in step.node.op.vjp), "")
        yield Objection(argument, f"raises {type(error).__name__}: {first_line(error)}")


def _backward_of_the_users(case: Case) -> Culprit | None:
    """The autograd.Functions of the program, whose rules are no op's."""
    if not case.functions:
        return None
    first, *others = case.functions
    also = "; or that at " + ", ".join(dict.fromkeys(f.where for f in others)) if others else ""
    return Culprit(BACKWARD, where=first.where, evidence=f"not the derivative of its forward{also}")
