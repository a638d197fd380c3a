"""`bitcast`: the bytes of an array as elements of another dtype."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from graphc.ops.aval import Aval
from graphc.ops.dtypes import FLOAT64, INT32
from graphc.ops.lens import Lens
from graphc.ops.references import everywhere
from graphc.ops.rounding import EXACT
from graphc.ops.rules import torch_name
from graphc.ops.samples import Sample
from graphc.ops.spec import Op, Rule, Trait, op
from graphc.ops.strides import of_bits


def _infer(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    (x,), dtype = avals, params["dtype"]
    have, want = x.dtype.itemsize, dtype.itemsize
    if have == want:
        return Aval(x.shape, dtype)
    names = torch_name(x.dtype), torch_name(dtype)
    if not x.shape:
        raise RuntimeError(f"self.dim() cannot be 0 to view {names[0]} as {names[1]} (different element sizes)")
    count = x.shape[-1] * have
    if count % want:
        raise RuntimeError(
            f"self.size(-1) must be divisible by {want // have} to view {names[0]} as {names[1]} (different element "
            f"sizes), but got {x.shape[-1]}"
        )
    return Aval((*x.shape[:-1], count // want), dtype)


def _viewed(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    plain = x.dtype.itemsize == dtype.itemsize or x.strides[-1:] == (x.itemsize,)
    return (x if plain else np.ascontiguousarray(x)).view(dtype)


@everywhere
def _from_bytes(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    shape = (*x.shape[:-1], x.shape[-1] * x.itemsize // dtype.itemsize)
    return np.frombuffer(x.tobytes(), dtype).reshape(shape)


bitcast = op(
    "bitcast", "input", params={"dtype": None}, impl=lambda xp, x, dtype: _viewed(x, dtype), numpy=_viewed,
    rule=Rule(_infer), traits=Trait.VIEW | Trait.BITS, ref=_from_bytes, label="View",
    rounding=EXACT, lens=Lens(lambda F, whole, part, dtype: F.bitcast(part, dtype=whole.dtype), of_bits),
    samples=(Sample((3, 4), dtype=np.dtype(np.int16)), Sample((3, 4), dtype=INT32), Sample((3, 4), dtype=FLOAT64)),
)  # fmt: skip
