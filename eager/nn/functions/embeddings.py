"""Tables of vectors. As `torch.nn.functional.embedding`."""

from __future__ import annotations

import math
from typing import Any

from eager.core.dtypes import type_name
from eager.core.grad_mode import no_grad
from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.engine.node_names import whole
from eager.functional.arguments import shape_of
from eager.functional.gathering import scatter_add
from eager.functional.slices import inside as within
from eager.linalg.norms import vector_norm
from graphc.ops.dtypes import FLOAT64, INT32, INT64
from graphc.ops.index import OUT_OF_RANGE
from graphc.ops.rules import torch_name

__all__ = ["embedding"]


def check_indices(indices: Any, name: str) -> None:
    shape_of(indices, name, "indices", 2)
    if indices._dtype() not in (INT32, INT64):
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
            f"torch.{torch_name(indices._dtype())}Tensor instead (while checking arguments for {name})"
        )


def padding_row(padding_idx: int | None, weight: Tensor) -> int | None:
    if padding_idx is None:
        return None
    rows = weight._d.shape[0]
    if not -rows <= padding_idx < rows:
        raise AssertionError("Padding_idx must be within num_embeddings")
    return padding_idx % rows


def shorten(weight: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> None:
    """Scale the rows of `weight` that are looked up and longer than `max_norm` to that length, in place."""
    flat = E.reshape(indices, shape=(math.prod(indices._d.shape),))
    with no_grad():
        rows = E.index(weight, flat, spec=(0,))
        lengths = vector_norm(E.cast(rows, dtype=FLOAT64), norm_type, 1, keepdim=True)
        factors = E.where(E.gt(lengths, max_norm), E.div(max_norm, E.add(lengths, 1e-7)), 1.0)
        # equal indices write equal rows
        weight.index_put_((flat,), E.mul(rows, E.cast(factors, dtype=rows._dtype())))  # type: ignore[attr-defined]


def unrare(rows: Tensor, indices: Tensor, count: int) -> Tensor:
    """`rows` with gradients divided by how often their index, of `count`, occurs."""
    flat = E.reshape(indices, shape=(math.prod(indices._d.shape),))
    zeros = E.full(shape=(count,), value=0, dtype=rows._dtype())
    ones = E.full(shape=tuple(flat._d.shape), value=1, dtype=rows._dtype())
    times = E.index(scatter_add(zeros, 0, E.cast(flat, dtype=INT64), ones), indices, spec=(0,))
    share = E.reshape(E.reciprocal(times), shape=(*indices._d.shape, 1))
    return E.add(E.mul(rows, share), E.stop_gradient(E.sub(rows, E.mul(rows, share))))


@whole("EmbeddingBackward0")
def embedding(input: Tensor, weight: Tensor, padding_idx: int | None = None, max_norm: float | None = None,
              norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False) -> Tensor:  # fmt: skip
    """Rows of weight (V, D) at input (*) of integers: (*, D). The row `padding_idx` gets no gradient. As in PyTorch.

    Raises IndexError for an index outside [0, V). With `sparse`, the gradient of the weight is a sparse COO tensor.
    """
    padding_idx = padding_row(padding_idx, weight)
    if not isinstance(weight, Tensor):
        raise TypeError(f"embedding(): argument 'weight' (position 1) must be Tensor, not {type_name(weight)}")
    if len(weight._d.shape) != 2:
        raise RuntimeError("'weight' must be 2-D")
    check_indices(input, "embedding")
    input = within(input, weight._d.shape[0], lambda wrong: IndexError(OUT_OF_RANGE))
    if max_norm is not None:
        shorten(weight, input, max_norm, norm_type)
    if sparse:
        from eager.sparse.rows import look_up

        return look_up(weight, input, padding_idx, scale_grad_by_freq)
    rows = E.index(weight, input, spec=(0,))
    if scale_grad_by_freq:
        rows = unrare(rows, input, weight._d.shape[0])
    if padding_idx is None:
        return rows
    padding = E.reshape(E.eq(input, padding_idx), shape=(*input._d.shape, 1))
    return E.where(padding, E.stop_gradient(rows), rows)
