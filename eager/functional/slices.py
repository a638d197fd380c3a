"""Reading and writing the slices along one dim that a vector lists: index_select, index_add, index_copy, index_fill.

A tensor without dims counts as a vector of one element, as an index without dims does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from eager.core.interpreter import on_arrays
from eager.core.placed import is_placed
from eager.core.state import sequence
from eager.core.tensor import Tensor
from eager.core.views import not_a_view
from eager.engine.language import E
from eager.engine.node_names import enclosed, whole
from eager.functional.arguments import axis_of, fitting, lifted, shape_of
from eager.functional.counted import number, unknown
from eager.functional.indexing import OUT_OF_BOUNDS
from eager.functional.parsing import no_overload
from eager.functional.scalars import filler
from eager.functional.static import at_hand, required, spread, valueless
from graphc.ops.dtypes import BOOL, INT32, INT64, UNSIGNED
from graphc.ops.rules import torch_name

NOT_A_VECTOR = "Index is supposed to be a vector"


def at_axis(axis: int) -> tuple[int | None, ...]:
    """The `spec` of an index along `axis` alone."""
    return (None,) * axis + (0,)


def reshaped(x: Tensor, shape: Any) -> Tensor:
    """`x`, a tensor that nobody else has, in another shape."""
    return x if x._d.shape == shape else not_a_view(E.reshape(x, shape=tuple(shape)))


def outside(index: Tensor, size: int, low: int = 0) -> int | None:
    """The first of `index` below `low` or not below `size`, if there is one; None also where values are not known."""
    array = index._read() if is_placed(index) else at_hand(index)
    if array is None:
        return None
    found = array[(array < low) | (array >= size)]
    return int(found[0]) if found.size else None


def inside(index: Tensor, size: int, error: Callable[[int], Exception]) -> Tensor:
    """`index`, whose values lie in [0, size): raises `error` of the first that does not."""
    array = at_hand(index)
    if array is None:
        if isinstance(error(size), IndexError):
            return E.in_range(index, size=size)
        within = E.logical_and(E.ge(index, 0), E.lt(index, size))
        return required(index, within, f"index is out of bounds for a dimension of size {size}")
    # seen as unsigned, a negative number is a large one
    if array.size and array.view(UNSIGNED[array.dtype.itemsize]).max() >= size:
        wrong = outside(index, size)
        assert wrong is not None
        raise error(wrong)
    return index


def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """The slices of `input` along `dim` that `index` lists. As `torch.index_select`. IndexError out of bounds."""
    shape = shape_of(input, "index_select")
    axis = axis_of(dim, len(shape))
    listed = shape_of(index, "index_select", "index", 3)
    if len(listed) > 1:
        raise IndexError(f"index_select(): {NOT_A_VECTOR}")
    if index._dtype() not in (INT64, INT32):
        raise RuntimeError("index_select(): Expected dtype int32 or int64 for index")
    if not shape and listed not in ((), (1,)):
        raise RuntimeError(f"index_select(): Index to scalar can have only 1 value, got {listed[0]} value(s)")  # pyright: ignore[reportGeneralTypeIssues]
    size = shape[axis] if shape else 1
    if not size and listed != (0,):
        raise RuntimeError("index_select(): self indexing axis dim should be positive")

    def error(wrong: int) -> Exception:
        if len(shape) < 2 or not axis:
            return IndexError("index out of range in self")
        return RuntimeError(f"INDICES element is out of DATA bounds, id={wrong} axis_dim={size}")

    since = next(sequence)
    result = E.index(lifted(input), lifted(inside(index, size, error)), spec=at_axis(axis))
    return enclosed(result if shape else reshaped(result, ()), "IndexSelectBackward0", since)


def check_slices(name: str, input: Tensor, axis: int, index: Tensor, source: Tensor) -> None:
    """Raise PyTorch's error unless `index` lists as many slices of `input` along `axis` as `source` has."""
    shape, given = (tuple(shape_of(x, name, a, p)) for x, a, p in ((input, "input", 1), (source, "source", 4)))
    listed, kind = tuple(shape_of(index, name, "index", 3)), torch_name(index._dtype())
    if len(listed) > 1:
        found = f"dim: {len(listed)} with type: {kind} and size: {list(listed)}"
        raise IndexError(f"{name}_(): {NOT_A_VECTOR}, but got {found}")
    if index._dtype() not in (INT64, INT32):
        raise RuntimeError(f"{name}_(): Expected dtype int32/int64 for index but got: {kind}")
    if source._dtype() != input._dtype():
        raise RuntimeError(
            f"{name}_(): self ({torch_name(input._dtype())}) and source ({torch_name(source._dtype())}) must have "
            "the same scalar type"
        )
    if axis and axis >= len(given):
        raise RuntimeError(
            f"{name}_(): Indexing dim {axis} is out of bounds of the source tensor with dim {len(given)}"
        )
    count, slices = listed[0] if listed else 1, given[axis] if given else 1
    if count != slices:
        raise RuntimeError(
            f"{name}_(): Number of indices ({count}) should be equal to source.size(dim): ({slices}), for dim: {axis}"
        )
    if len(given) != len(shape) or any(n != m for i, (n, m) in enumerate(zip(shape, given, strict=True)) if i != axis):
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = "
            f"{list(shape)} source.shape = {list(given)}"
        )


@whole("IndexAddBackward0")
def index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Tensor:
    """`input` with alpha * source added to the slices along `dim` that `index` lists. As `torch.index_add`."""
    shape = shape_of(input, "index_add")
    axis = axis_of(dim, len(shape))
    check_slices("index_add", input, axis, index, source)

    def error(wrong: int) -> Exception:
        if len(shape) < 2:
            return IndexError("index out of range in self")
        return RuntimeError(OUT_OF_BOUNDS.format(index=wrong, dim=axis, size=shape[axis]))

    rows = lifted(inside(index, shape[axis] if shape else 1, error))
    added = source if alpha == 1 else E.mul(source, filler(alpha, input._dtype()))
    result = E.index_put(lifted(input), lifted(added), rows, spec=at_axis(axis), accumulate=True)
    return reshaped(result, shape)


def _check_copied(input: Tensor, axis: int, index: Tensor, source: Tensor) -> None:
    shape, given = (tuple(shape_of(x, "index_copy", a, p)) for x, a, p in ((input, "input", 1), (source, "source", 4)))
    listed = tuple(shape_of(index, "index_copy", "index", 3))
    if len(listed) > 1:
        raise IndexError(f"index_copy_(): Index should have dimension 1 or 0 (got {len(listed)})")
    count = listed[0] if listed else 1
    if not given and count != 1:
        raise IndexError(f"index_copy_(): When source is scalar, index should have one element (got {count})")
    if given and shape and len(given) != len(shape):
        raise IndexError(
            "index_copy_(): When source and destination are not scalars, their dimensionality must match. Source "
            f"dimensionality ({len(given)}), destination dimensionality ({len(shape)})"
        )
    if index._dtype() != INT64:
        raise RuntimeError(f"index_copy_(): Expected a long tensor for index, but got {torch_name(index._dtype())}")
    if source._dtype() != input._dtype():
        raise RuntimeError(
            "index_copy_(): self and source expected to have the same dtype, but got (self) "
            f"{torch_name(input._dtype())} and (source) {torch_name(source._dtype())}"
        )
    along = axis if given else 0
    slices = [tuple(n for i, n in enumerate(s) if i != k) for s, k in ((shape, axis), (given, along))]
    if slices[0] != slices[1]:
        target, found = (" ".join(map(str, s)) for s in slices)
        raise RuntimeError(
            "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: "
            f"{target} at dimension {axis} and source slice shape: {found} at dimension 0."
        )
    if given and count != given[along]:
        raise IndexError(
            f"index_copy_(): Number of indices ({count}) should be equal to source.size(dim) ({given[along]})"
        )


@whole("IndexCopyBackward0")
def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """`input` with the slices along `dim` that `index` lists replaced by those of `source`. As `torch.index_copy`."""
    shape = shape_of(input, "index_copy")
    axis = axis_of(dim, len(shape))
    _check_copied(input, axis, index, source)
    size = shape[axis] if shape else 1

    def error(wrong: int) -> Exception:
        return IndexError("index_copy_(): " + OUT_OF_BOUNDS.format(index=wrong, dim=axis, size=size))

    rows = lifted(inside(index, size, error))
    result = E.index_put(lifted(input), lifted(source), rows, spec=at_axis(axis), accumulate=False)
    return reshaped(result, shape)


def index_fill(input: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """`input` with the slices along `dim` that `index` lists set to `value`. As `torch.index_fill`."""
    shape = shape_of(input, "index_fill")
    axis = axis_of(dim, len(shape))
    listed = shape_of(index, "index_fill", "index", 3)
    since = next(sequence)
    if not isinstance(value, (Tensor, bool, int, float, complex, np.generic)):
        raise no_overload("index_fill", (input, dim, index, value))
    of_complex = value._dtype().kind == "c" if isinstance(value, Tensor) else isinstance(value, complex)
    if isinstance(value, Tensor) and value._d.shape:
        raise RuntimeError(
            "index_fill_ only supports a 0-dimensional value tensor, but got tensor with "
            f"{len(value._d.shape)} dimension(s)."
        )
    if index._dtype() != INT64:
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    if of_complex and input._dtype().kind != "c":
        raise RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not supported")
    if len(listed) > 1:
        raise RuntimeError("Index has to be a vector/scalar")
    filled, size = cast_number(value, input._dtype()), shape[axis] if shape else 1
    if (wrong := outside(index, size, -size)) is not None:
        raise IndexError(OUT_OF_BOUNDS.format(index=wrong, dim=axis, size=size))
    # each slice once: one that is listed twice gives `value` its gradient once
    mask = E.reshape(_listed(index, size), shape=(size, *(1,) * (len(shape) - axis - 1)) if shape else ())
    return enclosed(E.where(mask, filled, input), f"IndexFillBackward{int(isinstance(value, Tensor))}", since)


def _listed(index: Tensor, size: int) -> Tensor:
    """Which of `size` slices `index` lists."""
    if (places := at_hand(index)) is not None:
        chosen = np.zeros(size, bool)
        chosen[places] = True
        return Tensor._wrap(chosen)
    none, true = E.full(shape=(size,), value=False, dtype=BOOL), Tensor._wrap(np.array(True))
    return E.index_put(none, true, lifted(index), spec=(0,), accumulate=False)


def cast_number(value: Any, wanted: np.dtype) -> Tensor:
    """A number or a 0-d tensor in the dtype `wanted`. RuntimeError if it does not fit."""
    if not isinstance(value, Tensor):
        return filler(value, wanted)
    if value._dtype() == wanted:
        return value
    if value._d.__class__ is np.ndarray and value._n is None and on_arrays():
        return Tensor._wrap(fitting(value._d.item(), wanted))
    return E.cast(value, dtype=wanted)


def repeat_interleave(
    input: Tensor, repeats: Any = None, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """Each slice along `dim` (each element, if None) `repeats` times in a row. As `torch.repeat_interleave`.

    Of counts alone, each place as often as its count says. `output_size` is how many there will be.
    """
    shape = shape_of(input, "repeat_interleave")
    if repeats is None:
        return _places(input, output_size)
    if not isinstance(repeats, (int, Tensor)):
        raise no_overload("repeat_interleave", (input, repeats))
    since = next(sequence)
    if dim is None:
        input, dim = E.reshape(input, shape=(int(np.prod(shape)),)), 0
    elif not shape:
        axis_of(dim, 0)
        if isinstance(repeats, int):
            raise IndexError("Dimension out of range (expected to be in range of [-1, 0], but got 1)")
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    axis = axis_of(dim, len(input._d.shape))
    size = input._d.shape[axis]
    result = E.index(input, _repeated(repeats, size, axis, output_size), spec=at_axis(axis))
    # one number for all is a view, expanded and copied, in PyTorch
    return enclosed(result, "ViewBackward0" if isinstance(repeats, int) else "IndexSelectBackward0", since)


def _repeated(repeats: int | Tensor, size: int, axis: int, output_size: int | None) -> Tensor:
    if not isinstance(repeats, Tensor):
        if repeats < 0:
            raise RuntimeError("Repeats must be non-negative")
        if output_size not in (None, size * repeats):
            raise RuntimeError(
                f"repeat_interleave: Invalid output_size, expected {size * repeats} but got {output_size}"
            )
        return Tensor._wrap(np.repeat(np.arange(size), repeats))
    shape = tuple(repeats._d.shape)
    if len(shape) > 1:
        raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
    if shape not in ((), (1,), (size,)):
        raise RuntimeError(
            "repeats must have the same size as input along dim, but got repeats.size(0) = "
            f"{shape[0]} and input.size({axis}) = {size}"  # pyright: ignore[reportGeneralTypeIssues]
        )
    return _spread(repeats if shape == (size,) else E.broadcast_to(repeats, shape=(size,)), output_size)


def _places(counts: Tensor, output_size: int | None) -> Tensor:
    if len(counts._d.shape) != 1:
        raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
    return E.cast(_spread(counts, output_size), dtype=counts._dtype())


def _spread(repeats: Tensor, output_size: int | None) -> Tensor:
    """Each place as often as its count says."""
    if repeats._dtype() not in (INT64, INT32):
        raise NotImplementedError(f"\"repeat_interleave_cpu\" not implemented for '{torch_name(repeats._dtype())}'")
    if output_size is not None and valueless(repeats):
        return spread(repeats, output_size)
    if unknown(repeats):
        total = E.sum(E.cast(repeats, dtype=INT64), axis=(0,), keepdims=False)
        return spread(repeats, max(number(total, "repeat_interleave"), 0))
    counts = repeats._values_for("repeat_interleave")
    if counts.size and counts.min() < 0:
        raise RuntimeError("repeats can not be negative")
    if output_size not in (None, int(counts.sum())):
        raise RuntimeError("allocated size does not match required size")
    return Tensor._wrap(np.repeat(np.arange(counts.size), counts))
