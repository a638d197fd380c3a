"""`tensor.grad_fn`: a view of a tape node with PyTorch's attributes."""

from __future__ import annotations

from typing import Any, final

from eager import tape
from eager.naming import outer_parents


@final
class NodeView:
    """What `grad_fn` shows of a node. Two views of the same node are equal."""

    __slots__ = ("_node",)

    def __init__(self, node: tape.Node):
        self._node = node

    def name(self) -> str:
        """The node's name, as "MulBackward0"."""
        return tape.name_of(self._node)

    @property
    def next_functions(self) -> tuple[tuple[NodeView | None, int], ...]:
        """The nodes that receive this node's gradients, each with the number of the output it made."""
        if tape.is_leaf(self._node):
            return ()
        return tuple((None if p is None else NodeView(p), 0) for p in outer_parents(self._node))

    @property
    def variable(self) -> Any:
        """The leaf tensor of an AccumulateGrad node."""
        if not tape.is_leaf(self._node):
            raise AttributeError(f"'{self.name()}' object has no attribute 'variable'")
        return self._node[tape.PARENTS]()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NodeView) and other._node is self._node

    def __hash__(self) -> int:
        return id(self._node)

    def __repr__(self) -> str:
        return f"<{self.name()} object at {hex(id(self._node))}>"
