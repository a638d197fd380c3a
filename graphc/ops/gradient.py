"""Running gradient rules: the same few lines serve the tape, differentiable gradients and the graph transform."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphc.ops.aval import same_shape
from graphc.ops.dtypes import FLOAT32, is_floating, is_half
from graphc.ops.movement import sum_to
from graphc.ops.spec import Op

_ON_NUMPY = (np.ndarray, np.generic)  # arrays of no dims become NumPy's scalars on the way


def rule_values(
    op: Op, wanted: set[str], arrays: Sequence[Any], result: Any, params: Mapping[str, Any]
) -> dict[str, Any]:
    """The values of the names that gradient rules ask for, from one call's operands and result."""
    values: dict[str, Any] = {}
    for name in wanted:
        if name in ("g", "position"):
            continue
        if name == "r":
            values[name] = result
        elif name in params:
            values[name] = params[name]
        else:
            base, what = (name, None) if name in op.args else name.rsplit("_", 1)
            k = op.args.index(base)
            picked = list(arrays[k:]) if op.variadic and k == len(op.args) - 1 else arrays[k]
            if what is None:
                values[name] = picked
            else:
                values[name] = [getattr(a, what) for a in picked] if isinstance(picked, list) else getattr(picked, what)
    return values


def share(language: Any, op: Op, index: int, g: Any, values: Mapping[str, Any], shape: tuple[int, ...] | None) -> Any:
    """What operand number `index` of `op` gets of the cotangent `g`, by the op's rule, in any op language.

    `shape` is the operand's, if it may have been broadcast. A cotangent of a complex z is dL/dRe(z) + i dL/dIm(z), so
    what a holomorphic function passes on is g conj(f'(z)). On ndarrays of 16-bit floats a rule computes in float32.
    """
    half = g.dtype if isinstance(g, _ON_NUMPY) and is_half(g.dtype) and "dtype" not in op.params else None
    if half is not None:
        g, values = widened(g), {name: widened(value) for name, value in values.items()}
    conjugated = op.holomorphic and is_complex(g)
    vjp = op.vjp[op.arg_of(index)]
    position = index - (len(op.args) - 1)
    if conjugated:
        g = language.conj(g)
    arguments = [g if n == "g" else position if n == "position" else values[n] for n in vjp.names]
    d = vjp.fn(language, *arguments)
    if conjugated and is_complex(d):
        d = language.conj(d)
    if shape is not None and not same_shape(d.shape, shape):
        d = sum_to(language, d, shape)
    return d if half is None else narrowed(d, half)


def is_complex(x: Any) -> bool:
    """Whether `x`, an array of any op language, is complex."""
    return getattr(x.dtype, "kind", "") == "c" or getattr(x.dtype, "is_complex", False)


def widened(x: Any) -> Any:
    """16-bit floats in float32, in a list too; anything else as it is."""
    if isinstance(x, _ON_NUMPY) and is_half(x.dtype):
        return x.astype(FLOAT32)
    return [widened(y) for y in x] if isinstance(x, list) else x


def narrowed(x: np.ndarray, half: np.dtype) -> np.ndarray:
    """Floats in the 16-bit dtype `half`; any other dtype as it is."""
    return x.astype(half, copy=False) if is_floating(x.dtype) else x
