"""The windows of pools: their sizes as tuples, and PyTorch's errors for those that do not fit an image."""

from __future__ import annotations

from typing import Any, NamedTuple

from eager.functional.arguments import axis_of

Sizes = tuple[int, ...]

NUMBER_WORDS = {1: "one int", 2: "two ints", 3: "three ints"}
POSITIONS = {"kernel_size": 2, "stride": 3, "padding": 4, "dilation": 5}
# what PyTorch says before "a single int, or a tuple of two ints"
MUST = {"kernel_size": "must either be", "stride": "must either be omitted,", "padding": "must either be",
        "dilation": "must be either"}  # fmt: skip
# and `max_pool1d` before "of size 1"
LISTS = {"kernel_size": "an int, list of ints or", "stride": "None, an int, list of ints, or",
         "padding": "an int, list of ints, or", "dilation": "an int, list of ints or"}  # fmt: skip


class Windows(NamedTuple):
    """A window of each size in `kernel` at every `stride` of an image with `padding` on both sides."""

    kernel: Sizes
    stride: Sizes
    padding: Sizes
    dilation: Sizes


def window_tuple(value: Any, rank: int, name: str, what: str, plain: bool = False) -> Sizes:
    """2 -> (2, 2); a sequence of one or `rank` ints as that many. RuntimeError for any other length.

    plain: of `max_pool1d` without indices, which words its errors in its own way.
    """
    if isinstance(value, int):
        return (value,) * rank
    if not hasattr(value, "__iter__") or isinstance(value, str):
        kind = type(value).__name__
        raise TypeError(f"{name}(): argument '{what}' (position {POSITIONS[what]}) must be tuple of ints, not {kind}")
    values = tuple(int(v) for v in value)
    if len(values) == 1:
        return values * rank
    if len(values) == rank:
        return values
    if plain:
        raise RuntimeError(f"{name}() {what} must be {LISTS[what]} tuple of ints of size 1 but got size {len(values)}")
    if rank == 1:
        raise RuntimeError(f"{name}() argument '{what}' should contain one int (got {len(values)})")
    must = MUST[what].replace("either ", "") if name == "avg_pool3d" else MUST[what]
    raise RuntimeError(f"{name}: {what} {must} a single int, or a tuple of {NUMBER_WORDS[rank]}")


def given_windows(name: str, rank: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any = 1,
                  plain: bool = False) -> Windows:  # fmt: skip
    """The arguments of a pool as tuples; without a stride, windows lie side by side."""
    kernel = window_tuple(kernel_size, rank, name, "kernel_size", plain)
    beside = stride is None or (not isinstance(stride, int) and hasattr(stride, "__len__") and not len(stride))
    steps = kernel if beside else window_tuple(stride, rank, name, "stride", plain)
    return Windows(
        kernel,
        steps,
        window_tuple(padding, rank, name, "padding", plain),
        window_tuple(dilation, rank, name, "dilation", plain),
    )


def check_ndim(shape: Sizes, rank: int, name: str) -> None:
    """Raise PyTorch's error unless `shape` is (C, *) or (N, C, *), * for `rank` sizes."""
    if len(shape) in (rank + 1, rank + 2):
        return
    if rank == 1:
        raise RuntimeError(
            f"Expected 2 to 3 dimensions, but got {len(shape)}-dimensional tensor for argument #1 'self' (while "
            f"checking arguments for {name})"
        )
    if name == "avg_pool2d":
        axis_of(-3, len(shape))
        raise RuntimeError(_batch_mode(rank, shape))
    raise RuntimeError(f"non-empty {rank + 1}D or {rank + 2}D (batch mode) tensor expected for input")


def _batch_mode(rank: int, shape: Sizes) -> str:
    return (
        f"Expected {rank + 1}D or {rank + 2}D (batch mode) tensor with optional 0 dim batch size for input, but got:"
        f"{list(shape)}"
    )


def _shown(sizes: Sizes, name: str, letters: str) -> str:
    """As PyTorch's kernels show sizes: those of one dim as of an image with one row."""
    sides = ({"k": 1, "d": 1, "dilation": 1}.get(name, 0), *sizes) if len(sizes) == 1 else sizes
    return " ".join(f"{name}{letter}: {n}" for letter, n in zip(letters[-len(sides) :], sides, strict=True))


def check_plain(name: str, shape: Sizes, windows: Windows) -> None:
    """The checks of `max_pool1d` without indices."""
    if len(shape) not in (2, 3) or 0 in shape[-2:]:
        raise RuntimeError(f"{name}: {_batch_mode(1, shape)}")
    (kernel,), (stride,), (padding,), (dilation,) = windows
    for what, n in (("kernel_size", kernel), ("stride", stride)):
        if n <= 0:
            raise RuntimeError(f"{name}() {what} must be greater than zero, but got {n}")
    if padding < 0:
        raise RuntimeError(f"{name}() padding must be non-negative, but got {padding}")
    if padding > kernel // 2:
        raise RuntimeError(
            f"{name}() padding should be at most half of kernel size, but got padding={padding} and "
            f"kernel_size={kernel}"
        )
    if dilation <= 0:
        raise RuntimeError(f"{name}() dilation must be greater than zero, but got {dilation}")
    size = (shape[-1] + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
    if size <= 0:
        raise RuntimeError(f"{name}() Invalid computed output size: {size}")


def check_windows(name: str, shape: Sizes, windows: Windows, ceil: bool) -> None:
    """Raise PyTorch's errors for windows that no image, or not one of `shape`, can have."""
    kernel, stride, padding, dilation = windows
    rank = len(kernel)
    letters = "THW" if rank == 3 else "HW"
    if 0 in stride:
        raise RuntimeError("stride should not be zero")
    for k, p, d in zip(kernel, padding, dilation, strict=True):
        if p < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {p}")
        if k > 0 and 2 * p > d * (k - 1) + 1:
            raise RuntimeError(
                f"pad should be at most half of effective kernel size, but got pad={p}, kernel_size={k} and "
                f"dilation={d}"
            )
    for what, letter, sizes in (
        ("kernel size", "k", kernel),
        ("stride", "d", stride),
        ("dilation", "dilation", dilation),
    ):
        if min(sizes) <= 0:
            raise RuntimeError(f"{what} should be greater than zero, but got {_shown(sizes, letter, letters)}")
    image = shape if rank > 1 else (*shape[:-1], 1, shape[-1])  # a signal is an image with one row
    if 0 in image[-rank - 1 if rank > 1 else -3 :]:
        if rank < 3:
            raise RuntimeError(_batch_mode(2, image))
        where = f"{name}()" if name == "avg_pool3d" else "max_pool3d_with_indices_out_cpu_template()"
        raise RuntimeError(
            f"{where}: Expected input's non-batch dimensions to have positive length, but input has a shape of "
            f"{list(shape)} and non-batch dimension 0 has length zero!"
        )
    spatial = shape[-rank:]
    if name == "avg_pool3d" and any(n < k for n, k in zip(spatial, kernel, strict=True)):
        has, needs = (
            " ".join(f"{what}{letter}: {n}" for letter, n in zip(letters, sizes, strict=True))
            for what, sizes in (("", spatial), ("k", kernel))
        )
        raise RuntimeError(f"input image ({has}) smaller than kernel size ({needs})")
    if any(p > k // 2 for p, k in zip(padding, kernel, strict=True)):
        shown = ", ".join(
            f"{what}{letter} = {n}"
            for what, sizes in (("pad", padding), ("k", kernel))
            for letter, n in zip(
                reversed(letters), (*reversed(sizes), *(() if rank > 1 else (int(what == "k"),))), strict=True
            )
        )
        raise RuntimeError(f"pad should be smaller than or equal to half of kernel size, but got {shown}")
    out = [n for n, _ in output_sizes(spatial, windows, ceil)]
    if min(out) < 1:
        planes = image[-max(rank, 2) - 1]
        before = "x".join(map(str, (planes, *image[-max(rank, 2) :])))
        after = "x".join(map(str, (planes, *((1,) if rank == 1 else ()), *out)))
        raise RuntimeError(f"Given input size: ({before}). Calculated output size: ({after}). Output size is too small")


def output_sizes(size: Sizes, windows: Windows, ceil: bool) -> list[tuple[int, int]]:
    """(how many windows, how far the last reaches past the padded end) of each dim.

    With `ceil`, the last window, begun inside, may reach past the end.
    """
    found = []
    for n, k, s, p, d in zip(size, *windows, strict=True):
        reach = d * (k - 1) + 1
        count = (n + 2 * p - reach) // s + 1
        if ceil:
            count = -(-(n + 2 * p - reach) // s) + 1
            if (count - 1) * s >= n + p:
                count -= 1
        found.append((count, max((count - 1) * s + reach - (n + 2 * p), 0) if ceil else 0))
    return found


def borders(size: Sizes, windows: Windows, ceil: bool) -> tuple[tuple[int, int], ...]:
    """(before, after) of each dim."""
    past = output_sizes(size, windows, ceil)
    return tuple((p, p + more) for p, (_, more) in zip(windows.padding, past, strict=True))
