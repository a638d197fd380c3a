"""How the values that processes compute of their shares of a batch belong to that of the whole batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, final

import numpy as np

from compare.judging.tolerance import INDEPENDENT, SAFETY
from graphc.ops.dtypes import finfo, is_inexact

WHOLE, SHARE, MEAN, SUM = "the whole", "a share", "a term of a mean", "a term of a sum"
SCALED, ODD = "scaled", "odd"
SLACK = 4096.0  # units in the last place of the largest element: reductions run in another order, and updates enlarge


@final
class Relation(NamedTuple):
    """kind    WHOLE: each process has the value of the whole batch; SHARE: theirs, in a row, make it, but for
               `factor`, of the gradient of a mean; MEAN, SUM: theirs have it as mean or sum; SCALED: each has it times
               `factor`; ODD: none of these
    alike   whether all processes have the same
    factor  1 unless said otherwise
    """

    kind: str
    alike: bool
    factor: float = 1.0

    def __str__(self) -> str:
        return f"{self.factor:.4g} times the whole" if self.kind == SCALED else self.kind


def relation(parts: Sequence[np.ndarray], whole: np.ndarray, noise: np.ndarray | float = 0.0) -> Relation:
    """How `parts`, one of each process in the order of ranks, belong to `whole`, which rounding changes by `noise`."""
    n = len(parts)
    alike = all(near(part, parts[0]) for part in parts[1:])
    if all(near(part, whole, (), noise) for part in parts):
        return Relation(WHOLE, True)
    for d in range(whole.ndim):
        if all(part.ndim == whole.ndim for part in parts) and sum(part.shape[d] for part in parts) == whole.shape[d]:
            joined = _joined(parts, d)
            for factor in (1.0, float(n)):
                if joined is not None and near(_scaled(joined, 1 / factor), whole):
                    return Relation(SHARE, alike, factor)
    if (not is_inexact(whole.dtype) and whole.dtype.kind not in "iu") or any(p.shape != whole.shape for p in parts):
        return Relation(ODD, alike)
    total = np.sum([part.astype(_wide(whole)) for part in parts], 0)
    if not alike:
        for kind, found in ((MEAN, total / n), (SUM, total)):
            if near(found, whole, parts):
                return Relation(kind, False)
        return Relation(ODD, False)
    factor = _factor(parts[0], whole)
    return Relation(ODD if factor is None else SCALED, True, factor or 1.0)


def near(
    found: np.ndarray, expected: np.ndarray, terms: Sequence[np.ndarray] = (), noise: np.ndarray | float = 0.0
) -> bool:
    """Whether two arrays are equal but for rounding, also that of `terms` which `found` is the sum of, and `noise`."""
    if found.shape != expected.shape:
        return False
    if not is_inexact(expected.dtype):
        return bool(np.array_equal(found, expected))
    scale = max(np.max(np.abs(a), initial=0.0, where=np.isfinite(a)) for a in (expected, *terms))
    wide = _wide(expected)
    slack = SLACK * float(finfo(expected.dtype).eps) * float(scale)
    allowed = slack + SAFETY * INDEPENDENT * noise
    return bool(np.isclose(found.astype(wide), expected.astype(wide), 0, allowed, equal_nan=True).all())


def _joined(parts: Sequence[np.ndarray], dim: int) -> np.ndarray | None:
    rest = {part.shape[:dim] + part.shape[dim + 1 :] for part in parts}
    return np.concatenate(parts, dim) if len(rest) == 1 else None


def _scaled(array: np.ndarray, factor: float) -> np.ndarray:
    return array if factor == 1 or not is_inexact(array.dtype) else (array * factor).astype(array.dtype)


def _wide(array: np.ndarray) -> type:
    return complex if array.dtype.kind == "c" else float


def _factor(found: np.ndarray, whole: np.ndarray) -> float | None:
    """What `whole` is multiplied by in `found`; None if it is not just that."""
    a, b = found.astype(_wide(whole)).ravel(), whole.astype(_wide(whole)).ravel()
    square = np.vdot(b, b)
    if not square or not np.isfinite(square):
        return None
    factor = float((np.vdot(b, a) / square).real)
    return factor if near(a, (b * factor).astype(whole.dtype)) else None
