"""The patches of images as columns, and back. As in `torch.nn.functional`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from eager.core.interpreter import on_arrays
from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.engine.node_names import whole
from eager.functional.arguments import axis_of, shape_of
from graphc.ops.dtypes import BOOL, is_inexact
from graphc.ops.rules import torch_name
from graphc.ops.strides import row_major

Sizes = tuple[int, ...]

__all__ = ["fold", "unfold"]


def _pair(value: Any, name: str, function: str, position: int) -> Sizes:
    if isinstance(value, int):
        return (value, value)
    if isinstance(value, float):
        raise TypeError(
            f"{function}(): argument '{name}' (position {position}) must be tuple of ints, but found element of type "
            "float at pos 0"
        )
    if len(value) != 2:
        raise RuntimeError(f"It is expected {name} equals to 2, but got size {len(value)}")
    return tuple(int(v) for v in value)


def _check_windows(kernel: Sizes, dilation: Sizes, padding: Sizes, stride: Sizes) -> None:
    def shown(name: str, sizes: Sizes) -> str:
        return f"{name}_height: {sizes[0]} {name}_width: {sizes[1]}"

    for what, name, sizes in (("kernel size", "kernel", kernel), ("dilation", "dilation", dilation)):
        if min(sizes) <= 0:
            raise RuntimeError(f"{what} should be greater than zero, but got {shown(name, sizes)}")
    if min(padding) < 0:
        raise RuntimeError(f"padding should be non-negative, but got {shown('pad', padding)}")
    if min(stride) <= 0:
        raise RuntimeError(f"stride should be greater than zero, but got {shown('stride', stride)}")


def _floating(input: Tensor, kernel: str) -> None:
    dtype = input._dtype()
    if not is_inexact(dtype) and dtype != BOOL:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{torch_name(dtype)}'")


def _blocks(size: Sizes, kernel: Sizes, dilation: Sizes, padding: Sizes, stride: Sizes) -> Sizes:
    return tuple(
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, d, p, s in zip(size, kernel, dilation, padding, stride, strict=True)
    )


def _places(kernel: Sizes, dilation: Sizes, stride: Sizes, out: Sizes) -> list[Tensor]:
    """Row and column of tap (i, j) of block (p, q), shaped (kh, 1, oh, 1) and (1, kw, 1, ow)."""
    found = []
    for axis, (k, d, s, n) in enumerate(zip(kernel, dilation, stride, out, strict=True)):
        at = np.arange(k)[:, None] * d + np.arange(n) * s
        found.append(Tensor._wrap(at.reshape((k, 1, n, 1) if axis == 0 else (1, k, 1, n))))
    return found


def _windows(shape: Sizes, kernel: Sizes, dilation: Sizes, stride: Sizes, out: Sizes) -> dict[str, Any]:
    """The blocks (N, C, *kernel, *out) of padded images of `shape`, as `as_strided` says it."""
    *ahead, down, across = row_major(shape)
    steps = (*(d * a for d, a in zip(dilation, (down, across), strict=True)),
             *(s * a for s, a in zip(stride, (down, across), strict=True)))  # fmt: skip
    return {"size": (*shape[:2], *kernel, *out), "stride": (*ahead, *steps), "offset": 0, "layout": None}


@whole("Im2ColBackward0")
def unfold(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """The blocks of (N, C, H, W) or (C, H, W) as columns (N, C * kh * kw, blocks). As `torch.nn.functional.unfold`."""
    shape = shape_of(input, "im2col")
    kernel, steps = _pair(kernel_size, "kernel_size", "im2col", 2), _pair(stride, "stride", "im2col", 5)
    gaps, border = _pair(dilation, "dilation", "im2col", 3), _pair(padding, "padding", "im2col", 4)
    _check_windows(kernel, gaps, border, steps)
    for axis in (1, 2):
        axis_of(axis, len(shape))
    if len(shape) not in (3, 4) or 0 in shape[len(shape) - 3 :]:
        raise RuntimeError(
            f"Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for "
            f"input, but got: {list(shape)}"
        )
    x = input if len(shape) == 4 else E.reshape(input, shape=(1, *shape))
    n, c, *size = x._d.shape
    out = _blocks(tuple(size), kernel, gaps, border, steps)
    if min(out) < 1:
        raise RuntimeError(
            f"Given input with spatial size {tuple(size)}, kernel_size={kernel}, dilation={gaps}, padding={border}, "
            f"calculated shape of the array of sliding blocks as {out}, but its components must be at least one."
        )
    _floating(input, "im2col_out_cpu")
    immediate = on_arrays(x)
    if immediate or any(border):  # what is new is no view
        x = E.pad_zeros(x, low=(0, 0, *border), high=(0, 0, *border), interior=(0,) * 4)
    if immediate:
        taken = E.as_strided(x, **_windows(tuple(x._d.shape), kernel, gaps, steps, out))
    else:
        taken = E.index(x, *_places(kernel, gaps, steps, out), spec=(None, None, 0, 1))
    columns = E.reshape(taken, shape=(n, c * math.prod(kernel), math.prod(out)))
    return columns if len(shape) == 4 else E.reshape(columns, shape=tuple(columns._d.shape[1:]))


@whole("Col2ImBackward0")
def fold(
    input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """Columns (N, C * kh * kw, blocks) added up to images (N, C, *output_size). As `torch.nn.functional.fold`."""
    shape = shape_of(input, "col2im")
    size, kernel = _pair(output_size, "output_size", "col2im", 2), _pair(kernel_size, "kernel_size", "col2im", 3)
    gaps, border = _pair(dilation, "dilation", "col2im", 4), _pair(padding, "padding", "col2im", 5)
    steps = _pair(stride, "stride", "col2im", 6)
    _check_windows(kernel, gaps, border, steps)
    if len(shape) not in (2, 3) or 0 in shape[len(shape) - 2 :]:
        raise RuntimeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for "
            f"input, but got: {list(shape)}"
        )
    x = input if len(shape) == 3 else E.reshape(input, shape=(1, *shape))
    n, rows, blocks = x._d.shape
    if rows % math.prod(kernel):
        raise RuntimeError(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got input.size(1)"
            f"={rows} and kernel_size={kernel}."
        )
    out = _blocks(size, kernel, gaps, border, steps)
    if math.prod(out) != blocks:
        raise RuntimeError(
            f"Given output_size={size}, kernel_size={kernel}, dilation={gaps}, padding={border}, stride={steps}, "
            f"expected size of input's dimension 2 to match the calculated number of sliding blocks {out[0]} * "
            f"{out[1]} = {math.prod(out)}, but got input.size(2)={blocks}."
        )
    _floating(input, "col2im_out_cpu")
    c = rows // math.prod(kernel)
    padded = tuple(a + 2 * b for a, b in zip(size, border, strict=True))
    values = E.reshape(x, shape=(n, c, *kernel, *out))
    if on_arrays(x):
        whole = (n, c, *padded)
        result = E.as_strided_add(values, shape=whole, **_windows(whole, kernel, gaps, steps, out))
    else:
        zeros, places = E.full(shape=(n, c, *padded), value=0, dtype=x._dtype()), _places(kernel, gaps, steps, out)
        result = E.index_put(zeros, values, *places, spec=(None, None, 0, 1), accumulate=True)
    if any(border):
        stop = (n, c, *(a + b for a, b in zip(size, border, strict=True)))
        result = E.slice(result, start=(0, 0, *border), stop=stop, step=(1,) * 4)
    return result if len(shape) == 3 else E.reshape(result, shape=tuple(result._d.shape[1:]))
