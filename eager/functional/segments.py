"""Reductions of the runs that an axis is cut into."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.engine.node_names import whole
from eager.functional.arguments import axis_of, shape_of
from eager.functional.scattering import scatter_reduce
from graphc.ops.dtypes import is_inexact
from graphc.ops.rules import torch_name

STARTS = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -math.inf, "min": math.inf}
_ALSO = {"amax": "max", "amin": "min"}
UNEVEN = "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when !unsafe."


@whole("SegmentReduceBackward0")
def segment_reduce(
    data: Tensor, reduce: str, *, lengths: Tensor | None = None, indices: Tensor | None = None,
    offsets: Tensor | None = None, axis: int = 0, unsafe: bool = False, initial: float | None = None,
) -> Tensor:  # fmt: skip
    """The "sum", "mean", "prod", "max" or "min" of each run that `data` is cut into along `axis`.

    lengths: how long the runs are, or `offsets`: where they begin, and the end; both may have leading dims, as many as
    `axis`. initial: what a reduction begins with. Raises RuntimeError for lengths that do not add up (unless `unsafe`).
    As `torch.segment_reduce`.
    """
    shape = tuple(shape_of(data, "segment_reduce"))
    reduce = _ALSO.get(reduce, reduce)
    if reduce not in STARTS:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    if not is_inexact(data._dtype()):
        raise NotImplementedError(f"\"_segment_reduce_cpu\" not implemented for '{torch_name(data._dtype())}'")
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet.")
    cuts = lengths if offsets is None else offsets
    if cuts is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    which, at = "lengths" if offsets is None else "offsets", axis_of(axis, len(shape))
    if len(cuts._d.shape) - 1 != at:
        raise RuntimeError(f"segment_reduce(): Expected axis to be the last dimension of {which} but got {axis}.")
    if cuts._dtype().kind not in "iu":
        kernel = f"_segment_reduce_{which}_cpu_kernel1"
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{torch_name(cuts._dtype())}'")
    known = cuts._known().reshape(-1, cuts._d.shape[-1])
    counts = known if offsets is None else np.diff(known, axis=1)
    first = np.zeros(len(known), np.int64) if offsets is None else known[:, 0]
    if offsets is None and not unsafe:
        if (counts < 0).any():
            raise RuntimeError("lengths contains negative value!")
        if (counts.sum(axis=1) != shape[at]).any():
            raise RuntimeError(UNEVEN)
    return _reduced(data, reduce, at, counts, first, initial)


def _reduced(data: Any, reduce: str, axis: int, counts: np.ndarray, first: np.ndarray, initial: Any) -> Tensor:
    """The reductions of `counts[row]` elements each, from `first[row]` on, in each row before `axis`."""
    shape = tuple(data._d.shape)
    row_of = np.repeat(np.arange(len(counts)), counts.sum(axis=1))
    begins = np.concatenate([[0], counts.sum(axis=1).cumsum()[:-1]]).astype(np.int64)
    places = np.arange(len(row_of)) - begins[row_of] + first[row_of] + row_of * shape[axis]
    run_of = np.repeat(np.arange(counts.size), counts.ravel())
    rows = E.index(data.reshape(-1, *shape[axis + 1 :]), Tensor._wrap(places), spec=(0,))
    size, start = (counts.size, *shape[axis + 1 :]), STARTS[reduce] if initial is None else float(initial)
    index: Any = Tensor._wrap(run_of.reshape(-1, *[1] * (len(size) - 1)))
    blank = E.full(shape=size, value=STARTS[reduce], dtype=data._dtype())
    name = {"mean": "sum", "max": "amax", "min": "amin"}.get(reduce, reduce)
    result: Any = scatter_reduce(
        blank, 0, index.expand(rows._d.shape), rows, name, include_self=name in ("sum", "prod")
    )
    if initial is not None:
        result = _begun(result, reduce, start)
    if reduce == "mean":
        number: Any = Tensor._wrap(counts.reshape(-1, *[1] * (len(size) - 1)).astype(np.float64))
        if initial is not None:
            number = number.clamp(min=1)  # of nothing, what it begins with
        result = E.div(result, number.to(data.dtype))
    return result.reshape(*shape[:axis], counts.shape[1], *shape[axis + 1 :])


def _begun(result: Any, reduce: str, start: float) -> Tensor:
    """The reductions, begun with `start`: where it wins, nothing flows back."""
    if reduce in ("sum", "mean"):
        return result + start
    if reduce == "prod":
        return result * start
    wins = result < start if reduce == "max" else result > start
    return E.where(wins, E.full(shape=tuple(result._d.shape), value=start, dtype=result._dtype()), result)
