"""Where the captured graph parts from eager on NumPy: an error, a false declaration, eager's code, a gradient rule."""

from __future__ import annotations

import os
import traceback
from collections.abc import Mapping

import numpy as np

import compare
import eager
import graphc
from compare.cases.case import Case
from compare.cases.outcome import Outcome
from compare.judging.isolate import eager_result, judge_alone, sides_with
from compare.judging.numeric import evaluate
from compare.judging.tolerance import Verdict, judge
from compare.locating.capturing import in_capture
from compare.locating.culprit import Culprit, blame, first_line
from compare.locating.executed import executed
from compare.locating.gradient_rules import in_gradient_rules
from compare.locating.lowerings import first_unfaithful
from compare.locating.once import once
from compare.locating.passes import in_passes
from graphc.ir import Graph
from graphc.ops.aval import aval_of, results_of, type_of, types_text
from graphc.ops.interpret import run_kernel

_OURS = tuple(os.path.dirname(os.path.abspath(str(package.__file__))) + os.sep for package in (eager, graphc, compare))


def in_graph(case: Case, label: str, outcome: Outcome) -> Culprit | None:
    """Why the captured graph differs from eager: an error, a false declaration, eager's code, or a gradient rule."""
    if case.program is None:
        return in_capture(case)
    try:
        graph = case.joint.graph
        values = evaluate(graph, case.operands)
    except Exception:  # a rule may raise anything while the graph is differentiated, and any op
        return _first_broken(case) or in_gradient_rules(case)
    if outcome.error is not None:
        return in_passes(case, "")
    found = _first_broken(case) or _eager_differs(case, graph, values)
    if found is None and label.startswith("gradient of "):
        found = in_gradient_rules(case)
    return found or _wrong_kernel(case)


@once
def _wrong_kernel(case: Case) -> Culprit | None:
    """The first node whose kernel XLA and the reference contradict: eager may have a way of its own around it."""
    graph = case.joint.graph
    found = first_unfaithful(graph, evaluate(graph, case.operands), {})
    return found if found is not None and found.part == "kernel" else None


def _first_broken(case: Case) -> Culprit | None:
    """The first node that raises on NumPy, gives what it does not declare, or writes what it is given."""
    try:
        graph, operands = case.joint.graph, case.operands
    except Exception:  # a gradient rule raises: what comes before is looked at
        graph, operands = case.captured_program.graph, []
    with case.preserved():
        fresh = case.arrays()  # a kernel that writes its operands has written others
    values = dict(zip(graph.inputs, [*fresh, *operands[len(fresh) :]], strict=True))
    for node in graph.operations():
        given, check = [values[i] for i in node.inputs], node.check
        if check is not None and not check.ok(np, *given, **node.params):
            return blame("run-time check", node, f"fails with {check.error.__name__}", values)
        arrays = [a for a in given if isinstance(a, np.ndarray)]  # not the several results of control flow
        before = [array.tobytes() for array in arrays]
        try:
            value = values[node.id] = run_kernel(node.op, given, node.params)
        except Exception as error:
            built = node.op.structured and node.id not in case.captured_program.graph.nodes  # while differentiating
            part = "gradient rule" if built else "kernel"
            return blame(part, node, f"raises {type(error).__name__}: {first_line(error)}", values)
        if not node.op.structured and type_of(value) != node.type:
            declared, given = types_text(node.results), types_text([aval_of(v) for v in results_of(value)])
            return blame("shape rule", node, f"declares {declared}, the kernel gives {given}", values)
        if [array.tobytes() for array in arrays] != before:
            return blame("kernel", node, "writes what it is given", values)
    return None


def _eager_differs(case: Case, graph: Graph, values: Mapping[int, np.ndarray]) -> Culprit | None:
    for step in executed(graph, [values[i] for i in graph.inputs]):
        node, operands, value, _ = step
        try:
            result = eager_result(node, operands)
        except Exception as error:
            return step.blame("eager form", f"raises {type(error).__name__}: {error}")
        if type_of(result) != type_of(value):
            actual = types_text([aval_of(r) for r in results_of(result)])
            return step.blame("eager form", f"gives {actual}, the graph {types_text(node.results)}")
        if step.inside or node.op.several:
            judgement = judge_alone(result, value, node, operands)
        else:
            judgement = judge(value, result, *case.yardstick.of(node.id, result))
        if judgement.verdict is Verdict.BUG:
            part = "kernel" if sides_with(result, value, node, operands) else "eager form"
            return step.blame(part, judgement.detail)
    return None


def in_traceback(error: Exception | None) -> Culprit | None:
    """The user's line that an exception comes from; that of a lowered program if JAX refuses it."""
    if error is None:
        return None
    frames = traceback.extract_tb(error.__traceback__)
    refused = [f for f in frames if f.filename.startswith("<jax program")]
    if refused:
        return Culprit("lowering", where=f"{refused[-1].filename}:{refused[-1].lineno}")
    users = [
        f for f in frames if not os.path.abspath(f.filename).startswith(_OURS) and not f.filename.startswith("<gen")
    ]
    if not users:
        return None
    place = os.path.relpath(users[-1].filename)
    return Culprit("capture", where=f"{users[-1].filename if place.startswith('..') else place}:{users[-1].lineno}")
