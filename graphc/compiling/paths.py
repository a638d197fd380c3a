"""How many paths of a function are traced, where Python decides on the values of tensors: bounds on work.

Branches may have as many as MOST_PATHS. What the programs of a loop have beyond the shortest of them is counted, too,
for that grows with the number of rounds; and so is what has been traced in vain.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, final

from graphc import errors
from graphc.compiling.allowances import Allowances
from graphc.compiling.signature import Call
from graphc.compiling.specializations import Specialization
from graphc.ops.dtypes import is_inexact

MOST_PATHS = 64  # programs of one function that differ only in what Python has decided on values
MOST_COUNTS = 2  # of them for values of which there is no end: how many elements a mask selects, what `tolist()` gives
MOST_WORK = 8_192  # operations that these have beyond the shortest of them
EAGERLY = "ran eagerly: {calls:,} {noun}, in which {what} than the {most} compiled for"
SIZES = "{counts} at {where} has other sizes"
VALUES = "Python reads other values at {where}"


Path = tuple[bytes, ...]  # the values of the first decisions of a call


@final
class Paths:
    """The paths of one compiled function. `name`: the function's."""

    def __init__(self, name: str):
        self._name = name
        self._lost: dict[Any, int] = {}  # by signature: operations that were traced in vain, or whose program is gone
        self._refused: dict[str, int] = {}  # by message: calls
        self._by_value = Counter[str]()  # by line: programs made because numbers that Python reads there have changed
        self._told = set[str]()  # lines that were warned of
        self._eagerly = Counter[str]()  # calls that ran so, by what there is no program for
        self._allowed = Allowances()

    def check(self, signature: Any, others: Sequence[Specialization], values: tuple[bytes, ...]) -> None:
        """Raise CaptureError if there may be no path beside those of `others`, which are right but for decisions.

        values  those of the first decisions of the new path, the last being one that no other has
        """
        if not others:
            return
        sizes = [len(specialization.program.graph) for specialization in others]
        work = sum(sizes) - len(sizes) * min(sizes) + self._lost.get(signature, 0)
        where, by_value = _parting(values, others)
        if len(others) < MOST_PATHS and work < MOST_WORK:
            if by_value:
                self._tell(where)
            return
        if work >= MOST_WORK:
            message = errors.TOO_MUCH_UNROLLED.format(name=self._name, paths=len(others), work=work, where=where)
        else:
            message = errors.TOO_MANY_PATHS.format(name=self._name, most=MOST_PATHS, where=where)
        self._note(message)
        raise errors.CaptureError(message)

    def _tell(self, where: str) -> None:
        """Warn, once for a line, that Python reads values there which differ from call to call: at the third program.

        A value may have changed once, as a setting does.
        """
        self._by_value[where] += 1
        if self._by_value[where] == 2:
            self._warn(errors.TRACED_FOR_EACH_VALUE, where)

    def _warn(self, text: str, where: str) -> None:
        if where not in self._told:
            self._told.add(where)
            warnings.warn(text.format(name=self._name, where=where, most=MOST_COUNTS), UserWarning, stacklevel=2)

    def unrolled(self, signature: Any, error: errors.UnrolledError) -> None:
        """Note that a trace has unrolled more of a loop than it may."""
        self.lose(signature, error.nodes)
        self._note(str(error))

    def waits(self, call: Call, path: Path, by: Specialization, siblings: Sequence[Specialization]) -> bool:
        """Whether a call runs eagerly: it parts from the program `by` in values without end, as enough programs do.

        path  the values that have been decided on, the last of which no program of `siblings` has
        """
        decision = by.program.checks.decisions[len(path) - 1]
        if not by.is_endless(decision):
            return False
        key = call.signature, path
        if key not in self._allowed:
            endless = [s for s in siblings if any(map(s.is_endless, s.program.checks.decisions))]
            others = [s for s in endless if s.holds(call.tensors)]
            if len(others) < MOST_COUNTS:
                return False
            self._allowed.begin(key, others[0])
        if not self._allowed.last(key):
            return False
        if not decision.counts:
            self._warn(errors.EAGER_FOR_OTHER_VALUES, decision.where)
        self._eagerly[(SIZES if decision.counts else VALUES).format(counts=decision.counts, where=decision.where)] += 1
        return True

    def run(self, fn: Callable[..., Any], call: Call, path: Path) -> Any:
        """The result of a call that waits."""
        return self._allowed.run((call.signature, path), fn, call)

    def lose(self, signature: Any, nodes: int) -> None:
        """Note that a trace of so many operations is of no use any more."""
        self._lost[signature] = self._lost.get(signature, 0) + nodes

    def _note(self, message: str) -> None:
        self._refused[message] = self._refused.get(message, 0) + 1

    def described(self) -> Iterator[str]:
        """What was refused, or ran eagerly, for `explain`."""
        for message, calls in self._refused.items():
            yield f"refused, {calls:,} {'call' if calls == 1 else 'calls'}: {message.splitlines()[0]}"
        for where, times in self._by_value.items():
            yield f"traced again, {times:,} {'time' if times == 1 else 'times'}: Python reads values at {where}"
        for what, calls in self._eagerly.items():
            yield EAGERLY.format(calls=calls, noun="call" if calls == 1 else "calls", what=what, most=MOST_COUNTS)


def _parting(values: tuple[bytes, ...], others: Sequence[Specialization]) -> tuple[str, bool]:
    """Where a path with these values parts from `others`: the line, and whether numbers are read there.

    A truth value, a whole number and a count are what branches and loops ask for; of other numbers there is no end.
    """
    programs = [specialization.program for specialization in others]
    shared = [
        (sum(d.value == v for d, v in zip(program.checks.decisions, values, strict=False)), program)
        for program in programs
    ]
    count, program = max(shared, key=lambda pair: pair[0])
    decisions = program.checks.decisions
    decision = decisions[min(count, len(decisions) - 1)]
    read = program.graph.nodes[decision.id].aval
    return decision.where, not decision.counts and (is_inexact(read.dtype) or read.ndim > 0)
