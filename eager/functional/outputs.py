"""`out=`: the result of a function written into a tensor that the caller gives."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from eager.core.dtypes import type_name
from eager.core.grad_mode import no_grad
from eager.core.state import grad_enabled
from eager.core.tensor import Tensor
from eager.core.warned import warn
from eager.engine import inplace
from eager.engine.language import E
from eager.engine.overlap import check_apart, check_partial
from eager.functional import inplace_shapes
from eager.functional.naming import signature_of
from eager.functional.output_dtypes import IN_DTYPE_OF_OUT, VARIED, check_dtype
from graphc.ops.dtypes import category
from graphc.ops.spec import OPS

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
NO_OVERLOAD = "{name}() received an invalid combination of arguments - got ({kinds}), but expected one of:\n"
_OVERLOADED = ("histogram", "max", "min", "sort")  # functions that several signatures of PyTorch's give tuples
NOT_TENSOR = "{name}(): argument 'out' must be Tensor, not {kind}"


def into(out: Any, name: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """`function(*args, **kwargs)`, written into `out`, a Tensor or a tuple of them. Returns `out`.

    TypeError unless `out` is a tensor, or a tuple of as many as there are results. RuntimeError if gradients would have
    to be recorded, or `out` has a dtype that the function does not write (`output_dtypes`). An `out` of another shape
    is resized, with a warning if it has elements. Nothing is written before everything has been checked.
    """
    outs = out if isinstance(out, (tuple, list)) else (out,)
    given = (*tensors_in(args), *tensors_in(kwargs.values()))
    if grad_enabled() and any(t._n is not None for t in (*given, *tensors_in(outs))):
        raise RuntimeError(NOT_DIFFERENTIABLE.format(name=name))
    asked = kwargs.get("dtype") is not None
    if name in IN_DTYPE_OF_OUT and not asked and isinstance(out, Tensor):
        kwargs["dtype"] = out.dtype
    with no_grad():
        result = function(*args, **kwargs)
        several = isinstance(result, tuple)
        results = result if several else (result,)
        _check_kind(name, out, len(results) if several else 0, args, kwargs)
        for i, (value, target) in enumerate(zip(results, outs, strict=True)):
            first = given[0] if given else value
            variants = _variants(given, value, asked) if name in VARIED else ()
            check_dtype(name, value._dtype(), target._dtype(), first._dtype(), i if several else None, variants)
            check_overlap(name, given, target)
        for value, target in zip(results, outs, strict=True):
            store(value, target)
    return _renamed(type(result), f"{name}_out")(*outs) if several else out


def _variants(given: Sequence[Tensor], value: Tensor, asked: bool) -> tuple[str, ...]:
    """Which rows of the table of `eager.functional.output_dtypes` besides that of the function fit a call."""
    holds = {
        "dtype": asked, "lone": math.prod(value._d.shape) == 1, "scalar": not value._d.shape,
        "0d": any(not t._d.shape for t in given), "numbers": len(given) == 1,
    }  # fmt: skip
    return tuple(name for name, held in holds.items() if held)


def _check_kind(name: str, out: Any, several: int, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Raise PyTorch's TypeError unless `out` is a Tensor, or a tuple of `several` Tensors if that is not 0."""
    if not several:
        if not isinstance(out, Tensor):
            raise TypeError(NOT_TENSOR.format(name=name, kind=type_name(out)))
    elif not isinstance(out, (tuple, list)):
        if name not in _OVERLOADED:
            raise TypeError(f"{name}(): argument 'out' must be tuple of Tensors, not {type_name(out)}")
        named = {**kwargs, "out": out}.items()
        kinds = ", ".join([*map(type_name, args), *(f"{key}={type_name(value)}" for key, value in named)])
        raise TypeError(NO_OVERLOAD.format(name=name, kinds=kinds))
    elif len(out) != several:
        raise TypeError(f"expected tuple of {several} elements but got {len(out)}")
    else:
        for i, x in enumerate(out):
            if not isinstance(x, Tensor):
                raise TypeError(f"expected Tensor as element {i} in argument {len(args)}, but got {type_name(x)}")


def tensors_in(values: Iterable[Any]) -> Iterable[Tensor]:
    """The tensors among `values` and the lists in them."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from tensors_in(value)


def store(value: Tensor, out: Tensor, quiet: bool = False) -> None:
    """Write `value` into `out`, resized if it has another shape, in whatever dtype `out` has."""
    old, new = tuple(out._d.shape), tuple(value._d.shape)
    if old != new:
        if not quiet and 0 not in old:
            warn(RESIZED.format(old=list(old), new=list(new)))
        inplace_shapes.resize_(out, new)
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
        return function(*args, **kwargs) if out is None else into(out, name, function, *args, **kwargs)

    wrapper.__signature__ = signature_of(function, out=True)  # type: ignore[attr-defined]
    return wrapper


# beside the pointwise ops of the registry, the functions that refuse an output which is a part of an input
_REFUSING = frozenset(
    "add addcdiv addcmul addr cat clamp clamp_max clamp_min clip column_stack concat concatenate cross cumprod cumsum "
    "deg2rad div dstack float_power fmax fmin frac gather gelu hardshrink heaviside hstack igamma igammac index_add "
    "index_copy index_reduce index_select kron ldexp lerp linalg_cross logcumsumexp logit masked_select msort "
    "nan_to_num normal outer polygamma pow rad2deg renorm round row_stack scatter scatter_add scatter_reduce sgn "
    "softplus softshrink stack sub take take_along_dim vstack where".split()
)
# those that refuse the input itself as well
_STRICT = frozenset(("cross", "gather", "index_select", "linalg_cross", "take", "take_along_dim"))


def check_overlap(name: str, given: Iterable[Tensor], out: Tensor) -> None:
    """Raise PyTorch's RuntimeError if function `name` does not write `out` while it reads the tensors `given`."""
    if name in _STRICT:
        check_apart(out, given)
    elif name in _REFUSING or (name in OPS and OPS[name].pointwise):
        check_partial(out, given)
