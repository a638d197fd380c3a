"""New tensors. They are always concrete, also under a trace: their values do not depend on what is traced."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from eager import dtypes
from eager.functional.arguments import cast_to, shape_of, sizes_of
from eager.functional.casts import placed
from eager.tensor import Tensor
from graphc.ops.dtypes import INT64, default_float, is_inexact, of_scalar

NO_GRAD_DTYPE = "Only Tensors of floating point and complex dtype can require gradients"
COPY_WARNING = (
    "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
    "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor)."
)


def finished(array: np.ndarray, device: Any, requires_grad: bool) -> Tensor:
    """A Tensor over `array`. RuntimeError if it is to require grad and its dtype cannot."""
    if requires_grad and not is_inexact(array.dtype):
        raise RuntimeError(NO_GRAD_DTYPE)
    t = Tensor._wrap(array)
    if device is not None:
        placed(t, device)
    return t.requires_grad_() if requires_grad else t


def dtype_or(dtype: Any, default: np.dtype) -> np.dtype:
    return default if dtype is None else dtypes.to_numpy(dtype)


# --- from data


def tensor(data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False,
           pin_memory: bool = False) -> Tensor:  # fmt: skip
    """A tensor with a copy of `data`: numbers, nested sequences, an ndarray. As `torch.tensor`.

    Python floats get the default dtype, integers int64. ValueError for ragged or non-numeric sequences.
    """
    if isinstance(data, Tensor):
        warnings.warn(COPY_WARNING, UserWarning, stacklevel=2)
        array = np.array(data._array(), None if dtype is None else dtypes.to_numpy(dtype))
    else:
        array = array_of(data, dtype)
    return finished(array, device, requires_grad)


def array_of(data: Any, dtype: Any) -> np.ndarray:
    """A new array of `data` with PyTorch's dtype for it."""
    if isinstance(data, np.ndarray):
        dtypes.of_numpy(data.dtype)
        return np.array(data, None if dtype is None else dtypes.to_numpy(dtype))
    try:
        array = np.array(data, None if dtype is None else dtypes.to_numpy(dtype))
    except (ValueError, TypeError):
        check_sequence(data)
        raise
    if array.dtype not in dtypes.BY_NUMPY:
        check_sequence(data)
        raise RuntimeError(f"Could not infer dtype of {type(data).__name__}")
    if dtype is None and array.dtype.kind in "fc" and is_python_number(data):
        return array.astype(of_scalar(array.flat[0].item()) if array.size else default_float())
    return array


def is_python_number(data: Any) -> bool:
    """Whether the first number in `data` is a plain Python one (or there is none): its dtype is the default."""
    while isinstance(data, Sequence):
        if not data:
            return True
        data = data[0]
    return not isinstance(data, (np.generic, np.ndarray, Tensor))


def check_sequence(data: Any) -> None:
    """Raise PyTorch's error for a sequence that is ragged or holds what is no number."""
    shape: list[int] = []
    first = data
    while isinstance(first, Sequence) and not isinstance(first, str):
        shape.append(len(first))
        if not first:
            break
        first = first[0]
    _check_level(data, shape, 0)


def _check_level(data: Any, shape: list[int], depth: int) -> None:
    if depth == len(shape):
        if isinstance(data, str):
            if depth:
                raise ValueError(f"too many dimensions '{type(data).__name__}'")
            raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
        if isinstance(data, Sequence):
            raise TypeError(f"'{type(data).__name__}' object cannot be interpreted as an integer")
        if not isinstance(data, (bool, int, float, complex, np.generic, np.ndarray, Tensor)):
            raise RuntimeError(f"Could not infer dtype of {type(data).__name__}")
        return
    if not isinstance(data, Sequence) or isinstance(data, str):
        raise TypeError("not a sequence")
    if len(data) != shape[depth]:
        raise ValueError(f"expected sequence of length {shape[depth]} at dim {depth} (got {len(data)})")
    for item in data:
        _check_level(item, shape, depth + 1)


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """`data` as a tensor, without a copy where it is a tensor or ndarray of that dtype. As `torch.as_tensor`."""
    if isinstance(data, Tensor):
        return placed(cast_to(data, dtype), device)
    if isinstance(data, np.ndarray):
        return placed(cast_to(from_numpy(data), dtype), device)
    return tensor(data, dtype=dtype, device=device)


def from_numpy(ndarray: np.ndarray) -> Tensor:
    """A tensor that shares memory with `ndarray`. As `torch.from_numpy`. TypeError for anything else."""
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(ndarray).__name__})")
    dtypes.of_numpy(ndarray.dtype)
    if any(step < 0 for step in ndarray.strides):
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative strides are not "
            "currently supported. (You can probably work around this by making a copy of your array  with "
            "array.copy().) "
        )
    return Tensor._wrap(ndarray.view(np.ndarray))


def scalar_tensor(s: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A 0-d tensor, of the default dtype if None is given. As `torch.scalar_tensor`."""
    return finished(np.array(s, dtype_or(dtype, default_float())), device, requires_grad)


# --- of a shape


def _checked(shape: tuple[int, ...], name: str = "") -> tuple[int, ...]:
    if min(shape, default=0) < 0:
        if name:
            raise RuntimeError(f"{name}: Dimension size must be non-negative.")
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(shape)}: {list(shape)}")
    return shape


def zeros(*sizes: Any, size: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
          requires_grad: bool = False) -> Tensor:  # fmt: skip
    """Zeros. As `torch.zeros`."""
    shape = _checked(sizes_of(sizes if size is None else (size,)), "zeros")
    return finished(np.zeros(shape, dtype_or(dtype, default_float())), device, requires_grad)


def ones(*sizes: Any, size: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
         requires_grad: bool = False) -> Tensor:  # fmt: skip
    """Ones. As `torch.ones`."""
    shape = _checked(sizes_of(sizes if size is None else (size,)), "ones")
    return finished(np.ones(shape, dtype_or(dtype, default_float())), device, requires_grad)


def empty(*sizes: Any, size: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
          requires_grad: bool = False, memory_format: Any = None) -> Tensor:  # fmt: skip
    """Memory that is not set to anything. As `torch.empty`."""
    shape = _checked(sizes_of(sizes if size is None else (size,)), "empty")
    return finished(np.empty(shape, dtype_or(dtype, default_float())), device, requires_grad)


def full(size: Any, fill_value: Any, *, dtype: Any = None, layout: Any = None, device: Any = None,
         requires_grad: bool = False) -> Tensor:  # fmt: skip
    """`fill_value` everywhere, in its own dtype if None is given. As `torch.full`."""
    if isinstance(fill_value, Tensor):
        fill_value = fill_value.item()
    wanted = of_scalar(fill_value) if dtype is None else dtypes.to_numpy(dtype)
    return finished(np.full(_checked(sizes_of((size,))), fill_value, wanted), device, requires_grad)


def _like(name: str, make: Any, what: str) -> Any:
    def function(input: Tensor, *, dtype: Any = None, layout: Any = None, device: Any = None,
                 requires_grad: bool = False, memory_format: Any = None) -> Tensor:  # fmt: skip
        array = make(tuple(shape_of(input, name)), dtype_or(dtype, input._dtype()))
        return finished(array, device, requires_grad)

    function.__name__ = name
    function.__doc__ = f"{what} in the shape and dtype of `input`. As `torch.{name}`."
    return function


zeros_like = _like("zeros_like", np.zeros, "Zeros")
ones_like = _like("ones_like", np.ones, "Ones")
empty_like = _like("empty_like", np.empty, "Memory that is not set to anything,")


def full_like(input: Tensor, fill_value: Any, *, dtype: Any = None, layout: Any = None, device: Any = None,
              requires_grad: bool = False, memory_format: Any = None) -> Tensor:  # fmt: skip
    """`fill_value` in the shape and dtype of `input`. As `torch.full_like`."""
    array = np.full(tuple(shape_of(input, "full_like")), fill_value, dtype_or(dtype, input._dtype()))
    return finished(array, device, requires_grad)


def _new(name: str, make: Any) -> Any:
    def method(self: Tensor, *sizes: Any, size: Any = None, dtype: Any = None, device: Any = None,
               requires_grad: bool = False, **layout: Any) -> Tensor:  # fmt: skip
        shape = _checked(sizes_of(sizes if size is None else (size,)))
        return finished(make(shape, dtype_or(dtype, self._dtype())), device, requires_grad)

    method.__name__ = name
    method.__doc__ = f"As `torch.Tensor.{name}`: in the dtype of `self`."
    return method


new_zeros = _new("new_zeros", np.zeros)
new_ones = _new("new_ones", np.ones)
new_empty = _new("new_empty", np.empty)


def new_full(self: Tensor, size: Any, fill_value: Any, *, dtype: Any = None, device: Any = None,
             requires_grad: bool = False) -> Tensor:  # fmt: skip
    """`fill_value` in shape `size`, in the dtype of `self`. As `torch.Tensor.new_full`."""
    array = np.full(_checked(sizes_of((size,))), fill_value, dtype_or(dtype, self._dtype()))
    return finished(array, device, requires_grad)


def new_tensor(
    self: Tensor, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """A copy of `data` in the dtype of `self`. As `torch.Tensor.new_tensor`."""
    return tensor(data, dtype=self.dtype if dtype is None else dtype, device=device, requires_grad=requires_grad)


# --- number lines


def arange(start: Any = 0, end: Any = None, step: Any = 1, *, dtype: Any = None, layout: Any = None,
           device: Any = None, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """start, start + step, ... below `end`; int64 for integers. As `torch.arange`; RuntimeError for a bad step."""
    if end is None:
        start, end = 0, start
    start, end, step = (x.item() if isinstance(x, (Tensor, np.generic)) else x for x in (start, end, step))
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    integers = all(isinstance(x, int) for x in (start, end, step))
    wanted = dtype_or(dtype, INT64 if integers else default_float())
    if integers:
        return finished(np.arange(start, end, step).astype(wanted, copy=False), device, requires_grad)
    count = math.ceil((end - start) / step)
    return finished((start + step * np.arange(count)).astype(wanted), device, requires_grad)


def linspace(start: Any, end: Any, steps: int, *, dtype: Any = None, layout: Any = None,
             device: Any = None, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """`steps` values evenly spaced from `start` to `end`, both included. As `torch.linspace`."""
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    wanted = dtype_or(dtype, default_float())
    start, end = (x.item() if isinstance(x, Tensor) else x for x in (start, end))
    kind = wanted if wanted.kind in "fc" else np.dtype(np.float64)
    first, last = kind.type(start), kind.type(end)
    if steps < 2:
        return finished(np.full(steps, first).astype(wanted), device, requires_grad)
    step = (last - first) / kind.type(steps - 1)
    # From the nearer end: both ends are exact. PyTorch fuses products and sums: here they are not rounded to float32.
    index = np.arange(steps, dtype=np.result_type(kind, np.float64))
    values = np.where(index < steps // 2, first + step * index, last - step * (steps - 1 - index))
    return finished(values.astype(wanted), device, requires_grad)


def logspace(start: Any, end: Any, steps: int, base: float = 10.0, *, dtype: Any = None,
             layout: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """`base` to the powers `linspace(start, end, steps)`. As `torch.logspace`."""
    exponents = linspace(start, end, steps, dtype=dtypes.float64)._array()
    return finished(np.power(base, exponents).astype(dtype_or(dtype, default_float())), device, requires_grad)


def eye(n: int, m: int | None = None, *, dtype: Any = None, layout: Any = None, device: Any = None,
        requires_grad: bool = False) -> Tensor:  # fmt: skip
    """Ones on the diagonal of an (n, m) matrix of zeros. As `torch.eye`."""
    if n < 0:
        raise RuntimeError(f"n must be greater or equal to 0, got {n}")
    return finished(np.eye(n, m, dtype=dtype_or(dtype, default_float())), device, requires_grad)


def _indices(name: str, where: Any) -> Any:
    def function(
        row: int, col: int, offset: int = 0, *, dtype: Any = None, device: Any = None, layout: Any = None
    ) -> Tensor:
        places = np.array(np.nonzero(where(np.ones((row, col)), offset)))
        return finished(places.astype(dtype_or(dtype, INT64)), device, False)

    function.__name__ = name
    function.__doc__ = (
        f"The (2, N) indices of a triangle of a (row, col) matrix, in row-major order. As `torch.{name}`."
    )
    return function


tril_indices = _indices("tril_indices", np.tril)
triu_indices = _indices("triu_indices", np.triu)
