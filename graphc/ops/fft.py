"""Discrete Fourier transforms, over several axes at once.

    y[k] = c * sum_n x[n] exp(-+ 2 pi i k n / N)        c = 1 ("none"), N^-1/2 ("ortho") or 1/N ("full")

`inverse` chooses the plus sign. Of real numbers half of the last axis is kept (`rfft`, forward); its inverse, `irfft`,
reads a half, which stands for a whole by z[N - k] = conj(z[k]). The family is closed under transposition: with weights
1, 2, ..., 2, 1 on the half (`twice`), rfft and irfft are each other's adjoint.

A gradient with respect to a complex z is dL/dRe(z) + i dL/dIm(z), as in PyTorch.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from graphc.ops.aval import Aval
from graphc.ops.dtypes import COMPLEX64, COMPLEX128, FLOAT32, FLOAT64, complex_of
from graphc.ops.rules import torch_name
from graphc.ops.samples import Complexes, Sample
from graphc.ops.spec import Op, Rule, Trait, op

# name -> NumPy's name, of the forward and of the inverse transform
NORMS = {"none": ("backward", "forward"), "ortho": ("ortho", "ortho"), "full": ("forward", "backward")}


@functools.cache
def _scipy() -> Any:
    import scipy.fft

    return scipy.fft


def _weighted(xp: Any, z: Any, axis: int, n: int, factor: float) -> Any:
    """`z`, half of N = n numbers along `axis`, with all that stand for two of them times `factor`."""
    weights = np.full(z.shape[axis], factor, z.real.dtype)
    weights[0] = 1
    if n % 2 == 0:
        weights[-1] = 1
    shape = [1] * z.ndim
    shape[axis] = -1
    return z * xp.asarray(weights.reshape(shape))


def _np_fft(x, axes, inverse, norm):
    transform = _scipy().ifftn if inverse else _scipy().fftn
    return transform(x, axes=axes, norm=NORMS[norm][inverse])


def _np_rfft(x, axes, norm, twice):
    half = _scipy().rfftn(x, axes=axes, norm=NORMS[norm][0])
    return _weighted(np, half, axes[-1], x.shape[axes[-1]], 2) if twice else half


def _np_irfft(z, axes, n, norm, twice):
    z = z if twice else _weighted(np, z, axes[-1], n, 0.5)
    sizes = [*(z.shape[a] for a in axes[:-1]), n]
    return _scipy().irfftn(z, s=sizes, axes=axes, norm=NORMS[norm][1])


def _fft(xp, x, axes, inverse, norm):
    for axis in axes:  # jax.numpy takes no more than three at once
        x = (xp.fft.ifft if inverse else xp.fft.fft)(x, axis=axis, norm=NORMS[norm][inverse])
    return x


def _rfft(xp, x, axes, norm, twice):
    half = _fft(xp, xp.fft.rfft(x, axis=axes[-1], norm=NORMS[norm][0]), axes[:-1], False, norm)
    return _weighted(xp, half, axes[-1], x.shape[axes[-1]], 2) if twice else half


def _irfft(xp, z, axes, n, norm, twice):
    z = _fft(xp, z, axes[:-1], True, norm)
    z = z if twice else _weighted(xp, z, axes[-1], n, 0.5)
    return xp.fft.irfft(z, n=n, axis=axes[-1], norm=NORMS[norm][1])


def _nonempty(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    for axis in axes:
        if shape[axis] < 1:
            raise RuntimeError(f"Invalid number of data points ({shape[axis]}) specified")


def _complex_shape(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    (x,) = avals
    if x.dtype not in (COMPLEX64, COMPLEX128):
        raise RuntimeError(f"Unsupported dtype {torch_name(x.dtype)}")
    _nonempty(x.shape, params["axes"])
    return x


def _half_shape(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    (x,), axes = avals, params["axes"]
    if x.dtype not in (FLOAT32, FLOAT64):
        raise RuntimeError(f"Unsupported dtype {torch_name(x.dtype)}")
    _nonempty(x.shape, axes)
    last = axes[-1]
    return Aval((*x.shape[:last], x.shape[last] // 2 + 1, *x.shape[last + 1 :]), complex_of(x.dtype))


def _whole_shape(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    x, last, n = _complex_shape(op, avals, params), params["axes"][-1], params["n"]
    if x.shape[last] != n // 2 + 1:
        raise RuntimeError(f"{op.name}: {x.shape[last]} numbers are not the half of {n} that it needs")
    return Aval((*x.shape[:last], n, *x.shape[last + 1 :]), FLOAT64 if x.dtype == COMPLEX128 else FLOAT32)


def _matrix(n: int, inverse: bool, norm: str) -> np.ndarray:
    """The transform of n numbers as a matrix."""
    k = np.arange(n)
    scale = {"none": 1.0, "ortho": n**-0.5, "full": 1 / n}[norm]
    return np.exp((2j if inverse else -2j) * np.pi * np.outer(k, k) / n) * scale


def _ref_fft(x, axes, inverse, norm):
    for axis in axes:
        x = np.moveaxis(np.tensordot(_matrix(x.shape[axis], inverse, norm), x, (1, axis)), 0, axis)
    return x


def _ref_rfft(x, axes, norm, twice):
    n, last = x.shape[axes[-1]], axes[-1]
    half = np.take(_ref_fft(x, axes, False, norm), range(n // 2 + 1), axis=last)
    parts = np.moveaxis(half, last, 0)
    for k in range(len(parts)):
        parts[k] *= 2 if twice and 2 * k not in (0, n) else 1
    return half


def _ref_irfft(z, axes, n, norm, twice):
    last = axes[-1]
    half = np.moveaxis(_ref_fft(z, axes[:-1], True, norm), last, 0)
    whole = np.zeros((n, *half.shape[1:]), complex)
    for k, part in enumerate(half):
        if 2 * k in (0, n):
            whole[k] = part.real
        else:
            whole[k], whole[n - k] = (part, np.conj(part)) if twice else (part / 2, np.conj(part) / 2)
    result: Any = _ref_fft(whole, (0,), True, norm)
    return np.moveaxis(result.real, 0, last)


_ONE, _TWO = {"axes": (1,)}, {"axes": (0, 2)}
_PLAIN: dict[str, Any] = {"inverse": False, "norm": "none"}
_BACK: dict[str, Any] = {"inverse": True, "norm": "ortho"}
_FULL: dict[str, Any] = {"inverse": True, "norm": "full"}


def _flops(avals: list[Aval], result: Aval, params: Mapping[str, Any]) -> int:
    size = max(avals[0].size, result.size)
    return 5 * size * max(1, sum(avals[0].shape[a].bit_length() for a in params["axes"]))


fft = op(
    "fft", "input", params={"axes": (), **_PLAIN}, impl=_fft, numpy=_np_fft, rule=Rule(_complex_shape),
    traits=Trait.LINEAR, label="FftC2C", ref=_ref_fft, flops=_flops,
    samples=(Sample(Complexes((2, 5)), **_ONE, **_PLAIN), Sample(Complexes((3, 2, 4)), **_TWO, **_BACK),
             Sample(Complexes((4,)), axes=(0,), **_FULL)),
    vjp=dict(input=lambda F, g, axes, inverse, norm: F.fft(g, axes=axes, inverse=not inverse, norm=norm)),
)  # fmt: skip
rfft = op(
    "rfft", "input", params={"axes": (), "norm": "none", "twice": False}, impl=_rfft, numpy=_np_rfft,
    rule=Rule(_half_shape), traits=Trait.LINEAR, label="FftR2C", ref=_ref_rfft, flops=_flops,
    samples=(Sample((2, 5), axes=(1,), norm="none", twice=False),
             Sample((3, 2, 4), axes=(0, 2), norm="ortho", twice=False),
             Sample((4,), axes=(0,), norm="none", twice=True), Sample((5, 1), axes=(0,), norm="full", twice=True)),
    vjp=dict(input=lambda F, g, input_shape, axes, norm, twice: F.irfft(
        g, axes=axes, n=input_shape[axes[-1]], norm=norm, twice=twice)),
)  # fmt: skip
irfft = op(
    "irfft", "input", params={"axes": (), "n": None, "norm": "full", "twice": True}, impl=_irfft, numpy=_np_irfft,
    rule=Rule(_whole_shape), label="FftC2R", ref=_ref_irfft, flops=_flops,
    samples=(Sample(Complexes((2, 3)), axes=(1,), n=5, norm="none", twice=True),
             Sample(Complexes((3, 2, 3)), axes=(0, 2), n=4, norm="ortho", twice=True),
             Sample(Complexes((3,)), axes=(0,), n=4, norm="full", twice=False)),
    vjp=dict(input=lambda F, g, axes, norm, twice: F.rfft(g, axes=axes, norm=norm, twice=twice)),
)  # fmt: skip
