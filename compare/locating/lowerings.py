"""The op whose form under XLA is wrong: of the ops in a program, of those in control flow, and control flow's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from compare.cases.case import Case
from compare.judging.isolate import judge_alone, lowered_result, sides_with
from compare.judging.numeric import evaluate
from compare.judging.tolerance import Verdict, close
from compare.locating.capturing import RULE
from compare.locating.culprit import Culprit, blame, first_line
from compare.locating.executed import Step, executed
from compare.locating.once import once
from compare.locating.passes import ill_typed, in_passes
from graphc.ir import Graph
from graphc.ir.structure import ITEM
from graphc.lowering import Executable, HostExecutable, unsuitable
from graphc.ops.aval import aval_of, results_of, type_of, types_text
from graphc.ops.dtypes import is_inexact

TO_NUMPY = "lowering to NumPy"


@once
def in_lowering(case: Case) -> Culprit | None:
    """The first node whose XLA value differs from NumPy's on the same operands."""
    if case.program is None:
        return None
    try:
        graph = case.stages[-1].after
        values = evaluate(graph, case.operands)
    except Exception:  # in a pass, or on NumPy, where XLA gives a value or another error
        return in_passes(case, "")
    programs: dict[Any, Executable] = {}
    return ill_typed(case) or first_unfaithful(graph, values, programs) or _losing_signs(graph, values, programs)


def in_host(case: Case) -> Culprit | None:
    """The lowering to NumPy, where the program that it writes does not compute what the kernels of its nodes do."""
    if case.program is None:
        return None
    try:
        graph = case.stages[-1].after
        values = evaluate(graph, case.operands)
        found = () if unsuitable(graph) else HostExecutable(graph).dispatch(*case.operands)
    except Exception:  # in a pass, or in a check
        return None
    wrong = [id for id, a in zip(graph.outputs, found, strict=False) if not close(a, values[id])]
    return (
        Culprit(TO_NUMPY, evidence=f"{len(wrong)} of {len(found)} results are not what the kernels give")
        if wrong
        else None
    )


def first_unfaithful(graph: Graph, values: Mapping[int, np.ndarray], programs: dict[Any, Executable]) -> Culprit | None:
    """The first node whose lowering gives something else than its kernel; control flow after what it runs."""
    arrays = [values[i] for i in graph.inputs]
    for step in executed(graph, arrays, wholes=True):
        try:
            part, evidence = _wrong(step, programs)
        except Exception as error:
            part, evidence = "lowering", f"raises {type(error).__name__}: {first_line(error)}"
        if part:
            return step.blame(part, evidence)
    return None


def _losing_signs(graph: Graph, values: Mapping[int, np.ndarray], programs: dict[Any, Executable]) -> Culprit | None:
    """The first node whose lowering gives zeros of another sign, which alone is no fault, if a result depends on it."""
    arrays = [values[i] for i in graph.inputs]
    for node in graph.operations():
        value = values[node.id]
        if node.op.several or node.op is ITEM or not is_inexact(node.dtype) or not (value == 0).any():
            continue
        operands = [values[i] for i in node.inputs]
        found = lowered_result(node, operands, programs)
        if not ((found == 0) & (np.signbit(np.real(found)) != np.signbit(np.real(value)))).any():
            continue
        otherwise = evaluate(graph, arrays, checked=False, held={node.id: np.asarray(found)})
        if not all(close(otherwise[id], values[id]) for id in graph.outputs):
            return blame("lowering", node, "gives zeros of another sign", dict(zip(node.inputs, operands, strict=True)))
    return None


def _wrong(step: Step, programs: dict[Any, Executable]) -> tuple[str, str]:
    """What is wrong with an op, and the numbers; "" if nothing is."""
    node, operands, value, _ = step
    if type_of(value) != node.type:
        return RULE, f"declares {types_text(node.results)}, the kernel gives {_types(value)}"
    found = lowered_result(node, operands, programs)
    if type_of(found) != node.type:
        return "lowering", f"gives {_types(found)}, declared is {types_text(node.results)}"
    judgement = judge_alone(found, value, node, operands)
    if judgement.verdict is not Verdict.BUG:
        return "", ""
    return "kernel" if sides_with(found, value, node, operands) else "lowering", judgement.detail


def _types(value: Any) -> str:
    return types_text([aval_of(array) for array in results_of(value)])
