"""Wrong dtypes that all modes share: of operands of two dtypes, of results; and kernels wrong for long rows only."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

import eager as torch
from compare.modes.reference import PROMOTION
from compare.selftest.fault import Expected, Fault, Trials
from compare.selftest.faults.shared import both, row, shared_kernel, shared_rule
from compare.selftest.mutants import instead
from compare.selftest.planting import Plant, attribute, declared, together
from compare.selftest.trials import numbers, program
from graphc.ops import OPS, interpret, orders
from graphc.ops.aval import Aval
from graphc.ops.dtypes import FLOAT16, FLOAT32, FLOAT64, bfloat16, result_type

LAYER = "dtypes"
Operands = list[tuple[np.dtype, int]]


def _promotion(what: str, op: str, wrong: Callable[[Operands], np.dtype], trials: Trials) -> Fault:
    plant: Plant = lambda: attribute(interpret, "result_type", wrong)
    return Fault(f"promotion: {what}", LAYER, plant, Expected(op, PROMOTION), trials)


def _of_rank(ranks: dict[int, int]) -> Callable[[Operands], np.dtype]:
    return lambda operands: result_type([(dtype, ranks.get(rank, rank)) for dtype, rank in operands])


def _instead_of(wrong: dict[np.dtype, np.dtype]) -> Callable[[Operands], np.dtype]:
    def found(operands: Operands) -> np.dtype:
        result = result_type(operands)
        return result if any(dtype == result for dtype, _ in operands) else wrong.get(result, result)

    return found


def _summed_as_they_are() -> AbstractContextManager[None]:
    op = OPS["sum"]
    infer = op.rule.infer

    def same(op: Any, avals: Any, params: Any) -> Aval:
        return Aval(infer(op, avals, params).shape, avals[0].dtype)

    def kernel(x: Any, axis: Any, keepdims: bool) -> Any:
        return x.sum(axis=axis, keepdims=keepdims, dtype=x.dtype)

    return together(lambda: both("sum", kernel, kernel), lambda: declared(op, rule=op.rule._replace(infer=same)))()


def _nan_first(xp: Any, x: Any) -> Any:
    found = orders_keys(xp, x)
    return xp.where(x != x, -(2**30), found).astype(found.dtype)


def _keys() -> AbstractContextManager[None]:
    from graphc.lowering import orders as lowered  # which loads JAX

    return together(*(lambda owner=owner: attribute(owner, "keys", _nan_first) for owner in (orders, lowered)))()


orders_keys = orders.keys
FEW = 3000  # elements of a row for which the kernels below are right


def _beginning(xp: Any, x: Any, axis: Any, keepdims: bool) -> Any:
    return xp.sum(x[..., :FEW], axis=axis, keepdims=keepdims)


def _begun_anew(xp: Any, x: Any, axis: int, reverse: bool) -> Any:
    parts = [xp.cumsum(part, axis=axis) for part in (x[:FEW], x[FEW:])]
    return xp.concatenate(parts)


_f32, _f64 = numbers(3), numbers(3, dtype=FLOAT64)
_half, _brain = numbers(3, dtype=FLOAT16), numbers(3, seed=6).astype(bfloat16())
_odd = np.where(np.arange(1200) % 7 == 3, np.nan, numbers(1200)).astype(FLOAT32)

FAULTS: tuple[Fault, ...] = (
    _promotion("0-d tensors count", "add", _of_rank({1: 2}), program(lambda x, y: x + y, _f32, np.array(2.5))),
    _promotion("numbers count", "mul", _of_rank({0: 2}), program(lambda x: x * 1.5, _half)),
    _promotion("single precision of complex64 and float64", "mul",
               _instead_of({np.dtype(np.complex128): np.dtype(np.complex64)}),
               program(lambda x, y: x * y, _f32 + 1j * _f32, _f64)),
    _promotion("half precision of two kinds", "sub", _instead_of({FLOAT32: FLOAT16}),
               program(lambda x, y: x - y, _half, _brain)),
    Fault("promotion: whole numbers become double", LAYER, lambda: attribute(interpret, "default_float",
          lambda: FLOAT64), Expected("sqrt", PROMOTION), program(lambda x: x.sqrt(), np.arange(3))),
    Fault("sums of bytes are bytes", LAYER, _summed_as_they_are, Expected("sum", "shape rule"),
          program(lambda x: x.sum(), np.array([200, 100], np.uint8))),
    shared_kernel("nan is 0", instead(lambda xp, z: xp.where(z < 0, np.pi, 0).astype(z.dtype)), "angle",
                  program(lambda x: x.angle(), row(1, np.nan, -2))),
    shared_kernel("the beginning only", instead(_beginning), "sum", program(lambda x: x.sum(-1), numbers(2, 5000))),
    shared_kernel("long rows begin anew", instead(_begun_anew), "cumsum", program(lambda x: x.cumsum(0),
                  numbers(5000))),
    Fault("keys of orders: nan before all", "shared declarations", _keys, Expected("argsort", "kernel"),
          program(lambda x: torch.argsort(x.detach()), _odd)),
    shared_rule("equals do not share",
                lambda F, g, r, input, input_dtype: g * F.cast(input == r, dtype=input_dtype), "scatter_reduce.input",
                program(lambda x, y, i: x.scatter_reduce(0, i, y, "amax"), row(1, 5), row(1, 1, 2),
                        np.array([0, 0, 1]))),
)  # fmt: skip
