"""The tracer: an interpreter of Tensor operations that appends each to a graph.

User code runs as it stands, with Tensors whose data are Symbols. Concrete tensors that it meets become inputs of the
graph (*captures*), so that they are read anew at each call; those that it makes itself become constants. In-place
writes (`memory`), `.grad` (`gradients`), random draws and what Python decides on values are kept here, outside the
tensors, until `finish`.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from sys import getrefcount
from typing import Any, final

import numpy as np

from eager.dispatch import call_text
from eager.grad_mode import set_grad_enabled
from eager.state import grad_enabled, interpreting, storage_of
from eager.storage import is_plain
from eager.tensor import LEAF_IN_PLACE, REPEATED, Deferred, Tensor
from eager.views import LEAF_VIEW, geometry
from graphc import errors
from graphc.capture.gradients import Autograd
from graphc.capture.location import user_line
from graphc.capture.number import Number, fix_numbers, without_numbers
from graphc.capture.showing import is_only_shown
from graphc.capture.sources import (
    Argument,
    ArgumentGuard,
    Captured,
    Decision,
    Draw,
    Effect,
    GradOf,
    Guard,
    History,
    LeafFlag,
    MemoryOf,
    Owner,
    Reached,
    Returned,
    Source,
    Step,
)
from graphc.capture.state.varying import Varying
from graphc.capture.storage.inputs import (
    dense_order,
    is_simple,
    relation,
    strides_in_order,
    strides_of_tensor,
    whole_memory,
)
from graphc.capture.storage.memory import Memories, Memory, Place
from graphc.capture.storage.results import Results
from graphc.capture.tree import map_tensors, tensors_of
from graphc.capture.values import Constants, Hosted, HostedValue, Seen, Values, seen
from graphc.ir import INPUT, Builder, Graph, Ref, Symbol
from graphc.ops import OPS, Op
from graphc.ops.aval import Aval
from graphc.ops.dims import Dim, Sizes, has_dim
from graphc.ops.dtypes import BOOL, UINT8, is_inexact
from graphc.ops.strided import row_major

_STOP, _CLONE, _CAST = OPS["stop_gradient"], OPS["clone"], OPS["cast"]
_FULL, _WHERE = OPS["full"], OPS["where"]
_OVERWRITTEN, _DECIDED, _STRIDED = OPS["overwritten"], OPS["decided"], OPS["as_strided"]
INLINE = 64  # larger constants whose elements are all equal become `full`
READABLE = 64  # elements of a tensor on whose values Python may decide
_COPIES = ("copy", "fill_with")  # writes whose value is a tensor of its own


@final
class Tracer:
    """See `eager.state.Interpreter` for the methods that tensors call.

    name_of  a name for a tensor that is captured
    whole    the program is to run in place of the function: Python may decide on values (the program is then right on
             one path only), and an argument that is given twice is one tensor
    outer    of a function given to control flow: the trace around it, whose tensors become inputs here
    """

    def __init__(
        self,
        name_of: Callable[[Tensor], str | None] = lambda t: None,
        whole: bool = False,
        outer: Tracer | None = None,
    ):
        self.outer = outer
        self.rule_depth = 0  # of the trace of a gradient rule: of how many rules inside each other
        self.computed: Callable[[Tensor], Symbol | None] | None = None  # what computes a tensor of outside anew
        self.immediate = False
        self._lifted_numbers: dict[int, tuple[Number, Number, Tensor]] = {}
        self.builder = Builder(locate=user_line)
        self.builder.reader = self
        self.sources: list[Source] = []  # of each input
        self.guards: list[Guard] = []
        self.argument_guards: list[ArgumentGuard] = []
        self.overlaps: dict[tuple[Owner, Owner], Any] = {}  # which inputs share memory, and how
        self.decisions: list[Decision] = []
        self.foretold: tuple[bytes, ...] = ()  # what XLA has computed for the first decisions: it rounds in its own way
        self.drawn: dict[int, np.ndarray] = {}  # random numbers that were needed during the trace, by input
        self.states: list[tuple[Any, Any]] = []  # of the generators that those came from, before
        self.reached: dict[int, Reached] = {}  # id of a tensor in a moving place -> the place
        self._moving: dict[Reached, Any] = {}  # what was in moving places before the program
        self._varying: dict[Source, Varying] = {}  # numbers among the arguments
        self._hosted = Hosted(self.builder, self.sources, self._varying.keys())
        self.sizes: Sizes | None = None  # those that are symbolic
        self.batches: Mapping[int, Dim] = {}  # arguments whose first dim is symbolic
        self.name_of = name_of
        self._whole = whole
        self._arguments: list[Tensor] = []
        self._stand_ins: dict[int, Tensor] = {}  # id of an argument -> its stand-in
        self._read: set[int] = set()  # concrete tensors whose values are guarded
        self._held: dict[int, tuple[Tensor, Symbol]] = {}  # concrete tensors and their present values
        self._modules: list[Any] = []  # those whose forward is running, outermost first
        self._fresh: dict[int, Tensor] = {}  # concrete tensors made inside the trace
        self._owners: dict[int, Owner] = {}  # id of tensor -> where it comes from
        self._memory_of: dict[int, list[Tensor]] = {}  # id of what owns memory -> the inputs that show some of it
        self._values = Values(self.builder, self._array)
        self._constants = Constants(self.builder)
        self.memories = Memories(self.builder)
        self.autograd = Autograd(self)
        self.get_grad, self.set_grad = self.autograd.get_grad, self.autograd.set_grad
        self.backward, self.gradients = self.autograd.backward, self.autograd.gradients
        self.hook, self.custom = self.autograd.hook, self.autograd.custom
        self.retain, self.has_leaves = self.autograd.retain, self.autograd.has_leaves

    # --- tensors and symbols

    def argument(self, tensor: Tensor, position: int, name: str) -> Tensor:
        """The traced stand-in of argument number `position`."""
        if self._whole and id(tensor) in self._stand_ins:
            return self._stand_ins[id(tensor)]
        shape = tuple(tensor._d.shape)
        if position in self.batches:
            first: Any = self.batches[position]
            shape = (first, *shape[1:])
        symbol = self.input(name, Aval(shape, tensor._dtype()), Argument(position))
        stand_in = self.wrap(symbol, tensor._n is not None, type(tensor))
        self._owners[id(stand_in)] = Argument(position)
        self._fresh[id(stand_in)] = self._stand_ins[id(tensor)] = stand_in  # keeps its id from being used again
        if tensor._n is not None:
            if tensor.is_leaf:
                stand_in._n = tensor._n  # with its hooks
            self.autograd.leaves[symbol.id] = stand_in
        self._note_memory(stand_in)
        return stand_in

    def number(self, varying: Varying, position: int, name: str) -> Any:
        """The traced number of argument number `position`; the number itself, if it is taken by value."""
        source = Argument(position)
        number = Number(self, self.input(name, Aval((), varying._dtype()), source))
        self._varying[source] = varying
        return number.known() if varying.by_value else number

    def start(self, arguments: Sequence[Tensor]) -> None:
        """Tell which tensors the call is given."""
        self._arguments = list(arguments)

    def reach(self, source: Reached, value: Any) -> None:
        """Tell that `value` is in a moving place."""
        self._moving[source] = value
        if isinstance(value, Tensor):
            self.reached[id(value)] = source

    def read(self, tensor: Tensor) -> Symbol:
        """The present value of a tensor."""
        data = tensor._d
        if data.__class__ is Symbol:
            if data.builder is not self.builder or self.builder.closed:
                if self.outer is None or self.builder.closed:
                    data.check_open(self.builder)
                data = self._lifted(tensor)
        else:
            held = self._held.get(id(tensor))
            data = self._capture(tensor) if held is None else held[1]
        place = self.memories.find(data.id)
        return data if place is None or place.version == place.memory.version else self._again(tensor, place)

    def _again(self, tensor: Tensor, place: Place) -> Symbol:
        """The value of `tensor`, a view whose memory has been written since it was last read."""
        memory = place.memory
        if not place.steps:
            symbol = memory.symbol
        else:
            self.builder.where, before = user_line(), self.builder.next_id
            symbol = self.memories.again(place)
            if tensor._n is not None:
                self.autograd.recorded.update(range(before, self.builder.next_id))
        self._set(tensor, symbol)
        return symbol

    def _set(self, tensor: Tensor, symbol: Symbol) -> None:
        if tensor._d.__class__ is Symbol:
            tensor._d = symbol
        else:
            self._held[id(tensor)] = (tensor, symbol)

    def input(self, name: str, aval: Aval, source: Source) -> Symbol:
        """Append an input to the program."""
        self.sources.append(source)
        return self.builder.input(name, aval)

    def _capture(self, tensor: Tensor) -> Symbol:
        stand_in = self._stand_ins.get(id(tensor))
        if stand_in is not None:  # reached by itself, though it is an argument, too
            owner = self._owners[id(stand_in)]
            assert isinstance(owner, Argument)
            self.guard_argument(owner.position, lambda t: t is tensor, True, "which tensor it is")
            return self.read(stand_in)
        if self.computed is not None and (known := self.computed(tensor)) is not None:
            return known
        if id(tensor) in self._fresh:
            symbol = self._constant(tensor._array())
        else:
            name = self.name_of(tensor) or f"captured_{len(self.sources)}"
            owner = self._owners[id(tensor)] = self.reached.get(id(tensor)) or Captured(tensor)
            symbol = self.input(name, Aval(tuple(tensor._d.shape), tensor._dtype()), owner)
        self._held[id(tensor)] = (tensor, symbol)
        if tensor._n is not None:
            self.autograd.leaves[symbol.id] = tensor
        if id(tensor) not in self._fresh:
            self._note_memory(tensor)
        return self._held[id(tensor)][1]

    def _lifted(self, tensor: Tensor) -> Symbol:
        """The input that stands for a tensor of the trace around this one."""
        if id(tensor) not in self._held:
            assert self.outer is not None
            aval = self.outer.read(tensor).aval
            self._owners[id(tensor)] = Captured(tensor)
            self._held[id(tensor)] = tensor, self.input(f"captured_{len(self.sources)}", aval, Captured(tensor))
        return self._held[id(tensor)][1]

    def _constant(self, array: np.ndarray) -> Symbol:
        if array.size > INLINE:
            first = array.reshape(-1)[0].item()
            if (array == first).all() and not (first == 0 and np.signbit(array).any()):
                params = {"shape": array.shape, "value": first, "dtype": array.dtype}
                return self.builder.emit(_FULL, (), params)
        return self.builder.variable(array)

    def wrap(self, symbol: Symbol, requires_grad: bool, kind: type[Tensor] = Tensor) -> Tensor:
        """A tensor that shows `symbol`."""
        t = object.__new__(kind)
        t._d = symbol
        t._n = symbol if requires_grad else None
        return t

    def owner_of(self, tensor: Tensor) -> Owner | None:
        """Where a tensor that outlives the program comes from; None for one that it has made."""
        if tensor._d.__class__ is not Symbol and id(tensor) not in self._fresh and id(tensor) not in self._owners:
            stand_in = self._stand_ins.get(id(tensor))
            outside = self.reached.get(id(tensor)) or Captured(tensor)
            self._owners[id(tensor)] = outside if stand_in is None else self._owners[id(stand_in)]
        return self._owners.get(id(tensor))

    def given(self, source: Source) -> Tensor:
        """The concrete tensor behind a source, in the call that is being traced."""
        match source:
            case Argument(position):
                return self._arguments[position]
            case Captured(tensor):
                return tensor
            case Reached():
                return self._moving[source]
            case GradOf(of):
                grad = self.given(of)._g
                assert grad is not None
                return grad
            case MemoryOf(of):
                return whole_memory(self.given(of))
        raise AssertionError(source)

    # --- what tensors call

    def apply(self, op: Op, operands: Sequence[Any], params: Any) -> Tensor:
        """See `eager.state.Interpreter`."""
        builder = self.builder
        builder.where = user_line()
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
        try:
            result = builder.apply(op, self._numbers(op, symbols), params)
        except Exception as error:
            error.add_note(f"in {call_text(op, operands)} at {builder.where}")
            raise
        if result.id < before and not op.view:  # an operand, as it is
            result = builder.emit(_CLONE, (result,), {})
        requires = requires and grad_enabled() and is_inexact(result.aval.dtype)
        if requires:
            self.autograd.recorded.update(range(before, builder.next_id))  # the op, and casts of its operands
        found = self.wrap(result, requires)
        if op.view:
            source = self._place(operands[0], symbols[0])
            place = self.memories.viewed(source, symbols[0], result)
            if place is not None:
                if place.version != place.memory.version:  # as a concrete tensor of this trace may be
                    found._d = self._again(found, place)
                place.memory.tensors.add(found)
        return found

    def _numbers(self, op: Op, symbols: list[Any]) -> list[Any]:
        """`symbols` with each traced Python number as a Symbol of the dtype that it would be converted to."""
        if not any(type(x) is Number for x in symbols):
            return symbols
        return Number.as_operands(self.builder, op, [self._own(x) if type(x) is Number else x for x in symbols])

    def _own(self, number: Number) -> Number:
        """A traced number, of the trace around this one perhaps, in this trace."""
        if self.outer is None or number.tracer is self:
            return number
        if id(number) not in self._lifted_numbers:
            outer = number.tracer.wrap(number.symbol, False)
            self._lifted_numbers[id(number)] = number, Number(self, self.read(outer)), outer
        return self._lifted_numbers[id(number)][1]

    def _place(self, tensor: Tensor, symbol: Symbol) -> Place:
        """Where `tensor`, whose value is `symbol`, looks."""
        found = self.memories.find(symbol.id)
        if found is None:
            owner, strides = self.owner_of(tensor), None
            if owner is not None and not (self.outer is not None and tensor._d.__class__ is Symbol):
                strides = self._layout(tensor, owner)
            leaf = self.autograd.leaves.get(symbol.id)
            found = self.memories.place(symbol, owner, leaf if leaf is not None and leaf.is_leaf else None, strides)
            found.memory.tensors.add(tensor)
        return found

    def _layout(self, tensor: Tensor, owner: Owner) -> Any:
        """The strides of an input, which the program is made for from now on."""
        given = self.given(owner)
        strides = strides_of_tensor(given)
        if strides is not None and has_dim(tensor._d.shape) and (order := dense_order(given)) is not None:
            assert isinstance(owner, Argument)
            self.guard_argument(owner.position, dense_order, order, "how it lies in memory")
            return strides_in_order(tuple(tensor._d.shape), order)
        if isinstance(owner, Argument):
            self.guard_argument(owner.position, strides_of_tensor, strides, "how it lies in memory")
        elif isinstance(owner, Captured):
            self.guards.append(
                Guard(functools.partial(strides_of_tensor, given), strides, self._layout_of(given), given)
            )
        elif isinstance(owner, Reached):
            self.guard(self._later(given, strides_of_tensor), strides, self._layout_of(given))
        return strides

    def created(self, tensor: Tensor) -> None:
        """See `eager.state.Interpreter`."""
        self._fresh[id(tensor)] = tensor

    def strides(self, tensor: Tensor) -> tuple[int, ...]:
        """The strides of a traced tensor, in elements."""
        place = self.memories.find(self.read(tensor).id)
        if place is None and id(tensor) in self._owners:
            place = self._place(tensor, self.read(tensor))
        strides = None if place is None else place.strides
        return row_major(tuple(tensor._d.shape)) if strides is None else strides

    @contextlib.contextmanager
    def inside(self, module: Any) -> Iterator[None]:
        """See `eager.state.Interpreter`: nodes get the path of the module as their scope."""
        builder, outer = self.builder, self.builder.scope
        owner = self._modules[-1] if self._modules else None
        children = () if owner is None else owner._modules.items()
        name = next((name for name, child in children if child is module), "")
        if not name and owner is not None:  # a grandchild, as of a ModuleList, or one from elsewhere
            name = next((path for path, child in owner.named_modules() if child is module), type(module).__name__)
        builder.scope = f"{outer}.{name}" if outer and name else outer or name
        self._modules.append(module)
        try:
            yield
        finally:
            self._modules.pop()
            builder.scope = outer

    # --- in-place writes

    def assign(self, target: Tensor, value: Tensor, name: str) -> Tensor:
        """See `eager.state.Interpreter`."""
        self.builder.where = user_line()
        symbol, before = self.read(value), self.read(target)
        recorded = grad_enabled() and (value._n is not None or target._n is not None)
        start = self.builder.next_id
        if symbol.aval.dtype != before.aval.dtype:
            symbol = self.builder.emit(_CAST, (symbol,), {"dtype": before.aval.dtype})
        if name in _COPIES or self.memories.find(symbol.id) is not None:
            symbol = self.builder.emit(_CLONE, (symbol,), {})  # a value of its own: `value` stays a tensor of its own
        place = self._place(target, before)
        if isinstance(place.memory.origin, (Argument, Captured)) and (shared := self._overlapping(place.memory.origin)):
            self._merge(shared)
            place = self._place(target, self.read(target))
        memory = place.memory
        if self.outer is not None and memory.origin is not None:
            raise errors.CaptureError(errors.WRITE_IN_BODY.format(name=name, used=user_line()))
        if memory.origin is None and any(id(t) in self._fresh and _is_seen_by_numpy(t) for t in memory.tensors.live()):
            raise errors.CaptureError(errors.NDARRAY_MEMORY.format(used=user_line()))
        strides = place.strides or row_major(tuple(before.shape))
        if any(s == 0 and n > 1 for s, n in zip(strides, before.shape, strict=True)):
            raise RuntimeError(REPEATED)
        if memory.leaf is not None and grad_enabled() and all(step.op.differentiable for step in place.steps):
            raise RuntimeError(LEAF_VIEW if place.steps else LEAF_IN_PLACE)
        if recorded and value._n is None and not place.steps:
            # what has a past keeps it, though no gradient reaches that any more
            everywhere = self.builder.emit(_FULL, (), {"shape": before.aval.shape, "value": True, "dtype": BOOL})
            symbol = self.builder.emit(_WHERE, (everywhere, symbol, before), {})
        whole = self.memories.whole_after(place, symbol)
        if recorded:
            self.autograd.recorded.update(range(start, self.builder.next_id))
        self._write(memory, whole, recorded)
        if not place.steps:
            self._set(target, memory.symbol)
        return target

    def set_data(self, tensor: Tensor, value: Tensor) -> None:
        """See `eager.state.Interpreter`: a write of the whole, after which both look at the same memory."""
        before, symbol = self.read(tensor), self.read(value)
        place, source = self._place(tensor, before), self.memories.find(symbol.id)
        if source is not None and source.memory is place.memory:
            rest = source.steps[len(place.steps) :]
            if source.steps[: len(place.steps)] == place.steps and not any(step.op.differentiable for step in rest):
                return  # tensor.data -= x, which has been written already
        why = ""
        if before.aval != symbol.aval:
            why = "the shape or dtype changes"
        elif self.owner_of(value) is not None or (source is not None and source.steps):
            why = "the value is a tensor, or a view of one, that others hold, too"
        elif place.steps or len(place.memory.tensors.live()) > 1:
            why = "the tensor is a view, or has views, which keep the old memory"
        if why:
            raise errors.CaptureError(errors.DATA_ASSIGNED.format(used=user_line(), why=why))
        with set_grad_enabled(False):
            self.assign(tensor, value, "copy")
        if value._n is None and source is None:
            self._set(value, place.memory.symbol)
            place.memory.tensors.add(value)

    def written(self, target: Tensor, value: Tensor, recorded: bool) -> None:
        """`target` has been written in place, and is `value` now, with that history."""
        symbol = self.read(value)
        place = self._place(target, self.read(target))
        self._write(place.memory, self.memories.whole_after(place, symbol), recorded)
        self.read(target)

    def _write(self, memory: Memory, whole: Symbol, recorded: bool) -> None:
        """Give a memory the value `whole`, with history if `recorded`."""
        builder, old = self.builder, memory.symbol
        live = memory.tensors.live()
        if memory.leaf is not None:  # a leaf again: gradients stop at this node
            whole = builder.emit(_STOP, (whole,), {})
            self.autograd.leaves[whole.id] = memory.leaf
        elif not recorded and any(t._n is not None for t in live):
            whole = builder.emit(_OVERWRITTEN, (old, whole), {})
            self.autograd.recorded.add(whole.id)
        self.memories.write(memory, whole)
        self.memories.put(whole, Place(memory, (), memory.version, memory.strides))
        if recorded:
            for t in live:
                if t._n is None:
                    t._n = whole

    def copied(self, tensor: Tensor) -> Tensor:
        """See `eager.state.Interpreter`."""
        return self.apply(_CLONE, (tensor,), {})

    # --- inputs that share memory

    def _note_memory(self, tensor: Tensor) -> None:
        """Remember whose memory an input shows; one that has been written already shows to this input, too."""
        owner = self._owners[id(tensor)]
        array = self.given(owner)._d
        if array.__class__ is not np.ndarray:
            return  # the result of a program, whose memory nobody else sees
        self._memory_of.setdefault(id(storage_of(array)), []).append(tensor)
        group = self._overlapping(owner)
        if any(p is not None and p.memory.version for t in group if (p := self._known_place(t))):
            self._merge(group)

    def _known_place(self, tensor: Tensor) -> Place | None:
        symbol = tensor._d if tensor._d.__class__ is Symbol else self._held[id(tensor)][1]
        return self.memories.find(symbol.id)

    def _overlapping(self, owner: Owner) -> list[Tensor]:
        """The inputs that show the memory that `owner` shows some of, itself among them; none if no two overlap."""
        array = self.given(owner)._d
        if array.__class__ is not np.ndarray:
            return []
        known = self._memory_of.get(id(storage_of(array)), [])
        if len(known) < 2:
            return []
        arrays = [self.given(self._owners[id(t)])._array() for t in known]
        if any(np.shares_memory(a, b) for a, b in itertools.combinations(arrays, 2)):
            return known  # all of them: a program writes this memory as a whole
        return []

    def _merge(self, tensors: list[Tensor]) -> None:
        """Let `tensors`, the inputs that show some memory, be views of it."""
        owners = [self._owners[id(t)] for t in tensors]
        arrays = [self.given(owner)._array() for owner in owners]
        if any(a.dtype != arrays[0].dtype for a in arrays) or not is_simple(storage_of(arrays[0])):
            raise errors.CaptureError(errors.SHARED_MEMORY.format(used=user_line()))
        places = [self._place(t, self.read(t)) for t in tensors]
        merged = next((p.memory for p in places if isinstance(p.memory.origin, MemoryOf)), None)
        whole = whole_memory(self.given(owners[0]))
        if merged is None:
            source = MemoryOf(owners[0])
            name = f"memory_{len(self.sources)}"
            symbol = self.input(name, Aval(tuple(whole._d.shape), whole._dtype()), source)
            merged = self.memories.place(symbol, source, None, None).memory
        written: list[tuple[Step, Symbol]] = []  # before they were known to be shared
        for place, array in zip(places, arrays, strict=True):
            if place.memory is not merged:
                step = Step(_STRIDED, {**geometry(whole._d, array), "layout": None})
                if place.memory.version:
                    written.append((step, place.memory.symbol))
                self.memories.merge(place.memory, merged, step)
        for step, symbol in written:  # now that all look at the whole, they are out of date
            self._write(merged, self.memories.whole_after(Place(merged, (step,), 0, None), symbol), False)
        for a, b in itertools.combinations(owners, 2):
            self._guard_overlap(a, b)

    def _guard_overlap(self, a: Owner, b: Owner) -> None:
        """The program holds for an argument that overlaps another input as it does now."""
        if isinstance(a, Argument) or isinstance(b, Argument):
            self.overlaps[a, b] = relation(self.given(a), self.given(b))

    # --- what Python wants to know

    def guard(self, getter: Callable[[], Any], value: Any, what: str) -> None:
        """See `eager.state.Interpreter`."""
        self.guards.append(Guard(getter, value, what))

    def called(self, tensor: Tensor) -> str:
        """What messages call a concrete tensor: "`self.weight`"."""
        name = self.name_of(tensor)
        return f"`{name}`" if name else "a captured tensor"

    def _layout_of(self, tensor: Tensor) -> str:
        return f"how {self.called(tensor)} lies in memory"

    def guard_argument(self, position: int, getter: Callable[[Tensor], Any], value: Any, what: str) -> None:
        """The program is right only while `getter`, of argument number `position`, gives `value`."""
        self.argument_guards.append(ArgumentGuard(position, getter, value, what))

    def values_read(self, tensor: Tensor) -> np.ndarray | None:
        """See `eager.state.Interpreter`."""
        if tensor._d.__class__ is Symbol:
            return None  # `array_of` has seen to it
        if self._is_written(tensor):
            return self.array_of(tensor, "reading the values after an in-place write")
        if id(tensor) not in self._fresh and id(tensor) not in self._read:
            self._read.add(id(tensor))
            self.guard(self._later(tensor, _values_of), _values_of(tensor), f"the value of {self.called(tensor)}")
        return None

    def values_shown(self, tensor: Tensor) -> np.ndarray | None:
        """See `eager.state.Interpreter`."""
        if is_only_shown():
            return None if self._is_written(tensor) else tensor._array()
        return tensor._known()

    def is_constant(self, tensor: Tensor) -> bool:
        """Whether `tensor`, as it lies in memory or as a Symbol, has the same values in every run."""
        if tensor._d.__class__ is Symbol:
            return self.read(tensor).id in self._constants
        return id(tensor) in self._fresh and not self._is_written(tensor)

    def number_written(self, tensor: Tensor) -> Any:
        """See `eager.state.Interpreter`."""
        if tensor._d.__class__ is Symbol or not self._is_written(tensor) or self.read(tensor).aval.size != 1:
            return None
        return self.number_of(tensor)

    def _is_written(self, tensor: Tensor) -> bool:
        """Whether the program has written the memory that a concrete tensor shows."""
        held = self._held.get(id(tensor))
        place = None if held is None else self.memories.find(held[1].id)
        return place is not None and place.memory.version > 0

    def _later(self, tensor: Tensor, of: Callable[[Tensor], Any]) -> Callable[[], Any]:
        """Asks `of` about a concrete tensor at a later call: the one that is in its place then, if that moves."""
        source = self.reached.get(id(tensor))
        if source is None:
            return functools.partial(of, tensor)
        return lambda: of(found) if isinstance(found := source.get(), Tensor) else None

    def truth_of(self, tensor: Tensor) -> np.ndarray:
        """The truth value of a traced tensor of one element, on which the path depends from now on."""
        symbol = self.read(tensor)
        if symbol.id in self._constants:
            return self._fixed(symbol)
        if symbol.aval.size != 1 or not self._whole:
            if not self._whole:
                raise self.unknown(tensor, errors.BRANCH_ON_TRACED, "the truth value")
            return np.empty(symbol.shape, symbol.dtype)  # PyTorch's error is about its size
        if symbol.dtype != BOOL:
            symbol = self.builder.apply(OPS["ne"], (symbol, 0), {})
        return self._decide(symbol)

    def array_of(self, tensor: Tensor, purpose: str = "reading the values") -> np.ndarray:
        """The values of a traced tensor, on which the path depends from now on."""
        symbol = self.read(tensor)
        if symbol.id in self._constants:
            return self._fixed(symbol)
        if not self._whole or symbol.aval.size > READABLE:
            raise self.unknown(tensor, errors.TRACED_TO_NUMPY, purpose)
        return self._decide(symbol)

    def text_values(self, tensor: Tensor) -> np.ndarray | None:
        """The values of a traced tensor for a text; the path depends on them from now on. None if it is only shown."""
        if not self._whole or self.outer is not None or is_only_shown():
            return None
        if tensor._n is not None:  # the text names its grad_fn
            raise self.unknown(tensor, errors.TRACED_TO_NUMPY, "the text of a tensor that requires grad")
        return self.array_of(tensor, "the text of a tensor")

    def number_of(self, tensor: Tensor) -> Any:
        """The value of a traced tensor of one element as a number that is traced, too."""
        symbol = self.read(tensor)
        if symbol.aval.size == 1 and symbol.id in self._constants:
            return self._fixed(symbol).item()
        if not self._whole and self.outer is None:
            raise self.unknown(tensor, errors.TRACED_TO_NUMPY, "reading the values")
        return Number.of(self, symbol)

    def _fixed(self, symbol: Symbol) -> np.ndarray:
        """The value of a symbol that is a constant: the path does not depend on it."""
        array = np.array(self._values(symbol.id))
        array.flags.writeable = False
        return array

    def _decide(self, symbol: Symbol) -> np.ndarray:
        self._check_values(symbol)
        known = self._hosted.getter(symbol.id)
        if known is None and len(self.decisions) < len(self.foretold):
            self._values.tell(symbol.id, np.frombuffer(self.foretold[len(self.decisions)], symbol.dtype))
        array = np.array(self._values(symbol.id))
        array.flags.writeable = False
        assert array.shape == tuple(map(operator.index, symbol.shape))  # values depend on how many there are
        where = user_line()
        if known is not None:  # it depends on numbers of Python's alone, which are known before the program runs
            self._guard_number(symbol, known, seen(array))
            return array
        with interpreting(self):
            self.builder.where = where
            decided = self.builder.emit(_DECIDED, (symbol, self.builder.constant(array)), {})
        self.decisions.append(Decision(decided.id, array.tobytes(), where, str(array.tolist())))
        return array

    def _guard_number(self, symbol: Symbol, getter: HostedValue, value: Seen) -> None:
        """The program is right only while `getter` gives `value` for the symbol."""
        what = f"what is decided at {user_line()}"
        if not getter.positions:
            self.guard(functools.partial(getter, {}), value, what)
            return
        if self.builder.nodes[symbol.id].op is INPUT:
            varying = self._varying[self.sources[self.builder.inputs.index(symbol.id)]]
            varying.position.taken = varying.position.taken or not varying.by_value
        # each number knows the others of its call
        self.guard_argument(getter.positions[0], functools.partial(_decided_again, getter), value, what)

    def value_of(self, symbol: Symbol) -> np.ndarray:
        """The value of a symbol in the call that is being traced: the program does not depend on it."""
        self._check_values(symbol)
        return self._values(symbol.id)

    def _check_values(self, symbol: Symbol) -> None:
        """Raise CaptureError if there are none: inside a function given to control flow."""
        if self.outer is not None:
            raise self.unknown(self.wrap(symbol, False), errors.TRACED_TO_NUMPY, "the value of a number")

    def value_of_node(self, id_: int) -> np.ndarray:
        """The value of a node in the call that is being traced, in memory of its own."""
        return np.array(self._values(id_))

    def hold_inputs(self) -> None:
        """Compute values from the inputs as they are now, from now on."""
        self._values.hold()

    def draw_all(self) -> None:
        """Draw all random numbers that the program needs."""
        for k, source in enumerate(self.sources):
            if isinstance(source, Draw):
                self._array(k)

    def known_number(self, symbol: Symbol) -> Any:
        """The value of a 0-d symbol as a Python number, on which the path depends from now on."""
        return self._decide(symbol).item()

    def _array(self, k: int) -> np.ndarray:
        """The array of input number `k`, in the call that is being traced."""
        source = self.sources[k]
        if isinstance(source, Draw):
            for i, earlier in enumerate(self.sources[: k + 1]):  # in program order
                if isinstance(earlier, Draw) and i not in self.drawn:
                    if not any(earlier.generator is generator for generator, _ in self.states):
                        with interpreting(None):
                            self.states.append((earlier.generator, earlier.generator.get_state()))
                    with contextlib.nullcontext() if self.sizes is None else self.sizes.asking():
                        self.drawn[i] = np.asarray(earlier.draw())
            return self.drawn[k]
        if isinstance(source, Reached) and source.kind is not None:
            return np.asarray(self._moving[source], self.builder.nodes[self.builder.inputs[k]].dtype)
        data = self.given(source)._d
        return np.asarray(data.array if data.__class__ is Deferred else data)

    def lies_plainly(self, tensor: Tensor) -> None:
        """See `eager.state.Interpreter`."""
        owner = self._owners.get(id(tensor))
        if isinstance(owner, Argument):
            self.guard_argument(owner.position, is_plain, True, "how it lies in memory")
        elif tensor._d.__class__ is Symbol:
            place = self.memories.find(tensor._d.id)
            if place is not None and place.steps:
                raise self.unknown(tensor, errors.UNKNOWN_MEMORY, "as_strided")
            return
        elif owner is not None or id(tensor) not in self._fresh:
            self.guard(self._later(tensor, is_plain), True, self._layout_of(tensor))
        if not is_plain(tensor if owner is None else self.given(owner)):
            raise self.unknown(tensor, errors.UNKNOWN_MEMORY, "as_strided")

    def unknown(self, tensor: Tensor, message: str, what: str) -> errors.CaptureError:
        """The error of a function that needs to know more of a traced tensor than a graph under capture does."""
        symbol = self.read(tensor)
        node = self.builder.nodes[symbol.id]
        made = node.where or f"the call, as '{node.params.get('name', '')}'"
        return errors.CaptureError(message.format(what=what, aval=symbol.aval, made=made, used=user_line()))

    # --- random numbers, leaves

    def random(
        self, draw: Callable[[tuple[int, ...]], np.ndarray], shape: tuple[int, ...], dtype: np.dtype, generator: Any,
        like: Any = None,
    ) -> Tensor:  # fmt: skip
        """See `eager.state.Interpreter`."""
        fix_numbers(draw)
        source = Draw(functools.partial(draw, shape), generator)
        return self.wrap(self.input(f"random_{len(self.sources)}", Aval(tuple(shape), dtype), source), False)

    def at_each_call(self, action: Callable[[], Any], generator: Any) -> None:
        """See `eager.state.Interpreter`: as a draw of no numbers."""

        def draw(shape: tuple[int, ...]) -> np.ndarray:
            action()
            return np.empty(shape, UINT8)

        self.random(draw, (0,), UINT8, generator)

    def leaf_changed(self, tensor: Tensor) -> None:
        """See `eager.state.Interpreter`. From now on a node of its own stands for it: others used the one before."""
        before = self.read(tensor)
        symbol = self.builder.emit(_STOP, (before,), {})
        place = self.memories.find(before.id)
        if place is not None:
            self.memories.put(symbol, place)
            if not place.steps:
                place.memory.symbol = symbol
                place.memory.leaf = None if tensor._n is None else tensor
        self._set(tensor, symbol)
        if tensor._n is not None:
            self.autograd.leaves[symbol.id] = tensor

    def entered(self, tensor: Tensor, leaf: Any) -> Tensor:
        """A tensor like `tensor` that gradients can be taken with respect to: with its history, or with `leaf`."""
        if tensor._n is not None:
            return self.apply(_CLONE, (tensor,), {})
        stand_in = self.apply(_STOP, (tensor,), {})
        stand_in._n = leaf
        self.autograd.leaves[self.read(stand_in).id] = stand_in
        return stand_in

    def left(self, tensor: Tensor) -> None:
        """Gradients are no longer taken with respect to `tensor`, which `entered` made."""
        if self.autograd.leaves.get(self.read(tensor).id) is tensor:
            del self.autograd.leaves[self.read(tensor).id]

    # --- the end

    def finish(self, result: Any) -> tuple[Any, list[Returned], list[Effect]]:
        """Close the trace. Returns the result with Refs in place of tensors, what those are, and what changes."""
        self.autograd.check_hooks()
        refs = map_tensors(result, lambda t, path: Ref(self.read(t).id))
        returned = Results(self, list(tensors_of(result))).found
        effects = self.effects()
        self.builder.closed = True
        return refs, returned, effects

    def effects(self) -> list[Effect]:
        """What the program changes, so far."""
        found = [
            Effect(memory.origin, memory.symbol.id, self._history_of(memory))
            for memory in self.memories.written.values()
            if memory.origin is not None
        ]
        found += self.autograd.effects()
        for stand_in in {id(t): t for t in self._stand_ins.values()}.values():
            owner = self._owners[id(stand_in)]
            assert isinstance(owner, Argument)
            if stand_in.is_leaf and (flag := stand_in._n is not None) is (self.given(owner)._n is None):
                found.append(Effect(LeafFlag(owner, flag), None))
        # in the order of the inputs: JAX pairs donated inputs with results of the same type in order, and a program
        # that writes each state over itself needs no copies
        place = {source: k for k, source in enumerate(self.sources)}
        return sorted(found, key=lambda effect: place.get(effect.target, len(place)))  # type: ignore[arg-type]

    def _history_of(self, memory: Memory) -> History:
        if memory.leaf is not None or memory.symbol.id not in self.autograd.recorded:
            return History.NONE
        return self.autograd.history(self.wrap(memory.symbol, True))

    @contextlib.contextmanager
    def reopened(self, graph: Graph) -> Iterator[None]:
        """The trace goes on, for gradients, in a copy of its `graph`. What it reaches then is forgotten at the end."""
        builder, held, count = self.builder, dict(self._held), len(self.sources)
        builder.nodes, builder.inputs, builder.closed = dict(graph.nodes), list(graph.inputs), False
        try:
            with interpreting(self):
                yield
        finally:
            builder.closed, self._held = True, held
            del self.sources[count:]

    def reached_since(self, count: int) -> list[Tensor]:
        """The tensors behind the inputs from number `count` on. Raises CaptureError for random numbers."""
        if any(not isinstance(source, Captured) for source in self.sources[count:]):
            raise errors.CaptureError(errors.DRAW_IN_RULE)
        return [self.given(source) for source in self.sources[count:]]

    def written_leaves(self) -> Iterator[tuple[int, int]]:
        """The nodes at which gradients for an input stop besides the input itself: (node, number of the input)."""
        numbers = {source: k for k, source in enumerate(self.sources)}
        for id_, leaf in self.autograd.leaves.items():
            k = numbers.get(self.owner_of(leaf))  # type: ignore[arg-type]
            if k is not None and self.builder.inputs[k] != id_:
                yield id_, k

    @property
    def recorded(self) -> frozenset[int]:
        """The ids of the nodes that gradients flow through."""
        return frozenset(self.autograd.recorded)


def _values_of(tensor: Tensor) -> Seen:
    array = tensor._array()
    return seen(array)


def _is_seen_by_numpy(tensor: Tensor) -> bool:
    """Whether something else than a concrete tensor refers to its memory, as an ndarray given to `from_numpy` does."""
    base = getattr(tensor._d, "base", None)
    return base is not None and getrefcount(base) > 3  # held by the array of the tensor, `base` and getrefcount


def _decided_again(getter: HostedValue, varying: Any) -> Seen:
    return getter(varying.numbers)
