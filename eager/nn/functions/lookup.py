"""Dropout, and tables of vectors. As in `torch.nn.functional`."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from eager.core.grad_mode import no_grad
from eager.core.sparse import is_sparse, not_implemented
from eager.core.tensor import Tensor
from eager.engine.inplace import assign
from eager.engine.language import E
from eager.engine.node_names import named, whole
from eager.functional.arguments import constant, shape_of
from eager.functional.arithmetic import clamp_min
from eager.functional.gathering import scatter_add
from eager.functional.precision import rounds_once
from eager.functional.slices import inside as within
from eager.functional.static import at_hand, required, valueless
from eager.linalg.norms import vector_norm
from eager.rng.sampling import sample, sample_like, source_of
from graphc.ops.dtypes import FLOAT64, INT32, INT64, is_floating, is_inexact
from graphc.ops.index import OUT_OF_RANGE
from graphc.ops.rules import torch_name

__all__ = [
    "alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d", "embedding", "embedding_bag",
    "feature_alpha_dropout",
]  # fmt: skip

SELU_LIMIT = -1.7580993408473766  # of selu, far left


def check_probability(p: float) -> None:
    """Raise PyTorch's ValueError unless 0 <= p <= 1."""
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def _into(input: Tensor, result: Tensor, inplace: bool) -> Tensor:
    return assign(input, result, "dropout") if inplace else result


def _check_dtype(input: Tensor) -> None:
    dtype = input._dtype()
    if not is_inexact(dtype):
        raise RuntimeError(f"result type Float can't be cast to the desired output type {torch_name(dtype)}")
    if dtype.kind == "c":
        raise NotImplementedError(f"\"bernoulli_scalar_cpu_\" not implemented for '{torch_name(dtype)}'")


def _kept(like: Tensor, shape: tuple[int, ...], p: float) -> Tensor:
    """Ones with probability 1 - p, else zeros."""
    if is_sparse(like):
        raise not_implemented("bernoulli_", like._d)
    kind = like._dtype()
    source = source_of(None, like)
    draw = lambda shape: source.bernoulli(shape, kind, 1 - p)
    if shape != tuple(like._d.shape):
        return sample(draw, shape, kind, source, like)
    return sample_like(draw, like, kind, source)


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Each element 0 with probability `p`, else divided by 1 - p; `input` itself if not `training`. As in PyTorch."""
    check_probability(p)
    return _dropped(input, tuple(shape_of(input, "dropout")), p, training, inplace)


def _dropped(input: Tensor, noise: tuple[int, ...], p: float, training: bool, inplace: bool) -> Tensor:
    if not training or p == 0:
        return input
    _check_dtype(input)
    if p == 1:
        return _into(input, E.mul(input, 0.0), inplace)
    return _into(input, E.mul(input, E.div(_kept(input, noise, p), 1 - p)), inplace)


def _by_channel(input: Tensor, p: float, training: bool, inplace: bool, unbatched: bool) -> Tensor:
    shape = tuple(input._d.shape)
    if len(shape) + unbatched < 2:
        if training:
            raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
        return input
    lead = (1, *shape) if unbatched else shape
    if not unbatched or not training or not p > 0:
        return _dropped(input, (*lead[:2], *(1,) * (len(lead) - 2)), p, training, inplace)
    batch = E.reshape(input, shape=lead)
    result = _dropped(batch, (*lead[:2], *(1,) * (len(lead) - 2)), p, True, False)
    return _into(input, named(E.reshape(result, shape=shape), "SqueezeBackward1"), inplace)


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Whole channels of (N, C, L) or (C, L) dropped. As `torch.nn.functional.dropout1d`."""
    check_probability(p)
    ndim = len(shape_of(input, "dropout1d"))
    if ndim not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {ndim}D input. Note that dropout1d exists to provide "
            "channel-wise dropout on inputs with 1 spatial dimension, a channel dimension, and an optional batch "
            "dimension (i.e. 2D or 3D inputs)."
        )
    return _by_channel(input, p, training, inplace, ndim == 2)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Whole channels of (N, C, H, W) dropped; (N, C, L) is taken for signals. As `torch.nn.functional.dropout2d`."""
    check_probability(p)
    ndim = len(shape_of(input, "dropout2d"))
    if ndim not in (3, 4):
        warnings.warn(
            f"dropout2d: Received a {ndim}-D input to dropout2d, which is deprecated and will result in an error in a "
            "future release. To retain the behavior and silence this warning, please use dropout instead. Note that "
            "dropout2d exists to provide channel-wise dropout on inputs with 2 spatial dimensions, a channel "
            "dimension, and an optional batch dimension (i.e. 3D or 4D inputs).",
            stacklevel=2,
        )
    if ndim == 3:
        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is desired "
            "- input is interpreted as shape (N, C, L), where C is the channel dim. This behavior will change in a "
            "future release to interpret the input as one without a batch dimension, i.e. shape (C, H, W). To maintain "
            "the 1D channel-wise dropout behavior, please switch to using dropout1d instead.",
            stacklevel=2,
        )
    return _by_channel(input, p, training, inplace, False)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Whole channels of (N, C, D, H, W) or (C, D, H, W) dropped. As `torch.nn.functional.dropout3d`."""
    check_probability(p)
    ndim = len(shape_of(input, "dropout3d"))
    if ndim not in (4, 5):
        warnings.warn(
            f"dropout3d: Received a {ndim}-D input to dropout3d, which is deprecated and will result in an error in a "
            "future release. To retain the behavior and silence this warning, please use dropout instead. Note that "
            "dropout3d exists to provide channel-wise dropout on inputs with 3 spatial dimensions, a channel "
            "dimension, and an optional batch dimension (i.e. 4D or 5D inputs).",
            stacklevel=2,
        )
    return _by_channel(input, p, training, inplace, ndim != 5)


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout to selu's limit that keeps mean 0 and variance 1. As `torch.nn.functional.alpha_dropout`."""
    check_probability(p)
    return _alpha_dropped(input, tuple(shape_of(input, "alpha_dropout")), p, training, inplace)


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """`alpha_dropout` of whole channels. As `torch.nn.functional.feature_alpha_dropout`."""
    check_probability(p)
    shape = tuple(shape_of(input, "feature_alpha_dropout"))
    if training and len(shape) < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    return _alpha_dropped(input, (*shape[:2], *(1,) * (len(shape) - 2)), p, training, inplace)


def _alpha_dropped(input: Tensor, noise: tuple[int, ...], p: float, training: bool, inplace: bool) -> Tensor:
    if not training or p == 0:
        return input
    _check_dtype(input)
    if p == 1:
        return _into(input, E.mul(input, 0.0), inplace)
    scale = 1.0 / math.sqrt((SELU_LIMIT**2 * p + 1) * (1 - p))
    kept = _kept(input, noise, p)
    shift = E.add(E.mul(E.add(kept, -1), -SELU_LIMIT * scale), -SELU_LIMIT * scale * p)
    return _into(input, E.add(E.mul(input, E.mul(kept, scale)), shift), inplace)


# --- tables


def _check_indices(indices: Any, name: str, position: int = 2) -> None:
    shape_of(indices, name, "indices", position)
    if indices._dtype() not in (INT32, INT64):
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
            f"torch.{torch_name(indices._dtype())}Tensor instead (while checking arguments for {name})"
        )


def _padding_row(padding_idx: int | None, weight: Tensor) -> int | None:
    if padding_idx is None:
        return None
    rows = weight._d.shape[0]
    if not -rows <= padding_idx < rows:
        raise AssertionError("Padding_idx must be within num_embeddings")
    return padding_idx % rows


def _shortened(weight: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> None:
    """Scale the rows of `weight` that are looked up and longer than `max_norm` to that length, in place."""
    flat = E.reshape(indices, shape=(math.prod(indices._d.shape),))
    with no_grad():
        rows = E.index(weight, flat, spec=(0,))
        lengths = vector_norm(E.cast(rows, dtype=FLOAT64), norm_type, 1, keepdim=True)
        factors = E.where(E.gt(lengths, max_norm), E.div(max_norm, E.add(lengths, 1e-7)), 1.0)
        # equal indices write equal rows
        weight.index_put_((flat,), E.mul(rows, E.cast(factors, dtype=rows._dtype())))  # type: ignore[attr-defined]


def _unrare(rows: Tensor, indices: Tensor, count: int) -> Tensor:
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
    padding_idx = _padding_row(padding_idx, weight)
    _check_indices(input, "embedding")
    if len(weight._d.shape) != 2:
        raise RuntimeError("'weight' must be 2-D")
    input = within(input, weight._d.shape[0], lambda wrong: IndexError(OUT_OF_RANGE))
    if max_norm is not None:
        _shortened(weight, input, max_norm, norm_type)
    if sparse:
        from eager.sparse.rows import look_up

        return look_up(weight, input, padding_idx, scale_grad_by_freq)
    rows = E.index(weight, input, spec=(0,))
    if scale_grad_by_freq:
        rows = _unrare(rows, input, weight._d.shape[0])
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
    ndim = len(shape_of(input, "embedding_bag"))
    if per_sample_weights is not None and per_sample_weights._d.shape != input._d.shape:
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then it must have the "
            f"same shape as the input ({input.shape})"
        )
    if ndim == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length "
                "sequences. However, found offsets of type <class 'torch.Tensor'>"
            )
        bags, length = input._d.shape
        starts = np.arange(bags) * length
        count = bags * length
    elif ndim == 1:
        if offsets is None:
            raise ValueError("offsets has to be a 1D Tensor but got None")
        if len(offsets._d.shape) != 1:
            raise ValueError("offsets has to be a 1D Tensor")
        count = input._d.shape[0]
        starts = np.zeros(offsets._d.shape, np.int64) if valueless(offsets) else offsets._known()
        if include_last_offset and not starts.size:
            raise RuntimeError("include_last_offset: number of offset should be at least 1")
        if starts.size and starts[0] != 0:
            raise RuntimeError(
                "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. "
                f"However, got {int(starts[0])}\n[ torch.{torch_name(starts.dtype)}Tensor{{}} ]"
            )
        if starts.size and starts[-1] > count:
            raise RuntimeError(
                f"offsets[-1] can not be greater than input's length {count} but got offsets[-1] of {int(starts[-1])}"
            )
    else:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {ndim}")
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' (got "
            f"mode='{mode}'). Please open a feature request on GitHub."
        )
    _check_indices(input, "embedding_bag")
    if ndim == 1:
        _check_indices(offsets, "embedding_bag")
    if not is_floating(weight._dtype()):
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have one of the following scalar types: Half, BFloat16, "
            f"Float, Double; but got torch.{torch_name(weight._dtype())}Tensor instead (while checking arguments for "
            "embedding_bag)"
        )
    if per_sample_weights is not None and per_sample_weights._dtype() != weight._dtype():
        names = torch_name(weight._dtype()), torch_name(per_sample_weights._dtype())
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have the same type as tensor for argument #1 "
            "'per_sample_weights'; but type torch.{}Tensor does not equal torch.{}Tensor (while checking arguments for "
            "embedding_bag)".format(*names)
        )
    rows = weight._d.shape[0]
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
    padding_idx = _padding_row(padding_idx, weight)
    if max_norm is not None:
        _shortened(weight, input, max_norm, norm_type)
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


def _members(starts: np.ndarray, stops: np.ndarray) -> tuple[Tensor, np.ndarray]:
    """(which places of a row belong to the bag, the places), both (bags, the longest bag)."""
    lengths = stops - starts
    longest = int(lengths.max(initial=0))
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
def _bagged(weight: Tensor, input: Tensor, inside: Tensor, table: np.ndarray, mode: str, factors: Tensor | None,
            scale_grad_by_freq: bool, padding_idx: int | None, looked_up: Tensor | None) -> Tensor:  # fmt: skip
    # looked_up: the row of each index, if the gradient is to be sparse
    if not table.size:
        return E.mul(E.full(shape=(len(table), weight._d.shape[1]), value=0, dtype=weight._dtype()), 1)
    chosen = E.index(input, Tensor._wrap(table), spec=(0,))  # (bags, longest)
    source, places = (weight, chosen) if looked_up is None else (looked_up, Tensor._wrap(table))
    rows = E.index(source, places, spec=(0,))
    if scale_grad_by_freq and looked_up is None:
        flat = E.index(weight, input, spec=(0,))
        rows = E.index(_unrare(flat, input, weight._d.shape[0]), Tensor._wrap(table), spec=(0,))
    counted = inside
    if padding_idx is not None:
        counted = E.bitwise_and(counted, E.ne(chosen, padding_idx))
    mask = E.reshape(counted, shape=(*table.shape, 1))
    zero = constant(0, rows)
    if mode == "max":
        low = E.where(mask, rows, constant(-math.inf, rows))
        best = E.argmax(E.stop_gradient(low), axis=1, keepdims=True)
        picked = E.reshape(E.gather(rows, best, axis=1), shape=(len(table), weight._d.shape[1]))
        return E.where(E.any(mask, axis=(1,), keepdims=False), picked, zero)
    if factors is not None:
        share = E.index(E.reshape(factors, shape=tuple(input._d.shape)), Tensor._wrap(table), spec=(0,))
        rows = E.mul(rows, E.reshape(share, shape=(*table.shape, 1)))
    total = E.sum(E.where(mask, rows, zero), axis=(1,), keepdims=False)
    if mode == "sum":
        return total
    number = E.sum(E.cast(mask, dtype=rows._dtype()), axis=(1,), keepdims=False)
    return E.div(total, clamp_min(number, 1))
