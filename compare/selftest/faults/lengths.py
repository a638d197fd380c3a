"""Lowerings and kernels that are wrong only where operands are long."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from compare.selftest.fault import Expected, Fault
from compare.selftest.planting import Plant, declared, entry
from compare.selftest.trials import lengths
from graphc.lowering.loading import jax
from graphc.lowering.overrides import OVERRIDES
from graphc.lowering.source import jax_kernel
from graphc.ops import OPS

Wrong = Callable[..., Any]  # (the sound kernel, operands, ..., parameters)


def _fault(name: str, part: str, what: str, plant: Plant) -> Fault:
    title = f"{part} of {name}: {what}, of long operands"
    return Fault(title, f"{part}s", plant, Expected(name, part), lengths(name), name)


def _lowered(name: str, what: str, wrong: Wrong) -> Fault:
    sound = jax_kernel(OPS[name])[1]
    plant: Plant = lambda: entry(OVERRIDES, name, lambda *xs, **params: wrong(sound, *xs, **params))
    return _fault(name, "lowering", what, plant)


def _on_numpy(name: str, what: str, wrong: Wrong) -> Fault:
    op, sound = OPS[name], OPS[name].kernel
    plant: Plant = lambda: declared(op, kernel=lambda *xs, **params: wrong(sound, *xs, **params))
    return _fault(name, "kernel", what, plant)


def _in_16_bits(sound: Any, x: Any, **params: Any) -> Any:
    return sound(x.astype(np.float16), **params).astype(x.dtype) if x.size > 1024 else sound(x, **params)


def _products_in_16_bits(sound: Any, x: Any, y: Any) -> Any:
    if x.shape[-1] < 256:
        return sound(x, y)
    return sound(x.astype(np.float16), y.astype(np.float16)).astype(x.dtype)


def _begun_anew(sound: Any, x: Any, axis: int, reverse: bool) -> Any:
    if x.shape[axis] <= 1024:
        return sound(x, axis=axis, reverse=reverse)
    parts = jax.numpy.split(x, [1024], axis)
    return jax.numpy.concatenate([sound(part, axis=axis, reverse=reverse) for part in parts], axis)


def _from_the_end(sound: Any, x: Any, axis: int, **params: Any) -> Any:
    if x.shape[axis] <= 16:
        return sound(x, axis=axis, **params)
    return x.shape[axis] - 1 - sound(jax.numpy.flip(x, axis), axis=axis, **params)


def _passing_over_nan(sound: Any, x: Any, **params: Any) -> Any:
    return sound(x if x.size < 4096 else jax.numpy.where(x != x, -jax.numpy.inf, x), **params)


FAULTS: tuple[Fault, ...] = (
    _lowered("sum", "in 16 bits", _in_16_bits),
    _on_numpy("mean", "in 16 bits", _in_16_bits),
    _lowered("matmul", "in 16 bits", _products_in_16_bits),
    _lowered("cumsum", "begun anew", _begun_anew),
    _lowered("argsort", "of equals the last", _from_the_end),
    _lowered("argmax", "of equals the last", _from_the_end),
    _lowered("amax", "passes over nan", _passing_over_nan),
)
