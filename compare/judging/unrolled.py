"""Control flow without control flow: the operations that it runs on given operands, one after the other, as a graph.

Its gradient is that of the ops alone: the rules for control flow have no part in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, final

import numpy as np

from graphc.ir import Builder, Graph, Node, Ref, Symbol
from graphc.ir.structure import ITEM, SCAN, SWITCH, WHILE
from graphc.ops import Op
from graphc.ops.aval import aval_of
from graphc.ops.interpret import run_kernel

NODES = 10_000  # more are not written down


class TooLong(Exception):
    """There are more operations than may be written down."""


class _Known(NamedTuple):
    """A node that is being written, and its value: control flow goes by values."""

    symbol: Symbol
    value: Any


def unrolled(graph: Graph, arrays: Sequence[np.ndarray], most: int = NODES) -> Graph:
    """`graph` as it runs on `arrays`, without switches, loops and scans. Raises TooLong beyond `most` nodes."""
    return _Unrolling(most).of(graph, arrays)


@final
class _Unrolling:
    def __init__(self, most: int):
        self._builder, self._most = Builder(), most

    def of(self, graph: Graph, arrays: Sequence[np.ndarray]) -> Graph:
        names = graph.input_names
        inputs = [self._builder.input(name, aval_of(a)) for name, a in zip(names, arrays, strict=True)]
        found = self._run(graph, [_Known(s, a) for s, a in zip(inputs, arrays, strict=True)])
        return self._builder.graph(graph.name, tuple(Ref(known.symbol.id) for known in found))

    def _run(self, graph: Graph, given: Sequence[_Known]) -> list[_Known]:
        values: dict[int, Any] = dict(zip(graph.inputs, given, strict=True))
        for node in graph.operations():
            operands = [values[i] for i in node.inputs]
            if node.op in _FORMS:
                values[node.id] = _FORMS[node.op](self, node.params, operands)
            elif node.op is ITEM and isinstance(operands[0], list):
                values[node.id] = operands[0][node.params["index"]]
            else:
                values[node.id] = self._node(node, operands)
        return [values[id] for id in graph.outputs]

    def _node(self, node: Node, operands: Sequence[_Known]) -> _Known:
        builder = self._builder
        if builder.next_id > self._most:
            raise TooLong
        builder.where, builder.scope = node.where, node.scope
        id = builder.append(node.op, tuple(known.symbol.id for known in operands), node.params, node.results)
        return _Known(builder.symbol(id), run_kernel(node.op, [known.value for known in operands], node.params))

    def switch(self, params: Mapping[str, Any], operands: list[_Known]) -> list[_Known]:
        branches = params["branches"]
        return self._run(branches[min(max(int(operands[0].value), 0), len(branches) - 1)], operands[1:])

    def while_loop(self, params: Mapping[str, Any], operands: list[_Known]) -> list[_Known]:
        fixed, carry = operands[: params["consts"]], operands[params["consts"] :]
        while self._run(params["condition"], [*fixed, *carry])[0].value:
            carry = self._run(params["body"], [*fixed, *carry])
        return carry

    def scan(self, params: Mapping[str, Any], operands: list[_Known]) -> list[_Known]:
        body, carries, first_x = params["body"], params["carries"], params["consts"] + params["carries"]
        fixed, carry, xs = operands[: params["consts"]], operands[params["consts"] : first_x], operands[first_x:]
        rows: list[list[_Known]] = []
        steps = range(params["length"])
        for i in reversed(steps) if params["reverse"] else steps:
            results = self._run(body, [*fixed, *carry, *(self._row(x, i) for x in xs)])
            carry = results[:carries]
            rows.append(results[carries:])
        columns = zip(*(reversed(rows) if params["reverse"] else rows), strict=True)
        avals = body.output_avals()[carries:]
        return [*carry, *([self._stacked(c) for c in columns] if rows else [self._empty(a) for a in avals])]

    def _row(self, x: _Known, i: int) -> _Known:
        F, rest = self._builder.language, tuple(x.value.shape[1:])
        row = F.slice(x.symbol, start=(i, *(0 for _ in rest)), stop=(i + 1, *rest), step=(1, *(1 for _ in rest)))
        return _Known(F.reshape(row, shape=rest), x.value[i])

    def _stacked(self, rows: Sequence[_Known]) -> _Known:
        F = self._builder.language
        parts = [F.reshape(r.symbol, shape=(1, *r.value.shape)) for r in rows]
        return _Known(F.cat(*parts, axis=0), np.stack([r.value for r in rows]))

    def _empty(self, aval: Any) -> _Known:
        shape = (0, *aval.shape)
        symbol = self._builder.language.full(shape=shape, value=0, dtype=aval.dtype)
        return _Known(symbol, np.empty(shape, aval.dtype))


_FORMS: Mapping[Op, Callable[[_Unrolling, Mapping[str, Any], list[_Known]], list[_Known]]] = {
    SWITCH: _Unrolling.switch,
    WHILE: _Unrolling.while_loop,
    SCAN: _Unrolling.scan,
}
