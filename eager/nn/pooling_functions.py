"""Functions of images and signals: convolution, pooling, padding."""

from __future__ import annotations

from typing import Any

import numpy as np

from eager.functional.arguments import shape_of
from eager.language import E
from eager.tensor import Tensor
from graphc.ops.dtypes import BOOL

Pair = tuple[int, int]


def pair(x: Any, name: str = "") -> Pair:
    """2 -> (2, 2); a sequence of one or two ints as a pair. Raises RuntimeError for any other length."""
    if isinstance(x, int):
        return x, x
    values = tuple(int(v) for v in x)
    if len(values) == 1:
        return values[0], values[0]
    if len(values) != 2:
        raise RuntimeError(f"{name}: expected an int or a tuple of two ints, but got {values}")
    return values  # type: ignore[return-value]


def conv2d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
           dilation: Any = 1, groups: int = 1) -> Tensor:  # fmt: skip
    """Cross-correlation of input (N, C, H, W) or (C, H, W) with weight (O, C / groups, kh, kw). As in PyTorch.

    `padding` is an int, a pair, "valid" or "same". Raises RuntimeError for sizes or dtypes that do not fit.
    """
    shape = shape_of(input, "conv2d")
    if len(shape) == 3:
        batch = E.reshape(input, shape=(1, *shape))
        result = conv2d(batch, weight, bias, stride, padding, dilation, groups)
        return E.reshape(result, shape=result._d.shape[1:])
    steps, spread = pair(stride, "stride"), pair(dilation, "dilation")
    if isinstance(padding, str):
        input, border = _named_padding(input, weight, padding, steps, spread)
    else:
        border = pair(padding, "padding")
    result = E.conv2d(input, weight, stride=steps, padding=border, dilation=spread, groups=groups)
    if bias is None:
        return result
    if bias._d.shape != weight._d.shape[:1]:
        raise RuntimeError(
            f"Given weight of size {list(weight._d.shape)}, expected bias to be 1-dimensional with "
            f"{weight._d.shape[0]} elements, but got bias of size {list(bias._d.shape)} instead"
        )
    return E.add(result, E.reshape(bias, shape=(1, bias._d.shape[0], 1, 1)))


def _named_padding(input: Tensor, weight: Tensor, padding: str, stride: Pair, dilation: Pair) -> tuple[Tensor, Pair]:
    if padding == "valid":
        return input, (0, 0)
    if padding != "same":
        raise RuntimeError(f"Invalid padding string: '{padding}'")
    if stride != (1, 1):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    total = [d * (k - 1) for d, k in zip(dilation, weight._d.shape[2:], strict=True)]
    if all(n % 2 == 0 for n in total):
        return input, (total[0] // 2, total[1] // 2)
    low, high = (0, 0, *(n // 2 for n in total)), (0, 0, *(n - n // 2 for n in total))
    return E.pad_zeros(input, low=low, high=high, interior=(0, 0, 0, 0)), (0, 0)


def _one(x: Any) -> int:
    return x if isinstance(x, int) else int(x[0])


def conv1d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
           dilation: Any = 1, groups: int = 1) -> Tensor:  # fmt: skip
    """Cross-correlation of input (N, C, L) or (C, L) with weight (O, C / groups, k). As in PyTorch."""
    flat = E.reshape(weight, shape=(*weight._d.shape[:2], 1, *weight._d.shape[2:]))
    border = padding if isinstance(padding, str) else (0, _one(padding))
    steps, spread = (1, _one(stride)), (1, _one(dilation))
    return _as_rows(input, lambda x: conv2d(x, flat, bias, steps, border, spread, groups))


def _as_rows(input: Tensor, function: Any) -> Tensor:
    """A function of images applied to signals (*, L), as images of one row."""
    shape = input._d.shape
    result = function(E.reshape(input, shape=(*shape[:-1], 1, shape[-1])))
    return E.reshape(result, shape=(*result._d.shape[:-2], result._d.shape[-1]))


# --- pooling


def _pool(op: Any, input: Tensor, kernel_size: Any, stride: Any, padding: Any) -> Tensor:
    shape = input._d.shape
    kernel = pair(kernel_size, "kernel_size")
    steps = kernel if stride is None or stride == [] else pair(stride, "stride")
    if len(shape) == 3:
        result = op(E.reshape(input, shape=(1, *shape)), kernel=kernel, stride=steps, padding=pair(padding))
        return E.reshape(result, shape=result._d.shape[1:])
    return op(input, kernel=kernel, stride=steps, padding=pair(padding))


def _supported(name: str, **unsupported: bool) -> None:
    for option, used in unsupported.items():
        if used:
            raise NotImplementedError(f"{name}(): {option} is not supported")


def max_pool2d(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
               ceil_mode: bool = False, return_indices: bool = False) -> Tensor:  # fmt: skip
    """The largest element of each window of (N, C, H, W) or (C, H, W). As in PyTorch.

    NotImplementedError for `dilation`, `ceil_mode` and `return_indices`.
    """
    shape_of(input, "max_pool2d")
    _supported("max_pool2d", dilation=pair(dilation) != (1, 1), ceil_mode=ceil_mode, return_indices=return_indices)
    return _pool(E.max_pool2d, input, kernel_size, stride, padding)


def avg_pool2d(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
               count_include_pad: bool = True, divisor_override: int | None = None) -> Tensor:  # fmt: skip
    """The mean of each window of (N, C, H, W) or (C, H, W); padding counts as zeros. As in PyTorch."""
    shape_of(input, "avg_pool2d")
    border = pair(padding)
    _supported("avg_pool2d", ceil_mode=ceil_mode)
    result = _pool(E.avg_pool2d, input, kernel_size, stride, border)
    size = pair(kernel_size)[0] * pair(kernel_size)[1]
    if divisor_override is not None:
        return E.mul(result, size / divisor_override)
    if count_include_pad or border == (0, 0):
        return result
    covered = Tensor._wrap(np.ones((1, 1, *input._d.shape[-2:]), input._dtype()))
    share = _pool(E.avg_pool2d, covered, kernel_size, stride, border)
    return E.div(result, E.reshape(share, shape=share._d.shape[-2:]))


def max_pool1d(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
               ceil_mode: bool = False, return_indices: bool = False) -> Tensor:  # fmt: skip
    """The largest element of each window of (N, C, L) or (C, L). As in PyTorch."""
    kernel, border, spread = (1, _one(kernel_size)), (0, _one(padding)), (1, _one(dilation))
    steps = kernel if stride is None else (1, _one(stride))
    return _as_rows(input, lambda x: max_pool2d(x, kernel, steps, border, spread, ceil_mode, return_indices))


def avg_pool1d(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
               count_include_pad: bool = True) -> Tensor:  # fmt: skip
    """The mean of each window of (N, C, L) or (C, L). As in PyTorch."""
    kernel, border = (1, _one(kernel_size)), (0, _one(padding))
    steps = kernel if stride is None else (1, _one(stride))
    return _as_rows(input, lambda x: avg_pool2d(x, kernel, steps, border, ceil_mode, count_include_pad))


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """The means of windows that tile (*, H, W) to `output_size`. As in PyTorch; all windows must be equal."""
    h, w = shape_of(input, "adaptive_avg_pool2d")[-2:]
    sizes = (output_size, output_size) if isinstance(output_size, int) or output_size is None else output_size
    rows, columns = (n if size is None else size for n, size in zip((h, w), sizes, strict=True))
    if h % rows or w % columns:
        raise NotImplementedError(
            f"adaptive_avg_pool2d(): output size ({rows}, {columns}) does not divide the input's ({h}, {w})"
        )
    return avg_pool2d(input, (h // rows, w // columns))


# --- padding


def pad(input: Tensor, pad: Any, mode: str = "constant", value: float | None = None) -> Tensor:
    """`input` with borders: `pad` is (low, high) of the last dim, then of the one before, ... As in PyTorch.

    Negative sizes crop. `mode` is "constant", "reflect", "replicate" or "circular".
    """
    shape = shape_of(input, "pad")
    ends = tuple(int(n) for n in pad)
    if len(ends) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(ends) > 2 * len(shape):
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got padding length "
            f"{len(ends)} and input of dimension {len(shape)}"
        )
    keep = len(shape) - len(ends) // 2
    low, high = (0,) * keep + ends[-2::-2], (0,) * keep + ends[::-2]
    if mode != "constant":
        return _pad_by_index(input, low, high, mode)
    if min(ends, default=0) < 0:
        start = tuple(max(-a, 0) for a in low)
        stop = tuple(max(n - max(-b, 0), a) for n, b, a in zip(shape, high, start, strict=True))
        input = E.slice(input, start=start, stop=stop, step=(1,) * len(shape))
        low, high = tuple(max(a, 0) for a in low), tuple(max(b, 0) for b in high)
    interior = (0,) * len(shape)
    padded = E.pad_zeros(input, low=low, high=high, interior=interior)
    if not value:
        return padded
    inside = E.full(shape=tuple(input._d.shape), value=True, dtype=BOOL)
    return E.where(E.pad_zeros(inside, low=low, high=high, interior=interior), padded, value)


def _pad_by_index(input: Tensor, low: tuple[int, ...], high: tuple[int, ...], mode: str) -> Tensor:
    names = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    if mode not in names:
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    result = input
    for axis, (a, b) in enumerate(zip(low, high, strict=True)):
        if a or b:
            n = result._d.shape[axis]
            limit = {"reflect": n - 1, "replicate": None, "circular": n}[mode]
            if limit is not None and max(a, b) > limit:
                raise RuntimeError(
                    "Argument #4: Padding size should be less than the corresponding input dimension, but got: "
                    f"padding ({a}, {b}) at dimension {axis} of input {list(input._d.shape)}"
                )
            where = Tensor._wrap(np.pad(np.arange(n), (a, b), mode=names[mode]))  # type: ignore[call-overload]
            result = E.index(result, where, spec=(None,) * axis + (0,))
    return result
