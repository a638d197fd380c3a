"""Matrices that are zero but for their diagonal: a choice at each place, where XLA's pad is a loop over elements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from graphc.ir.graph import Node
from graphc.ops import OPS

_RESHAPE, _PAD = OPS["reshape"], OPS["pad_zeros"]


def vector_of(node: Node, nodes: Mapping[int, Node], uses: Mapping[int, int]) -> int | None:
    """The vector that is the diagonal of the square matrix that a node is, as `torch.diag` makes it."""
    if node.op is not _RESHAPE or len(node.shape) != 2 or uses[node.inputs[0]] > 1:
        return None
    pad = nodes[node.inputs[0]]
    n = node.shape[0]
    if pad.op is not _PAD or type(n) is not int or node.shape != (n, n) or nodes[pad.inputs[0]].shape != (n,):
        return None
    return pad.inputs[0] if pad.params == {"low": (0,), "high": (0,), "interior": (n,)} else None


def diagonal_matrix(d: Any) -> Any:
    """The matrix with this diagonal."""
    n = d.shape[0]
    rows, columns = (lax.broadcasted_iota(np.dtype(np.int32), (n, n), k) for k in range(2))
    return jnp.where(rows == columns, d[:, None], np.zeros((), d.dtype))
