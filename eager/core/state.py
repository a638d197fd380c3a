"""What the whole engine shares: gradient mode, the node counter, the mutation clock, and the interpreter in force.

The node counter gives each recorded operation a number; `backward()` visits nodes from the highest down. In-place
writes take a number from the same counter (the *mutation clock*), so "was anything written after this node was
recorded" is one comparison, and the fast path pays nothing for it.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

import numpy as np

from graphc import forking

GRAD_ENABLED: ContextVar[bool] = ContextVar("grad_enabled", default=True)
grad_enabled = GRAD_ENABLED.get
sequence = itertools.count(1)


class Interpreter:
    """Who runs Tensor operations when it is not NumPy: a trace. Tensors are `eager.core.tensor.Tensor`.

    immediate: operations on tensors with values run at once.
    """

    immediate: bool

    def apply(self, op: Any, operands: Any, params: Any) -> Any:
        """Run `op` on Tensors and Python scalars; returns a Tensor."""

    def created(self, tensor: Any) -> None:
        """A concrete tensor has been made inside the traced function."""

    def assign(self, target: Any, value: Any, name: str, where: Any = None) -> Any:
        """The in-place op `name` gives `target` the values of `value`. Returns `target`.

        where: the elements that are written; only for a tensor that `repeats`.
        """

    def copied(self, tensor: Any) -> Any:
        """`tensor` as it is now, whatever is written to it later."""

    def select(self, x: Any, mask: Any, lead: int, purpose: str) -> Any:
        """The parts of `x` where a bool tensor, over its dims from number `lead` on, is true; None: count them."""

    def replace(self, target: Any, value: Any) -> bool:
        """Give `target`, which `select` has made, a new `value` from it. False: that takes an `assign`."""
        return False

    def get_grad(self, tensor: Any) -> Any:
        """`tensor.grad` at this point of the program."""

    def set_grad(self, tensor: Any, value: Any) -> None:
        """`tensor.grad = value`."""

    def backward(self, outputs: Any, cotangents: Any, inputs: Any, create_graph: bool, keep: bool) -> None:
        """Accumulate gradients into `.grad`, of the leaves or of `inputs`."""

    def gradients(self, outputs: Any, cotangents: Any, inputs: Any, create_graph: bool, keep: bool) -> list[Any]:
        """The gradient of each of `inputs`, or None; the graph may be used again if `keep`."""
        raise NotImplementedError

    def hook(self, tensor: Any, hook: Callable[[Any], Any]) -> Any:
        """Call `hook` with each gradient that arrives at `tensor`. Returns a handle."""

    def hook_after(self, tensor: Any, hook: Any) -> Any:
        """Call `hook(tensor)` after each time the `.grad` of the leaf `tensor` has been written. Returns the handle."""

    def retain(self, tensor: Any) -> None:
        """Fill `.grad` of `tensor`, which is no leaf, too."""

    def custom(self, rule: Any, inputs: Sequence[Any], outputs: Sequence[Any], wanted: Sequence[bool]) -> list[Any]:
        """`outputs` of a user's Function, computed from `inputs`, with its `rule` (eager.function) for a gradient."""
        raise NotImplementedError

    def function(self, cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """`cls.apply(*args, **kwargs)` of a user's Function inside a function transform."""
        return cls._applied(args, kwargs)

    def random(
        self, draw: Callable[[tuple[int, ...]], np.ndarray], shape: tuple[int, ...], dtype: np.dtype, generator: Any,
        like: Any = None,
    ) -> Any:  # fmt: skip
        """A tensor of random numbers, drawn anew from `generator` by `draw(shape)` each time the program runs.

        like: the tensor for which they are drawn.
        """

    def at_each_call(self, action: Callable[[], Any], generator: Any) -> None:
        """Do `action`, which changes the state of `generator`, each time the program runs, in order with the draws."""

    def on_interrupt(self, undo: Callable[[], None]) -> None:
        """Do `undo`, which may be done twice, if the call ends by an interrupt and what is traced has not been run."""

    def inside(self, module: Any) -> AbstractContextManager[Any]:
        """The context in which `forward` of `module` runs."""
        return nullcontext()

    def guard(self, getter: Callable[[], Any], value: Any, what: str) -> None:
        """The program is right only while `getter() == value`; `what` names that in messages.

        If there is a `getter.quick(name)`, it is the source of a condition that is true, or a KeyError, if this may not
        be so; `name` gives an object a name.
        """

    def set_data(self, tensor: Any, value: Any) -> None:
        """`tensor.data = value`."""

    def show(self, tensor: Any, value: Any, name: str) -> None:
        """The function `name` lets `tensor` show what `value` shows, in the same memory and with its history."""

    def leaf_changed(self, tensor: Any) -> None:
        """`tensor`, without a history, requires grad from now on, or no longer does."""

    def values_read(self, tensor: Any) -> Any:
        """Python decides on the values of `tensor`, which has some. Returns others, or None if those are right."""

    def values_shown(self, tensor: Any) -> np.ndarray | None:
        """The values of `tensor`, which has some, for a text; None if they are not known and only shown."""

    def is_constant(self, tensor: Any) -> bool:
        """Whether `tensor`, which has values, has them at this point of every run."""
        return True

    def number_written(self, tensor: Any) -> Any:
        """`tensor.item()`, if the program that is being traced has written the tensor; else None."""

    def tensor_of(self, number: Any) -> Any:
        """A Python number that is part of what is traced as a 0-d tensor of bool, int64 or float64; None for others."""

    def repeats(self, tensor: Any) -> bool:
        """Whether elements of `tensor` share a place in memory, as those of `expand` do."""
        return False

    def lies_plainly(self, tensor: Any) -> None:
        """Raise unless the memory of `tensor` is known to hold its elements, row-major, and nothing else."""

    def window(
        self, tensor: Any, size: tuple[int, ...], stride: tuple[int, ...], offset: int | None
    ) -> dict[str, Any] | None:
        """The parameters of the op `as_strided` for what `torch.as_strided` shows. Raise unless they are known.

        None if `tensor` is an array of which all is known.
        """


INTERPRETER: ContextVar[Interpreter | None] = ContextVar("interpreter", default=None)
current_interpreter = INTERPRETER.get
# the function transforms (eager.func) that the running code is inside of, outermost first
TRANSFORMS: ContextVar[tuple[Any, ...]] = ContextVar("transforms", default=())
active_transforms = TRANSFORMS.get


@contextmanager
def under(interpreter: Interpreter | None) -> Iterator[None]:
    """Run ops through `interpreter`. Fast paths stay as they are: closed, since another one is active."""
    token = INTERPRETER.set(interpreter)
    try:
        yield
    finally:
        INTERPRETER.reset(token)


_gate_lock = forking.renewed(threading.Lock())
closed = 0  # how many times the fast paths are closed
_gates: list[Callable[[bool], None]] = []


def add_gate(set_open: Callable[[bool], None]) -> None:
    """Register a fast path; `set_open(False)` makes it hand every call to `dispatch.apply`."""
    _gates.append(set_open)
    set_open(not closed)


class interpreting:
    """Context: run ops through `interpreter` in this thread. Fast paths are closed while any thread does so."""

    def __init__(self, interpreter: Interpreter | None):
        self.interpreter = interpreter
        self._before = INTERPRETER.get()
        self._closing = False

    def __enter__(self):
        try:
            self._close(True)
            INTERPRETER.set(self.interpreter)
        except BaseException:
            self.leave()
            raise
        return self.interpreter

    def __exit__(self, *error: object) -> None:
        try:
            self.leave()
        except BaseException:  # an interrupt
            self.leave()
            raise

    def leave(self) -> None:
        """The end of the context. May be called twice: an interrupt can come anywhere."""
        INTERPRETER.set(self._before)
        self._close(False)

    def _close(self, closing: bool) -> None:
        global closed
        with _gate_lock:
            if self._closing is not closing:
                closed += 1 if closing else -1
                self._closing = closing
            for set_open in _gates:
                set_open(not closed)


def shift_gate(by: int) -> None:
    """Close the fast paths once more (+1) or once less (-1); they are open while nobody wants them closed."""
    global closed
    with _gate_lock:
        closed += by
        for set_open in _gates:
            set_open(not closed)


# --- inference mode


class Recent(list[Any]):
    """Weak references to tensors. Dead ones are dropped when the list has doubled."""

    limit = 16

    def add(self, tensor: Any) -> None:
        self.append(weakref.ref(tensor))
        if len(self) > self.limit:
            self[:] = [ref for ref in self if ref() is not None]
            self.limit = 2 * max(len(self), 8)

    def live(self) -> list[Any]:
        return [tensor for ref in self if (tensor := ref()) is not None]


# the tensors made in inference mode, which it seals at its end; None outside of it
INFERENCE: ContextVar[Recent | None] = ContextVar("inference", default=None)
made_in_inference = INFERENCE.get
tracking = 0  # how many threads are in inference mode: only then do new tensors have to be noted
_makers: list[Callable[[Any], None]] = []


def tracked_new(cls: Any) -> Any:
    """`object.__new__`, for tensors, while a thread is in inference mode."""
    tensor = object.__new__(cls)
    made = made_in_inference()
    if made is not None:
        made.add(tensor)
    return tensor


def add_maker(set_new: Callable[[Any], None]) -> None:
    """Register code that makes tensors; `set_new(new)` tells it with what."""
    _makers.append(set_new)
    set_new(tracked_new if tracking else object.__new__)


def track_tensors(by: int) -> None:
    """Note new tensors once more (+1) or once less (-1)."""
    global tracking
    with _gate_lock:
        tracking += by
        for set_new in _makers:
            set_new(tracked_new if tracking else object.__new__)


class Anomaly:
    """Whether anomaly mode is on, and whether it looks for nan."""

    enabled = False
    check_nan = True


anomaly = Anomaly()
# (pack, unpack) pairs in force for what nodes save; a string instead: saving with hooks is an error with that text
SAVED_HOOKS: ContextVar[tuple[Any, ...]] = ContextVar("saved_hooks", default=())
saved_hooks = SAVED_HOOKS.get

# --- mutation clock

latest_mutation = 0
_RECENT = 8
_writes: dict[int, tuple[Any, list[Any]]] = {}  # id(storage) -> (weak reference, [count, recent numbers, writer])


def storage_of(array: np.ndarray) -> Any:
    """The object that owns the memory of `array`."""
    base = array.base
    while isinstance(base, np.ndarray):
        array, base = base, base.base
    return array


class _Memory:
    """The memory of an array under another owner."""

    def __init__(self, array: np.ndarray):
        self.__array_interface__ = array.__array_interface__
        self.array = array


def separate(array: np.ndarray) -> np.ndarray:
    """The same memory as an array whose in-place writes are counted apart.

    An expanded tensor, or a part of one, is read-only, and what it shows is not: so it stays.
    """
    owner, shown = storage_of(array), array
    if not array.flags.writeable and isinstance(owner, np.ndarray) and owner.flags.writeable:
        shown = array.view()
        shown.flags.writeable = True
    apart = np.asarray(_Memory(shown)).view(array.dtype)
    apart.flags.writeable = array.flags.writeable
    return apart


def note_write(array: np.ndarray) -> None:
    """Record that the memory of `array` has just been written in place."""
    global latest_mutation
    owner = storage_of(array)
    key = id(owner)
    entry = _writes.get(key)
    if entry is None:
        entry = (weakref.ref(owner, lambda _: _writes.pop(key, None)), [0, deque(maxlen=_RECENT), None])
        _writes[key] = entry
    latest_mutation = next(sequence)
    entry[1][0] += 1
    entry[1][1].append(latest_mutation)


def note_writer(array: np.ndarray, name: str) -> None:
    """Remember that the last write to the memory of `array`, just noted, has been recorded as a node called `name`."""
    _writes[id(storage_of(array))][1][2] = name, array.shape


def writer_of(array: np.ndarray) -> tuple[str, tuple[int, ...]] | None:
    """Of the last recorded write to the memory of `array`, the name of the node and the shape of the base; or None."""
    entry = _writes.get(id(storage_of(array)))
    return entry[1][2] if entry else None


def version_of(array: np.ndarray) -> int:
    """How many in-place writes the memory of `array` has seen."""
    entry = _writes.get(id(storage_of(array)))
    return entry[1][0] if entry else 0


def writes_since(array: np.ndarray, number: int) -> int:
    """How many in-place writes (at most 8 are remembered) the memory of `array` has seen since `number`."""
    entry = _writes.get(id(storage_of(array)))
    return sum(n > number for n in entry[1][1]) if entry else 0
