"""Reading and writing through index tensors by name: gather, scatter, index_select, masked_fill, where, one_hot."""

from __future__ import annotations

from typing import Any

import numpy as np

from eager.functional.arguments import axis_of, no_overload, shape_of
from eager.functional.indexing import OUT_OF_BOUNDS, replaced
from eager.language import E
from eager.naming import enclosed, whole
from eager.state import current_interpreter, sequence
from eager.tensor import Tensor
from graphc.ops.dtypes import BOOL, INT32, INT64, default_float, of_scalar
from graphc.ops.rules import broadcast_shapes, c_name, torch_name


def gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    """result[i][j] = input[index[i][j]][j] for dim 0, and so on. As `torch.gather`. RuntimeError out of bounds."""
    axis = axis_of(dim, len(shape_of(input, "gather")))
    try:
        return E.gather(input, index, axis=axis)
    except RuntimeError as error:
        raise _bounds(error, input, axis, index) from None


def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """`input` with each src[i][j] added at [index[i][j]][j] for dim 0, and so on. As `torch.scatter_add`."""
    axis = axis_of(dim, len(shape_of(input, "scatter_add")))
    try:
        return E.scatter_add(input, index, src, axis=axis)
    except RuntimeError as error:
        raise _bounds(error, input, axis, index) from None


def _bounds(error: RuntimeError, input: Tensor, axis: int, index: Tensor) -> RuntimeError:
    """PyTorch's words for an index out of bounds; any other error as it is."""
    if "out of bounds" not in str(error):
        return error
    values, size = index._array(), input._d.shape[axis] if input._d.shape else 1
    outside = values[(values < 0) | (values >= size)]
    return RuntimeError(OUT_OF_BOUNDS.format(index=int(outside[0]), dim=axis, size=size))


def scatter(
    input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: str | None = None
) -> Tensor:
    """`input` with each src[i][j], or `value`, written at [index[i][j]][j] for dim 0, and so on. As `torch.scatter`.

    With `reduce`, "add" or "multiply", combined with what is there.
    """
    shape = shape_of(input, "scatter")
    if reduce is not None:
        return _scattered_onto(input, dim, index, value if src is None else src, reduce)
    axis = axis_of(dim, len(shape))
    source = given = value if src is None else src
    extent = index._d.shape
    if isinstance(source, Tensor):
        if source._dtype() != input._dtype():
            raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
        if source._d.shape != extent:
            zero = (0,) * len(extent)
            source = E.slice(source, start=zero, stop=extent, step=(1,) * len(extent))
    else:
        source = Tensor._wrap(np.array(source, input._dtype()))
    grid = [np.arange(n).reshape([-1 if i == k else 1 for i in range(len(extent))]) for k, n in enumerate(extent)]
    places = [index if k == axis else Tensor._wrap(g) for k, g in enumerate(grid)]
    if index._dtype() not in (INT64, INT32):
        raise RuntimeError("scatter(): Expected dtype int32/int64 for index")
    since = next(sequence)
    try:
        result = E.index_put(input, source, *places, spec=tuple(range(len(places))), accumulate=False)
        return enclosed(result, f"ScatterBackward{0 if isinstance(given, Tensor) else 1}", since)
    except IndexError:
        raise _bounds(RuntimeError("index out of bounds"), input, axis, index) from None


_REDUCTIONS = {"add": "sum", "multiply": "prod"}  # of `scatter`, by their names in `scatter_reduce`


def _scattered_onto(input: Tensor, dim: int, index: Tensor, src: Any, reduce: str) -> Tensor:
    from eager.functional.scattering import scatter_reduce

    if reduce not in _REDUCTIONS:
        raise RuntimeError("reduce argument must be either add or multiply.")
    if not isinstance(src, Tensor):
        src = E.full(shape=tuple(index._d.shape), value=src, dtype=input._dtype())
    return scatter_reduce(input, dim, index, src, _REDUCTIONS[reduce])


def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """`gather` with sizes broadcast; of the flattened tensor without `dim`. As `torch.take_along_dim`."""
    shape = tuple(shape_of(input, "take_along_dim"))
    if dim is None:
        flat = E.reshape(input, shape=(numel(shape),))
        return gather(flat, 0, E.reshape(indices, shape=(numel(tuple(indices._d.shape)),)))
    axis = axis_of(dim, len(shape))
    picked = tuple(indices._d.shape)
    common = broadcast_shapes([(*shape[:axis], 1, *shape[axis + 1 :]), (*picked[:axis], 1, *picked[axis + 1 :])])
    wide = (*common[:axis], shape[axis], *common[axis + 1 :])
    tall = (*common[:axis], picked[axis], *common[axis + 1 :])
    if shape != wide:
        input = E.broadcast_to(input, shape=wide)
    return gather(input, axis, indices if picked == tall else E.broadcast_to(indices, shape=tall))


def numel(shape: tuple[int, ...]) -> int:
    total = 1
    for n in shape:
        total *= n
    return total


def _vector(index: Tensor, name: str) -> Tensor:
    if index._dtype() not in (INT64, INT32):
        if name == "index_select":
            raise RuntimeError("index_select(): Expected dtype int32 or int64 for index")
        raise RuntimeError(f"{name}_(): Expected dtype int32/int64 for index but got: {torch_name(index._dtype())}")
    if len(index._d.shape) > 1:
        raise IndexError(f"{name}(): Index is supposed to be a vector")
    return index if index._d.shape else E.reshape(index, shape=(1,))


def _at(axis: int) -> tuple[int | None, ...]:
    return (None,) * axis + (0,)


def _out_of(input: Tensor, axis: int, index: Tensor, kind: type[Exception], prefix: str = "") -> Exception:
    """The error for the first of `index` that is out of the bounds of `axis`."""
    values, size = index._values("index"), input._d.shape[axis]
    outside = values[(values < -size) | (values >= size)]
    return kind(prefix + OUT_OF_BOUNDS.format(index=int(outside[0]), dim=axis, size=size))


def _not_selected(input: Tensor, axis: int, index: Tensor) -> Exception:
    """PyTorch's error for an index that `index_select` does not find."""
    if not axis:
        return IndexError("index out of range in self")
    values, size = index._values("index"), input._d.shape[axis]
    outside = values[(values < 0) | (values >= size)]
    return RuntimeError(f"INDICES element is out of DATA bounds, id={int(outside[0])} axis_dim={size}")


@whole("IndexSelectBackward0")
def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """The slices of `input` along `dim` that `index` lists. As `torch.index_select`. IndexError out of bounds."""
    axis = axis_of(dim, len(shape_of(input, "index_select")))
    rows = _vector(index, "index_select")
    try:
        return E.index(input, rows, spec=_at(axis))
    except IndexError:
        raise _not_selected(input, axis, rows) from None


@whole("IndexAddBackward0")
def index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Tensor:
    """`input` with alpha * source added to the slices along `dim` that `index` lists. As `torch.index_add`."""
    axis = axis_of(dim, len(shape_of(input, "index_add")))
    if source._dtype() != input._dtype():
        raise RuntimeError(
            f"index_add_(): self ({torch_name(input._dtype())}) and source ({torch_name(source._dtype())}) must have "
            "the same scalar type"
        )
    rows = _vector(index, "index_add")
    listed, given = rows._d.shape[0], source._d.shape[axis] if source._d.shape else 1
    if listed != given:
        raise RuntimeError(
            f"index_add_(): Number of indices ({listed}) should be equal to source.size(dim): ({given}), for dim: "
            f"{axis}"
        )
    added = source if alpha == 1 else E.mul(source, alpha)
    try:
        return E.index_put(input, added, rows, spec=_at(axis), accumulate=True)
    except IndexError:
        if len(input._d.shape) < 2:
            raise IndexError("index out of range in self") from None
        raise _out_of(input, axis, rows, RuntimeError) from None


@whole("IndexCopyBackward0")
def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """`input` with the slices along `dim` that `index` lists replaced by those of `source`. As `torch.index_copy`."""
    axis = axis_of(dim, len(shape_of(input, "index_copy")))
    rows = _vector(index, "index_copy")
    try:
        return E.index_put(input, source, rows, spec=_at(axis), accumulate=False)
    except IndexError:
        raise _out_of(input, axis, rows, IndexError, "index_copy_(): ") from None


@whole("IndexFillBackward0")
def index_fill(input: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """`input` with the slices along `dim` that `index` lists set to `value`. As `torch.index_fill`."""
    axis = axis_of(dim, len(shape_of(input, "index_fill")))
    filled = fill_value(value, input)
    rows = _vector(index, "index_fill")
    try:
        return E.index_put(input, filled, rows, spec=_at(axis), accumulate=False)
    except IndexError:
        raise _out_of(input, axis, rows, IndexError) from None


def index_put(input: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    """`input` with `values` written (or added) at input[indices]. As `torch.index_put`."""
    if not accumulate:
        return replaced(input, tuple(indices), values)
    return E.index_put(input, values, *indices, spec=tuple(range(len(indices))), accumulate=True)


@whole("MaskedScatterBackward0")
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """`input` with the elements where `mask` is true replaced by those of `source` in order. As `torch.masked_scatter`.

    RuntimeError if `source` has too few elements. The places depend on values: eager only.
    """
    if mask._dtype() != BOOL:
        found = c_name(mask._dtype())
        raise RuntimeError(f"masked_scatter_ only supports boolean masks, but got mask with dtype {found}")
    if source._dtype() != input._dtype():
        raise RuntimeError(
            f"masked_scatter: expected self and source to have same dtypes but got{torch_name(input._dtype())} and "
            f"{torch_name(source._dtype())}"
        )
    shape = broadcast_shapes([tuple(shape_of(input, "masked_scatter")), tuple(mask._d.shape)])
    places = np.broadcast_to(mask._values("masked_scatter"), shape).nonzero()
    count = len(places[0]) if places else int(mask._values("masked_scatter"))
    if numel(source._d.shape) < count:
        raise RuntimeError("Number of elements of source < number of ones in mask")
    picked = E.slice(E.reshape(source, shape=(numel(source._d.shape),)), start=(0,), stop=(count,), step=(1,))
    target = input if input._d.shape == shape else E.broadcast_to(input, shape=shape)
    if not shape:
        return E.reshape(picked, shape=()) if count else E.clone(target)
    arrays = tuple(Tensor._wrap(p) for p in places)
    return E.index_put(target, picked, *arrays, spec=tuple(range(len(shape))), accumulate=False)


# --- masks


def fill_value(value: Any, target: Tensor) -> Tensor:
    """A number or 0-d tensor in the dtype of `target`. RuntimeError for a tensor with dims."""
    wanted = target._dtype()
    if isinstance(value, Tensor):
        if value._d.shape:
            raise RuntimeError(
                "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with "
                f"{len(value._d.shape)} dimension(s)."
            )
        return value if value._dtype() == wanted else E.cast(value, dtype=wanted)
    return Tensor._wrap(np.array(value, wanted))


@whole("MaskedFillBackward0")
def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """`input` with `value` where `mask` is true, in the dtype of `input`. As `torch.masked_fill`."""
    shape_of(input, "masked_fill")
    check_mask(mask, "masked_fill")
    return E.where(mask, fill_value(value, input), input)


def check_mask(mask: Tensor, name: str) -> None:
    """Raise PyTorch's RuntimeError unless `mask` is a bool tensor."""
    dtype = mask._dtype()
    if dtype != BOOL:
        if name == "masked_select":
            raise RuntimeError("masked_select: expected BoolTensor for mask")
        raise RuntimeError(f"masked_fill_ only supports boolean masks, but got mask with dtype {c_name(dtype)}")


@whole("MaskedSelectBackward0")
def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """The elements where `mask` is true. As `torch.masked_select`. The size depends on values: eager only."""
    check_mask(mask, "masked_select")
    shape = broadcast_shapes([tuple(shape_of(input, "masked_select")), tuple(mask._d.shape)])
    places = np.flatnonzero(np.broadcast_to(mask._values("masked_select"), shape))
    if input._d.shape != shape:
        input = E.broadcast_to(input, shape=shape)
    return E.index(E.reshape(input, shape=(numel(shape),)), Tensor._wrap(places), spec=(0,))


def where(condition: Tensor, input: Any = None, other: Any = None) -> Any:
    """`input` where `condition` is true, else `other`; the true places if neither is given. As `torch.where`."""
    if input is None and other is None:
        return nonzero(condition, as_tuple=True)
    if not isinstance(condition, Tensor):
        forms = "Tensor condition", "Tensor condition, Tensor input, Tensor other, *, Tensor out = None"
        raise no_overload("where", (condition, input, other), forms)
    if not isinstance(input, Tensor) and not isinstance(other, Tensor):
        kinds = {of_scalar(input), of_scalar(other)}
        wanted = np.result_type(*kinds) if all(k.kind != "f" for k in kinds) else default_float()
        input = Tensor._wrap(np.array(input, wanted))
    return E.where(condition, input, other)


def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """The indices of nonzero elements: rows of an int64 matrix, or one vector a dim. As `torch.nonzero`. Eager only."""
    array = input._values("aten::nonzero")
    if as_tuple:
        return tuple(Tensor._wrap(place) for place in np.atleast_1d(array).nonzero())
    return Tensor._wrap(np.ascontiguousarray(np.argwhere(array)))


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """int64 with a 1 at each class along a new last dim. As in PyTorch. RuntimeError for what is no class."""
    shape = shape_of(tensor, "one_hot", "tensor")
    if tensor._dtype() != INT64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if num_classes == -1 or current_interpreter() is None:
        values = tensor._array()
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


def repeat_interleave(input: Tensor, repeats: Any, dim: int | None = None) -> Tensor:
    """Each slice along `dim` (each element, if None) `repeats` times in a row. As `torch.repeat_interleave`."""
    shape = shape_of(input, "repeat_interleave")
    if dim is None:
        input, dim = E.reshape(input, shape=(numel(shape),)), 0
    axis = axis_of(dim, len(input._d.shape))
    counts = repeats._array() if isinstance(repeats, Tensor) else repeats
    since = next(sequence)
    result = E.index(input, Tensor._wrap(np.repeat(np.arange(input._d.shape[axis]), counts)), spec=_at(axis))
    # one number for all is a view, expanded and copied, in PyTorch
    return enclosed(result, "ViewBackward0" if isinstance(repeats, int) else "IndexSelectBackward0", since)


def where_method(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    """`self` where `condition` is true, else `other`. As `torch.Tensor.where`."""
    return where(condition, self, other)
