"""Functions of several ops, computed in float32 where their operands have 16 bits.

One op on float16 or bfloat16 computes in float32 and rounds its result (`graphc.ops.interpret.run_kernel`). PyTorch's
kernels of whole functions, such as layer_norm, do the same once: what is between their steps is never rounded.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from eager.core.tensor import Tensor
from eager.engine.language import E
from graphc.ops.dtypes import FLOAT32, is_half


def rounds_once(function: Callable[..., Any] | None = None, *, keep: Collection[str] = ()) -> Any:
    """Decorator: if the first argument has 16 bits, Tensors of its dtype are widened, float32 results rounded back.

    Arguments named in `keep` are passed as they are, such
    as the statistics that batch_norm moves.
    """
    if function is None:
        return functools.partial(rounds_once, keep=keep)
    names = tuple(inspect.signature(function).parameters)

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        first = args[0] if args else kwargs.get(names[0])
        if not isinstance(first, Tensor) or not is_half(first._dtype()):
            return function(*args, **kwargs)
        dtype = first._dtype()
        wide = [_widened(x, dtype) if name not in keep else x for name, x in zip(names, args, strict=False)]
        wide += args[len(names) :]
        named = {name: _widened(x, dtype) if name not in keep else x for name, x in kwargs.items()}
        return _rounded(function(*wide, **named), dtype)

    return wrapper


def _widened(x: Any, dtype: np.dtype) -> Any:
    if isinstance(x, (list, tuple)) and any(isinstance(item, Tensor) for item in x):
        return type(x)(_widened(item, dtype) for item in x)
    return E.cast(x, dtype=FLOAT32) if isinstance(x, Tensor) and x._dtype() == dtype else x


def _rounded(result: Any, dtype: Any) -> Any:
    if isinstance(result, Tensor):
        return E.cast(result, dtype=dtype) if result._dtype() == FLOAT32 else result
    if isinstance(result, tuple):
        parts = [_rounded(item, dtype) for item in result]
        return type(result)(*parts) if hasattr(result, "_fields") else tuple(parts)
    return result
