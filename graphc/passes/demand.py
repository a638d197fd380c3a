"""What is read of each array: of what is computed element by element, or row by row, the rest is left out.

Backwards, the box that is demanded of every node is found: the smallest that holds what its users read. Forwards, nodes
are computed on their boxes. Ends of cumulations and of sorted rows become reductions. Products are left to
`graphc.normal`, which takes a part of one from parts of its operands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy as np

from graphc.ir import Builder, Graph, Node, Symbol, rename
from graphc.ir.graph import INPUT
from graphc.ops.dtypes import is_floating

Box = tuple[tuple[int, int], ...]  # (start, stop) along each axis

ALONG = frozenset({"softmax", "log_softmax", "argsort", "sort", "flip"})  # each row of `axis` by itself
CUMULATIONS = {"cumsum": "sum", "cumprod": "prod", "logcumsumexp": "logsumexp"}  # and what the last of each row is
REDUCTIONS = frozenset({"sum", "mean", "var", "prod", "amax", "amin", "any", "all", "argmax", "argmin", "logsumexp"})
LESS = 0.75  # of an array, at most, for a part to be worth the change


def narrow(graph: Graph) -> Graph:
    """`graph` without the parts of arrays that nobody reads. Rounds differently."""
    nodes = graph.nodes
    if not any(node.op.name == "slice" for node in nodes.values()):
        return graph
    boxes = _demanded(graph)
    if not any(_is_less(node, boxes.get(id), nodes) for id, node in nodes.items()):
        return graph
    return _Writer(graph, boxes).written()


def _is_less(node: Node, box: Box | None, nodes: Mapping[int, Node]) -> bool:
    """Whether a node that computes something is demanded in a part that is worth it."""
    if box is None or node.op.view or not _is_narrowed(node, nodes):
        return False
    return _volume(box) <= LESS * node.size / len(node.results)


def _volume(box: Box) -> int:
    total = 1
    for start, stop in box:
        total *= stop - start
    return total


def _whole(shape: Sequence[int]) -> Box:
    return tuple([(0, n) for n in shape])


def _is_narrowed(node: Node, nodes: Mapping[int, Node]) -> bool:
    """Whether a part of a node's result can be computed from parts of its operands."""
    op = node.op
    if op.name == "item":
        return _is_narrowed(nodes[node.inputs[0]], nodes)
    if (
        op.check is not None
        or op.impure
        or op.structured
        or not all(type(n) is int for r in node.results for n in r.shape)
    ):
        return False
    named = op.name in ALONG or op.name in CUMULATIONS or op.name in REDUCTIONS
    return op.pointwise or named or op.name in ("slice", "permute", "broadcast_to", "stop_gradient", "clone", "full")


# --- backwards


def _demanded(graph: Graph) -> dict[int, Box]:
    """The box of each node that is read."""
    nodes = graph.nodes
    boxes: dict[int, Box] = {}
    for id in graph.outputs:
        for aval in nodes[id].results[:1]:
            boxes[id] = _whole(aval.shape)
    for id, node in reversed(list(nodes.items())):
        if node.op.impure and id not in boxes:
            boxes[id] = _whole(node.results[0].shape)
        box = boxes.get(id)
        if box is None:
            continue
        box = boxes[id] = _computable(node, box)
        for k, i in enumerate(node.inputs):
            shape = nodes[i].results[0].shape
            part = _of_operand(node, box, k, shape) if _is_narrowed(node, nodes) else _whole(shape)
            known = boxes.get(i)
            if known is not None:
                pairs = zip(part, known, strict=True)
                part = tuple([(min(a[0], b[0]), max(a[1], b[1])) for a, b in pairs])
            boxes[i] = part
    return boxes


def _computable(node: Node, box: Box) -> Box:
    """The smallest box of a result with this one in it that can be computed by itself."""
    name = node.op.name
    if name not in CUMULATIONS and name not in ("softmax", "log_softmax", "argsort", "sort"):
        return box
    shape = node.results[0].shape
    (axis,) = _axes(node, len(shape))
    start, stop = box[axis]
    whole = 0, shape[axis]
    if name in CUMULATIONS:
        along = (start, stop) if stop - start == 1 else (start, whole[1]) if node.params.get("reverse") else (0, stop)
    else:
        along = (start, stop) if name == "sort" and _is_end(start, stop, shape[axis]) else whole
    return (*box[:axis], along, *box[axis + 1 :])


def _is_end(start: int, stop: int, size: int) -> bool:
    """Whether a part of sorted rows is their first element, or the last one."""
    return stop - start == 1 < size and start in (0, size - 1)


def _of_operand(node: Node, box: Box, k: int, shape: Sequence[int]) -> Box:
    """What a node reads of operand number k, of this shape, for a box of its result."""
    op, params = node.op, node.params
    if 0 in [stop - start for start, stop in box]:
        return _whole(shape)
    if op.pointwise or op.name in ("item", "stop_gradient", "clone", "broadcast_to"):
        near = box[len(box) - len(shape) :]
        return tuple([(0, 1) if n == 1 else b for n, b in zip(shape, near, strict=True)])
    if op.name == "slice":
        starts, steps = params["start"], params["step"]
        return tuple([
            (s + a * step, s + (b - 1) * step + 1) for (a, b), s, step in zip(box, starts, steps, strict=True)
        ])  # fmt: skip
    if op.name == "permute":
        part = [(0, 0)] * len(shape)
        for place, dim in enumerate(params["dims"]):
            part[dim] = box[place]
        return tuple(part)
    axes = _axes(node, len(shape))
    if op.name == "flip":
        return tuple(
            [(n - b, n - a) if d in axes else (a, b) for d, ((a, b), n) in enumerate(zip(box, shape, strict=True))]
        )
    if op.name in REDUCTIONS and not params["keepdims"]:
        rest = iter(box)
        return tuple([(0, n) if d in axes else next(rest) for d, n in enumerate(shape)])
    part = [(0, n) if d in axes else b for d, (b, n) in enumerate(zip(box, shape, strict=True))]
    if op.name in CUMULATIONS:
        (axis,) = axes
        start, stop = box[axis]
        part[axis] = (start, shape[axis]) if params.get("reverse") else (0, stop)
    return tuple(part)


def _axes(node: Node, rank: int) -> tuple[int, ...]:
    axis = node.params["axis"]
    return tuple([a % max(rank, 1) for a in (axis if isinstance(axis, tuple) else (axis,))])


# --- forwards


@final
class _Writer:
    """Writes a graph anew, each node on its box."""

    def __init__(self, graph: Graph, boxes: dict[int, Box]):
        self._graph = graph
        self._boxes = boxes
        self._builder = Builder()
        self._builder.next_id = max(graph.nodes) + 1
        self._new: dict[int, tuple[Any, Box]] = {}  # by node: a Symbol, or those of several results; and its box

    def written(self) -> Graph:
        graph, builder = self._graph, self._builder
        for id, node in graph.nodes.items():
            if node.op is INPUT:
                self._boxes.setdefault(id, _whole(node.shape))
            elif id not in self._boxes:
                continue
            builder.where, builder.scope = node.where, node.scope
            self._write(node)
        outputs = {id: self._part(id, _whole(graph.nodes[id].results[0].shape)).id for id in graph.outputs}
        return graph.replace(builder.nodes, rename(graph.result, outputs))

    def _write(self, node: Node) -> None:
        nodes = self._graph.nodes
        box, whole = self._boxes[node.id], _whole(node.results[0].shape)
        if node.op.name == "item" and type(self._new[node.inputs[0]][0]) is tuple:
            found, box = self._new[node.inputs[0]]
            self._new[node.id] = found[node.params["index"]], box
        elif (
            node.op.name != "item"
            and _is_narrowed(node, nodes)
            and (box != whole or any(self._is_partial(i) for i in node.inputs))
        ):
            self._new[node.id] = self._computed(node, box), box
        else:
            inputs = [i if nodes[i].op.several else self._part(i, _whole(nodes[i].shape)).id for i in node.inputs]
            self._builder.copy(node, tuple(inputs))
            self._new[node.id] = None if node.op.several else self._builder.symbol(node.id), whole

    def _is_partial(self, id: int) -> bool:
        return self._new[id][1] != _whole(self._graph.nodes[id].results[0].shape)

    def _part(self, id: int, box: Box) -> Symbol:
        """A box of a node, out of the one that has been computed."""
        found, there = self._new[id]
        if box == there:
            return found
        starts, stops = zip(*[(a - c, b - c) for (a, b), (c, _) in zip(box, there, strict=True)], strict=True)
        return self._builder.language.slice(found, start=starts, stop=stops, step=(1,) * len(box))

    def _computed(self, node: Node, box: Box) -> Any:
        """A box of a node's result, or of each."""
        F, name, params = self._builder.language, node.op.name, node.params
        sizes = tuple([stop - start for start, stop in box])
        if name == "full":
            return F.full(shape=sizes, value=params["value"], dtype=params["dtype"])
        if name in (*CUMULATIONS, "sort"):
            return self._ordered(node, box)
        nodes = self._graph.nodes
        parts = [self._part(i, _of_operand(node, box, k, nodes[i].results[0].shape)) for k, i in enumerate(node.inputs)]
        if name == "slice":
            stop = parts[0].shape
            steps = params["step"]
            return parts[0] if set(steps) <= {1} else F.slice(parts[0], start=(0,) * len(stop), stop=stop, step=steps)
        if name == "broadcast_to":
            return F.broadcast_to(parts[0], shape=sizes)
        return self._builder.emit(node.op, parts, params)

    def _ordered(self, node: Node, box: Box) -> Any:
        """What depends on the order along an axis: a single element of each row is found without the others."""
        F, name, params = self._builder.language, node.op.name, node.params
        (operand,) = node.inputs
        shape = self._graph.nodes[operand].shape
        (axis,) = _axes(node, len(shape))
        part = self._part(operand, _of_operand(node, box, 0, shape))
        start, stop = box[axis]
        if name == "sort" and _is_end(start, stop, shape[axis]):
            return _extreme(F, part, axis, first=start == 0, descending=params["descending"])
        if name == "sort":
            return self._builder.emit_several(node.op, [part], params)
        if stop - start == 1:
            return getattr(F, CUMULATIONS[name])(part, axis=(axis,), keepdims=True)
        return self._builder.emit(node.op, [part], params)


def _extreme(F: Any, x: Symbol, axis: int, *, first: bool, descending: bool) -> tuple[Symbol, Symbol]:
    """The first or last element of sorted rows, and its place: equal elements keep their order, nan is largest."""
    largest = first == descending
    if largest:
        value = F.amax(x, axis=(axis,), keepdims=True)
    else:
        value = x
        if is_floating(x.dtype):
            nan = F.isnan(x)
            value = F.where(nan, float("inf"), x)
            value = F.where(F.all(nan, axis=(axis,), keepdims=True), x, value)
        value = F.amin(value, axis=(axis,), keepdims=True)
    same = F.eq(x, value)
    if is_floating(x.dtype):
        same = F.logical_or(same, F.logical_and(F.isnan(x), F.isnan(value)))
    count = x.shape[axis]
    hits = F.cast(same, dtype=np.dtype(np.int32))
    if first:
        return value, F.argmax(hits, axis=axis, keepdims=True)
    return value, count - 1 - F.argmax(F.flip(hits, axis=(axis,)), axis=axis, keepdims=True)
