"""The programs of a compiled function, and the guards under which each may run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any, final

from eager.core.tensor import Tensor
from graphc.capture.location import user_line
from graphc.capture.program import Program
from graphc.capture.sources import Decision
from graphc.capture.state.environment import Environment
from graphc.compiling.choice import Choice
from graphc.compiling.guards import Guards
from graphc.compiling.signature import Call
from graphc.execution.runner import Runner

LARGEST = 64  # programs kept for one function; of the signature used longest ago, the oldest goes first


@final
class Specialization:
    """A program and its guards.

    signature  of the calls that it is for
    reason     why it was made
    where      the user's line, with the call that it was made for
    family     what it was made from, if it was not traced
    seconds    what tracing and the passes took, and (once it has run) what JAX and XLA took
    calls      how often it has run
    fast_call  the short way to it, see `graphc.compiling.fast_call`; None if there is none, ... before that is known
    writes     whether it changes tensors or Python state
    guards     of a call, besides its signature
    choice     of the backend, if that is not settled
    """

    def __init__(
        self, signature: Any, program: Program, environment: Environment, runner: Runner, reason: str,
        seconds: dict[str, float], family: Any = None,
    ):  # fmt: skip
        self.signature = signature
        self.program = program
        self.environment = environment
        self.runner = runner
        self.reason = reason
        self.where = user_line()
        self.seconds = seconds
        self.family = family
        self.calls = 0
        self.choice: Choice | None = None
        self.fast_call: Any = ...
        self.writes = bool(program.effects.tensors or program.effects.state)
        self.guards = Guards(program, environment)
        self._holds: Callable[[list[Tensor]], bool] | None = None  # generated code, when it is asked again
        self._asked = False

    def holds(self, tensors: list[Tensor]) -> bool:
        """Whether the program is right for a call with these tensors (of its signature)."""
        if self._holds is None:
            if not self._asked:  # the next call may have a short way
                self._asked = True
                return not self.broken(tensors)
            self._holds = self.guards.function(self.runner.packs)
        return self._holds(tensors)

    def broken(self, tensors: list[Tensor]) -> list[str]:
        """What of the guards does not hold, a sentence each."""
        return self.guards.broken(tensors, self.runner.packs)

    def is_endless(self, decision: Decision) -> bool:
        """Whether there is no end to the values of one of its decisions: counts, and the elements of a tensor."""
        return bool(decision.counts) or self.program.graph.nodes[decision.id].aval.ndim > 0

    def agrees(self, values: tuple[bytes, ...]) -> bool:
        """Whether the program is one for these values of the first decisions."""
        if not values:
            return True
        decided = self.program.checks.decisions
        return len(decided) >= len(values) and all(d.value == v for d, v in zip(decided, values, strict=False))


@final
class Specializations:
    """The programs of one compiled function, by signature: of each signature, the latest used first.

    Each change makes a new dict: no thread sees one half made.
    """

    def __init__(self) -> None:
        self._found: dict[Any, tuple[Specialization, ...]] = {}

    def of(self, signature: Any) -> tuple[Specialization, ...]:
        """Those for a signature."""
        return self._found.get(signature, ())

    def latest(self, signature: Any) -> Specialization | None:
        """That for a signature which was used last."""
        found = self._found.get(signature)
        return found[0] if found else None

    def find(self, call: Call, path: tuple[bytes, ...] = ()) -> Specialization | None:
        """That which is right for `call`, if the first of its decisions have the values `path`."""
        for found in self.of(call.signature):
            if found.agrees(path) and found.holds(call.tensors):
                return found
        return None

    @property
    def signatures(self) -> Collection[Any]:
        """Of all programs, the longest unused first."""
        return self._found.keys()

    def __iter__(self) -> Iterator[Specialization]:
        return (one for some in self._found.values() for one in some)

    def __len__(self) -> int:
        return sum(map(len, self._found.values()))

    def put_first(self, specialization: Specialization) -> list[Specialization]:
        """Let `specialization`, a new one perhaps, be tried first. Returns those that there is no room for any more."""
        found, dropped = self._without(specialization), list[Specialization]()
        key = specialization.signature
        others = found.pop(key)  # so that it comes last in the dict again
        found[key] = (specialization, *others)
        while sum(map(len, found.values())) > LARGEST:
            oldest = next(iter(found))
            *left, last = found[oldest]
            found[oldest] = tuple(left)
            if not left:
                del found[oldest]
            dropped.append(last)
        self._found = found
        return dropped

    def discard(self, specialization: Specialization) -> None:
        """Forget a program that holds for no call."""
        self._found = {key: some for key, some in self._without(specialization).items() if some}

    def _without(self, specialization: Specialization) -> dict[Any, tuple[Specialization, ...]]:
        others = tuple(s for s in self.of(specialization.signature) if s is not specialization)
        return {**self._found, specialization.signature: others}
