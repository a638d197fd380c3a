"""The ops that random programs are made of: programs in a row hand the result of each op to each other op."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from graphc.ops import OPS, Op, Trait

# made by other statements: a literal, a call of a user's Function, a write that autograd does not see
NOT_ALONE = Trait.LITERAL | Trait.SURROGATE


def vocabulary() -> list[Op]:
    """The ops that statements can be made of."""
    return [op for op in OPS.values() if not op.structured and not op.impure and not op.traits & NOT_ALONE]


def chain_of(number: int, size: int, names: Sequence[str]) -> list[str]:
    """The ops of program `number`: `size` of `names`, each of which is to take the result of the one before.

    Modulo a prime n every d walks through all places in steps: 0, d, 2d, ... The walks of all d contain each ordered
    pair of places once. They are cut into pieces of `size`, of which the programs take turns: after about
    n^2 / (size - 1) programs in a row each pair has had its turn. Places beyond the last name are left out.
    """
    n = _prime(max(len(names), 2))
    pairs = max(size - 1, 1)
    pieces = -(-n // pairs)
    count = (n - 1) * pieces
    piece = int(_shuffled(count)[number % count])
    step, first = 1 + piece // pieces, piece % pieces * pairs
    order = _shuffled(len(names))
    places = [(first + k) * step % n for k in range(size)]
    return [str(names[order[p]]) for p in places if p < len(names)]


def _prime(least: int) -> int:
    return next(n for n in itertools.count(least) if all(n % d for d in range(2, int(n**0.5) + 1)))


@lru_cache(maxsize=16)
def _shuffled(count: int) -> np.ndarray:
    """The numbers below `count` in an order that is always the same: neighbours in the registry are alike."""
    return np.random.default_rng(count).permutation(count)
