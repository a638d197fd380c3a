"""Applying a table of rules to a graph, each only where the cost model says that it does not cost more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from typing import NamedTuple

from graphc.ir import Builder, Graph, Node, Symbol
from graphc.rewrite.cost import node_cost
from graphc.rewrite.index import RuleIndex
from graphc.rewrite.match import applies
from graphc.rewrite.rule import RewriteRule

DEPTH = 3  # how many operations deep a rule looks below its root
FORMS = 64  # rewrites of one place in one sweep: rules that undo each other in some other way end there


class Firing(NamedTuple):
    """One application of a rule: its name, the user's line, and the cost it saved (graphc.rewrite.cost)."""

    rule: str
    where: str
    saved: float


def rewrite(
    graph: Graph, rules: RuleIndex, where: Container[int] | None = None, most: int | None = None
) -> tuple[Graph, list[Firing]]:
    """One sweep over `graph` in order, rewriting what matches; only at the nodes `where`, if given, and `most` times.

    A sweep sees its own rewrites below a node, so another one is needed only after other passes have merged or folded
    nodes. Dead nodes are left for the next pass.
    """
    builder = Builder.beside(graph.nodes)
    nodes = builder.nodes
    uses = graph.uses()
    new: dict[int, int] = {}  # of nodes that were rewritten
    firings: list[Firing] = []
    for id, node in graph.nodes.items():
        if new and not new.keys().isdisjoint(node.inputs):
            node = node.on(tuple([new.get(i, i) for i in node.inputs]))
        nodes[id] = node
        if (where is not None and id not in where) or (most is not None and len(firings) >= most):
            continue
        at, first = id, builder.next_id
        forms: list[Node] = []  # what this place has been, so that x - y -> y - x does not go round
        while candidates := rules.candidates(nodes[at], nodes):
            mark, fired = builder.next_id, len(firings)
            replaced = _apply_first(builder, at, candidates, uses, firings)
            if replaced is None:
                break
            forms.append(nodes[at])
            if len(forms) > FORMS or any(_alike(nodes[replaced], form, nodes) for form in forms):
                builder.rollback(mark)
                del firings[fired:]
                break
            at = replaced
            if most is not None and len(firings) >= most:
                break
        if at != id:
            new[id] = at
            _count(uses, nodes, id, at, first)
    if not firings:
        return graph, firings
    return graph.rewired(nodes, new), firings


def _count(uses: dict[int, int], nodes: Mapping[int, Node], id: int, at: int, first: int) -> None:
    """Keep `uses` what they are where node `at`, with what was made for it from number `first` on, replaces `id`."""
    made, seen = [at], {at}
    while made:
        node = made.pop()
        if node >= first:
            for i in nodes[node].inputs:
                uses[i] = uses.get(i, 0) + 1
                if i not in seen:
                    seen.add(i)
                    made.append(i)
    uses[at] = uses.get(at, 0) + uses.pop(id, 0)
    dead = [id]
    while dead:
        for i in nodes[dead.pop()].inputs:
            uses[i] -= 1
            if not uses[i]:
                dead.append(i)


def _alike(a: Node, b: Node, nodes: Mapping[int, Node], depth: int = DEPTH) -> bool:
    """Whether two nodes are the same operation, on operands that are the same node or, down to what a rule has made of
    them, alike themselves."""
    if a.op is not b.op or len(a.inputs) != len(b.inputs) or a.key(()) != b.key(()):
        return False
    pairs = [(i, j) for i, j in zip(a.inputs, b.inputs, strict=True) if i != j]
    return not pairs or (depth > 0 and all(_alike(nodes[i], nodes[j], nodes, depth - 1) for i, j in pairs))


def changed(before: Graph, after: Graph) -> set[int]:
    """The nodes of `after` at which a rule may match that did not match in `before`: new ones, and users near them."""
    depth: dict[int, int] = {}  # how far above the nearest new node
    for id, node in after.nodes.items():
        if before.nodes.get(id) is not node:
            depth[id] = 0
        elif not depth.keys().isdisjoint(node.inputs):
            found = min([depth[i] for i in node.inputs if i in depth]) + 1
            if found <= DEPTH:
                depth[id] = found
    return set(depth)


def _apply_first(
    builder: Builder, at: int, rules: Sequence[RewriteRule], uses: Mapping[int, int], firings: list[Firing]
) -> int | None:
    """Rewrite node `at` by the first rule that matches and does not cost more than it is worth; its new id, or None."""
    node = builder.nodes[at]
    for rule in rules:
        if (found := applies(rule, builder, at)) is None:
            continue
        covered, values = found
        builder.where, builder.scope = node.where, node.scope
        mark = builder.next_id
        right = rule.right(builder.language, *values)
        if not isinstance(right, Symbol):
            right = builder.constant(right, node.dtype)
        made = range(mark, builder.next_id)
        cost = sum(node_cost(builder.nodes[i], builder.nodes) for i in made)
        saved = freed(builder, covered, uses) - cost
        if right.aval == node.aval and saved >= -rule.worth * node.size:
            firings.append(Firing(rule.name, node.where, saved))
            return right.id
        builder.rollback(mark)
    return None


def freed(builder: Builder, covered: list[int], uses: Mapping[int, int]) -> float:
    """The cost of the covered operations that nobody else needs."""
    root, *inner = covered
    freed = node_cost(builder.nodes[root], builder.nodes)
    for id, times in Counter(inner).items():
        if uses.get(id, 0) <= times:
            freed += node_cost(builder.nodes[id], builder.nodes)
    return freed
