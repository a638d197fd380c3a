"""Quantiles: the values below which a share of the elements lies."""

from __future__ import annotations

from typing import Any

import numpy as np

from eager.core.interpreter import on_arrays
from eager.core.state import sequence
from eager.core.tensor import Tensor
from eager.core.views import not_a_view
from eager.engine.language import E
from eager.engine.node_names import enclosed
from eager.functional.arguments import axis_of, shape_of
from eager.functional.arithmetic import clamp_min, lerp
from eager.functional.gathering import numel
from eager.functional.naming import called
from eager.functional.outputs import with_out
from eager.functional.shapes import movedim
from graphc.ops.dtypes import FLOAT32, FLOAT64, INT64

# interpolations that take an element as it is, by what they do with its rank
ROUNDED = {"lower": lambda r: E.floor(r), "higher": lambda r: E.ceil(r), "nearest": lambda r: E.round(r)}
# of the result, without and with a dim for q, as PyTorch prints it
NODES = {False: "SqueezeBackward4", True: "CloneBackward0"}
INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _shares(name: str, q: Any, input: Tensor) -> Tensor:
    """`q` as a tensor of the dtype of `input`. RuntimeError unless between 0 and 1, and a number or a vector."""
    if not isinstance(q, Tensor):
        if not 0 <= q <= 1:
            raise RuntimeError(f"{name}() q must be in the range [0, 1] but got {q:g}")
        return Tensor._wrap(np.array(q, input._dtype()))
    if len(q._d.shape) > 1:
        raise RuntimeError("quantile() q must be a scalar or 1D tensor")
    if q._dtype() != input._dtype():
        raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor")
    if on_arrays(q) and not bool(((q._array() >= 0) & (q._array() <= 1)).all()):
        raise RuntimeError(f"{name}() q values must be in the range [0, 1]")
    return q


def _quantile(name: str, ignore_nan: bool) -> Any:
    @called(
        name,
        f"The `q`-quantiles along `dim`{', of what is not nan' if ignore_nan else ''}, of all elements if None; a "
        "vector `q` is the first dim of the result.",
        "torch",
    )
    def function(
        input: Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
    ) -> Tensor:
        shape = tuple(shape_of(input, name))
        if 0 in shape:
            raise RuntimeError(f"{name}() input tensor must be non-empty")
        if input._dtype() not in (FLOAT32, FLOAT64):
            raise RuntimeError(f"{name}() input tensor must be either float or double dtype")
        shares = _shares(name, q, input)
        if interpolation not in INTERPOLATIONS:
            raise RuntimeError(
                f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got "
                f"{interpolation}"
            )
        axis = None if dim is None else axis_of(dim, len(shape))
        since = next(sequence)
        rows = E.reshape(input, shape=(numel(shape),)) if axis is None or not shape else movedim(input, axis, -1)
        values = _at_ranks(rows, shares, interpolation, ignore_nan)  # the quantiles along the last dim
        many = shares._d.shape
        values = movedim(values, -1, 0)
        if axis is None:
            rest = (1,) * len(shape) if keepdim else ()
        else:
            rest = (*shape[:axis], *(1,) * (keepdim and bool(shape)), *shape[axis + 1 :])
        result = E.reshape(values, shape=(*many, *rest))
        return not_a_view(enclosed(result, NODES[bool(many)], since))

    return with_out(name, function)


def _at_ranks(rows: Tensor, shares: Tensor, interpolation: str, ignore_nan: bool) -> Tensor:
    count = rows._d.shape[-1]
    axis = len(rows._d.shape) - 1
    order = E.argsort(rows, axis=axis, descending=False)
    ordered = E.gather(rows, order, axis=axis)
    nans = E.sum(E.ne(rows, rows), axis=(axis,), keepdims=True)
    shares = E.reshape(shares, shape=(numel(tuple(shares._d.shape)),))
    if ignore_nan:
        last = clamp_min(E.sub(count - 1, nans), 0)
        ranks = E.mul(shares, last)
    else:  # the last of the sorted is nan if any is
        ranks = E.where(E.gt(nans, 0), float(count - 1), E.mul(shares, count - 1))
    dtype = rows._dtype()
    ranks = ranks if ranks._dtype() == dtype else E.cast(ranks, dtype=dtype)
    if interpolation in ROUNDED:
        return _picked(ordered, ROUNDED[interpolation](ranks), axis)
    below = E.floor(ranks)
    low = _picked(ordered, below, axis)
    high = _picked(ordered, E.ceil(ranks), axis)
    return lerp(low, high, 0.5 if interpolation == "midpoint" else E.sub(ranks, below))


def _picked(ordered: Tensor, ranks: Tensor, axis: int) -> Tensor:
    at = E.cast(E.stop_gradient(ranks), dtype=INT64)
    shape = (*ordered._d.shape[:-1], at._d.shape[-1])
    return E.gather(ordered, at if at._d.shape == shape else E.broadcast_to(at, shape=shape), axis=axis)


quantile = _quantile("quantile", False)
nanquantile = _quantile("nanquantile", True)
