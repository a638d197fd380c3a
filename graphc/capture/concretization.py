"""What Python asks of a trace: values, and how tensors lie in memory. The program then depends on the answers.

A value that is the same in every run is given as it is. On any other, the program is right on one path only: what
depends on Python's own numbers is a guard, asked before a run; what depends on tensors is a *decision*, which the
program checks when it runs.
"""

from __future__ import annotations

import contextlib
import functools
import math
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, final

import numpy as np

from eager.core.interpreter import interpreting
from eager.core.state import storage_of
from eager.core.tensor import Tensor
from eager.functional.strides import check_within, plain_window, storage_offset, window
from eager.storage import is_plain
from graphc import errors
from graphc.capture.display_only import is_only_shown
from graphc.capture.example_values import Constants, ExampleValues, Hosted, HostedValues, Seen, seen
from graphc.capture.location import user_line
from graphc.capture.number import Number
from graphc.capture.sources import Argument, ArgumentGuard, Captured, Decision, Draw, Guard, Lifted, MemoryOf, Owner
from graphc.capture.storage.inputs import dense_order, strides_in_order, strides_of_tensor
from graphc.capture.storage.memory import Place
from graphc.capture.unknown_sizes import Asked, asked_here, counted_refusal, rewritten_branch
from graphc.capture.unrolling import Unrolling
from graphc.ir import INPUT, Symbol
from graphc.ops import OPS
from graphc.ops.dims import has_dim
from graphc.ops.dtypes import BOOL
from graphc.ops.strided import positions
from graphc.ops.strides import normal, row_major

if TYPE_CHECKING:
    from graphc.capture.trace_state import TraceState
    from graphc.capture.tracer import Tracer

_DECIDED = OPS["decided"]
READABLE = 64  # elements of a tensor on whose values Python may decide


@final
class Concretization:
    """The questions that one trace has been asked, and what they have been answered from.

    asked     which line of the user's is being counted for, if it is not the one that is running
    """

    def __init__(self, state: TraceState, tracer: Tracer):
        self._state, self._builder, self._memories = state, state.builder, state.memories
        self._tracer = tracer
        self.asked: Asked | None = None
        self._shown: list[tuple[np.ndarray, str]] = []  # arrays that the function was given, and where
        self._read: set[int] = set()  # concrete tensors whose values are guarded
        self._hosted = Hosted(state.builder, state.sources, state.lifted_numbers.keys())
        self._example_values = ExampleValues(state.builder, self._array)
        self._constants = Constants(state.builder)
        self.unrolling = Unrolling(state.builder)

    def layout(self, tensor: Tensor, owner: Owner) -> Any:
        """The strides of an input, which the program is made for from now on."""
        given = self._state.given(owner)
        strides = strides_of_tensor(given)
        if strides is not None and has_dim(tensor._d.shape) and (order := dense_order(given)) is not None:
            assert isinstance(owner, Argument)
            self.guard_argument(owner.position, dense_order, order, "how it lies in memory")
            return strides_in_order(tuple(tensor._d.shape), order)
        if isinstance(owner, Argument):
            quick = "True" if strides else "t._d.__class__ is ndarray and not t._d.flags.c_contiguous"
            self.guard_argument(owner.position, strides_of_tensor, strides, "how it lies in memory", quick)
        elif isinstance(owner, Captured):
            self._state.guards.append(
                Guard(functools.partial(strides_of_tensor, given), strides, self._layout_named(given), given)
            )
        elif isinstance(owner, Lifted):
            self.guard(self.later(given, strides_of_tensor), strides, self._layout_named(given))
        return strides

    def layout_of_input(self, position: int) -> Any:
        """The strides of the input at `position` of the graph; None if it is row-major, or not known yet."""
        # a body's operands come first: row-major
        own = position - (len(self._builder.inputs) - len(self._state.sources))
        source = self._state.sources[own] if own >= 0 else None
        if not isinstance(source, (Argument, Captured, Lifted)):
            return None
        if isinstance(source, Argument) and source.position >= len(self._state.arguments):
            return None  # a placeholder: it is given when the graph is run
        given = self._state.given(source)
        if not isinstance(given, Tensor):
            return None
        if self._state.outer is not None and given._d.__class__ is Symbol:
            return normal(tuple(given._d.shape), self._state.outer.concretization.strides(given))
        return self.layout(self._state.stand_ins.get(id(given), given), source)

    def made_plain(self, tensor: Tensor) -> None:
        """See `graphc.ops.stand_in.StandIn`."""
        self._state.memories.place(self._tracer.read(tensor), None, None, None)

    def strides(self, tensor: Tensor) -> tuple[int, ...]:
        """The strides of a traced tensor, in elements."""
        symbol = self._tracer.read(tensor)
        place = self._state.memories.find(symbol.id)
        if place is None and id(tensor) in self._state.owners:
            place = self._tracer.place_of(tensor, symbol)
        strides = self._tracer.layouts.of(symbol.id) if place is None else place.strides
        return row_major(tuple(tensor._d.shape)) if strides is None else strides

    def storage_offset(self, tensor: Tensor) -> int:
        """The place of the first element of a traced tensor in its memory, in elements."""
        place = self._tracer.place_of(tensor, self._tracer.read(tensor))
        if place.offset is None or has_dim(tensor._d.shape):
            raise self.unknown(tensor, errors.UNKNOWN_MEMORY, "storage_offset")
        origin = None if place.memory.replaces else place.memory.origin
        if origin is None or isinstance(origin, MemoryOf):
            return place.offset
        given = self._state.given(origin)
        if given._d.__class__ is Symbol and self._state.outer is not None:
            own = self._state.outer.concretization.storage_offset(given)
        else:
            own = storage_offset(given)
            self._guard_memory(origin, given, storage_offset, own)
        return own * given._dtype().itemsize // tensor._dtype().itemsize + place.offset

    def _guard_memory(self, owner: Owner, given: Tensor, getter: Callable[[Tensor], Any], value: Any) -> None:
        """The program is right only while `getter`, of the memory of an input, gives `value`."""
        if isinstance(owner, Argument):
            self.guard_argument(owner.position, getter, value, "how it lies in memory")
        else:
            self.guard(self.later(given, getter), value, self._layout_named(given))

    def guard(self, getter: Callable[[], Any], value: Any, what: str) -> None:
        """See `eager.core.interpreter.Interpreter`."""
        self._state.guards.append(Guard(getter, value, what))

    def called(self, tensor: Tensor) -> str:
        """What messages call a concrete tensor: "`self._tracer.weight`"."""
        name = self._state.name_of(tensor)
        return f"`{name}`" if name else "a captured tensor"

    def _layout_named(self, tensor: Tensor) -> str:
        return f"how {self.called(tensor)} lies in memory"

    def guard_argument(
        self, position: int, getter: Callable[[Tensor], Any], value: Any, what: str, quick: str = "True"
    ) -> None:
        """The program is right only while `getter`, of argument number `position`, gives `value`."""
        self._state.argument_guards.append(ArgumentGuard(position, getter, value, what, quick))

    def values_read(self, tensor: Tensor) -> np.ndarray | None:
        """See `eager.core.interpreter.Interpreter`."""
        if tensor._d.__class__ is Symbol:
            return None  # `array_of` has seen to it
        if self._is_written(tensor):
            return self.array_of(tensor, "reading the values after an in-place write")
        if id(tensor) in self._state.fresh:
            return None
        if id(tensor) not in self._read:
            self._read.add(id(tensor))
            self.guard(self.later(tensor, _values_of), _values_of(tensor), f"the value of {self.called(tensor)}")
        return self._given(tensor._array().view())

    def values_shown(self, tensor: Tensor) -> np.ndarray | None:
        """See `eager.core.interpreter.Interpreter`."""
        if is_only_shown():
            return None if self._is_written(tensor) else tensor._array()
        return tensor._known()

    def is_constant(self, tensor: Tensor) -> bool:
        """Whether `tensor`, as it lies in memory or as a Symbol, has the same values in every run."""
        if tensor._d.__class__ is Symbol:
            symbol = self._tracer.read(tensor)
            return symbol.id in self._constants or 0 in symbol.shape
        return id(tensor) in self._state.fresh and not self._is_written(tensor)

    def number_written(self, tensor: Tensor) -> Any:
        """See `eager.core.interpreter.Interpreter`."""
        if tensor._d.__class__ is Symbol or not self._is_written(tensor) or self._tracer.read(tensor).aval.size != 1:
            return None
        return self.number_of(tensor)

    def _is_written(self, tensor: Tensor) -> bool:
        """Whether the program has written the memory that a concrete tensor shows."""
        held = self._state.held.get(id(tensor))
        place = None if held is None else self._memories.find(held[1].id)
        return place is not None and place.memory.version > 0

    def later(self, tensor: Tensor, of: Callable[[Tensor], Any]) -> Callable[[], Any]:
        """Asks `of` about a concrete tensor at a later call: the one that is in its place then, if that is lifted."""
        source = self._state.lifted_tensors.get(id(tensor))
        if source is None:
            return functools.partial(of, tensor)
        return lambda: of(found) if isinstance(found := source.get(), Tensor) else None

    def truth_of(self, tensor: Tensor) -> np.ndarray:
        """The truth value of a traced tensor of one element, on which the path depends from now on."""
        symbol = self._tracer.read(tensor)
        if symbol.id in self._constants:
            return self._fixed(symbol)
        if symbol.aval.size != 1 or not self._state.whole:
            if not self._state.whole:
                raise self.unknown(tensor, errors.BRANCH_ON_TRACED, "the truth value")
            return np.empty(symbol.shape, symbol.dtype)  # PyTorch's error is about its size
        if symbol.dtype != BOOL:
            symbol = self._builder.apply(OPS["ne"], (symbol, 0), {})
        return self._decide(symbol)

    def array_of(self, tensor: Tensor, purpose: str = "reading the values") -> np.ndarray:
        """The values of a traced tensor, on which the path depends from now on."""
        symbol = self._tracer.read(tensor)
        if symbol.id in self._constants:
            return self._fixed(symbol)
        if not self._state.whole or symbol.aval.size > READABLE:
            raise self.unknown(tensor, errors.TRACED_TO_NUMPY, purpose)
        return self._decide(symbol)

    def shows(self, tensor: Tensor) -> bool:
        """Whether a concrete tensor shows an array of values that the function was given."""
        array = tensor._d
        return array.__class__ is np.ndarray and any(storage_of(array) is storage_of(given) for given, _ in self._shown)

    def refusal(self, error: Exception) -> errors.CaptureError | None:
        """What to raise in place of what NumPy raises for a write to such an array."""
        if not self._shown or not isinstance(error, ValueError) or "read-only" not in str(error):
            return None
        return errors.CaptureError(errors.VALUES_WRITTEN.format(used=self._shown[-1][1]))

    def text_values(self, tensor: Tensor) -> np.ndarray | None:
        """The values of a traced tensor for a text; the path depends on them from now on. None if it is only shown."""
        if not self._state.whole or self._state.outer is not None or is_only_shown():
            return None
        if tensor._n is not None:  # the text names its grad_fn
            raise self.unknown(tensor, errors.TRACED_TO_NUMPY, "the text of a tensor that requires grad")
        return self.array_of(tensor, "the text of a tensor")

    def number_of(self, tensor: Tensor) -> Any:
        """The value of a traced tensor of one element as a number that is traced, too."""
        symbol = self._tracer.read(tensor)
        if symbol.aval.size == 1 and symbol.id in self._constants:
            return self._fixed(symbol).item()
        if not self._state.whole and self._state.outer is None:
            raise self.unknown(tensor, errors.TRACED_TO_NUMPY, "reading the values")
        return Number.of(self._tracer, symbol)

    def count_of(self, tensor: Tensor, purpose: str) -> Any:
        """The value of a traced 0-d tensor, which the shape of the result of `purpose` depends on, as a number.

        The path depends on it from now on.
        """
        symbol = self._tracer.read(tensor)
        if symbol.id in self._constants:
            return self._fixed(symbol).item()
        if not self._state.whole or self._state.outer is not None:
            raise errors.CaptureError(counted_refusal(purpose, self.asked or asked_here()))
        return self._decide(symbol, purpose).item()

    def _fixed(self, symbol: Symbol) -> np.ndarray:
        """The value of a symbol that is a constant: the path does not depend on it."""
        return self._given(np.array(self._example_values(symbol.id)))

    def _given(self, array: np.ndarray) -> np.ndarray:
        """`array`, for the function to read."""
        array.flags.writeable = False
        self._shown.append((array, user_line()))
        return array

    def _decide(self, symbol: Symbol, counts: str = "") -> np.ndarray:
        self._check_values(symbol)
        known = self._hosted.getter(symbol.id)
        if known is None and len(self._state.decisions) < len(self._state.foretold):
            self._example_values.tell(
                symbol.id, np.frombuffer(self._state.foretold[len(self._state.decisions)], symbol.dtype)
            )
        array = self._given(np.array(self._example_values(symbol.id)))
        assert array.shape == tuple(map(operator.index, symbol.shape))  # values depend on how many there are
        where = user_line() if self.asked is None else self.asked.where
        if known is not None:  # it depends on numbers of Python's alone, which are known before the program runs
            self._guard_number(symbol, known, seen(array))
            return array
        self.unrolling.decided(symbol.id, where, array.item() if array.size == 1 else None)
        with interpreting(self._tracer):
            self._builder.where = where
            decided = self._builder.emit(_DECIDED, (symbol, self._builder.constant(array)), {})
        self._state.decisions.append(Decision(decided.id, array.tobytes(), where, str(array.tolist()), counts))
        return array

    def _guard_number(self, symbol: Symbol, getter: HostedValues, value: Seen) -> None:
        """The program is right only while `getter` gives `value` for the symbol."""
        what = f"what is decided at {user_line()}"
        if not getter.positions:
            self.guard(functools.partial(getter, {}), value, what)
            return
        if self._builder.nodes[symbol.id].op is INPUT:
            lifted = self._state.lifted_numbers[self._state.sources[self._builder.inputs.index(symbol.id)]]
            lifted.position.taken = lifted.position.taken or not lifted.by_value
        # each number knows the others of its call
        self.guard_argument(getter.positions[0], functools.partial(_decided_again, getter), value, what)

    def value_of(self, symbol: Symbol) -> np.ndarray:
        """The value of a symbol in the call that is being traced: the program does not depend on it."""
        self._check_values(symbol)
        return self._example_values(symbol.id)

    def _check_values(self, symbol: Symbol) -> None:
        """Raise CaptureError if there are none: inside a function given to control flow."""
        if self._state.outer is not None:
            raise self.unknown(self._tracer.wrap(symbol, False), errors.TRACED_TO_NUMPY, "the value of a number")

    def value_of_node(self, id_: int) -> np.ndarray:
        """The value of a node in the call that is being traced, in memory of its own."""
        return np.array(self._example_values(id_))

    def hold_inputs(self) -> None:
        """Compute values from the inputs as they are now, from now on."""
        self._example_values.hold()

    def draw_all(self) -> None:
        """Draw all random numbers that the program needs."""
        for k, source in enumerate(self._state.sources):
            if isinstance(source, Draw):
                self._array(k)

    def known_number(self, symbol: Symbol) -> Any:
        """The value of a 0-d symbol as a Python number, on which the path depends from now on."""
        return self._decide(symbol).item()

    def _array(self, k: int) -> np.ndarray:
        """The array of input number `k`, in the call that is being traced."""
        source = self._state.sources[k]
        if isinstance(source, Draw):
            draws = [s for s in self._state.sources[: k + 1] if isinstance(s, Draw)]
            for i, earlier in enumerate(draws):  # in program order
                if i not in self._state.drawn:
                    if not any(earlier.generator is generator for generator, _ in self._state.drawn.marks):
                        self._state.drawn.marks.append((earlier.generator, earlier.generator.mark()))
                    with contextlib.nullcontext() if self._state.sizes is None else self._state.sizes.asking():
                        self._state.drawn[i] = np.asarray(earlier.draw())
            return self._state.drawn[len(draws) - 1]
        if isinstance(source, Lifted) and source.kind is not None:
            return np.asarray(self._state.lifted[source], self._builder.nodes[self._builder.inputs[k]].dtype)
        data = self._state.given(source)._d
        return np.asarray(getattr(data, "array", data))  # of a result of XLA's, and of a part of a pack

    def lies_plainly(self, tensor: Tensor) -> None:
        """See `eager.core.interpreter.Interpreter`."""
        place = self._place(tensor)
        if place.steps or place.strides is not None:
            raise self.unknown(tensor, errors.UNKNOWN_MEMORY, "as_strided")

    def window(
        self, tensor: Tensor, size: tuple[int, ...], stride: tuple[int, ...], offset: int | None
    ) -> dict[str, Any]:
        """See `eager.core.interpreter.Interpreter`."""
        place, shape = self._place(tensor), tuple(tensor._d.shape)
        if not place.steps and place.strides is None:
            return plain_window(tensor, size, stride, offset)
        own = None if has_dim(shape) else place.offset
        if own is not None:
            start, item = own if offset is None else offset, tensor._dtype().itemsize
            check_within(size, stride, start, item, math.prod(place.memory.symbol.shape) * item)
            params = window(shape, place.strides or row_major(shape), size, stride, start - own)
            if _is_shown(shape, **params):
                return params
        raise self.unknown(tensor, errors.UNKNOWN_MEMORY, "as_strided")

    def _place(self, tensor: Tensor) -> Place:
        """Where `tensor` looks, in a memory of which the program knows all."""
        tracer = self._tracer
        place = tracer.place_of(tensor, tracer.read(tensor))
        origin = None if place.memory.replaces else place.memory.origin
        if origin is None:
            given = tensor
        elif isinstance(origin, MemoryOf):
            return place
        else:
            given = self._state.given(origin)
            self._guard_memory(origin, given, is_plain, True)
        if given._d.__class__ is Symbol and origin is not None and self._state.outer is not None:
            self._state.outer.lies_plainly(given)
        elif not is_plain(given):
            raise self.unknown(tensor, errors.UNKNOWN_MEMORY, "as_strided")
        return place

    def unknown(self, tensor: Tensor, message: str, what: str) -> errors.CaptureError:
        """The error of a function that needs to know more of a traced tensor than a graph under capture does."""
        symbol = self._tracer.read(tensor)
        node = self._builder.nodes[symbol.id]
        made = node.where or f"the call, as '{node.params.get('name', '')}'"
        line = rewritten_branch() if message is errors.BRANCH_ON_TRACED else ""
        return errors.CaptureError(message.format(what=what, aval=symbol.aval, made=made, used=user_line()) + line)


def _is_shown(shape: tuple[int, ...], size: tuple[int, ...], stride: tuple[int, ...], offset: int, layout: Any) -> bool:
    """Whether all elements of a window are those of a tensor of that shape, and not others of its memory."""
    if 0 in size:
        return True
    if layout is None:
        return offset + sum((n - 1) * s for n, s in zip(size, stride, strict=True)) < math.prod(shape)
    return positions(shape, size, stride, offset, layout).max() < math.prod(shape)


def _values_of(tensor: Tensor) -> Seen:
    array = tensor._array()
    return seen(array)


def _decided_again(getter: HostedValues, lifted: Any) -> Seen:
    return getter(lifted.numbers)
