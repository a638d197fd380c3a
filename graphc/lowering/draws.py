"""Random numbers that are drawn while a JAX program runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graphc.lowering.callbacks import on_host
from graphc.ops.draws import draw


def _draw(state: Any, *inputs: Any, sampler: Any, shape: tuple[int, ...], dtype: np.dtype) -> tuple[Any, ...]:
    kernel = lambda *arrays: draw.kernel(*arrays, sampler=sampler, shape=shape, dtype=dtype)
    results = [(tuple(shape), np.dtype(dtype)), (state.shape, state.dtype)]
    return tuple(on_host(kernel, results, state, *inputs, vmap_method="sequential"))


OVERRIDES: dict[str, Callable[..., Any]] = {draw.name: _draw}
