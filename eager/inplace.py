"""In-place operations: compute the new value, check that it fits, write it into the tensor's own memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from eager import state
from eager.codegen import is_ufunc
from eager.language import E
from eager.state import current_interpreter, grad_enabled
from eager.tensor import Tensor, check_in_place
from graphc.ops.dtypes import category
from graphc.ops.rules import torch_name
from graphc.ops.spec import OPS

VIEW_HISTORY = (
    "{name}_(): an in-place write that autograd must record goes to a view of another tensor; this is not supported "
    "yet. Remedy: write to the whole tensor, or use an out-of-place form."
)


def assign(target: Tensor, value: Tensor, name: str) -> Tensor:
    """Write `value` into `target`, which takes over its history. Raises before anything is written.

    RuntimeError: `target` is a leaf that requires grad, the shapes differ, or the dtype cannot be cast back.
    """
    check_in_place(target)
    check_fits(target, value)
    interpreter = current_interpreter()
    if interpreter is not None:
        return interpreter.assign(target, value, name)
    recorded = grad_enabled() and (value._n is not None or target._n is not None)
    if recorded and target._array().base is not None and isinstance(target._array().base, np.ndarray):
        raise RuntimeError(VIEW_HISTORY.format(name=name))
    if recorded and value._dtype() != target._dtype():
        value = E.cast(value, dtype=target._dtype())
    array = target._writable()
    np.copyto(array, value._array(), casting="unsafe")
    state.note_write(array)
    if recorded:
        target._n = value._n
    return target


def check_fits(target: Tensor, value: Tensor) -> None:
    """Raise PyTorch's RuntimeError unless the result `value` of an in-place op has a shape and dtype for `target`."""
    if value._d.shape != target._d.shape:
        raise RuntimeError(
            f"output with shape {list(target._d.shape)} doesn't match the broadcast shape {list(value._d.shape)}"
        )
    source, goal = value._dtype(), target._dtype()
    if category(source) > category(goal):
        raise RuntimeError(
            f"result type {torch_name(source)} can't be cast to the desired output type {torch_name(goal)}"
        )


def in_place(name: str) -> Callable[..., Tensor]:
    """The in-place form of pointwise op `name`: `add` -> `add_(self, other)`."""
    op = OPS[name]
    ufunc = op.kernel if is_ufunc(op) else None

    def method(self: Tensor, *operands: Any) -> Tensor:
        if ufunc is not None and current_interpreter() is None and (self._n is None or not grad_enabled()):
            other = _plain_operand(self, operands[0]) if operands else ()
            if other is not None:
                array = self._writable()
                if operands:
                    ufunc(array, other, out=array)
                else:
                    ufunc(array, out=array)
                state.note_write(array)
                return self
        check_in_place(self)
        source = self
        if current_interpreter() is None and grad_enabled():
            # what the gradient needs of the old value must survive the write
            source = Tensor._wrap(self._array().copy())
            source._n = self._n
        return assign(self, getattr(E, name)(source, *operands), name)

    method.__name__ = f"{name}_"
    method.__doc__ = f"In-place form of `{name}`."
    return method


def _plain_operand(target: Tensor, x: Any) -> Any:
    """`x` for a ufunc that writes into `target`, or None if the general path must look at it."""
    data = target._d
    if data.dtype is None or data.dtype.kind != "f":
        return None
    if x.__class__ is float or x.__class__ is int:
        return x
    if isinstance(x, Tensor) and (x._n is None or not grad_enabled()):
        other = x._d
        if other.dtype is data.dtype and (other.shape == data.shape or not other.shape):
            return other
    return None
