"""Which rules may match at a node: told by its op, those of its operands, and how many of these are different nodes.

Most nodes are ruled out by one look-up. What is looked up is worked out when it is first asked for, so that a table of
rules costs what the graphs at hand have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import final

from graphc.ir import Node
from graphc.ops import Op
from graphc.rewrite.rule import HOLDERS, Pattern, RewriteRule, Var


@final
class RuleIndex:
    """A table of rules, in the order in which they are tried."""

    def __init__(self, rules: Iterable[RewriteRule]):
        self._by_root: dict[Op, list[RewriteRule]] = {}
        for rule in rules:
            self._by_root.setdefault(rule.left.op, []).append(rule)
        self._found: dict[tuple[Op | int, ...], tuple[RewriteRule, ...]] = {}

    def candidates(self, node: Node, nodes: Mapping[int, Node]) -> Sequence[RewriteRule]:
        """The rules that may match at `node`, whose operands are among `nodes`."""
        if node.op not in self._by_root:
            return ()
        inputs = node.inputs
        key = (node.op, len({*inputs}), *[nodes[i].op for i in inputs])
        found = self._found.get(key)
        if found is None:
            _, different, *ops = key
            of_root = self._by_root[node.op]
            found = self._found[key] = tuple(rule for rule in of_root if _may_match(rule.left, ops, different))
        return found


def _may_match(pattern: Pattern, ops: list[Op], different: int) -> bool:
    """Whether `pattern` may match operands that these ops make, so many of which are `different` nodes."""
    parts = pattern.operands
    if len(parts) != len(ops) or different > len({part.name if isinstance(part, Var) else id(part) for part in parts}):
        return False
    orders = (ops, ops[::-1]) if pattern.op.commutative else (ops,)
    return any(all(map(_may_be, parts, order)) for order in orders)


def _may_be(part: object, op: Op) -> bool:
    """Whether a node of `op` may be what `part` of a pattern asks for."""
    if isinstance(part, Pattern):
        return op is part.op
    return op in HOLDERS or (isinstance(part, Var) and not part.number)
