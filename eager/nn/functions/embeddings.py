"""Embeddings, and sums and means of bags of them. As in `torch.nn.functional`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from eager.core.dtypes import type_name
from eager.core.grad_mode import no_grad
from eager.core.tensor import Tensor
from eager.core.warned import warn
from eager.engine.language import E
from eager.engine.node_names import whole
from eager.functional.arguments import constant, shape_of
from eager.functional.arithmetic import clamp_min
from eager.functional.gathering import scatter_add
from eager.functional.precision import rounds_once
from eager.functional.slices import inside as within
from eager.functional.static import at_hand, required, valueless
from eager.linalg.norms import vector_norm
from graphc.ops.dtypes import FLOAT64, INT32, INT64, is_floating
from graphc.ops.index import OUT_OF_RANGE
from graphc.ops.rules import torch_name

__all__ = ["embedding", "embedding_bag"]


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


@whole("EmbeddingBagBackward0")
def embedding_bag(input: Tensor, weight: Tensor, offsets: Tensor | None = None, max_norm: float | None = None,
                  norm_type: float = 2, scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False,
                  per_sample_weights: Tensor | None = None, include_last_offset: bool = False,
                  padding_idx: int | None = None) -> Tensor:  # fmt: skip
    """The sum, mean or max of the rows of weight (V, D) in each bag: (bags, D). As `torch.nn.functional.embedding_bag`.

    Bags are the rows of a 2-D input, or begin at `offsets` in a 1-D one. With `sparse`, the gradient of the
    weight is a sparse COO tensor.
    """
    if weight._dtype() == INT64 and is_floating(input._dtype()):
        warn(
            "Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, input, ...)` is "
            "deprecated, and should now be `embedding_bag(input, weight, ...)`."
        )
        input, weight = weight, input
    shape = shape_of(input, "embedding_bag")
    include_last_offset = include_last_offset and len(shape) != 2
    if per_sample_weights is not None and per_sample_weights._d.shape != shape:
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then it must have the "
            f"same shape as the input ({input.shape})"
        )
    starts = _starts(shape, offsets, include_last_offset)
    _check_mode(mode, sparse, scale_grad_by_freq, per_sample_weights is not None)
    check_indices(input, "embedding_bag")
    if offsets is not None:
        check_indices(offsets, "embedding_bag")
    _check_weights(weight, per_sample_weights)
    _check_rows(input, weight._d.shape[0], padding_idx)
    padding_idx = padding_row(padding_idx, weight)
    if max_norm is not None:
        shorten(weight, input, max_norm, norm_type)
    count = math.prod(shape)
    if offsets is not None and valueless(offsets):
        inside, table = _traced_members(offsets, count, include_last_offset)
    else:
        stops = starts[1:] if include_last_offset else np.append(starts[1:], count)
        inside, table = _members(starts[:-1] if include_last_offset else starts, stops)
    flat = E.reshape(input, shape=(count,))
    looked_up = None
    if sparse:
        from eager.sparse.rows import look_up

        looked_up = look_up(weight, flat, padding_idx, scale_grad_by_freq)
    return _bagged(weight, flat, inside, table, mode, per_sample_weights, scale_grad_by_freq, padding_idx, looked_up)


def _starts(shape: tuple[int, ...], offsets: Tensor | None, include_last_offset: bool) -> np.ndarray:
    """Where each bag begins in the flat input; zeros if that is not known yet. Raises PyTorch's errors."""
    if len(shape) == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length "
                "sequences. However, found offsets of type <class 'torch.Tensor'>"
            )
        return np.arange(shape[0]) * shape[1]
    if len(shape) != 1:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {len(shape)}")
    if offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    if len(offsets._d.shape) != 1:
        raise ValueError("offsets has to be a 1D Tensor")
    starts = np.zeros(offsets._d.shape, np.int64) if valueless(offsets) else offsets._known()
    if include_last_offset and not starts.size:
        raise RuntimeError("include_last_offset: number of offset should be at least 1")
    if starts.size and starts[0] != 0:
        raise RuntimeError(
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. "
            f"However, got {int(starts[0])}\n[ torch.{torch_name(starts.dtype)}Tensor{{}} ]"
        )
    if starts.size and starts[-1] > shape[0]:
        raise RuntimeError(
            f"offsets[-1] can not be greater than input's length {shape[0]} but got offsets[-1] of {int(starts[-1])}"
        )
    return starts


def _check_mode(mode: str, sparse: bool, scale_grad_by_freq: bool, weighted: bool) -> None:
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if weighted and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' (got "
            f"mode='{mode}'). Please open a feature request on GitHub."
        )


def _check_weights(weight: Tensor, per_sample_weights: Tensor | None) -> None:
    dtype = weight._dtype()
    if not is_floating(dtype):
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have one of the following scalar types: Half, BFloat16, "
            f"Float, Double; but got torch.{torch_name(dtype)}Tensor instead (while checking arguments for "
            "embedding_bag)"
        )
    if per_sample_weights is not None and per_sample_weights._dtype() != dtype:
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have the same type as tensor for argument #1 "
            f"'per_sample_weights'; but type torch.{torch_name(dtype)}Tensor does not equal "
            f"torch.{torch_name(per_sample_weights._dtype())}Tensor (while checking arguments for embedding_bag)"
        )


def _check_rows(input: Tensor, rows: int, padding_idx: int | None) -> None:
    data = at_hand(input)
    if data is not None:
        outside = np.flatnonzero((data < 0) | (data >= rows))
        if outside.size:
            raise RuntimeError(
                f"Index {outside[0]} of input takes value {data.reshape(-1)[outside[0]]} which is not in the valid "
                f"range [0, {rows})"
            )
    if padding_idx is not None and not -rows <= padding_idx < rows:
        raise RuntimeError(
            f"padding_idx must be within the number of embeddings, {-rows} through {rows - 1}, but got {padding_idx}"
        )


def _members(starts: np.ndarray, stops: np.ndarray) -> tuple[Tensor | None, np.ndarray]:
    """(which places of a row belong to the bag, None if all; the places), both (bags, the longest bag)."""
    lengths = stops - starts
    longest = int(lengths.max(initial=0))
    if longest == lengths.min(initial=longest):
        return None, starts[:, None] + np.arange(longest)
    inside = np.arange(longest) < lengths[:, None]
    return Tensor._wrap(inside), np.where(inside, starts[:, None] + np.arange(longest), 0)


def _traced_members(offsets: Tensor, count: int, include_last_offset: bool) -> tuple[Tensor, np.ndarray]:
    """`_members`, of bags of unknown places: each row has all `count` places."""
    size = offsets._d.shape[0]
    if size:
        first, last = (E.slice(offsets, start=(k,), stop=(k + 1,), step=(1,)) for k in (0, size - 1))
        offsets = required(offsets, E.eq(first, 0), "offsets[0] has to be 0, i.e., the first sequence in the "
                           "mini-batch has to start from position 0.")  # fmt: skip
        offsets = required(offsets, E.le(last, count), "offsets[-1] can not be greater than input's length "
                           f"{count}")  # fmt: skip
    bags = size - include_last_offset
    places = np.arange(count)
    at = E.sub(E.searchsorted(E.cast(offsets, dtype=INT64), Tensor._wrap(places), right=True), 1)
    inside = E.eq(E.reshape(at, shape=(1, count)), Tensor._wrap(np.arange(bags)[:, None]))
    return inside, np.broadcast_to(places, (bags, count))


@rounds_once
def _bagged(weight: Tensor, input: Tensor, inside: Tensor | None, table: np.ndarray, mode: str, factors: Tensor | None,
            scale_grad_by_freq: bool, padding_idx: int | None, looked_up: Tensor | None) -> Tensor:  # fmt: skip
    # looked_up: the row of each index, if the gradient is to be sparse
    if not table.size:
        return E.mul(E.full(shape=(len(table), weight._d.shape[1]), value=0, dtype=weight._dtype()), 1)
    chosen = E.index(input, Tensor._wrap(table), spec=(0,))  # (bags, longest)
    source, places = (weight, chosen) if looked_up is None else (looked_up, Tensor._wrap(table))
    rows = E.index(source, places, spec=(0,))
    if scale_grad_by_freq and looked_up is None:
        flat = E.index(weight, input, spec=(0,))
        rows = E.index(unrare(flat, input, weight._d.shape[0]), Tensor._wrap(table), spec=(0,))
    counted = inside
    if padding_idx is not None:
        apart = E.ne(chosen, padding_idx)
        counted = apart if counted is None else E.bitwise_and(counted, apart)
    mask = None if counted is None else E.reshape(counted, shape=(*table.shape, 1))
    zero = constant(0, rows)
    if mode == "max":
        low = rows if mask is None else E.where(mask, rows, constant(-math.inf, rows))
        best = E.argmax(E.stop_gradient(low), axis=1, keepdims=True)
        picked = E.reshape(E.gather(rows, best, axis=1), shape=(len(table), weight._d.shape[1]))
        return picked if mask is None else E.where(E.any(mask, axis=(1,), keepdims=False), picked, zero)
    if factors is not None:
        share = E.index(E.reshape(factors, shape=tuple(input._d.shape)), Tensor._wrap(table), spec=(0,))
        rows = E.mul(rows, E.reshape(share, shape=(*table.shape, 1)))
    total = E.sum(rows if mask is None else E.where(mask, rows, zero), axis=(1,), keepdims=False)
    if mode == "sum":
        return total
    if mask is None:
        return E.div(total, table.shape[1])
    number = E.sum(E.cast(mask, dtype=rows._dtype()), axis=(1,), keepdims=False)
    return E.div(total, clamp_min(number, 1))
