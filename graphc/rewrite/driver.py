"""Applying a table of rules to a graph, each only where the cost model says that it does not cost more."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, final

from graphc.ir import INPUT, Builder, Graph, Node, Symbol, rename
from graphc.ops import OPS, Op
from graphc.rewrite.cost import node_cost
from graphc.rewrite.match import Bindings, match
from graphc.rewrite.rule import Pattern, RewriteRule, Var

CHAIN = 16  # how often one place may be rewritten in a row


class Firing(NamedTuple):
    """One application of a rule: its name, the user's line, and the cost it saved (graphc.rewrite.cost)."""

    rule: str
    where: str
    saved: float


@final
class RuleIndex:
    """Rules by the op at the root of their left side, and by one op that must stand below it."""

    def __init__(self, rules: Iterable[RewriteRule]):
        self._table: dict[Op, dict[Any, list[tuple[int, RewriteRule]]]] = defaultdict(lambda: defaultdict(list))
        for priority, rule in enumerate(rules):
            for key in _keys(rule.left):
                self._table[rule.left.op][key].append((priority, rule))

    def candidates(self, node: Node, nodes: Mapping[int, Node]) -> list[RewriteRule]:
        """The rules that may match `node`, in the order of the table."""
        below = self._table.get(node.op)
        if below is None:
            return []
        inputs = set(node.inputs)
        found = list(below.get(ANY, ()))
        if len(inputs) < len(node.inputs):
            found += below.get(REPEATED, ())
        for op in {nodes[i].op for i in inputs}:
            found += below.get(op, ())
        found.sort(key=lambda entry: entry[0])
        return [rule for _, rule in found]


ANY, REPEATED = object(), object()
_NUMBERS = (OPS["constant"], OPS["full"])


def _keys(left: Pattern) -> tuple[Any, ...]:
    """What a node's operands must include for `left` to match: one of these ops, or the same operand twice."""
    for part in left.operands:
        if isinstance(part, Pattern):
            return (part.op,)
        if not isinstance(part, Var) or part.number:
            return _NUMBERS
    names = [part.name for part in left.operands]
    return (REPEATED,) if len(set(names)) < len(names) else (ANY,)


def rewrite(graph: Graph, rules: RuleIndex) -> tuple[Graph, list[Firing]]:
    """One sweep over `graph` in order, rewriting what matches. Dead nodes are left for the next pass."""
    builder = Builder()
    builder.next_id = max(graph.nodes, default=-1) + 1
    users = graph.users()
    for id in graph.outputs:
        users[id].append(-1)
    uses: dict[int, int] = defaultdict(lambda: 1)  # of new nodes; what a rewrite has just made has one user
    new: dict[int, int] = {}
    firings: list[Firing] = []
    for id, node in graph.nodes.items():
        if node.op is INPUT:
            new[id] = builder.copy(node, ())
            continue
        at = builder.copy(node, tuple([new[i] for i in node.inputs]))
        uses[at] = len(users[id])
        for _ in range(CHAIN):
            candidates = rules.candidates(builder.nodes[at], builder.nodes)
            replaced = _apply_first(builder, at, candidates, uses, firings) if candidates else None
            if replaced is None:
                break
            at = replaced
        if at != id:
            uses[at] = uses[at] + len(users[id]) - 1 if at in uses else len(users[id])
        new[id] = at
    if not firings:
        return graph, firings
    return graph.replace(builder.nodes, rename(graph.result, new)), firings


def _apply_first(
    builder: Builder, at: int, rules: list[RewriteRule], uses: Mapping[int, int], firings: list[Firing]
) -> int | None:
    """Rewrite node `at` by the first rule that matches and does not cost more; its new id, or None."""
    node = builder.nodes[at]
    for rule in rules:
        bound: Bindings = {}
        covered = match(rule.left, builder, at, bound)
        if covered is None:
            continue
        values = [bound[v] for v in rule.variables]
        if rule.when is not None and not rule.when(*values):
            continue
        builder.where, builder.scope = node.where, node.scope
        mark = builder.next_id
        right = rule.right(builder.language, *values)
        if not isinstance(right, Symbol):
            right = builder.constant(right, node.dtype)
        made = range(mark, builder.next_id)
        cost = sum(node_cost(builder.nodes[i], builder.nodes) for i in made)
        saved = _freed(builder, covered, uses) - cost
        if right.aval == node.aval and saved >= 0:
            firings.append(Firing(rule.name, node.where, saved))
            return right.id
        builder.rollback(mark)
    return None


def _freed(builder: Builder, covered: list[int], uses: Mapping[int, int]) -> float:
    """The cost of the covered operations that nobody else needs."""
    root, *inner = covered
    freed = node_cost(builder.nodes[root], builder.nodes)
    for id in inner:
        if uses.get(id, 1) <= 1:
            freed += node_cost(builder.nodes[id], builder.nodes)
    return freed
