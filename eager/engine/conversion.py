"""Tensors in another dtype, recorded where a gradient may flow."""

from __future__ import annotations

from typing import Any

import numpy as np

from eager.core import dtypes
from eager.core.tensor import Tensor
from eager.core.warned import warn_once
from eager.engine.language import E
from graphc.ops.dtypes import is_inexact

DISCARDS = "Casting complex values to real discards the imaginary part"


def cast_to(x: Tensor, dtype: Any) -> Tensor:
    """`x` in the torch dtype `dtype`, itself if it has it or `dtype` is None; the cast is recorded."""
    if dtype is None:
        return x
    return converted(x, dtypes.to_numpy(dtype))


def warn_of_loss(x: Tensor, wanted: np.dtype) -> bool:
    """Say, once, that complex numbers lose their imaginary part if they are cast to `wanted`. Whether they do."""
    lost = x._dtype().kind == "c" and wanted.kind not in "cb"
    if lost:
        warn_once(DISCARDS)
    return lost


def array_for(x: Tensor, wanted: np.dtype) -> np.ndarray:
    """The array of `x`, which is to be written where `wanted` is: without imaginary part, if that is lost."""
    return x._array().real if warn_of_loss(x, wanted) else x._array()


def converted(x: Tensor, wanted: np.dtype) -> Tensor:
    """`x` in the NumPy dtype `wanted`, itself if it has it; the cast is recorded unless nothing flows through it."""
    if x._dtype() == wanted:
        return x
    warn_of_loss(x, wanted)
    return E.cast(x if x._n is None or is_inexact(wanted) else E.stop_gradient(x), dtype=wanted)
