"""Tensors made without the public creation functions, so that tests of the engine rest on the engine alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from eager.core.tensor import Tensor
from eager.engine.language import E


def tensor(values: Any, dtype: Any = np.float64) -> Tensor:
    """A Tensor that requires no grad; an array is not copied."""
    return Tensor._wrap(values if isinstance(values, np.ndarray) else np.array(values, dtype))


def leaf(values: Any, dtype: Any = np.float64) -> Tensor:
    """A Tensor that requires grad; an array is not copied."""
    return tensor(values, dtype).requires_grad_()


def total(t: Tensor) -> Tensor:
    """The sum of all elements, a 0-d Tensor."""
    return E.sum(t, axis=tuple(range(len(t._d.shape))), keepdims=False)


def values(t: Tensor | None) -> Any:
    """The elements as nested lists; None for None."""
    return None if t is None else t._array().tolist()
