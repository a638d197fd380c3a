"""Where two modes part: the first node, pass or rule, and the user's line."""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

import compare
import eager
import graphc
from compare.isolate import eager_result, judge_alone, lowered_result, objections
from compare.numeric import evaluate
from compare.outcome import Outcome
from compare.tolerance import Verdict, judge
from graphc.ir import INPUT, Graph, Node
from graphc.ops.aval import aval_of
from graphc.passes import optimize
from graphc.passes.pipeline import Record, rules_for, simplify
from graphc.rewrite import REASSOCIATES

if TYPE_CHECKING:
    from compare.case import Case, Stage

KINK = "subgradient at a kink"
_OURS = tuple(os.path.dirname(os.path.abspath(str(package.__file__))) + os.sep for package in (eager, graphc, compare))


@final
@dataclass(frozen=True)
class Culprit:
    """The first place where a mode goes wrong.

    part      what of it is wrong: "lowering", "gradient rule", "shape rule", "rewrite rule", "pass", ...
    op, node  the op and the node's number in the graph, "" and None if no single node is to blame
    where     the user's line
    rule      the rewrite rule
    pass_name the pass
    evidence  the numbers
    """

    part: str
    op: str = ""
    node: int | None = None
    where: str = ""
    rule: str = ""
    pass_name: str = ""
    evidence: str = ""

    def __str__(self) -> str:
        names = [f"{self.part}"]
        if self.rule:
            names.append(f"'{self.rule}'")
        if self.pass_name:
            names.append(f"in pass '{self.pass_name}'" if self.part != "pass" else f"'{self.pass_name}'")
        if self.op:
            names.append(f"of op '{self.op}'" if self.part != "pass" else f"at op '{self.op}'")
        place = ", ".join(filter(None, (f"v{self.node}" if self.node is not None else "", self.where)))
        text = " ".join(names) + (f" ({place})" if place else "")
        return f"{text}: {self.evidence}" if self.evidence else text


def _blame(part: str, node: Node, evidence: str, **more: str) -> Culprit:
    return Culprit(part, node.op.name, node.id, node.where, evidence=evidence, **more)


# --- graphs on NumPy


def in_graph(case: Case, label: str, outcome: Outcome) -> Culprit | None:
    """Why the captured graph differs from eager: an error, a false declaration, eager's code, or a gradient rule."""
    if outcome.error is not None or case.program is None:
        return in_traceback(outcome.error)
    graph = case.joint.graph
    try:
        values = evaluate(graph, case.operands)
    except Exception as error:  # any op may raise anything; where it did is all there is to say
        return in_traceback(error)
    found = _misdeclared(graph, values) or _eager_differs(case, graph, values)
    if found is None and label.startswith("gradient of "):
        found = in_gradient_rules(case)
    return found


def _plain(graph: Graph) -> Iterator[Node]:
    """The operations that can be run alone: not control flow, which runs graphs of its own."""
    return (node for node in graph.operations() if not node.op.structured)


def _misdeclared(graph: Graph, values: Mapping[int, np.ndarray]) -> Culprit | None:
    for node in _plain(graph):
        if (actual := aval_of(values[node.id])) != node.aval:
            return _blame("shape rule", node, f"declares {node.aval}, the kernel gives {actual}")
    return None


def _eager_differs(case: Case, graph: Graph, values: Mapping[int, np.ndarray]) -> Culprit | None:
    for node in _plain(graph):
        try:
            result = eager_result(node, [values[i] for i in node.inputs])
        except Exception as error:
            return _blame("eager form", node, f"raises {type(error).__name__}: {error}")
        if (actual := aval_of(result)) != aval_of(values[node.id]):
            return _blame("eager form", node, f"gives {actual}, the graph {node.aval}")
        judgement = judge(values[node.id], result, *case.yardstick.of(node.id, result))
        if judgement.verdict is Verdict.BUG:
            return _blame("eager form", node, judgement.detail)
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
    """What in a pass breaks output `label`: the rewrite rule that it is well without, or the first changed node."""
    before = evaluate(stage.before, case.operands)
    if _agrees(case, stage.before, before, stage.after, label):
        return Culprit("graph that it was given", pass_name=stage.name)
    node, evidence = _first_changed(case, stage.before, before, stage.after)
    for rule, where in _fired(stage):
        left_out = simplify([r for r in rules_for(REASSOCIATES) if r.name != rule])
        mended = optimize(stage.before, passes=((stage.name, left_out),))
        if _agrees(case, stage.before, before, mended, label):
            op = next(r for r in rules_for(REASSOCIATES) if r.name == rule).left.op.name
            return Culprit("rewrite rule", op, where=where, rule=rule, pass_name=stage.name, evidence=evidence)
    if node is None:
        return Culprit("pass", pass_name=stage.name, evidence=evidence)
    return _blame("pass", node, evidence, pass_name=stage.name)


def _fired(stage: Stage) -> Iterator[tuple[str, str]]:
    """(name, user's line) of each rule that fired in the stage, once."""
    records: Sequence[Record] = stage.after.history[len(stage.before.history) :]
    yield from {f.rule: f.where for r in records for f in r.firings}.items()


def _agrees(case: Case, before: Graph, values: Mapping[int, np.ndarray], after: Graph, label: str) -> bool:
    k = case.joint.labels.index(label)
    found = evaluate(after, case.operands)[after.outputs[k]]
    expected = values[before.outputs[k]]
    if aval_of(found) != aval_of(expected):
        return False
    return judge(found, expected, *case.yardstick.of(case.joint.graph.outputs[k], expected)).verdict < Verdict.BUG


def _first_changed(
    case: Case, before: Graph, values: Mapping[int, np.ndarray], after: Graph
) -> tuple[Node | None, str]:
    """The first node that keeps its number and changes its value; passes keep the numbers of what they leave alone."""
    now = evaluate(after, case.operands)
    pairs = [(id, id) for id in after.nodes if id in values and after.nodes[id].op is not INPUT]
    pairs += list(zip(before.outputs, after.outputs, strict=True))
    for old, new in pairs:
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
    graph = case.stages[-1].after
    try:
        values = evaluate(graph, case.operands)
    except Exception:  # the program itself raises, in the same way everywhere: no node is to blame
        return in_traceback(outcome.error)
    for node in _plain(graph):
        operands = [values[i] for i in node.inputs]
        try:
            found = lowered_result(node, operands)
        except Exception as error:
            return _blame("lowering", node, f"raises {type(error).__name__}: {_first_line(error)}")
        if (actual := aval_of(found)) != node.aval:
            return _blame("lowering", node, f"gives {actual}, declared is {node.aval}")
        judgement = judge_alone(found, values[node.id], node, operands)
        if judgement.verdict is Verdict.BUG:
            return _blame("lowering", node, judgement.detail)
    if found := _misdeclared(graph, values):
        return found
    return in_traceback(outcome.error)


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
    values = evaluate(graph, case.operands[: len(graph.inputs)])
    kink: Culprit | None = None
    for node in graph.operations():
        if node.id not in program.recorded or not node.op.vjp:
            continue
        for argument, evidence, at_kink in objections(node, [values[i] for i in node.inputs], case.seed):
            if not at_kink:
                return _blame(f"gradient rule for '{argument}'", node, evidence)
            kink = kink or _blame(KINK, node, evidence)
    return kink
