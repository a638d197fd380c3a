"""Tensors from data: numbers, nested sequences, arrays, buffers; PyTorch's rules for their dtype, and its errors.

Also of data of which a trace knows some only when its program runs.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from eager.core import dtypes
from eager.core.interpreter import on_arrays
from eager.core.tensor import INEXACT_ONLY, Tensor
from eager.core.warned import warn
from eager.engine.conversion import cast_to
from eager.engine.language import E
from eager.functional.buffers import finished, from_elsewhere, from_numpy, frombuffer, is_of_elsewhere
from eager.functional.casts import placed
from eager.functional.joining import stack
from eager.functional.scalars import fitted, traced
from eager.functional.static import at_hand, batched
from graphc.ops.dtypes import complex_of, default_float, is_inexact, of_scalar, promote_types
from graphc.ops.rules import torch_name

_PYTHON = {bool, int, float, complex}
_SEQUENCES = {list, tuple}
_NESTED = (list, tuple, np.ndarray, np.generic)


def array_of(data: Any, dtype: Any, name: str = "tensor") -> np.ndarray:
    """A new array of `data` with PyTorch's dtype for it, or with `dtype`."""
    wanted = None if dtype is None else dtypes.to_numpy(dtype, name)
    if isinstance(data, Tensor):
        return _copied(data._array(), wanted)
    if isinstance(data, (np.ndarray, np.generic)):
        dtypes.of_numpy(data.dtype)
        return _copied(np.asarray(data), wanted)
    kinds, leaves = leaves_of(data)
    if not kinds <= _PYTHON and any(
        issubclass(kind, Sequence) and not issubclass(kind, (str, bytes)) for kind in kinds
    ):
        data = _listed(data)  # `x.shape`, ranges, named tuples
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
    while kinds & _SEQUENCES and all(issubclass(kind, _NESTED) for kind in kinds):  # lists beside arrays
        level = list(chain.from_iterable(x if x.__class__ in _SEQUENCES else np.ravel(x) for x in level))
        kinds = set(map(type, level))
    return kinds, level


def _listed(data: Any) -> Any:
    """Sequences of any class as lists."""
    is_sequence = isinstance(data, Sequence) and not isinstance(data, (str, bytes))
    return [_listed(each) for each in data] if is_sequence else data


def dtype_of(x: Any) -> np.dtype:
    """The dtype that a leaf gives to the whole."""
    if isinstance(x, Tensor):
        return x._dtype()
    return x.dtype if isinstance(x, (np.ndarray, np.generic)) else of_scalar(x)


def _resolved(data: Any, kinds: set[type], leaves: list[Any]) -> Any:
    """`data` with tensors as numbers. Raises PyTorch's error for what is no number."""
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
    if isinstance(first, np.ndarray):
        shape += first.shape
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


COPY_WARNING = (
    "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
    "sourceTensor.detach().clone().requires_grad_(True), rather than {}(sourceTensor)."
)


def tensor(data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False,
           pin_memory: bool = False) -> Tensor:  # fmt: skip
    """A tensor with a copy of `data`: numbers, nested sequences, an ndarray. As `torch.tensor`.

    Python floats get the default dtype, integers int64. ValueError for ragged or non-numeric sequences.
    """
    if isinstance(data, Tensor):
        warn(COPY_WARNING.format("torch.tensor"))
    return finished(of_data(data, dtype), device, requires_grad, pin_memory)


def new_tensor(
    self: Tensor, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """A copy of `data` in the dtype of `self`. As `torch.Tensor.new_tensor`."""
    if isinstance(data, Tensor):
        warn(COPY_WARNING.format("tensor.new_tensor"))
    where = self.device if device is None else device
    return finished(of_data(data, self.dtype if dtype is None else dtype), where, requires_grad, pin_memory)


def of_data(data: Any, dtype: Any, name: str = "tensor") -> np.ndarray | Tensor:
    """`array_of(data, dtype, name)`; a traced tensor if some of `data` is known when a program runs."""
    data = _imported(data)
    if not on_arrays():
        found = traced_data(data, None if dtype is None else dtypes.to_numpy(dtype, name))
        if found is not None:
            return found
    return array_of(data, dtype, name)


_USUAL = (bool, int, float, complex, Tensor, np.ndarray)  # what lists begin with that hold no other arrays


def _imported(data: Any) -> Any:
    """`data` with tensors in place of arrays of other libraries, also in nested lists and tuples."""
    if is_of_elsewhere(data):
        return from_elsewhere(data)
    if type(data) in (list, tuple) and data and not isinstance(data[0], _USUAL):
        return [_imported(x) for x in data]
    return data


def as_tensor(data: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """`data` as a tensor, without a copy where it is a tensor, or an array of NumPy or PyTorch, of that dtype; an array
    of JAX, which never changes, is copied. As `torch.as_tensor`."""
    if isinstance(data, Tensor):
        return placed(cast_to(data, dtype), device)
    if isinstance(data, np.ndarray):
        return placed(cast_to(from_numpy(data), dtype), device)
    if is_of_elsewhere(data):
        return placed(cast_to(from_elsewhere(data), dtype), device)
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
    if is_of_elsewhere(obj):
        return from_elsewhere(obj)
    if isinstance(obj, (bytes, bytearray, memoryview)) or type(obj).__module__ == "array":
        return frombuffer(obj, dtype=dtypes.BY_NUMPY[default_float()] if dtype is None else dtype)
    return None


ONE_ELEMENT = "only one element tensors can be converted to Python scalars"


def traced_data(data: Any, wanted: np.dtype | None) -> Tensor | None:
    """A new tensor of `data`, in its own dtype if `wanted` is None. None if all of it is known."""
    if isinstance(data, Tensor):
        return _tensor_copied(data, data._dtype() if wanted is None else wanted) if _is_unknown(data) else None
    kinds, leaves = leaves_of(data)
    numbers = [x if isinstance(x, Tensor) and _is_unknown(x) else traced(x) for x in leaves]
    if all(x is None for x in numbers) or any(issubclass(kind, np.ndarray) for kind in kinds):
        return None
    check_sequence(data)
    dtype = functools.reduce(promote_types, map(dtype_of, leaves)) if wanted is None else wanted
    if dtype.kind != "c" and any(dtype_of(x).kind == "c" for x in leaves):
        return None  # an error of Python's
    parts = [_element(x, number, dtype) for x, number in zip(leaves, numbers, strict=True)]
    return E.reshape(stack(parts), shape=_shape(data))


def _is_unknown(tensor: Tensor) -> bool:
    return at_hand(tensor) is None and not batched(tensor)


def _tensor_copied(tensor: Tensor, wanted: np.dtype) -> Tensor:
    """A copy without history, in row-major order."""
    from eager.functional.strides import contiguous

    plain = E.stop_gradient(tensor)
    if plain._dtype().kind == "c" and wanted.kind not in "cb":
        plain = E.real(plain)
    copied = E.clone(plain) if plain._dtype() == wanted else E.cast(plain, dtype=wanted)
    return contiguous(copied)


def _element(leaf: Any, number: Tensor | None, wanted: np.dtype) -> Tensor:
    if number is None:
        return Tensor._wrap(np.array(leaf.item() if isinstance(leaf, Tensor) else leaf, wanted))
    if math.prod(number._d.shape) != 1:
        raise ValueError(ONE_ELEMENT)
    found: Tensor = E.reshape(E.stop_gradient(number), shape=())
    return E.cast(found, dtype=wanted) if is_inexact(wanted) else fitted(found, wanted, limited=False)


def _shape(data: Any) -> tuple[int, ...]:
    return (len(data), *_shape(data[0])) if isinstance(data, (list, tuple)) else ()
