"""`out=`: the result of a function written into a tensor that the caller gives."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from eager import inplace, reshaping
from eager.dtypes import type_name
from eager.grad_mode import no_grad
from eager.language import E
from eager.output_dtypes import IN_DTYPE_OF_OUT, check_dtype
from eager.state import grad_enabled
from eager.tensor import Tensor
from graphc.ops.dtypes import category

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
NOT_TENSOR = "{name}(): argument 'out' must be Tensor, not {kind}"


def into(out: Any, name: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """`function(*args, **kwargs)`, written into `out`, a Tensor or a tuple of them. Returns `out`.

    TypeError unless `out` is a tensor, or a tuple of as many as there are results. RuntimeError if gradients would have
    to be recorded, or `out` has a dtype that the function does not write (`eager.output_dtypes`). An `out` of another
    shape is resized, with a warning if it has elements. Nothing is written before everything has been checked.
    """
    outs = out if isinstance(out, (tuple, list)) else (out,)
    for o in outs:
        if not isinstance(o, Tensor):
            raise TypeError(NOT_TENSOR.format(name=name, kind=type_name(o)))
    given = (*tensors_in(args), *tensors_in(kwargs.values()))
    if grad_enabled() and any(t._n is not None for t in (*given, *outs)):
        raise RuntimeError(NOT_DIFFERENTIABLE.format(name=name))
    asked = kwargs.get("dtype") is not None
    if name in IN_DTYPE_OF_OUT and not asked:
        kwargs["dtype"] = outs[0].dtype
    with no_grad():
        result = function(*args, **kwargs)
        several = isinstance(result, tuple)
        results = result if several else (result,)
        if several and len(outs) != len(results):
            raise TypeError(f"expected tuple of {len(results)} elements but got {len(outs)}")
        if not several and out is not outs[0]:
            raise TypeError(NOT_TENSOR.format(name=name, kind=type_name(out)))
        for i, (value, target) in enumerate(zip(results, outs, strict=True)):
            source = value._dtype()
            first = given[0] if given else value
            holds = {"dtype": asked, "lone": math.prod(value._d.shape) == 1, "0d": not first._d.shape}
            variants = tuple(name for name, held in holds.items() if held)
            check_dtype(name, source, target._dtype(), first._dtype(), i if several else None, variants)
        for value, target in zip(results, outs, strict=True):
            store(value, target)
    return _renamed(type(result), f"{name}_out")(*outs) if several else out


def tensors_in(values: Iterable[Any]) -> Iterable[Tensor]:
    """The tensors among `values` and the lists in them."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from tensors_in(value)


def store(value: Tensor, out: Tensor) -> None:
    """Write `value` into `out`, resized if it has another shape, in whatever dtype `out` has."""
    old, new = tuple(out._d.shape), tuple(value._d.shape)
    if old != new:
        if 0 not in old:
            warnings.warn(RESIZED.format(old=list(old), new=list(new)), UserWarning, stacklevel=5)
        reshaping.resize_(out, new)
    if category(value._dtype()) > category(out._dtype()):
        value = E.cast(value, dtype=out._dtype())
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
