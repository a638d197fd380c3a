"""What random programs have covered, and what should come next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import final

import numpy as np

from graphc.ops import OPS, Op

# made by other statements: a literal, a call of a user's Function, a write that autograd does not see
NOT_ALONE = ("constant", "user_function", "overwritten")


def vocabulary() -> list[Op]:
    """The ops that statements can be made of."""
    return [op for op in OPS.values() if not op.structured and not op.impure and op.name not in NOT_ALONE]


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

    def next_op(self, rng: np.random.Generator, ops: Sequence[Op]) -> Op:
        """One of `ops`, those seen least more often than others."""
        weights = np.array([1.0 / (1 + self.ops[op.name]) for op in ops])
        return ops[rng.choice(len(ops), p=weights / weights.sum())]

    def worth(self, maker: str, taker: str) -> float:
        """How much a value that `maker` has made is wanted for `taker`."""
        return 1.0 if not maker else 100.0 if (maker, taker) not in self.pairs else 3.0
