"""Reading and writing at index tensors and masks by name: gather, scatter, index_put, masked_fill, where, one_hot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from eager.core import operands
from eager.core.dtypes import type_name
from eager.core.state import sequence
from eager.core.tensor import Tensor
from eager.core.warned import warn_once
from eager.engine.crossing import beside
from eager.engine.language import E
from eager.engine.node_names import enclosed, whole
from eager.functional.arguments import axis_of, lifted, shape_of
from eager.functional.assignment import NOT_ALIKE, replaced
from eager.functional.counted import chosen, columns, largest, nonzero_places, number, unknown
from eager.functional.indexing import OUT_OF_BOUNDS, TOO_MANY
from eager.functional.parsing import no_overload
from eager.functional.slices import cast_number, outside, reshaped
from eager.functional.static import batched, filled_in_order, required, valueless
from graphc.ops.dtypes import BOOL, INT64, default_float, of_scalar
from graphc.ops.rules import broadcast_shapes, c_name, torch_name

BYTE_CONDITION = (
    "where received a uint8 condition tensor. This behavior is deprecated and will be removed in a future version of "
    "PyTorch. Use a boolean condition instead."
)


def gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    """result[i][j] = input[index[i][j]][j] for dim 0, and so on. As `torch.gather`. RuntimeError out of bounds."""
    axis = axis_of(dim, len(shape_of(input, "gather")))
    wanted = shape_of(index, "gather", "index", 3)
    if not wanted or not input._d.shape or 0 in wanted:
        return _gathered_apart(input, axis, index)
    try:
        return E.gather(input, index, axis=axis)
    except RuntimeError as error:
        raise _bounds(error, input, axis, index) from None


@whole("GatherBackward0")
def _gathered_apart(input: Tensor, axis: int, index: Tensor) -> Tensor:
    """`gather` where the tensor or the index has no dims, or the index no elements: nothing else is read of that."""
    wanted = index._d.shape
    if 0 in wanted:
        axis, index = 0, E.full(shape=(0,), value=0, dtype=INT64)
        input = E.reshape(input, shape=(numel(input._d.shape),))
    try:
        return reshaped(E.gather(lifted(input), lifted(index), axis=axis), wanted)
    except RuntimeError as error:
        raise _bounds(error, input, axis, index) from None


def scattered(
    core: Callable[..., Tensor], node: str, input: Tensor, dim: int, index: Tensor, src: Tensor, **options: Any
) -> Tensor:
    """core(input, index, src, axis=axis, **options), which writes elements of `src` into `input` at `index`, as `node`.

    Tensors without dims are vectors of one element, and of an index without elements only that is read.
    """
    shape = shape_of(input, "scatter")
    axis = axis_of(dim, len(shape))
    listed, given = shape_of(index, "scatter", "index", 3), shape_of(src, "scatter", "src", 4)
    if src._dtype() != input._dtype():
        raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
    since = next(sequence)
    empty = 0 in listed
    try:
        if shape and listed and given and not empty:
            return enclosed(core(input, index, src, axis=axis, **options), node, since)
        if empty:
            axis, index = 0, E.full(shape=(0,), value=0, dtype=INT64)
            flat = (E.reshape(t, shape=(numel(t._d.shape),)) for t in (input, src))
            return enclosed(reshaped(core(next(flat), index, next(flat), axis=0, **options), shape), node, since)
        result = core(lifted(input), lifted(index), lifted(src), axis=axis, **options)
        return enclosed(reshaped(result, shape), node, since)
    except RuntimeError as error:
        raise _bounds(error, input, axis, index) from None


def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """`input` with each src[i][j] added at [index[i][j]][j] for dim 0, and so on. As `torch.scatter_add`."""
    return scattered(E.scatter_add, "ScatterAddBackward0", input, dim, index, src)


def _bounds(error: RuntimeError, input: Tensor, axis: int, index: Tensor) -> RuntimeError:
    """PyTorch's words for an index out of bounds; any other error as it is."""
    if "out of bounds" not in str(error):
        return error
    size = input._d.shape[axis] if input._d.shape else 1
    return RuntimeError(OUT_OF_BOUNDS.format(index=outside(index, size), dim=axis, size=size))


def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """`gather` with sizes broadcast; of the flattened tensor without `dim`. As `torch.take_along_dim`."""
    shape = tuple(shape_of(input, "take_along_dim"))
    picked = tuple(shape_of(indices, "take_along_dim", "indices", 2))
    if dim is None:
        return gather(E.reshape(input, shape=(numel(shape),)), 0, E.reshape(indices, shape=(numel(picked),)))
    if indices._dtype() != INT64:
        kind = torch_name(indices._dtype())
        raise RuntimeError(f"torch.take_along_dim(): dtype of indices should be Long but got {kind}")
    if len(shape) != len(picked):
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, but got "
            f"{len(shape)} dimensions for input, and {len(picked)} dimensions for indices"
        )
    axis = axis_of(dim, len(shape))
    if not shape:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    common = broadcast_shapes([(*shape[:axis], 1, *shape[axis + 1 :]), (*picked[:axis], 1, *picked[axis + 1 :])])
    wide = (*common[:axis], shape[axis], *common[axis + 1 :])
    tall = (*common[:axis], picked[axis], *common[axis + 1 :])
    if 0 not in picked:
        indices = E.remainder(indices, shape[axis])  # counted round, from the end if negative
    if shape != wide:
        input = E.broadcast_to(input, shape=wide)
    return gather(input, axis, indices if picked == tall else E.broadcast_to(indices, shape=tall))


def numel(shape: tuple[int, ...]) -> int:
    total = 1
    for n in shape:
        total *= n
    return total


def index_put(input: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    """`input` with `values` written (or added) at input[indices]. As `torch.index_put`."""
    ndim = len(shape_of(input, "index_put"))
    if not isinstance(indices, (tuple, list)):
        kind = type_name(indices)
        raise TypeError(f"index_put(): argument 'indices' (position 2) must be tuple of Tensors, not {kind}")
    for at, index in enumerate(indices):
        if not isinstance(index, Tensor):
            raise TypeError(f"expected Tensor as element {at} in argument 1, but got {type_name(index)}")
    shape_of(values, "index_put", "values", 3)
    if len(indices) > ndim:
        raise IndexError(f"{TOO_MANY.format(ndim=ndim)} (got {len(indices)})")
    if values._dtype() != input._dtype():
        raise RuntimeError(NOT_ALIKE.format(target=torch_name(input._dtype()), source=torch_name(values._dtype())))
    since = next(sequence)
    return enclosed(replaced(input, tuple(indices), values, accumulate), "IndexPutBackward0", since)


@whole("MaskedScatterBackward0")
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """`input` with the elements where `mask` is true replaced by those of `source` in order. As `torch.masked_scatter`.

    RuntimeError if `source` has too few elements.
    """
    if mask._dtype() != BOOL:
        found = torch_name(mask._dtype())
        raise RuntimeError(f"masked_scatter_ only supports boolean masks, but got mask with dtype {found}")
    if source._dtype() != input._dtype():
        raise RuntimeError(
            f"masked_scatter: expected self and source to have same dtypes but got{torch_name(input._dtype())} and "
            f"{torch_name(source._dtype())}"
        )
    shape = broadcast_shapes([tuple(shape_of(input, "masked_scatter")), tuple(mask._d.shape)])
    if valueless(mask):
        target, mask = (t if t._d.shape == shape else E.broadcast_to(t, shape=shape) for t in (input, mask))
        return filled_in_order(target, mask, E.reshape(source, shape=(numel(source._d.shape),)))
    places = np.atleast_1d(np.broadcast_to(mask._values_for("masked_scatter"), shape)).nonzero()
    count = len(places[0])
    if numel(source._d.shape) < count:
        raise RuntimeError("Number of elements of source < number of ones in mask")
    picked = E.slice(E.reshape(source, shape=(numel(source._d.shape),)), start=(0,), stop=(count,), step=(1,))
    target = input if input._d.shape == shape else E.broadcast_to(input, shape=shape)
    if not shape:
        return E.reshape(picked, shape=()) if count else E.clone(target)
    arrays = tuple(Tensor._wrap(p) for p in places)
    return E.index_put(target, picked, *arrays, spec=tuple(range(len(shape))), accumulate=False)


def fill_value(value: Any, target: Tensor) -> Tensor:
    """A number or 0-d tensor in the dtype of `target`. RuntimeError if it does not fit, or for a tensor with dims."""
    if isinstance(value, Tensor):
        if value._d.shape:
            raise RuntimeError(
                "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with "
                f"{len(value._d.shape)} dimension(s)."
            )
    elif not isinstance(value, (bool, int, float, complex, np.generic)):
        raise no_overload("masked_fill", (target, value))
    return cast_number(value, target._dtype())


def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """`input` with `value` where `mask` is true, in the dtype of `input`. As `torch.masked_fill`."""
    shape_of(input, "masked_fill")
    check_mask(mask, "masked_fill")
    since = next(sequence)
    node = "MaskedFillBackward1" if isinstance(value, Tensor) else "MaskedFillBackward0"
    return enclosed(E.where(mask, fill_value(value, input), input), node, since)


def fill(input: Tensor, value: Any) -> Tensor:
    """A tensor like `input` that holds `value`, a number or a 0-d tensor, everywhere. As `torch.fill`."""
    shape = tuple(shape_of(input, "fill"))
    if isinstance(value, Tensor) and value._d.shape:
        raise RuntimeError(
            f"fill_ only supports 0-dimension value tensor but got tensor with {len(value._d.shape)} dimensions."
        )
    since = next(sequence)
    # the past of `input` gets zeros
    result = E.where(E.full(shape=shape, value=True, dtype=BOOL), cast_number(value, input._dtype()), input)
    return enclosed(result, f"FillBackward{int(isinstance(value, Tensor))}", since)


def check_mask(mask: Tensor, name: str) -> None:
    """Raise PyTorch's RuntimeError unless `mask` is a bool tensor."""
    dtype = operands.kind_of(mask)
    if dtype != BOOL:
        if name == "masked_select":
            raise RuntimeError("masked_select: expected BoolTensor for mask")
        raise RuntimeError(f"masked_fill_ only supports boolean masks, but got mask with dtype {c_name(dtype)}")


@whole("MaskedSelectBackward0")
def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """The elements where `mask` is true. As `torch.masked_select`. A graph is for one number of them."""
    check_mask(mask, "masked_select")
    shape = broadcast_shapes([tuple(mask._d.shape), tuple(shape_of(input, "masked_select"))])
    if unknown(mask):
        input, mask = (x if x._d.shape == shape else E.broadcast_to(x, shape=shape) for x in (input, mask))
        if not shape:
            input, mask = E.reshape(input, shape=(1,)), E.reshape(mask, shape=(1,))
        return chosen(input, mask, 0, "masked_select")
    places = np.flatnonzero(np.broadcast_to(mask._values_for("masked_select"), shape))
    if input._d.shape != shape:
        input = E.broadcast_to(input, shape=shape)
    return E.index(E.reshape(input, shape=(numel(shape),)), Tensor._wrap(places), spec=(0,))


def where(condition: Tensor, input: Any = None, other: Any = None) -> Any:
    """`input` where `condition` is true, else `other`; the true places if neither is given. As `torch.where`."""
    if input is None and other is None:
        return nonzero(condition, as_tuple=True)
    if not isinstance(condition, Tensor) or other is None:
        raise no_overload("where", (condition, input) if other is None else (condition, input, other))
    if condition._dtype() == np.uint8:
        warn_once(BYTE_CONDITION)
        condition = E.cast(condition, dtype=BOOL)
    if not isinstance(input, Tensor) and not isinstance(other, Tensor):
        kinds = {of_scalar(input), of_scalar(other)}
        wanted = np.result_type(*kinds) if all(k.kind != "f" for k in kinds) else default_float()
        input = Tensor._wrap(np.array(input, wanted))
    return E.where(condition, input, other)


def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """The indices of nonzero elements: rows of an int64 matrix, or one vector a dim. As `torch.nonzero`.

    A graph is for one number of them.
    """
    shape = shape_of(input, "nonzero")
    if unknown(input):
        input = input if shape or not as_tuple else E.reshape(input, shape=(1,))
        if not input._d.shape:
            count = number(E.cast(E.ne(input, 0), dtype=INT64), "nonzero")
            return beside(Tensor._wrap(np.zeros((count, 0), np.int64)), input)
        places = nonzero_places(input, "nonzero")
        return tuple(places) if as_tuple else columns(places)
    array = input._values_for("aten::nonzero")
    if as_tuple:
        return tuple(Tensor._wrap(place) for place in np.atleast_1d(array).nonzero())
    return Tensor._wrap(np.ascontiguousarray(np.argwhere(array)))


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """int64 with a 1 at each class along a new last dim. As in PyTorch. RuntimeError for what is no class."""
    shape = shape_of(tensor, "one_hot", "tensor")
    if tensor._dtype() != INT64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if num_classes == -1 and unknown(tensor) and numel(shape):
        tensor = required(tensor, E.ge(tensor, 0), "Class values must be non-negative.")
        num_classes = number(largest(tensor), "one_hot") + 1
    elif num_classes != -1 and valueless(tensor):
        tensor = required(tensor, E.ge(tensor, 0), "Class values must be non-negative.")
        tensor = required(tensor, E.lt(tensor, num_classes), "Class values must be smaller than num_classes.")
    elif num_classes == -1 or not batched(tensor):
        values = tensor._values_for("one_hot")
        if not values.size and num_classes <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        if values.size and values.min() < 0:
            raise RuntimeError("Class values must be non-negative.")
        if num_classes == -1:
            num_classes = int(values.max()) + 1
        elif values.size and values.max() >= num_classes:
            raise RuntimeError("Class values must be smaller than num_classes.")
    classes = Tensor._wrap(np.arange(num_classes))
    return E.cast(E.eq(E.reshape(tensor, shape=(*shape, 1)), classes), dtype=INT64)


def where_method(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    """`self` where `condition` is true, else `other`. As `torch.Tensor.where`."""
    return where(condition, self, other)
