"""Tensors that share memory in part: what PyTorch refuses, as its kernels would read what they have just written."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from eager.core.tensor import Tensor
from graphc.ops.spec import OPS

OVERLAP = (
    "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory "
    "location. Please clone() the tensor before performing the operation."
)
# beside the pointwise ops of the registry, the functions that refuse an output which is a part of an input
_REFUSING = frozenset(
    "add addcdiv addcmul addr cat clamp clamp_max clamp_min clip column_stack concat concatenate cross cumprod cumsum "
    "deg2rad div dstack float_power fmax fmin frac gather gelu hardshrink heaviside hstack igamma igammac index_add "
    "index_copy index_reduce index_select kron ldexp lerp linalg_cross logcumsumexp logit masked_select msort "
    "nan_to_num normal outer polygamma pow rad2deg renorm round row_stack scatter scatter_add scatter_reduce sgn "
    "softplus softshrink stack sub take take_along_dim vstack where".split()
)
# those that refuse the input itself as well
_STRICT = frozenset(("cross", "gather", "index_select", "linalg_cross", "take", "take_along_dim"))


def check_overlap(name: str, given: Iterable[Tensor], out: Tensor) -> None:
    """Raise PyTorch's RuntimeError if function `name` does not write `out` while it reads the tensors `given`."""
    target: Any = out._d
    if target.__class__ is not np.ndarray:
        return
    for x in given:
        source: Any = x._d
        if source.__class__ is not np.ndarray or (source.base is None and target.base is None and source is not target):
            continue
        if np.may_share_memory(source, target) and _refused(name, source, target):
            raise RuntimeError(OVERLAP)


def _refused(name: str, source: np.ndarray, target: np.ndarray) -> bool:
    if name in _STRICT:
        return True
    if name not in _REFUSING and not (name in OPS and OPS[name].pointwise):
        return False
    same = source.strides == target.strides and source.shape == target.shape and _start(source) == _start(target)
    return not same and _is_dense(source) and _is_dense(target)


def _start(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def _is_dense(array: np.ndarray) -> bool:
    """Whether the elements lie in one stretch of memory, each once: PyTorch looks no further into others."""
    low, high = byte_bounds(array)
    return high - low == array.nbytes
