"""Calls that run eagerly because a program for their signature would not pay: batches of many sizes, say.

What would be saved is not known, but what has been spent is: a signature gets its program when its eager calls have
taken as long as making programs takes, or some times as long. So the total is never far from that of the better way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, final

from graphc.compiling.allowances import Allowances
from graphc.compiling.dynamic_shapes import class_of
from graphc.compiling.options import AUTO, Options
from graphc.compiling.signature import Call, without_numbers
from graphc.compiling.specializations import Specializations

SIZES = 8  # of first dims that get a program at once
NUMBERS = 3  # among the arguments that do: the first, one that is an input, and the first for which that does not do
COMPILED = 2  # of them, and of paths for one, that XLA compiles at once; the others begin on NumPy, until that pays
PAYS = 10  # times what a program takes to make: so much slower than eager, by a tenth, are calls at the worst
EAGERLY = "eager for {count:,} more signatures, so far: a program for each would not have paid"


@final
class Waiting:
    """The signatures that no program has been made for.

    pays     how often what a program takes to make is spent on eager calls before
    at_once  of so many signatures of a kind programs are made at their first call, by what tells the kind
    """

    def __init__(self, pays: float, at_once: Mapping[Callable[[Any], Any], int]):
        self._pays, self._at_once = pays, at_once
        self._allowed = Allowances()

    @classmethod
    def of(cls, options: Options) -> Waiting | None:
        """Under `backend="auto"` from the second signature on. Else from the ninth on of those that differ in the
        sizes of first dims only, and from the fourth on of those that differ in numbers on which Python decides, unless
        an option says how, or how often, to compile: who compiles wants programs.
        """
        if options.backend == AUTO:
            return cls(PAYS, {lambda signature: None: 1})
        free = not options.settings.strict and options == Options(settings=options.settings)
        return cls(1, {class_of: SIZES, without_numbers: NUMBERS}) if free else None

    def waits(self, signature: Any, known: Specializations) -> bool:
        """Whether a call runs eagerly."""
        if signature not in self._allowed:
            if known.of(signature) or not any(self._alike(signature, known, k) >= n for k, n in self._at_once.items()):
                return False
            *_, latest = known
            self._allowed.begin(signature, latest, self._pays)
        return self._allowed.last(signature)

    def compiles_later(self, call: Call, known: Specializations) -> bool:
        """Whether one more program for a call begins on NumPy: there are some of its kind, or for other paths."""
        paths = sum(one.holds(call.tensors) for one in known.of(call.signature))
        return paths >= COMPILED or any(self._alike(call.signature, known, kind) >= COMPILED for kind in self._at_once)

    def _alike(self, signature: Any, known: Specializations, kind: Callable[[Any], Any]) -> int:
        """How many signatures of its kind have programs."""
        own = kind(signature)
        return sum(kind(other) == own for other in known.signatures)

    def run(self, fn: Callable[..., Any], call: Call) -> Any:
        """The result of a call by `fn` itself."""
        return self._allowed.run(call.signature, fn, call)

    def described(self) -> list[str]:
        """What `explain` says."""
        count = len(self._allowed)
        return [EAGERLY.format(count=count)] if count else []
