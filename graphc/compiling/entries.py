"""The programs of a compiled function, and the conditions under which each may run."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, final

import numpy as np

from eager.tensor import Tensor
from graphc.capture import Argument, Captured, Program, Reached
from graphc.capture.generated import Names
from graphc.capture.state.environment import Environment
from graphc.capture.storage.sharing import Sharing
from graphc.execution.runner import Runner


@final
class Entry:
    """A program and its conditions.

    signature  of the calls that it is for
    reason     why it was made
    seconds    what tracing and the passes took, and (once it has run) what JAX and XLA took
    calls      how often it has run
    writes     whether it changes tensors or Python state
    unchanged  a function: whether the Python values that the program depends on are as they were
    conditional   whether there are more conditions than that
    """

    def __init__(self, signature: Any, program: Program, environment: Environment, runner: Runner):
        self.signature = signature
        self.program = program
        self.environment = environment
        self.runner = runner
        self.reason = ""
        self.family: Any = None  # what it was made from, if it was not traced
        self.seconds: dict[str, float] = {}
        self.calls = 0
        self.hit: Any = ...  # the short way to this program, see `graphc.compiling.hits`; None if there is none
        self.writes = bool(program.effects or program.changes)
        self.unchanged = environment.holds
        self._captured = [
            (s.tensor, s.tensor._d.shape, s.tensor._dtype(), s.tensor._n is None)
            for s in program.sources
            if isinstance(s, Captured)
        ]
        self._numbers = [s for s in program.sources if isinstance(s, Reached) and s.kind is not None]
        self._moved = environment.moving.kinds
        self._guards = program.guards
        self._of_arguments = program.argument_guards
        self._sharing = Sharing(program)
        self.conditional = bool(
            self._captured or self._numbers or self._moved or self._guards or self._of_arguments or self._sharing.needed
        )

    @functools.cached_property
    def holds(self) -> Callable[[list[Tensor]], bool]:
        """f(tensors): whether the program is right for a call with these tensors (of its signature)."""
        names = Names()
        layouts = {id(guard.layout): guard for guard in self._guards if guard.layout is not None}
        lines = ["def holds(tensors):", f" if not {names.of(self.unchanged)}(): return False"]
        for t, shape, dtype, constant in self._captured:
            name, wanted, layout = names.of(t), names.of(dtype), layouts.get(id(t))
            lines += [
                f" d = {name}._d",
                f" if {name}._n is {'not ' if constant else ''}None: return False",
                f" if d.shape != {names.of(tuple(shape))}: return False",
                " on_host = d.__class__ is ndarray",
                " found = d.dtype if on_host else d.numpy_dtype",
                f" if found is not {wanted} and found != {wanted}: return False",
            ]
            if layout is not None and layout.value is None:
                lines.append(f" if on_host and {names.of(layout.getter)}() is not None: return False")
            elif layout is not None:
                lines.append(f" if {names.of(layout.getter)}() != {names.of(layout.value)}: return False")
        captured = {id(t) for t, *_ in self._captured}
        if self._numbers or self._moved:
            lines.append(f" if not {names.of(self._moved_alike)}(tensors): return False")
        for getter, value, _, layout in self._guards:
            if id(layout) not in captured:
                lines.append(f" if {names.of(getter)}() != {names.of(value)}: return False")
        for position, getter, value, _ in self._of_arguments:
            lines.append(f" if {names.of(getter)}(tensors[{position}]) != {names.of(value)}: return False")
        if self._sharing.needed:
            lines.append(f" if not {names.of(self._sharing.holds)}(tensors): return False")
        return names.bind("holds", [*lines, " return True"], {"ndarray": np.ndarray})

    def _moved_alike(self, tensors: list[Tensor]) -> bool:
        """Whether moving places hold what they held, but for its value: numbers of a type, tensors of their own."""
        ids = {id(t) for t, *_ in self._captured}
        ids.update(map(id, tensors))
        for source in self._numbers:
            if type(source.get()) is not source.kind:
                return False
        for get, shape, dtype, constant in self._moved:
            value = get()
            if not isinstance(value, Tensor) or id(value) in ids:
                return False
            if tuple(value._d.shape) != shape or value._dtype() != dtype or (value._n is None) is not constant:
                return False
            ids.add(id(value))
        return True

    def broken(self, tensors: list[Tensor]) -> list[str]:
        """Why `holds` is false, a sentence each."""
        found = self.environment.broken()
        for t, shape, dtype, constant in self._captured:
            name = self.environment.names.get(id(t), "a captured tensor")
            if (tuple(t._d.shape), t._dtype()) != (tuple(shape), dtype):
                found.append(f"`{name}` has another shape or dtype")
            elif (t._n is None) is not constant:
                found.append(f"`{name}`.requires_grad changed to {constant}")
        found += [f"{what} changed from {v!r} to {g()!r}" for g, v, what, _ in self._guards if g() != v]
        for position, getter, value, what in self._of_arguments:
            if getter(tensors[position]) != value:
                name = self.program.graph.input_names[self._input_of(position)]
                found.append(f"of argument '{name}', {what} changed")
        if not self._sharing.holds(tensors):
            found.append("arguments share memory in another way")
        return found

    def _input_of(self, position: int) -> int:
        return self.program.sources.index(Argument(position))

    def agrees(self, values: tuple[bytes, ...]) -> bool:
        """Whether the program is one for these values of the first decisions."""
        decided = self.program.decisions
        return len(decided) >= len(values) and all(d.value == v for d, v in zip(decided, values, strict=False))
