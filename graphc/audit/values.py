"""Values of terms on fixed points, from the kernels of NumPy.

Each set of points has an array for each variable. GENERIC are positive numbers on which most functions are defined;
CHECK are others of the kind; FINITE and SPECIAL hold zeros, negative numbers, numbers whose exponential or square
overflows in float32, the latter also infinities and nan.
"""

from __future__ import annotations

from typing import final

import numpy as np

from graphc.audit.terms import Term
from graphc.audit.vocabulary import ELEMENTS, Leaf
from graphc.ops.dtypes import FLOAT32, FLOAT64
from graphc.ops.interpret import F

GENERIC, CHECK, FINITE, SPECIAL = range(4)
_FINITE = (0.0, -0.0, 1.0, -1.0, 0.5, -1.5, -2.5, 3.0, 80.0, 100.0, -100.0, 1e15, 1e30, -1e30, 1e-15, 1e-30, 7e-5)
_SPECIAL = (np.inf, -np.inf, np.nan, *_FINITE)
NOTHING = np.array(np.nan)  # in place of a term's value where a kernel refuses its operands


@final
class Values:
    """Values of terms, in float32 and in float64. Those of operands are kept.

    seed  of the points
    """

    def __init__(self, seed: int = 0):
        self._seed = seed
        self._points: dict[tuple[Leaf, int], np.ndarray] = {}
        self._numbers: dict[Term, bool] = {}
        self._known: dict[tuple[Term, int, np.dtype], np.ndarray] = {}

    def _point(self, leaf: Leaf, kind: int) -> np.ndarray:
        """The values of a variable: those that float32 holds, so that both dtypes are asked at the same points."""
        if (leaf, kind) not in self._points:
            rng = np.random.default_rng([self._seed, kind, *leaf.text.encode()])
            shape = leaf.shape(large=False)
            if kind in (GENERIC, CHECK):
                drawn = rng.uniform(0.3, 2.7, shape)
            elif leaf.letters == (ELEMENTS,):
                drawn = rng.choice(np.array(_FINITE if kind == FINITE else _SPECIAL), shape)
            else:  # where rewriting may change the order of sums, it may change where they overflow
                drawn = rng.uniform(-2, 2, shape) * (rng.random(shape) < 0.8)
            self._points[leaf, kind] = drawn.astype(FLOAT32)
        return self._points[leaf, kind]

    def of(self, term: Term, kind: int, dtype: np.dtype = FLOAT64) -> np.ndarray:
        """The value of `term` at the points of a kind; `NOTHING` if a kernel refuses."""
        key = term, kind, dtype
        found = self._known.get(key)
        if found is None:
            found = self._computed(term, kind, dtype)
            if term.size < 3:
                self._known[key] = found
        return found

    def _computed(self, term: Term, kind: int, dtype: np.dtype) -> np.ndarray:
        if term.operation is None:
            assert term.leaf is not None
            number = term.leaf.number
            return np.asarray(self._point(term.leaf, kind) if number is None else number, dtype)
        operands = [self.of(t, kind, dtype) for t in term.operands]
        if any(x is NOTHING for x in operands):
            return NOTHING
        try:
            return np.asarray(term.operation.apply(F, *operands))
        except (np.linalg.LinAlgError, RuntimeError, ArithmeticError, ValueError):
            return NOTHING

    def number_inside(self, term: Term) -> bool:
        """Whether a part of `term` is one number, but for nan, whatever the variables are: as x - x and x / x are."""
        if not term.size:
            return False
        if term not in self._numbers:
            own = self._is_number(term) or any(self.number_inside(t) for t in term.operands)
            if term.size > 2:
                return own
            self._numbers[term] = own
        return self._numbers[term]

    def _is_number(self, term: Term) -> bool:
        both = [self.of(term, kind) for kind in (GENERIC, CHECK)]
        if any(v is NOTHING or v.dtype.kind != "f" for v in both):
            return False
        first = both[0].reshape(-1)[:1]
        return bool(first.size) and all(np.allclose(v, first, rtol=1e-9, atol=1e-9) for v in both)

    def scale(self, term: Term, kind: int) -> np.ndarray:
        """The largest finite size of anything that `term` is made of: what its rounding errors are parts of."""
        values = [np.asarray(self.of(t, kind), FLOAT64) for t in term.subterms()]
        sizes = [np.abs(np.where(np.isfinite(v), v, 0.0)) for v in values]
        if not term.pointwise:
            return np.asarray(max(float(size.max(initial=0.0)) for size in sizes))
        return np.maximum.reduce(np.broadcast_arrays(*sizes))

    def lost(self, term: Term, kind: int) -> np.ndarray:
        """Where float64 does not tell what `term` is: a part of it overflows, or a function of one operand vanishes."""
        found = np.zeros((), bool)
        for t in term.subterms():
            if t.operands:
                value = np.asarray(self.of(t, kind), FLOAT64)
                given = [np.asarray(self.of(x, kind), FLOAT64) for x in t.operands]
                plain = np.logical_and.reduce(np.broadcast_arrays(*[np.isfinite(x) & (x != 0) for x in given]))
                found = found | (plain & (np.isinf(value) | ((value == 0) & (len(given) == 1))))
        return found
