"""Tensors from data: numbers, nested sequences, arrays, buffers; also what a trace knows only when its program runs."""

from __future__ import annotations

import functools
import math
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
from eager.functional.literals import array_of, check_sequence, dtype_of, leaves_of
from eager.functional.scalars import fitted, traced
from eager.functional.static import at_hand, batched
from graphc.ops.dtypes import default_float, is_inexact, promote_types
from graphc.ops.rules import torch_name

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
        return _copied(data, data._dtype() if wanted is None else wanted) if _is_unknown(data) else None
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


def _copied(tensor: Tensor, wanted: np.dtype) -> Tensor:
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
