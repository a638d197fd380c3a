"""The pass or rewrite rule that is wrong: by bisection over the passes, then over what the rules have done."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from compare.cases.case import Case, Stage
from compare.judging.numeric import evaluate
from compare.judging.tolerance import Verdict, judge
from compare.locating.culprit import INHERITED, Culprit, blame, first_line
from graphc.errors import GraphError
from graphc.ir import INPUT, Graph, Node
from graphc.ir.structure import bodies, every_node
from graphc.ops.aval import aval_of
from graphc.passes import optimize
from graphc.passes.pipeline import Pass, rules_for, simplify
from graphc.rewrite import REASSOCIATES, Firing, RewriteRule


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

    def after(k: int, last: Pass | None = None) -> Graph:
        """The graph after `k` passes, with `last` in place of the last of them."""
        chosen = passes[:k] if last is None else (*passes[: k - 1], (passes[k - 1][0], last))
        return optimize(case.joint.graph, passes=chosen)

    def sound(make: Callable[[], Graph]) -> bool:
        try:
            graph = make()
            return label not in case.joint.labels or _agrees(case, case.joint.graph, values, graph, label)
        except Exception:  # a pass that raises is broken
            return False

    if sound(lambda: after(len(passes))):
        return None
    k = _first(range(len(passes) + 1), lambda k: not sound(lambda: after(k)))
    name, good = passes[k - 1][0], after(k - 1)
    try:
        wrong = after(k)
    except Exception as error:
        culprit = Culprit("pass", pass_name=name, evidence=f"raises {type(error).__name__}: {first_line(error)}")
        rule = _raising(lambda rules: sound(lambda: after(k, simplify(rules))))
        return replace(culprit, part="rewrite rule", op=_root(rule), rule=rule) if rule else culprit
    culprit = _in_pass(case, name, good, wrong, label)
    if len(_fired(wrong)) == len(_fired(good)):
        return culprit
    apply, firings = _limited(_ALL)
    if sound(lambda: after(k, apply)):
        return culprit
    number = _first(range(len(firings) + 1), lambda n: not sound(lambda: after(k, _limited(n)[0])))
    fired = firings[number - 1]
    return replace(
        culprit, part="rewrite rule", op=_root(fired.rule), node=None, where=fired.where, rule=fired.rule
    )  # fmt: skip


def _first(numbers: range, is_broken: Callable[[int], bool]) -> int:
    """The number at which it breaks, of `numbers`, of which the last is broken and the first is not."""
    return bisect.bisect_left(numbers[:-1], True, key=is_broken)


_ALL = 1 << 62  # times


def _limited(count: int) -> tuple[Pass, list[Firing]]:
    """The pass that applies the rules, for the first `count` times only; and the list of what it has done then."""
    firings: list[Firing] = []
    return simplify(rules_for(REASSOCIATES), most=count, firings=firings), firings


def _raising(sound: Callable[[list[RewriteRule]], bool]) -> str:
    """The rule without which nothing is raised; "" if there is none, or it is not the rules that raise."""
    rules = rules_for(REASSOCIATES)
    if sound(rules):
        return ""
    return next((r.name for r in rules if sound([other for other in rules if other is not r])), "")


def _root(rule: str) -> str:
    """The op that a rule looks for."""
    return next((r.left.op.name for r in rules_for(REASSOCIATES) if r.name == rule), "")


def _in_pass(case: Case, name: str, before: Graph, after: Graph, label: str) -> Culprit:
    """The first node that a pass has changed the value of."""
    try:
        now = evaluate(after, case.operands)
    except Exception as error:
        return Culprit("pass", pass_name=name, evidence=f"its graph raises {type(error).__name__}: {error}")
    node, evidence = _first_changed(case, before, evaluate(before, case.operands), after, now)
    return Culprit("pass", pass_name=name) if node is None else blame("pass", node, evidence, now, name)


def _fired(graph: Graph) -> list[Firing]:
    """What rules have done in a graph and those inside it."""
    inside = (body for node in every_node(graph) for body in bodies(node))
    graphs = {id(g): g for g in (graph, *inside)}  # several operations may have a body in common
    return [f for g in graphs.values() for record in g.history for f in record.firings]


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


def ill_typed(case: Case) -> Culprit | None:
    """The pass that makes a graph which is not well formed, such as one whose operands are not promoted."""
    for stage in case.stages:
        try:
            stage.after.check()
        except GraphError as error:
            return Culprit("pass", pass_name=stage.name, evidence=str(error))
    return None
