"""`out=`: the result of a function written into a tensor that the caller gives."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from eager import inplace, reshaping
from eager.dtypes import type_name
from eager.grad_mode import no_grad
from eager.state import grad_enabled
from eager.tensor import Tensor
from graphc.ops.dtypes import category
from graphc.ops.rules import c_name, torch_name

NOT_DIFFERENTIABLE = (
    "{name}(): functions with out=... arguments don't support automatic differentiation, but one of the arguments "
    "requires grad."
)
RESIZED = (
    "An output with one or more elements was resized since it had shape {old}, which does not match the required "
    "output shape {new}. This behavior is deprecated, and in a future PyTorch release outputs will not be resized "
    "unless they have zero elements. You can explicitly reuse an out tensor t by resizing it, inplace, to zero "
    "elements with t.resize_(0)."
)
# functions that take an `out` of exactly their dtype
EXACT = {"mm", "matmul", "bmm", "addmm", "dot", "mv"}


def into(out: Any, name: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """`function(*args, **kwargs)`, written into `out`, a Tensor or a tuple of them. Returns `out`.

    TypeError unless `out` is a tensor. RuntimeError if gradients would have to be recorded, or the result cannot be
    cast to its dtype. An `out` of another shape is resized, with a warning if it has elements.
    """
    outs = out if isinstance(out, (tuple, list)) else (out,)
    for o in outs:
        if not isinstance(o, Tensor):
            raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type_name(o)}")
    if grad_enabled() and any(t._n is not None for t in (*tensors_in(args), *tensors_in(kwargs.values()), *outs)):
        raise RuntimeError(NOT_DIFFERENTIABLE.format(name=name))
    with no_grad():
        result = function(*args, **kwargs)
        results = result if isinstance(result, tuple) else (result,)
        for value, target in zip(results, outs, strict=True):
            _check_dtype(name, value, target)
        for value, target in zip(results, outs, strict=True):
            _store(value, target)
    return out if not isinstance(result, tuple) else _renamed(type(result), f"{name}_out")(*outs)


def tensors_in(values: Iterable[Any]) -> Iterable[Tensor]:
    """The tensors among `values` and the lists in them."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from tensors_in(value)


def _check_dtype(name: str, value: Tensor, out: Tensor) -> None:
    source, goal = value._dtype(), out._dtype()
    if (name in EXACT or name.startswith("linalg_")) and source != goal:
        if not value._d.shape:
            raise RuntimeError(f"result dtype {torch_name(goal)} does not match input dtype {torch_name(source)}")
        raise RuntimeError(f"Expected out tensor to have dtype {c_name(source)}, but got {c_name(goal)} instead")
    if category(source) > category(goal):
        raise RuntimeError(
            f"result type {torch_name(source)} can't be cast to the desired output type {torch_name(goal)}"
        )


def _store(value: Tensor, out: Tensor) -> None:
    old, new = tuple(out._d.shape), tuple(value._d.shape)
    if old != new:
        if 0 not in old:
            warnings.warn(RESIZED.format(old=list(old), new=list(new)), UserWarning, stacklevel=5)
        reshaping.resize_(out, new)
    inplace.assign(out, value, "copy")


@functools.cache
def _renamed(kind: type, name: str) -> Callable[..., Any]:
    """The type of a named result, as PyTorch calls it for outputs that were given."""
    return type(name, (kind,), {"__slots__": ()}) if hasattr(kind, "_fields") else lambda *parts: parts


def with_out(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` with a keyword `out`."""

    @functools.wraps(function)
    def wrapper(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        if out is None:
            return function(*args, **kwargs)
        return into(out, name, function, *args, **kwargs)

    return wrapper
