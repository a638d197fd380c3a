"""Which images of a program have their channels last, and where they change their form.

In a graph an image is (N, C, *spatial). XLA's convolutions and pools want (N, *spatial, C) (`graphc.lowering.windows`);
between them, what does not care which dimension stands where is computed in the same form, if that saves copies. Which
operations those are is a minimum cut: windows have channels last, inputs, outputs and all other operations have them
first, and each value that is read in the other form costs its size.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from graphc.ir import INPUT, Graph, Node, rename
from graphc.ir.cut import NEVER, SINK, SOURCE, second_half
from graphc.ir.structure import map_bodies
from graphc.lowering.windows import WINDOWS, images_of
from graphc.ops import OPS, Op
from graphc.ops.aval import Aval
from graphc.ops.rules import same

_PERMUTE, _RESHAPE, _EXPAND = OPS["permute"], OPS["reshape"], OPS["broadcast_to"]
# parameters, by what they say of dimensions: which; something for each; or nothing
_WHICH, _EACH = {"axis"}, {"low", "high", "interior", "start", "stop", "step"}
_NOTHING = {"keepdims", "correction", "eps", "dtype", "reverse", "descending"}


class _Form(NamedTuple):
    """How an operation can be computed with channels last.

    rank     of its images
    images   the numbers of the operands that are images
    returns  whether its result is one
    """

    rank: int
    images: tuple[int, ...]
    returns: bool


def channels_last(graph: Graph) -> Graph:
    """`graph` as it is to be lowered: windows have the parameter `channels_last`, and images like that."""
    graph = map_bodies(graph, channels_last)
    if not any(node.op.name in WINDOWS for node in graph.nodes.values()):
        return graph
    forms = {id: form for id, node in graph.nodes.items() if (form := _form(graph, node)) is not None}
    return _Arranged(graph, forms, _chosen(graph, forms)).graph()


def _form(graph: Graph, node: Node) -> _Form | None:
    op, nodes = node.op, graph.nodes
    if op.name in WINDOWS:
        images, returns = images_of(op.name)
        return _Form(nodes[node.inputs[images[0]]].aval.ndim, images, returns)
    if (
        op.several
        or op.structured
        or op.impure
        or node.check is not None
        or any(nodes[i].op.several for i in node.inputs)
    ):
        return None
    ranks = [nodes[i].aval.ndim for i in node.inputs]
    rank = max(ranks, default=0)
    images = tuple(k for k, r in enumerate(ranks) if r == rank)
    if rank < 3 or not (_broadcasts(op) or (len(images) == len(ranks) and _says_which(op))):
        return None
    if node.aval.ndim == rank:
        return _Form(rank, images, True)
    if "axis" not in op.params or node.aval.ndim > rank:
        return None
    kept = [k for k in _order(rank) if k not in _numbers(node.params["axis"], rank)]
    return _Form(rank, images, False) if kept == sorted(kept) else None


def _broadcasts(op: Op) -> bool:
    """Whether dimensions of operands are aligned from the last on, and nothing else is said of them."""
    return op.pointwise or (op.rule is same and not op.params) or op is _EXPAND


def _says_which(op: Op) -> bool:
    """Whether all that is said of dimensions is in parameters that are understood here."""
    return bool(op.params.keys() & (_WHICH | _EACH)) and op.params.keys() <= _WHICH | _EACH | _NOTHING


def _numbers(axis: Any, rank: int) -> tuple[int, ...]:
    return tuple(k % rank for k in ((axis,) if isinstance(axis, int) else axis))


def _order(rank: int) -> tuple[int, ...]:
    """The dimensions of an image with channels last, by their numbers in a graph."""
    return (0, *range(2, rank), 1)


def _params(node: Node, rank: int) -> dict[str, Any]:
    """The parameters of `node` for images with their channels last."""
    order = _order(rank)

    def of(name: str, value: Any) -> Any:
        if name in _WHICH:
            found = tuple(sorted(order.index(k) for k in _numbers(value, rank)))
            return found[0] if isinstance(value, int) else found
        return tuple(value[k] for k in order) if name in _EACH or node.op is _EXPAND else value

    return {name: of(name, value) for name, value in node.params.items()}


def _chosen(graph: Graph, forms: Mapping[int, _Form]) -> set[int]:
    """The nodes to compute with channels last."""
    nodes = graph.nodes
    number = {id: k for k, id in enumerate(forms, 2)}
    edges: list[tuple[int, int, int]] = []
    for id, node in nodes.items():
        form, here = forms.get(id), number.get(id, SOURCE)
        if node.op.name in WINDOWS:
            edges.append((here, SINK, NEVER))
        for k, i in enumerate(node.inputs):
            there = number[i] if i in forms and forms[i].returns else SOURCE
            free = nodes[i].op is not INPUT and not nodes[i].inputs  # a constant
            if here != there and not free and (form is None or k in form.images):
                edges += [(a, b, nodes[i].size) for a, b in ((here, there), (there, here)) if b != SOURCE]
    edges += [(SOURCE, number[id], nodes[id].size) for id in graph.outputs if id in forms and forms[id].returns]
    second = second_half(edges, len(number) + 2)
    return {id for id, k in number.items() if second[k]}


class _Arranged:
    """The graph with the nodes `last` computed with channels last. Each value is turned once."""

    def __init__(self, graph: Graph, forms: Mapping[int, _Form], last: set[int]):
        self._graph, self._forms, self._last = graph, forms, last
        self._nodes: dict[int, Node] = {}
        self._next = max(graph.nodes) + 1
        self._turns: dict[tuple[int, bool], int] = {}  # value, and whether channels are last -> the node that has it so

    def graph(self) -> Graph:
        for id, node in self._graph.nodes.items():
            self._nodes[id] = self._arranged(node) if id in self._last else node.on(self._first(node.inputs))
        outputs = self._graph.outputs
        renamed = rename(self._graph.result, dict(zip(outputs, self._first(outputs), strict=True)))
        return self._graph.replace(self._nodes, renamed)

    def _first(self, ids: tuple[int, ...]) -> tuple[int, ...]:
        """The values with channels first."""
        return tuple([self._turned(i, False) if self._is_last(i) else i for i in ids])

    def _is_last(self, id: int) -> bool:
        return id in self._last and self._forms[id].returns

    def _arranged(self, node: Node) -> Node:
        form = self._forms[node.id]
        if node.op.name in WINDOWS:
            inputs = [self._image(i, form.rank) if k in form.images else i for k, i in enumerate(node.inputs)]
            params = {**node.params, "channels_last": True}
        else:
            inputs = [self._image(i, form.rank) for i in node.inputs]
            params = _params(node, form.rank)
        results = (_permuted(node.aval, _order(form.rank)),) if form.returns else node.results
        return Node(node.id, node.op, tuple(inputs), params, results, node.where, node.scope)

    def _image(self, id: int, rank: int) -> int:
        """The value with channels last; one that is broadcast as an image that is."""
        aval = self._graph.nodes[id].aval
        if aval.ndim == 0:
            return id
        if aval.ndim == rank:
            return id if self._is_last(id) else self._turned(id, True)
        (first,), shape = self._first((id,)), (*(1,) * (rank - aval.ndim), *aval.shape)
        return self._turned(self._appended(_RESHAPE, first, {"shape": shape}, Aval(shape, aval.dtype)), True)

    def _turned(self, id: int, last: bool) -> int:
        if (id, last) not in self._turns:
            aval = self._nodes[id].aval
            order = _order(aval.ndim)
            dims = order if last else tuple(order.index(k) for k in range(aval.ndim))
            self._turns[id, last] = self._appended(_PERMUTE, id, {"dims": dims}, _permuted(aval, dims))
        return self._turns[id, last]

    def _appended(self, op: Op, id: int, params: dict[str, Any], aval: Aval) -> int:
        old = self._nodes[id]
        self._nodes[self._next] = Node(self._next, op, (id,), params, (aval,), old.where, old.scope)
        self._next += 1
        return self._next - 1


def _permuted(aval: Aval, dims: tuple[int, ...]) -> Aval:
    return Aval(tuple(aval.shape[k] for k in dims), aval.dtype)
