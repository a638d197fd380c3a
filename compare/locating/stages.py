"""Where two modes part: the first node, pass or rule, and the user's line."""

from __future__ import annotations

import bisect
import os
import traceback
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

import compare
import eager
import graphc
from compare.checking.outcome import Outcome
from compare.judging.isolate import eager_result, judge_alone, lowered_result, objections, sides_with
from compare.judging.numeric import evaluate
from compare.judging.tolerance import Verdict, judge
from compare.locating.culprit import BACKWARD, INHERITED, KINK, Culprit, blame
from compare.locating.executed import executed
from graphc.errors import GraphError
from graphc.ir import INPUT, Graph, Node
from graphc.ir.structure import bodies, every_node
from graphc.ops.aval import aval_of
from graphc.ops.interpret import run_kernel
from graphc.passes import optimize
from graphc.passes.pipeline import rules_for, simplify
from graphc.rewrite import REASSOCIATES

if TYPE_CHECKING:
    from compare.checking.case import Case, Stage

_OURS = tuple(os.path.dirname(os.path.abspath(str(package.__file__))) + os.sep for package in (eager, graphc, compare))


# --- graphs on NumPy


def in_graph(case: Case, label: str, outcome: Outcome) -> Culprit | None:
    """Why the captured graph differs from eager: an error, a false declaration, eager's code, or a gradient rule."""
    if case.program is None:
        return in_traceback(outcome.error)
    try:
        graph = case.joint.graph
        values = evaluate(graph, case.operands)
    except Exception as error:  # a rule may raise anything while the graph is differentiated, and any op
        return _first_broken(case) or in_traceback(outcome.error or error)
    if outcome.error is not None:
        return in_passes(case, "") or in_traceback(outcome.error)
    found = _first_broken(case) or _eager_differs(case, graph, values)
    if found is None and label.startswith("gradient of "):
        found = in_gradient_rules(case)
    return found or _wrong_kernel(graph, values)


def _wrong_kernel(graph: Graph, values: Mapping[int, np.ndarray]) -> Culprit | None:
    """The first node whose kernel XLA and the reference contradict: eager may have a way of its own around it."""
    found = _first_unfaithful(graph, values)
    return found if found is not None and found.part == "kernel" else None


def _first_broken(case: Case) -> Culprit | None:
    """The first node that raises on NumPy, gives what it does not declare, or writes what it is given."""
    assert case.program is not None
    try:
        graph, operands = case.joint.graph, case.operands
    except Exception:  # a gradient rule raises: what comes before is looked at
        graph, operands = case.program.graph, []
    with case.preserved():
        fresh = case.arrays()  # a kernel that writes its operands has written others
    values = dict(zip(graph.inputs, [*fresh, *operands[len(fresh) :]], strict=True))
    for node in graph.operations():
        given, check = [values[i] for i in node.inputs], node.op.check
        if check is not None and not check.ok(np, *given, **node.params):
            return blame("run-time check", node, f"fails with {check.error.__name__}", values)
        arrays = [a for a in given if isinstance(a, np.ndarray)]  # not the several results of control flow
        before = [array.tobytes() for array in arrays]
        try:
            value = values[node.id] = run_kernel(node.op, given, node.params)
        except Exception as error:
            return blame("kernel", node, f"raises {type(error).__name__}: {_first_line(error)}", values)
        if not node.op.structured and aval_of(value) != node.aval:
            return blame("shape rule", node, f"declares {node.aval}, the kernel gives {aval_of(value)}", values)
        if [array.tobytes() for array in arrays] != before:
            return blame("kernel", node, "writes what it is given", values)
    return None


def _misdeclared(graph: Graph, arrays: Sequence[np.ndarray]) -> Culprit | None:
    for node, operands, value, _ in executed(graph, arrays):
        if (actual := aval_of(value)) != node.aval:
            given = dict(zip(node.inputs, operands, strict=True))
            return blame("shape rule", node, f"declares {node.aval}, the kernel gives {actual}", given)
    return None


def _eager_differs(case: Case, graph: Graph, values: Mapping[int, np.ndarray]) -> Culprit | None:
    for step in executed(graph, [values[i] for i in graph.inputs]):
        node, operands, value, _ = step
        given = dict(zip(node.inputs, operands, strict=True))
        try:
            result = eager_result(node, operands)
        except Exception as error:
            return blame("eager form", node, f"raises {type(error).__name__}: {error}", given)
        if (actual := aval_of(result)) != aval_of(value):
            return blame("eager form", node, f"gives {actual}, the graph {node.aval}", given)
        if step.inside:
            judgement = judge_alone(result, value, node, operands)
        else:
            judgement = judge(value, result, *case.yardstick.of(node.id, result))
        if judgement.verdict is Verdict.BUG:
            part = "kernel" if sides_with(result, value, node, operands) else "eager form"
            return blame(part, node, judgement.detail, given)
    return None


def in_traceback(error: Exception | None) -> Culprit | None:
    """The user's line that an exception comes from."""
    if error is None:
        return None
    frames = traceback.extract_tb(error.__traceback__)
    users = [
        f for f in frames if not os.path.abspath(f.filename).startswith(_OURS) and not f.filename.startswith("<gen")
    ]
    if not users:
        return None
    place = os.path.relpath(users[-1].filename)
    return Culprit("capture", where=f"{users[-1].filename if place.startswith('..') else place}:{users[-1].lineno}")


# --- passes


def in_pass(case: Case, stage: Stage, label: str) -> Culprit:
    """What breaks output `label` after a pass: the pass, if the graph before it was sound."""
    if label not in case.joint.labels:
        return Culprit(INHERITED, pass_name=stage.name)
    before = evaluate(stage.before, case.operands)
    if _agrees(case, stage.before, before, stage.after, label):
        return Culprit(INHERITED, pass_name=stage.name)
    # what is inside control flow has been through all passes when the first one is asked
    return in_passes(case, label) or _in_pass(case, stage.name, stage.before, stage.after, label)


def in_passes(case: Case, label: str) -> Culprit | None:
    """The pass or rule that breaks output `label`, found by bisection; None if the whole pipeline is sound.

    label  "" to ask only for passes that raise
    """
    if case.program is None:
        return None
    passes = case.passes
    try:
        values = evaluate(case.joint.graph, case.operands)
    except Exception:  # the graph is at fault before any pass
        return None

    def after(k: int) -> Graph:
        return optimize(case.joint.graph, passes=passes[:k])

    def sound(graph: Graph) -> bool:
        return label not in case.joint.labels or _agrees(case, case.joint.graph, values, graph, label)

    def broken(k: int) -> bool:
        try:
            return not sound(after(k))
        except Exception:  # a pass that raises is broken
            return True

    if not broken(len(passes)):
        return None
    k = bisect.bisect_left(range(len(passes)), True, key=broken)  # the fewest that are broken
    name, good = passes[k - 1][0], after(k - 1)
    try:
        wrong = after(k)
    except Exception as error:
        return Culprit("pass", pass_name=name, evidence=f"raises {type(error).__name__}: {_first_line(error)}")
    culprit = _in_pass(case, name, good, wrong, label)
    for rule, where in sorted(_fired(wrong).items() - _fired(good).items()):
        left_out = simplify([r for r in rules_for(REASSOCIATES) if r.name != rule])
        if sound(optimize(case.joint.graph, passes=[*passes[: k - 1], (name, left_out)])):
            op = next(r for r in rules_for(REASSOCIATES) if r.name == rule).left.op.name
            return replace(culprit, part="rewrite rule", op=op, node=None, where=where, rule=rule)
    return culprit


def _in_pass(case: Case, name: str, before: Graph, after: Graph, label: str) -> Culprit:
    """The first node that a pass has changed the value of."""
    try:
        now = evaluate(after, case.operands)
    except Exception as error:
        return Culprit("pass", pass_name=name, evidence=f"its graph raises {type(error).__name__}: {error}")
    node, evidence = _first_changed(case, before, evaluate(before, case.operands), after, now)
    return Culprit("pass", pass_name=name) if node is None else blame("pass", node, evidence, now, name)


def _fired(graph: Graph) -> dict[str, str]:
    """The user's line for each rule that has fired in a graph and those inside it."""
    inside = (body for node in every_node(graph) for body in bodies(node))
    return {f.rule: f.where for g in (graph, *inside) for record in g.history for f in record.firings}


def _agrees(case: Case, before: Graph, values: Mapping[int, np.ndarray], after: Graph, label: str) -> bool:
    k = case.joint.labels.index(label)
    try:
        found = evaluate(after, case.operands)[after.outputs[k]]
    except Exception:  # where the graph before gives a value
        return False
    expected = values[before.outputs[k]]
    if aval_of(found) != aval_of(expected):
        return False
    return judge(found, expected, *case.yardstick.of(case.joint.graph.outputs[k], expected)).verdict < Verdict.BUG


def _first_changed(
    case: Case, before: Graph, values: Mapping[int, np.ndarray], after: Graph, now: Mapping[int, np.ndarray]
) -> tuple[Node | None, str]:
    """The first node that keeps its number and changes its value; passes keep the numbers of what they leave alone."""
    pairs = [(id, id) for id in after.nodes if id in values and after.nodes[id].op is not INPUT]
    pairs += list(zip(before.outputs, after.outputs, strict=True))
    for old, new in pairs:
        if isinstance(now[new], tuple):
            continue  # the results of control flow: each is a node of its own
        if aval_of(now[new]) != aval_of(values[old]):
            return after.nodes[new], f"{aval_of(values[old])} becomes {aval_of(now[new])}"
        judgement = judge(now[new], values[old], *case.yardstick.of(old, values[old]))
        if judgement.verdict is Verdict.BUG:
            return after.nodes[new], judgement.detail
    return None, ""


# --- lowering


def in_lowering(case: Case, outcome: Outcome) -> Culprit | None:
    """The first node whose XLA value differs from NumPy's on the same operands."""
    if case.program is None:
        return in_traceback(outcome.error)
    try:
        graph = case.stages[-1].after
        values = evaluate(graph, case.operands)
    except Exception:  # in a pass, or on NumPy, where XLA gives a value or another error
        return in_passes(case, "") or _first_broken(case) or in_traceback(outcome.error)
    if case not in _unfaithful:  # the same for all that is wrong in a case
        _unfaithful[case] = _ill_typed(case) or _first_unfaithful(graph, values)
    return _unfaithful[case] or in_traceback(outcome.error)


_unfaithful: weakref.WeakKeyDictionary[Case, Culprit | None] = weakref.WeakKeyDictionary()


def _first_unfaithful(graph: Graph, values: Mapping[int, np.ndarray]) -> Culprit | None:
    """The first node whose lowering gives something else than its kernel."""
    arrays = [values[i] for i in graph.inputs]
    for node, operands, value, _ in executed(graph, arrays):
        given = dict(zip(node.inputs, operands, strict=True))
        try:
            found = lowered_result(node, operands)
        except Exception as error:
            evidence = f"raises {type(error).__name__}: {_first_line(error)}"
            return blame("lowering", node, evidence, given)
        if (actual := aval_of(found)) != node.aval:
            return blame("lowering", node, f"gives {actual}, declared is {node.aval}", given)
        judgement = judge_alone(found, value, node, operands)
        if judgement.verdict is Verdict.BUG:
            part = "kernel" if sides_with(found, value, node, operands) else "lowering"
            return blame(part, node, judgement.detail, given)
    return _misdeclared(graph, arrays)


def _ill_typed(case: Case) -> Culprit | None:
    """The pass that makes a graph which is not well formed, such as one whose operands are not promoted."""
    for stage in case.stages:
        try:
            stage.after.check()
        except GraphError as error:
            return Culprit("pass", pass_name=stage.name, evidence=str(error))
    return None


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


# --- gradients


def in_gradient_rules(case: Case) -> Culprit | None:
    """The first op whose gradient rule somebody else contradicts, on the operands it has here.

    If the only contradiction is at points without a derivative, the culprit's part is `KINK`.
    """
    program = case.program
    assert program is not None
    graph = program.graph
    kink: Culprit | None = None
    for node, operands, _, outer in executed(graph, case.operands[: len(graph.inputs)]):
        if outer.id not in program.recorded or not node.op.vjp:
            continue
        given = dict(zip(node.inputs, operands, strict=True))
        for argument, evidence, at_kink, lowered in objections(node, operands, case.seed):
            if lowered:
                return blame("lowering", node, evidence, given)
            if not at_kink:
                return blame(f"gradient rule for '{argument}'", node, evidence, given)
            kink = kink or blame(KINK, node, evidence, given)
    return kink or _backward_of_the_users(case)


def _backward_of_the_users(case: Case) -> Culprit | None:
    """The autograd.Functions of the program, whose rules are no op's."""
    if not case.functions:
        return None
    first, *others = case.functions
    also = "; or that at " + ", ".join(dict.fromkeys(f.where for f in others)) if others else ""
    return Culprit(BACKWARD, where=first.where, evidence=f"not the derivative of its forward{also}")
