"""A repeat as the body of a loop.

Its operands are read in columns, one node a step. A column of one node is a constant of the loop. What the step before
has computed is a carry. Views are taken into the body, where those of all steps are alike. What is left are the xs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, final

from graphc.ir import INPUT, Builder, Graph, Node, Ref, Symbol
from graphc.passes.dce import eliminate_dead_code
from graphc.passes.repeats import Repeat, views

Column = tuple[int, ...]
DEEP = 32  # views of views of one operand
BACK = 4  # steps back that are read


class Unfit(Exception):
    """Steps that are alike, and yet no loop: they read what is no carry."""


class Carry(NamedTuple):
    """What is passed on: the column, whose first node it begins with, and that of the step after, of which it is
    perhaps a view."""

    column: Column
    end: Column
    views: tuple[int, ...]

    @property
    def initial(self) -> int:
        return self.column[0]


@final
class Loop:
    """A repeat as the body of a loop.

    carries, leaves   the columns that are carried, and those that are stacked to xs
    symbols           column -> its value in the body
    """

    def __init__(self, graph: Graph, repeat: Repeat):
        self._graph = graph
        self.repeat = repeat
        self.count = len(repeat.steps)
        self.place = {id: (k, j) for k, step in enumerate(repeat.steps) for j, id in enumerate(step)}
        self.builder = Builder()
        self.consts: list[int] = []
        self.carries: list[Carry] = []
        self.leaves: list[Column] = []
        self.symbols: dict[Column, Symbol] = {}
        self._inputs: dict[int, list[Symbol]] = {0: [], 1: [], 2: []}
        for column in zip(*repeat.steps, strict=True):
            self._copy(column, [self._symbol(operands) for operands in self._operands(column)])
        self.ends: list[Symbol] = []
        self.last: dict[int, int] = {}  # operation -> the carry that ends with its last value
        for k, carry in enumerate(self.carries):  # what a carry ends with may be another
            self.ends.append(self.viewed(carry.end, carry.views))
            if carry.end[-1] in self.place and not carry.views:
                step, operation = self.place[carry.end[-1]]
                if step == self.count - 1:
                    self.last[operation] = k

    def column(self, place: int) -> Column:
        """Operation number `place` of all steps."""
        return tuple([step[place] for step in self.repeat.steps])

    def _operands(self, column: Column) -> Iterator[Column]:
        return zip(*[self._graph.nodes[id].inputs for id in column], strict=True)

    def _copy(self, column: Column, operands: Sequence[Symbol]) -> Symbol:
        symbol = self.symbols[column] = self._append(self._graph.nodes[column[0]], operands)
        return symbol

    def _append(self, node: Node, operands: Sequence[Symbol]) -> Symbol:
        builder = self.builder
        builder.where, builder.scope = node.where, node.scope
        return builder.symbol(builder.append(node.op, tuple([s.id for s in operands]), node.params, node.results))

    def _symbol(self, column: Column, depth: int = 0) -> Symbol:
        """The value of a column in the body. Raises Unfit."""
        known = self.symbols.get(column)
        if known is not None:
            return known
        nodes = self._graph.nodes
        node = nodes[column[0]]
        if len(set(column)) == 1:
            if node.inputs or node.op is INPUT:
                self._check_outside(column)
                self.consts.append(column[0])
                return self._input(0, column)
            return self._copy(column, ())
        if depth < DEEP and self.views_alike(column):
            (operands,) = self._operands(column)
            return self._copy(column, [self._symbol(operands, depth + 1)])
        if (carry := self._carry(column)) is not None:
            self._check_outside(column[:1])
            self.carries.append(carry)
            return self._input(1, column)
        self._check_outside(column)
        self.leaves.append(column)
        return self._input(2, column)

    def _input(self, kind: int, column: Column) -> Symbol:
        node = self._graph.nodes[column[0]]
        self.builder.where, self.builder.scope = node.where, node.scope
        name = f"{('fixed', 'carry', 'row')[kind]}_{len(self._inputs[kind])}"
        symbol = self.symbols[column] = self.builder.input(name, node.aval)
        self._inputs[kind].append(symbol)
        return symbol

    def views_alike(self, column: Column) -> bool:
        nodes = self._graph.nodes
        first = nodes[column[0]]
        if not views(first):
            return False
        key = first.key(())
        return all(nodes[i].op is first.op and nodes[i].results == first.results and nodes[i].key(()) == key
                   for i in column[1:])  # fmt: skip

    def _carry(self, column: Column) -> Carry | None:
        """`column` as what the step before has computed, in the same place of each."""
        later, views = column[1:], list[int]()
        while later[0] not in self.place and self.views_alike(later):
            views.append(later[0])
            (later,) = self._operands(later)
            if len(views) > DEEP:
                return None
        where = self.place.get(later[-1])
        if where is None or not 1 <= (back := self.count - 1 - where[0]) <= BACK:
            return None
        computed = self.column(where[1])
        end = (*later, computed[self.count - back])
        if end != computed and (views or back == 1):
            return None
        return Carry(column, end, tuple(reversed(views)))  # what was computed earlier is carried from carry to carry

    def viewed(self, column: Column, views: Iterable[int]) -> Symbol:
        """The value of a column in the body, as `views` show it."""
        symbol = self._symbol(column)
        for id in views:
            symbol = self._append(self._graph.nodes[id], [symbol])
        return symbol

    def _check_outside(self, column: Iterable[int]) -> None:
        """Raise Unfit if one of the nodes is computed in the loop."""
        nodes = self._graph.nodes
        for id in column:
            while views(nodes[id]):
                id = nodes[id].inputs[0]
            if id in self.place:
                raise Unfit

    def body(self, ys: Sequence[Symbol], optimize: Callable[[Graph], Graph]) -> Graph:
        results = tuple(Ref(s.id) for s in (*self.ends, *ys))
        inputs = [s.id for kind in self._inputs.values() for s in kind]
        return optimize(eliminate_dead_code(self.builder.graph("step", results, inputs)))
