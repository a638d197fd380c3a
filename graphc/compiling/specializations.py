"""The programs of a compiled function, and the guards under which each may run."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, final

from eager.core.tensor import Tensor
from graphc.capture import Program
from graphc.capture.state.environment import Environment
from graphc.compiling.guards import Guards
from graphc.execution.runner import Runner


@final
class Specialization:
    """A program and its guards.

    signature  of the calls that it is for
    reason     why it was made
    seconds    what tracing and the passes took, and (once it has run) what JAX and XLA took
    calls      how often it has run
    writes     whether it changes tensors or Python state
    guards     of a call, besides its signature
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
        self.fast_call: Any = (
            ...
        )  # the short way to this program, see `graphc.compiling.fast_call`; None if there is none
        self.writes = bool(program.effects or program.changes)
        self.guards = Guards(program, environment)

    @functools.cached_property
    def holds(self) -> Callable[[list[Tensor]], bool]:
        """f(tensors): whether the program is right for a call with these tensors (of its signature)."""
        return self.guards.function()

    @property
    def counts(self) -> bool:
        """Whether the program is for one size of a result that the values decide."""
        return any(decision.counts for decision in self.program.decisions)

    def agrees(self, values: tuple[bytes, ...]) -> bool:
        """Whether the program is one for these values of the first decisions."""
        decided = self.program.decisions
        return len(decided) >= len(values) and all(d.value == v for d, v in zip(decided, values, strict=False))
