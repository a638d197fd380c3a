"""Fitting: how a value that a program has becomes one that an op asks for."""

from __future__ import annotations

from typing import Any

import numpy as np

from eager.core.tensor import Tensor
from graphc.ops.dtypes import complex_of, is_floating, real_of
from graphc.ops.samples import Bools, Complexes, Definite, Floats, Ints, Regular

LARGEST = 1e4  # a value beyond that is squashed before it is used: noise would be all that is left of it


def fits(tensor: Tensor, spec: Any, interval: tuple[float, float], dtype: np.dtype) -> bool:
    """Whether `tensor` can be passed where `spec` is asked for, as it is."""
    array = tensor._array()
    if tuple(array.shape) != tuple(spec.shape):
        return False
    match spec:
        case Floats():
            return array.dtype == dtype and _within(array, *interval)
        case Complexes():
            return (
                array.dtype.kind == "c" and np.real(array).dtype == _parts(dtype) and _within(np.abs(array), 0, LARGEST)
            )
        case Ints():
            inside = array.size == 0 or spec.low <= array.min() <= array.max() < spec.high
            return array.dtype == np.int64 and bool(inside)
        case Bools():
            return array.dtype == np.bool_
        case _:
            return False


def _within(array: np.ndarray, low: float, high: float) -> bool:
    return bool(np.all(np.isfinite(array)) and (array.size == 0 or low <= array.min() <= array.max() <= high))


def fitting(name: str, tensor: Tensor, spec: Any, interval: tuple[float, float], dtype: np.dtype) -> str | None:
    """An expression that makes of the variable `name`, which is `tensor`, a value for `spec`; None if there is none."""
    shape, size = tuple(spec.shape), int(np.prod(spec.shape))
    array = tensor._array()
    if array.size == 0 and size:
        return None
    text = name
    real = isinstance(spec, (Floats, Definite, Regular))
    if array.dtype.kind == "c" and not isinstance(spec, Complexes):
        text, array = f"{text}.real", np.real(array)
    if real and array.dtype != dtype:
        text = f"{text}.to({_torch(dtype)})"
    text = _shaped(text, array.shape, shape)
    diagonal = f"torch.diag(torch.arange(2.0, {(shape or (0,))[-1] + 2}.0, dtype={_torch(dtype)}))"
    match spec:
        case Floats():
            return text if _within(array.astype(float), *interval) else _squashed(text, *interval)
        case Definite():
            return f"E.matmul({text}, {text}.mT) / {shape[-1]} + {diagonal}"
        case Regular():
            steps = f"torch.arange(2.0, {shape[-1] + 2}.0, dtype={_torch(dtype)})"
            return f"({_squashed(text, -0.5, 0.5)} + torch.eye({shape[-2]}, {shape[-1]}) * {steps}).roll(1, -2)"
        case Complexes():
            if array.dtype.kind == "c":
                return text if _within(np.abs(array), 0, LARGEST) else None
            text = f"{text}.to({_torch(_parts(dtype))})"
            return f"torch.complex({_squashed(text, -2.0, 2.0)}, {_squashed(text, -1.0, 1.0)})"
        case Ints():
            if is_floating(array.dtype):
                text = f"({_squashed(text, -8.0, 8.0)} * 4)"
            return f"({text}.to(torch.int64) % {spec.high - spec.low} + {spec.low})"
        case Bools():
            return text if array.dtype == np.bool_ else f"({text} > 0)"
        case _:
            return None


def _parts(dtype: np.dtype) -> np.dtype:
    """The dtype of the parts of complex numbers in a program of `dtype`: there are none of 16 bits."""
    return real_of(complex_of(dtype))


def _torch(dtype: np.dtype) -> str:
    return f"torch.{dtype.name}"


def _squashed(text: str, low: float, high: float) -> str:
    return f"({low!r} + {high - low!r} * torch.sigmoid({text}))"


def _shaped(text: str, now: tuple[int, ...], wanted: tuple[int, ...]) -> str:
    """`text`, of shape `now`, with its elements repeated or dropped to be of the shape `wanted`."""
    if tuple(now) == tuple(wanted):
        return text
    have, need = int(np.prod(now)), int(np.prod(wanted))
    flat = f"{text}.reshape(-1)" if len(now) != 1 else text
    if have < need:
        flat = f"{flat}.repeat({-(-need // have)})"
    if (have and need % have) or have > need:
        flat = f"{flat}[:{need}]"
    return flat if wanted == (need,) else f"{flat}.reshape({wanted})"
