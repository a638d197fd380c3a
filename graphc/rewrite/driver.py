"""Applying a table of rules to a graph, each only where the cost model says that it does not cost more."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping
from operator import itemgetter
from typing import Any, NamedTuple, final

from graphc.ir import Builder, Graph, Node, Symbol, rename
from graphc.ops import OPS, Op
from graphc.rewrite.cost import node_cost
from graphc.rewrite.match import Bindings, match
from graphc.rewrite.rule import Pattern, RewriteRule, Var

DEPTH = 3  # how many operations deep a rule looks below its root


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
        inputs = node.inputs
        found = below.get(ANY, _NONE)
        for k, i in enumerate(inputs):
            if i in inputs[:k]:
                found = found + below.get(REPEATED, _NONE)
            else:
                more = below.get(nodes[i].op)
                if more is not None:
                    found = found + more
        if len(found) > 1:
            found = sorted(set(found), key=_priority)
        return [rule for _, rule in found]


_NONE: list[Any] = []
_priority = itemgetter(0)
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


def rewrite(graph: Graph, rules: RuleIndex, where: Container[int] | None = None) -> tuple[Graph, list[Firing]]:
    """One sweep over `graph` in order, rewriting what matches; only at the nodes `where`, if given.

    A sweep sees its own rewrites below a node, so another one is needed only after other passes have merged or folded
    nodes. Dead nodes are left for the next pass.
    """
    builder = Builder()
    builder.next_id = max(graph.nodes, default=-1) + 1
    nodes = builder.nodes
    uses = Counter(graph.outputs)
    for node in graph.nodes.values():
        uses.update(node.inputs)
    new: dict[int, int] = {}  # of nodes that were rewritten
    firings: list[Firing] = []
    for id, node in graph.nodes.items():
        if new and not new.keys().isdisjoint(node.inputs):
            node = node.on(tuple([new.get(i, i) for i in node.inputs]))
        nodes[id] = node
        if where is not None and id not in where:
            continue
        at = id
        forms: set[Any] = set()  # what this place has been, so that x - y -> y - x does not go round
        while candidates := rules.candidates(nodes[at], nodes):
            forms.add(nodes[at].key(nodes[at].inputs))
            mark, fired = builder.next_id, len(firings)
            replaced = _apply_first(builder, at, candidates, uses, firings)
            if replaced is None:
                break
            if nodes[replaced].key(nodes[replaced].inputs) in forms:
                builder.rollback(mark)
                del firings[fired:]
                break
            at = replaced
        if at != id:
            new[id] = at
            uses[at] += uses[id]
    if not firings:
        return graph, firings
    return graph.replace(nodes, rename(graph.result, {id: new.get(id, id) for id in graph.outputs})), firings


def changed(before: Graph, after: Graph) -> set[int]:
    """The nodes of `after` at which a rule may match that did not match in `before`: new ones, and users near them."""
    fresh = {id for id, node in after.nodes.items() if before.nodes.get(id) is not node}
    users = after.users()
    for _ in range(DEPTH):
        fresh.update([user for id in tuple(fresh) for user in users[id]])
    return fresh


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
        if uses.get(id, 0) <= 1:
            freed += node_cost(builder.nodes[id], builder.nodes)
    return freed
