"""How much two correct runs may differ: the errors at each node of a graph, and the rule that judges a difference.

Ops declare their errors (`graphc.ops.rounding`). `compare.judging.numeric.Rounding` feeds them through the program, and
what comes out at each element is what rounding can do there.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from graphc.ir import Graph, Node
from graphc.ops.dtypes import finfo, is_inexact

MATRIX = 6.0  # the error, in ULP, of the matrix that a factorization is the exact result of
# Where rounding moves what an op divides by by `MOSTLY` of it, the quotient may be anything, which a few simulated runs
# do not show: its distribution has no variance. So it is for the gradients of eigenvectors, which are divided by the
# gaps between eigenvalues.
MOSTLY = 0.5
# One rounded operation beside the additions.
ONCE = 1.0
# A sum of n terms in sequence is off by sqrt(n) units of its partial sums; NumPy's blocks and XLA's lanes cut that by
# 8 and more. Matrix products: the distance measured stays below 4.2e-6 sqrt(k) on standard normals in float32.
TERM, PER_ROOT_TERM = 2.0, 0.125
# Terms of one sign: 10^6 numbers of mean 0.5 added in sequence in float32 end 12 ULP off, 0.012 per root of a term.
SUM_PER_ROOT_TERM = 0.012

RUNS = 8  # simulated runs: of 8, the root mean square is within a factor 3 of the truth in all but 1 case of 10^4
TOGETHER = 1.0, -1.0  # two more runs, with opposite errors, the same for all elements of an array, as equal ones have
SAFETY = 16.0  # the largest of 10^6 normal errors is 5 deviations, the estimate may be 3 times too low
INDEPENDENT = 64.0  # slack for gradients by other formulas; in float64 that still leaves 11 digits
TWICE = 2.0  # RMSE against float64 may be twice eager's (the rule of torch._dynamo.utils.same)


def accumulation_length(node: Node, graph: Graph) -> float:
    """How many terms each element of the node's result sums; 1 for a pointwise op, or one that computes nothing."""
    op = node.op
    if op.pointwise or not node.inputs or op.rounding.ulps == 0 or op.structured:
        return 1.0
    avals = [graph.nodes[i].type for i in node.inputs]
    if op.rounding.length is not None:
        return float(op.rounding.length(avals, node.type, node.params))
    work = op.flops(avals, node.type, node.params) if op.flops is not None else max(a.size for a in avals)
    axis = node.params.get("axis")
    along = avals[0].shape[axis] if isinstance(axis, int) and avals[0].shape else 1
    return float(max(1, along, work / max(node.size, 1)))


def operand_ulps(node: Node, graph: Graph) -> float:
    """The error, in ULP, of each term that the node sums; 0 if it sums none."""
    if node.op.rounding.operand is not None:
        return MATRIX
    length = accumulation_length(node, graph)
    return TERM + PER_ROOT_TERM * length**0.5 if length > 1 else 0.0


def operand_terms(node: Node, operand: np.ndarray) -> np.ndarray | float:
    """Magnitudes, besides those of an operand's elements, whose ULPs count."""
    return 0.0 if node.op.rounding.operand is None else node.op.rounding.operand(operand)


def result_ulps(node: Node, graph: Graph) -> float:
    """The relative error, in ULP, of the node's result."""
    ulps = node.op.rounding.at([graph.nodes[i].aval for i in node.inputs], node.params)
    return ONCE + SUM_PER_ROOT_TERM * accumulation_length(node, graph) ** 0.5 if ulps is None else ulps


def result_terms(node: Node, value: np.ndarray, operands: Sequence[np.ndarray]) -> np.ndarray | float:
    """Magnitudes, besides that of the node's result, whose ULPs count."""
    terms = node.op.rounding.terms
    if terms is None:
        return 0.0
    with np.errstate(all="ignore"):
        return np.nan_to_num(terms(value, *operands, **node.params), posinf=0.0)


def divides_by_rounding(node: Node, operands: Sequence[np.ndarray], exact: Sequence[np.ndarray]) -> np.ndarray | None:
    """Where `operands`, which are `exact` but for rounding, are divided by what is mostly rounding; None if nowhere."""
    of = node.op.rounding.denominator
    if of is None:
        return None
    with np.errstate(all="ignore"):
        found, right = of(*operands, **node.params), of(*exact, **node.params)
        lost = (found != right) & (np.abs(found - right) >= MOSTLY * np.abs(right))
    return lost if lost.any() else None


class Verdict(enum.IntEnum):
    """What a difference means; the larger, the worse."""

    NO_OPINION = 0  # this mode cannot say anything about this program
    IDENTICAL = 1  # the same bits
    WITHIN_ROUNDING = 2
    ENVIRONMENT = 3  # what the backend's machine arithmetic does: denormals are flushed to zero
    CONVENTION = 4  # several results are right, and each system picks its own: at a kink, of an eigenvector's sign
    UNSUPPORTED = 5  # the program cannot be captured, and says so
    BUG = 6

    def __str__(self) -> str:
        return self.name.lower().replace("_", " ")

    @property
    def kind(self) -> str:
        """What it means to a reader, as displays have it: "good", "open" or "bad"."""
        if self >= Verdict.UNSUPPORTED:
            return "bad"
        return "good" if self in (Verdict.IDENTICAL, Verdict.WITHIN_ROUNDING) else "open"


IN_RANGE = "finite, as in a wider range: what eager has on its way leaves the range of the dtype"


class Judgement(NamedTuple):
    """A verdict, the reason for it, and the elements that speak against the mode."""

    verdict: Verdict
    detail: str = ""
    bad: np.ndarray | None = None


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """Equal shape, dtype and bits; any nan equals any other."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.tobytes() == b.tobytes():
        return True
    if not is_inexact(a.dtype):
        return False
    parts = ((np.real(a), np.real(b)), (np.imag(a), np.imag(b))) if a.dtype.kind == "c" else ((a, b),)
    return all(np.array_equal(x, y, equal_nan=True) and _same_signs(x, y) for x, y in parts)


def _same_signs(x: np.ndarray, y: np.ndarray) -> bool:
    return bool(((np.signbit(x) == np.signbit(y)) | np.isnan(x)).all())


def judge(
    found: np.ndarray,
    eager: np.ndarray,
    exact: np.ndarray,
    noise: np.ndarray,
    *,
    slack: float = 1.0,
    error_bar: np.ndarray | float = 0.0,
) -> Judgement:
    """Whether `found` is as good a result as `eager`, which has the same shape.

    exact      the float64 run of the same graph
    noise      root mean square effect of rounding on each element (for integers and bools: whether it may change)
    slack      allowed multiple of the noise, for modes that compute by other formulas
    error_bar  the mode's own estimate of its error
    Masked elements of `found` are not judged.
    """
    if not isinstance(found, np.ma.MaskedArray) and same_bits(found, eager):
        return Judgement(Verdict.IDENTICAL)
    asked = ~np.ma.getmaskarray(found)
    found = np.ma.getdata(found)
    if not is_inexact(eager.dtype):
        # float64's value is right where eager's is not: terms that cancel in few digits may give 0, which no noise hits
        bad = asked & (found != eager) & (found != exact) & ~noise.astype(bool)
        return _verdict(bad, found, eager, "allowed: no difference")
    classes = _class_of(found) != _class_of(eager)
    if (bad := asked & classes & np.isfinite(noise)).any():
        return _verdict(bad, found, eager, "only one of the two is finite")
    finite = asked & np.isfinite(eager) & np.isfinite(found)
    unit = finfo(eager.dtype)
    trusted = np.isfinite(exact)
    exact = np.where(trusted, exact, eager)
    # where float64 has no finite value, there is only eager's to go by, and one ULP; unless rounding decides on that
    noise = np.where(np.isfinite(noise), np.where(trusted, noise, np.abs(eager) * unit.eps), np.inf)
    with np.errstate(all="ignore"):
        error, eager_error = np.abs(found - exact), np.abs(eager - exact)
        explained = SAFETY * slack * noise + 2 * unit.eps * np.abs(exact) + error_bar

        def excess(bound: np.ndarray) -> np.ndarray:
            """Above 1, where who is further off is more than twice as far off as the other, beyond `bound`."""
            ours, theirs = np.maximum(bound, TWICE * eager_error), np.maximum(bound, TWICE * error)
            return np.where(finite, np.maximum(error / ours, eager_error / theirs), 0)

        verdict, bound = Verdict.WITHIN_ROUNDING, explained + 2 * float(unit.smallest_subnormal)
        if (beyond := excess(bound)).max(initial=0) > 1:  # a backend may have no numbers below the smallest normal one
            verdict, bound = Verdict.ENVIRONMENT, explained + float(unit.tiny)
            beyond = excess(bound)
        if (bad := beyond > 1).any():
            worst = np.unravel_index(np.argmax(beyond), bad.shape)
            why = f"error {error[worst]:.3g}, eager's {eager_error[worst]:.3g}, rounding explains {bound[worst]:.3g}"
            return _verdict(bad, found, eager, why, worst)
        rmse, eager_rmse = _rms(error[finite]), _rms(eager_error[finite])
        # a root mean square over few elements says no more than the largest of them
        spread = SAFETY * slack * _rms(noise[finite]) * max(0.25, min(1.0, 2.0 / max(1, finite.sum()) ** 0.5))
        bars = np.broadcast_to(error_bar, finite.shape)[finite]  # each may be exhausted, unlike a bound on rounding
        spread += max(_rms(bound[finite]) / 8, _rms(bars))
    detail = f"RMSE against float64 {rmse:.3g}, eager's {eager_rmse:.3g}"
    if max(rmse, eager_rmse) > TWICE * min(rmse, eager_rmse) + spread:
        return Judgement(Verdict.BUG, f"{detail}, rounding explains {spread:.3g}", finite)
    return Judgement(verdict, detail if verdict is Verdict.WITHIN_ROUNDING else "below the smallest normal number")


def close(found: np.ndarray, exact: np.ndarray) -> bool:
    """Whether `found` is `exact`, in its own dtype, but for what the last operation may have rounded."""
    with np.errstate(all="ignore"):
        return bool((np.abs(found - exact) <= finfo(found.dtype).eps * np.abs(exact)).all())


def judge_in_float64(found: np.ndarray, exact: np.ndarray, noise: np.ndarray) -> Judgement:
    """Whether `found` is `exact` but for rounding, where both are finite: others have left the range of the dtype."""
    with np.errstate(all="ignore"):
        known = np.ma.MaskedArray(found, ~(np.isfinite(found) & np.isfinite(exact)))
        return judge(known, exact.astype(found.dtype), exact, noise)


def in_range(eager: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """`eager` with the elements of the float64 run where it is not finite: numbers on the way may be too large."""
    if not is_inexact(eager.dtype):
        return eager
    with np.errstate(all="ignore"):
        return np.where(np.isfinite(eager), eager, exact.astype(eager.dtype))


def _class_of(a: np.ndarray) -> np.ndarray:
    """0 for finite, 1 for nan, 2 and 3 for the infinities; parts of a complex number count together.

    A complex number is nan if a part of it is, as PyTorch has it: which one, depends on how products are written.
    """
    if a.dtype.kind == "c":
        return np.where(np.isnan(a), -1, _class_of(np.real(a)) * 4 + _class_of(np.imag(a)))
    return np.select([np.isnan(a), np.isposinf(a), np.isneginf(a)], [1, 2, 3], 0)


def _rms(a: np.ndarray) -> float:
    largest = float(np.abs(a).max(initial=0.0))
    if not 0 < largest < np.inf:
        return largest
    return largest * float(np.sqrt(np.mean(np.square(np.abs(a) / largest))))  # a square may underflow


def _verdict(
    bad: np.ndarray, found: np.ndarray, eager: np.ndarray, why: str, worst: tuple[np.intp, ...] | None = None
) -> Judgement:
    if not bad.any():
        return Judgement(Verdict.WITHIN_ROUNDING, "elements that rounding decides")
    at = np.unravel_index(int(np.argmax(bad)), bad.shape) if worst is None else worst
    element = f"element {tuple(map(int, at))}: " if bad.shape else ""
    count = f", {int(bad.sum())} of {bad.size} elements" if bad.size > 1 else ""
    return Judgement(Verdict.BUG, f"{element}{found[at]!s}, expected {eager[at]!s} ({why}{count})", bad)
