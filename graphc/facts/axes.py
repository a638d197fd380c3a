"""Which atoms the axes of a matrix come from: a matrix that is its transpose has the same ones in both.

Far less work than its form, and for nearly all products the two differ in the first atoms that are met.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Mapping
from typing import final

from graphc.ir import Node
from graphc.normal.affine import Unsolved
from graphc.normal.find import MOST_NODES
from graphc.normal.form import Algebra, atom
from graphc.normal.lift import is_lifted

LEAST, PER_AXIS = 32, 32  # axes followed whatever a matrix has, and its elements for each more: little for small ones

Axis = tuple[int, int]  # of an operand by its place among them, or of a node


def may_mirror(id: int, nodes: Mapping[int, Node]) -> bool:
    """False: the form of a matrix is not its own transpose, or takes too much work to say."""
    most = min(LEAST + nodes[id].size // PER_AXIS, MOST_NODES)
    row, column = (_atoms(id, axis, nodes, most) for axis in (0, 1))
    return row is not None and row == column


def _atoms(id: int, axis: int, nodes: Mapping[int, Node], most: int) -> set[int] | None:
    """The atoms whose place depends on the place in an axis of a node; None if `most` axes do not tell."""
    found: set[int] = set()
    seen = {(id, axis)}
    stack = [(id, axis)]
    while stack:
        id, axis = stack.pop()
        node = nodes[id]
        if not is_lifted(node, nodes):
            found.add(id)
            continue
        reached = _reached(_Kind(node, nodes))
        if reached is None or len(seen) > most:
            return None
        below = {(node.inputs[k], own) for k, own in reached[axis]} - seen
        seen |= below
        stack += below
    return found


@final
class _Kind:
    """What a node computes, of operands of which shapes: equal for all that do the same."""

    def __init__(self, node: Node, nodes: Mapping[int, Node]):
        self.node = node
        self.given = tuple([nodes[i].shape for i in node.inputs])
        self._key: Hashable = (node.key(()), node.shape, self.given)

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Kind) and self._key == other._key


@functools.lru_cache(maxsize=1024)
def _reached(kind: _Kind) -> list[set[Axis]] | None:
    """The axes of operands that each axis of a result depends on."""
    node = kind.node
    assert node.op.lifting is not None
    given = [atom(k, shape) for k, shape in enumerate(kind.given)]
    try:
        form = node.op.lifting(Algebra(), *given, **node.params)
    except Unsolved:
        return None
    found: list[set[Axis]] = [set() for _ in node.shape]
    for term in form.terms:
        for axis, place in enumerate(term.places):
            own = {*place.labels}
            found[axis].update([(f.atom, k) for f in term.factors for k, p in enumerate(f.places) if own & {*p.labels}])
    return found
