"""The tape: nodes, and the loop that walks them backward.

A node is a list, for speed:

    [-number, slot, backward, saved, *parents]

number    from `state.sequence`; negated, so that the heap pops the latest node first. Leaves have a positive
          number instead and come last.
slot      the gradient that has arrived so far, or None
backward  `backward(node, g, heap)` gives each parent its share through `give`
saved     a tuple of what the gradient rule needs; None once it has been freed. A list where that is only shapes and
          parameters: nothing to free, so backward() can come a second time
parents   the nodes of the differentiable operands; None for one that needs no gradient

A leaf is [number, slot, accumulate, (), weakref(tensor)]: no cycle, and nothing to do when the tensor is gone.
"""

from __future__ import annotations

import sys
import threading
import types
import weakref
from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from typing import Any

import numpy as np

from eager.core import state
from eager.core.layouts import laid_out
from eager.core.state import sequence
from graphc import forking
from graphc.ops.rules import torch_name

SLOT, BACKWARD, SAVED, PARENTS = 1, 2, 3, 4

FREED = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already "
    "been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). "
    "Specify retain_graph=True if you need to backward through the graph a second time or if you need to access "
    "saved tensors after calling backward."
)
MODIFIED = (
    "one of the variables needed for gradient computation has been modified by an inplace operation: "
    "[torch.{dtype}Tensor {shape}]{origin} is at version {now}; expected version {then} instead. "
    "Hint: enable anomaly detection to find the operation that failed to compute its gradient, with "
    "torch.autograd.set_detect_anomaly(True, check_nan=False)."
)
MODIFIED_IN_ANOMALY = (
    MODIFIED.partition("Hint:")[0] + "Hint: the backtrace further above shows the operation that failed to compute its "
    "gradient. The variable in question was changed in there or anywhere later. Good luck!"
)

Node = list
lock = forking.renewed(threading.RLock())
# the walks going on, one within another: the nodes one started from, or the ids of all that it will visit
walks: list[list[Node] | set[int]] = []
forking.in_child(lambda: None if lock._is_owned() else walks.clear())


def new_leaf(tensor: Any) -> Node:
    """The node of a leaf tensor that requires grad; from now on the tensor has a `.grad`, if only None."""
    if not hasattr(tensor, "_g"):
        tensor._g = None
    return [next(sequence), None, accumulate, (), weakref.ref(tensor)]


def is_leaf(node: Node) -> bool:
    return node[0] > 0


def dead_end(version: int | None) -> Node:
    """The node of a view that requires grad and has no history; `version` is that of its memory when it was made."""
    return [-next(sequence), None, end, [version]]


def end(node: Node, g: np.ndarray, heap: list[Node]) -> None:
    """Drop the gradient."""


def is_dead_end(node: Any) -> bool:
    return node is not None and node.__class__ is list and node[BACKWARD] is end


def give(parent: Node, share: Any, heap: list[Node]) -> None:
    """Add `share` to the gradient of `parent`, and queue it on first arrival."""
    slot = parent[SLOT]
    if slot is None:
        parent[SLOT] = share
        heappush(heap, parent)
    else:
        parent[SLOT] = np.add(slot, share, out=...)


def accumulate(leaf: Node, g: np.ndarray, heap: list[Node]) -> None:
    """Add `g` to the `.grad` of the leaf's tensor."""
    tensor = leaf[PARENTS]()
    if tensor is None:
        return
    old = tensor._g
    if old is None:
        # `g` may be shared with another leaf, a saved value or the user: it is taken over only when nobody can write it
        # (a result of a compiled program, whose memory NumPy does not own), or nobody else has it
        if not isinstance(g, np.ndarray) or isinstance(g.base, np.ndarray) or (
            g.flags.writeable and sys.getrefcount(g) > _UNSHARED
        ):  # fmt: skip
            g = laid_out(np.asarray(g), tensor._d, copy=True)
        elif g.ndim > 1 and g.strides != getattr(tensor._d, "strides", None):
            g = laid_out(g, tensor._d, copy=False)
        tensor._g = tensor._wrap(g)
    else:
        old._add_gradient(g)


def run(heap: list[Node], keep: bool) -> None:
    """Walk backward from the nodes in `heap`, whose slots hold their gradients. Frees saved values unless `keep`."""
    with lock:
        walks.append(heap.copy())
        try:
            while heap:
                node = heappop(heap)
                g = node[SLOT]
                node[SLOT] = None
                saved = node[SAVED]
                if saved:
                    if -node[0] < state.latest_mutation:
                        check_unmodified(node)
                elif saved is None:
                    raise RuntimeError(FREED)
                node[BACKWARD](node, g, heap)
                if saved and not keep and saved.__class__ is tuple:
                    node[SAVED] = None
        except BaseException:
            for node in heap:
                node[SLOT] = None
            raise
        finally:
            walks.pop()


def free(node: Node) -> None:
    """Drop the values that `node` saved."""
    if node[SAVED].__class__ is tuple and node[SAVED]:
        node[SAVED] = None


def check_unmodified(node: Node) -> None:
    """Raise RuntimeError if a value that `node` saved has been written in place since."""
    for value in arrays_in(node[SAVED]):
        if late := state.writes_since(value, -node[0]):
            now = state.version_of(value)
            text = MODIFIED_IN_ANOMALY if state.anomaly.enabled else MODIFIED
            raise RuntimeError(
                text.format(
                    dtype=torch_name(value.dtype), shape=list(value.shape), origin=_origin(node, value), now=now,
                    then=now - late,
                )
            )  # fmt: skip


def _origin(node: Node, value: np.ndarray) -> str:
    """Where a saved value came from, in the words of PyTorch's message; nothing for a leaf."""
    name = ""
    decode = decoders.get(function_of(node))
    op: Any = None
    values: dict[str, Any] = {}
    parents: list[Any] = []
    if decode is not None:
        op, _, values, parents = decode(node)
    for index, parent, _ in parents:
        if values.get(op.arg_of(index)) is value and not is_leaf(parent):
            name = name_of(parent)
    writer = state.writer_of(value)
    if values.get("r") is value:
        name = name_of(node)
    elif writer is not None:
        # who wrote it is its history by now; a view of what has been written reads it anew
        name = writer[0] if writer[1] == value.shape else "AsStrided"
    return f", which is output 0 of {name.partition('Backward')[0]}," if name else ""


def arrays_in(saved: Iterable[Any]) -> Iterable[np.ndarray]:
    """The arrays among what a node saved."""
    for value in saved:
        if isinstance(value, np.ndarray):
            yield value
        elif isinstance(value, dict):
            yield from arrays_in(value.values())
        elif isinstance(value, (list, tuple)):
            yield from arrays_in(value)
        elif isinstance(getattr(value, "_d", None), np.ndarray):  # a Tensor, which a user's Function saved
            yield value._d


# --- what a node is about, for everything that is not the fast loop

# backward function -> decode(node) -> (op, params, {name: array or shape}, [(operand index, parent, shape or None)])
Decoded = tuple[Any, dict[str, Any], dict[str, Any], list[tuple[int, Node, tuple[int, ...] | None]]]
decoders: dict[Any, Callable[[Node], Decoded]] = {}
# backward function -> shares(node, g: Tensor) -> [(parent, Tensor)], for nodes that are not an op of the registry
tensor_rules: dict[Any, Callable[[Node, Any], list[tuple[Node, Any]]]] = {end: lambda node, g: []}
# backward function of the node of one of several outputs -> the number of that output
parts: dict[Any, int] = {}
# backward function -> the name of a node with it, while what the node saved is there
namings: dict[Any, Callable[[Node], str]] = {}
names: dict[Any, str] = {accumulate: "torch::autograd::AccumulateGrad", end: "NoneType"}
# backward function -> the place of each parent among the edges that PyTorch shows, and how many there are; not given
# where that is all parents, in order
edges: dict[Any, tuple[list[int], int]] = {}


def function_of(node: Node) -> Any:
    """The backward function of `node`, without hooks."""
    function = node[BACKWARD]
    return getattr(function, "inner", function)


def shares(node: Node, g: np.ndarray) -> list[np.ndarray | None]:
    """What `node` gives each of its parents, without giving it."""
    # of different numbers: a heap must not come to compare their gradients
    stand_ins: list[Any] = [None if p is None else [k, None, None, ()] for k, p in enumerate(node[PARENTS:], 1)]
    function_of(node)([*node[:PARENTS], *stand_ins], g, [])
    return [None if p is None else p[SLOT] for p in stand_ins]


def name_of(node: Node) -> str:
    """The node's name as PyTorch prints it: "MulBackward0"."""
    function = function_of(node)
    if function in parts:
        node = node[PARENTS]
        function = function_of(node)
    if function in namings and node[SAVED] is not None:
        return namings[function](node)
    return names.get(function) or function.name


def rename(node: Node, name: str) -> Node:
    """Give `node`, just made, the name that PyTorch shows where several ops make up one of its functions."""
    backward = node[BACKWARD]
    renamed = _renamed.get((backward, name))
    if renamed is None:
        # the same code under another identity: what is known of a node is looked up by its function
        renamed = types.FunctionType(
            backward.__code__, backward.__globals__, backward.__name__, backward.__defaults__, backward.__closure__
        )
        for table in _by_function:
            if backward in table:
                table[renamed] = table[backward]
        names[renamed] = name
        _renamed[backward, name] = renamed
    node[BACKWARD] = renamed
    return node


_renamed: dict[tuple[Any, str], Any] = {}
_by_function: list[dict[Any, Any]] = [decoders, tensor_rules, edges]


def naming_of(op: Any, decode: Callable[[Node], Decoded]) -> Callable[[Node], str]:
    """What names the nodes of an op whose name depends on the shapes of its operands."""

    def name(node: Node) -> str:
        _, _, values, parents = decode(node)
        shapes = {op.arg_of(index): shape for index, _, shape in parents if shape is not None}
        for arg in op.args:
            if f"{arg}_shape" in values:
                shapes.setdefault(arg, values[f"{arg}_shape"])
            elif values.get(arg) is not None:
                shapes.setdefault(arg, values[arg].shape)
        return op.naming([shapes[arg] for arg in op.args])

    return name


def placed(node: Node, values: list[Any]) -> list[Any]:
    """`values`, one for each parent of `node`, at the places of PyTorch's edges; None for an operand without one."""
    places = edges.get(function_of(node))
    if places is None:
        return values
    result: list[Any] = [None] * places[1]
    for place, value in zip(places[0], values, strict=True):
        result[place] = value
    return result


def displaced(node: Node, values: list[Any]) -> list[Any]:
    """What `placed` has placed."""
    places = edges.get(function_of(node))
    return values if places is None else [values[place] for place in places[0]]


def parents_of(node: Node) -> list[Node]:
    """The nodes that `node` passes gradients to."""
    return [] if is_leaf(node) else [p for p in node[PARENTS:] if p is not None]


def _calibrate() -> int:
    """The reference count that `accumulate` sees for a gradient nobody else holds, in this Python."""
    seen: list[int] = []

    def probe(leaf: Node, g: np.ndarray, heap: list[Node]) -> None:
        seen.append(sys.getrefcount(g))

    leaf: Node = [next(sequence), np.zeros(1), probe, ()]
    run([leaf], True)
    return seen[0]


_UNSHARED = _calibrate()
