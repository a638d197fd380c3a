"""Type promotion is PyTorch's: a recorded table, which is itself compared with PyTorch where that is installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from graphc.ops import OPS, Aval, Op
from graphc.ops.dtypes import BY_SHORT_NAME, SHORT_NAMES, of_scalar, promote_types, result_type
from graphc.ops.interpret import operand_dtype
from graphc.ops.rules import integral
from tests.oracle import asked_of_torch, torch_dtype, torch_function, torch_or_skip

# "-" is complex32, which only PyTorch has
PROMOTED = """
bool: bool   u8   i8  i16  i32  i64  f16  f32  f64  c64 c128
  u8:   u8   u8  i16  i16  i32  i64  f16  f32  f64  c64 c128
  i8:   i8  i16   i8  i16  i32  i64  f16  f32  f64  c64 c128
 i16:  i16  i16  i16  i16  i32  i64  f16  f32  f64  c64 c128
 i32:  i32  i32  i32  i32  i32  i64  f16  f32  f64  c64 c128
 i64:  i64  i64  i64  i64  i64  i64  f16  f32  f64  c64 c128
 f16:  f16  f16  f16  f16  f16  f16  f16  f32  f64  c64 c128
 f32:  f32  f32  f32  f32  f32  f32  f32  f32  f64  c64 c128
 f64:  f64  f64  f64  f64  f64  f64  f64  f64  f64 c128 c128
 c64:  c64  c64  c64  c64  c64  c64  c64  c64 c128  c64 c128
c128: c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128
"""
ARRAY_WITH_SCALAR_ARRAY = """
bool: bool   u8   i8  i16  i32  i64  f16  f32  f64  c64 c128
  u8:   u8   u8   u8   u8   u8   u8  f16  f32  f64  c64 c128
  i8:   i8   i8   i8   i8   i8   i8  f16  f32  f64  c64 c128
 i16:  i16  i16  i16  i16  i16  i16  f16  f32  f64  c64 c128
 i32:  i32  i32  i32  i32  i32  i32  f16  f32  f64  c64 c128
 i64:  i64  i64  i64  i64  i64  i64  f16  f32  f64  c64 c128
 f16:  f16  f16  f16  f16  f16  f16  f16  f16  f16    -    -
 f32:  f32  f32  f32  f32  f32  f32  f32  f32  f32  c64  c64
 f64:  f64  f64  f64  f64  f64  f64  f64  f64  f64 c128 c128
 c64:  c64  c64  c64  c64  c64  c64  c64  c64  c64  c64  c64
c128: c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128
"""
SCALARS = (True, 1, 1.0, 1j)
ARRAY_WITH_SCALAR = """
bool: bool  i64  f32  c64
  u8:   u8   u8  f32  c64
  i8:   i8   i8  f32  c64
 i16:  i16  i16  f32  c64
 i32:  i32  i32  f32  c64
 i64:  i64  i64  f32  c64
 f16:  f16  f16  f16    -
 f32:  f32  f32  f32  c64
 f64:  f64  f64  f64 c128
 c64:  c64  c64  c64  c64
c128: c128 c128 c128 c128
"""


def table(text: str) -> dict[str, list[str]]:
    """{dtype of the first operand: the results}, columns in the order of the second operand's dtypes."""
    rows = (line.split(":") for line in text.strip().splitlines())
    return {name.strip(): results.split() for name, results in rows}


def entries(text: str, columns: Any) -> list[Any]:
    return [
        pytest.param(BY_SHORT_NAME[a], b, expected, id=f"{a}-{b}")
        for a, row in table(text).items()
        for b, expected in zip(columns, row, strict=True)
        if expected != "-"
    ]


@pytest.mark.parametrize(("a", "b", "expected"), entries(PROMOTED, table(PROMOTED)))
def test_promote_types(a: np.dtype, b: str, expected: str):
    assert SHORT_NAMES[promote_types(a, BY_SHORT_NAME[b])] == expected
    for rank in (1, 2):
        assert SHORT_NAMES[result_type([(a, rank), (BY_SHORT_NAME[b], rank)])] == expected


@pytest.mark.parametrize(("a", "b", "expected"), entries(ARRAY_WITH_SCALAR_ARRAY, table(PROMOTED)))
def test_array_with_0d_array(a: np.dtype, b: str, expected: str):
    assert SHORT_NAMES[result_type([(a, 2), (BY_SHORT_NAME[b], 1)])] == expected


@pytest.mark.parametrize(("a", "scalar", "expected"), entries(ARRAY_WITH_SCALAR, SCALARS))
@pytest.mark.parametrize("rank", [1, 2])
def test_array_with_python_scalar(rank: int, a: np.dtype, scalar: Any, expected: str):
    assert SHORT_NAMES[result_type([(a, rank), (of_scalar(scalar), 0)])] == expected


def test_all_three_ranks():
    f16, f64, i64 = (BY_SHORT_NAME[n] for n in ("f16", "f64", "i64"))
    assert result_type([(i64, 2), (f16, 1), (f64, 0)]) == f16
    assert result_type([(f16, 2), (f64, 1), (f64, 0)]) == f16


def test_recorded_tables_are_pytorchs():
    torch = torch_or_skip()

    def check(text: str, columns: Any, promote: Callable[[Any, Any], Any]) -> None:
        for a, b, expected in (p.values for p in entries(text, columns)):
            assert promote(torch_dtype(a), b) == torch_dtype(BY_SHORT_NAME[expected]), (a, b)

    def of_name(name: str) -> Any:
        return torch_dtype(BY_SHORT_NAME[name])

    check(PROMOTED, table(PROMOTED), lambda a, b: torch.promote_types(a, of_name(b)))
    check(ARRAY_WITH_SCALAR_ARRAY, table(PROMOTED),
          lambda a, b: torch.result_type(torch.ones(2, dtype=a), torch.ones((), dtype=of_name(b))))  # fmt: skip
    for shape in ((), (2,)):
        check(ARRAY_WITH_SCALAR, SCALARS, lambda a, b, shape=shape: torch.result_type(torch.ones(shape, dtype=a), b))


# Pairs of operand dtypes that each op is tried with, and in which PyTorch's answer is the specification.
TRIED = [("f32", "f32"), ("f32", "f64"), ("i64", "f32"), ("i64", "i64"), ("u8", "i8"), ("u8", "u8"), ("bool", "i64"),
         ("bool", "bool"), ("bool", "f32"), ("f16", "f16")]  # fmt: skip
POINTWISE = [op for op in OPS.values() if op.pointwise and op.rule.promote and not op.rule.first]


@asked_of_torch("op", POINTWISE, ids=lambda op: op.name)
def test_result_dtype_is_pytorchs(op: Op):
    torch = torch_or_skip()
    function = torch_function(op.name)
    differences = {}
    for names in dict.fromkeys(pair[: len(op.args)] for pair in TRIED):
        dtypes = [BY_SHORT_NAME[n] for n in names]
        try:
            expected = function(*(torch.ones(2, dtype=torch_dtype(d)) for d in dtypes)).dtype
        except (RuntimeError, NotImplementedError):
            expected = "refused"
        try:
            found = torch_dtype(_result_dtype(op, dtypes))
        except (RuntimeError, NotImplementedError):
            found = "refused"
        if found != expected:
            differences[names] = f"{found}, PyTorch {expected}"
    assert not differences, f"{op.name}: {differences}"


def _result_dtype(op: Op, dtypes: list[np.dtype]) -> np.dtype:
    promoted = operand_dtype(op, [(d, 2) for d in dtypes])
    return op.rule.infer(op, [Aval((2,), promoted or d) for d in dtypes], {}).dtype


@pytest.mark.parametrize("op", [op for op in POINTWISE if op.rule.infer is integral.infer], ids=lambda op: op.name)
def test_integral_ops_refuse_floats(op: Op):
    with pytest.raises(RuntimeError, match="not implemented for 'Float'"):
        _result_dtype(op, [BY_SHORT_NAME["f32"]] * len(op.args))
