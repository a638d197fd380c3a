"""A graph whose batch is computed a part at a time: data parallelism over time instead of over devices.

What `propagate` finds for a mesh axis holds for the turns of a loop as well: a value that is split over the axis is
computed a part in each turn, an all-reduce is a sum over the turns. What does not depend on the batch, and what comes
after the sums (an optimizer's update), stays outside.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, final

from graphc.errors import FEEDS_BACK, MicrobatchError
from graphc.ir import INPUT, Graph, Node, Ref
from graphc.ir.builder import Builder, Symbol
from graphc.ir.definitions import without_composites
from graphc.ir.structure import ITEM, SCAN, ancestors
from graphc.ops import OPS, Trait
from graphc.ops.aval import Aval
from graphc.sharding.by_parts import local_params
from graphc.sharding.correspondence import Correspondence, coefficient, correspondence
from graphc.sharding.mesh import Mesh
from graphc.sharding.propagation import propagate
from graphc.sharding.sharding import Sharding

_AXIS = "microbatch"
_MUL, _RESHAPE = OPS["mul"], OPS["reshape"]


class _Kind(enum.Enum):
    WHOLE = enum.auto()
    PART = enum.auto()  # each turn has a part of it
    TERM = enum.auto()  # each turn has a term of it


@final
class _Form(NamedTuple):
    """How a node is computed.

    operands  the dim of each operand that is split, or None
    dims      the dim of each result that is split
    params, results  of a turn
    factor    of the sum of terms: 1 / turns, of a mean
    """

    kind: _Kind
    operands: tuple[int | None, ...] = ()
    dims: tuple[int | None, ...] = ()
    params: Mapping[str, Any] = {}
    results: tuple[Aval, ...] = ()
    factor: float = 1.0


_WHOLE = _Form(_Kind.WHOLE)


def over_time(graph: Graph, batch: Collection[int], loose: Collection[int], turns: int) -> Graph:
    """The same program, with nodes of the same ids for its outputs, as a loop over `turns` parts of the batch.

    batch  inputs that are split along dim 0, a multiple of `turns`
    loose  inputs that may be split along any dim, or stay whole: random numbers

    Raises MicrobatchError where a value that takes the whole batch is needed for its parts, as statistics of a batch.
    """
    return _Loop(without_composites(graph), batch, loose, turns).graph()


@final
class _Loop:
    """What is computed in a turn, and what outside: found from the outputs backwards."""

    def __init__(self, graph: Graph, batch: Collection[int], loose: Collection[int], turns: int):
        self._graph, self._turns = graph, turns
        mesh = Mesh((turns,), (_AXIS,))
        known = {i: Sharding.whole(len(graph.nodes[i].shape)) for i in graph.inputs if i not in loose}
        known |= {i: Sharding(((_AXIS,), *((),) * (len(graph.nodes[i].shape) - 1))) for i in batch}
        found = propagate(graph, mesh, known)
        self._forms: dict[int, _Form] = {}
        for node in graph.operations():
            chosen = found.computed.get(node.id, {})
            self._forms[node.id] = self._form(node, {w for w, axes in chosen.items() if axes})
        state = {i for i in graph.inputs if i not in batch and i not in loose}
        self._bound = {*state}  # what depends on state; the rest can be computed of the whole batch, at little cost
        for node in graph.operations():
            if not self._bound.isdisjoint(node.inputs):
                self._bound.add(node.id)
        self._finish_whole()
        self._outside: set[int] = set()
        self._inside: set[int] = set()
        self._totals: dict[int, None] = {}
        self._stacked: dict[int, None] = {}
        self._rows: dict[tuple[int, int], int] = {}  # (what is split, along which dim) -> who needs it
        self._consts: dict[int, int] = {}
        self._demand()

    def _form(self, node: Node, split: set[Any]) -> _Form:
        nodes, op = self._graph.nodes, node.op
        if op is ITEM:
            source = self._forms[node.inputs[0]]
            k = node.params["index"]
            if source.kind is not _Kind.PART or source.dims[k] is None:
                return _WHOLE
            return _Form(_Kind.PART, (None,), (source.dims[k],), node.params, (source.results[k],))
        if not split or op.impure or op.structured:
            return _WHOLE
        c = correspondence(node, nodes)
        operands, dims = (tuple(_place(labels, split) for labels in side) for side in (c.operands, c.results))
        kind = _Kind.TERM if any(d is None for d in dims) else _Kind.PART
        if kind is _Kind.TERM and (op.several or c.added or any(c.reduced.get(w) != "sum" for w in split)):
            return _WHOLE
        form = _Form(kind, operands, dims)
        return self._of_a_turn(node, form, c, split) or _WHOLE

    def _of_a_turn(self, node: Node, form: _Form, c: Correspondence, split: set[Any]) -> _Form | None:
        """`form` with what a turn computes. None if the op says that it makes another thing of parts."""
        if any(self._graph.nodes[i].op.several for i in node.inputs) or len(form.operands) != len(node.inputs):
            return None
        shapes = [self._graph.nodes[i].aval for i in node.inputs]
        given = [self._part(a, d) for a, d in zip(shapes, form.operands, strict=True)]
        params = node.params if node.op.several else local_params(node, c, dict.fromkeys(split, self._turns))
        wanted = tuple(self._part(a, d) for a, d in zip(node.results, form.dims, strict=True))
        try:
            made = node.op.rule.infer(node.op, given, params)
        except (TypeError, ValueError, RuntimeError, IndexError):  # as shape rules refuse
            return None
        if (made if node.op.several else (made,)) != wanted:
            return None
        whole, own = (coefficient(node.op, [a.shape for a in avals], p) for avals, p in
                      ((shapes, node.params), (given, params)))  # fmt: skip
        factor = float(whole / own) if form.kind is _Kind.TERM else 1.0
        return form._replace(params=params, results=wanted, factor=factor)

    def _part(self, aval: Aval, dim: int | None) -> Aval:
        if dim is None:
            return aval
        shape = aval.shape
        return Aval((*shape[:dim], shape[dim] // self._turns, *shape[dim + 1 :]), aval.dtype)

    def _finish_whole(self) -> None:
        """Let what is done with parts after a sum, and takes no further product or sum, be done after the loop.

        So an update of a parameter that has a row for each sample; not what follows statistics of a batch.
        """
        nodes = self._graph.nodes
        needed = ancestors(nodes, self._graph.outputs)
        late: list[Node] = []
        after: set[int] = set()
        for node in self._graph.operations():
            form = self._forms[node.id]
            if node.id not in needed or node.id not in self._bound:
                continue
            if not after.isdisjoint(node.inputs):
                late.append(node)
                after.add(node.id)
            elif form.kind is _Kind.TERM or (form.kind is _Kind.WHOLE and any(map(self._is_part, node.inputs))):
                after.add(node.id)
        feeding: set[int] = set()  # sums, or products, of the batch
        for node in reversed(late):
            form = self._forms[node.id]
            split = form.kind is not _Kind.WHOLE
            if node.id in feeding or (split and (form.kind is _Kind.TERM or node.op.traits & Trait.CONTRACTS)):
                feeding.update((node.id, *node.inputs))
            elif split:
                self._forms[node.id] = _WHOLE

    def _is_part(self, id: int) -> bool:
        return id in self._forms and self._forms[id].kind is _Kind.PART

    def _demand(self) -> None:
        todo: list[tuple[int, int | None, int]] = [(id, None, -1) for id in self._graph.outputs]
        seen: set[tuple[int, int | None, bool]] = set()
        while todo:
            id, dim, by = todo.pop()
            turn = by >= 0 and by in self._inside
            if (id, dim, turn) not in seen:
                seen.add((id, dim, turn))
                todo += self._needed(id, dim, by, turn)
        late = self._late()
        for id, by in [*self._consts.items(), *((i, by) for (i, _), by in self._rows.items())]:
            if id in late:
                raise self._error(id, by)

    def _needed(self, id: int, dim: int | None, by: int, turn: bool) -> list[tuple[int, int | None, int]]:
        """Let node `id` be there: of a `turn`, all of it or its part along `dim`; or outside. Returns what that needs.

        A need is a node, the dim of it that is split, and the node that needs it.
        """
        node = self._graph.nodes[id]
        form = self._forms.get(id, _WHOLE)
        if turn:
            if node.op.several:
                return self._in_a_turn(node, form)
            if dim is not None and form.kind is _Kind.PART and form.dims[0] == dim:
                return self._in_a_turn(node, form)
            if dim is None:
                self._consts.setdefault(id, by)
            else:
                self._rows.setdefault((id, dim), by)
        if node.op is INPUT:
            return []
        if form.kind is _Kind.WHOLE or id not in self._bound:
            self._outside.add(id)
            return [(i, None, -1) for i in node.inputs]
        (self._totals if form.kind is _Kind.TERM else self._stacked)[id] = None
        return self._in_a_turn(node, form)

    def _in_a_turn(self, node: Node, form: _Form) -> list[tuple[int, int | None, int]]:
        self._inside.add(node.id)
        return [(i, d, node.id) for i, d in zip(node.inputs, form.operands, strict=True)]

    def _late(self) -> set[int]:
        """What there is after the loop only."""
        late = {*self._totals, *self._stacked}
        for node in self._graph.operations():
            if node.id in self._outside and not late.isdisjoint(node.inputs):
                late.add(node.id)
        return late

    def _error(self, id: int, by: int) -> MicrobatchError:
        nodes = self._graph.nodes
        before = ancestors(nodes, [id])
        over = next(nodes[i] for i in nodes if i in before and (i in self._totals or i in self._stacked))
        whole = next((n for n in self._graph.operations() if n.id in before and n.id in self._outside
                      and over.id in n.inputs and over.id in self._stacked), over)  # fmt: skip
        return MicrobatchError(
            FEEDS_BACK.format(
                name=self._graph.name, count=self._turns, op=whole.op.name, where=_where(whole),
                user=nodes[by].op.name, there=_where(nodes[by]),
            )
        )  # fmt: skip

    def graph(self) -> Graph:
        """The graph with the loop; as it was if there is nothing to loop over."""
        old = self._graph
        if not self._totals and not self._stacked:
            return old
        builder, late = Builder(), self._late()
        builder.next_id = max(old.nodes) + 1
        for id in old.inputs:
            builder.copy(old.nodes[id], ())
        early = [n for n in old.operations() if n.id in self._outside]
        for node in early:
            if node.id not in late:
                builder.copy(node, node.inputs)
        self._emit_loop(builder)
        for node in early:
            if node.id in late:
                builder.copy(node, node.inputs)
        return old.replace(builder.nodes, old.result)

    def _emit_loop(self, builder: Builder) -> None:
        nodes, language = self._graph.nodes, builder.language
        consts = [builder.symbol(i) for i in self._consts]
        totals = [nodes[id] for id in self._totals]
        zeros = [language.full(shape=n.shape, value=0, dtype=n.dtype) for n in totals]
        rows = [self._in_rows(builder, id, dim) for id, dim in self._rows]
        operands = [*consts, *zeros, *rows]
        params = {"body": self._body(), "consts": len(consts), "carries": len(zeros), "length": self._turns,
                  "reverse": False, "unroll": 1}  # fmt: skip
        results = SCAN.rule.infer(SCAN, [s.aval for s in operands], params)
        scan = builder.append(SCAN, tuple(s.id for s in operands), params, results)
        for k, node in enumerate(totals):
            factor = self._forms[node.id].factor
            last = Node(node.id, ITEM, (scan,), {"index": k}, node.results, node.where, node.scope)
            if factor != 1:
                pair = builder.item(scan, k), builder.number(factor, node.dtype)
                last = Node(node.id, _MUL, tuple(s.id for s in pair), {}, node.results, node.where, node.scope)
            builder.nodes[node.id] = last
        for k, id in enumerate(self._stacked, len(totals)):
            self._out_of_rows(builder, nodes[id], builder.item(scan, k))

    def _in_rows(self, builder: Builder, id: int, dim: int) -> Symbol:
        """The parts of a value along `dim`, as the rows of an array."""
        value = builder.symbol(id)
        shape = value.shape
        cut = (*shape[:dim], self._turns, shape[dim] // self._turns, *shape[dim + 1 :])
        parts = builder.language.reshape(value, shape=cut)
        order = (dim, *(d for d in range(len(cut)) if d != dim))
        return parts if not dim else builder.language.permute(parts, dims=order)

    def _out_of_rows(self, builder: Builder, node: Node, rows: Symbol) -> None:
        """Put the parts, which are rows, together again: node `node.id`."""
        dim = self._forms[node.id].dims[0]
        assert dim is not None
        order = (*range(1, dim + 1), 0, *range(dim + 1, len(rows.shape)))
        parts = rows if not dim else builder.language.permute(rows, dims=order)
        params = {"shape": node.shape}
        builder.nodes[node.id] = Node(
            node.id, _RESHAPE, (parts.id,), params, node.results, node.where, node.scope
        )  # fmt: skip

    def _body(self) -> Graph:
        """What a turn computes of constants, the sums so far and its rows."""
        nodes, builder = self._graph.nodes, Builder()
        consts = {i: builder.input(f"const_{i}", nodes[i].aval) for i in self._consts}
        sums = {i: builder.input(f"sum_{i}", nodes[i].aval) for i in self._totals}
        rows = {(i, d): builder.input(f"part_{i}", self._part(nodes[i].aval, d)) for i, d in self._rows}
        made: dict[int, int] = {}
        for id, node in nodes.items():
            if id not in self._inside:
                continue
            form = self._forms[id]
            builder.where, builder.scope = node.where, node.scope
            given: list[int] = []
            for i, d in zip(node.inputs, form.operands, strict=True):
                outer = None if nodes[i].op.several else consts.get(i) if d is None else rows.get((i, d))
                given.append(made[i] if outer is None else outer.id)
            made[id] = builder.append(node.op, tuple(given), form.params, form.results)
        added = [builder.language.add(s, builder.symbol(made[i])) for i, s in sums.items()]
        returned = (*added, *(builder.symbol(made[i]) for i in self._stacked))
        return builder.graph(f"{self._graph.name}_part", tuple(Ref(s.id) for s in returned))


def _place(labels: Sequence[Any], split: set[Any]) -> int | None:
    return next((d for d, w in enumerate(labels) if w in split), None)


def _where(node: Node) -> str:
    return f"{node.where}{f' [{node.scope}]' if node.scope else ''}"
