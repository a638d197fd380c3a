"""Which dtypes PyTorch's results have: its answers, recorded, where every mode goes by the same rules of ours.

tests/ops/test_promotion.py asks PyTorch for each of them.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from eager.engine import dispatch
from graphc.ops import Op
from graphc.ops.dtypes import BOOL, INT64, SHORT_NAMES, complex_of, default_float, is_inexact, of_short_name, real_of
from graphc.scoped import attribute

# of two tensors with dims; "-" is complex32, which only PyTorch has
_ALIKE = """
bool: bool   u8   i8  i16  i32  i64  f16 bf16  f32  f64  c64 c128
  u8:   u8   u8  i16  i16  i32  i64  f16 bf16  f32  f64  c64 c128
  i8:   i8  i16   i8  i16  i32  i64  f16 bf16  f32  f64  c64 c128
 i16:  i16  i16  i16  i16  i32  i64  f16 bf16  f32  f64  c64 c128
 i32:  i32  i32  i32  i32  i32  i64  f16 bf16  f32  f64  c64 c128
 i64:  i64  i64  i64  i64  i64  i64  f16 bf16  f32  f64  c64 c128
 f16:  f16  f16  f16  f16  f16  f16  f16  f32  f32  f64  c64 c128
bf16: bf16 bf16 bf16 bf16 bf16 bf16  f32 bf16  f32  f64  c64 c128
 f32:  f32  f32  f32  f32  f32  f32  f32  f32  f32  f64  c64 c128
 f64:  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64 c128 c128
 c64:  c64  c64  c64  c64  c64  c64  c64  c64  c64 c128  c64 c128
c128: c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128
"""
# of a tensor with dims and one of none, or of a tensor and a Python number
_LOWER = """
bool: bool   u8   i8  i16  i32  i64  f16 bf16  f32  f64  c64 c128
  u8:   u8   u8   u8   u8   u8   u8  f16 bf16  f32  f64  c64 c128
  i8:   i8   i8   i8   i8   i8   i8  f16 bf16  f32  f64  c64 c128
 i16:  i16  i16  i16  i16  i16  i16  f16 bf16  f32  f64  c64 c128
 i32:  i32  i32  i32  i32  i32  i32  f16 bf16  f32  f64  c64 c128
 i64:  i64  i64  i64  i64  i64  i64  f16 bf16  f32  f64  c64 c128
 f16:  f16  f16  f16  f16  f16  f16  f16  f16  f16  f16    -    -
bf16: bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16  c64  c64
 f32:  f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  c64  c64
 f64:  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64 c128 c128
 c64:  c64  c64  c64  c64  c64  c64  c64  c64  c64  c64  c64  c64
c128: c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128
"""


def _pairs(text: str) -> Mapping[tuple[str, str], str]:
    rows = {name.strip(): row.split() for name, row in (line.split(":") for line in text.strip().splitlines())}
    return {(a, b): found for a, row in rows.items() for b, found in zip(rows, row, strict=True) if found != "-"}


ALIKE, LOWER = _pairs(_ALIKE), _pairs(_LOWER)

# ops whose result is of another dtype than their operands have, once these are of one
OTHERS: Mapping[str, str] = {
    "eq ne logical_and logical_or logical_xor isnan isinf isfinite logical_not lt le gt ge signbit": "bool",
    "argmax argmin searchsorted argsort": "i64",
    "sum cumsum cumprod prod": "sums",
    "var abs": "real",
    "complex view_as_complex": "complex",
}
# and those whose result has theirs
SAME = """
add addmm amax amin atan2 broadcast_to cat clone conj conv1d conv2d conv3d copysign cos det diagonal einsum erf exp
expand flip floor floor_divide fmod hypot log logaddexp logcumsumexp logsumexp matmul maximum mean minimum mul neg
permute positive pow reciprocal relu remainder reshape round rsqrt sgn sigmoid sign sin slice softmax log_softmax
softplus sqrt square sub tan tanh tril triu trunc xlogy ceil div exp2 expm1 log1p log2 log10 asin acos atan sinh cosh
"""
_KINDS = {name: kind for names, kind in (*OTHERS.items(), (SAME, "same")) for name in names.split()}


def result_dtype(op: Op, dtypes: Sequence[np.dtype]) -> np.dtype | None:
    """What PyTorch's result is of, for operands of these dtypes; None if that is not recorded."""
    kind, dtype = _KINDS.get(op.name), dtypes[0] if dtypes else BOOL
    if kind is None or any(d != dtype for d in dtypes):
        return None
    if kind == "sums":
        return dtype if is_inexact(dtype) else INT64
    if kind in ("real", "complex"):
        return (real_of if kind == "real" else complex_of)(dtype)
    return dtype if kind == "same" else of_short_name(kind)


class Promotion(NamedTuple):
    """What an op was found to compute in, given the dtypes and ranks of its operands (see `dtypes.result_type`)."""

    op: Op
    operands: tuple[tuple[np.dtype, int], ...]
    found: np.dtype | None


@contextmanager
def watched() -> Iterator[set[Promotion]]:
    """A context; gives the promotions that the eager engine makes."""
    asked, sound = set[Promotion](), dispatch.operand_dtype

    def noted(op: Op, operands: Sequence[tuple[np.dtype, int]]) -> np.dtype | None:
        found = sound(op, operands)
        if op.rule.promote:
            asked.add(Promotion(op, tuple(operands[op.rule.first :]), found))
        return found

    with attribute(dispatch, "operand_dtype", noted):
        yield asked


def objection(made: Promotion) -> str:
    """What speaks against a promotion; "" if nothing does, or nothing is recorded of it."""
    by_rank: dict[int, str] = {}
    try:
        for dtype, rank in made.operands:
            name = SHORT_NAMES[dtype]
            by_rank[rank] = ALIKE[by_rank[rank], name] if rank in by_rank else name
        name = functools.reduce(lambda high, low: LOWER[high, low], (by_rank[k] for k in sorted(by_rank, reverse=True)))
    except KeyError:
        return ""
    expected = of_short_name(name)
    assert expected is not None
    if made.op.rule.promote == "float" and not is_inexact(expected):
        expected = default_float()
    if made.op.rule.promote == "number" and expected == BOOL:
        expected = INT64
    ranks = {0: "a number of ", 1: "0-d ", 2: ""}
    given = ", ".join(f"{ranks[rank]}{SHORT_NAMES[dtype]}" for dtype, rank in made.operands)
    return "" if made.found == expected else f"{made.found} of {given}, PyTorch {expected}"
