"""Wrong shape-and-dtype rules: what a graph declares is not what its kernels give."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from compare.selftest.fault import Expected, Fault
from compare.selftest.planting import declared
from compare.selftest.trials import samples
from graphc.ops import OPS, Op
from graphc.ops.aval import Aval
from graphc.ops.dtypes import FLOAT64

LAYER = "shape rules"


Change = Callable[[Aval, Aval], Aval]


def _fault(what: str, change: Change, name: str) -> Fault:
    """The rule of the op `name` followed by `change(its aval, that of the first operand)`."""

    def plant() -> AbstractContextManager[None]:
        rule = OPS[name].rule

        def infer(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
            return change(rule.infer(op, avals, params), avals[0])

        return declared(OPS[name], rule=rule._replace(infer=infer))

    return Fault(f"shape of {name}: {what}", LAYER, plant, Expected(name), samples(name), name)


def _typed(dtype: Any) -> Change:
    return lambda aval, first: Aval(aval.shape, np.dtype(dtype))


def _longer(aval: Aval, first: Aval) -> Aval:
    """The last dim is one longer."""
    return Aval((*aval.shape[:-1], aval.shape[-1] + 1), aval.dtype) if aval.shape else aval


# (what is wrong, how, the ops whose rules it is done to)
_TABLE: tuple[tuple[str, Change, tuple[str, ...]], ...] = (
    ("one longer", _longer, ("pad_zeros", "cumsum", "conv2d", "index", "broadcast_to")),
    ("flat", lambda aval, first: Aval((aval.size,), aval.dtype), ("tril", "solve", "flip")),
    ("reversed", lambda aval, first: Aval(aval.shape[::-1], aval.dtype), ("gather", "permute", "matmul")),
    ("float32", _typed(np.float32), ("logical_not",)),
    ("promoted", lambda aval, first: Aval(aval.shape, FLOAT64) if aval.dtype.kind == "f" else aval, ("tanh", "mean")),
    ("that of the first operand", lambda aval, first: Aval(first.shape, aval.dtype), ("mul", "where", "gather", "cat")),
    ("int32", _typed(np.int32), ("argmax", "argsort")),
    ("a column", lambda aval, first: Aval((*aval.shape, 1), aval.dtype), ("logsumexp",)),
    ("without dims of one", lambda aval, first: Aval(tuple(n for n in aval.shape if n != 1), aval.dtype), ("amax",)),
    ("complex", _typed(np.complex64), ("real",)),
)

FAULTS: tuple[Fault, ...] = tuple(_fault(what, change, name) for what, change, names in _TABLE for name in names)
