"""How many scalar operations a call of an op takes, as the op declares it: a product and a sum are two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from eager.core.tensor import Tensor
from graphc.ops import OPS, Op
from graphc.ops.aval import Aval


def counted_op(name: str) -> Op | None:
    """The op of an event "aten::conv2d" if it says what it takes: products and sums do, and pointwise ops."""
    op = OPS.get(name.removeprefix("aten::"))
    return op if op is not None and (op.flops is not None or op.pointwise) else None


def flops_of(
    op: Op, arguments: Sequence[Any], keywords: Mapping[str, Any], result: Any
) -> tuple[int, list[tuple[int, ...]]]:
    """What a call of `op` that has given `result` has taken, and the shapes of its operands; 0 for other calls.

    A pointwise op takes one operation for each element.
    """
    values = [*arguments, *keywords.values()]
    if not isinstance(result, Tensor) or not values or not isinstance(values[0], Tensor):
        return 0, []
    avals = [_aval(x) for x in values if isinstance(x, Tensor)]
    if op.flops is None:
        return result.numel(), [aval.shape for aval in avals]
    params = {**op.params, **{name: value for name, value in keywords.items() if name in op.params}}
    return int(op.flops(avals, _aval(result), params)), [aval.shape for aval in avals]


def _aval(x: Tensor) -> Aval:
    return Aval(tuple(x.shape), x.dtype.numpy)
