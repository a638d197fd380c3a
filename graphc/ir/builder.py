"""Making graphs: a Builder appends nodes, a Symbol stands for one's value, Language is the op language on Symbols."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, final

import numpy as np

from graphc import errors
from graphc.ir.calling import Call
from graphc.ir.graph import INPUT, Graph, Node
from graphc.ir.history import TracedNode, traced_node
from graphc.ops import OPS, Literal, Op
from graphc.ops.aval import Aval, aval_of
from graphc.ops.dims import Dim, is_dim
from graphc.ops.dtypes import of_scalar, scalar_array
from graphc.ops.interpret import operand_dtype, with_defaults
from graphc.ops.operators import OperatorMixin
from graphc.ops.stand_in import StandIn

_CAST, _ITEM = OPS["cast"], OPS["item"]
_CONSTANT, _FULL = OPS["constant"], OPS["full"]
_NO_PARAMS: Mapping[str, Any] = {}
_TAKEN = "fd"  # characters of the dtypes that no op refuses, nor Python numbers beside them: float32 and float64


@final
class Symbol(OperatorMixin, StandIn):
    """The value of a node of a graph under construction: operators, a shape and a dtype, and no values."""

    __slots__ = ("aval", "builder", "id")
    captured = True

    def __init__(self, builder: Builder, id: int, aval: Aval):
        self.builder = builder
        self.id = id
        self.aval = aval

    @property
    def shape(self) -> tuple[int, ...]:
        return self.aval.shape

    @property
    def dtype(self) -> np.dtype:
        return self.aval.dtype

    def _apply(self, name: str, *operands: Any) -> Symbol:
        return self.builder.apply(OPS[name], operands, _NO_PARAMS)

    # What a Tensor asks, which `Builder.reader` answers: a Symbol has no values to give.

    def force(self, tensor: Any) -> np.ndarray:
        return self._reader("reading the values").array_of(tensor)

    def truth(self, tensor: Any) -> np.ndarray:
        return self._reader("the truth value", errors.BRANCH_ON_TRACED).truth_of(tensor)

    def check_values(self, tensor: Any, purpose: str, python: bool) -> None:
        if not python and not (reader := self._reader(purpose)).is_constant(tensor):
            raise reader.unknown(tensor, errors.TRACED_TO_NUMPY, purpose)

    def counted(self, tensor: Any, purpose: str) -> Any:
        return self._reader(purpose).count_of(tensor, purpose)

    def number(self, tensor: Any) -> Any:
        return self._reader("item").number_of(tensor)

    def text_values(self, tensor: Any) -> np.ndarray | None:
        return None if self.builder.closed or self.builder.reader is None else self.builder.reader.text_values(tensor)

    def strides(self, tensor: Any) -> tuple[int, ...]:
        return self._reader("the strides").strides(tensor)

    def storage_offset(self, tensor: Any) -> int:
        return self._reader("the storage offset").storage_offset(tensor)

    def made_plain(self, tensor: Any) -> None:
        self._reader("the strides").made_plain(tensor)

    def _reader(self, what: str, message: str = errors.TRACED_TO_NUMPY) -> Any:
        """Who knows the values for which the graph is being made."""
        if self.builder.closed or self.builder.reader is None:
            raise self.error(message, what)
        return self.builder.reader

    def __array_ufunc__(self, *args: Any, **kwargs: Any) -> Any:
        raise self.error(errors.TRACED_TO_NUMPY, "a NumPy function")

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise self.error(errors.TRACED_TO_NUMPY, "a NumPy function")

    def grad_fn(self) -> TracedNode:
        """What stands for the history of a tensor."""
        return traced_node(self)

    def error(self, message: str, what: str) -> errors.CaptureError:
        """The error of what needs more of this value than a graph under construction has."""
        builder, made = self.builder, self._made()
        if builder.closed:
            return errors.EscapedSymbolError(errors.ESCAPED_SYMBOL.format(aval=self.aval, made=made))
        used = builder.locate() or "an unknown line"
        return errors.CaptureError(message.format(what=what, aval=self.aval, made=made, used=used))

    def check_open(self, builder: Builder) -> None:
        """Raise EscapedSymbolError unless this symbol belongs to `builder` and it is still being built."""
        if self.builder is not builder or builder.closed:
            raise errors.EscapedSymbolError(errors.ESCAPED_SYMBOL.format(aval=self.aval, made=self._made()))

    def _made(self) -> str:
        """Where the value comes from, for messages."""
        node = self.builder.nodes[self.id]
        return f"the call, as '{node.params['name']}'" if node.op is INPUT else node.where or "an unknown line"

    def __repr__(self) -> str:
        return f"<Symbol v{self.id}: {self.aval}>"


@final
class Builder:
    """A graph under construction.

    `where` and `scope` are stamped on every node that is appended; set them before. `locate` says which line of the
    user's program is running. `closed` is set when the trace that builds the graph has ended. `reader` is asked for the
    values of a Tensor whose data are a Symbol. `whole`: of ops that are defined by others and have gradient rules, the
    nodes are appended, not the definitions: gradients may still be made of what is built.
    """

    def __init__(
        self, nodes: Mapping[int, Node] | None = None, locate: Callable[[], str] = str, *, whole: bool = False
    ):
        self.nodes: dict[int, Node] = dict(nodes or {})
        self.next_id = max(self.nodes, default=-1) + 1
        self.inputs: list[int] = []
        self.where = ""
        self.scope = ""
        self.locate = locate
        self.closed = False
        self.whole = whole
        self.reader: Any = None
        self._constants: dict[Literal, Symbol] = {}
        self._numbers: dict[tuple[type, Any, np.dtype], Symbol] = {}
        self._newest = -1  # the last of these
        self.language = Language(self)

    @staticmethod
    def beside(nodes: Mapping[int, Node]) -> Builder:
        """A builder of nodes that are none of `nodes`, of which it has none: what a pass copies, it puts there."""
        builder = Builder()
        builder.next_id = max(nodes, default=-1) + 1
        return builder

    def symbol(self, id: int) -> Symbol:
        """The Symbol of an existing node."""
        return Symbol(self, id, self.nodes[id].aval)

    def rollback(self, mark: int) -> None:
        """Forget the nodes from id `mark` on: an attempt that came to nothing."""
        for id in range(mark, self.next_id):
            del self.nodes[id]
        if self._newest >= mark:
            self._constants = {literal: s for literal, s in self._constants.items() if s.id < mark}
            self._numbers = {number: s for number, s in self._numbers.items() if s.id < mark}
            self._newest = mark - 1
        self.next_id = mark

    def reopen(self, graph: Graph) -> None:
        """Go on with a copy of `graph`, which has been built here; constants that it does not have are forgotten."""
        self.nodes, self.inputs, self.closed = dict(graph.nodes), list(graph.inputs), False
        self._constants = {literal: s for literal, s in self._constants.items() if s.id in self.nodes}
        self._numbers = {number: s for number, s in self._numbers.items() if s.id in self.nodes}

    def copy(self, node: Node, inputs: tuple[int, ...]) -> int:
        """Append a node of another graph under its own id, on other operands."""
        self.nodes[node.id] = node.on(inputs)
        return node.id

    def input(self, name: str, aval: Aval) -> Symbol:
        """Append an input."""
        symbol = self._append(INPUT, (), {"name": name}, aval)
        self.inputs.append(symbol.id)
        return symbol

    def constant(self, value: Any, dtype: np.dtype | None = None) -> Symbol:
        """The node of a constant; equal constants share one."""
        literal = Literal(np.asarray(value, dtype))
        known = self._constants.get(literal)
        if known is None:
            known = self._constants[literal] = self._literal(literal)
            self._newest = known.id
        return known

    def number(self, value: complex, dtype: np.dtype) -> Symbol:
        """The node of a Python scalar, as `dtype`."""
        if not value or isinstance(value, complex):  # of equal ones, the signs of zeros may differ
            return self.constant(scalar_array(value, dtype))
        key = type(value), value, dtype
        known = self._numbers.get(key)
        if known is None:
            known = self._numbers[key] = self.constant(scalar_array(value, dtype))
        return known

    def variable(self, value: np.ndarray) -> Symbol:
        """A node of its own for a constant with which a tensor begins: what is written to that is not to its like."""
        return self._literal(Literal(value))

    def _literal(self, literal: Literal) -> Symbol:
        return self._append(_CONSTANT, (), {"value": literal}, aval_of(literal.array))

    def size(self, value: Dim, dtype: np.dtype) -> Symbol:
        """Append a number that depends on symbolic sizes, as `dtype`."""
        return self.emit(_FULL, (), {"shape": (), "value": value, "dtype": dtype})

    def apply(self, op: Op, operands: Sequence[Any], params: Mapping[str, Any]) -> Any:
        """Append `op` on Symbols and Python scalars, which are promoted as PyTorch does. Raises the op's own errors.

        Returns a Symbol, or a tuple of them. Of an op that is defined by others, those are appended, unless it is to
        stay `whole`.
        """
        symbols = self.promote(op, operands)
        if op.definition is not None and not (self.whole and op.whole):
            return op.definition(self.language, *symbols, **with_defaults(op, params))
        complete = with_defaults(op, params) if op.params or params else _NO_PARAMS
        return self.emit_several(op, symbols, complete) if op.several else self.emit(op, symbols, complete)

    def emit(self, op: Op, operands: Sequence[Symbol], params: Mapping[str, Any]) -> Symbol:
        """Append `op` on operands that are already promoted, with complete parameters."""
        aval = op.rule.infer(op, [s.aval for s in operands], params)
        return self._append(op, tuple([s.id for s in operands]), params, aval)

    def emit_several(self, op: Op, operands: Sequence[Symbol], params: Mapping[str, Any]) -> tuple[Symbol, ...]:
        """`emit` for an op with several results: its node, and one for each result."""
        results = op.rule.infer(op, [s.aval for s in operands], params)
        id = self.append(op, tuple([s.id for s in operands]), params, results)
        return tuple([self.item(id, k) for k in range(len(results))])

    def item(self, id: int, index: int) -> Symbol:
        """Append the node of result number `index` of node `id`, which has several."""
        return self._append(_ITEM, (id,), {"index": index}, self.nodes[id].results[index])

    def promote(self, op: Op, operands: Sequence[Any]) -> Sequence[Symbol]:
        """The operands as Symbols of the dtype that `op` computes in."""
        rule = op.rule
        if not rule.promote:
            lifted = [self._lift(x) for x in operands]
            if rule.accepts is not None:
                rule.accepts(op, [s.aval.dtype for s in lifted])
            return lifted
        first, dtype, numbers = rule.first, None, False
        for x in operands[first:]:  # the common case: floats of one dtype, and numbers
            if x.__class__ is Symbol:
                if dtype is None and x.aval.dtype.char in _TAKEN:
                    dtype = x.aval.dtype
                elif x.aval.dtype is not dtype:
                    break
            elif type(x) is float or type(x) is int:  # a symbolic size says that its class is int
                numbers = True
            else:
                break
        else:
            if dtype is not None:
                return self._numbered(operands, dtype) if numbers else operands
        dtype = operand_dtype(op, [_rank(x) for x in operands])
        assert dtype is not None
        return [x if i < first else self._convert(x, dtype) for i, x in enumerate(operands)]

    def _numbered(self, operands: Sequence[Any], dtype: np.dtype) -> Sequence[Symbol]:
        return [x if x.__class__ is Symbol else self.number(x, dtype) for x in operands]

    def _convert(self, x: Any, dtype: np.dtype) -> Symbol:
        if not isinstance(x, Symbol):
            return self.size(x, dtype) if is_dim(x) else self.number(x, dtype)
        return x if x.aval.dtype == dtype else self.emit(_CAST, (x,), {"dtype": dtype})

    def _lift(self, x: Any) -> Symbol:
        if isinstance(x, Symbol):
            return x
        if is_dim(x):
            return self.size(x, of_scalar(x))
        return self.constant(x, of_scalar(x) if np.ndim(x) == 0 else None)

    def append(self, op: Op, inputs: tuple[int, ...], params: Mapping[str, Any], results: tuple[Aval, ...]) -> int:
        """Append a node. Returns its id."""
        id = self.next_id
        self.nodes[id] = Node(id, op, inputs, params, results, self.where, self.scope)
        self.next_id = id + 1  # last: an interrupt leaves no id without a node, which `rollback` would miss
        return id

    def _append(self, op: Op, inputs: tuple[int, ...], params: Mapping[str, Any], aval: Aval) -> Symbol:
        return Symbol(self, self.append(op, inputs, params, (aval,)), aval)

    def graph(self, name: str, result: Any, inputs: Iterable[int] | None = None, call: Call | None = None) -> Graph:
        """The graph built so far."""
        return Graph(name, self.nodes, tuple(self.inputs if inputs is None else inputs), result, call=call)


def _rank(x: Any) -> tuple[np.dtype, int]:
    if isinstance(x, Symbol):
        return x.aval.dtype, 2 if x.aval.shape else 1
    return of_scalar(x), 0


@final
class Language:
    """Attributes are ops, as functions of Symbols and scalars that append to one builder."""

    def __init__(self, builder: Builder):
        self._builder = builder

    def __getattr__(self, name: str) -> Callable[..., Symbol]:
        try:
            op = OPS[name]
        except KeyError:
            raise AttributeError(f"no op named '{name}'") from None
        builder = self._builder

        def emit(*operands: Any, **params: Any) -> Symbol:
            return builder.apply(op, operands, params)

        self.__dict__[name] = emit
        return emit
