"""Shape-and-dtype rules shared by many ops. Each raises PyTorch's error for operands that do not fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from graphc.ops.aval import Aval, same_shape, size_of
from graphc.ops.dtypes import BOOL, INT64, SHORT_NAMES, TORCH_NAMES, is_half, is_inexact, kind, real_of
from graphc.ops.spec import Op, Rule, Trait

C_NAMES = {**{name: long.lower() for name, long in TORCH_NAMES.items()}, "u8": "unsigned char", "i8": "signed char",
           "f16": "c10::Half", "bf16": "c10::BFloat16", "i16": "short int", "i64": "long int",
           "c64": "c10::complex<float>",
           "c128": "c10::complex<double>"}  # fmt: skip


def torch_name(dtype: np.dtype) -> str:
    """PyTorch's scalar type name, as its messages use it: "Float", "Long", ..."""
    return TORCH_NAMES[SHORT_NAMES[dtype]]


def c_name(dtype: np.dtype) -> str:
    """The C++ type behind a dtype, as some of PyTorch's messages name it: "float", "long int", ..."""
    return C_NAMES[SHORT_NAMES[dtype]]


def broadcast_shapes(shapes: list[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape that `shapes` broadcast to. Raises PyTorch's RuntimeError where they do not."""
    result = shapes[0]
    for shape in shapes[1:]:
        if same_shape(shape, result):
            continue
        ndim = max(len(result), len(shape))
        a = (1,) * (ndim - len(result)) + result
        b = (1,) * (ndim - len(shape)) + shape
        merged = list(a)
        for axis in range(ndim - 1, -1, -1):
            if a[axis] == b[axis] or b[axis] == 1:
                continue
            if a[axis] != 1:
                raise RuntimeError(
                    f"The size of tensor a ({a[axis]}) must match the size of tensor b ({b[axis]}) "
                    f"at non-singleton dimension {axis}"
                )
            merged[axis] = b[axis]
        result = tuple(merged)
    return result


def normalize_axis(axis: int, ndim: int) -> int:
    """`axis` counted from the front. Raises PyTorch's IndexError if it is out of range (0-d counts as 1-d)."""
    bound = max(ndim, 1)
    if not -bound <= axis < bound:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-bound}, {bound - 1}], but got {axis})")
    return axis % bound


def reduced_shape(shape: tuple[int, ...], axis: tuple[int, ...], keepdims: bool) -> tuple[int, ...]:
    """The shape left after reducing over the axes `axis` (non-negative)."""
    if keepdims:
        return tuple(1 if i in axis else n for i, n in enumerate(shape))
    return tuple(n for i, n in enumerate(shape) if i not in axis)


def _pointwise(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    last = widest = avals[-1]
    for a in avals:
        if a is widest or not a.shape or same_shape(a.shape, widest.shape):
            continue
        if widest.shape:
            return Aval(broadcast_shapes([a.shape for a in avals]), last.dtype)
        widest = a
    return widest if widest.dtype is last.dtype else Aval(widest.shape, last.dtype)  # shared by many nodes


def _real_part(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    aval = _pointwise(op, avals, params)
    return Aval(aval.shape, real_of(aval.dtype))


def _pointwise_bool(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    return Aval(broadcast_shapes([a.shape for a in avals]), BOOL)


def _where(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    if avals[0].dtype != BOOL:
        raise RuntimeError(
            f"where expected condition to be a boolean tensor, but got a tensor with dtype {torch_name(avals[0].dtype)}"
        )
    return Aval(broadcast_shapes([a.shape for a in avals]), avals[1].dtype)


def _integral(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    result = _pointwise(op, avals, params)
    for aval in avals:
        if is_inexact(aval.dtype):
            raise refused(op, aval.dtype)
    return result


def refused(op: Op, dtype: np.dtype) -> RuntimeError:
    """PyTorch's error for operands of a dtype that `op` does not take."""
    return NotImplementedError(f"\"{op.cpu_name}\" not implemented for '{torch_name(dtype)}'")


def refuse_unordered(op: Op, dtypes: list[np.dtype]) -> None:
    """Raise for complex operands of an op that needs an order."""
    for dtype in dtypes:
        if dtype.kind == "c" and op.traits & Trait.ORDERS:
            raise refused(op, dtype)


def refusing_bool(message: str = "", quantifier: Callable[..., bool] = all, some: str = "") -> Rule:
    """`pointwise` for an op that PyTorch refuses when `quantifier` of its operands are bool, with its message.

    With `some`, that is the message where some of them are.
    """

    def accepts(op: Op, dtypes: list[np.dtype]) -> None:
        if quantifier(dtype == BOOL for dtype in dtypes):
            raise RuntimeError(message) if message else refused(op, BOOL)
        if some and any(dtype == BOOL for dtype in dtypes):
            raise RuntimeError(some)
        refuse_unordered(op, dtypes)

    return Rule(_pointwise, "common", pointwise=True, accepts=accepts, holomorphic=True)


def refusing_complex(rule: Rule, message: str, error: type[Exception] = NotImplementedError) -> Rule:
    """`rule` for an op that PyTorch refuses for complex operands with a message of its own, about the op's {name}."""

    def accepts(op: Op, dtypes: list[np.dtype]) -> None:
        if any(dtype.kind == "c" for dtype in dtypes):
            raise error(message.format(name=op.name))
        if rule.accepts is not None:
            rule.accepts(op, dtypes)

    return rule._replace(accepts=accepts)


def accepting(kinds: str, message: str, error: type[Exception] = NotImplementedError) -> Callable[..., None]:
    """The test that operands are of these kinds (see `dtypes.kind`), with PyTorch's message for others.

    message  with places for the op's {name} and PyTorch's name of the {dtype}
    """

    def accepts(op: Op, dtypes: list[np.dtype]) -> None:
        for dtype in dtypes:
            if kind(dtype) not in kinds:
                raise error(message.format(name=op.name, dtype=torch_name(dtype)))

    return accepts


def _floats_only(op: Op, dtypes: list[np.dtype]) -> None:
    for dtype in dtypes:
        if not is_inexact(dtype):
            raise refused(op, dtype)


def _some_floating(op: Op, dtypes: list[np.dtype]) -> None:
    if not any(map(is_inexact, dtypes)):
        raise refused(op, dtypes[0])
    refuse_unordered(op, dtypes)


def _refuse_half(op: Op, dtypes: list[np.dtype]) -> None:
    for dtype in dtypes:
        if is_half(dtype):
            raise refused(op, dtype)
    refuse_unordered(op, dtypes)


def _reduce(dtype_of: Callable[[np.dtype], np.dtype]) -> Rule:
    def infer(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
        (x,) = avals
        return Aval(reduced_shape(x.shape, params["axis"], params["keepdims"]), dtype_of(x.dtype))

    return Rule(infer)


def _nonempty_reduce(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    (x,) = avals
    refuse_unordered(op, [x.dtype])
    axis = params["axis"]
    for i in axis:
        if x.ndim and x.shape[i] == 0:
            raise IndexError(f"{op.name}(): Expected reduction dim {i} to have non-zero size.")
    return Aval(reduced_shape(x.shape, axis, params["keepdims"]), x.dtype)


def _arg_reduce(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    (x,) = avals
    if x.dtype.kind == "c":
        raise RuntimeError(f"{op.name}(): does not support complex input")
    axis = params["axis"]
    if x.ndim and x.shape[axis] == 0:
        raise IndexError(f"{op.name}(): Expected reduction dim {axis} to have non-zero size.")
    axes = (axis,) if x.ndim else ()
    return Aval(reduced_shape(x.shape, axes, params["keepdims"]), INT64)


def _same(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    return avals[0]


def _scan(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    return Aval(avals[0].shape, accumulation_dtype(avals[0].dtype))


def _floating_mean(dtype: np.dtype) -> np.dtype:
    if not is_inexact(dtype):
        raise RuntimeError(
            "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. "
            f"Got: {torch_name(dtype)}"
        )
    return dtype


def _reshape(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    (x,) = avals
    shape = params["shape"]
    if size_of(shape) != x.size:
        raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {x.size}")
    return Aval(shape, x.dtype)


def _full(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    return Aval(params["shape"], params["dtype"])


def _cast(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    return Aval(avals[0].shape, params["dtype"])


def accumulation_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype of a sum: integers and bools are summed in int64."""
    return dtype if is_inexact(dtype) else INT64


pointwise = Rule(_pointwise, "common", pointwise=True, accepts=refuse_unordered, holomorphic=True)
pointwise_number = Rule(_pointwise, "number", pointwise=True, holomorphic=True)
pointwise_float = Rule(_pointwise, "float", pointwise=True, accepts=refuse_unordered, holomorphic=True)
pointwise_bool = Rule(_pointwise_bool, "common", pointwise=True, accepts=refuse_unordered, scalars="last")
logical = pointwise_bool._replace(scalars="")
predicate = Rule(_pointwise_bool, pointwise=True)
pointwise_no_bool = refusing_bool()
pointwise_floats_only = Rule(_pointwise, "float", pointwise=True, accepts=_floats_only, holomorphic=True)
# for kernels of float32 and float64 only
pointwise_wide = Rule(_pointwise, "float", pointwise=True, accepts=_refuse_half, holomorphic=True, scalars="one")
# of two tensors, of which one at least is floating
pointwise_floating = Rule(_pointwise, "common", pointwise=True, accepts=_some_floating, holomorphic=True, scalars="")
modulus = Rule(_real_part, "common", pointwise=True, accepts=pointwise_no_bool.accepts)
integral = Rule(_integral, "common", pointwise=True, scalars="one")
shift = integral._replace(accepts=pointwise_no_bool.accepts)
counting = shift._replace(scalars="")
where_rule = Rule(_where, "common", first=1, pointwise=True)
reduce_sum = _reduce(accumulation_dtype)
reduce_float = _reduce(_floating_mean)
reduce_size = _reduce(lambda dtype: real_of(_floating_mean(dtype)))
reduce_bool = _reduce(lambda dtype: BOOL)
reduce_nonempty = Rule(_nonempty_reduce)
arg_reduce = Rule(_arg_reduce)
same = Rule(_same)
same_float = Rule(_same, "float")
scan_rule = Rule(_scan)
reshape_rule = Rule(_reshape)
full_rule = Rule(_full)
cast_rule = Rule(_cast, pointwise=True)
