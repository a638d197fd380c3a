"""The random words of devices: Threefry-2x32, as `jax.random` counts with it.

Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (2011). Draw number n of a generator with seed s has the key
`jax.random.fold_in(jax.random.key(s), n)`, and its words are `jax.random.bits` of that, bit for bit.
"""

from __future__ import annotations

from typing import Any, final

import numpy as np

U32 = np.uint32
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = U32(0x1BD11BDA)


def threefry(key: tuple[Any, Any], x0: np.ndarray, x1: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """20 rounds on pairs of uint32 words, under a key of two."""
    keys = (U32(key[0]), U32(key[1]), U32(key[0]) ^ U32(key[1]) ^ _PARITY)
    with np.errstate(over="ignore"):
        x0, x1 = x0 + keys[0], x1 + keys[1]
        for group in range(5):
            for turn in _ROTATIONS[group % 2]:
                x0 = x0 + x1
                x1 = (x1 << U32(turn) | x1 >> U32(32 - turn)) ^ x0
            x0 = x0 + keys[(group + 1) % 3]
            x1 = x1 + keys[(group + 2) % 3] + U32(group + 1)
    return x0, x1


def halves(words: Any) -> tuple[np.ndarray, np.ndarray]:
    """The upper and the lower 32 bits of uint64 words."""
    wide = np.asarray(words, np.uint64)
    return (wide >> np.uint64(32)).astype(U32), wide.astype(U32)


@final
class Threefry:
    """A stream of words that knows where it is: `seed`, and how many draws there have been."""

    def __init__(self, seed: int, draws: int = 0):
        self.seed, self.draws = seed, draws

    def words(self, count: int, wide: bool) -> np.ndarray:
        """The next draw: `count` random words as uint64, of 64 bits if `wide`, else of 32."""
        key = threefry(halves(self.seed), *halves(self.draws))
        self.draws += 1
        x0, x1 = threefry(key, *halves(np.arange(count, dtype=np.uint64)))
        if wide:
            return x0.astype(np.uint64) << np.uint64(32) | x1
        return (x0 ^ x1).astype(np.uint64)
