"""Convolution and its transpose. As in `torch.nn.functional`."""

from __future__ import annotations

import math
from typing import Any

from eager.core import operands
from eager.core.state import sequence
from eager.core.tensor import Tensor
from eager.engine.conversion import converted
from eager.engine.inplace import check_castable
from eager.engine.language import E
from eager.engine.node_names import enclosed, named, whole
from eager.functional.arguments import shape_of
from eager.functional.naming import called
from eager.functional.precision import rounds_once
from graphc.ops.dtypes import BOOL, FLOAT32, is_inexact, promote_types
from graphc.ops.nn import check_groups
from graphc.ops.rules import c_name, torch_name

Sizes = tuple[int, ...]

__all__ = ["conv1d", "conv2d", "conv3d", "conv_tbc", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"]


def spread(value: Any, rank: int, name: str, function: str = "") -> Sizes:
    """2 -> (2, 2); a sequence of one or `rank` ints as that many. RuntimeError for any other length."""
    if isinstance(value, int):
        return (value,) * rank
    if isinstance(value, (str, float)) or value is None:
        where = f"{function}(): argument" if function else "argument"
        raise TypeError(f"{where} '{name}' must be tuple of ints, not {type(value).__name__}")
    values = tuple(int(v) for v in value)
    if len(values) == 1:
        return values * rank
    if len(values) != rank:
        raise RuntimeError(
            f"expected {name} to be a single integer value or a list of {rank} values to match the convolution "
            f"dimensions, but got {name}={list(values)}"
        )
    return values


def _window(function: str, rank: int, **options: Any) -> dict[str, Sizes]:
    found = {name: spread(value, rank, name, function) for name, value in options.items()}
    for name, values in found.items():
        if "padding" in name and min(values) < 0:
            raise RuntimeError(f"negative {name} is not supported")
    if min(found["stride"]) < 1:
        raise RuntimeError("non-positive stride is not supported")
    if min(found["dilation"]) < 0:
        raise RuntimeError("dilation should be greater than zero")
    return found


def _check_operands(name: str, rank: int, input: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    """Raise PyTorch's errors for operands whose numbers of dims or dtypes do not go together."""
    shape, sizes = shape_of(input, name), shape_of(weight, name, "weight", 2)
    if len(shape) not in (rank + 1, rank + 2):
        raise RuntimeError(
            f"Expected {rank + 1}D (unbatched) or {rank + 2}D (batched) input to {name}, but got input of size: "
            f"{list(shape)}"
        )
    if bias is not None and operands.kind_of(bias) != input._dtype() and "transpose" not in name:
        kinds = c_name(input._dtype()), c_name(bias._dtype())
        raise RuntimeError("Input type ({}) and bias type ({}) should be the same".format(*kinds))
    if len(sizes) < 3:
        raise RuntimeError("weight should have at least three dimensions")


def _check_dtypes(x: Tensor, weight: Tensor, bias: Tensor | None, groups: int) -> None:
    """Raise PyTorch's errors for operands of other dtypes than `x`, whose wording depends on who computes.

    A bias of another dtype is added to a transpose of one or two dims, if the sum can be cast to the dtype of `x`.
    """
    dtype, shape, kernel = x._dtype(), x._d.shape, weight._d.shape[2:]
    vectorized = dtype == FLOAT32 and (
        groups > 1 or shape[0] > 1 or math.prod(shape) > 20480 or (len(kernel) > 1 and min(kernel[-2:]) > 3)
    )
    for what, t in (("weight", weight), ("bias", bias)):
        if t is None or t._dtype() == dtype:
            continue
        if vectorized or dtype.kind == "c":
            kinds = f"Input type ({_legacy_name(dtype)}) and {what} type ({_legacy_name(t._dtype())})"
            dense = f" or input should be a MKLDNN tensor and {what} is a dense tensor" if vectorized else ""
            raise RuntimeError(f"{kinds} should be the same{dense}")
        if what == "weight" or len(kernel) == 3:
            raise RuntimeError(f"expected scalar type {torch_name(dtype)} but found {torch_name(t._dtype())}")
        check_castable(promote_types(dtype, t._dtype()), dtype)


def _legacy_name(dtype: Any) -> str:
    name = torch_name(dtype)
    return f"CPU{name}Type" if dtype.kind == "c" or name == "BFloat16" else f"torch.{name}Tensor"


def _check_bias(bias: Tensor | None, channels: int, sizes: Sizes, what: str) -> None:
    if bias is not None and tuple(bias._d.shape) != (channels,):
        raise RuntimeError(
            f"Given {what}weight of size {list(sizes)}, expected bias to be 1-dimensional with {channels} elements, "
            f"but got bias of size {list(bias._d.shape)} instead"
        )


def _by_side(name: str, sizes: Sizes, comma: str = "") -> str:
    """Sizes as PyTorch's kernels show them: of one dim as of an image with one row."""
    sides = (1, *sizes) if len(sizes) == 1 else sizes
    words = ("depth", "height", "width")[-len(sides) :]
    return f"{comma} ".join(f"{name}_{word}: {n}" for word, n in zip(words, sides, strict=True))


def _check_kernel(kernel: Sizes) -> None:
    if 0 in kernel:
        shown = f" {_by_side('kernel', kernel)}"
        if len(kernel) == 3:
            shown = f": {' x '.join(map(str, kernel))} (TxHxW)"
        raise RuntimeError(f"kernel size should be greater than zero, but got{shown}")


def _named_padding(input: Tensor, weight: Tensor, padding: str, stride: Sizes, dilation: Sizes) -> tuple[Tensor, Sizes]:
    """`input` padded where the two sides differ, and the padding left to do."""
    none = (0,) * len(stride)
    if padding == "valid":
        return input, none
    total = [d * (k - 1) for d, k in zip(dilation, weight._d.shape[2:], strict=True)]
    if all(n % 2 == 0 for n in total):
        return input, tuple(n // 2 for n in total)
    low, high = (0, 0, *(n // 2 for n in total)), (0, 0, *(n - n // 2 for n in total))
    return E.pad_zeros(input, low=low, high=high, interior=(0,) * len(low)), none


def _unbatched(result: Tensor, batched: bool) -> Tensor:
    return result if batched else named(E.reshape(result, shape=tuple(result._d.shape[1:])), "SqueezeBackward1")


def _plus(result: Tensor, bias: Tensor | None) -> Tensor:
    """`result` plus a number for each channel."""
    if bias is None:
        return result
    return E.add(result, E.reshape(bias, shape=(1, bias._d.shape[0], *(1,) * (len(result._d.shape) - 2))))


@rounds_once
def _convolved(x: Tensor, weight: Tensor, bias: Tensor | None, name: str, window: dict[str, Sizes], groups: int) -> Any:
    return _plus(getattr(E, name)(x, weight, **window, groups=groups), bias)


def _convolution(rank: int) -> Any:
    name = f"conv{rank}d"

    @called(
        name,
        f"Cross-correlation of input (N, C, *) or (C, *), * {rank} sizes, with weight (O, C / groups, *); `padding` is "
        'an int, a tuple, "valid" or "same". Raises RuntimeError for sizes or dtypes that do not fit.',
    )
    def function(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
                 dilation: Any = 1, groups: int = 1) -> Tensor:  # fmt: skip
        _check_operands(name, rank, input, weight, bias)
        shape, sizes = input._d.shape, weight._d.shape
        since = next(sequence)
        x = input if len(shape) == rank + 2 else E.reshape(input, shape=(1, *shape))
        if isinstance(padding, str):
            if padding not in ("valid", "same"):
                raise RuntimeError(f"Invalid padding string: '{padding}'")
            if padding == "same" and set(spread(stride, rank, "stride", name)) != {1}:
                raise RuntimeError("padding='same' is not supported for strided convolutions")
            window = _window(name, rank, stride=stride, dilation=dilation)
            if len(sizes) == rank + 2:
                x, border = _named_padding(x, weight, padding, window["stride"], window["dilation"])
                window["padding"] = border
        else:
            spread((1,) * rank if isinstance(stride, int) else stride, len(sizes) - 2, "stride", name)
            window = _window(name, rank, stride=stride, padding=padding, dilation=dilation)
        check_groups(groups, sizes)
        _check_bias(bias, sizes[0], sizes, "")
        if 0 in window["dilation"]:
            gaps = window["dilation"] if rank > 1 else (1, 0)
            raise RuntimeError(f"dilation should be greater than zero, but got {list(gaps)}")
        _check_kernel(sizes[2:])
        if input._dtype() == BOOL:
            kernel = "compute_columns3d" if rank == 3 else "slow_conv2d_cpu"
            raise NotImplementedError(f"\"{kernel}\" not implemented for 'Bool'")
        if x._d.shape[1] == sizes[1] * groups:
            _check_dtypes(x, weight, bias, groups)
        result = _convolved(x, weight, bias, name, window, groups)
        return _unbatched(enclosed(result, "ConvolutionBackward0", since), len(shape) == rank + 2)

    return function


conv1d, conv2d, conv3d = map(_convolution, (1, 2, 3))


def _transposed(rank: int) -> Any:
    name = f"conv_transpose{rank}d"

    @called(name, f"The transpose of `conv{rank}d` in its input (N, C, *) or (C, *), with weight (C, O / groups, *).")
    def function(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
                 output_padding: Any = 0, groups: int = 1, dilation: Any = 1) -> Tensor:  # fmt: skip
        _check_operands(name, rank, input, weight, bias)
        shape, sizes = input._d.shape, weight._d.shape
        since = next(sequence)
        spread((1,) * rank if isinstance(stride, int) else stride, len(sizes) - 2, "stride", name)
        window = _window(name, rank, stride=stride, padding=padding, dilation=dilation, output_padding=output_padding)
        extra = window.pop("output_padding")
        x = input if len(shape) == rank + 2 else E.reshape(input, shape=(1, *shape))
        if len(sizes) != rank + 2:
            raise RuntimeError(
                f"Expected {len(sizes)}-dimensional input for {len(sizes)}-dimensional weight {list(sizes)}, but got "
                f"{rank + 2}-dimensional input of size {list(x._d.shape)} instead"
            )
        check_groups(groups, sizes)
        if x._d.shape[1] != sizes[0]:
            raise RuntimeError(
                f"Given transposed=1, weight of size {list(sizes)}, expected input{list(x._d.shape)} to have "
                f"{sizes[0]} channels, but got {x._d.shape[1]} channels instead"
            )
        channels = sizes[1] * groups
        _check_bias(bias, channels, sizes, "transposed=1, ")
        _check_output_padding(extra, window["stride"], window["dilation"])
        if 0 in window["dilation"]:
            shown = _by_side("dilation", window["dilation"], ",")
            raise RuntimeError(f"dilation should be greater than zero, but got {shown}")
        _check_kernel(sizes[2:])
        _check_transposed_dtype(input, rank)
        _check_dtypes(x, weight, bias, groups)
        out = tuple(
            (n - 1) * s - 2 * p + d * (k - 1) + 1 + e
            for n, s, p, d, k, e in zip(
                x._d.shape[2:], window["stride"], window["padding"], window["dilation"], sizes[2:], extra, strict=True
            )
        )
        if min(out) < 1:
            before, after = (" x ".join(map(str, (1, *n) if rank == 1 else n)) for n in (x._d.shape[2:], out))
            raise RuntimeError(
                f"Given input size per channel: ({before}). Calculated output size per channel: ({after}). Output size "
                "is too small"
            )
        result = _transpose(x, weight, bias, name.replace("_transpose", ""), (x._d.shape[0], channels, *out), extra,
                            window, groups)  # fmt: skip
        return _unbatched(enclosed(result, "ConvolutionBackward0", since), len(shape) == rank + 2)

    return function


def _check_transposed_dtype(input: Tensor, rank: int) -> None:
    dtype = input._dtype()
    if not is_inexact(dtype) and torch_name(dtype) != "Long":
        kernel = f"slow_conv_transpose{max(rank, 2)}d_out_cpu"
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{torch_name(dtype)}'")


@rounds_once
def _transpose(x: Tensor, weight: Tensor, bias: Tensor | None, conv: str, shape: Sizes, extra: Sizes,
               window: dict[str, Sizes], groups: int) -> Tensor:  # fmt: skip
    # where it reaches the stride, the padding of the output is more than the convolution's transpose covers
    if any(e >= s for e, s in zip(extra, window["stride"], strict=True) if e):
        result = _cropped(conv, x, weight, shape, window, groups)
    else:
        result = getattr(E, f"{conv}_input")(x, weight, shape=shape, **window, groups=groups)
    return converted(_plus(result, bias), x._dtype())


def _cropped(conv: str, x: Tensor, weight: Tensor, shape: Sizes, window: dict[str, Sizes], groups: int) -> Tensor:
    """The whole transpose, with `padding` cut off below and zeros or values kept above, up to `shape`."""
    rank = len(shape) - 2
    full = tuple(
        (n - 1) * s + d * (k - 1) + 1
        for n, s, d, k in zip(x._d.shape[2:], window["stride"], window["dilation"], weight._d.shape[2:], strict=True)
    )
    unpadded = {**window, "padding": (0,) * rank}
    result = getattr(E, f"{conv}_input")(x, weight, shape=(*shape[:2], *full), **unpadded, groups=groups)
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


@whole("ConvTbcBackward0")
def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """Convolution of input (time, batch, C) with weight (k, C, O). As `torch.conv_tbc`."""
    shape, sizes = shape_of(input, "conv_tbc"), shape_of(weight, "conv_tbc", "weight", 2)
    channels = shape_of(bias, "conv_tbc", "bias", 3)
    if len(shape) != 3:
        raise RuntimeError("Input must have 3 dims: time, batch, in_channel")
    if len(sizes) != 3:
        raise RuntimeError("Weight tensor must have 3 dims: kernel_width, in_channels, out_channels.")
    if len(channels) != 1:
        raise RuntimeError("Bias must be 1-D")
    if shape[2] != sizes[1]:
        raise RuntimeError("Input dim 2 (input channels) is not == dim 1 in the weight tensor")
    if channels[0] != sizes[2]:
        raise RuntimeError("Bias size must equal dim 2 in the weight tensor (output channels).")
    result = conv1d(E.permute(input, dims=(1, 2, 0)), E.permute(weight, dims=(2, 1, 0)), bias, padding=pad)
    return E.permute(result, dims=(2, 0, 1))
