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
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Protocol

import numpy as np

GRAD_ENABLED: ContextVar[bool] = ContextVar("grad_enabled", default=True)
grad_enabled = GRAD_ENABLED.get
sequence = itertools.count(1)


class Interpreter(Protocol):
    """Who runs Tensor operations when it is not NumPy: a trace. Tensors are `eager.tensor.Tensor`."""

    def apply(self, op: Any, operands: Any, params: Any) -> Any:
        """Run `op` on Tensors and Python scalars; returns a Tensor."""

    def created(self, tensor: Any) -> None:
        """A concrete tensor has been made inside the traced function."""

    def assign(self, target: Any, value: Any, name: str) -> Any:
        """The in-place op `name` gives `target` the values of `value`. Returns `target`."""

    def get_grad(self, tensor: Any) -> Any:
        """`tensor.grad` at this point of the program."""

    def set_grad(self, tensor: Any, value: Any) -> None:
        """`tensor.grad = value`."""

    def backward(self, outputs: Any, cotangents: Any, inputs: Any, create_graph: bool, keep: bool) -> None:
        """Accumulate gradients into `.grad`, of the leaves or of `inputs`."""

    def gradients(self, outputs: Any, cotangents: Any, inputs: Any, create_graph: bool, keep: bool) -> list[Any]:
        """The gradient of each of `inputs`, or None; the graph may be used again if `keep`."""
        ...

    def random(self, draw: Callable[[], np.ndarray], shape: tuple[int, ...], dtype: np.dtype) -> Any:
        """A tensor of random numbers, drawn anew by `draw` each time the program runs."""

    def guard(self, getter: Callable[[], Any], value: Any) -> None:
        """The program is right only while `getter() == value`."""


INTERPRETER: ContextVar[Interpreter | None] = ContextVar("interpreter", default=None)
current_interpreter = INTERPRETER.get

_gate_lock = threading.Lock()
_closed = 0
_gates: list[Callable[[bool], None]] = []


def add_gate(set_open: Callable[[bool], None]) -> None:
    """Register a fast path; `set_open(False)` makes it hand every call to `dispatch.apply`."""
    _gates.append(set_open)
    set_open(not _closed)


class interpreting:
    """Context: run ops through `interpreter` in this thread. Fast paths are closed while any thread does so."""

    def __init__(self, interpreter: Interpreter | None):
        self.interpreter = interpreter

    def __enter__(self):
        _shift_gate(+1)
        self.token = INTERPRETER.set(self.interpreter)
        return self.interpreter

    def __exit__(self, *error: object) -> None:
        INTERPRETER.reset(self.token)
        _shift_gate(-1)


def _shift_gate(by: int) -> None:
    global _closed
    with _gate_lock:
        _closed += by
        for set_open in _gates:
            set_open(not _closed)


# --- mutation clock

latest_mutation = 0
_RECENT = 8
_writes: dict[int, tuple[Any, list[Any]]] = {}  # id(storage) -> (weak reference, [count, recent numbers])


def storage_of(array: np.ndarray) -> Any:
    """The object that owns the memory of `array`."""
    base = array.base
    while isinstance(base, np.ndarray):
        array, base = base, base.base
    return array


def note_write(array: np.ndarray) -> None:
    """Record that the memory of `array` has just been written in place."""
    global latest_mutation
    owner = storage_of(array)
    key = id(owner)
    entry = _writes.get(key)
    if entry is None:
        entry = (weakref.ref(owner, lambda _: _writes.pop(key, None)), [0, deque(maxlen=_RECENT)])
        _writes[key] = entry
    latest_mutation = next(sequence)
    entry[1][0] += 1
    entry[1][1].append(latest_mutation)


def version_of(array: np.ndarray) -> int:
    """How many in-place writes the memory of `array` has seen."""
    entry = _writes.get(id(storage_of(array)))
    return entry[1][0] if entry else 0


def writes_since(array: np.ndarray, number: int) -> int:
    """How many in-place writes (at most 8 are remembered) the memory of `array` has seen since `number`."""
    entry = _writes.get(id(storage_of(array)))
    return sum(n > number for n in entry[1][1]) if entry else 0
