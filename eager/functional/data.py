"""Tensors from data: numbers, nested sequences, arrays, buffers. PyTorch's rules for their dtype, and its errors."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from eager import dtypes, state
from eager.functional.arguments import cast_to
from eager.functional.casts import placed
from eager.language import E
from eager.state import current_interpreter
from eager.tensor import INEXACT_ONLY, Tensor
from graphc.ops.dtypes import complex_of, default_float, is_inexact, of_scalar, promote_types
from graphc.ops.rules import torch_name

NO_GRAD_DTYPE = "Only Tensors of floating point and complex dtype can require gradients"
COPY_WARNING = (
    "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
    "sourceTensor.detach().clone().requires_grad_(True), rather than {}(sourceTensor)."
)
NEGATIVE_STRIDE = (
    "At least one stride in the given numpy array is negative, and tensors with negative strides are not currently "
    "supported. (You can probably work around this by making a copy of your array  with array.copy().) "
)
NOT_WRITABLE = (
    "The given {0} is not writable, and PyTorch does not support non-writable tensors. This means writing to this "
    "tensor will result in undefined behavior. You may want to copy the {1} to protect its data or make it writable "
    "before converting it to a tensor."
)
NO_PINNING = (
    "pin_memory=True requires a CUDA or other accelerator backend; no pinned memory allocator is available on this "
    "system."
)
_PYTHON = {bool, int, float, complex}
_SEQUENCES = {list, tuple}
_NESTED = {*_SEQUENCES, np.ndarray}


def finished(array: np.ndarray | Tensor, device: Any, requires_grad: bool, pin_memory: bool = False) -> Tensor:
    """A Tensor over `array`. RuntimeError if it is to require grad and its dtype cannot."""
    traced = isinstance(array, Tensor)
    if requires_grad and not is_inexact(array._dtype() if traced else array.dtype):
        raise RuntimeError(NO_GRAD_DTYPE)
    if pin_memory:
        raise RuntimeError(NO_PINNING)
    t = array if traced else Tensor._wrap(array)
    if device is not None:
        placed(t, device)
    return t.requires_grad_(_message=INEXACT_ONLY) if requires_grad else t


def tensor(data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False,
           pin_memory: bool = False) -> Tensor:  # fmt: skip
    """A tensor with a copy of `data`: numbers, nested sequences, an ndarray. As `torch.tensor`.

    Python floats get the default dtype, integers int64. ValueError for ragged or non-numeric sequences.
    """
    if isinstance(data, Tensor):
        warnings.warn(COPY_WARNING.format("torch.tensor"), UserWarning, stacklevel=2)
    return finished(of_data(data, dtype), device, requires_grad, pin_memory)


def new_tensor(
    self: Tensor, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """A copy of `data` in the dtype of `self`. As `torch.Tensor.new_tensor`."""
    if isinstance(data, Tensor):
        warnings.warn(COPY_WARNING.format("tensor.new_tensor"), UserWarning, stacklevel=2)
    return finished(of_data(data, self.dtype if dtype is None else dtype), device, requires_grad, pin_memory)


# --- the array, and its dtype


def of_data(data: Any, dtype: Any, name: str = "tensor") -> np.ndarray | Tensor:
    """`array_of(data, dtype, name)`; a traced tensor if some of `data` is known when a program runs."""
    if state.closed and current_interpreter() is not None:
        from eager.functional.traced_data import traced_data

        found = traced_data(data, None if dtype is None else dtypes.to_numpy(dtype, name))
        if found is not None:
            return found
    return array_of(data, dtype, name)


def array_of(data: Any, dtype: Any, name: str = "tensor") -> np.ndarray:
    """A new array of `data` with PyTorch's dtype for it, or with `dtype`."""
    wanted = None if dtype is None else dtypes.to_numpy(dtype, name)
    if isinstance(data, Tensor):
        return _copied(data._array(), wanted)
    if isinstance(data, (np.ndarray, np.generic)):
        dtypes.of_numpy(data.dtype)
        return _copied(np.asarray(data), wanted)
    kinds, leaves = leaves_of(data)
    if not kinds <= _PYTHON:
        data = _resolved(data, kinds, leaves)
        wanted = functools.reduce(promote_types, map(dtype_of, leaves)) if wanted is None else wanted
    try:
        array = np.array(data, wanted)
    except (ValueError, TypeError) as error:
        check_sequence(data)
        if complex in kinds and wanted is not None:
            real = is_inexact(wanted)
            raise TypeError(
                "must be real number, not complex" if real else "'complex' object cannot be interpreted as an integer"
            ) from None
        raise error
    except OverflowError:
        if wanted is None:
            raise
        # out of range of a narrow integer: PyTorch lets negative numbers wrap
        return _wrapped(np.array(data), wanted)
    if wanted is None:
        if array.dtype.kind in "fc":
            return array.astype(complex_of(default_float()) if array.dtype.kind == "c" else default_float())
        if array.dtype.kind not in "bi":
            check_sequence(data)
            if not kinds <= _PYTHON:
                raise RuntimeError(f"Could not infer dtype of {type(data).__name__}")
            raise ValueError("Overflow when unpacking long long")
    elif wanted.kind in "iu" and array.size and float in kinds:
        return _wrapped(np.array(data), wanted)
    return array


def _copied(array: np.ndarray, wanted: np.dtype | None) -> np.ndarray:
    if wanted is not None and wanted.kind not in "cb" and array.dtype.kind == "c":
        array = array.real
    return np.array(array, wanted, order="C")


def _wrapped(values: np.ndarray, wanted: np.dtype) -> np.ndarray:
    """Numbers as integers of `wanted`, which they must fit into; negative ones wrap if it has no sign."""
    limits = np.iinfo(wanted)
    low = 0 if wanted.kind == "u" and values.dtype.kind == "f" else limits.min if wanted.kind == "i" else -limits.max
    if not bool(np.all((values >= low) & (values <= limits.max))):
        raise RuntimeError(f"value cannot be converted to type {wanted} without overflow")
    return values.astype(np.int64).astype(wanted) if limits.max <= 2**63 else values.astype(wanted)


def leaves_of(data: Any) -> tuple[set[type], list[Any]]:
    """The types of what nested lists and tuples hold, and the things themselves."""
    level = [data]
    kinds: set[type] = {type(data)}
    while kinds and kinds <= _SEQUENCES:
        level = list(chain.from_iterable(level))
        kinds = set(map(type, level))
    while kinds & _SEQUENCES and kinds <= _NESTED:  # lists beside arrays
        level = list(chain.from_iterable(x if x.__class__ in _SEQUENCES else x.flat for x in level))
        kinds = set(map(type, level))
    return kinds, level


def dtype_of(x: Any) -> np.dtype:
    """The dtype that a leaf gives to the whole."""
    if isinstance(x, Tensor):
        return x._dtype()
    return x.dtype if isinstance(x, (np.ndarray, np.generic)) else of_scalar(x)


def _resolved(data: Any, kinds: set[type], leaves: list[Any]) -> Any:
    """`data` with tensors as numbers. Raises PyTorch's error for what is no number."""
    if isinstance(data, Sequence) and not isinstance(data, (str, list, tuple)):
        leaves[:] = data  # a range, say
        return list(data)
    check_sequence(data)
    if any(issubclass(kind, Tensor) for kind in kinds):
        data = _with_numbers(data)
    for x in leaves:
        if isinstance(x, np.ndarray):
            dtypes.of_numpy(x.dtype)
    return data


def _with_numbers(data: Any) -> Any:
    if isinstance(data, Tensor):
        if data._d.shape and data._array().size != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        return data.item()
    return [_with_numbers(x) for x in data] if isinstance(data, (list, tuple)) else data


def check_sequence(data: Any) -> None:
    """Raise PyTorch's error for a sequence that is ragged or holds what is no number."""
    shape: list[int] = []
    first = data
    while isinstance(first, Sequence):
        if isinstance(first, str):
            if shape:
                raise ValueError(f"too many dimensions '{type(first).__name__}'")
            break
        shape.append(len(first))
        if not first:
            break
        first = first[0]
    _check_level(data, shape, 0)


def _check_level(data: Any, shape: list[int], depth: int) -> None:
    if depth == len(shape):
        if isinstance(data, str):
            raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
        if isinstance(data, Sequence):
            raise TypeError(f"'{type(data).__name__}' object cannot be interpreted as an integer")
        if not isinstance(data, (bool, int, float, complex, np.generic, np.ndarray, Tensor)):
            raise RuntimeError(f"Could not infer dtype of {type(data).__name__}")
        return
    if isinstance(data, np.ndarray) and data.ndim:
        if data.shape != tuple(shape[depth:]):
            raise ValueError(f"expected sequence of length {shape[depth]} at dim {depth} (got {len(data)})")
        return
    if isinstance(data, str):
        raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
    if not isinstance(data, Sequence):
        raise TypeError("not a sequence")
    if len(data) != shape[depth]:
        raise ValueError(f"expected sequence of length {shape[depth]} at dim {depth} (got {len(data)})")
    for item in data:
        _check_level(item, shape, depth + 1)


# --- without a copy, where that is possible


def from_numpy(ndarray: np.ndarray) -> Tensor:
    """A tensor that shares memory with `ndarray`. As `torch.from_numpy`. TypeError for anything else."""
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {dtypes.type_name(ndarray)})")
    dtypes.of_numpy(ndarray.dtype)
    if any(step < 0 for step in ndarray.strides):
        raise ValueError(NEGATIVE_STRIDE)
    if not ndarray.flags.writeable:
        warnings.warn(NOT_WRITABLE.format("NumPy array", "array"), UserWarning, stacklevel=2)
    return Tensor._wrap(ndarray.view(np.ndarray))


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """`data` as a tensor, without a copy where it is a tensor or ndarray of that dtype. As `torch.as_tensor`."""
    if isinstance(data, Tensor):
        return placed(cast_to(data, dtype), device)
    if isinstance(data, np.ndarray):
        return placed(cast_to(from_numpy(data), dtype), device)
    return finished(of_data(data, dtype, "as_tensor"), device, False)


def asarray(obj: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None,
            requires_grad: bool | None = None) -> Tensor:  # fmt: skip
    """`obj` (a tensor, an array, a buffer, a sequence or a number) as a tensor. As `torch.asarray`.

    Memory is shared where dtype and kind allow it, unless `copy`; ValueError if it must be and `copy` is False.
    """
    found = _shared(obj, dtype)
    if found is None:
        if copy is False:
            raise ValueError("can't alias arbitrary sequence into a tensor.")
        return finished(of_data(obj, dtype, "asarray"), device, bool(requires_grad))
    result = cast_to(found, dtype)
    if copy is False and result is not found:
        names = (torch_name(t._dtype()) for t in (found, result))
        raise ValueError("can't alias tensor with dtype '{}' into dtype '{}'.".format(*names))
    if copy and result is found:
        result = E.clone(found)
    result = placed(result, device)
    if requires_grad is False and result._n is not None:
        return E.stop_gradient(result)
    return result.requires_grad_(_message=INEXACT_ONLY) if requires_grad and result._n is None else result


def _shared(obj: Any, dtype: Any) -> Tensor | None:
    """A tensor in the memory of `obj`; None if that is no memory."""
    if isinstance(obj, Tensor):
        return obj
    if isinstance(obj, np.ndarray):
        return from_numpy(obj)
    if hasattr(obj, "__dlpack__"):
        from eager.interop import from_dlpack

        return from_dlpack(obj)
    if isinstance(obj, (bytes, bytearray, memoryview)) or type(obj).__module__ == "array":
        return frombuffer(obj, dtype=dtypes.BY_NUMPY[default_float()] if dtype is None else dtype)
    return None


def frombuffer(buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Tensor:
    """A 1-d tensor in the memory of `buffer`, from byte `offset` on. As `torch.frombuffer`.

    ValueError if `count` elements (all, if negative) are not there.
    """
    wanted = dtypes.to_numpy(dtype, "frombuffer")
    memory = memoryview(buffer)
    length, size = memory.nbytes, wanted.itemsize
    if length <= 0 or count == 0:
        raise ValueError(f"both buffer length ({length}) and count ({count}) must not be 0")
    if not 0 <= offset < length:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({length} bytes) minus 1"
        )
    if count < 0 and (length - offset) % size:
        raise ValueError(
            f"buffer length ({length - offset} bytes) after offset ({offset} bytes) must be a multiple of element size "
            f"({size})"
        )
    if count > 0 and offset + count * size > length:
        raise ValueError(
            f"requested buffer length ({count} * {size} bytes) after offset ({offset} bytes) must not be greater than "
            f"actual buffer length ({length} bytes)"
        )
    if memory.readonly:
        warnings.warn(NOT_WRITABLE.format("buffer", "buffer"), UserWarning, stacklevel=2)
    return finished(np.frombuffer(buffer, wanted, count, offset), None, requires_grad)
