"""Ops of neural networks that are no compositions: convolution and pooling, with the transposes their gradients need.

Each is declared for one, two and three spatial dimensions. A family is closed: the gradient of a member is a member.
JAX's kernels are in lowering/windows.py and convolutions.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from graphc.ops import kernels, labels, maxima, windowed
from graphc.ops.aval import Aval
from graphc.ops.dtypes import INT64, SHORT_NAMES
from graphc.ops.rounding import Rounding
from graphc.ops.rules import C_NAMES, accepting
from graphc.ops.samples import Sample
from graphc.ops.spec import Op, Rule, Trait, either_zero, op

LINEAR, BILINEAR, MOVES = Trait.LINEAR, Trait.BILINEAR | Trait.HOLOMORPHIC, Trait.MOVES


def check_groups(groups: int, shape: tuple[int, ...]) -> None:
    """Raise PyTorch's errors for a number of groups that a convolution's weight of `shape` cannot have."""
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")
    given = f"Given groups={groups}, expected weight to be"
    if shape[0] < groups:
        raise RuntimeError(f"{given} at least {groups} at dimension 0, but got weight of size {list(shape)} instead")
    if shape[0] % groups:
        raise RuntimeError(
            f"{given} divisible by {groups} at dimension 0, but got weight of size [{list(shape)}] instead"
        )


def _conv(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    x, w = avals
    rank = len(params["stride"])
    if x.ndim != rank + 2:
        raise RuntimeError(
            f"Expected {rank + 1}D (unbatched) or {rank + 2}D (batched) input to {op.name}, but got input of size: "
            f"{list(x.shape)}"
        )
    if w.ndim < 3:
        raise RuntimeError("weight should have at least three dimensions")
    if w.ndim != rank + 2:
        raise RuntimeError(
            f"Expected {w.ndim}-dimensional input for {w.ndim}-dimensional weight {list(w.shape)}, but got "
            f"{x.ndim}-dimensional input of size {list(x.shape)} instead"
        )
    groups = params["groups"]
    check_groups(groups, w.shape)
    if x.shape[1] != w.shape[1] * groups:
        raise RuntimeError(
            f"Given groups={groups}, weight of size {list(w.shape)}, expected input{list(x.shape)} to have "
            f"{w.shape[1] * groups} channels, but got {x.shape[1]} channels instead"
        )
    if x.dtype != w.dtype:
        names = C_NAMES[SHORT_NAMES[x.dtype]], C_NAMES[SHORT_NAMES[w.dtype]]
        raise RuntimeError(f"Input type ({names[0]}) and weight type ({names[1]}) should be the same")
    padding, dilation = params["padding"], params["dilation"]
    size = [
        kernels.out_size(*sizes)
        for sizes in zip(x.shape[2:], w.shape[2:], params["stride"], padding, dilation, strict=True)
    ]
    if min(size) <= 0:
        extent = " x ".join(str(n + 2 * p) for n, p in zip(x.shape[2:], padding, strict=True))
        kernel = " x ".join(str(d * (n - 1) + 1) for n, d in zip(w.shape[2:], dilation, strict=True))
        raise RuntimeError(
            f"Calculated padded input size per channel: ({extent}). Kernel size: ({kernel}). "
            "Kernel size can't be greater than actual input size"
        )
    return Aval((x.shape[0], w.shape[0], *size), x.dtype)


def _of_shape(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    return Aval(params["shape"], avals[0].dtype)


def _conv_flops(avals: list[Aval], result: Aval, params: Mapping[str, Any]) -> int:
    return 2 * result.size * avals[1].size // avals[1].shape[0]


CONVOLVING = BILINEAR | Trait.PADS | Trait.CONTRACTS
_NO_BOOL = accepting("iufc", "\"slow_conv2d_cpu\" not implemented for '{dtype}'")


def _convolutions(rank: int, plain: tuple, strided: tuple, grouped: tuple) -> None:
    """Declare conv<rank>d and its two transposes; each sample is (x shape, w shape, out shape, parameters)."""
    name = f"conv{rank}d"
    defaults = {"stride": (1,) * rank, "padding": (0,) * rank, "dilation": (1,) * rank, "groups": 1}
    samples = [(x, w, out, {**defaults, **params}) for x, w, out, params in (plain, strided, grouped)]
    transposes = samples[:2]
    op(
        name, "input weight", params=defaults, impl=kernels.conv, numpy=kernels.conv,
        dims=labels.ungrouped("n c *, o c * -> n o *", "n *, . * -> n *"),
        rule=Rule(_conv, accepts=_NO_BOOL),
        traits=CONVOLVING, label="Convolution", flops=_conv_flops, ref=windowed.convolved,
        samples=tuple(Sample(x, w, **params) for x, w, _, params in samples),
        vjp=dict(
            input=lambda F, g, weight, input_shape, stride, padding, dilation, groups: getattr(F, f"{name}_input")(
                g, weight, shape=input_shape, stride=stride, padding=padding, dilation=dilation, groups=groups),
            weight=lambda F, g, input, weight_shape, stride, padding, dilation, groups: getattr(F, f"{name}_weight")(
                g, input, shape=weight_shape, stride=stride, padding=padding, dilation=dilation, groups=groups)),
    )  # fmt: skip
    op(
        f"{name}_input", "grad weight", params={"shape": None, **defaults}, impl=kernels.conv_input,
        dims=labels.ungrouped("n o *, o c * -> n c *", "n *, . * -> n *"),
        numpy=kernels.conv_input, rule=Rule(_of_shape, accepts=_NO_BOOL), traits=CONVOLVING, label="Convolution",
        flops=lambda avals, result, params: 2 * avals[0].size * avals[1].size // avals[1].shape[0],
        ref=windowed.convolved_back,
        samples=tuple(Sample(out, w, shape=x, **params) for x, w, out, params in transposes),
        vjp=dict(
            grad=lambda F, g, weight, stride, padding, dilation, groups: getattr(F, name)(
                g, weight, stride=stride, padding=padding, dilation=dilation, groups=groups),
            weight=lambda F, g, grad, weight_shape, stride, padding, dilation, groups: getattr(F, f"{name}_weight")(
                grad, g, shape=weight_shape, stride=stride, padding=padding, dilation=dilation, groups=groups)),
    )  # fmt: skip
    op(
        f"{name}_weight", "grad input", params={"shape": None, **defaults}, impl=kernels.conv_weight,
        dims=labels.ungrouped("n o *, n c * -> o c *", "n *, n * -> . *"),
        numpy=kernels.conv_weight, rule=Rule(_of_shape, accepts=_NO_BOOL), traits=CONVOLVING, label="Convolution",
        flops=lambda avals, result, params: 2 * avals[0].size * result.size // max(result.shape[0], 1),
        ref=windowed.convolved_weight,
        samples=tuple(Sample(out, x, shape=w, **params) for x, w, out, params in transposes),
        vjp=dict(
            grad=lambda F, g, input, stride, padding, dilation, groups: getattr(F, name)(
                input, g, stride=stride, padding=padding, dilation=dilation, groups=groups),
            input=lambda F, g, grad, input_shape, stride, padding, dilation, groups: getattr(F, f"{name}_input")(
                grad, g, shape=input_shape, stride=stride, padding=padding, dilation=dilation, groups=groups)),
    )  # fmt: skip


_convolutions(
    1,
    ((2, 3, 5), (2, 3, 3), (2, 2, 3), {}),
    ((1, 2, 6), (3, 2, 2), (1, 3, 3), {"stride": (2,), "padding": (1,), "dilation": (2,)}),
    ((1, 4, 4), (2, 2, 3), (1, 2, 4), {"groups": 2, "padding": (1,)}),
)
_convolutions(
    2,
    ((2, 3, 5, 4), (2, 3, 3, 2), (2, 2, 3, 3), {}),
    ((1, 2, 6, 5), (3, 2, 3, 2), (1, 3, 3, 7), {"stride": (2, 1), "padding": (1, 2), "dilation": (1, 2)}),
    ((1, 4, 4, 4), (2, 2, 3, 3), (1, 2, 4, 4), {"groups": 2, "padding": (1, 1)}),
)
_convolutions(
    3,
    ((1, 2, 3, 3, 2), (2, 2, 2, 2, 1), (1, 2, 2, 2, 2), {}),
    ((1, 1, 4, 3, 3), (2, 1, 2, 2, 2), (1, 2, 2, 4, 1), {"stride": (2, 1, 1), "padding": (0, 1, 0),
                                                        "dilation": (1, 1, 2)}),
    ((1, 2, 2, 2, 2), (2, 1, 2, 1, 1), (1, 2, 1, 2, 2), {"groups": 2}),
)  # fmt: skip


def _pool(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    x = avals[0]
    kernel, stride, padding = params["kernel"], params["stride"], params["padding"]
    dilation = params.get("dilation", (1,) * len(kernel))
    if x.ndim != len(kernel) + 2:
        raise RuntimeError(f"{op.name}: Expected {len(kernel) + 2}D input, but got input of size {list(x.shape)}")
    size = [
        (n + a + b - d * (k - 1) - 1) // s + 1
        for n, k, s, (a, b), d in zip(x.shape[2:], kernel, stride, padding, dilation, strict=True)
    ]
    if min(size) <= 0:
        before = "x".join(map(str, x.shape[1:]))
        after = "x".join(str(max(n, 0)) for n in (x.shape[1], *size))
        raise RuntimeError(f"Given input size: ({before}). Calculated output size: ({after}). Output size is too small")
    return Aval((*x.shape[:2], *size), x.dtype)


def _pool_index(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    return Aval(_pool(op, avals, params).shape, INT64)


def _like_input(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    return Aval(avals[1].shape, avals[0].dtype)


def _averaged(kernel: str) -> Any:
    """The test that there are means: of floats, and of int64, rounded to zero."""

    def accepts(op: Op, dtypes: list[np.dtype]) -> None:
        for dtype in dtypes:
            if dtype != INT64:
                accepting("f", f"\"{kernel}\" not implemented for '{{dtype}}'")(op, [dtype])

    return accepts


def _windows_over_one(avals: list[Aval], result: Aval, params: Mapping[str, Any]) -> int:
    """How many windows one element lies in, at most."""
    apart = params.get("dilation", (1,) * len(params["kernel"]))
    reach = ((k - 1) * d + 1 for k, d in zip(params["kernel"], apart, strict=True))
    return math.prod(min(k, -(-r // s)) for k, r, s in zip(params["kernel"], reach, params["stride"], strict=True))


def _pools(rank: int, *samples: tuple) -> None:
    """Declare max_pool<rank>d and avg_pool<rank>d with their relatives; a sample is (x shape, out shape, params)."""
    average = {"kernel": None, "stride": None, "padding": ((0, 0),) * rank}
    windows = {**average, "dilation": (1,) * rank}
    tiled = [(x, out, {**windows, **params}) for x, out, params in samples]
    plain = [(x, out, {k: p[k] for k in average}) for x, out, p in tiled if p["dilation"] == windows["dilation"]]
    name, mean = f"max_pool{rank}d", f"avg_pool{rank}d"
    channels = "... " + ". " * rank + "-> ... " + ". " * rank
    ordered = accepting("iuf", f"\"{name}\" not implemented for '{{dtype}}'")
    averaged = _averaged("avg_pool3d_out_frame" if rank == 3 else "avg_pool2d")
    op(
        name, "input", params=windows, dims=channels,
        impl=maxima.max_pool, numpy=maxima.max_pool, rule=Rule(_pool, accepts=ordered),
        traits=MOVES, ref=windowed.largest, nearest=either_zero, label=f"MaxPool{rank}DWithIndices",
        samples=tuple(Sample(x, **params) for x, _, params in tiled),
        vjp=dict(input=lambda F, g, input, kernel, stride, padding, dilation: getattr(F, f"{name}_spread")(
            g, input, kernel=kernel, stride=stride, padding=padding, dilation=dilation)),
    )  # fmt: skip
    op(
        f"{name}_spread", "grad input", params=windows, dims=channels,
        impl=maxima.max_pool_spread, numpy=maxima.max_pool_spread,
        rule=Rule(_like_input, accepts=ordered), traits=LINEAR, rounding=Rounding(length=_windows_over_one),
        ref=windowed.spread,
        samples=tuple(Sample(out, x, **params) for x, out, params in tiled),
        vjp=dict(grad=lambda F, g, input, kernel, stride, padding, dilation: getattr(F, f"{name}_pick")(
            g, input, kernel=kernel, stride=stride, padding=padding, dilation=dilation)),
    )  # fmt: skip
    op(
        f"{name}_pick", "tangent input", params=windows, dims=channels,
        impl=maxima.max_pool_pick, numpy=maxima.max_pool_pick,
        rule=Rule(_pool, accepts=ordered), traits=LINEAR | MOVES, ref=windowed.picked,
        samples=tuple(Sample(x, x, **params) for x, _, params in tiled),
        vjp=dict(tangent=lambda F, g, input, kernel, stride, padding, dilation: getattr(F, f"{name}_spread")(
            g, input, kernel=kernel, stride=stride, padding=padding, dilation=dilation)),
    )  # fmt: skip
    op(
        f"{name}_index", "input", params=windows, dims=channels,
        impl=maxima.max_pool_index, numpy=maxima.max_pool_index,
        rule=Rule(_pool_index, accepts=ordered), ref=windowed.place_of_largest,
        samples=tuple(Sample(x, **params) for x, _, params in tiled),
    )  # fmt: skip
    op(
        mean, "input", params=average, dims=channels,
        impl=kernels.avg_pool, numpy=kernels.avg_pool,
        rule=Rule(_pool, accepts=averaged),
        traits=LINEAR, ref=windowed.averaged,
        rounding=Rounding(length=lambda avals, result, params: math.prod(params["kernel"])),
        lone_term=lambda avals, result, params, is_zero: math.prod(params["kernel"]) == 1,
        label=f"AvgPool{rank}D",
        samples=tuple(Sample(x, **params) for x, _, params in plain),
        vjp=dict(input=lambda F, g, input_shape, kernel, stride, padding: getattr(F, f"{mean}_spread")(
            g, shape=input_shape, kernel=kernel, stride=stride, padding=padding)),
    )  # fmt: skip
    op(
        f"{mean}_spread", "grad", params={"shape": None, **average}, dims=channels,
        impl=kernels.avg_pool_spread,
        numpy=kernels.avg_pool_spread,
        rule=Rule(_of_shape, accepts=accepting("f", f"\"{mean}_backward\" not implemented for '{{dtype}}'")),
        traits=LINEAR, rounding=Rounding(length=_windows_over_one), ref=windowed.averaged_back,
        samples=tuple(Sample(out, shape=x, **params) for x, out, params in plain),
        vjp=dict(grad=lambda F, g, kernel, stride, padding: getattr(F, mean)(
            g, kernel=kernel, stride=stride, padding=padding)),
    )  # fmt: skip


_pools(
    1,
    ((2, 1, 6), (2, 1, 3), {"kernel": (2,), "stride": (2,)}),
    ((1, 2, 5), (1, 2, 5), {"kernel": (3,), "stride": (1,), "padding": ((1, 1),)}),
    ((1, 2, 6), (1, 2, 2), {"kernel": (2,), "stride": (3,), "dilation": (2,), "padding": ((0, 0),)}),
)
_pools(
    2,
    ((2, 1, 4, 6), (2, 1, 2, 3), {"kernel": (2, 2), "stride": (2, 2)}),
    ((1, 2, 5, 4), (1, 2, 3, 3), {"kernel": (3, 2), "stride": (2, 1), "padding": ((1, 1), (0, 0))}),
    ((1, 2, 4, 3), (1, 2, 2, 2), {"kernel": (3, 2), "stride": (2, 2), "padding": ((0, 1), (0, 1))}),
    ((1, 1, 5, 4), (1, 1, 3, 2), {"kernel": (2, 3), "stride": (1, 1), "dilation": (2, 1)}),
)
_pools(
    3,
    ((1, 1, 2, 4, 2), (1, 1, 1, 2, 1), {"kernel": (2, 2, 2), "stride": (2, 2, 2)}),
    ((1, 1, 3, 2, 3), (1, 1, 2, 2, 2), {"kernel": (2, 1, 2), "stride": (1, 1, 2), "padding": ((0, 0), (0, 0), (0, 1))}),
)
