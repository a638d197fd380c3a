"""New tensors. Under a trace, too, they are concrete, unless sizes or numbers depend on what is traced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from eager.core import dtypes
from eager.core.devices import CPU, META, check_device
from eager.core.layouts import LAYOUTS, layout_of
from eager.core.meta import Meta, is_meta
from eager.core.sparse import ON_CPU, Sparse, is_sparse, not_implemented
from eager.core.tensor import Tensor
from eager.engine.inplace import assign
from eager.engine.language import E
from eager.functional.arguments import fitting, shape_of, sizes_of
from eager.functional.buffers import finished, from_numpy
from eager.functional.data import as_tensor, new_tensor, tensor
from eager.functional.naming import called
from eager.functional.scalars import filled, filler, fitted, traced
from graphc.ops import dims
from graphc.ops.dtypes import INT64, default_float, of_scalar
from graphc.ops.rules import torch_name

__all__ = [
    "as_tensor", "empty", "empty_like", "empty_permuted", "empty_strided", "eye", "finished", "from_numpy",
    "full", "full_like", "new_empty", "new_empty_strided", "new_full", "new_ones",
    "new_tensor", "new_zeros", "ones", "ones_like", "scalar_tensor", "tensor", "zeros", "zeros_like",
]  # fmt: skip


def dtype_or(dtype: Any, default: np.dtype, name: str = "", out: Tensor | None = None) -> np.dtype:
    """The NumPy dtype of a result: the one asked for, that of `out`, or the default.

    RuntimeError if `out` has another dtype than the one asked for.
    """
    if dtype is None:
        return default if out is None else out._dtype()
    wanted = dtypes.to_numpy(dtype, name)
    if out is not None and out._dtype() != wanted:
        raise RuntimeError(
            f"dtype {torch_name(wanted)} does not match dtype of out parameter ({torch_name(out._dtype())})"
        )
    return wanted


def delivered(array: np.ndarray | Tensor, name: str, out: Tensor | None, layout: Any, device: Any, requires_grad: bool,
              pin_memory: bool = False) -> Tensor:  # fmt: skip
    """A new tensor over `array`, or `out` with its values, in memory of its own size if that has another."""
    if layout is not None:
        from eager.core.layouts import check_layout

        check_layout(layout, name)
    if out is None:
        return finished(array, device, requires_grad, pin_memory)
    made = array if isinstance(array, Tensor) else Tensor._wrap(array)
    if out._n is not None:
        raise RuntimeError(
            f"aten::{name}(): functions with out=... arguments don't support automatic differentiation, but one of the "
            "arguments requires grad."
        )
    if out._d.shape == made._d.shape:
        return assign(out, made, "copy")
    return out._show(made, name)


def is_sparse_layout(layout: Any) -> bool:
    """Whether `layout`, which may be None, is a sparse one."""
    return layout is not None and getattr(layout, "name", None) in LAYOUTS


def without_elements(
    shape: tuple[int, ...], dtype: np.dtype, layout: Any, device: Any, requires_grad: bool, dense: int = 0
) -> Tensor:
    """A sparse tensor that holds nothing, the last `dense` dims of which have no indices."""
    from eager.sparse.construction import zeros as nothing

    if check_device(device) is not CPU:
        raise NotImplementedError(ON_CPU)
    made = nothing(shape, dtype, layout, dense)
    return made.requires_grad_() if requires_grad else made


def _shape(name: str, sizes: Any, size: Any = None) -> tuple[int, ...]:
    """The sizes that a function was given, as `f(2, 3)`, `f((2, 3))` or `f(size=(2, 3))`."""
    if size is not None:
        sizes = (size,)
    elif not sizes:
        raise TypeError(f'{name}() missing 1 required positional arguments: "size"')
    return sizes_for(name, sizes)


def sizes_for(name: str, sizes: Sequence[Any]) -> tuple[int, ...]:
    """`sizes`, or a list of them, as ints. PyTorch's error for others, of the function `name`."""
    shape = sizes_of(sizes, f"{name}(): argument 'size'")
    if dims.negative(shape):
        if name == "zeros":
            raise RuntimeError("zeros: Dimension size must be non-negative.")
        worst = next(n for n in shape if n < 0)
        raise RuntimeError(f"Trying to create tensor with negative dimension {worst}: {list(shape)}")
    return shape


def _constant(make: Callable[..., np.ndarray], shape: tuple[int, ...], dtype: np.dtype, device: Any) -> Any:
    """`make(shape, dtype)`; a traced tensor if the shape depends on symbolic sizes, a meta tensor on that device."""
    if check_device(device) is META:
        return Tensor._wrap(Meta(shape, dtype))
    if dims.recordings and dims.has_dim(shape):
        return E.full(shape=shape, value=make((1,), dtype)[0].item() if make is not np.empty else 0, dtype=dtype)
    return make(shape, dtype)


def _filled(name: str, make: Callable[..., np.ndarray], what: str) -> Any:
    @called(name, f"{what}.", "torch")
    def function(*sizes: Any, size: Any = None, out: Tensor | None = None, dtype: Any = None, layout: Any = None,
                 device: Any = None, pin_memory: bool = False, requires_grad: bool = False) -> Tensor:  # fmt: skip
        shape, wanted = _shape(name, sizes, size), dtype_or(dtype, default_float(), name, out)
        if make is np.zeros and is_sparse_layout(layout):
            return without_elements(shape, wanted, layout, device, requires_grad)
        array = _constant(make, shape, wanted, device)
        return delivered(array, name, out, layout, device, requires_grad, pin_memory)

    return function


zeros = _filled("zeros", np.zeros, "Zeros")
ones = _filled("ones", np.ones, "Ones")


def empty(*sizes: Any, size: Any = None, out: Tensor | None = None, dtype: Any = None, layout: Any = None,
          device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
          memory_format: Any = None) -> Tensor:  # fmt: skip
    """Memory that is not set to anything. As `torch.empty`."""
    shape, wanted = _shape("empty", sizes, size), dtype_or(dtype, default_float(), "empty", out)
    if is_sparse_layout(layout):
        return without_elements(shape, wanted, layout, device, requires_grad)
    array = (
        _constant(np.empty, shape, wanted, device)
        if memory_format is None
        else _in_format(np.empty, shape, wanted, memory_format)
    )
    return delivered(array, "empty", out, layout, device, requires_grad, pin_memory)


def _in_format(make: Any, shape: tuple[int, ...], dtype: np.dtype, order: Any, like: Any = None) -> np.ndarray:
    from eager.core.layouts import allocated

    return allocated(make, shape, dtype, order, like)


def full(size: Any, fill_value: Any, *, out: Tensor | None = None, dtype: Any = None, layout: Any = None,
         device: Any = None, pin_memory: bool = False, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """`fill_value` everywhere, in its own dtype if None is given. As `torch.full`."""
    if not isinstance(size, (tuple, list)):
        raise TypeError(f"full(): argument 'size' (position 1) must be tuple of ints, not {type(size).__name__}")
    shape = _shape("full", (size,))
    value = _number(fill_value, "full")
    own = of_scalar(value)
    default = INT64 if out is not None or own.kind == "u" else own
    array = _full(shape, value, dtype_or(dtype, default, "full", out), device)
    return delivered(array, "full", out, layout, device, requires_grad, pin_memory)


def _full(shape: tuple[int, ...], value: Any, wanted: np.dtype, device: Any) -> Any:
    """`value` everywhere; a traced tensor if it, or the shape, is known when a program runs."""
    number = traced(value)
    if number is not None:
        return filled(shape, number, wanted)
    fill = fitting(value, wanted)
    return _constant(lambda shape, _: np.full(shape, fill), shape, wanted, device)


def _number(value: Any, name: str) -> Any:
    if isinstance(value, Tensor):
        return value.item()
    if isinstance(value, (bool, int, float, complex, np.generic)):
        return value
    raise TypeError(f"{name}(): argument 'fill_value' (position 2) must be Number, not {type(value).__name__}")


def scalar_tensor(s: Any, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
                  requires_grad: bool = False) -> Tensor:  # fmt: skip
    """A 0-d tensor, of the default dtype if None is given. As `torch.scalar_tensor`."""
    made = filler(s, dtype_or(dtype, default_float(), "scalar_tensor"))
    return delivered(made, "scalar_tensor", None, layout, device, requires_grad, pin_memory)


def _beside(like: Tensor, made: Tensor) -> Tensor:
    """`made`, for which `like` was the model: inside vmap it has a slice of its own for each of `like`."""
    return made if like._d.__class__ is np.ndarray else like._d.spread(made)


def _like(name: str, make: Any, what: str) -> Any:
    @called(name, f"{what} in the shape and dtype of `input`.", "torch")
    def function(input: Tensor, *, dtype: Any = None, layout: Any = None, device: Any = None,
                 pin_memory: bool = False, requires_grad: bool = False,
                 memory_format: Any = None) -> Tensor:  # fmt: skip
        shape_of(input, name)
        if layout is None and is_sparse(input):
            layout = layout_of(input)
        if is_sparse_layout(layout):
            if make not in (np.zeros, np.empty):
                raise not_implemented("fill_", Sparse(layout.name, (), ()))  # type: ignore[union-attr]
            shape, dense = shape_of(input, name), len(input._d.shape) - input._d.sparse_dim if is_sparse(input) else 0
            return without_elements(
                tuple(shape), dtype_or(dtype, input._dtype(), name), layout, device, requires_grad, dense
            )
        array = _laid_like(input, name, make, dtype, memory_format, device)
        return _beside(input, delivered(array, name, None, layout, _near(input, device), requires_grad, pin_memory))

    return function


def _near(like: Tensor, device: Any) -> Any:
    """The device of a tensor that is made like another one."""
    return like.device if device is None else device


def _laid_like(input: Tensor, name: str, make: Any, dtype: Any, order: Any, device: Any) -> Any:
    shape = shape_of(input, name)
    if is_sparse(input):
        raise not_implemented("fill_", input._d)
    wanted, data, device = dtype_or(dtype, input._dtype(), name), input._d, _near(input, device)
    if check_device(device) is META or is_meta(input):
        return _constant(make, tuple(shape), wanted, device)
    if order is None and data.__class__ is not np.ndarray:  # a traced tensor may lie in another order, too
        from eager.core.layouts import memory_order

        stored = memory_order(input)
        if stored is None:
            return _constant(make, tuple(shape), wanted, device)
        return _constant(make, tuple(shape[i] for i in stored), wanted, device).transpose(np.argsort(stored))
    if order is None and data.flags.c_contiguous:
        return _constant(make, tuple(shape), wanted, device)
    return _in_format(make, tuple(shape), wanted, order, data if data.__class__ is np.ndarray else None)


zeros_like = _like("zeros_like", np.zeros, "Zeros")
ones_like = _like("ones_like", np.ones, "Ones")
empty_like = _like("empty_like", np.empty, "Memory that is not set to anything,")


def full_like(input: Tensor, fill_value: Any, *, dtype: Any = None, layout: Any = None, device: Any = None,
              pin_memory: bool = False, requires_grad: bool = False, memory_format: Any = None) -> Tensor:  # fmt: skip
    """`fill_value` in the shape and dtype of `input`. As `torch.full_like`."""
    value, wanted = _number(fill_value, "full_like"), dtype_or(dtype, input._dtype(), "full_like")
    number = traced(value)
    fill = np.ones((), wanted) if number is not None else fitting(value, wanted)
    array: Any = _laid_like(input, "full_like", lambda shape, _: np.full(shape, fill), dtype, memory_format, device)
    if number is not None:  # times ones that lie as `input` does
        array = E.mul(array if isinstance(array, Tensor) else Tensor._wrap(array), fitted(number, wanted))
    return _beside(input, delivered(array, "full_like", None, layout, _near(input, device), requires_grad, pin_memory))


def _new(name: str, make: Any) -> Any:
    @called(name, "In the dtype of `self`.", "torch.Tensor")
    def method(self: Tensor, *sizes: Any, size: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
               pin_memory: bool = False, requires_grad: bool = False) -> Tensor:  # fmt: skip
        device = _near(self, device)
        shape, wanted = _shape(name, sizes, size), dtype_or(dtype, self._dtype(), name)
        if layout is None and is_sparse(self) and make is not np.ones:
            return without_elements(shape, wanted, layout_of(self), device, requires_grad)
        array = _constant(make, shape, wanted, device)
        return _beside(self, delivered(array, name, None, layout, device, requires_grad, pin_memory))

    return method


new_zeros = _new("new_zeros", np.zeros)
new_ones = _new("new_ones", np.ones)
new_empty = _new("new_empty", np.empty)


def new_full(self: Tensor, size: Any, fill_value: Any, *, dtype: Any = None, layout: Any = None, device: Any = None,
             pin_memory: bool = False, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """`fill_value` in shape `size`, in the dtype of `self`. As `torch.Tensor.new_full`."""
    value, wanted = _number(fill_value, "new_full"), dtype_or(dtype, self._dtype(), "new_full")
    device = _near(self, device)
    made = _full(_shape("new_full", (size,)), value, wanted, device)
    return _beside(self, delivered(made, "new_full", None, layout, device, requires_grad, pin_memory))


def empty_strided(size: Any, stride: Any, *, dtype: Any = None, layout: Any = None, device: Any = None,
                  requires_grad: bool = False, pin_memory: bool = False) -> Tensor:  # fmt: skip
    """Memory that is not set to anything, with the given steps between elements. As `torch.empty_strided`."""
    shape, steps = _shape("empty_strided", (size,)), sizes_of((stride,))
    if len(shape) != len(steps):
        raise RuntimeError(
            f"dimensionality of sizes ({len(shape)}) must match dimensionality of strides ({len(steps)})"
        )
    if min(steps, default=0) < 0:
        raise RuntimeError(f"strides must be non-negative, got {list(steps)}")
    wanted = dtype_or(dtype, default_float(), "empty_strided")
    needed = 0 if 0 in shape else 1 + sum((n - 1) * step for n, step in zip(shape, steps, strict=True))
    array = np.ndarray(shape, wanted, np.empty(needed, wanted), strides=[step * wanted.itemsize for step in steps])
    return delivered(array, "empty_strided", None, layout, device, requires_grad, pin_memory)


def new_empty_strided(self: Tensor, size: Any, stride: Any, *, dtype: Any = None, layout: Any = None,
                      device: Any = None, pin_memory: bool = False, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """`empty_strided` in the dtype of `self`. As `torch.Tensor.new_empty_strided`."""
    return empty_strided(size, stride, dtype=self.dtype if dtype is None else dtype, layout=layout, device=device,
                         pin_memory=pin_memory, requires_grad=requires_grad)  # fmt: skip


def empty_permuted(size: Any, physical_layout: Any, *, dtype: Any = None, layout: Any = None, device: Any = None,
                   requires_grad: bool = False, pin_memory: bool = False) -> Tensor:  # fmt: skip
    """Memory that is not set to anything, dims in memory in the order `physical_layout`. As `torch.empty_permuted`."""
    shape, order = _shape("empty_permuted", (size,)), sizes_of((physical_layout,))
    if sorted(order) != list(range(len(shape))):
        if len(order) == len(shape) and all(0 <= i < len(shape) for i in order):
            raise RuntimeError("Duplicate dim not allowed")
        raise RuntimeError(f"physical_layout must be a permutation of the dims of size, but got {list(order)}")
    wanted = dtype_or(dtype, default_float(), "empty_permuted")
    array = np.empty([shape[i] for i in order], wanted).transpose(np.argsort(order)) if order else np.empty((), wanted)
    return delivered(array, "empty_permuted", None, layout, device, requires_grad, pin_memory)


def _traced_eye(n: int, m: int, dtype: np.dtype) -> Tensor:
    row, column = (E.arange(shape=(k,), start=0, step=1, dtype=INT64) for k in (n, m))
    return E.cast(E.eq(E.reshape(row, shape=(n, 1)), column), dtype=dtype)


def eye(n: int, m: int | None = None, *, out: Tensor | None = None, dtype: Any = None, layout: Any = None,
        device: Any = None, pin_memory: bool = False, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """Ones on the diagonal of an (n, m) matrix of zeros. As `torch.eye`."""
    for name, position, value in (("n", 1, n), ("m", 2, n if m is None else m)):
        if not hasattr(value, "__index__"):
            raise TypeError(f"eye(): argument '{name}' (position {position}) must be int, not {type(value).__name__}")
        if value < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {value}")
    wanted = dtype_or(dtype, default_float(), "eye", out)
    array: Any = _traced_eye(n, n if m is None else m, wanted) if dims.recordings and dims.has_dim((n, m)) else None
    array = np.eye(n, m, dtype=wanted) if array is None else array
    return delivered(array, "eye", out, layout, device, requires_grad, pin_memory)
