"""`x[index]`. What is written there is in `eager.functional.assignment`.

An index is taken in two steps. The *basic* part (integers, slices, None, ...) is one `slice` and a `reshape`, which
share memory; the *advanced* part (integer tensors, lists, masks) is one `index` on the result. Integers belong to the
basic part, as in PyTorch, so that x[0, :, rows] keeps its index axis in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from eager.core.interpreter import on_arrays
from eager.core.state import grad_enabled
from eager.core.tensor import Tensor
from eager.core.views import note_view
from eager.core.warned import warn
from eager.engine.language import E
from eager.engine.node_names import named
from eager.functional.counted import chosen, nonzero_places, true_places, unknown
from graphc.ops import dims
from graphc.ops.dtypes import BOOL, INT32, INT64
from graphc.ops.rules import broadcast_shapes

OUT_OF_BOUNDS = "index {index} is out of bounds for dimension {dim} with size {size}"
TOO_MANY = "too many indices for tensor of dimension {ndim}"
NO_DIMS = (
    "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a 0-dim "
    "tensor to a number"
)
INVALID = (
    "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got {kind})"
)
MASK_SHAPE = (
    "The shape of the mask {mask} at index {at} does not match the shape of the indexed tensor {shape} at index {axis}"
)
INDEX_DTYPE = "tensors used as indices must be long, int, byte or bool tensors"


BYTE_MASK = "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead."
MASKS = BOOL, np.dtype(np.uint8)
INDICES = *MASKS, INT64, INT32


class Index(NamedTuple):
    """An index brought to the registry's form: x -> slice -> reshape to `shape` -> index with `spec` and `arrays`."""

    start: tuple[int, ...]
    stop: tuple[int, ...]
    step: tuple[int, ...]
    shape: tuple[int, ...]
    spec: tuple[int | None, ...]
    arrays: tuple[Tensor, ...]

    def slices(self, shape: tuple[int, ...]) -> bool:
        """Whether the basic part leaves elements out."""
        return self.stop != shape or any(self.start) or self.step != (1,) * len(shape)


BASIC = (int, slice, type(None), type(...))
NO_VIEW = "AliasBackward0"  # the name of what an index shows that takes no part


def is_basic(index: Any) -> bool:
    """Whether NumPy takes `index` as it stands, and means the same by it."""
    kind = index.__class__
    if kind is int:
        return True
    if kind is slice:
        return index.step is None or (index.step.__class__ is int and index.step > 0)
    if kind is tuple:
        return all(i.__class__ is int or (i.__class__ is slice and is_basic(i)) or i is None or i is ... for i in index)
    return index is None or index is ...


def getitem(self: Tensor, index: Any) -> Tensor:
    """The elements at `index`; a view where it has integers, slices, None and ... only. As `torch.Tensor.__getitem__`.

    Raises IndexError for an index out of bounds, too many indices, or what is no index.
    """
    data = self._d
    unrecorded = data.__class__ is np.ndarray and (self._n is None or not grad_enabled())
    if unrecorded and on_arrays():
        direct = basic_form(index) if is_basic(index) else lone_array(index)
        if direct is not None:
            try:
                found = data[direct]
            except (IndexError, TypeError):
                pass  # `normalized` raises the error that fits
            else:
                result = Tensor._wrap(found)
                if direct.__class__ is tuple:
                    note_view(result, self)
                return result
    if not on_arrays() and (at := unknown_mask(index)) is not None:
        return _at_unknown_mask(self, index, at)
    found = normalized(tuple(data.shape), index)
    result = self
    if not found.arrays or found.shape != data.shape or found.slices(data.shape):
        result = basic_part(self, found)
        if result._n is not None:
            named(result, node_name(index, data.shape))
    return take(result, found) if found.arrays else result


def _at_unknown_mask(x: Tensor, index: Any, at: int) -> Tensor:
    """`x[index]` with a mask at position `at` whose values are known only when the program runs."""
    parts = _parts(index)
    mask = _part(parts[at])
    index = without_mask(parts, at)
    found = normalized(tuple(x._d.shape), index)
    part = basic_part(x, found) if found.shape != x._d.shape or found.slices(x._d.shape) else x
    lead = dims_before(index, at, tuple(x._d.shape))
    check_mask_shape(mask, tuple(part._d.shape), lead)
    return chosen(part, mask, lead)


def _parts(index: Any) -> tuple[Any, ...]:
    return index if isinstance(index, tuple) else (index,)


def unknown_mask(index: Any) -> int | None:
    """The position of a mask whose values are not known, if all beside it are plain indices."""
    parts = _parts(index)
    masks = [k for k, i in enumerate(parts) if isinstance(i, Tensor) and i._dtype() in MASKS and i._d.shape]
    if len(masks) != 1 or not unknown(parts[masks[0]]):
        return None
    rest = [*parts[: masks[0]], *parts[masks[0] + 1 :]]
    return masks[0] if all(i is None or i is ... or type(i) in (int, slice) for i in rest) else None


def without_mask(parts: tuple[Any, ...], at: int) -> tuple[Any, ...]:
    """An index with all places in place of the mask at position `at`."""
    return (*parts[:at], *(slice(None),) * len(parts[at]._d.shape), *parts[at + 1 :])


def dims_before(index: tuple[Any, ...], at: int, shape: tuple[int, ...]) -> int:
    """How many dims the indices before position `at` leave, or make."""
    made = sum(not isinstance(i, int) and i is not ... for i in index[:at])
    if ... not in index[:at]:
        return made
    taken = sum(i is not None and i is not ... for i in index)
    return made + len(shape) - taken


def basic_part(x: Tensor, found: Index) -> Tensor:
    """The basic step of an index, a view."""
    return E.basic_index(x, start=found.start, stop=found.stop, step=found.step, shape=found.shape)


def node_name(index: Any, shape: tuple[int, ...]) -> str:
    """The name of the last view that PyTorch takes for `index`."""
    name, axis = "SliceBackward0" if index.__class__ is slice else NO_VIEW, 0
    parts = _with_ellipsis(tuple(shape), [_part(i) for i in (index if isinstance(index, tuple) else (index,))])
    for part in parts:
        if part is None:
            name = "UnsqueezeBackward0"
            continue
        if isinstance(part, slice):
            if dims.indices(part, shape[axis]) != (0, shape[axis], 1):
                name = "SliceBackward0"
        elif not isinstance(part, Tensor):
            name = "SelectBackward0"
        elif not part._d.shape:
            name = "UnsqueezeBackward0"
        axis += len(part._d.shape) if isinstance(part, Tensor) and part._dtype() == BOOL else 1
    return name


def basic_form(index: Any) -> tuple[Any, ...]:
    """A basic index as a tuple with an ellipsis, for which NumPy gives an array (a view), never a scalar."""
    parts = index if index.__class__ is tuple else (index,)
    return parts if any(i is ... for i in parts) else (*parts, ...)


def lone_array(index: Any) -> np.ndarray | None:
    """The array of an index that is one integer or bool tensor with dims; NumPy means the same by it. Else None."""
    array = index._d if isinstance(index, Tensor) else None
    if array.__class__ is not np.ndarray:
        return None
    assert array is not None
    return array if array.ndim and array.dtype in (INT64, BOOL) else None


def take(x: Tensor, found: Index) -> Tensor:
    """The advanced step of an index."""
    check_together(found.arrays)
    try:
        return E.index(x, *found.arrays, spec=found.spec)
    except IndexError:
        raise bounds_error(x, found) or IndexError(INDEX_DTYPE) from None


def check_together(arrays: Sequence[Tensor]) -> None:
    """Raise PyTorch's IndexError unless the index arrays broadcast."""
    shapes = [tuple(a._d.shape) for a in arrays]
    try:
        broadcast_shapes(shapes)
    except RuntimeError:
        texts = ", ".join(str(list(shape)) for shape in shapes)
        raise IndexError(
            f"shape mismatch: indexing tensors could not be broadcast together with shapes {texts}"
        ) from None


def bounds_error(x: Tensor, found: Index) -> IndexError | None:
    """PyTorch's error for the first index that is out of bounds, if there is one."""
    for dim, position in enumerate(found.spec):
        if position is not None:
            # PyTorch has moved the dims with an index to the front by then
            values, size = found.arrays[position]._read(), x._d.shape[dim]
            outside = values[(values < -size) | (values >= size)]
            if outside.size and not size:
                return IndexError("index is out of bounds for dimension with size 0")
            if outside.size:
                return IndexError(OUT_OF_BOUNDS.format(index=int(outside[0]), dim=position, size=size))
    return None


def normalized(shape: tuple[int, ...], index: Any) -> Index:
    """`index` of a tensor of `shape` as an Index. Masks become integer arrays. Raises IndexError."""
    if shape and (index.__class__ is int or (index.__class__ is slice and is_basic(index))):
        start, stop, step = _bounds(index, shape[0], 0)
        rest, none = shape[1:], (0,) * (len(shape) - 1)
        kept = rest if index.__class__ is int else (-(-(stop - start) // step), *rest)
        return Index((start, *none), (stop, *rest), (step, *(1 for _ in rest)), kept, (), ())
    if index.__class__ is list:
        index = _as_tuple(index)
    if not shape and isinstance(index, Tensor) and index._dtype() not in MASKS:
        raise IndexError(TOO_MANY.format(ndim=0))
    starts, stops, steps, kept = list[int](), list[int](), list[int](), list[int]()
    spec, arrays = list[int | None](), list[Tensor]()
    axis = 0
    for part in _with_ellipsis(shape, [_part(i) for i in (index if isinstance(index, tuple) else (index,))]):
        if part is None:
            kept.append(1)
            spec.append(None)
        elif isinstance(part, Tensor):
            is_mask = part._dtype() == BOOL
            depth = len(part._d.shape) if is_mask else 1
            for array in _where_true(part, shape, axis) if is_mask else (part,):
                spec.append(len(arrays))
                arrays.append(array)
            extents = shape[axis : axis + depth]
            starts.extend([0] * depth)
            stops.extend(extents)
            steps.extend([1] * depth)
            kept.extend(extents or (1,))  # a 0-d mask indexes a dim of size 1 that it brings along
            axis += depth
        else:
            first, last, stride = _bounds(part, shape[axis], axis)
            starts.append(first)
            stops.append(last)
            steps.append(stride)
            if isinstance(part, slice):
                kept.append(-(-(last - first) // stride))
                spec.append(None)
            axis += 1
    while spec and spec[-1] is None:
        spec.pop()
    return Index(tuple(starts), tuple(stops), tuple(steps), tuple(kept), tuple(spec), tuple(arrays))


def _part(i: Any) -> Any:
    """One entry of an index: an int, a slice, None, Ellipsis or an index Tensor."""
    if isinstance(i, bool):
        return Tensor._wrap(np.array(i))
    if isinstance(i, BASIC):
        return i
    if isinstance(i, Tensor):
        if i._dtype() not in INDICES:
            raise IndexError(INDEX_DTYPE)
        if i._dtype() == np.uint8:
            warn(BYTE_MASK)
            return E.cast(i, dtype=BOOL)
        if not i._d.shape and i._dtype() != BOOL and i._d.__class__ is np.ndarray and on_arrays():
            return int(i._d)
        return i
    if isinstance(i, np.integer):
        return int(i)
    if isinstance(i, str):
        raise TypeError("new(): invalid data type 'str'")
    if isinstance(i, (Sequence, np.ndarray)):
        return _part(_array_part(i))
    raise IndexError(INVALID.format(kind=type(i).__name__))


def _as_tuple(index: list[Any]) -> Any:
    """A list that PyTorch, as NumPy did, takes for a tuple: one with anything but numbers in it."""
    parts = Tensor, slice, Sequence, type(None), type(...)
    return tuple(index) if len(index) < 32 and any(isinstance(i, parts) for i in index) else index


def _array_part(i: Any) -> Tensor:
    if not isinstance(i, np.ndarray):
        i = [x.tolist() if isinstance(x, Tensor) else x for x in i]
        array = np.asarray(i)
        return Tensor._wrap(array.astype(np.int64) if array.dtype.kind == "f" else array)  # whole parts, as in PyTorch
    return Tensor._wrap(i)


def _with_ellipsis(shape: tuple[int, ...], parts: list[Any]) -> list[Any]:
    """`parts` with the ellipsis (or the missing end) written out as full slices."""
    used = 0
    for part in parts:
        if part is not None and part is not ...:
            used += len(part._d.shape) if isinstance(part, Tensor) and part._dtype() == BOOL else 1
    if used and not shape:
        if len(parts) > 1:
            raise IndexError(TOO_MANY.format(ndim=0))
        raise IndexError("slice() cannot be applied to a 0-dim tensor." if isinstance(parts[0], slice) else NO_DIMS)
    if used > len(shape):
        raise IndexError(TOO_MANY.format(ndim=len(shape)))
    full = [slice(None)] * (len(shape) - used)
    places = [k for k, part in enumerate(parts) if part is ...]
    if not places:
        return parts + full
    at = places[0]
    # a second ellipsis stands for nothing
    return parts[:at] + full + [part for part in parts[at:] if part is not ...]


def _bounds(part: Any, size: int, axis: int) -> tuple[int, int, int]:
    """(start, stop, step) of an integer or slice along an axis of `size`, with start <= stop."""
    if not isinstance(part, slice):
        if not -size <= part < size:
            raise IndexError(OUT_OF_BOUNDS.format(index=part, dim=axis, size=size))
        at = part + size if part < 0 else part
        return at, at + 1, 1
    start, stop, step = (int(x) if isinstance(x, Tensor) else x for x in (part.start, part.stop, part.step))
    first, last, stride = dims.indices(slice(start, stop, step), size)
    if stride < 0:
        raise ValueError("step must be greater than zero")
    return first, max(first, last), stride


def check_mask_shape(mask: Tensor, shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    """The sizes behind the dims that a mask at `axis` of `shape` covers. Raises IndexError unless it fits them."""
    wanted = shape[axis : axis + len(mask._d.shape)]
    for k, (n, m) in enumerate(zip(wanted, mask._d.shape, strict=True)):
        if n != m:
            raise IndexError(MASK_SHAPE.format(mask=list(mask._d.shape), at=k, shape=list(shape), axis=axis + k))
    return shape[axis + len(mask._d.shape) :]


def _zeros(mask: Tensor) -> Tensor:
    """0 for the only place of a dim of size 1, as often as a 0-d mask is true."""
    return true_places(E.reshape(mask, shape=(1,)), "mask")


def _where_true(mask: Tensor, shape: tuple[int, ...], axis: int) -> list[Tensor]:
    """A mask as the integer arrays of its true places: how many there are has to be known."""
    check_mask_shape(mask, shape, axis)
    if unknown(mask):
        return nonzero_places(mask, "mask") if mask._d.shape else [_zeros(mask)]
    values = mask._values_for("mask")
    places = values.nonzero() if values.ndim else (np.zeros(int(values), np.int64),)
    return [Tensor._wrap(place) for place in places]
