"""Applying a table of rules to a graph, each only where the cost model says that it does not cost more."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping
from itertools import zip_longest
from typing import Any, NamedTuple, final

from graphc.ir import Builder, Graph, Node, Symbol, rename
from graphc.ops import OPS, Op
from graphc.rewrite.cost import node_cost
from graphc.rewrite.match import Bindings, match
from graphc.rewrite.rule import Pattern, RewriteRule, Var, held_number

KEPT = 4096  # answers of an index
DEPTH = 3  # how many operations deep a rule looks below its root
FORMS = 64  # rewrites of one place in one sweep: rules that undo each other in some other way end there


class Firing(NamedTuple):
    """One application of a rule: its name, the user's line, and the cost it saved (graphc.rewrite.cost)."""

    rule: str
    where: str
    saved: float


@final
class RuleIndex:
    """Rules by what they ask of a root: its op, the ops and numbers of its operands, whether some are the same."""

    def __init__(self, rules: Iterable[RewriteRule]):
        self._rules: dict[Op, list[RewriteRule]] = defaultdict(list)
        self._numbers: set[Any] = set()  # that rules ask for by value
        for rule in rules:
            self._rules[rule.left.op].append(rule)
            self._numbers.update(part for part in rule.left.operands if not isinstance(part, (Pattern, Var)))
        self._known: dict[Any, list[RewriteRule]] = {}

    def candidates(self, node: Node, nodes: Mapping[int, Node]) -> list[RewriteRule]:
        """The rules that may match `node`, in the order of the table."""
        op, inputs = node.op, node.inputs
        if op not in self._rules:
            return _NONE
        below = tuple([nodes[i].op for i in inputs])
        numbers = _NONE_HELD if _NUMBERS.isdisjoint(below) else tuple([self._number(i, nodes) for i in inputs])
        distinct = len(inputs) if len(inputs) < 2 else len(set(inputs))
        key = (op, below, numbers, distinct)
        found = self._known.get(key)
        if found is None:
            repeated = distinct < len(inputs)
            operands = tuple(zip_longest(below, numbers))
            found = [rule for rule in self._rules[op] if _may_match(rule.left, operands, repeated)]
            if len(self._known) == KEPT:
                self._known = {}
            self._known[key] = found
        return found

    def _number(self, id: int, nodes: Mapping[int, Node]) -> Any:
        """The number that a node holds in every place, if a rule asks for it; None for any other."""
        number = held_number(id, nodes)
        return number if number in self._numbers else None


_NONE: list[RewriteRule] = []
_NONE_HELD: tuple[Any, ...] = ()
_NUMBERS = frozenset((OPS["constant"], OPS["full"]))


def _may_match(left: Pattern, operands: tuple[tuple[Op, Any], ...], repeated: bool) -> bool:
    """Whether operands, each as its op and the number that it holds, can be what `left` asks for."""
    names = [part.name for part in left.operands if isinstance(part, Var)]
    if len(names) > len(set(names)) and not repeated:
        return False
    orders = (operands, operands[::-1]) if left.op.commutative else (operands,)
    return any(len(order) == len(left.operands) and all(map(_fits, left.operands, order)) for order in orders)


def _fits(part: Any, operand: tuple[Op, Any]) -> bool:
    op, number = operand
    if isinstance(part, Pattern):
        return part.op is op
    if isinstance(part, Var):
        return not part.number or op in _NUMBERS
    return part == number


def rewrite(
    graph: Graph, rules: RuleIndex, where: Container[int] | None = None, most: int | None = None
) -> tuple[Graph, list[Firing]]:
    """One sweep over `graph` in order, rewriting what matches; only at the nodes `where`, if given, and `most` times.

    A sweep sees its own rewrites below a node, so another one is needed only after other passes have merged or folded
    nodes. Dead nodes are left for the next pass.
    """
    builder = Builder()
    builder.next_id = max(graph.nodes, default=-1) + 1
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
        at = id
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
            uses[at] += uses[id]
    if not firings:
        return graph, firings
    return graph.replace(nodes, rename(graph.result, {id: new.get(id, id) for id in graph.outputs})), firings


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
