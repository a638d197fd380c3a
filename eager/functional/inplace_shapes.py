"""Methods that change the shape of a tensor in place: which part of its memory it shows, not what is there."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from eager.core import operands, state
from eager.core.grad_mode import enable_grad
from eager.core.interpreter import current_interpreter, on_arrays
from eager.core.state import storage_of
from eager.core.tensor import Tensor, check_in_place
from eager.engine.language import E
from eager.engine.node_names import named
from eager.functional import shapes, strides
from eager.functional.arguments import sizes_of
from eager.functional.naming import signature_of
from graphc.ops.strides import row_major

# `squeeze_` has a node of its own for each way to call it
_SQUEEZED = {"SqueezeBackward0": "SqueezeBackward3", "SqueezeBackward1": "SqueezeBackward4",
             "SqueezeBackward2": "SqueezeBackward5"}  # fmt: skip


def _reshaper(name: str, function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        check_in_place(self)
        # what only looks at it in another way has its history, which no_grad() does not take
        leaf = self._n if self._n is not None and self.is_leaf else None
        with contextlib.nullcontext() if self._n is leaf else enable_grad():
            result = function(self, *args, **kwargs)
        if result is self:
            return self
        if isinstance(result._n, list) and (made := result.grad_fn) is not None:
            node: str = made.name()
            named(result, _SQUEEZED.get(node) or node.replace("Backward0", "Backward1"))
        self._show(result, f"{name}_")
        if leaf.__class__ is list:  # a node of the tape: under a trace a leaf stays one
            self._n = leaf
        if self._d.__class__ is np.ndarray and on_arrays():
            state.note_write(self._d)
        return self

    method.__name__ = method.__qualname__ = f"{name}_"
    method.__doc__ = f"In-place form of `{name}`: `self` shows the same memory in that shape."
    method.__signature__ = signature_of(function, "self")  # type: ignore[attr-defined]
    return method


def resize_(self: Tensor, *sizes: Any, size: Any = None, memory_format: Any = None) -> Tensor:
    """Give `self` other sizes, over its own memory as far as that goes. As `torch.Tensor.resize_`.

    New elements are not initialized (here they are zero). RuntimeError for a tensor that requires grad.
    """
    new = sizes_of(sizes if size is None else (size,))
    if self._n is not None:
        raise RuntimeError("cannot resize variables that require grad")
    if min(new, default=0) < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(new)}: {list(new)}")
    if not current_interpreter().immediate:
        return _traced_resize(self, new)
    array = self._writable()
    if array.shape == new:
        return self
    memory = storage_of(array)
    memory = memory if isinstance(memory, np.ndarray) else array
    item = array.itemsize
    start = array.__array_interface__["data"][0] - memory.__array_interface__["data"][0]
    wanted = math.prod(new)
    if start + wanted * item <= memory.nbytes:
        flat = memory.T if memory.flags.f_contiguous else memory
        self._d = np.ndarray(new, array.dtype, flat, start)
    else:
        # what lies behind the elements in memory stays behind them
        kept = (memory.nbytes - start) // item
        flat = np.ndarray((kept,), array.dtype, memory.T if memory.flags.f_contiguous else memory, start)
        grown = np.zeros(wanted, array.dtype)
        grown[:kept] = flat
        self._d = grown.reshape(new)
    return self


def _traced_resize(self: Tensor, new: tuple[int, ...]) -> Tensor:
    """`resize_` under a trace, where memory is what a tensor shows that fills it."""
    old = tuple(self._d.shape)
    if old == new:
        return self
    current_interpreter().lies_plainly(self)
    kept, wanted = math.prod(old), math.prod(new)
    if wanted <= kept:
        return self._show(strides.as_strided(self, new, row_major(new), 0), "resize_")
    grown = E.full(shape=(wanted,), value=0, dtype=self._dtype())
    elements = E.reshape(self, shape=(kept,))
    return self._show(
        E.reshape(E.put_slice(grown, elements, start=(0,), stop=(kept,), step=(1,)), shape=new), "resize_"
    )


def resize_as_(self: Tensor, the_template: Tensor, memory_format: Any = None) -> Tensor:
    """`resize_` to the sizes of another tensor. As `torch.Tensor.resize_as_`."""
    return resize_(self, tuple(operands.shape(the_template)))


METHODS: dict[str, Callable[..., Tensor]] = {
    "unsqueeze_": _reshaper("unsqueeze", shapes.unsqueeze), "squeeze_": _reshaper("squeeze", shapes.squeeze),
    "t_": _reshaper("t", shapes.t), "transpose_": _reshaper("transpose", shapes.transpose),
    "swapaxes_": _reshaper("swapaxes", shapes.transpose), "swapdims_": _reshaper("swapdims", shapes.transpose),
    "as_strided_": _reshaper("as_strided", strides.as_strided), "resize_": resize_, "resize_as_": resize_as_,
}  # fmt: skip
