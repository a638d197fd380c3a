"""The tape: nodes, and the loop that walks them backward.

A node is a list, for speed:

    [-number, slot, backward, saved, about, *parents]

number    from `state.sequence`; negated, so that the heap pops the latest node first. Leaves have a positive
          number instead and come last.
slot      the gradient that has arrived so far, or None
backward  `backward(node, g, heap)` gives each parent its share through `give`
saved     a tuple of what the gradient rule needs; None once it has been freed. A list where that is only shapes and
          parameters: nothing to free, so backward() can come a second time
about     the `Backward`: all that is known of the node beside what the loop needs
parents   the nodes of the differentiable operands; None for one that needs no gradient

A leaf is [number, slot, accumulate, (), LEAF, weakref(tensor)]: no cycle, and nothing to do when the tensor is gone.

A function with several outputs has one node, their owner, and for each output a light one whose only parent is the
owner. A light node hands its gradient on; the slot of the owner is a list with that of each output, or None.
"""

from __future__ import annotations

import functools
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from heapq import heappop, heappush
from typing import Any

import numpy as np

from eager.core import state
from eager.core.layouts import laid_out
from eager.core.placed import Placed
from eager.core.sparse import Sparse
from eager.core.state import sequence
from graphc import forking
from graphc.ops.gradient import names_of_results
from graphc.ops.rules import torch_name

SLOT, BACKWARD, SAVED, ABOUT, PARENTS = 1, 2, 3, 4, 5

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
# (op, params, {name: array or shape}, [(operand index, parent, shape or None)])
Decoded = tuple[Any, dict[str, Any], dict[str, Any], list[tuple[int, Node, tuple[int, ...] | None]]]


class Backward:
    """What nodes with one backward function have in common.

    on_arrays   f(node, g, heap): the backward function, which gives each parent its share through `give`
    name        the nodes' name as PyTorch prints it
    on_tensors  f(node, g): the share of each parent, or None, computed on Tensors; not given for an op of the registry
    decode      f(node): what a node of an op of the registry is about
    naming      f(shapes of the operands): the name of a node while what it saved is there
    crosses     whether its node lies between two devices
    edges       the place of each parent among the edges that PyTorch shows, and how many there are; not given where
                they are all parents, in order
    number      of a light node: the number of its output
    """

    name = ""
    decode: Callable[[Node], Decoded] | None = None
    naming: Callable[[list[tuple[int, ...]]], str] | None = None
    edges: tuple[list[int], int] | None = None
    number: int | None = None
    crosses = False

    def __init__(
        self,
        on_arrays: Callable[[Node, Any, list[Node]], Any],
        name: str,
        on_tensors: Callable[[Node, Any], Sequence[Any]] | None = None,
        **known: Any,
    ):
        self.on_arrays = on_arrays
        self.on_tensors = on_tensors
        self.name = name
        self.__dict__.update(known)
        self._renamed: dict[str, Backward] = {}

    def renamed(self, name: str) -> Backward:
        """The same with another name."""
        known = self._renamed.get(name)
        if known is None:
            about = {**self.__dict__, "name": name, "naming": None}
            known = self._renamed[name] = Backward(**about)
        return known


lock = forking.renewed(threading.RLock())
# the walks going on, one within another: the nodes one started from, or the ids of all that it will visit
walks: list[list[Node] | set[int]] = []
forking.in_child(lambda: None if lock._is_owned() else walks.clear())


def new_node(about: Backward, saved: Any, *parents: Node | None) -> Node:
    """The node of what has just been computed."""
    return [-next(sequence), None, about.on_arrays, saved, about, *parents]


def new_leaf(tensor: Any) -> Node:
    """The node of a leaf tensor that requires grad; from now on the tensor has a `.grad`, if only None."""
    if not hasattr(tensor, "_g"):
        tensor._g = None
    return [next(sequence), None, accumulate, (), LEAF, weakref.ref(tensor)]


def is_leaf(node: Node) -> bool:
    return node[0] > 0


def dead_end(version: int | None) -> Node:
    """The node of a view that requires grad and has no history; `version` is that of its memory when it was made."""
    return new_node(END, [version])


def end(node: Node, g: Any, heap: list[Node]) -> None:
    """Drop the gradient."""


def is_dead_end(node: Any) -> bool:
    return isinstance(node, list) and node[ABOUT] is END


def output_nodes(owner: Node, count: int, freed: bool = False) -> list[Node]:
    """The node of each of the `count` outputs of the function with the node `owner`, which is that of a single output.

    freed: a walk from an output that does not keep the graph ends the way from there.
    """
    if count == 1:
        return [owner]
    saved = (count,) if freed else [count]
    return [[-next(sequence), None, hand_on, saved, _output(number), owner] for number in range(count)]


def by_output(g: Any) -> Sequence[Any]:
    """The gradient of each output of a function, or None; `g` is what was in its node's slot."""
    return g if isinstance(g, list) else (g,)


def arrived(g: Any) -> dict[int, Any]:
    """The gradients among these that have arrived, by number of the output."""
    return {k: d for k, d in enumerate(g) if d is not None} if isinstance(g, list) else {0: g}


@functools.cache
def _output(number: int) -> Backward:
    return Backward(hand_on, "", number=number)


def hand_on(node: Node, g: Any, heap: list[Node]) -> None:
    """Put the gradient of an output, an array or a Tensor, into the slot of its owner."""
    owner, number = node[PARENTS], node[ABOUT].number
    slot = owner[SLOT]
    if slot is None:
        slot = owner[SLOT] = [None] * node[SAVED][0]
        heappush(heap, owner)
    old = slot[number]
    slot[number] = g if old is None else old + g


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
    if tensor is None or tensor._n is None:  # or it is to have no gradient any more
        return
    old = tensor._g
    if old is None:
        # `g` may be shared with another leaf, a saved value or the user: it is taken over only when nobody can write it
        # (a result of a compiled program, whose memory NumPy does not own), or nobody else has it
        if not isinstance(g, np.ndarray) or isinstance(g.base, np.ndarray) or (
            g.flags.writeable and sys.getrefcount(g) > _UNSHARED
        ):  # fmt: skip
            g = g if g.__class__ is Sparse else laid_out(np.asarray(g), tensor._d, copy=True)
        elif g.ndim > 1 and g.strides != getattr(tensor._d, "strides", None):
            g = laid_out(g, tensor._d, copy=False)
        tensor._g = tensor._wrap(g)
    else:
        old._add_gradient(g)


def run(heap: list[Node], keep: bool) -> None:
    """Walk backward from the nodes in `heap`, whose slots hold their gradients. Frees saved values unless `keep`.

    This is `backward()` to all leaves, and as fast as a loop can be that asks nothing else: neither which nodes lead to
    the tensors that gradients are wanted for, nor what a gradient is made of. `eager.engine.walks` does.
    """
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


def check_unmodified(node: Node, saved: Any = None) -> None:
    """Raise RuntimeError if a value that `node` saved, or one of `saved`, has been written in place since."""
    for value in arrays_in(node[SAVED] if saved is None else saved):
        if late := state.writes_since(value, -node[0]):
            now = state.version_of(value)
            text = MODIFIED_IN_ANOMALY if state.anomaly.enabled else MODIFIED
            raise RuntimeError(
                text.format(
                    dtype=torch_name(value.dtype or value.numpy_dtype), shape=list(value.shape),
                    origin=_origin(node, value), now=now, then=now - late,
                )
            )  # fmt: skip


def _origin(node: Node, value: np.ndarray) -> str:
    """Where a saved value came from, in the words of PyTorch's message; nothing for a leaf."""
    name, number = "", 0
    op: Any = None
    values: dict[str, Any] = {}
    parents: list[Any] = []
    results: list[str] = []
    if node[ABOUT].decode is not None:
        op, _, values, parents = node[ABOUT].decode(node)
        results = names_of_results(op, "r")
    for index, parent, _ in parents:
        if values.get(op.arg_of(index)) is value and not is_leaf(parent):
            name = name_of(parent)
            number = parent[ABOUT].number or 0
    writer = state.writer_of(value)
    own = [k for k, result in enumerate(results) if values.get(result) is value]
    if own:
        name, number = name_of(node), own[0]
    elif writer is not None:
        # who wrote it is its history by now; a view of what has been written reads it anew
        name, number = writer[0] if writer[1] == value.shape else "AsStrided", 0
    return f", which is output {number} of {name.partition('Backward')[0]}," if name else ""


def arrays_in(saved: Iterable[Any]) -> Iterable[np.ndarray]:
    """The arrays among what a node saved."""
    for value in saved:
        if isinstance(value, np.ndarray) or value.__class__ is Placed:
            yield value
        elif isinstance(value, dict):
            yield from arrays_in(value.values())
        elif isinstance(value, (list, tuple)):
            yield from arrays_in(value)
        elif isinstance(getattr(value, "_d", None), (np.ndarray, Placed)):  # a Tensor, which a user's Function saved
            yield value._d


# for everything that is not the fast loop
def shares(node: Node, g: Any) -> list[Any]:
    """What `node` gives each of its parents, without giving it."""
    # of different numbers: a heap must not come to compare their gradients
    stand_ins: list[Any] = [None if p is None else [k, None, None, ()] for k, p in enumerate(node[PARENTS:], 1)]
    node[ABOUT].on_arrays([*node[:PARENTS], *stand_ins], g, [])
    return [None if p is None else p[SLOT] for p in stand_ins]


def name_of(node: Node) -> str:
    """The node's name as PyTorch prints it: "MulBackward0"."""
    about = node[ABOUT]
    if about.number is not None:
        return name_of(node[PARENTS])
    return about.name if about.naming is None or node[SAVED] is None else about.naming(_operand_shapes(node))


def _operand_shapes(node: Node) -> list[tuple[int, ...]]:
    """The shapes of the operands of the op that `node` is about."""
    op, _, values, parents = node[ABOUT].decode(node)
    shapes = {op.arg_of(index): shape for index, _, shape in parents if shape is not None}
    for arg in op.args:
        if f"{arg}_shape" in values:
            shapes.setdefault(arg, values[f"{arg}_shape"])
        elif values.get(arg) is not None:
            shapes.setdefault(arg, values[arg].shape)
    return [shapes[arg] for arg in op.args]


def rename(node: Node, name: str) -> Node:
    """Give `node`, just made, the name that PyTorch shows where several ops make up one of its functions."""
    node[ABOUT] = node[ABOUT].renamed(name)
    return node


def placed(node: Node, values: Sequence[Any]) -> Sequence[Any]:
    """`values`, one for each parent of `node`, at the places of PyTorch's edges; None for an operand without one."""
    if node[ABOUT].edges is None:
        return values
    places, count = node[ABOUT].edges
    result: list[Any] = [None] * count
    for place, value in zip(places, values, strict=True):
        result[place] = value
    return result


def displaced(node: Node, values: Sequence[Any]) -> Sequence[Any]:
    """What `placed` has placed."""
    return values if node[ABOUT].edges is None else [values[place] for place in node[ABOUT].edges[0]]


def parents_of(node: Node) -> list[Node]:
    """The nodes that `node` passes gradients to."""
    return [] if is_leaf(node) else [p for p in node[PARENTS:] if p is not None]


def _calibrate() -> int:
    """The reference count that `accumulate` sees for a gradient nobody else holds, in this Python."""
    seen: list[int] = []

    def probe(leaf: Node, g: np.ndarray, heap: list[Node]) -> None:
        seen.append(sys.getrefcount(g))

    run([[next(sequence), np.zeros(1), probe, ()]], True)
    return seen[0]


LEAF = Backward(accumulate, "torch::autograd::AccumulateGrad")
END = Backward(end, "NoneType", on_tensors=lambda node, g: ())
_UNSHARED = _calibrate()
