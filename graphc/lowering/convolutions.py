"""Convolution under JAX, and its transposes.

Weights are (O, C / groups, *kernel). XLA has vectorized loops on the CPU for images of one or two dimensions without
groups; what else there is becomes such convolutions here, or products: as XLA has it, it takes 10 to 200 times longer.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from graphc.lowering import depthwise
from graphc.lowering.taps import Borders, Sizes, around, cuts, last

FEW = 32  # numbers that a window meets: a product with all of them takes less time than a convolution
APART = 16  # groups that are convolutions of their own: XLA takes a while to compile more of them


def _borders(padding: Sizes) -> Borders:
    return tuple((p, p) for p in padding)


def conv(x: Any, w: Any, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int) -> Any:
    if groups == 1 and _is_product(w.shape[2:], stride, padding):
        return lax.dot_general(x, _matrix(w), (((x.ndim - 1,), (1,)), ((), ())))
    if groups == 1 and math.prod(w.shape[1:]) <= FEW and x.size and w.size:
        return _of_patches(x, w, stride, padding, dilation)
    return _slid(x, w, stride, padding, dilation, groups)


def _slid(x: Any, w: Any, *window: Any) -> Any:
    """The convolution of neither products nor patches."""
    if not x.size or not w.size:
        return _by_xla(x, w, *window)
    return _on_cpu(_way(w.shape, window[-1]), _by_xla)(x, w, *window)


def _way(shape: Sizes, groups: int) -> Callable[..., Any]:
    """How to convolve on the CPU with weights of `shape`."""
    if depthwise.fits(shape, groups):
        return depthwise.summed
    if len(shape) == 5:
        return _by_planes
    return _by_groups if 1 < groups <= APART else _by_xla


def _on_cpu(way: Callable[..., Any], other: Callable[..., Any]) -> Callable[..., Any]:
    """`way(x, y, *params)` on the CPU, and the `other` one elsewhere."""

    def run(x: Any, y: Any, *params: Any) -> Any:
        return lax.platform_dependent(x, y, cpu=_shared(way, params), default=_shared(other, params))

    return other if way is other else run


@functools.cache
def _shared(run: Callable[..., Any], params: tuple[Any, ...]) -> Callable[..., Any]:
    """`run` with `params`: JAX traces it once for all layers that are alike."""
    return jax.jit(lambda x, y: run(x, y, *params))


def _by_xla(x: Any, w: Any, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int) -> Any:
    letters = "DHW"[-len(stride) :]
    return lax.conv_general_dilated(
        x,
        w,
        window_strides=stride,
        padding=_borders(padding),
        rhs_dilation=dilation,
        dimension_numbers=(f"N{letters}C", f"OI{letters}", f"N{letters}C"),
        feature_group_count=groups,
    )


def _by_groups(x: Any, w: Any, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int) -> Any:
    """One convolution for each group."""
    parts = zip(jnp.split(x, groups, -1), jnp.split(w, groups), strict=True)
    return jnp.concatenate([conv(*part, stride, padding, dilation, 1) for part in parts], -1)


def _by_planes(x: Any, w: Any, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int) -> Any:
    """Planes, with those that the window meets beside each as more channels.

    Of 16 bits in float32: the transpose adds what planes have in common.
    """
    dtype, x, w = x.dtype, depthwise.exact(x), depthwise.exact(w)
    n, depth, *plane, channels = x.shape
    borders = _borders(padding)
    cut = [at for (at,) in cuts((depth,), w.shape[2:3], stride[:1], borders[:1], dilation[:1])]
    padded = jnp.pad(x, [(0, 0), borders[0], (0, 0), (0, 0), (0, 0)]).reshape(n, -1, *plane, groups, 1, w.shape[1])
    beside = jnp.concatenate([padded[:, at] for at in cut], -2)
    count, more = beside.shape[1], channels * len(cut)
    weights = jnp.moveaxis(w, 2, 1).reshape(w.shape[0], -1, *w.shape[3:])
    way = conv if groups == 1 else _way(weights.shape, groups)
    found = way(beside.reshape(n * count, *plane, more), weights, stride[1:], padding[1:], dilation[1:], groups)
    return found.reshape(n, count, *found.shape[1:]).astype(dtype)


def _is_product(kernel: Sizes, stride: Sizes, padding: Sizes) -> bool:
    """Whether a convolution is a product of each pixel with the weights as a matrix."""
    return set(kernel) == set(stride) == {1} and not any(padding)


def _matrix(w: Any) -> Any:
    return w.reshape(w.shape[:2])


def _of_patches(x: Any, w: Any, stride: Sizes, padding: Sizes, dilation: Sizes) -> Any:
    """The convolution as a product with what each window meets."""
    borders = _borders(padding)
    padded = jnp.pad(x, around(borders))
    taps = [padded[:, *cut] for cut in cuts(x.shape[1:-1], w.shape[2:], stride, borders, dilation)]
    rows = jnp.moveaxis(w, (0, 1), (-1, -2)).reshape(-1, w.shape[0])
    return lax.dot_general(jnp.concatenate(taps, -1), rows, (((x.ndim - 1,), (0,)), ((), ())))


def conv_input(g: Any, w: Any, shape: Sizes, **window: Any) -> Any:
    if jnp.issubdtype(g.dtype, jnp.integer):
        return _whole_input(g, w, last(shape), **window)
    if window["groups"] == 1 and _is_product(w.shape[2:], window["stride"], window["padding"]):
        return lax.dot_general(g, _matrix(w), (((g.ndim - 1,), (0,)), ((), ())))
    apart = g.size and w.size and depthwise.fits(w.shape, window["groups"])
    way = depthwise.summed_input if apart else _transposed_input
    return _on_cpu(way, _transposed_input)(g, w, last(shape), *_ordered(**window))


def _transposed_input(g: Any, w: Any, shape: Sizes, *window: Any) -> Any:
    # conv is linear in x: XLA's form of its transpose is what JAX derives
    run = _transposable(w.shape, window[-1])
    (dx,) = jax.linear_transpose(lambda x: run(x, w, *window), jax.ShapeDtypeStruct(shape, g.dtype))(g)
    return dx


def _transposable(shape: Sizes, groups: int) -> Callable[..., Any]:
    """A convolution with weights of `shape` that JAX can transpose: no loop."""
    return _by_xla if depthwise.fits(shape, groups) else _slid


def conv_weight(g: Any, x: Any, shape: Sizes, **window: Any) -> Any:
    if jnp.issubdtype(g.dtype, jnp.integer):
        return _whole_weight(g, x, shape, *_ordered(**window))
    if window["groups"] == 1 and _is_product(shape[2:], window["stride"], window["padding"]):
        pixels = tuple(range(g.ndim - 1))
        # the narrower operand first: the other way round takes XLA twice as long
        if shape[0] <= shape[1]:
            return lax.dot_general(g, x, ((pixels, pixels), ((), ()))).reshape(shape)
        return lax.dot_general(x, g, ((pixels, pixels), ((), ()))).T.reshape(shape)
    way = _whole_weight if window["groups"] > APART else _transposed_weight
    if g.size and x.size and depthwise.fits(shape, window["groups"]):
        way = depthwise.summed_weight
    return _on_cpu(way, _transposed_weight)(g, x, shape, *_ordered(**window))


def _transposed_weight(g: Any, x: Any, shape: Sizes, *window: Any) -> Any:
    run = _transposable(shape, window[-1])
    (dw,) = jax.linear_transpose(lambda w: run(x, w, *window), jax.ShapeDtypeStruct(shape, g.dtype))(g)
    return dw


def _ordered(stride: Sizes, padding: Sizes, dilation: Sizes, groups: int) -> tuple[Any, ...]:
    return stride, padding, dilation, groups


def by_pixels(run: Callable[..., Any], avals: Sequence[Any], params: Mapping[str, Any]) -> bool:
    """Whether `run`, one of the convolutions here, multiplies each pixel by the weights as a matrix."""
    kernel = params["shape"] if run is conv_weight else avals[1].shape
    return params["groups"] == 1 and _is_product(kernel[2:], params["stride"], params["padding"])


def copied(run: Callable[..., Any], avals: Sequence[Any], spatial: Sizes, params: Mapping[str, Any]) -> list[Sizes]:
    """Which operands `run`, one of the convolutions here, copies: their numbers, and the elements of each copy in turn.

    What XLA's convolutions want otherwise than graphs have it: kernels as (*kernel, C, O), and images of a gradient for
    weights with their numbers last. And what `depthwise` and `_by_planes` make of images: padded, and what taps meet.
    """
    first, second = (aval.size for aval in avals)
    kernel, groups = params["shape"] if run is conv_weight else avals[1].shape, params["groups"]
    if by_pixels(run, avals, params):
        return []
    if run is conv and groups == 1 and math.prod(kernel[1:]) <= FEW:
        sizes = zip(spatial, params["padding"], params["dilation"], kernel[2:], params["stride"], strict=True)
        out = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, p, d, k, s in sizes]
        met = avals[0].shape[0] * math.prod(out) * math.prod(kernel[1:])
        return [(0, met, met), (1, second)]
    way, padding = _way(kernel, groups), params["padding"]
    if way is _by_xla or way is _by_groups:
        return [(0, first), (1, second)] if run is conv_weight else [(1, second)]
    if way is depthwise.summed and run is conv_input:
        reach = zip(params["shape"][2:], params["dilation"], kernel[2:], strict=True)
        return [(0, avals[0].shape[0] * kernel[0] * math.prod(n + d * (k - 1) for n, d, k in reach)), (1, second)]
    if run is conv_input:
        return [(1, second)]
    image = avals[run is conv_weight].size
    wider = [(n + 2 * p) / max(n, 1) for n, p in zip(spatial, padding, strict=True)]
    if way is depthwise.summed:
        padded = round(image * math.prod(wider))
        return [(1, padded)] if run is conv_weight else [(0, padded), (1, second)]
    padded, beside = round(image * wider[0]), image * kernel[2]
    return [(0, first), (1, padded, beside, beside)] if run is conv_weight else [(0, padded, beside), (1, second)]


# JAX derives nothing for integers: there the transposes are sums over the taps


def _whole_input(g: Any, w: Any, shape: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int) -> Any:
    borders, spatial = _borders(padding), shape[1:-1]
    parts = g.reshape(*g.shape[:-1], groups, g.shape[-1] // groups)
    weights = w.reshape(groups, w.shape[0] // groups, *w.shape[1:])
    total = jnp.zeros((shape[0], *(n + 2 * p for n, p in zip(spatial, padding, strict=True)), shape[-1]), g.dtype)
    taps = itertools.product(*map(range, w.shape[2:]))
    for tap, cut in zip(taps, cuts(spatial, w.shape[2:], stride, borders, dilation), strict=True):
        part = jnp.einsum("n...go,goc->n...gc", parts, weights[(..., *tap)])
        total = total.at[:, *cut].add(part.reshape(*g.shape[:-1], shape[-1]))
    return total[:, *(slice(p, p + n) for n, p in zip(spatial, padding, strict=True))]


def _whole_weight(g: Any, x: Any, shape: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int) -> Any:
    borders = _borders(padding)
    parts = g.reshape(-1, groups, g.shape[-1] // groups)
    padded = jnp.pad(x, around(borders))
    rows = []
    for cut in cuts(x.shape[1:-1], shape[2:], stride, borders, dilation):
        met = padded[:, *cut].reshape(-1, groups, x.shape[-1] // groups)
        rows.append(jnp.einsum("pgo,pgc->goc", parts, met).reshape(shape[:2]))
    return jnp.stack(rows, axis=-1).reshape(shape)
