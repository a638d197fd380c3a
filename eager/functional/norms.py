"""p-norms of vectors, and what PyTorch asks of their arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from eager.core import dtypes
from eager.core.dtypes import type_name
from eager.core.interpreter import on_arrays
from eager.core.tensor import Tensor
from eager.engine.conversion import converted
from eager.engine.language import E
from eager.engine.node_names import undifferentiated, whole
from eager.functional.arguments import axes_of, shape_of
from eager.functional.precision import rounds_once
from eager.functional.reductions import root
from graphc.ops.dtypes import is_half, is_inexact, result_type
from graphc.ops.rules import torch_name

INF = float("inf")


def order_of(name: str, ord: Any) -> float:
    """The order of a norm as a number. Raises PyTorch's error for what is none."""
    if ord.__class__ is float:
        return ord
    if isinstance(ord, (complex, np.complexfloating)):
        raise RuntimeError(f"linalg.{name}: Expected a non-complex scalar as the order of norm.")
    try:
        return float(ord)
    except (TypeError, ValueError):
        raise TypeError(f"linalg_{name}(): argument 'ord' (position 2) must be Number, not {type_name(ord)}") from None


def spelled(ord: float) -> str:
    """A number as PyTorch's messages have it."""
    return f"{ord:g}"


def in_dtype(name: str, x: Tensor, dtype: Any, low_precision: bool = True) -> Tensor:
    """`x`, the operand of a norm, in `dtype`, if that is given. RuntimeError for integers, and if it narrows."""
    own = x._dtype()
    if not is_inexact(own):
        raise RuntimeError(
            f"linalg.{name}: Expected a floating point or complex tensor as input. Got {torch_name(own)}"
        )
    if is_half(own) and not low_precision:
        raise RuntimeError(f"linalg.{name}: Low precision dtypes not supported. Got {torch_name(own)}")
    if dtype is None:
        return x
    wanted = dtypes.to_numpy(dtype)
    if not is_inexact(wanted):
        raise RuntimeError(f"linalg.{name}: dtype should be floating point or complex, but got {torch_name(wanted)}")
    if (own.kind == "c") != (wanted.kind == "c"):
        kind = "complex" if own.kind == "c" else "real"
        raise RuntimeError(f"linalg.{name}: dtype should be {kind} for {kind} inputs, but got {torch_name(wanted)}")
    if result_type([(own, 2), (wanted, 2)]) != wanted:
        raise RuntimeError(
            f"linalg.{name}: the dtype of the input ({torch_name(own)}) should be convertible without narrowing to the "
            f"specified dtype ({torch_name(wanted)})"
        )
    return converted(x, wanted)


def _check_identity(shape: tuple[int, ...], ord: float, dim: Any) -> None:
    """Raise PyTorch's RuntimeError if the norm of nothing would be asked for, that has none."""
    dims = () if dim is None else tuple(dim) if isinstance(dim, Sequence) else (dim,)
    text = f"linalg.vector_norm cannot compute the {spelled(ord)} norm on "
    if not dims:
        raise RuntimeError(f"{text}an empty tensor because the operation does not have an identity")
    for d in dims:
        if -len(shape) <= d < len(shape) and not shape[d]:
            raise RuntimeError(
                f"{text}the dimension {d}because this dimension is empty and the operation does not have an identity"
            )


@whole("LinalgVectorNormBackward0")
def vector_norm(x: Tensor, ord: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    """The norm of order `ord` over `dim`, over everything if that is None or empty."""
    shape = shape_of(x, "linalg_vector_norm")
    order = order_of("vector_norm", ord)
    x = in_dtype("vector_norm", x, dtype)
    if (order < 0 or order == INF) and 0 in shape:
        _check_identity(shape, order, dim)
    return _of_order(x, order, axes_of(dim, len(shape)), keepdim)


@rounds_once
def _of_order(x: Tensor, order: float, axes: tuple[int, ...], keepdim: bool) -> Tensor:
    if x._dtype().kind == "c":
        x = E.abs(x)
    if order == 2.0:
        return root(E.sum(E.square(x), axis=axes, keepdims=keepdim))
    if order == INF:
        return E.amax(E.abs(x), axis=axes, keepdims=keepdim)
    if order == -INF:
        return E.amin(E.abs(x), axis=axes, keepdims=keepdim)
    if order == 1.0:
        return E.sum(E.abs(x), axis=axes, keepdims=keepdim)
    if order == 0.0 and on_arrays():
        found = E.power_norm(E.stop_gradient(x), order=order, axis=axes, keepdims=keepdim)
        return undifferentiated(found, "LinalgVectorNormBackward0", x)
    return E.power_norm(x, order=order, axis=axes, keepdims=keepdim)
