"""Type promotion is PyTorch's: a recorded table, which is itself compared with PyTorch where that is installed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from compare.declared.operations import samples_of
from compare.judging.dtypes import ALIKE, LOWER, result_dtype
from graphc.ops import OPS, Aval, Op, aval_of
from graphc.ops.dtypes import (
    BY_SHORT_NAME,
    FLOAT32,
    SHORT_NAMES,
    is_inexact,
    of_scalar,
    of_short_name,
    promote_types,
    result_type,
)
from graphc.ops.interpret import operand_dtype
from graphc.ops.rules import integral
from tests.oracle import asked_of_torch, torch_dtype, torch_function, torch_or_skip

SCALARS = (True, 1, 1.0, 1j)
TABLES = {2: ALIKE, 1: LOWER, 0: LOWER}  # by the rank of the second operand, where that of the first is 2


@pytest.mark.parametrize("rank", TABLES)
def test_promotion_goes_by_the_recorded_tables(rank: int):
    named = {pair: tuple(map(of_short_name, pair)) for pair in TABLES[rank]}
    found = {pair: SHORT_NAMES[result_type([(a, 2), (b, rank)])] for pair, (a, b) in named.items()}
    assert found == TABLES[rank]
    if rank == 2:
        assert {pair: SHORT_NAMES[promote_types(a, b)] for pair, (a, b) in named.items()} == ALIKE


def test_numbers_are_of_a_rank_below_0d_arrays():
    for (a, b), expected in LOWER.items():
        for number in SCALARS:
            if SHORT_NAMES[of_scalar(number)] == b:
                assert SHORT_NAMES[result_type([(of_short_name(a), 1), (of_scalar(number), 0)])] == expected


def test_all_three_ranks():
    f16, f64, i64 = (BY_SHORT_NAME[n] for n in ("f16", "f64", "i64"))
    assert result_type([(i64, 2), (f16, 1), (f64, 0)]) == f16
    assert result_type([(f16, 2), (f64, 1), (f64, 0)]) == f16


def test_recorded_tables_are_pytorchs():
    torch = torch_or_skip()
    for rank, table in TABLES.items():
        for (a, b), expected in table.items():
            one, other = (torch_dtype(of_short_name(n)) for n in (a, b))
            numbers = [x for x in SCALARS if SHORT_NAMES[of_scalar(x)] == b]
            for second in numbers if rank == 0 else [torch.ones((2,) * (rank - 1), dtype=other)]:
                found = torch.result_type(torch.ones(2, dtype=one), second)
                assert found == torch_dtype(of_short_name(expected)), (a, b, rank)


RECORDED = [op for op in OPS.values() if result_dtype(op, [FLOAT32]) is not None]


def test_recorded_results_are_what_the_rules_say():
    for op in RECORDED:
        _goes_by_the_record(op)


def _is_cast(op: Op, dtype: np.dtype) -> bool:
    """Whether operands of this dtype have been cast before they are given to the op in a graph."""
    return op.rule.promote not in ("", "common") and not is_inexact(dtype)


def _goes_by_the_record(op: Op) -> None:
    for arrays, params in _of_one_dtype(op):
        try:
            operand_dtype(op, [(a.dtype, 2) for a in arrays])
            found = op.rule.infer(op, [aval_of(a) for a in arrays], params).dtype
        except (RuntimeError, NotImplementedError):
            continue
        if not _is_cast(op, arrays[0].dtype):
            assert found == result_dtype(op, [a.dtype for a in arrays]), op.name


@asked_of_torch("op", RECORDED, ids=lambda op: op.name)
def test_recorded_results_are_pytorchs(op: Op):
    torch_or_skip()
    from compare.modes.torch_functions import Lacking, run, to_numpy, to_torch

    for arrays, params in _of_one_dtype(op):
        if _is_cast(op, arrays[0].dtype):
            continue
        try:
            found = to_numpy(run(op, [to_torch(a) for a in arrays], params)).dtype
        except (RuntimeError, TypeError, UserWarning, Lacking):  # it refuses the dtype, or warns of it
            continue
        if is_inexact(found) and not is_inexact(arrays[0].dtype):
            continue  # the public function casts first, as it does here
        assert found == result_dtype(op, [a.dtype for a in arrays]), arrays[0].dtype


def _of_one_dtype(op: Op) -> Iterator[tuple[list[np.ndarray], dict[str, Any]]]:
    sample = next(iter(samples_of(op)))
    given = [np.abs(np.asarray(a)) for a in sample.arrays(np.random.default_rng(0), op.domain, FLOAT32)]
    for name in "bool u8 i8 i16 i32 i64 f16 bf16 f32 f64 c64 c128".split():
        yield [a.astype(of_short_name(name)) for a in given], {**op.params, **sample.params}


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
