"""What random programs have covered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import final

from compare.fuzzing.design import vocabulary


@final
class Coverage:
    """How often each op was there, and which op has got a value from which: as it is, or reshaped, cast or squashed."""

    def __init__(self):
        self.ops: Counter[str] = Counter()
        self.pairs: Counter[tuple[str, str]] = Counter()

    def add(self, ops: Iterable[str], pairs: Iterable[tuple[str, str]]) -> None:
        """Note a program."""
        self.ops.update(ops)
        self.pairs.update(pairs)

    def op_share(self) -> float:
        """Of the ops in the vocabulary, how many were there: 0 to 1."""
        known = {op.name for op in vocabulary()}
        return len(known & self.ops.keys()) / len(known)

    def pair_share(self) -> float:
        """Of the pairs (an op that makes a value, an op that takes one), how many were there: 0 to 1."""
        known = vocabulary()
        takers = {op.name for op in known if op.args}
        makers = {op.name for op in known}
        found = sum(a in makers and b in takers for a, b in self.pairs)
        return found / (len(makers) * len(takers))
