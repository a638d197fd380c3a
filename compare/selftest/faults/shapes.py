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


def _fault(what: str, change: Callable[[Aval, list[Aval], Mapping[str, Any]], Aval], name: str) -> Fault:
    def plant() -> AbstractContextManager[None]:
        rule = OPS[name].rule

        def infer(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
            return change(rule.infer(op, avals, params), avals, params)

        return declared(OPS[name], rule=rule._replace(infer=infer))

    return Fault(f"shape of {name}: {what}", LAYER, plant, Expected(name), samples(name), name)


def _wide(aval: Aval, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    return Aval(aval.shape, FLOAT64) if aval.dtype.kind == "f" else aval


def _of_first(aval: Aval, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    return Aval(avals[0].shape, aval.dtype)


def _int32(aval: Aval, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    return Aval(aval.shape, np.dtype(np.int32))


def _column(aval: Aval, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    return Aval((*aval.shape, 1), aval.dtype)


def _reversed(aval: Aval, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    return Aval(aval.shape[::-1], aval.dtype)


def _without_ones(aval: Aval, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    return Aval(tuple(n for n in aval.shape if n != 1), aval.dtype)


def _longer(aval: Aval, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    """The last dim is one longer."""
    return Aval((*aval.shape[:-1], aval.shape[-1] + 1), aval.dtype) if aval.shape else aval


def _flat(aval: Aval, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    return Aval((aval.size,), aval.dtype)


def _float32(aval: Aval, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    return Aval(aval.shape, np.dtype(np.float32))


FAULTS: tuple[Fault, ...] = (
    _fault("one longer", _longer, "pad_zeros"),
    _fault("one longer", _longer, "cumsum"),
    _fault("one longer", _longer, "conv2d"),
    _fault("flat", _flat, "tril"),
    _fault("flat", _flat, "solve"),
    _fault("flat", _flat, "flip"),
    _fault("reversed", _reversed, "gather"),
    _fault("float32", _float32, "logical_not"),
    _fault("one longer", _longer, "index"),
    _fault("one longer", _longer, "broadcast_to"),
    _fault("promoted", _wide, "tanh"),
    _fault("promoted", _wide, "mean"),
    _fault("that of the first operand", _of_first, "mul"),
    _fault("that of the first operand", _of_first, "where"),
    _fault("that of the first operand", _of_first, "gather"),
    _fault("int32", _int32, "argmax"),
    _fault("int32", _int32, "argsort"),
    _fault("a column", _column, "logsumexp"),
    _fault("reversed", _reversed, "permute"),
    _fault("reversed", _reversed, "matmul"),
    _fault("without dims of one", _without_ones, "amax"),
    _fault("that of the first operand", _of_first, "cat"),
    _fault("complex", lambda aval, avals, params: Aval(aval.shape, np.dtype(np.complex64)), "real"),
)
