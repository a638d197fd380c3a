"""`x[index] = value`, and the same as a new tensor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from eager.core import tape
from eager.core.interpreter import current_interpreter, on_arrays
from eager.core.state import grad_enabled, note_write
from eager.core.tensor import LEAF_IN_PLACE, Tensor, check_places
from eager.core.views import LEAF_VIEW
from eager.engine.conversion import array_for, warn_of_loss
from eager.engine.inplace import assign, before
from eager.engine.language import E
from eager.engine.overlap import check_apart, check_partial, may_overlap
from eager.functional.counted import selection_of
from eager.functional.indexing import (
    INDEX_DTYPE,
    MASKS,
    NO_VIEW,
    Index,
    basic_form,
    basic_part,
    bounds_error,
    check_mask_shape,
    check_together,
    dims_before,
    is_basic,
    node_name,
    normalized,
    unknown_mask,
    without_mask,
)
from eager.functional.scalars import filler
from eager.functional.static import filled_in_order
from graphc.ops.dtypes import BOOL
from graphc.ops.index import indexed_shape
from graphc.ops.movement import inverse_permutation
from graphc.ops.rules import broadcast_shapes, torch_name

NOT_ALIKE = (
    "Index put requires the source and destination dtypes match, got {target} for the destination and {source} for the "
    "source."
)


def delitem(self: Tensor, index: Any) -> None:
    """Raise TypeError: a tensor keeps its size."""
    raise TypeError("Tensor does not support deleting items")


def setitem(self: Tensor, index: Any, value: Any) -> None:
    """Write `value`, broadcast and cast, to the elements at `index`. As `torch.Tensor.__setitem__`.

    Raises RuntimeError for a leaf that requires grad or a value that does not broadcast, IndexError as `getitem` does.
    """
    recording = grad_enabled()
    if recording and self._n is not None and self.is_leaf and not tape.is_dead_end(self._n):
        parts = index if isinstance(index, tuple) else (index,)
        raise RuntimeError(LEAF_IN_PLACE if node_name(parts, self._d.shape) == NO_VIEW else LEAF_VIEW)
    if not isinstance(value, Tensor):
        if not isinstance(value, (bool, int, float, complex, np.generic)):
            kind = type(value)
            name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
            raise TypeError(f"can't assign a {name} to a torch.{torch_name(self._dtype())}Tensor")
        if type(value) in (float, int) and self._dtype().kind == "f":
            value = Tensor._wrap(np.asarray(value).astype(self._dtype()))
        else:
            value = filler(value, self._dtype(), limited=False)
    else:
        if value._dtype() != self._dtype():
            _check_dtype(self, index, value)
        if may_overlap(self, value):
            _check_overlap(self, index, value)
    if on_arrays(self) and not (recording and (self._n is not None or value._n is not None)):
        _write(self, index, array_for(value, self._dtype()))
        return
    if value._dtype() != self._dtype():
        warn_of_loss(value, self._dtype())
        value = E.cast(value, dtype=self._dtype())
    repeats = current_interpreter().repeats(self)
    if not on_arrays(self) and not (repeats and is_basic(index)):
        where = None
        if repeats:
            nowhere = E.full(shape=tuple(self._d.shape), value=False, dtype=BOOL)
            where = replaced(nowhere, index, Tensor._wrap(np.asarray(True)), strips=True)
        assign(self, replaced(self, index, value, strips=True), "copy", where)
        return
    found = normalized(tuple(self._d.shape), index)
    everything = index is ... or (index.__class__ is slice and index == slice(None))
    region = self if everything else basic_part(self, found)
    if not found.arrays:
        check_broadcast(value._d.shape, region._d.shape)
        extra = max(len(value._d.shape) - len(region._d.shape), 0)
        name = "copy" if value._d.shape or not everything else "fill_with"
        value = E.broadcast_to(E.reshape(value, shape=value._d.shape[extra:]), shape=region._d.shape)
        assign(region, value, name)
    else:
        put = put_at(before(region), value, found, strips=True)
        assign(self if region._d.shape == self._d.shape else region, put, "index_put")


def _check_overlap(target: Tensor, index: Any, value: Tensor) -> None:
    """Raise PyTorch's RuntimeError if `value` shows memory that is written, and must not be read meanwhile."""
    parts = index if isinstance(index, tuple) else (index,)
    shown = [x for x in (value, *parts) if isinstance(x, Tensor) and current_interpreter().extents(target, x)]
    if not shown or (_is_fill(parts, value)):
        return
    found = normalized(tuple(target._d.shape), index)
    region = basic_part(target, found)
    if found.arrays:
        check_apart(region, shown)
    elif inner_shape(value._d.shape, len(region._d.shape)) == region._d.shape:  # else it is expanded: not dense
        check_partial(region, (E.reshape(value, shape=region._d.shape),))


def _is_fill(parts: Sequence[Any], value: Tensor) -> bool:
    """Whether PyTorch takes x[mask] = value for `masked_fill_`."""
    is_mask = len(parts) == 1 and isinstance(parts[0], Tensor) and parts[0]._dtype() in MASKS
    return is_mask and math.prod(value._d.shape) == 1


def _write(target: Tensor, index: Any, value: np.ndarray) -> None:
    array = target._writable(repeated=True)
    if is_basic(index):
        try:
            place = array[basic_form(index)]
        except (IndexError, TypeError):
            normalized(array.shape, index)
            raise
        check_broadcast(value.shape, place.shape)
        if 0 in place.strides:
            check_places(place)
        np.copyto(
            place, value[(0,) * (value.ndim - place.ndim)] if value.ndim > place.ndim else value, casting="unsafe"
        )
    else:
        found = normalized(array.shape, index)
        place = array[(*map(slice, found.start, found.stop, found.step), ...)].reshape(found.shape)
        if found.arrays:
            check_together(found.arrays)
            check_bounds(Tensor._wrap(place), found)
            where = tuple(slice(None) if s is None else found.arrays[s]._array() for s in found.spec)
            value = value.reshape(inner_shape(value.shape, place[where].ndim))
            check_index_broadcast(value.shape, place[where].shape)
            place[where] = value
        else:
            check_broadcast(value.shape, place.shape)
            np.copyto(place, value, casting="unsafe")
    note_write(array)


def _check_dtype(target: Tensor, index: Any, value: Tensor) -> None:
    """Raise PyTorch's RuntimeError for a value of another dtype that is written at index tensors.

    Basic indices and one-element values at masks are cast.
    """
    parts = index if isinstance(index, tuple) else (index,)
    lists = any(isinstance(i, (list, np.ndarray)) for i in parts)
    dtypes = [i._dtype() for i in parts if isinstance(i, Tensor) and i._d.shape]
    if (lists or dtypes) and not (not lists and value._d.size == 1 and all(d in MASKS for d in dtypes)):
        raise RuntimeError(NOT_ALIKE.format(target=torch_name(target._dtype()), source=torch_name(value._dtype())))


def inner_shape(shape: tuple[int, ...], ndim: int) -> tuple[int, ...]:
    """`shape` without the dims of size 1 in front that a place of `ndim` dims has no use for."""
    while len(shape) > ndim and shape[0] == 1:
        shape = shape[1:]
    return tuple(shape)


def check_bounds(x: Tensor, found: Index) -> None:
    """Raise PyTorch's IndexError if an index array leaves `x`."""
    if error := bounds_error(x, found):
        raise error


def check_broadcast(shape: tuple[int, ...], target: tuple[int, ...]) -> None:
    """Raise PyTorch's RuntimeError unless `shape` expands to `target`; extra dims of size 1 in front are dropped."""
    extra = max(len(shape) - len(target), 0)
    rest = shape[extra:]
    fits = shape[:extra] == (1,) * extra and all(n in (1, m) for n, m in zip(rest[::-1], target[::-1], strict=False))
    if not fits:
        for k, (n, m) in enumerate(zip(rest[::-1], target[::-1], strict=False), 1):
            if n not in (1, m):
                raise RuntimeError(
                    f"The expanded size of the tensor ({m}) must match the existing size ({n}) at non-singleton "
                    f"dimension {len(target) - k}.  Target sizes: {list(target)}.  Tensor sizes: {list(rest)}"
                )
        raise RuntimeError(
            f"expand({torch_shape(shape)}, size={list(target)}): the number of sizes provided ({len(target)}) must be "
            f"greater or equal to the number of dimensions in the tensor ({len(shape)})"
        )


def torch_shape(shape: tuple[int, ...]) -> str:
    return f"torch.FloatTensor{{{list(shape)}}}"


def check_index_broadcast(shape: tuple[int, ...], target: tuple[int, ...]) -> None:
    """Raise PyTorch's RuntimeError unless a value of `shape` fits the result of an advanced index."""
    if not _expands(shape, target):
        raise RuntimeError(_mismatch(shape, target))


def _expands(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    try:
        return broadcast_shapes([shape, target]) == target
    except RuntimeError:
        return False


def _mismatch(shape: Sequence[int], target: Sequence[Any]) -> str:
    return (
        f"shape mismatch: value tensor of shape {list(shape)} cannot be broadcast to indexing result of shape "
        f"[{', '.join(map(str, target))}]"
    )


def put_at(x: Tensor, value: Tensor, found: Index, accumulate: bool = False, strips: bool = False) -> Tensor:
    """The advanced step of an assignment: `x` with `value` written (or added) at the index arrays.

    `strips`: `value` may have dims of size 1 in front that the place has not.
    """
    arrays = found.arrays
    try:
        return E.index_put(x, value, *arrays, spec=found.spec, accumulate=accumulate)
    except IndexError:
        raise bounds_error(x, found) or IndexError(INDEX_DTYPE) from None
    except RuntimeError:
        check_together(arrays)
        target = indexed_shape(x._d.shape, found.spec, [a._d.shape for a in arrays])
        inner = inner_shape(value._d.shape, len(target)) if strips else value._d.shape
        check_index_broadcast(inner, target)
        if inner == value._d.shape:
            raise
    return E.index_put(x, E.reshape(value, shape=inner), *arrays, spec=found.spec, accumulate=accumulate)


def replaced(x: Tensor, index: Any, value: Tensor, accumulate: bool = False, strips: bool = False) -> Tensor:
    """A new tensor: `x` with `value` written (or added) at `index`, in the op language; see `put_at`."""
    if index.__class__ is tuple and len(index) == 1 and isinstance(index[0], Tensor):
        (index,) = index
    if not accumulate and selection_of(value) is None and _is_mask_fill(index, value):
        extra = len(check_mask_shape(index, tuple(x._d.shape), 0))
        mask = E.reshape(index, shape=(*index._d.shape, *(1,) * extra)) if extra else index
        return E.where(mask, value, x)
    shape = tuple(x._d.shape)
    at = None if accumulate else unknown_mask(index)
    parts = index if isinstance(index, tuple) else (index,)
    if at is not None:
        index = without_mask(parts, at)
    found = normalized(shape, index)
    region = tuple(max(0, -(-(b - a) // s)) for a, b, s in zip(found.start, found.stop, found.step, strict=True))
    part = x
    if (found.arrays or accumulate or at is not None) and (found.shape != shape or found.slices(shape)):
        part = E.reshape(E.slice(x, start=found.start, stop=found.stop, step=found.step), shape=found.shape)
    if at is not None:
        mask = parts[at] if parts[at]._dtype() == BOOL else E.cast(parts[at], dtype=BOOL)
        value = _at_mask(part, mask, dims_before(index, at, shape), value)
    elif found.arrays:
        value = put_at(part, value, found, accumulate, strips)
    else:
        check_broadcast(value._d.shape, found.shape)
        extra = len(value._d.shape) - len(found.shape)
        if extra > 0:
            value = E.reshape(value, shape=value._d.shape[extra:])
        if value._d.shape != found.shape:
            value = E.broadcast_to(value, shape=found.shape)
        if accumulate:
            value = E.add(part, value)
    if value._d.shape != region:
        value = E.reshape(value, shape=region)
    return pasted(x, value, found.start, found.step)


def _at_mask(x: Tensor, mask: Tensor, lead: int, value: Tensor) -> Tensor:
    """`x` with `value` written where a mask, over the dims from number `lead` on, is true; its values are not known."""
    behind = check_mask_shape(mask, tuple(x._d.shape), lead)
    everywhere = E.reshape(mask, shape=((1,) * lead + tuple(mask._d.shape) + (1,) * len(behind)))
    selection = selection_of(value)
    if selection is not None and selection.is_at(mask, lead, tuple(x._d.shape)):
        return E.where(everywhere, value._d.full(), x)
    if not value._d.shape:
        return E.where(everywhere, value, x)
    before, ndim = tuple(x._d.shape[:lead]), lead + 1 + len(behind)
    shape = inner_shape(value._d.shape, ndim)
    shape = (1,) * (ndim - len(shape)) + shape
    mismatch = _mismatch(value._d.shape, (*before, "*", *behind))
    if len(shape) > ndim or not _expands(shape[:lead] + shape[lead + 1 :], before + behind):
        raise RuntimeError(mismatch)
    if shape[lead] == 1:
        flat = (*shape[:lead], *(1,) * len(mask._d.shape), *shape[lead + 1 :])
        return E.where(everywhere, E.reshape(value, shape=flat), x)
    first = (*range(lead, ndim - len(behind) - 1 + len(mask._d.shape)), *range(lead))
    dims = (*first, *range(len(first), len(x._d.shape)))
    rows = E.permute(E.reshape(value, shape=shape), dims=(lead, *range(lead), *range(lead + 1, ndim)))
    rows = E.broadcast_to(rows, shape=(shape[lead], *before, *behind))
    filled = filled_in_order(E.permute(x, dims=dims), mask, rows, exactly=mismatch)
    return E.permute(filled, dims=inverse_permutation(dims))


def _is_mask_fill(index: Any, value: Tensor) -> bool:
    return isinstance(index, Tensor) and index._dtype() == BOOL and not value._d.shape and len(index._d.shape) > 0


def pasted(x: Tensor, value: Tensor, start: tuple[int, ...], step: tuple[int, ...]) -> Tensor:
    """`x` with `value` written to the strided region that begins at `start`."""
    shape, region = x._d.shape, value._d.shape
    if region == shape:
        return value
    if 0 in region:
        return x
    high = tuple(n - a - (m - 1) * s - 1 for n, a, m, s in zip(shape, start, region, step, strict=True))
    gaps = tuple(s - 1 for s in step)
    inside = E.pad_zeros(E.full(shape=region, value=True, dtype=BOOL), low=start, high=high, interior=gaps)
    return E.where(inside, E.pad_zeros(value, low=start, high=high, interior=gaps), x)
