"""Bringing arguments to the registry's form: non-negative axes, tuples of sizes, NumPy dtypes; or PyTorch's errors."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from eager.core import dtypes, operands
from eager.core.interpreter import on_arrays
from eager.core.state import grad_enabled
from eager.core.tensor import Tensor
from eager.engine.language import E
from graphc.ops import dims
from graphc.ops.dtypes import FLOAT32, SHORT_NAMES, is_floating
from graphc.ops.rules import c_name, normalize_axis, torch_name

Axes = tuple[int, ...]

ALL_AXES: tuple[Axes, ...] = tuple(tuple(range(n)) for n in range(65))  # by number of dimensions; NumPy has 64 at most


def shape_of(x: Any, name: str, argument: str = "input", position: int = 1) -> tuple[int, ...]:
    """The shape of `x` as a plain tuple. Raises PyTorch's TypeError if `x` is no Tensor."""
    try:
        return x._d.shape
    except AttributeError:
        kind = dtypes.type_name(x)
        text = operands.NOT_TENSOR.format(name=name, argument=argument, position=position, kind=kind)
        raise TypeError(text) from None


def not_implemented(kernel: str, x: Tensor) -> NotImplementedError:
    """PyTorch's error for a dtype without kernel."""
    return NotImplementedError(f"\"{kernel}\" not implemented for '{torch_name(x._dtype())}'")


def check_real(x: Tensor, kernel: str) -> None:
    """Raise PyTorch's NotImplementedError for a dtype that is not real and floating."""
    try:
        if x._d.dtype is FLOAT32:
            return
    except AttributeError:
        raise operands.not_a_tensor(x) from None
    if not is_floating(x._dtype()):
        raise not_implemented(kernel, x)


def check_keepdim(keepdim: Any) -> None:
    """Raise PyTorch's TypeError for what is no bool."""
    if keepdim.__class__ is not bool and not isinstance(keepdim, np.bool):
        raise operands.not_of_kind(keepdim, "bool", "keepdim")


def axis_of(dim: Any, ndim: int, keepdim: Any = False) -> int:
    """`dim` counted from the front; a 0-d tensor counts as 1-d. Raises IndexError if it is out of range."""
    if keepdim is not False:
        check_keepdim(keepdim)
    if dim.__class__ is int and 0 <= dim < ndim:
        return dim
    try:
        return normalize_axis(operator.index(dim), ndim)
    except TypeError:
        raise operands.not_of_kind(dim, "int") from None


def axes_of(dim: Any, ndim: int, keepdim: Any = False) -> Axes:
    """`dim` (an int, a sequence, or None for all) as a tuple of axes; () for a 0-d tensor.

    Raises IndexError for a dim out of range, RuntimeError for one given twice, TypeError for what is no number, and for
    a `keepdim` that is none: a second dim, as in `x.sum(0, 1)`.
    """
    if keepdim is not False:
        check_keepdim(keepdim)
    if dim is None:
        return ALL_AXES[ndim]
    if dim.__class__ is int:
        axis = axis_of(dim, ndim)
        return (axis,) if ndim else ()
    if isinstance(dim, str) or not isinstance(dim, Sequence):
        try:
            return axes_of(operator.index(dim), ndim)  # type: ignore[arg-type]  # a str raises, too
        except TypeError:
            raise operands.not_of_kind(dim, "tuple of ints") from None
    if not dim:
        return ALL_AXES[ndim]
    axes = tuple(axis_of(d, ndim) for d in dim)
    for i, axis in enumerate(axes):
        if axis in axes[:i]:
            raise RuntimeError(f"dim {axis} appears multiple times in the list of dims")
    return axes if ndim else ()


def is_integer(value: Any) -> bool:
    """Whether `value` is taken for an int: also a tensor of one."""
    try:
        operator.index(value)
    except (TypeError, ValueError, RuntimeError):
        return False
    return True


def sizes_of(sizes: Sequence[Any], argument: str = "") -> tuple[int, ...]:
    """`f(2, 3)`, `f((2, 3))` and `f(torch.Size([2, 3]))` alike: `sizes` is what `*sizes` collected.

    TypeError for what is no integer, which names the `argument`, "view(): argument 'size'", if that is given.
    """
    lone = len(sizes) == 1 and not isinstance(sizes[0], (tuple, list))
    if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)):
        sizes = sizes[0]
    try:
        return tuple(map(dims.index if dims.recordings else operator.index, sizes))
    except TypeError:
        at, kind = next((at, type(n).__name__) for at, n in enumerate(sizes) if not is_integer(n))
        if argument and lone:
            raise TypeError(f"{argument} (position 1) must be tuple of ints, not {kind}") from None
        if argument and not at:
            found = f"but found element of type {kind} at pos 0"
            raise TypeError(f"{argument} (position 1) must be tuple of ints, {found}") from None
        if argument:
            raise TypeError(
                f"{argument} failed to unpack the object at pos {at + 1} with error "
                f'"type must be tuple of ints,but got {kind}"'
            ) from None
        raise TypeError(f"argument 'size' must be tuple of ints, but found element of type {kind}") from None


def inferred_shape(sizes: tuple[int, ...], count: int) -> tuple[int, ...]:
    """`sizes` with a -1 replaced by what makes `count` elements. Raises RuntimeError if nothing does."""
    if -1 not in sizes and not dims.negative(sizes):
        return sizes
    known = 1
    for i, n in enumerate(sizes):
        if n < -1:
            raise RuntimeError(f"invalid shape dimension {n} at index {i} of shape {list(sizes)}")
        if n != -1:
            known *= n
    if sizes.count(-1) > 1:
        raise RuntimeError("only one dimension can be inferred")
    if known == 0 and count == 0:
        raise RuntimeError(
            f"cannot reshape tensor of 0 elements into shape {list(sizes)} because the unspecified dimension size -1 "
            "can be any value and is ambiguous"
        )
    if known == 0 or count % known:
        raise RuntimeError(f"shape '{list(sizes)}' is invalid for input of size {count}")
    return tuple(count // known if n == -1 else n for n in sizes)


_C_TYPES = {"u8": "uint8_t", "i8": "int8_t", "i16": "int16_t", "i32": "int", "i64": "int64_t", "f64": "double"}


def fitting(value: Any, wanted: np.dtype) -> np.ndarray:
    """The number `value` as a 0-d array of `wanted`; negative ones wrap if it has no sign.

    RuntimeError if it does not fit, OverflowError if no dtype holds it.
    """
    if wanted.kind == "f" and (value.__class__ is float or value.__class__ is int) and -6e4 < value < 6e4:
        return np.array(value, wanted)
    if value.__class__ is int and not -(2**63) <= value < 2**64:
        raise OverflowError("int too big to convert")
    if wanted.kind in "cb":
        lost = False
    else:
        lost = isinstance(value, (complex, np.complexfloating)) and value.imag != 0
        value = value.real
    if not lost and wanted.kind in "iu":
        limits = np.iinfo(wanted)
        lost = not (limits.min if wanted.kind == "i" else -limits.max) <= value <= limits.max
        value = value if lost else int(value) % 2 ** (8 * wanted.itemsize) if wanted.kind == "u" else int(value)
    if not lost:
        array = np.array(value).astype(wanted)
        if wanted.kind in "iub" or np.isfinite(array) == np.isfinite(value):
            return array
    name = _C_TYPES.get(SHORT_NAMES[wanted]) or c_name(wanted)
    raise RuntimeError(f"value cannot be converted to type {name} without overflow")


def lifted(x: Tensor) -> Tensor:
    """`x`, as a vector if it has no dims: what PyTorch takes it for beside a dim."""
    return x if operands.shape(x) else E.reshape(x, shape=(1,))


def constant(value: Any, like: Tensor) -> Any:
    """A number beside the float tensor `like`, as a 0-d Tensor of its dtype: what generated code takes as any operand.

    Under a trace, and beside other dtypes, the number itself, so that promotion sees a number.
    """
    kind = value.__class__
    if (kind is float or kind is int) and like._dtype().kind == "f" and on_arrays():
        return Tensor._wrap(np.array(value, like._dtype()))
    return value


def unrecorded_arrays(tensors: Sequence[Tensor]) -> list[np.ndarray] | None:
    """The arrays of `tensors` if NumPy may combine them at once: one dtype, no trace, no gradient wanted. Else None."""
    if not on_arrays():
        return None
    dtype, recording = tensors[0]._d.dtype, grad_enabled()
    arrays = []
    for t in tensors:
        array = t._d
        if array.__class__ is not np.ndarray or array.dtype is not dtype or (recording and t._n is not None):
            return None
        arrays.append(array)
    return arrays
