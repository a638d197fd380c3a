"""Reading and writing at positions given by integer arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from graphc.ops import labels
from graphc.ops.aval import Aval
from graphc.ops.dtypes import INT32, INT64
from graphc.ops.index_maps import itself
from graphc.ops.lens import Lens
from graphc.ops.references import everywhere
from graphc.ops.rounding import Rounding
from graphc.ops.rules import broadcast_shapes, normalize_axis, same, torch_name
from graphc.ops.samples import Ints, Sample
from graphc.ops.scattering import gathered, index_added, scatter_added, scattered
from graphc.ops.spec import Op, Rule, Trait, bounded, op
from graphc.ops.strides import of_numbered

# `spec` places the index arrays: one entry an axis of the input, the number of the index array that selects along
# it, or None for the whole axis. x[i, :, j] is spec (0, None, 1).
Spec = tuple[int | None, ...]


def full_index(spec: Spec, indices: Any) -> tuple[Any, ...]:
    """The NumPy index that `spec` and its arrays stand for."""
    return tuple(slice(None) if s is None else indices[s] for s in spec)


def indexed_shape(shape: tuple[int, ...], spec: Spec, indices: list[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape of x[index]: index axes stand where the first one was if they are adjacent, else in front."""
    picked = broadcast_shapes(indices)
    places = [axis for axis, s in enumerate(spec) if s is not None]
    rest = [n for n, s in zip(shape, (*spec, *[None] * (len(shape) - len(spec))), strict=True) if s is None]
    adjacent = places == list(range(places[0], places[-1] + 1))
    at = places[0] if adjacent else 0
    return (*rest[:at], *picked, *rest[at:])


def _bounds(x: Any, indices: tuple[Any, ...], spec: Spec) -> list[tuple[Any, int, int]]:
    sizes = _sizes(x.shape, spec, len(indices))
    return [(index, -size, size) for index, size in zip(indices, sizes, strict=True)]


def _sizes(shape: tuple[int, ...], spec: Spec, count: int) -> list[int]:
    sizes = [0] * count
    for axis, s in enumerate(spec):
        if s is not None:
            sizes[s] = shape[axis]
    return sizes


def _check_indices(avals: list[Aval], spec: Spec) -> None:
    if sorted(s for s in spec if s is not None) != [*range(len(avals))]:
        raise IndexError(f"spec {spec} is not of {len(avals)} indices")
    for aval in avals:
        if aval.dtype.kind not in "iu":
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")


def _index(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    x, *indices = avals
    _check_indices(indices, params["spec"])
    if len(params["spec"]) > x.ndim:
        raise IndexError(f"too many indices for tensor of dimension {x.ndim}")
    return Aval(indexed_shape(x.shape, params["spec"], [i.shape for i in indices]), x.dtype)


def _index_put(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    x, values, *indices = avals
    _check_indices(indices, params["spec"])
    target = indexed_shape(x.shape, params["spec"], [i.shape for i in indices])
    if broadcast_shapes([values.shape, target]) != target:
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(values.shape)} cannot be broadcast to indexing result of "
            f"shape {list(target)}"
        )
    if x.dtype != values.dtype:
        raise RuntimeError(
            f"Index put requires the source and destination dtypes match, got {torch_name(x.dtype)} for the "
            f"destination and {torch_name(values.dtype)} for the source."
        )
    return Aval(x.shape, x.dtype)


def _np_index(x, *indices, spec):
    if len(indices) == 1:
        return x.take(indices[0], axis=spec.index(0))  # 3x faster than x[index] for rows
    return x[full_index(spec, indices)]


def _np_index_put(x, values, *indices, spec, accumulate):
    where = full_index(spec, indices)
    if accumulate:
        return index_added(x, where, values)
    result = x.copy()
    result[where] = values
    return result


def _jnp_index_put(xp, x, values, *indices, spec, accumulate):
    target = x.at[full_index(spec, indices)]
    return added(target, values) if accumulate else target.set(values)


def added(target: Any, values: Any) -> Any:
    """`values` added at `target`, an `x.at[...]` of JAX; of bools, their or."""
    return target.max(values) if values.dtype == bool else target.add(values)


@everywhere
def _ref_index(x, *indices, spec):
    picked = np.broadcast_arrays(*indices)
    places = [axis for axis, s in enumerate(spec) if s is not None]
    moved = np.moveaxis(x, places, range(len(places)))
    flat = np.array([moved[tuple(int(picked[spec[a]][at]) for a in places)] for at in np.ndindex(picked[0].shape)])
    result = flat.reshape(picked[0].shape + moved.shape[len(places) :])
    if places == list(range(places[0], places[-1] + 1)):
        k = picked[0].ndim
        result = np.moveaxis(result, range(k), range(places[0], places[0] + k))
    return result


@everywhere
def _ref_index_put(x, values, *indices, spec, accumulate):
    flat = np.arange(x.size).reshape(x.shape)
    at = _ref_index(flat, *indices, spec=spec)
    result = x.ravel().copy()
    for place, value in zip(at.ravel(), np.broadcast_to(values, at.shape).ravel(), strict=True):
        result[place] = result[place] + value if accumulate else value
    return result.reshape(x.shape)


def zeros(F: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Zeros to copy and write into: in memory they are one number."""
    return F.broadcast_to(F.full(shape=(), value=0, dtype=dtype), shape=shape)


def _scatter_back(F, g, input_shape, input_dtype, indices, spec):
    return F.index_put(zeros(F, input_shape, input_dtype), g, *indices, spec=spec, accumulate=True)


OUT_OF_RANGE = "index out of range in self"

index = op(
    "index", "input *indices", params={"spec": None}, dims=labels.indexed,
    numpy=_np_index, rule=Rule(_index), ref=_ref_index,
    traits=Trait.MOVES,
    lens=Lens(lambda F, whole, part, *indices, spec: F.index_put(whole, part, *indices, spec=spec, accumulate=False),
              of_numbered),
    impl=lambda xp, x, *indices, spec: x[full_index(spec, indices)],
    check=bounded(lambda x, *indices, spec: _bounds(x, indices, spec), IndexError, OUT_OF_RANGE),
    vjp=dict(input=_scatter_back),
    samples=(Sample((5, 3), Ints((4,), 5), spec=(0,)), Sample((3, 5), Ints((2, 2), 5), spec=(None, 0)),
             Sample((4, 3, 5), Ints((2,), 4), Ints((2,), 5), spec=(0, None, 1)),
             Sample((4, 5), Ints((3, 1), 4, -4), Ints((2,), 5), spec=(0, 1))),
)  # fmt: skip
index_put = op(
    "index_put", "input values *indices", params={"spec": None, "accumulate": False}, dims=labels.put,
    numpy=_np_index_put,
    impl=_jnp_index_put, rule=Rule(_index_put), ref=_ref_index_put,
    check=bounded(lambda x, values, *indices, spec, accumulate: _bounds(x, indices, spec), IndexError, OUT_OF_RANGE),
    rounding=Rounding(
        lambda avals, params: None if params["accumulate"] else 0.0,
        lambda avals, result, params: 1 + params["accumulate"] * max(index.size for index in avals[2:])),
    lone_term=lambda avals, result, params, is_zero: (
        params["accumulate"] and is_zero(0, 1) and all(index.size == 1 for index in avals[2:])),
    vjp=dict(
        input=lambda F, g, input_dtype, indices, spec, accumulate: g if accumulate else F.index_put(
            g, F.full(shape=(), value=0, dtype=input_dtype), *indices, spec=spec, accumulate=False),
        values=lambda F, g, indices, spec: F.index(g, *indices, spec=spec)),
    samples=(Sample((5, 3), (4, 3), Ints((4,), 5), spec=(0,), accumulate=True),
             Sample((4, 5), (3,), Ints((3,), 4), Ints((3,), 5), spec=(0, 1), accumulate=True),
             Sample((5, 3), (1, 3), Ints((1,), 5), spec=(0,), accumulate=False)),
)  # fmt: skip


# along one axis: gather and scatter_add
def check_index(name: str, x: Aval, index: Aval, axis: int, src: Aval | None = None) -> None:
    """Raise PyTorch's RuntimeError unless `index` picks elements of `x` along `axis`, for those of `src` if given."""
    if index.dtype not in (INT64, INT32):
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index")
    if src is not None and x.dtype != src.dtype:
        raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
    normalize_axis(axis, x.ndim)
    if len(index.shape) != len(x.shape):
        operand = "input" if name == "gather" else "self"
        raise RuntimeError(f"Index tensor must have the same number of dimensions as {operand} tensor")
    if src is not None and len(index.shape) != len(src.shape):
        raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
    for i, n in enumerate(index.shape):
        if (n > x.shape[i] and i != axis) or (src is not None and n > src.shape[i]):
            raise _larger(name, x, index, axis, src, i)


def _larger(name: str, x: Aval, index: Aval, axis: int, src: Aval | None, at: int) -> RuntimeError:
    wanted = f"xpected index {list(index.shape)} to be no larger than self {list(x.shape)} apart from dimension {axis}"
    if name == "gather":
        return RuntimeError(f"Size does not match at dimension {at} e{wanted}")
    return RuntimeError(f"E{wanted}" + (f" and to be no larger size than src {list(src.shape)}" if src else ""))


def _gather(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    x, index = avals
    check_index("gather", x, index, params["axis"])
    return Aval(index.shape, x.dtype)


def scatter_rule(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    """Of ops (input, index, src) with a parameter `axis`."""
    x, index, src = avals
    check_index("scatter", x, index, params["axis"], src)
    return x


def along(xp: Any, index: Any, axis: int) -> tuple[Any, ...]:
    """The full index of which `index` is the part along `axis`."""
    grid = [xp.arange(n).reshape([-1 if i == k else 1 for i in range(index.ndim)]) for k, n in enumerate(index.shape)]
    return tuple(index if k == axis else g for k, g in enumerate(grid))


def _jnp_scatter_add(xp, x, index, src, axis):
    src = src[tuple(map(slice, index.shape))]
    return added(x.at[along(xp, index, axis)], src)


@everywhere
def _ref_scatter(x, index, src, axis, distinct):
    result = x.copy()
    for at in np.ndindex(index.shape):
        result[(*at[:axis], index[at], *at[axis + 1 :])] = src[at]
    return result


@everywhere
def ref_gather(x, index, axis):
    result = np.empty(index.shape, x.dtype)
    for at in np.ndindex(index.shape):
        result[at] = x[(*at[:axis], index[at], *at[axis + 1 :])]
    return result


@everywhere
def _ref_scatter_add(x, index, src, axis):
    result = x.copy()
    for at in np.ndindex(index.shape):
        result[(*at[:axis], index[at], *at[axis + 1 :])] += src[at]
    return result


def _gather_vjp(F, g, input_shape, input_dtype, index, axis):
    return F.scatter_add(zeros(F, input_shape, input_dtype), index, g, axis=axis)


def _scatter_src_vjp(F, g, index, src_shape, axis):
    d = F.gather(g, index, axis=axis)
    if d.shape == src_shape:
        return d
    high = tuple(n - m for n, m in zip(src_shape, d.shape, strict=True))
    return F.pad_zeros(d, low=(0,) * len(high), high=high, interior=(0,) * len(high))


gather = op("gather", "input index", params={"axis": 0}, dims=labels.along_axis,
            rule=Rule(_gather), ref=ref_gather, numpy=gathered,
            traits=Trait.MOVES,
            impl=lambda xp, x, index, axis: x[along(xp, index, axis)],
            check=bounded(lambda x, index, axis: [(index, 0, x.shape[axis])], RuntimeError,
                          "index out of bounds in gather()"),
            samples=(Sample((3, 4), Ints((3, 2), 4), axis=1), Sample((3, 4), Ints((2, 4), 3), axis=0),
                     Sample((5,), Ints((7,), 5), axis=0)),
            vjp=dict(input=_gather_vjp))  # fmt: skip
scatter_add = op("scatter_add", "input index src", params={"axis": 0}, dims=labels.adding_along_axis,
                 numpy=scatter_added, impl=_jnp_scatter_add,
                 rule=Rule(scatter_rule), ref=_ref_scatter_add,
                 rounding=Rounding(length=lambda avals, result, params: 1 + (avals[1].shape or (1,))[params["axis"]]),
                 lone_term=lambda avals, result, params, is_zero: (
                     is_zero(0, 1) and avals[1].shape[params["axis"]] == 1),
                 check=bounded(lambda x, index, src, axis: [(index, 0, x.shape[axis])], RuntimeError,
                               "index out of bounds in scatter()"),
                 samples=(Sample((3, 4), Ints((3, 2), 4), (3, 2), axis=1), Sample((5,), Ints((7,), 5), (8,), axis=0)),
                 vjp=dict(input=lambda F, g: g, src=_scatter_src_vjp))  # fmt: skip
# distinct: no place occurs twice in a line, and all are there, as those that elements had before they were sorted
scatter = op("scatter", "input index src", params={"axis": 0, "distinct": False}, dims=labels.adding_along_axis,
             numpy=scattered,
             impl=lambda xp, x, index, src, axis, distinct: x.at[along(xp, index, axis)].set(
                 src[tuple(map(slice, index.shape))], unique_indices=distinct),
             rule=Rule(scatter_rule), ref=_ref_scatter, traits=Trait.MOVES,
             check=bounded(lambda x, index, src, axis, distinct: [] if distinct else [(index, 0, x.shape[axis])],
                           RuntimeError, "index out of bounds in scatter()"),
             samples=(Sample((3, 4), Ints((3, 1), 4), (3, 1), axis=1), Sample((3, 4), Ints((1, 3), 3), (2, 4), axis=0),
                      Sample((3, 1), Ints((3, 1), 1), (3, 1), axis=1, distinct=True)),
             vjp=dict(input=lambda F, g, index, src_shape, src_dtype, axis, distinct: F.scatter(
                          g, index, F.full(shape=src_shape, value=0, dtype=src_dtype), axis=axis, distinct=distinct),
                      src=_scatter_src_vjp))  # fmt: skip


# one element along an axis, among zeros: what the gradient of picking one is
def _place_rule(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    index, src = avals
    axis = normalize_axis(params["axis"], len(src.shape))
    if index.dtype not in (INT64, INT32):
        raise RuntimeError("place(): Expected dtype int32/int64 for index")
    if index.shape != src.shape or src.shape[axis] != 1:
        raise RuntimeError(f"place(): index {list(index.shape)} and src {list(src.shape)} must hold one element along "
                           f"dimension {axis}")  # fmt: skip
    return Aval((*src.shape[:axis], params["size"], *src.shape[axis + 1 :]), src.dtype)


def _place(xp, index, src, axis, size):
    at = [size if k == axis % index.ndim else 1 for k in range(index.ndim)]
    zero = xp.zeros((), src.dtype)
    return xp.where(xp.arange(size, dtype=index.dtype).reshape(at) == index, src + zero, zero)  # -0.0 + 0.0 is 0.0


@everywhere
def _ref_place(index, src, axis, size):
    shape = [size if k == axis % src.ndim else n for k, n in enumerate(src.shape)]
    return _ref_scatter_add(np.zeros(shape, src.dtype), index, src, axis % src.ndim)


place = op("place", "index src", params={"axis": 0, "size": 0}, dims=labels.placed,
           impl=_place, rule=Rule(_place_rule), ref=_ref_place,
           traits=Trait.MOVES, lone_term=lambda *_: True,
           check=bounded(lambda index, src, axis, size: [(index, 0, size)], RuntimeError,
                         "index out of bounds in scatter()"),
           samples=(Sample(Ints((3, 1), 4), (3, 1), axis=1, size=4), Sample(Ints((1, 2), 3), (1, 2), axis=0, size=3)),
           vjp=dict(src=lambda F, g, index, axis: F.gather(g, index, axis=axis)))  # fmt: skip
# `index` itself, which may not be negative: what index_select and its like ask of it beyond `index`
in_range = op("in_range", "index", params={"size": 0}, dims=labels.SAME,
              impl=lambda xp, index, size: xp.positive(index), rule=same,
              traits=Trait.MOVES,
              check=bounded(lambda index, size: [(index, 0, size)], IndexError, OUT_OF_RANGE),
              ref=itself, samples=(Sample(Ints((4,), 5), size=5),))  # fmt: skip
