"""Kernels for JAX of windows that slide over images: pooling, and the table of all. See graphc/ops/kernels.py.

Images have their channels last, as in `graphc.lowering.taps`.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from graphc.lowering.convolutions import by_pixels, conv, conv_input, conv_weight, copied
from graphc.lowering.scattering import even
from graphc.lowering.sorting import reduced
from graphc.lowering.taps import Borders, Sizes, around, cuts, last
from graphc.lowering.zeros import unsigned
from graphc.ops.maxima import lowest

TAPS = 25  # of a window: XLA takes a while to compile more


def _tiles(shape: Sizes, kernel: Sizes, stride: Sizes, padding: Borders, dilation: Sizes) -> bool:
    """Whether the windows are next to each other, and all of the image."""
    exact = all(n % k == 0 for n, k in zip(shape[1:-1], kernel, strict=True))
    return exact and kernel == stride and not any(map(any, padding)) and set(dilation) == {1}


def _taps(x: Any, outside: Any, kernel: Sizes, stride: Sizes, padding: Borders, dilation: Sizes) -> Iterator[Any]:
    """What the windows meet at each of their taps; outside of the image the number `outside`."""
    values = jnp.pad(x, around(padding), constant_values=outside)
    return (values[:, *cut] for cut in cuts(x.shape[1:-1], kernel, stride, padding, dilation))


# of two arrays, over axes, and as XLA's own loop takes it, which is four times slower for few taps
_MAX, _SUM = (jnp.maximum, reduced, lax.max), (jnp.add, jnp.sum, lax.add)


def _reduced(
    x: Any, ways: Sequence[Callable[..., Any]], start: Any, kernel: Sizes, stride: Sizes, padding: Borders,
    dilation: Sizes,
) -> Any:  # fmt: skip
    """What the windows meet reduced, in one of the `ways`, from `start` on."""
    pair, over, reducer = ways
    if math.prod(kernel) <= TAPS or set(dilation) != {1}:
        return functools.reduce(pair, _taps(x, start, kernel, stride, padding, dilation))
    along = [*zip(x.shape[1:-1], kernel, stride, strict=True)]
    known = all(type(n) is int for n, _, _ in along) and not any(map(any, padding))
    if known and all(k == s or n < k + s for n, k, s in along):  # next to each other, or one
        counts = [(n - k) // s + 1 for n, k, s in along]
        read = x[:, *[slice(0, count * k) for count, k in zip(counts, kernel, strict=True)]]
        split = itertools.chain(*zip(counts, kernel, strict=True))
        return over(read.reshape(x.shape[0], *split, x.shape[-1]), axis=tuple(range(2, 2 + 2 * len(kernel), 2)))
    first = np.array(start, x.dtype)
    return lax.reduce_window(x, first, reducer, (1, *kernel, 1), (1, *stride, 1), around(padding))


def max_pool(x: Any, kernel: Sizes, stride: Sizes, padding: Borders, dilation: Sizes) -> Any:
    return _reduced(x, _MAX, lowest(x.dtype), kernel, stride, padding, dilation)


def _better(value: Any, best: Any) -> Any:
    """Whether the maximum so far gives way: the first of equals stays, the last nan is above all."""
    return (value > best) | (value != value)


def _winners(taps: Iterator[Any]) -> list[Any]:
    """For each tap whether it is the window's maximum."""
    best = next(taps)
    wins: list[Any] = []
    for value in taps:
        better = _better(value, best)
        best = jnp.where(better, value, best)
        wins.append(better)
    found: list[Any] = []
    beaten = jnp.zeros(best.shape, bool)
    for win in reversed(wins):
        found.append(win & ~beaten)
        beaten = beaten | win
    return [~beaten, *reversed(found)]


def max_pool_spread(g: Any, x: Any, kernel: Sizes, stride: Sizes, padding: Borders, dilation: Sizes) -> Any:
    if math.prod(kernel) <= TAPS and _tiles(x.shape, kernel, stride, padding, dilation):
        zero = jnp.zeros((), g.dtype)
        parts = [jnp.where(win, g, zero) for win in _winners(_taps(x, 0, kernel, stride, padding, dilation))]
        return unsigned(_tiled(parts, kernel))
    at = max_pool_index(x, kernel, stride, padding, dilation)
    number, channels = x.shape[0], x.shape[-1]
    flat = jnp.zeros((number, math.prod(x.shape[1:-1]), channels), g.dtype)
    image, channel = jnp.arange(number)[:, None, None], jnp.arange(channels)
    shape = number, -1 if x.size else 0, channels
    return flat.at[image, even(at.reshape(shape)), channel].add(even(g.reshape(shape))).reshape(x.shape)


def _tiled(parts: list[Any], kernel: Sizes) -> Any:
    """The image whose windows, next to each other, have `parts` at their taps."""
    for axis in range(len(kernel), 0, -1):
        k = kernel[axis - 1]
        joined = [jnp.stack(parts[i : i + k], axis + 1) for i in range(0, len(parts), k)]
        parts = [part.reshape(*part.shape[:axis], -1, *part.shape[axis + 2 :]) for part in joined]
    return parts[0]


def max_pool_pick(t: Any, x: Any, kernel: Sizes, stride: Sizes, padding: Borders, dilation: Sizes) -> Any:
    at = max_pool_index(x, kernel, stride, padding, dilation)
    rows = (a.reshape(a.shape[0], math.prod(a.shape[1:-1]), a.shape[-1]) for a in (t, at))
    return jnp.take_along_axis(*rows, axis=1).reshape(at.shape)


def max_pool_index(x: Any, kernel: Sizes, stride: Sizes, padding: Borders, dilation: Sizes) -> Any:
    """The position of each window's maximum in the flattened image: the first of equals, the last nan above all."""
    spatial = x.shape[1:-1]
    place = np.pad(np.arange(math.prod(spatial)).reshape(spatial), padding, constant_values=-1)[..., None]
    best, at = None, None
    taps = _taps(x, lowest(x.dtype), kernel, stride, padding, dilation)
    for value, cut in zip(taps, cuts(spatial, kernel, stride, padding, dilation), strict=True):
        position = jnp.asarray(place[cut])
        if best is None or at is None:
            best, at = value, jnp.broadcast_to(position, value.shape)
            continue
        better = _better(value, best) | ((at < 0) & (position >= 0))
        best, at = jnp.where(better, value, best), jnp.where(better, position, at)
    return at


def _total(x: Any, kernel: Sizes, stride: Sizes, padding: Borders) -> Any:
    return _reduced(x, _SUM, 0, kernel, stride, padding, (1,) * len(kernel))


def avg_pool(x: Any, kernel: Sizes, stride: Sizes, padding: Borders) -> Any:
    total = unsigned(_total(x, kernel, stride, padding))
    count = math.prod(kernel)
    if jnp.issubdtype(x.dtype, jnp.integer):  # rounded to zero
        return jnp.sign(total) * (abs(total) // count)
    return total * x.dtype.type(1 / count)


def avg_pool_spread(g: Any, shape: Sizes, kernel: Sizes, stride: Sizes, padding: Borders) -> Any:
    # NumPy adds to zeros, XLA begins with the first term, which may be -0
    given, share = jax.ShapeDtypeStruct(last(shape), g.dtype), unsigned(g * g.dtype.type(1 / math.prod(kernel)))
    (dx,) = jax.linear_transpose(lambda x: _total(x, kernel, stride, padding), given)(share)
    return dx


def _called(
    run: Callable[..., Any], images: Sizes, returns: bool, /, *operands: Any, channels_last: bool = False, **params: Any
) -> Any:
    """`run` on images as graphs have them, (N, C, *spatial); or, where a program is arranged so, as they are here."""
    if channels_last:
        return run(*operands, **params)
    moved = [jnp.moveaxis(x, 1, -1) if k in images else x for k, x in enumerate(operands)]
    result = run(*moved, **params)
    return jnp.moveaxis(result, -1, 1) if returns else result


def images_of(name: str) -> tuple[Sizes, bool]:
    """Which operands of the op `name` are images, by number; and whether its result is one."""
    return WINDOWS[name].args[1:]


# of each kernel: which operands, and whether the result, are images
_KERNELS: dict[str, dict[str, tuple[Callable[..., Any], Sizes, bool]]] = {
    "conv": {"": (conv, (0,), True), "_input": (conv_input, (0,), True), "_weight": (conv_weight, (0, 1), False)},
    "max_pool": {
        "": (max_pool, (0,), True), "_spread": (max_pool_spread, (0, 1), True),
        "_pick": (max_pool_pick, (0, 1), True), "_index": (max_pool_index, (0,), True),
    },
    "avg_pool": {"": (avg_pool, (0,), True), "_spread": (avg_pool_spread, (0,), True)},
}  # fmt: skip
WINDOWS: dict[str, functools.partial[Any]] = {
    f"{family}{rank}d{relative}": functools.partial(_called, *facts)
    for rank in (1, 2, 3)
    for family, kernels in _KERNELS.items()
    for relative, facts in kernels.items()
}


def multiplies(name: str, avals: Sequence[Any], params: Mapping[str, Any]) -> bool:
    """Whether the op `name` is a convolution that is a product of matrices: of all pixels, and the weights."""
    return name in WINDOWS and "groups" in params and by_pixels(WINDOWS[name].args[0], avals, params)


def copies(name: str, avals: Sequence[Any], params: Mapping[str, Any]) -> list[Sizes]:
    """Which operands of the op `name` are copied first: see `graphc.lowering.convolutions.copied`."""
    if name not in WINDOWS or "groups" not in params:
        return []
    spatial = avals[0].shape[1:-1] if params.get("channels_last") else avals[0].shape[2:]
    return copied(WINDOWS[name].args[0], avals, spatial, params)
