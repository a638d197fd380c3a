"""Running gradient rules: the same few lines serve the tape, differentiable gradients and the graph transform."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphc.ops.aval import same_shape
from graphc.ops.dtypes import FLOAT32, is_half
from graphc.ops.movement import sum_to
from graphc.ops.spec import Op, Trait

_ON_NUMPY = (np.ndarray, np.generic)  # arrays of no dims become NumPy's scalars on the way
_PRODUCT = Trait.BILINEAR | Trait.CONTRACTS


def rule_values(
    op: Op, wanted: set[str], arrays: Sequence[Any], result: Any, params: Mapping[str, Any]
) -> dict[str, Any]:
    """The values of the names that gradient rules ask for, from one call's operands and result, or results."""
    values: dict[str, Any] = {}
    cotangents, results = names_of_results(op, "g"), names_of_results(op, "r")
    for name in wanted:
        if name in cotangents or name == "position":
            continue
        if name in results:
            values[name] = result[results.index(name)] if op.results else result
        elif name in params:
            values[name] = params[name]
        else:
            base, what = (name, None) if name in op.args else name.rsplit("_", 1)
            k = op.args.index(base)
            picked = list(arrays[k:]) if op.variadic and k == len(op.args) - 1 else arrays[k]
            if what is None:
                values[name] = picked
            else:
                values[name] = [_said(a, what) for a in picked] if isinstance(picked, list) else _said(picked, what)
    return values


def _said(array: Any, what: str) -> Any:
    """The shape or dtype of an array, or of what stands in for one."""
    found = getattr(array, what)
    return array.numpy_dtype if found is None else found


def names_of_results(op: Op, what: str) -> list[str]:
    """What gradient rules call the results of `op` ("r") or their cotangents ("g"): `r`, or `r_q` of a result `q`."""
    return [f"{what}_{result}" for result in op.results] or [what]


def share(language: Any, op: Op, index: int, g: Any, values: Mapping[str, Any], shape: tuple[int, ...] | None) -> Any:
    """What operand number `index` of `op` gets of the cotangent `g`, by the op's rule, in any op language.

    Of an op with several results, `g` is a sequence with the cotangent of each, or None where none has arrived.
    `shape` is the operand's, if it may have been broadcast. A cotangent of a complex z is dL/dRe(z) + i dL/dIm(z), so
    what a holomorphic function passes on is g conj(f'(z)). Of 16-bit floats a rule computes in float32, like a kernel:
    what it has on its way may lie beyond their range.
    """
    given = dict(zip(names_of_results(op, "g"), g if op.results else (g,), strict=True))
    dtypes = [numpy_dtype(c) for c in given.values() if c is not None]
    conjugated = op.holomorphic and any(dtype.kind == "c" for dtype in dtypes)
    vjp = op.vjp[op.arg_of(index)]
    if conjugated:
        given = {name: language.conj(c) if c is not None and is_complex(c) else c for name, c in given.items()}
    cotangents = [c for c in given.values() if c is not None]
    given["position"] = index - (len(op.args) - 1)
    arguments = [given[n] if n in given else values[n] for n in vjp.names]
    half = next((dtype for dtype in dtypes if is_half(dtype)), None)
    half = half if half is not None and _widens(op, arguments, cotangents) else None
    d = vjp.fn(language, *(arguments if half is None else widened(language, arguments)))
    if conjugated and is_complex(d):
        d = language.conj(d)
    if shape is not None and not same_shape(d.shape, shape):
        d = sum_to(language, d, shape)
    return d if half is None else narrowed(language, d, half)


def is_complex(x: Any) -> bool:
    """Whether `x`, an array of any op language, is complex."""
    return getattr(x.dtype, "kind", "") == "c" or getattr(x.dtype, "is_complex", False)


def numpy_dtype(x: Any) -> np.dtype:
    """The NumPy dtype of an array of any op language."""
    dtype = x.dtype
    return dtype if isinstance(dtype, np.dtype) else dtype.numpy


def _is_half(x: Any) -> bool:
    """Whether `x` is an array of 16-bit floats, in any op language."""
    return hasattr(x, "dtype") and is_half(numpy_dtype(x))


def _widens(op: Op, arguments: Sequence[Any], cotangents: Sequence[Any]) -> bool:
    if "dtype" in op.params:
        return False
    if isinstance(cotangents[0], _ON_NUMPY):
        return True
    # where a cast is an operation like any other, only rules of several steps, which may leave the range between them
    read = [a for given in arguments for a in (given if isinstance(given, list) else [given])]
    return not op.traits & _PRODUCT and any(_is_half(a) and all(a is not g for g in cotangents) for a in read)


def widened(language: Any, x: Any) -> Any:
    """16-bit floats in float32, in a list too, and float32 for their dtype; anything else as it is."""
    if isinstance(x, list):
        return [widened(language, y) for y in x]
    if isinstance(dtype := getattr(x, "numpy", x), np.dtype):
        return FLOAT32 if is_half(dtype) else x
    return language.cast(x, dtype=FLOAT32) if _is_half(x) else x


def narrowed(language: Any, x: Any, half: np.dtype) -> Any:
    """What is in float32 in the 16-bit dtype `half`; any other dtype as it is."""
    return language.cast(x, dtype=half) if numpy_dtype(x) == FLOAT32 else x
