"""Functions that give the same elements another shape. Where PyTorch gives a view, this shares the memory too."""

from __future__ import annotations

import math
from operator import index
from typing import Any

import numpy as np

from eager.core import dtypes, operands
from eager.core.dtypes import Size
from eager.core.state import sequence
from eager.core.tensor import Tensor
from eager.core.views import base_of, not_a_view
from eager.core.warned import warn_once
from eager.engine.language import E
from eager.engine.node_names import enclosed, named, whole
from eager.functional.arguments import ALL_AXES, axes_of, axis_of, inferred_shape, shape_of, sizes_of
from eager.functional.parsing import no_overload
from eager.functional.strides import contiguous, view_dtype
from graphc.ops.rules import broadcast_shapes, normalize_axis
from graphc.ops.strides import reshaped

NOT_VIEWABLE = (
    "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
    "contiguous subspaces). Use .reshape(...) instead."
)


def reshape(input: Tensor, *sizes: Any, shape: Any = None) -> Tensor:
    """The elements in row-major order in `shape`; one size may be -1. Shares memory if it can. As `torch.reshape`."""
    old = shape_of(input, "reshape")
    new = inferred_shape(sizes_of(sizes if shape is None else (shape,), "reshape(): argument 'shape'"), math.prod(old))
    result = E.reshape(input, shape=new)
    if result._n is not None and base_of(result) is None and result is not input:
        named(result, "UnsafeViewBackward0")  # a copy
    return result


def view(self: Tensor, *shape: Any, size: Any = None, dtype: Any = None) -> Tensor:
    """As `reshape`, but always shares memory; of a dtype, the bytes as it. As `torch.Tensor.view`.

    RuntimeError where it cannot.
    """
    if dtype is not None or size is not None:
        shape = (dtype if size is None else size,)
    if len(shape) == 1 and isinstance(shape[0], dtypes.dtype):
        return view_dtype(self, shape[0])
    new = inferred_shape(sizes_of(shape, "view(): argument 'size'"), math.prod(self._d.shape))
    array = self._d
    if array.__class__ is np.ndarray and not array.flags.c_contiguous and array.size == math.prod(new):
        try:
            array.reshape(new, copy=False)
        except ValueError:
            raise RuntimeError(NOT_VIEWABLE) from None
    elif array.__class__ is not np.ndarray and math.prod(array.shape) == math.prod(new):
        steps = array.strides(self)
        if steps is not None and reshaped(tuple(array.shape), steps, new) is None:
            raise RuntimeError(NOT_VIEWABLE)
    return E.reshape(self, shape=new)


def view_as(self: Tensor, other: Tensor) -> Tensor:
    """`self` viewed in the shape of `other`. As `torch.Tensor.view_as`."""
    return view(self, tuple(operands.shape(other)))


def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    """`self` in the shape of `other`. As `torch.Tensor.reshape_as`."""
    return reshape(self, tuple(operands.shape(other)))


def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Dims `start_dim` to `end_dim` made one; a 0-d tensor becomes 1-d. As `torch.flatten`."""
    shape = shape_of(input, "flatten")
    start, end = axis_of(start_dim, len(shape)), axis_of(end_dim, len(shape))
    if start > end:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if not shape:
        return E.reshape(input, shape=(1,))
    if start == end:
        return input
    return reshape(input, (*shape[:start], math.prod(shape[start : end + 1]), *shape[end + 1 :]))


UNEXPECTED = "unflatten got an unexpected error:\n{}"


def unflatten(input: Tensor, dim: int, sizes: Any) -> Tensor:
    """`dim` split into `sizes`, of which one may be -1. As `torch.unflatten`."""
    shape = shape_of(input, "unflatten")
    axis = axis_of(dim, len(shape))
    sizes = sizes_of((sizes,))
    if not sizes:
        raise RuntimeError("unflatten: sizes must be non-empty")
    if not shape:
        raise RuntimeError(UNEXPECTED.format(f"Dimension specified as {axis} but tensor has no dimensions"))
    if sizes.count(-1) > 1:
        raise RuntimeError(UNEXPECTED.format("only one dimension can be inferred"))
    try:
        split = inferred_shape(sizes, shape[axis])
    except RuntimeError:
        split = ()
    if math.prod(split) != shape[axis]:
        raise RuntimeError(
            f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {axis} ({shape[axis]}) in "
            "the input tensor"
        )
    return E.reshape(input, shape=(*shape[:axis], *split, *shape[axis + 1 :]))


def ravel(input: Tensor) -> Tensor:
    """All elements in one dim, a view if they lie in order in memory. As `torch.ravel`."""
    size = math.prod(shape_of(input, "ravel"))
    return E.reshape(contiguous(input), shape=(size,))


def squeeze(input: Tensor, dim: Any = None, *, axis: Any = None) -> Tensor:
    """Without the dims of size 1: all, or those among `dim`. As `torch.squeeze`."""
    shape = shape_of(input, "squeeze")
    dim = dim if axis is None else axis
    dropped = ALL_AXES[len(shape)] if dim is None else () if dim == () else axes_of(dim, len(shape))
    result = E.reshape(input, shape=tuple(n for i, n in enumerate(shape) if n != 1 or i not in dropped))
    return named(result, f"SqueezeBackward{0 if dim is None else 1 if isinstance(dim, int) else 2}")


def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """With a dim of size 1 inserted at `dim`. As `torch.unsqueeze`."""
    shape = shape_of(input, "unsqueeze")
    at = axis_of(dim, len(shape) + 1)
    return named(E.reshape(input, shape=(*shape[:at], 1, *shape[at:])), "UnsqueezeBackward0")


def permute(input: Tensor, *axes: Any, dims: Any = None) -> Tensor:
    """The dims in the order `dims`. As `torch.permute`."""
    shape = shape_of(input, "permute")
    order = sizes_of(axes if dims is None else (dims,), "permute(): argument 'dims'")
    if dims is None and not axes:
        raise TypeError('permute() missing 1 required positional arguments: "dims"')
    if len(order) == len(shape):
        order = tuple(axis_of(d, len(shape)) for d in order)
    return E.permute(input, dims=order)


def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """With `dim0` and `dim1` exchanged. As `torch.transpose`."""
    ndim = len(shape_of(input, "transpose"))
    a, b = axis_of(dim0, ndim), axis_of(dim1, ndim)
    order = list(range(ndim))
    if ndim:
        order[a], order[b] = b, a
    return named(E.permute(input, dims=tuple(order)), "TransposeBackward0")


def t(input: Tensor) -> Tensor:
    """The transpose of a matrix; a vector or number as it is. As `torch.t`. RuntimeError for more than two dims."""
    ndim = len(shape_of(input, "t"))
    if ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {ndim}D")
    return named(E.permute(input, dims=(1, 0) if ndim == 2 else ALL_AXES[ndim]), "TBackward0")


T_OF_MANY = (
    "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated and it will throw an "
    "error in a future release. Consider `x.mT` to transpose batches of matrices or `x.permute(*torch.arange(x.ndim - "
    "1, -1, -1))` to reverse the dimensions of a tensor."
)
T_OF_SCALAR = "Tensor.T is deprecated on 0-D tensors. This function is the identity in these cases."
MT_OF_SCALAR = "Tensor.mT is deprecated on 0-D tensors. This function is the identity in these cases."


def reversed_dims(self: Tensor) -> Tensor:
    """The dims in reverse order. As `torch.Tensor.T`, with its warning for what is no matrix."""
    if len(self._d.shape) != 2:
        warn_once(T_OF_SCALAR if not self._d.shape else T_OF_MANY)
    return E.permute(self, dims=ALL_AXES[len(self._d.shape)][::-1])


def matrix_transpose(self: Tensor) -> Tensor:
    """The last two dims exchanged. As `torch.Tensor.mT`. RuntimeError for a vector; a number as it is, deprecated."""
    if not self._d.shape:
        warn_once(MT_OF_SCALAR)
        return self
    if len(self._d.shape) < 2:
        raise RuntimeError(
            f"tensor.mT is only supported on matrices or batches of matrices. Got {len(self._d.shape)}-D tensor."
        )
    return transpose(self, -2, -1)


def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    """Dims `source` moved to the places `destination`, the others in their order. As `torch.movedim`."""
    ndim = len(shape_of(input, "movedim"))
    if isinstance(source, int) != isinstance(destination, int):
        raise no_overload("movedim", (source, destination))
    sources, places = (
        (axis_of(x, ndim),) if isinstance(x, int) else tuple(axis_of(d, ndim) for d in x) for x in (source, destination)
    )
    given = [[x] if isinstance(x, int) else list(x) for x in (source, destination)]
    if len(sources) != len(places):
        raise RuntimeError(
            "movedim: Invalid source or destination dims: source "
            f"({given[0]} dims) should contain the same number of dims as destination ({given[1]} dims)"
        )
    for what, dims, named_so in (("source", sources, given[0]), ("destination", places, given[1])):
        if len(set(dims)) != len(dims):
            raise RuntimeError(f"movedim: repeated dim in `{what}` ({named_so})")
    if not ndim:
        return E.permute(input, dims=())
    rest = iter(i for i in range(ndim) if i not in sources)
    moved = dict(zip(places, sources, strict=True))
    return E.permute(input, dims=tuple(moved[i] if i in moved else next(rest) for i in range(ndim)))


def expand(self: Tensor, *sizes: Any, size: Any = None, implicit: bool = False) -> Tensor:
    """`self` repeated along dims of size 1, and new ones in front, to `sizes`; -1 keeps one. As in PyTorch."""
    shape, new = shape_of(self, "expand"), sizes_of(sizes if size is None else (size,), "expand(): argument 'size'")
    extra = len(new) - len(shape)
    if -1 in new:
        for i, n in enumerate(new[: max(extra, 0)]):
            if n == -1:
                raise RuntimeError(
                    f"The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension {i}"
                )
        new = tuple(shape[i - extra] if n == -1 else n for i, n in enumerate(new))
    return E.expand(self, shape=new)


def expand_as(self: Tensor, other: Tensor) -> Tensor:
    """`self` expanded to the shape of `other`. As `torch.Tensor.expand_as`."""
    return expand(self, tuple(operands.shape(other)))


def broadcast_to(input: Tensor, size: Any) -> Tensor:
    """`input` expanded to `size`. As `torch.broadcast_to`."""
    return expand(input, size)


NO_COMMON = (
    "Attempting to broadcast a dimension of length {n} at {dim}! Mismatching argument at index {at} had {shape}; but "
    "expected shape should be broadcastable to {common}"
)


def common_shape(*shapes: Any) -> Size:
    """The shape that `shapes` broadcast to. As `torch.broadcast_shapes`. RuntimeError if they do not."""
    given = [(s,) if isinstance(s, int) else tuple(s) for s in shapes]
    common = [1] * max(map(len, given), default=0)
    for at, shape in enumerate(given):
        for k in range(-1, -1 - len(shape), -1):
            if shape[k] < 0:
                raise ValueError("Attempting to broadcast a dimension with negative length!")
            if shape[k] not in (1, common[k]):
                if common[k] != 1:
                    raise RuntimeError(NO_COMMON.format(n=shape[k], dim=k, at=at, shape=shape, common=common))
                common[k] = shape[k]
    return Size(common)


def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """The tensors expanded to their common shape; those that have it, themselves. As `torch.broadcast_tensors`."""
    shapes = [tuple(operands.shape(x)) for x in tensors]
    shape = broadcast_shapes(shapes)
    return tuple(x if own == shape else expand(x, shape) for x, own in zip(tensors, shapes, strict=True))


def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The diagonal of dims `dim1` and `dim2` as the last dim. As `torch.diagonal`."""
    ndim = len(shape_of(input, "diagonal"))
    a, b = axis_of(dim1, ndim), axis_of(dim2, ndim)
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return E.diagonal(input, offset=offset, dim1=a, dim2=b)


@whole("DiagEmbedBackward0")
def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Matrices, in dims `dim1` and `dim2`, with `input`'s last dim on their diagonal. As `torch.diag_embed`."""
    ndim = len(shape_of(input, "diag_embed")) + 1
    a, b = normalize_axis(dim1, ndim), normalize_axis(dim2, ndim)
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    *batch, length = input._d.shape
    offset = offset if a < b else -offset
    n = length + abs(offset)
    first = offset if offset >= 0 else -offset * n
    used = length + (length - 1) * n if length else 0
    keep = (0,) * len(batch)
    flat = E.pad_zeros(input, low=(*keep, first), high=(*keep, n * n - first - used), interior=(*keep, n))
    matrices = E.reshape(flat, shape=(*batch, n, n))
    if {a, b} != {ndim - 2, ndim - 1}:
        rest = iter(range(ndim - 2))
        at = {min(a, b): ndim - 2, max(a, b): ndim - 1}
        matrices = E.clone(E.permute(matrices, dims=tuple(at[i] if i in at else next(rest) for i in range(ndim))))
    return not_a_view(matrices)


_diagonal_of = diagonal  # the parameters below take the name


def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """A vector as a diagonal matrix; of a matrix, its diagonal. As `torch.diag`."""
    ndim = len(shape_of(input, "diag"))
    if ndim == 1:
        return diag_embed(input, diagonal)
    if ndim != 2:
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {ndim}D")
    since = next(sequence)
    return enclosed(E.clone(_diagonal_of(input, diagonal)), "DiagonalBackward0_copy", since)


def trace(input: Tensor) -> Tensor:
    """The sum of a matrix's diagonal. As `torch.trace`. RuntimeError for anything but a matrix."""
    if len(shape_of(input, "trace")) != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {len(input._d.shape)}")
    if input._dtype().kind == "b":
        raise NotImplementedError("\"trace\" not implemented for 'Bool'")
    since = next(sequence)
    return enclosed(E.sum(diagonal(input), axis=(0,), keepdims=False), "TraceBackward0", since)


def tril(input: Tensor, diagonal: int = 0) -> Tensor:
    """The lower triangle of the last two dims, zeros above `diagonal`. As `torch.tril`."""
    return _triangle(input, diagonal, "tril")


def triu(input: Tensor, diagonal: int = 0) -> Tensor:
    """The upper triangle of the last two dims, zeros below `diagonal`. As `torch.triu`."""
    return _triangle(input, diagonal, "triu")


def _triangle(input: Tensor, diagonal: int, name: str) -> Tensor:
    if len(shape_of(input, name)) < 2:
        raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")
    return getattr(E, name)(input, diagonal=index(diagonal))


def size(self: Tensor, dim: int | None = None) -> Any:
    """The shape, or its entry `dim`. As `torch.Tensor.size`."""
    return self.shape if dim is None else self._d.shape[axis_of(dim, len(self._d.shape))]


def dim(self: Tensor) -> int:
    """The number of dims. As `torch.Tensor.dim`."""
    return len(self._d.shape)
