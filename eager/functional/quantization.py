"""Rounding to what an integer of few bits holds, in a floating dtype: gradients pass as if nothing was rounded."""

from __future__ import annotations

from typing import Any

import numpy as np

from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.engine.node_names import whole
from eager.functional.arguments import axis_of, not_implemented, shape_of
from graphc.ops.dtypes import FLOAT32
from graphc.ops.rules import torch_name

KIND = "Zero-point must be Int32, Float or Half, found {0}"
BOUNDS = "`quant_min` should be less than or         equal to `quant_max`."
ZERO_POINT = "`zero_point` must be between `quant_min` and `quant_max`."
NOT_1D = "{0} should be a 1-D tensor"
SIZES = "dimensions of scale and zero-point are not consistent with input tensor"


def _rounded(x: Tensor, scale: Tensor, zero_point: Any, quant_min: int, quant_max: int) -> Tensor:
    """(clamp(round(x / scale) + zero_point) - zero_point) * scale; the gradient is 0 where the clamp acts, else 1."""
    kind = x._dtype()
    if kind.kind != "f":
        raise not_implemented("fake_quantize_tensor_cachemask_kernel_type_handling", x)
    fixed = E.stop_gradient(x)
    levels = E.add(E.round(E.mul(fixed, E.reciprocal(scale))), zero_point)
    held = E.logical_and(E.ge(levels, quant_min), E.le(levels, quant_max))
    bounded = E.at_most(E.at_least(levels, quant_min), quant_max)
    value = E.cast(E.mul(E.sub(bounded, zero_point), scale), dtype=kind)
    nothing = E.where(E.isfinite(fixed), E.sub(x, fixed), 0.0)  # which gradients flow through
    return E.add(value, E.mul(nothing, E.cast(held, dtype=kind)))


def fake_quantize_per_tensor_affine(
    input: Tensor, scale: float | Tensor, zero_point: int | Tensor, quant_min: int, quant_max: int
) -> Tensor:
    """`input` rounded to `scale` * (integer - `zero_point`), with integers from `quant_min` to `quant_max`.

    scale, zero_point: numbers, or tensors of one element. RuntimeError if the bounds are the wrong way round, or do
    not hold the zero point. As `torch.fake_quantize_per_tensor_affine`.
    """
    shape_of(input, "fake_quantize_per_tensor_affine")
    if quant_min > quant_max:
        raise RuntimeError(BOUNDS)
    if not isinstance(zero_point, Tensor) and not quant_min <= zero_point <= quant_max:
        raise RuntimeError(ZERO_POINT)
    if isinstance(scale, Tensor):
        return _with_tensors(input, scale, zero_point, quant_min, quant_max)
    number = E.full(shape=(), value=float(scale), dtype=FLOAT32)  # PyTorch takes it in this dtype
    return _with_numbers(input, number, zero_point, quant_min, quant_max)


_with_numbers = whole("FakeQuantizePerTensorAffineCachemaskBackward0")(_rounded)
_with_tensors = whole("FakeQuantizePerTensorAffineCachemaskTensorQparamsBackward0")(_rounded)


@whole("FakeQuantizePerChannelAffineCachemaskBackward0")
def fake_quantize_per_channel_affine(
    input: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int
) -> Tensor:
    """As `fake_quantize_per_tensor_affine`, with a scale and a zero point (C,) for each place along `axis` (of size C).

    As `torch.fake_quantize_per_channel_affine`.
    """
    shape = shape_of(input, "fake_quantize_per_channel_affine")
    for name, given in (("scale", scale), ("zero point", zero_point)):
        if len(given._d.shape) != 1:
            raise RuntimeError(NOT_1D.format(name))
    if zero_point._dtype().kind == "i" and zero_point._dtype().itemsize != 4:
        raise RuntimeError(KIND.format(torch_name(zero_point._dtype())))
    if quant_min > quant_max:
        raise RuntimeError(BOUNDS)
    axis = axis_of(axis, len(shape))
    if not scale._d.shape == zero_point._d.shape == (shape[axis],):
        raise RuntimeError(SIZES)
    if isinstance(zero_point._d, np.ndarray) and not np.all(
        (quant_min <= zero_point._d) & (zero_point._d <= quant_max)
    ):
        raise RuntimeError(ZERO_POINT)
    along = tuple(n if k == axis else 1 for k, n in enumerate(shape))
    return _rounded(input, E.reshape(scale, shape=along), E.reshape(zero_point, shape=along), quant_min, quant_max)
