"""The tracer: an interpreter of Tensor operations that appends each to a graph.

User code runs as it stands, with Tensors whose data are Symbols. Concrete tensors that it meets become inputs of the
graph (*captures*), so that they are read anew at each call; those that it makes itself become constants. In-place
writes (`memory`), `.grad` (`gradients`), random draws and what Python decides on values are kept here, outside the
tensors, until `finish`.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, final

import numpy as np

from eager.core.interpreter import Interpreter, forwarding, interpreting
from eager.core.sparse import SparseOperandError, is_sparse
from eager.core.state import grad_enabled
from eager.core.tensor import Tensor
from eager.engine.dispatch import call_text
from eager.engine.overlap import Extent
from graphc import errors
from graphc.capture import late_draws, masked_selection
from graphc.capture.concretization import Concretization
from graphc.capture.effects import effects_of
from graphc.capture.gradients import Autograd
from graphc.capture.location import user_line
from graphc.capture.number import Number, Numbers, fix_numbers, without_numbers
from graphc.capture.placement import Placement
from graphc.capture.scopes import Scopes
from graphc.capture.sources import Argument, Captured, Draw, Effect, Lifted, Returned
from graphc.capture.state.lifted_numbers import LiftedNumber
from graphc.capture.storage.extents import extents
from graphc.capture.storage.layouts import Layouts
from graphc.capture.storage.memory import Memories, Place
from graphc.capture.storage.mutation import Mutation
from graphc.capture.storage.results import Results
from graphc.capture.trace_state import TraceState
from graphc.capture.tree import map_tensors, tensors_of
from graphc.ir import Builder, Graph, Ref, Symbol
from graphc.ops import OPS, Op
from graphc.ops.aval import Aval
from graphc.ops.dtypes import UINT8, is_inexact
from graphc.ops.steps import Step
from graphc.ops.strides import strides_of

_STOP, _CLONE, _INDEX, _FULL = OPS["stop_gradient"], OPS["clone"], OPS["index"], OPS["full"]
INLINE = 64  # larger constants whose elements are all equal become `full`


LOOPS: dict[str, Callable[..., Any]] = {}  # made of tracers: `graphc.capture.trace` puts them here


@final
@forwarding({
    "mutation": "assign set_data show",
    "concretization": "guard is_constant lies_plainly number_written values_read values_shown window",
    "autograd": "backward custom gradients gradients_of_batch has_leaves looked_up retain",
    "autograd.grads": "get_grad set_grad",
    "autograd.hooks": "hook hook_after",
    "numbers": "tensor_of",
    "placement": "lies moved separates where",
    "scopes": "inside",
})  # fmt: skip
class Tracer(Interpreter):
    """See `eager.core.interpreter.Interpreter` for the methods that tensors call.

    name_of  a name for a tensor that is captured
    whole    the program is to run in place of the function: Python may decide on values (the program is then right on
             one path only), and an argument that is given twice is one tensor
    outer    of a function given to control flow: the trace around it, whose tensors become inputs here
    """

    immediate = False
    capturing = True

    def __init__(
        self, name_of: Callable[[Tensor], str | None] = lambda t: None, whole: bool = False, outer: Tracer | None = None
    ):
        self.builder = builder = Builder(locate=user_line, whole=True)
        state = self.state = TraceState(builder, name_of, whole, outer, Memories(builder))
        self.input, self.rebind, self.owner_of, self.given = state.input, state.rebind, state.owner_of, state.given
        self.rule_depth = 0  # of the trace of a gradient rule: of how many rules inside each other
        self.computed: Callable[[Tensor], Symbol | None] | None = None  # what computes a tensor of outside anew
        self.scopes = Scopes(builder)
        self.mutation = Mutation(state, self)
        self.concretization = Concretization(state, self)
        builder.reader = self.concretization
        self.layouts = Layouts(builder, state.memories, self.concretization.layout_of_input)
        self.numbers = Numbers(self)
        self.placement = Placement(state)
        self.autograd = Autograd(state, self)

    def position(self) -> int:
        return len(self.builder.nodes)

    def argument(self, tensor: Tensor, position: int, name: str) -> Tensor:
        """The traced stand-in of argument number `position`."""
        if self.state.whole and id(tensor) in self.state.stand_ins:
            return self.state.stand_ins[id(tensor)]
        shape = tuple(tensor._d.shape)
        if position in self.state.batches:
            first: Any = self.state.batches[position]
            shape = (first, *shape[1:])
        symbol = self.input(name, Aval(shape, tensor._dtype()), Argument(position))
        stand_in = self.wrap(symbol, tensor._n is not None, type(tensor))
        vars(stand_in).update(vars(tensor))
        self.state.owners[id(stand_in)] = Argument(position)
        # kept, so that its id is not used again
        self.state.fresh[id(stand_in)] = self.state.stand_ins[id(tensor)] = stand_in
        if tensor._n is not None:
            if tensor.is_leaf:
                stand_in._n = tensor._n  # with its hooks
            self.state.leaves[symbol.id] = stand_in
        self.mutation.note(stand_in)
        return stand_in

    def number(self, lifted: LiftedNumber, position: int, name: str) -> Any:
        """The traced number of argument number `position`; the number itself, if it is taken by value."""
        source = Argument(position)
        number = Number(self, self.input(name, Aval((), lifted._dtype()), source))
        self.state.lifted_numbers[source] = lifted
        return number.known() if lifted.by_value else number

    def start(self, arguments: Sequence[Tensor]) -> None:
        """Tell which tensors the call is given."""
        self.state.arguments = list(arguments)

    def reach(self, source: Lifted, value: Any) -> None:
        """Tell that `value` is in a lifted place."""
        self.state.lifted[source] = value
        if isinstance(value, Tensor):
            self.state.lifted_tensors[id(value)] = source

    def read(self, tensor: Tensor) -> Symbol:
        """The present value of a tensor."""
        data = masked_selection.settled(tensor)
        if data.__class__ is Symbol:
            if data.builder is not self.builder or self.builder.closed:
                if self.state.outer is None or self.builder.closed:
                    data.check_open(self.builder)
                data = self._lifted(tensor)
        else:
            held = self.state.held.get(id(tensor))
            data = self._capture(tensor) if held is None else held[1]
        place = self.state.memories.find(data.id)
        return data if place is None or place.version == place.memory.version else self._again(tensor, place)

    def _again(self, tensor: Tensor, place: Place) -> Symbol:
        """The value of `tensor`, a view whose memory has been written since it was last read."""
        memory = place.memory
        if tensor._n is not None and place.history_from and not tensor.is_leaf:
            raise errors.CaptureError(errors.HISTORY_BEHIND.format(used=user_line()))
        if not place.steps:
            symbol = memory.symbol
        else:
            self.builder.where, before = user_line(), self.builder.next_id
            symbol = self.state.memories.again(place)
            if tensor._n is not None and tensor.is_leaf:  # gradients stop at a node of its own, as they did before
                symbol = self.builder.emit(_STOP, (symbol,), {})
                self.state.memories.put(symbol, place._replace(version=memory.version))
                self.state.leaves[symbol.id] = tensor
            elif tensor._n is not None:
                self.state.recorded.update(range(before, self.builder.next_id))
        self.rebind(tensor, symbol)
        return symbol

    def _capture(self, tensor: Tensor) -> Symbol:
        if is_sparse(tensor):
            raise SparseOperandError  # to `apply` of eager, which takes it apart
        stand_in = self.state.stand_ins.get(id(tensor))
        if stand_in is not None:  # reached by itself, though it is an argument, too
            owner = self.state.owners[id(stand_in)]
            assert isinstance(owner, Argument)
            self.concretization.guard_argument(owner.position, lambda t: t is tensor, True, "which tensor it is")
            return self.read(stand_in)
        if self.computed is not None and (known := self.computed(tensor)) is not None:
            return known
        if id(tensor) in self.state.fresh:
            symbol = self._constant(tensor._read())
        else:
            name = self.state.name_of(tensor) or f"captured_{len(self.state.sources)}"
            owner = self.state.owners[id(tensor)] = self.state.lifted_tensors.get(id(tensor)) or Captured(tensor)
            symbol = self.input(name, Aval(tuple(tensor._d.shape), tensor._dtype()), owner)
        self.state.held[id(tensor)] = (tensor, symbol)
        if tensor._n is not None:
            self.state.leaves[symbol.id] = tensor
        if id(tensor) not in self.state.fresh:
            self.mutation.note(tensor)
        return self.state.held[id(tensor)][1]

    def _lifted(self, tensor: Tensor) -> Symbol:
        """The input that stands for a tensor of the trace around this one."""
        if id(tensor) not in self.state.held:
            assert self.state.outer is not None
            aval = self.state.outer.read(tensor).aval
            self.state.owners[id(tensor)] = Captured(tensor)
            self.state.held[id(tensor)] = (
                tensor,
                self.input(f"captured_{len(self.state.sources)}", aval, Captured(tensor)),
            )
        return self.state.held[id(tensor)][1]

    def _constant(self, array: np.ndarray) -> Symbol:
        if array.size > INLINE:
            first = array.reshape(-1)[:1]
            if (array == first).all() and array.tobytes() == first.tobytes() * array.size:  # -0.0 is no 0.0
                params = {"shape": array.shape, "value": first.item(), "dtype": array.dtype}
                return self.builder.emit(_FULL, (), params)
        return self.builder.variable(array)

    def wrap(self, symbol: Symbol, requires_grad: bool, kind: type[Tensor] = Tensor) -> Tensor:
        """A tensor that shows `symbol`."""
        t = object.__new__(kind)
        t._d = symbol
        t._n = symbol if requires_grad else None
        return t

    def apply(self, op: Op, operands: Sequence[Any], params: Any) -> Any:
        """See `eager.core.interpreter.Interpreter`."""
        builder = self.builder
        builder.where = user_line()
        found = masked_selection.applied(self, op, operands, params)
        if found is not None:
            return found
        self.placement.check(op, operands, params)
        symbols, requires = [], False
        for i, x in enumerate(operands):
            if isinstance(x, Tensor):
                symbols.append(self.read(x))
                requires = requires or (x._n is not None and op.arg_of(i) in op.vjp)
            elif (
                isinstance(x, (bool, int, float, complex, np.generic))
                and op.rule.promote
                and op.rule.scalars
                and i >= op.rule.first
            ):
                symbols.append(x)
            else:
                raise TypeError(
                    f"{op.name}(): argument '{op.arg_of(i)}' (position {i + 1}) must be Tensor, not {type(x).__name__}"
                )
        if params:
            params = without_numbers(params)
        before = builder.next_id
        if before >= self.concretization.unrolling.next:
            self.concretization.unrolling.look()
        try:
            result = builder.apply(op, self.numbers.as_symbols(op, symbols), params)
        except Exception as error:
            error.add_note(f"in {call_text(op, operands)} at {builder.where}")
            raise
        requires = requires and grad_enabled()
        if op.several:
            if requires:
                self.state.recorded.update(range(before, builder.next_id))
            return tuple([self.wrap(r, requires and is_inexact(r.aval.dtype)) for r in result])
        if result.id < before and not op.view:  # an operand, as it is
            result = builder.emit(_CLONE, (result,), {})
        requires = requires and is_inexact(result.aval.dtype)
        if requires:
            self.state.recorded.update(range(before, builder.next_id))  # the op, and casts of its operands
        found = self.wrap(result, requires)
        if op.view or (op is _INDEX and not any(i.aval.shape for i in symbols[1:])):  # x[i] by numbers
            source = self.place_of(operands[0], symbols[0])
            place = self.state.memories.viewed(source, symbols[0], result, Step(op, params))
            if place is not None:
                if place.version != place.memory.version:  # as a concrete tensor of this trace may be
                    found._d = self._again(found, place)
                place.memory.tensors.add(found)
        return found

    def place_of(self, tensor: Tensor, symbol: Symbol) -> Place:
        """Where `tensor`, whose value is `symbol`, looks."""
        found = self.state.memories.find(symbol.id)
        if found is None:
            owner, strides = self.owner_of(tensor), None
            if owner is None:
                made = tensor._d
                strides = strides_of(made) if made.__class__ is np.ndarray else self.layouts.of(symbol.id)
            elif not (self.state.outer is not None and tensor._d.__class__ is Symbol):
                strides = self.concretization.layout(tensor, owner)
            leaf = self.state.leaves.get(symbol.id)
            found = self.state.memories.place(
                symbol, owner, leaf if leaf is not None and leaf.is_leaf else None, strides
            )
            found.memory.tensors.add(tensor)
        return found

    def scan(self, step: Callable[[Any, Any], Any], state: Any, rows: Tensor, reverse: bool) -> Any:
        """See `eager.core.interpreter.Interpreter`."""
        return LOOPS["scan"](step, state, rows, reverse)

    def select(self, x: Tensor, mask: Tensor, lead: int, purpose: str) -> Tensor:
        """See `eager.core.interpreter.Interpreter`."""
        return masked_selection.select(self, x, mask, lead, purpose)

    def replace(self, target: Tensor, value: Tensor) -> bool:
        """See `eager.core.interpreter.Interpreter`."""
        return masked_selection.replace(target, value)

    def created(self, tensor: Tensor) -> None:
        """See `eager.core.interpreter.Interpreter`."""
        self.state.fresh[id(tensor)] = tensor

    def begun(self, keeper: Any) -> None:
        """See `eager.core.interpreter.Interpreter`."""
        if not self.state.keepers_stay:
            self.state.keepers[id(keeper)] = weakref.ref(keeper)

    def keeps_inside(self, keeper: Any) -> bool:
        """See `eager.core.interpreter.Interpreter`."""
        outer, known = self.state.outer, self.state.keepers.get(id(keeper))
        return (known is not None and known() is keeper) or (outer is not None and outer.keeps_inside(keeper))

    def check_keepers(self) -> None:
        """Of a trace that has run. KeeperStaysError if an optimizer that it has made is still there."""

        def stay() -> bool:
            made = [ref() for ref in self.state.keepers.values()]
            return any(keeper is not None and not isinstance(keeper, Tensor) for keeper in made)

        if stay():
            gc.collect(0)  # some are in cycles, with a schedule say
            if stay():
                raise errors.KeeperStaysError

    def repeats(self, tensor: Tensor) -> bool:
        """See `eager.core.interpreter.Interpreter`."""
        return self.place_of(tensor, self.read(tensor)).repeats(tensor._d.shape)

    def extents(self, a: Tensor, b: Tensor) -> tuple[Extent, Extent] | None:
        """See `eager.core.interpreter.Interpreter`."""
        return extents(self, a, b)

    def copied(self, tensor: Tensor) -> Tensor:
        """See `eager.core.interpreter.Interpreter`."""
        return self.apply(_CLONE, (tensor,), {})

    def random(
        self, draw: Callable[[tuple[int, ...]], np.ndarray], shape: tuple[int, ...], dtype: np.dtype, generator: Any,
        like: Any = None,
    ) -> Tensor:  # fmt: skip
        """See `eager.core.interpreter.Interpreter`."""
        fix_numbers(draw)
        if id(generator) in self.state.states:
            return late_draws.again(self, draw, shape, dtype, generator)
        source = Draw(functools.partial(draw, shape), generator)
        return self.wrap(self.input(f"random_{len(self.state.sources)}", Aval(tuple(shape), dtype), source), False)

    def drawn(self, sampler: Any, inputs: Sequence[Tensor], generator: Any) -> Tensor:
        """See `eager.core.interpreter.Interpreter`."""
        return late_draws.drawn(self, sampler, inputs, generator)

    def on_interrupt(self, undo: Callable[[], None]) -> None:
        """See `eager.core.interpreter.Interpreter`."""
        self.state.drawn.undoing.append(undo)

    def at_each_call(self, action: Callable[[], Any], generator: Any) -> None:
        """See `eager.core.interpreter.Interpreter`: as a draw of no numbers."""

        def draw(shape: tuple[int, ...]) -> np.ndarray:
            action()
            return np.empty(shape, UINT8)

        self.random(draw, (0,), UINT8, generator)

    def leaf_changed(self, tensor: Tensor) -> None:
        """See `Interpreter`. From now on a node of its own stands for it: others used the one before."""
        before = self.read(tensor)
        symbol = self.builder.emit(_STOP, (before,), {})
        place = self.state.memories.find(before.id)
        if place is not None:
            self.state.memories.put(symbol, place)
            if not place.steps:
                place.memory.symbol = symbol
                place.memory.leaf = None if tensor._n is None else tensor
        self.rebind(tensor, symbol)
        if tensor._n is not None:
            self.state.leaves[symbol.id] = tensor

    def entered(self, tensor: Tensor, leaf: Any) -> Tensor:
        """A tensor like `tensor` that gradients can be taken with respect to: with its history, or with `leaf`."""
        if tensor._n is not None:
            return self.apply(_CLONE, (tensor,), {})
        stand_in = self.apply(_STOP, (tensor,), {})
        stand_in._n = leaf
        self.state.leaves[self.read(stand_in).id] = stand_in
        return stand_in

    def left(self, tensor: Tensor) -> None:
        """Gradients are no longer taken with respect to `tensor`, which `entered` made."""
        if self.state.leaves.get(self.read(tensor).id) is tensor:
            del self.state.leaves[self.read(tensor).id]

    def finish(self, result: Any) -> tuple[Any, list[Returned], list[Effect]]:
        """Close the trace. Returns the result with Refs in place of tensors, what those are, and what changes."""
        refs = map_tensors(result, lambda t, path: Ref(self.read(t).id))
        returned = Results(self, list(tensors_of(result))).found
        effects = effects_of(self)
        self.builder.closed = True
        return refs, returned, effects

    @contextlib.contextmanager
    def reopened(self, graph: Graph) -> Iterator[None]:
        """The trace goes on, for gradients, in a copy of its `graph`. What it reaches then is forgotten at the end."""
        builder, held, count = self.builder, dict(self.state.held), len(self.state.sources)
        builder.reopen(graph)
        try:
            with interpreting(self):
                yield
        finally:
            builder.closed, self.state.held = True, held
            del self.state.sources[count:]

    def reached_since(self, count: int) -> list[Tensor]:
        """The tensors behind the inputs from number `count` on. Raises CaptureError for random numbers."""
        if any(not isinstance(source, Captured) for source in self.state.sources[count:]):
            raise errors.CaptureError(errors.DRAW_IN_RULE)
        return [self.given(source) for source in self.state.sources[count:]]

    @property
    def recorded(self) -> frozenset[int]:
        """The ids of the nodes that gradients flow through."""
        return frozenset(self.state.recorded)
