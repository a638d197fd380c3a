"""Tensors in another dtype, recorded where a gradient may flow."""

from __future__ import annotations

from typing import Any

import numpy as np

from eager.core import dtypes
from eager.core.tensor import Tensor
from eager.engine.language import E
from graphc.ops.dtypes import is_inexact


def cast_to(x: Tensor, dtype: Any) -> Tensor:
    """`x` in the torch dtype `dtype`, itself if it has it or `dtype` is None; the cast is recorded."""
    if dtype is None:
        return x
    return converted(x, dtypes.to_numpy(dtype))


def converted(x: Tensor, wanted: np.dtype) -> Tensor:
    """`x` in the NumPy dtype `wanted`, itself if it has it; the cast is recorded unless nothing flows through it."""
    if x._dtype() == wanted:
        return x
    return E.cast(x if x._n is None or is_inexact(wanted) else E.stop_gradient(x), dtype=wanted)
