"""Convolution, its transpose, and the patches it is made of. As in `torch.nn.functional`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from eager.functional.arguments import shape_of
from eager.language import E
from eager.naming import enclosed, named, whole
from eager.state import sequence
from eager.tensor import Tensor
from graphc.ops.dtypes import SHORT_NAMES
from graphc.ops.rules import TORCH_NAMES

Sizes = tuple[int, ...]

__all__ = [
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_tbc",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "fold",
    "unfold",
]  # fmt: skip


def spread(value: Any, rank: int, name: str) -> Sizes:
    """2 -> (2, 2); a sequence of one or `rank` ints as that many. RuntimeError for any other length."""
    if isinstance(value, int):
        return (value,) * rank
    values = tuple(int(v) for v in value)
    if len(values) == 1:
        return values * rank
    if len(values) != rank:
        raise RuntimeError(
            f"expected {name} to be a single integer value or a list of {rank} values to match the convolution "
            f"dimensions, but got {name}={list(values)}"
        )
    return values


def _window(rank: int, **options: Any) -> dict[str, Sizes]:
    found = {name: spread(value, rank, name) for name, value in options.items()}
    for name, values in found.items():
        if "padding" in name:
            if min(values) < 0:
                raise RuntimeError("negative padding is not supported")
        elif min(values) < 1:
            raise RuntimeError(f"non-positive {name} is not supported")
    return found


def _same_dtype(input: Tensor, weight: Tensor) -> None:
    if input._dtype() != weight._dtype():
        names = (f"torch.{TORCH_NAMES[SHORT_NAMES[t._dtype()]]}Tensor" for t in (input, weight))
        raise RuntimeError(
            "Input type ({}) and weight type ({}) should be the same or input should be a MKLDNN tensor and weight is "
            "a dense tensor".format(*names)
        )


def _plus_bias(result: Tensor, bias: Tensor | None, channels: int, weight: Tensor, what: str) -> Tensor:
    if bias is None:
        return result
    if tuple(bias._d.shape) != (channels,):
        raise RuntimeError(
            f"Given {what}weight of size {list(weight._d.shape)}, expected bias to be 1-dimensional with {channels} "
            f"elements, but got bias of size {list(bias._d.shape)} instead"
        )
    return E.add(result, E.reshape(bias, shape=(1, channels, *(1,) * (len(result._d.shape) - 2))))


def _named_padding(input: Tensor, weight: Tensor, padding: str, stride: Sizes, dilation: Sizes) -> tuple[Tensor, Sizes]:
    """`input` padded where the two sides differ, and the padding left to do."""
    none = (0,) * len(stride)
    if padding == "valid":
        return input, none
    if padding != "same":
        raise RuntimeError(f"Invalid padding string: '{padding}'")
    if set(stride) != {1}:
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    total = [d * (k - 1) for d, k in zip(dilation, weight._d.shape[2:], strict=True)]
    if all(n % 2 == 0 for n in total):
        return input, tuple(n // 2 for n in total)
    low, high = (0, 0, *(n // 2 for n in total)), (0, 0, *(n - n // 2 for n in total))
    return E.pad_zeros(input, low=low, high=high, interior=(0,) * len(low)), none


def _unbatched(result: Tensor, batched: bool) -> Tensor:
    return result if batched else named(E.reshape(result, shape=tuple(result._d.shape[1:])), "SqueezeBackward1")


def _convolution(rank: int) -> Any:
    name = f"conv{rank}d"

    def function(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        shape = shape_of(input, name)
        sizes: Any = shape_of(weight, name, "weight", 2)
        if len(shape) not in (rank + 1, rank + 2):
            raise RuntimeError(
                f"Expected {rank + 1}D (unbatched) or {rank + 2}D (batched) input to {name}, but got input of size: "
                f"{list(shape)}"
            )
        _same_dtype(input, weight)
        since = next(sequence)
        x = input if len(shape) == rank + 2 else E.reshape(input, shape=(1, *shape))
        if len(sizes) > 2:
            spread((1,) * rank if isinstance(stride, int) else stride, len(sizes) - 2, "stride")
        if isinstance(padding, str):
            window = _window(rank, stride=stride, dilation=dilation)
            x, border = _named_padding(x, weight, padding, window["stride"], window["dilation"])
            window["padding"] = border
        else:
            window = _window(rank, stride=stride, padding=padding, dilation=dilation)
        result = getattr(E, name)(x, weight, **window, groups=groups)
        result = _plus_bias(result, bias, sizes[0], weight, "")
        return _unbatched(enclosed(result, "ConvolutionBackward0", since), len(shape) == rank + 2)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"Cross-correlation of input (N, C, *) or (C, *), * {rank} sizes, with weight (O, C / groups, *). As "
        f"`torch.nn.functional.{name}`.\n\n"
        '    `padding` is an int, a tuple, "valid" or "same". Raises RuntimeError for sizes or dtypes that do not fit.'
    )
    return function


conv1d, conv2d, conv3d = map(_convolution, (1, 2, 3))


def _transposed(rank: int) -> Any:
    name = f"conv_transpose{rank}d"

    def function(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        dilation: Any = 1,
    ) -> Tensor:
        shape = shape_of(input, name)
        sizes: Any = shape_of(weight, name, "weight", 2)
        if len(shape) not in (rank + 1, rank + 2):
            raise RuntimeError(
                f"Expected {rank + 1}D (unbatched) or {rank + 2}D (batched) input to {name}, but got input of size: "
                f"{list(shape)}"
            )
        _same_dtype(input, weight)
        since = next(sequence)
        window = _window(rank, stride=stride, padding=padding, dilation=dilation)
        extra = spread(output_padding, rank, "output_padding")
        _check_output_padding(extra, window["stride"], window["dilation"])
        x = input if len(shape) == rank + 2 else E.reshape(input, shape=(1, *shape))
        if x._d.shape[1] != sizes[0]:
            raise RuntimeError(
                f"Given transposed=1, weight of size {list(sizes)}, expected input{list(x._d.shape)} to have "
                f"{sizes[0]} channels, but got {x._d.shape[1]} channels instead"
            )
        out = tuple(
            (n - 1) * s - 2 * p + d * (k - 1) + 1 + e
            for n, s, p, d, k, e in zip(
                x._d.shape[2:], window["stride"], window["padding"], window["dilation"], sizes[2:], extra, strict=True
            )
        )
        channels = sizes[1] * groups
        # where it reaches the stride, the padding of the output is more than the convolution's transpose covers
        beyond = tuple(e if e >= s else 0 for e, s in zip(extra, window["stride"], strict=True))
        if any(beyond):
            result = _cropped(name, x, weight, (x._d.shape[0], channels, *out), window, groups)
        else:
            result = getattr(E, f"conv{rank}d_input")(
                x, weight, shape=(x._d.shape[0], channels, *out), **window, groups=groups
            )
        result = _plus_bias(result, bias, channels, weight, "transposed=1, ")
        return _unbatched(enclosed(result, "ConvolutionBackward0", since), len(shape) == rank + 2)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"The transpose of `conv{rank}d` in its input: (N, C, *) or (C, *) with weight (C, O / groups, *). As "
        f"`torch.nn.functional.{name}`. RuntimeError for sizes or dtypes that do not fit."
    )
    return function


def _cropped(name: str, x: Tensor, weight: Tensor, shape: Sizes, window: dict[str, Sizes], groups: int) -> Tensor:
    """The whole transpose, with `padding` cut off below and zeros or values kept above, up to `shape`."""
    rank = len(shape) - 2
    full = tuple(
        (n - 1) * s + d * (k - 1) + 1
        for n, s, d, k in zip(x._d.shape[2:], window["stride"], window["dilation"], weight._d.shape[2:], strict=True)
    )
    unpadded = {**window, "padding": (0,) * rank}
    result = getattr(E, f"conv{rank}d_input")(x, weight, shape=(*shape[:2], *full), **unpadded, groups=groups)
    need = tuple(p + n for p, n in zip(window["padding"], shape[2:], strict=True))
    high = (0, 0, *(max(n - m, 0) for n, m in zip(need, full, strict=True)))
    zeros = (0,) * len(shape)
    result = E.pad_zeros(result, low=zeros, high=high, interior=zeros)
    return E.slice(result, start=(0, 0, *window["padding"]), stop=(*shape[:2], *need), step=(1,) * len(shape))


def _check_output_padding(extra: Sizes, stride: Sizes, dilation: Sizes) -> None:
    if all(e < s or e < d for e, s, d in zip(extra, stride, dilation, strict=True)):
        return
    letters = ("depth", "height", "width")[-len(extra) :] if len(extra) > 1 else ("height", "width")
    sizes = [values if len(values) > 1 else (0 if what == "output_padding" else 1, *values) for what, values in (
        ("output_padding", extra), ("stride", stride), ("dilation", dilation))]  # fmt: skip
    shown = " ".join(
        f"{what}_{letter}: {n}"
        for what, values in zip(("output_padding", "stride", "dilation"), sizes, strict=True)
        for letter, n in zip(letters, values, strict=True)
    )
    raise RuntimeError(f"output padding must be smaller than either stride or dilation, but got {shown}")


conv_transpose1d, conv_transpose2d, conv_transpose3d = map(_transposed, (1, 2, 3))


def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """Convolution of input (time, batch, C) with weight (k, C, O). As `torch.conv_tbc`."""
    result = conv1d(E.permute(input, dims=(1, 2, 0)), E.permute(weight, dims=(2, 1, 0)), bias, padding=pad)
    return E.permute(result, dims=(2, 0, 1))


# --- patches as columns


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


@whole("Im2ColBackward0")
def unfold(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """The blocks of (N, C, H, W) or (C, H, W) as columns (N, C * kh * kw, blocks). As `torch.nn.functional.unfold`."""
    shape = shape_of(input, "im2col")
    if len(shape) not in (3, 4):
        raise RuntimeError(
            f"Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for "
            f"input, but got: {list(shape)}"
        )
    x = input if len(shape) == 4 else E.reshape(input, shape=(1, *shape))
    kernel, steps = spread(kernel_size, 2, "kernel_size"), spread(stride, 2, "stride")
    gaps, border = spread(dilation, 2, "dilation"), spread(padding, 2, "padding")
    n, c, *size = x._d.shape
    out = _blocks(tuple(size), kernel, gaps, border, steps)
    if min(out) < 1:
        raise RuntimeError(
            f"Given input with spatial size {tuple(size)}, kernel_size={kernel}, dilation={gaps}, padding={border}, "
            f"calculated shape of the array of sliding blocks as {out}, but its components must be at least one."
        )
    if any(border):
        x = E.pad_zeros(x, low=(0, 0, *border), high=(0, 0, *border), interior=(0,) * 4)
    taken = E.index(x, *_places(kernel, gaps, steps, out), spec=(None, None, 0, 1))
    columns = E.reshape(taken, shape=(n, c * math.prod(kernel), math.prod(out)))
    return columns if len(shape) == 4 else E.reshape(columns, shape=tuple(columns._d.shape[1:]))


@whole("Col2ImBackward0")
def fold(
    input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """Columns (N, C * kh * kw, blocks) added up to images (N, C, *output_size). As `torch.nn.functional.fold`."""
    shape = shape_of(input, "col2im")
    if len(shape) not in (2, 3):
        raise RuntimeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for "
            f"input, but got: {list(shape)}"
        )
    x = input if len(shape) == 3 else E.reshape(input, shape=(1, *shape))
    size, kernel = spread(output_size, 2, "output_size"), spread(kernel_size, 2, "kernel_size")
    steps, gaps, border = spread(stride, 2, "stride"), spread(dilation, 2, "dilation"), spread(padding, 2, "padding")
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
    c = rows // math.prod(kernel)
    padded = tuple(a + 2 * b for a, b in zip(size, border, strict=True))
    zeros = E.full(shape=(n, c, *padded), value=0, dtype=x._dtype())
    values = E.reshape(x, shape=(n, c, *kernel, *out))
    result = E.index_put(zeros, values, *_places(kernel, gaps, steps, out), spec=(None, None, 0, 1), accumulate=True)
    if any(border):
        stop = (n, c, *(a + b for a, b in zip(size, border, strict=True)))
        result = E.slice(result, start=(0, 0, *border), stop=stop, step=(1,) * 4)
    return result if len(shape) == 3 else E.reshape(result, shape=tuple(result._d.shape[1:]))
