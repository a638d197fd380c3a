"""Ops of neural networks that are no compositions: convolution and pooling, with the transposes their gradients need.

A family is closed: the gradient of every member is a member. JAX's kernels are in lowering/overrides.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from graphc.ops import kernels
from graphc.ops.aval import Aval
from graphc.ops.dtypes import SHORT_NAMES
from graphc.ops.rules import C_NAMES
from graphc.ops.samples import Sample
from graphc.ops.spec import Op, Rule, Trait, op

LINEAR, BILINEAR = Trait.LINEAR, Trait.BILINEAR
CONV = {"stride": (1, 1), "padding": (0, 0), "dilation": (1, 1), "groups": 1}
POOL = {"kernel": None, "stride": None, "padding": (0, 0)}


def _conv2d(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    x, w = avals
    if x.ndim != 4:
        raise RuntimeError(
            f"Expected 3D (unbatched) or 4D (batched) input to conv2d, but got input of size: {list(x.shape)}"
        )
    if w.ndim != 4:
        raise RuntimeError(f"expected 4D weight for conv2d, but got weight of size: {list(w.shape)}")
    if x.dtype != w.dtype:
        names = C_NAMES[SHORT_NAMES[x.dtype]], C_NAMES[SHORT_NAMES[w.dtype]]
        raise RuntimeError(f"Input type ({names[0]}) and weight type ({names[1]}) should be the same")
    groups = params["groups"]
    if w.shape[0] % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight of "
            f"size {list(w.shape)} instead"
        )
    if x.shape[1] != w.shape[1] * groups:
        raise RuntimeError(
            f"Given groups={groups}, weight of size {list(w.shape)}, expected input{list(x.shape)} to have "
            f"{w.shape[1] * groups} channels, but got {x.shape[1]} channels instead"
        )
    size = [
        kernels.out_size(
            x.shape[i + 2], w.shape[i + 2], params["stride"][i], params["padding"][i], params["dilation"][i]
        )
        for i in (0, 1)
    ]
    if min(size) <= 0:
        extent = " x ".join(str(x.shape[i + 2] + 2 * params["padding"][i]) for i in (0, 1))
        kernel = " x ".join(str(n) for n in w.shape[2:])
        raise RuntimeError(
            f"Calculated padded input size per channel: ({extent}). Kernel size: ({kernel}). "
            "Kernel size can't be greater than actual input size"
        )
    return Aval((x.shape[0], w.shape[0], *size), x.dtype)


def _of_shape(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    return Aval(params["shape"], avals[0].dtype)


def _conv_flops(avals: list[Aval], result: Aval, params: Mapping[str, Any]) -> int:
    return 2 * result.size * avals[1].size // avals[1].shape[0]


def _naive_conv2d(x, w, stride, padding, dilation, groups):
    """Convolution as its definition: a loop over output positions."""
    x = np.pad(x, ((0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2))
    o, cg, kh, kw = w.shape
    oh = (x.shape[2] - dilation[0] * (kh - 1) - 1) // stride[0] + 1
    ow = (x.shape[3] - dilation[1] * (kw - 1) - 1) // stride[1] + 1
    r = np.zeros((x.shape[0], o, oh, ow))
    for k in range(o):
        channels = slice(k // (o // groups) * cg, (k // (o // groups) + 1) * cg)
        for p, q in np.ndindex(oh, ow):
            patch = x[:, channels, p * stride[0] :, q * stride[1] :][
                :, :, : dilation[0] * kh : dilation[0], : dilation[1] * kw : dilation[1]
            ]
            r[:, k, p, q] = np.sum(patch[:, :, :kh, :kw] * w[k], axis=(1, 2, 3))
    return r


def _transpose_of(function, shape):
    """The transpose of a linear function, by applying it to every unit vector."""
    units = np.eye(int(np.prod(shape))).reshape(-1, *shape)
    columns = [function(unit).ravel() for unit in units]
    return lambda g: np.array([column @ g.ravel() for column in columns]).reshape(shape)


def _conv(**changes: Any) -> dict[str, Any]:
    return {**CONV, **changes}


_STRIDED = _conv(stride=(2, 1), padding=(1, 2), dilation=(1, 2))

conv2d = op(
    "conv2d", "input weight", params=CONV, impl=kernels.conv2d, numpy=kernels.conv2d, rule=Rule(_conv2d),
    traits=BILINEAR, label="Convolution", flops=_conv_flops, ref=_naive_conv2d,
    samples=(Sample((2, 3, 5, 4), (2, 3, 3, 2), **CONV), Sample((1, 2, 6, 5), (3, 2, 3, 2), **_STRIDED),
             Sample((1, 4, 4, 4), (2, 2, 3, 3), **_conv(groups=2, padding=(1, 1)))),
    vjp=dict(
        input=lambda F, g, weight, input_shape, stride, padding, dilation, groups: F.conv2d_input(
            g, weight, shape=input_shape, stride=stride, padding=padding, dilation=dilation, groups=groups),
        weight=lambda F, g, input, weight_shape, stride, padding, dilation, groups: F.conv2d_weight(
            g, input, shape=weight_shape, stride=stride, padding=padding, dilation=dilation, groups=groups)),
)  # fmt: skip
conv2d_input = op(
    "conv2d_input",
    "grad weight",
    params={"shape": None, **CONV},
    impl=kernels.conv2d_input,
    numpy=kernels.conv2d_input,
    rule=Rule(_of_shape),
    traits=BILINEAR,
    flops=lambda avals, result, params: 2 * avals[0].size * avals[1].size // avals[1].shape[0],
    ref=lambda g, w, shape, **p: _transpose_of(lambda x: _naive_conv2d(x, w, **p), shape)(g),
    samples=(
        Sample((2, 2, 3, 3), (2, 3, 3, 2), shape=(2, 3, 5, 4), **CONV),
        Sample((1, 3, 3, 7), (3, 2, 3, 2), shape=(1, 2, 6, 5), **_STRIDED),
    ),
    vjp=dict(
        grad=lambda F, g, weight, stride, padding, dilation, groups: F.conv2d(
            g, weight, stride=stride, padding=padding, dilation=dilation, groups=groups
        ),
        weight=lambda F, g, grad, weight_shape, stride, padding, dilation, groups: F.conv2d_weight(
            grad, g, shape=weight_shape, stride=stride, padding=padding, dilation=dilation, groups=groups
        ),
    ),
)
conv2d_weight = op(
    "conv2d_weight", "grad input", params={"shape": None, **CONV}, impl=kernels.conv2d_weight,
    numpy=kernels.conv2d_weight, rule=Rule(_of_shape), traits=BILINEAR,
    flops=lambda avals, result, params: 2 * avals[0].size * result.size // max(result.shape[0], 1),
    ref=lambda g, x, shape, **p: _transpose_of(lambda w: _naive_conv2d(x, w, **p), shape)(g),
    samples=(Sample((2, 2, 3, 3), (2, 3, 5, 4), shape=(2, 3, 3, 2), **CONV),
             Sample((1, 3, 3, 7), (1, 2, 6, 5), shape=(3, 2, 3, 2), **_STRIDED)),
    vjp=dict(
        grad=lambda F, g, input, stride, padding, dilation, groups: F.conv2d(
            input, g, stride=stride, padding=padding, dilation=dilation, groups=groups),
        input=lambda F, g, grad, input_shape, stride, padding, dilation, groups: F.conv2d_input(
            grad, g, shape=input_shape, stride=stride, padding=padding, dilation=dilation, groups=groups)),
)  # fmt: skip


# --- pooling


def _pool2d(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    x = avals[0]
    if x.ndim != 4:
        raise RuntimeError(f"{op.name}: Expected 4D input, but got input of size {list(x.shape)}")
    kernel, stride, padding = params["kernel"], params["stride"], params["padding"]
    if any(2 * p > k for p, k in zip(padding, kernel, strict=True)):
        raise RuntimeError("pad should be at most half of effective kernel size, but got "
                           f"pad={max(padding)}, kernel_size={min(kernel)} and dilation=1")  # fmt: skip
    size = [kernels.out_size(x.shape[i + 2], kernel[i], stride[i], padding[i]) for i in (0, 1)]
    if min(size) <= 0:
        c, h, w = x.shape[1:]
        raise RuntimeError(f"Given input size: ({c}x{h}x{w}). Calculated output size: "
                           f"({c}x{max(size[0], 0)}x{max(size[1], 0)}). Output size is too small")  # fmt: skip
    return Aval((*x.shape[:2], *size), x.dtype)


def _like_input(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    return Aval(avals[1].shape, avals[0].dtype)


def _naive_pool(reduce):
    def pool(x, kernel, stride, padding, fill=0.0):
        x = np.pad(x, ((0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2), constant_values=fill)
        oh, ow = ((x.shape[i + 2] - kernel[i]) // stride[i] + 1 for i in (0, 1))
        r = np.zeros((*x.shape[:2], oh, ow))
        for p, q in np.ndindex(oh, ow):
            r[:, :, p, q] = reduce(
                x[:, :, p * stride[0] :, q * stride[1] :][:, :, : kernel[0], : kernel[1]], axis=(2, 3)
            )
        return r

    return pool


_naive_max, _naive_mean = _naive_pool(np.max), _naive_pool(np.mean)


def _naive_pick(t, x, **p):
    """The derivative of max_pool2d in direction t, as a difference quotient; the samples have no ties."""
    step = 1e-6
    return (_naive_max(x + step * t, **p, fill=-np.inf) - _naive_max(x, **p, fill=-np.inf)) / step


_TILES = {"kernel": (2, 2), "stride": (2, 2), "padding": (0, 0)}
_OVERLAP = {"kernel": (3, 2), "stride": (2, 1), "padding": (1, 0)}

max_pool2d = op(
    "max_pool2d", "input", params=POOL, impl=kernels.max_pool2d, numpy=kernels.max_pool2d, rule=Rule(_pool2d),
    ref=lambda x, **p: _naive_max(x, **p, fill=-np.inf), label="MaxPool2DWithIndices",
    samples=(Sample((2, 2, 4, 6), **_TILES), Sample((1, 2, 5, 4), **_OVERLAP)),
    vjp=dict(input=lambda F, g, input, kernel, stride, padding: F.max_pool2d_spread(
        g, input, kernel=kernel, stride=stride, padding=padding)),
)  # fmt: skip
max_pool2d_spread = op(
    "max_pool2d_spread", "grad input", params=POOL, impl=kernels.max_pool2d_spread, numpy=kernels.max_pool2d_spread,
    rule=Rule(_like_input), traits=LINEAR,
    ref=lambda g, x, **p: _transpose_of(lambda t: _naive_pick(t, x, **p), x.shape)(g),
    samples=(Sample((2, 1, 2, 3), (2, 1, 4, 6), **_TILES), Sample((1, 2, 3, 3), (1, 2, 5, 4), **_OVERLAP)),
    vjp=dict(grad=lambda F, g, input, kernel, stride, padding: F.max_pool2d_pick(
        g, input, kernel=kernel, stride=stride, padding=padding)),
)  # fmt: skip
max_pool2d_pick = op(
    "max_pool2d_pick", "tangent input", params=POOL, impl=kernels.max_pool2d_pick, numpy=kernels.max_pool2d_pick,
    rule=Rule(_pool2d), traits=LINEAR, ref=_naive_pick,
    samples=(Sample((2, 1, 4, 6), (2, 1, 4, 6), **_TILES), Sample((1, 2, 5, 4), (1, 2, 5, 4), **_OVERLAP)),
    vjp=dict(tangent=lambda F, g, input, kernel, stride, padding: F.max_pool2d_spread(
        g, input, kernel=kernel, stride=stride, padding=padding)),
)  # fmt: skip
avg_pool2d = op(
    "avg_pool2d", "input", params=POOL, impl=kernels.avg_pool2d, numpy=kernels.avg_pool2d, rule=Rule(_pool2d),
    traits=LINEAR, ref=_naive_mean, samples=(Sample((2, 2, 4, 6), **_TILES), Sample((1, 2, 5, 4), **_OVERLAP)),
    vjp=dict(input=lambda F, g, input_shape, kernel, stride, padding: F.avg_pool2d_spread(
        g, shape=input_shape, kernel=kernel, stride=stride, padding=padding)),
)  # fmt: skip
avg_pool2d_spread = op(
    "avg_pool2d_spread", "grad", params={"shape": None, **POOL}, impl=kernels.avg_pool2d_spread,
    numpy=kernels.avg_pool2d_spread, rule=Rule(_of_shape), traits=LINEAR,
    ref=lambda g, shape, **p: _transpose_of(lambda x: _naive_mean(x, **p), shape)(g),
    samples=(Sample((1, 1, 2, 3), shape=(1, 1, 4, 6), **_TILES), Sample((1, 2, 3, 3), shape=(1, 2, 5, 4), **_OVERLAP)),
    vjp=dict(grad=lambda F, g, kernel, stride, padding: F.avg_pool2d(g, kernel=kernel, stride=stride, padding=padding)),
)  # fmt: skip
