"""Counting: unique elements, and numbers; and places in sorted sequences."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.functional.arguments import axis_of, shape_of
from eager.functional.counted import largest, number, ranks, runs, starts, unknown
from eager.functional.elementwise import underivable, wants_gradient
from eager.functional.gathering import numel
from eager.functional.outputs import with_out
from eager.functional.shapes import movedim
from eager.functional.slices import outside
from eager.functional.static import required
from graphc.ops.dtypes import FLOAT32, FLOAT64, INT32, INT64, of_scalar
from graphc.ops.rules import torch_name


# unique elements: how many there are depends on the values
def unique(input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False,
           dim: int | None = None) -> Any:  # fmt: skip
    """The different elements in order, or slices along `dim`; where each element of `input` is among them, and how many
    there are of each, if asked for. As `torch.unique`. A graph is for one number of them."""
    shape = shape_of(input, "unique")
    axis = None if dim is None else axis_of(dim, len(shape))
    _check_unique(input, dim, axis)
    if unknown(input) and numel(shape):
        rows = _rows(input, axis)
        rank = ranks(rows)
        order = E.argsort(rank, axis=0, descending=False)
        line = E.index(rank, order, spec=(0,))
        first, counts, _ = runs(starts(E.reshape(line, shape=(line._d.shape[0], 1))), "unique")
        found = E.index(rows, E.index(order, first, spec=(0,)), spec=(0,))
        return _results(input, "_unique2" if axis is None else "unique_dim", axis, found, rank, counts,
                        return_inverse, return_counts)  # fmt: skip
    array = input._values_for("unique")
    if axis is not None and not shape[axis]:
        found, inverse, counts = array, np.zeros(0, np.int64), np.zeros(0, np.int64)
    else:
        found, inverse, counts = np.unique(array, return_inverse=True, return_counts=True, axis=axis, equal_nan=False)
    inverse = inverse.reshape(shape if axis is None else -1)
    name = "_unique2" if axis is None else "unique_dim"
    return _asked_for(_made_of(input, name, found), inverse, counts, return_inverse, return_counts)


# what PyTorch calls the nodes of functions without a derivative
_NODES = {"_unique2": "Unique2", "unique_dim": "UniqueDim", "unique_consecutive": "UniqueConsecutive"}


def _made_of(input: Tensor, name: str, found: np.ndarray) -> Tensor:
    """`found` as the result of function `name`, which has no derivative, of `input`."""
    return _without_derivative(input, name, Tensor._wrap(np.asarray(found)))


def _without_derivative(input: Tensor, name: str, values: Tensor) -> Tensor:
    if not wants_gradient(input):
        return values
    error = NotImplementedError(f"the derivative for '{name}' is not implemented.")
    return underivable(lambda _: values, f"{_NODES[name]}Backward0", error, input)


def _check_unique(input: Tensor, dim: int | None, axis: int | None) -> None:
    shape = input._d.shape
    if input._dtype().kind == "c":
        raise NotImplementedError(f"\"unique\" not implemented for '{torch_name(input._dtype())}'")
    if axis is not None and not shape:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    if axis is not None and 0 in (*shape[:axis], *shape[axis + 1 :]):
        raise RuntimeError("There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")


def unique_consecutive(input: Tensor, return_inverse: bool = False, return_counts: bool = False,
                       dim: int | None = None) -> Any:  # fmt: skip
    """`input` without elements (or slices along `dim`) that equal the one before. As `torch.unique_consecutive`."""
    shape = shape_of(input, "unique_consecutive")
    axis = None if dim is None else axis_of(dim, len(shape))
    _check_unique(input, dim, axis)
    if unknown(input) and numel(shape):
        lines = _rows(input, axis)
        first, counts, inside = runs(starts(lines), "unique_consecutive")
        found = E.index(lines, first, spec=(0,))
        return _results(input, "unique_consecutive", axis, found, inside, counts, return_inverse, return_counts)
    array = input._values_for("unique_consecutive")
    rows: Any = array.reshape(-1) if axis is None else np.moveaxis(array, axis, 0)
    new = np.ones(len(rows), bool)
    differs: Any = rows[1:] != rows[:-1]
    new[1:] = differs.reshape(len(differs), math.prod(differs.shape[1:])).any(1)
    found = rows[new] if axis is None else np.moveaxis(rows[new], 0, axis)
    inverse = np.cumsum(new) - 1
    counts = np.diff(np.append(np.flatnonzero(new), len(rows)))
    inverse = inverse.reshape(shape) if axis is None else inverse
    values = _made_of(input, "unique_consecutive", np.ascontiguousarray(found))
    return _asked_for(values, inverse, counts, return_inverse, return_counts)


def _rows(input: Tensor, axis: int | None) -> Tensor:
    """What is compared, a row each, without history: the elements, or the slices along `axis`."""
    x = E.stop_gradient(input)
    if axis is None:
        return E.reshape(x, shape=(numel(x._d.shape), 1))
    moved = movedim(x, axis, 0)
    return E.reshape(moved, shape=(moved._d.shape[0], numel(moved._d.shape[1:])))


def _results(
    input: Tensor, name: str, axis: int | None, found: Tensor, inverse: Tensor, counts: Tensor, return_inverse: bool,
    return_counts: bool,
) -> Any:  # fmt: skip
    """What a function returns that has `found` these rows."""
    shape = tuple(input._d.shape)
    if axis is None:
        found, inverse = E.reshape(found, shape=(found._d.shape[0],)), E.reshape(inverse, shape=shape)
    else:
        rest = (*shape[:axis], *shape[axis + 1 :])
        found = movedim(E.reshape(found, shape=(found._d.shape[0], *rest)), 0, axis)
    asked = [x for x, wanted in ((inverse, return_inverse), (counts, return_counts)) if wanted]
    results = _without_derivative(input, name, found)
    return (results, *asked) if asked else results


def _asked_for(found: Tensor, inverse: Any, counts: Any, return_inverse: bool, return_counts: bool) -> Any:
    asked = [x for x, wanted in ((inverse, return_inverse), (counts, return_counts)) if wanted]
    results = [Tensor._wrap(np.asarray(x, np.int64)) for x in asked]
    return (found, *results) if results else found


def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """The indices of the first `size` nonzero elements, rows of `fill_value` where there are fewer.

    As `torch.nonzero_static`. RuntimeError for a negative `size`.
    """
    shape = tuple(shape_of(input, "nonzero_static"))
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    count = numel(shape)
    if not shape or not count or not size:
        return Tensor._wrap(np.full((size, len(shape)), fill_value, np.int64))
    hit = E.reshape(E.ne(input, 0), shape=(count,))
    order = E.argsort(E.cast(E.logical_not(hit), dtype=INT32), axis=0, descending=False)
    at = E.index(order, Tensor._wrap(np.minimum(np.arange(size), count - 1)), spec=(0,))
    known = E.lt(Tensor._wrap(np.arange(size)), E.sum(hit, axis=(0,), keepdims=False))
    table = Tensor._wrap(np.stack(np.unravel_index(np.arange(count), shape), 1).astype(np.int64))
    return E.where(E.reshape(known, shape=(size, 1)), E.index(table, at, spec=(0,)), fill_value)


def _side(right: bool, side: str | None) -> bool:
    if side not in (None, "left", "right"):
        raise RuntimeError(f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise RuntimeError(
            "torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True"
        )
    return right or side == "right"


def _alike(*tensors: Tensor) -> list[Tensor]:
    common = np.result_type(*(t._dtype() for t in tensors))
    return [t if t._dtype() == common else E.cast(t, dtype=common) for t in tensors]


@functools.partial(with_out, "searchsorted")
def searchsorted(sorted_sequence: Tensor, input: Any, *, out_int32: bool = False, right: bool = False,
                 side: str | None = None, sorter: Tensor | None = None) -> Tensor:  # fmt: skip
    """Where each value would have to be put in for `sorted_sequence` to stay sorted along its last dim.

    `right`: behind equal elements. `sorter`: the indices that sort the sequence. As `torch.searchsorted`.
    """
    shape = tuple(shape_of(sorted_sequence, "searchsorted", "sorted_sequence"))
    right = _side(right, side)
    if not isinstance(input, Tensor):
        input = Tensor._wrap(np.array(input, np.result_type(of_scalar(input), sorted_sequence._dtype())))
        check = ()
    else:
        check = tuple(input._d.shape)
    if not shape:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension"
        )
    if not check and len(shape) != 1:
        raise RuntimeError(
            "torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, but we got "
            f"boundaries tensor dim({len(shape)}) and input value's dim(0) numel(1)"
        )
    if len(shape) > 1 and shape[:-1] != check[:-1]:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries "
            f"tensor and input value tensor must match, but we got boundaries tensor {list(shape)} and input value "
            f"tensor {list(check)}"
        )
    if sorter is not None:
        if sorter._dtype() != INT64:
            raise RuntimeError(
                "torch.searchsorted(): sorter must be a tensor of long dtype but got dtype "
                f"{torch_name(sorter._dtype())}"
            )
        if tuple(sorter._d.shape) != shape:
            raise RuntimeError(
                "torch.searchsorted(): boundary and sorter must have the same size, but got boundary tensor "
                f"{list(shape)}and got sorter tensor {list(sorter._d.shape)}"
            )
        if outside(sorter, shape[-1]) is not None:  # pyright: ignore[reportGeneralTypeIssues]
            raise RuntimeError("torch.searchsorted(): sorter index out of range")
        sorted_sequence = E.gather(sorted_sequence, sorter, axis=len(shape) - 1)
    found = E.searchsorted(*(E.stop_gradient(t) for t in _alike(sorted_sequence, input)), right=right)
    return E.cast(found, dtype=INT32) if out_int32 else found


@functools.partial(with_out, "bucketize")
def bucketize(input: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """The index of the bucket between `boundaries` that each value falls into. As `torch.bucketize`."""
    shape = shape_of(boundaries, "bucketize", "boundaries", 2)
    if len(shape) != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({len(shape)})")
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each number from 0 on occurs, or the sum of its `weights`. As `torch.bincount`.

    A graph is for one largest number.
    """
    shape = shape_of(input, "bincount")
    if input._dtype().kind not in "iu":
        raise NotImplementedError(f"\"bincount_cpu\" not implemented for '{torch_name(input._dtype())}'")
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if unknown(input) and len(shape) == 1 and shape[0]:
        return _bincount(input, weights, minlength)
    array = input._values_for("bincount")
    if len(shape) != 1 or (array.size and array.min() < 0):
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if weights is None or not array.size:
        return Tensor._wrap(np.bincount(array, minlength=minlength).astype(np.int64))
    if tuple(weights._d.shape) != tuple(shape):
        raise RuntimeError("weights should be 1-d and have the same length as input")
    dtype = weights._dtype() if weights._dtype() == FLOAT32 else FLOAT64
    sums = Tensor._wrap(np.bincount(array, weights._known(), minlength).astype(dtype))
    return underivable_all("bincount", (weights,), sums)[0]


def _bincount(input: Tensor, weights: Tensor | None, minlength: int) -> Tensor:
    """`bincount` of numbers that are not known yet."""
    negative = "bincount only supports 1-d non-negative integral inputs."
    input = required(input, E.ge(input, 0), negative)
    size = max(number(largest(input), "bincount") + 1, minlength)
    if weights is not None and weights._d.shape != input._d.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    at, dtype = E.cast(input, dtype=INT64), INT64
    if weights is None:
        amounts = E.full(shape=tuple(input._d.shape), value=1, dtype=dtype)
    else:
        dtype = weights._dtype() if weights._dtype() == FLOAT32 else FLOAT64
        amounts = E.cast(E.stop_gradient(weights), dtype=dtype)
    sums = E.scatter_add(E.full(shape=(size,), value=0, dtype=dtype), at, amounts, axis=0)
    return sums if weights is None else underivable_all("bincount", (weights,), sums)[0]


def underivable_all(name: str, operands: tuple[Any, ...], *results: Tensor) -> tuple[Tensor, ...]:
    """`results` of function `name` of `operands`, which PyTorch has no derivative for at all."""
    recorded = [x for x in operands if wants_gradient(x)]
    if not recorded:
        return results
    error = RuntimeError(f"derivative for aten::{name} is not implemented")
    made: Any = underivable(lambda *_: results, "NotImplemented", error, *recorded)
    return made
