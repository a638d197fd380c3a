"""Remainders in loops over vectors have NumPy's bits."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from graphc.lowering.remainders import OVERRIDES
from graphc.ops import OPS
from tests.depth import one_in
from tests.ops.test_blocks import operands, same


@pytest.mark.filterwarnings("ignore:.*encountered in")
@pytest.mark.parametrize("dtype", one_in(2, [np.float32, np.float64], lambda t: t.__name__))
@pytest.mark.parametrize("name", OVERRIDES)
def test_remainders(name: str, dtype: type, rng: np.random.Generator) -> None:
    for what, (x, y) in operands(dtype, rng).items():
        if what == "denormal":  # XLA flushes them
            continue
        x, y = np.resize(x, 9000), np.resize(y, 9000) if y.ndim else y
        tiny = np.abs(x) < np.finfo(dtype).tiny
        x[tiny], y = 0, np.where(np.abs(y) < np.finfo(dtype).tiny, 0, y)
        with jax.enable_x64(True):
            same(np.asarray(jax.jit(OVERRIDES[name])(x, y)), OPS[name].kernel(x, np.broadcast_to(y, x.shape)))
