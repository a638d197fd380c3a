"""`tensor.grad_fn`: a view of a tape node with PyTorch's attributes."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

from eager.core import tape
from eager.core.tensor import Tensor
from eager.core.views import check_unwritten
from eager.engine import hooks
from eager.engine.node_names import is_whole, outer_parents
from eager.engine.walks import saved_result, with_node
from graphc.ops.gradient import names_of_results


class Node:
    """What `grad_fn` shows of a node. Two of the same node are equal. As `torch.autograd.graph.Node`."""

    __slots__ = ("__weakref__", "_node", "metadata")

    def __init__(self, node: tape.Node):
        self._node = node
        self.metadata: dict[Any, Any] = {}

    def name(self) -> str:
        """The node's name, as "MulBackward0"."""
        return tape.name_of(self._node)

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """The nodes that receive this node's gradients, each with the number of the output it made."""
        if tape.is_leaf(self._node):
            return ()
        parents = outer_parents(self._node)
        return tuple(edge_of(p) for p in (parents if is_whole(self._node) else tape.placed(self._node, parents)))

    def _sequence_nr(self) -> int:
        """The number of the node: later ones have higher ones."""
        return abs(self._node[0])

    @property
    def variable(self) -> Any:
        """The leaf tensor of an AccumulateGrad node."""
        if not tape.is_leaf(self._node):
            raise AttributeError(f"'{self.name()}' object has no attribute 'variable'")
        return self._node[tape.PARENTS]()

    def register_hook(self, fn: Callable[..., Any]) -> hooks.RemovableHandle:
        """Call `fn(grad_inputs, grad_outputs)` after the node; what it returns takes the place of grad_inputs."""
        return hooks.RemovableHandle(hooks.hooked(self._node).after, fn)

    def register_prehook(self, fn: Callable[..., Any]) -> hooks.RemovableHandle:
        """Call `fn(grad_outputs)` before the node; what it returns takes their place."""
        return hooks.RemovableHandle(hooks.hooked(self._node).before, fn)

    def __getattr__(self, name: str) -> Any:
        node = self._node
        about = node[tape.ABOUT]
        if name.startswith("_saved_") and about.decode is not None:
            found = _saved(node, name.removeprefix("_saved_"))
            if found is not _MISSING:
                return found
        if name == "saved_tensors" and hasattr(about, "unpacked"):
            if node[tape.SAVED] is None:
                raise RuntimeError(tape.FREED)
            return about.unpacked(node)
        ctx = getattr(about, "ctx", None)
        if ctx is not None and not name.startswith("__"):
            return getattr(ctx, name)
        raise AttributeError(f"'{tape.name_of(node)}' object has no attribute '{name}'")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Node) and other._node is self._node

    def __hash__(self) -> int:
        return id(self._node)

    def __repr__(self) -> str:
        home = "" if type(self).__module__ == "builtins" else f"{type(self).__module__}."
        return f"<{home}{type(self).__name__} object at {hex(id(self._node))}>"


_MISSING = object()
_SAVED_NAMES = {"self": "input", "result": "r", "self_sym_sizes": "input_shape"}
_IMPLIED = {("square", "exponent"): 2}  # what an op has for a fact and PyTorch for a saved value


def _saved(node: tape.Node, wanted: str) -> Any:
    """The saved value `wanted`, by PyTorch's name for it, as a Tensor with its history."""
    op, _, values, parents = node[tape.ABOUT].decode(node)
    if (op.name, wanted) in _IMPLIED:
        return _IMPLIED[op.name, wanted]
    results = names_of_results(op, "r")
    name = _SAVED_NAMES.get(wanted, wanted)
    name = own if (own := f"r_{wanted.lower()}") in results else name
    if name == "input" and name not in op.args and op.args:
        name = op.args[0]
    if name not in values:
        return _MISSING
    if name in results:
        return saved_result(op, name, values[name], node)
    parent = {op.arg_of(index): parent for index, parent, _ in parents}.get(name)
    value = values[name]
    if parent is not None and tape.is_leaf(parent):
        leaf = parent[tape.PARENTS]()
        if leaf is not None and leaf._d is value:
            return leaf
    return with_node(value, parent) if hasattr(value, "dtype") and hasattr(value, "shape") else value


def grad_fn(self: Tensor) -> Any:
    """The node that made this tensor; None for a leaf. As `torch.Tensor.grad_fn`."""
    node = self._n
    if node is None or self.is_leaf:
        if tape.is_dead_end(node):
            check_unwritten(self)
        return None
    return edge_of(node)[0] if isinstance(node, list) else node.grad_fn()  # the latter under a trace


def edge_of(node: tape.Node | None) -> tuple[Node | None, int]:
    """The node as it shows itself, and the number of its output: several outputs of a function share its node."""
    if node is None or tape.is_dead_end(node):
        return None, 0
    number = node[tape.ABOUT].number
    return (view_of(node), 0) if number is None else (view_of(node[tape.PARENTS]), number)


def view_of(node: tape.Node) -> Node:
    """The `grad_fn` of `node`, of a class named after it."""
    view = _shown.get(id(node))
    if view is None or view._node is not node:
        view = _shown[id(node)] = _class_of(tape.name_of(node), hasattr(node[tape.ABOUT], "ctx"))(node)
    return view


_shown: weakref.WeakValueDictionary[int, Node] = weakref.WeakValueDictionary()  # so that a node is shown by one object


@functools.cache
def _class_of(name: str, of_function: bool) -> type[Node]:
    # PyTorch's classes of nodes have no module, but for those of a user's Function
    home = "torch.autograd.function" if of_function else "builtins"
    return type(name.rpartition("::")[2], (Node,), {"__slots__": (), "__module__": home})
