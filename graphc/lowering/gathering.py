"""Gathers along an axis that is not the first one, with indices for those before it, too.

XLA lays the result of a gather out with what is picked first. Where it is not read by a loop it is copied then, against
the order in memory: 3 to 5 times what the gather takes (seen in jaxlib 0.10, of programs with several results).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp

from graphc.lowering.sharding import divided
from graphc.ops import OPS


def index(x: Any, *indices: Any, spec: Sequence[int | None]) -> Any:
    places = [axis for axis, s in enumerate(spec) if s is not None]
    first, rank = places[0], max(i.ndim for i in indices)
    before = x.shape[:first]
    adjacent = places == list(range(first, places[-1] + 1))
    if not (first and adjacent and all(type(n) is int for n in before)) or divided() is not None:
        return _INDEX(jnp, x, *indices, spec=spec)
    rows = [jnp.arange(n).reshape((n,) + (1,) * (first - axis - 1 + rank)) for axis, n in enumerate(before)]
    return x[(*rows, *[indices[s] for s in spec[first:] if s is not None])]


_INDEX: Any = OPS["index"].impl
OVERRIDES = {"index": index}
