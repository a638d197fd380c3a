"""`torch.nn.functional.pad`."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from eager.core.state import sequence
from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.engine.node_names import enclosed
from eager.functional.arguments import shape_of
from graphc.ops.dtypes import BOOL

__all__ = ["pad"]

COMBINATIONS = (
    "Padding size {size} is not supported for {ndim}D input tensor.\n"
    "Supported combinations for non-constant padding:\n"
    "  - 2D or 3D input: padding size = 2 (pads last dimension)\n"
    "  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)\n"
    "  - 4D or 5D input: padding size = 6 (pads last 3 dimensions)"
)
LONG = 2**12  # elements, from which it is not kept which of them stand where
INDEXED = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}  # mode -> NumPy's name
NODES = {
    "reflect": "ReflectionPad{}DBackward0",
    "replicate": "ReplicationPad{}DBackward0",
    "circular": "torch::autograd::CopySlices",
}


def pad(input: Tensor, pad: Any, mode: str = "constant", value: float | None = None) -> Tensor:
    """`input` with borders: `pad` is (low, high) of the last dim, then of the one before, ... As in PyTorch.

    Negative sizes crop. `mode` is "constant", "reflect", "replicate" or "circular".
    """
    shape = shape_of(input, "pad")
    if isinstance(pad, str) or not hasattr(pad, "__iter__"):
        raise TypeError(f"pad(): argument 'pad' (position 2) must be tuple of ints, not {type(pad).__name__}")
    for at, n in enumerate(pad):
        if not hasattr(n, "__index__"):
            kind = type(n).__name__
            raise TypeError(
                "pad(): argument 'pad' (position 2) must be tuple of ints, but found element of type "
                f"{kind} at pos {at}"
            )
    ends = tuple(int(n) for n in pad)
    if isinstance(value, complex):
        raise TypeError("pad(): argument 'value' (position 4) must be float, not complex")
    if mode != "constant" and mode not in INDEXED:
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    if len(ends) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(ends) > 2 * len(shape):
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got padding length "
            f"{len(ends)} and input of dimension {len(shape)}"
        )
    keep = len(shape) - len(ends) // 2
    low, high = (0,) * keep + ends[-2::-2], (0,) * keep + ends[::-2]
    since = next(sequence)
    if mode == "constant":
        return enclosed(_constant(input, low, high, 0 if value is None else value), "ConstantPadNdBackward0", since)
    if value:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    spatial = len(ends) // 2
    if len(ends) not in (2, 4, 6) or len(shape) not in (spatial + 1, spatial + 2):
        raise NotImplementedError(COMBINATIONS.format(size=len(ends), ndim=len(shape)))
    return enclosed(_by_index(input, low, high, mode), NODES[mode].format(spatial), since)


def _constant(input: Tensor, low: tuple[int, ...], high: tuple[int, ...], value: float) -> Tensor:
    shape = input._d.shape
    if min((*low, *high), default=0) < 0:
        if any(n + a + b < 0 for n, a, b in zip(shape, low, high, strict=True)):
            raise RuntimeError("narrow(): length must be non-negative.")
        input = _cropped(input, low, high)
        low, high = tuple(max(a, 0) for a in low), tuple(max(b, 0) for b in high)
    interior = (0,) * len(shape)
    padded = E.pad_zeros(input, low=low, high=high, interior=interior)
    if not value:
        return padded
    inside = E.full(shape=tuple(input._d.shape), value=True, dtype=BOOL)
    mask = E.pad_zeros(inside, low=low, high=high, interior=interior)
    return E.where(mask, padded, Tensor._wrap(np.array(value, input._dtype())))


def _cropped(input: Tensor, low: tuple[int, ...], high: tuple[int, ...]) -> Tensor:
    start = tuple(max(-a, 0) for a in low)
    stop = tuple(max(n - max(-b, 0), a) for n, b, a in zip(input._d.shape, high, start, strict=True))
    return E.slice(input, start=start, stop=stop, step=(1,) * len(low))


def _by_index(input: Tensor, low: tuple[int, ...], high: tuple[int, ...], mode: str) -> Tensor:
    shape = tuple(input._d.shape)
    if 0 in shape[1:] and mode != "circular":
        ndim = sum(bool(a or b) for a, b in zip(low, high, strict=True))
        raise RuntimeError(
            f"Expected {ndim + 1}D or {ndim + 2}D (batch mode) tensor with possibly 0 batch size and other non-zero "
            f"dimensions for input, but got: {list(shape)}"
        )
    out = [n + a + b for n, a, b in zip(shape, low, high, strict=True)]
    for axis, (n, a, b) in reversed([*enumerate(zip(shape, low, high, strict=True))]):
        if mode == "reflect" and max(a, b) >= n and (a or b):
            number = 4 + 2 * (len(shape) - 1 - axis)  # of the argument of PyTorch's kernel, which takes the ends apart
            raise RuntimeError(
                f"Argument #{number}: Padding size should be less than the corresponding input dimension, but got: "
                f"padding ({a}, {b}) at dimension {axis} of input {list(shape)}"
            )
        if mode == "circular" and max(a, b) > n:
            raise RuntimeError("Padding value causes wrapping around more than once.")
    if min(out) < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(out)}: {out}")
    if input._dtype() == BOOL and mode != "circular":
        ndim = sum(bool(a or b) for a, b in zip(low, high, strict=True))
        kind = {"reflect": "reflection", "replicate": "replication"}[mode]
        raise NotImplementedError(f"\"{kind}_pad{ndim}d\" not implemented for 'Bool'")
    result = input
    if mode == "circular" and min((*low, *high)) < 0:  # what is cropped does not come back at the other end
        result = _cropped(input, low, high)
        shape, low, high = tuple(result._d.shape), tuple(max(a, 0) for a in low), tuple(max(b, 0) for b in high)
    for axis, (a, b) in enumerate(zip(low, high, strict=True)):
        if a or b:
            kept = _places if shape[axis] <= LONG else _places.__wrapped__
            places = kept(shape[axis], a, b, INDEXED[mode])
            result = E.index(result, Tensor._wrap(places), spec=(None,) * axis + (0,))
    return result


@functools.lru_cache(maxsize=64)
def _places(n: int, low: int, high: int, mode: Any) -> np.ndarray:
    """Which of `n` elements stands where after padding."""
    places = np.pad(np.arange(n), (max(low, 0), max(high, 0)), mode=mode)
    places.flags.writeable = False
    return places[max(-low, 0) : len(places) - max(-high, 0)]
