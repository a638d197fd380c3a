"""Tensors among NumPy's arrays: ufuncs and functions of NumPy.

A NumPy function that is given tensors does with them what it does with PyTorch's: most take their arrays. If one of
them requires grad or is traced, or if the function then fails, the function of this engine that does the same runs in
its place, so that gradients flow through it. One that has no counterpart runs on the arrays, unless that would lose a
gradient: RuntimeError.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from eager.core.dtypes import BY_NUMPY
from eager.core.interpreter import current_interpreter
from eager.core.state import note_write
from eager.core.tensor import Tensor
from eager.engine.conversion import cast_to
from eager.engine.dispatch import with_arrays
from eager.functional.linear import matmul
from eager.surface.public import named
from graphc.ops.dtypes import promote_types
from graphc.ops.spec import OPS

Function = Callable[..., Any]

# ufunc -> name here, where it is another
_UFUNC_NAMES = {
    "subtract": "sub", "multiply": "mul", "divide": "div", "true_divide": "div", "negative": "neg", "power": "pow",
    "absolute": "abs", "fabs": "abs", "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2",
    "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh", "greater": "gt", "greater_equal": "ge", "less": "lt",
    "less_equal": "le", "equal": "eq", "not_equal": "ne", "rint": "round", "conjugate": "conj", "mod": "remainder",
    "invert": "bitwise_not", "left_shift": "bitwise_left_shift", "right_shift": "bitwise_right_shift",
}  # fmt: skip
_REDUCTIONS = {"add": "sum", "multiply": "prod", "maximum": "amax", "minimum": "amin", "logical_and": "all",
               "logical_or": "any"}  # fmt: skip

# NumPy function -> name here; its `axis` is our `dim`, its `keepdims` our `keepdim`
_OVER_DIM = {
    "sum": "sum", "prod": "prod", "max": "amax", "amax": "amax", "min": "amin", "amin": "amin", "argmax": "argmax",
    "argmin": "argmin", "all": "all", "any": "any", "cumsum": "cumsum", "cumprod": "cumprod", "squeeze": "squeeze",
    "concatenate": "cat", "stack": "stack", "sort": "sort", "argsort": "argsort", "mean": "mean", "median": "median",
    "expand_dims": "unsqueeze",
}  # fmt: skip
_SAME_ARGUMENTS = (
    "vstack", "hstack", "dstack", "column_stack", "where", "reshape", "ravel", "clip", "outer", "trace", "diag",
    "tril", "triu", "moveaxis", "swapaxes", "tile", "broadcast_to", "isclose", "allclose", "zeros_like", "ones_like",
    "empty_like", "full_like", "einsum", "tensordot", "kron", "diagonal",
)  # fmt: skip


@functools.cache
def _ufunc(name: str) -> Function | None:
    try:
        return named(_UFUNC_NAMES.get(name, name))
    except LookupError:
        return None


def as_operand(x: Any) -> Any:
    """An array as the tensor that shares its memory, a NumPy scalar as a number; anything else as it is."""
    if isinstance(x, np.ndarray):
        return Tensor._wrap(x)
    return x.item() if isinstance(x, np.generic) else x


def as_array(x: Any) -> Any:
    """A tensor, or tensors in lists, tuples and dicts, as arrays. RuntimeError if one requires grad."""
    if isinstance(x, Tensor):
        return x.numpy()
    if isinstance(x, (list, tuple)) and type(x) in (list, tuple):
        return type(x)(map(as_array, x))
    return {key: as_array(value) for key, value in x.items()} if type(x) is dict else x


def _of_gradients(x: Any) -> bool:
    """Whether `x` is, or holds, a tensor that requires grad, or one that lies on no CPU."""
    if isinstance(x, Tensor):
        return x._n is not None or x._d.__class__ is not np.ndarray
    if isinstance(x, (list, tuple)):
        return any(map(_of_gradients, x))
    return isinstance(x, dict) and any(map(_of_gradients, x.values()))


def _multiplied(a: Any, b: Any) -> Any:
    """The matrix product of operands of any dtypes, as NumPy has it; of a vector too."""
    a, b = (x if isinstance(x, Tensor) else Tensor._wrap(np.asarray(x)) for x in (a, b))
    dtype = BY_NUMPY[promote_types(a._dtype(), b._dtype())]
    return matmul(cast_to(a, dtype), cast_to(b, dtype))


def _dot(a: Any, b: Any) -> Any:
    """NumPy's dot: a product of numbers, vectors or matrices."""
    return _multiplied(a, b) if np.ndim(a) and np.ndim(b) else a * b


def array_ufunc(self: Tensor, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
    """What a ufunc of NumPy does with a tensor among its operands; see the module."""
    if method == "__call__" and not options:
        function = _multiplied if ufunc is np.matmul else _ufunc(ufunc.__name__)
        if function is not None:
            op = OPS.get(_UFUNC_NAMES.get(ufunc.__name__, ufunc.__name__))
            if op is not None and op.pointwise and any(isinstance(x, np.ndarray) for x in inputs):
                inputs = tuple(with_arrays(op, inputs))
            return function(*map(as_operand, inputs))
    if method == "reduce" and ufunc.__name__ in _REDUCTIONS and options.keys() <= {"axis", "keepdims"}:
        axis = options.pop("axis", 0)
        function = named(_REDUCTIONS[ufunc.__name__])
        return function(*inputs, **({} if axis is None else {"dim": axis}), **_keepdim(options))
    call, arrays = getattr(ufunc, method), [as_array(x) for x in inputs]
    if "out" in options:
        return _written(call, arrays, options)
    result = call(*arrays, **options)
    return tuple(map(_as_tensor, result)) if isinstance(result, tuple) else _as_tensor(result)


def _written(call: Function, inputs: list[Any], options: dict[str, Any]) -> Any:
    """What `call` returns, written into the arrays and tensors of the option `out`, each through fresh memory if it has
    gaps, or another order: see `eager.core.ufunc_writes`.
    """
    outs = as_array(options.pop("out"))
    fresh = tuple(x.copy("C") if isinstance(x, np.ndarray) and not x.flags.carray else x for x in outs)
    result = call(*inputs, out=fresh, **options)
    for out, made in zip(outs, fresh, strict=True):
        if out is None:
            continue
        if made is not out:
            np.copyto(out, made)
        note_write(out)
    found = tuple(r if out is None else out for r, out in zip(_several(result), outs, strict=True))
    return found if isinstance(result, tuple) else found[0]


def _several(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


def _as_tensor(x: Any) -> Any:
    return Tensor._wrap(np.asarray(x)) if isinstance(x, (np.ndarray, np.generic)) else x


def _keepdim(options: dict[str, Any]) -> dict[str, Any]:
    return {"keepdim": True} if options.get("keepdims") else {}


def _over_dim(name: str) -> Function:
    def run(first: Any, axis: Any = None, *, keepdims: Any = None, **options: Any) -> Any:
        if options.get("out") is None:
            options.pop("out", None)
        dim = {} if axis is None else {"dim": axis}
        function = named(name)
        result = function(first, **dim, **_keepdim({"keepdims": keepdims is True}), **options)
        return result[0] if name in ("sort", "median") and isinstance(result, tuple) else result

    return run


def _join(name: str) -> Function:
    def run(tensors: Any, axis: int = 0) -> Any:
        function = named(name)
        tensors = [as_operand(np.asarray(t)) if not isinstance(t, Tensor) else t for t in tensors]
        return function(tensors, axis)

    return run


def _spread(name: str) -> Function:
    def run(a: Tensor, axis: Any = None, *, ddof: int = 0, keepdims: bool = False) -> Any:
        function = named(name)
        return function(a, axis, correction=ddof, keepdim=bool(keepdims))

    return run


def _same(name: str) -> Function:
    def run(*args: Any, **options: Any) -> Any:
        function = named(name)
        return function(*map(as_operand, args), **options)

    return run


def _transpose(a: Tensor, axes: Any = None) -> Tensor:
    return a.permute(*(reversed(range(a.ndim)) if axes is None else axes))  # type: ignore[attr-defined]


_FUNCTIONS: dict[str, Function] = {
    **{name: _over_dim(own) for name, own in _OVER_DIM.items()},
    **{name: _same(name) for name in _SAME_ARGUMENTS},
    **{name: _join(own) for name, own in (("concatenate", "cat"), ("stack", "stack"))},
    **{name: _spread(name) for name in ("var", "std")},
    "transpose": _transpose,
    "dot": _dot,
    "shape": lambda a: a.shape,
    "ndim": lambda a: a.ndim,
    "size": lambda a, axis=None: a.numel() if axis is None else a.size(axis),
    "copy": lambda a, **_: a.clone(),
    "array_equal": lambda a, b, **_: bool(named("equal")(as_operand(a), as_operand(b))),
    "around": lambda a, decimals=0: named("round")(a, decimals=decimals),
    "flip": lambda a, axis=None: named("flip")(
        a, tuple(range(a.ndim)) if axis is None else (axis,) if isinstance(axis, int) else axis
    ),
    "roll": lambda a, shift, axis=None: named("roll")(a, shift, axis),
}
_FUNCTIONS["round"] = _FUNCTIONS["around"]


def array_function(self: Tensor, func: Function, types: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """What a function of NumPy does with a tensor among its arguments; see the module."""
    if current_interpreter().immediate and not _of_gradients((args, kwargs)):
        # what it does without this one; it fails where it calls a method of the tensor with what only arrays know
        with suppress(Exception):
            return func._implementation(*args, **kwargs)  # type: ignore[attr-defined]
    own = _FUNCTIONS.get(func.__name__) if func.__module__ == "numpy" else None
    if own is not None:
        try:
            return own(*args, **kwargs)
        except (TypeError, LookupError):
            pass  # arguments that only NumPy's function knows: it runs on the arrays
    return func(*as_array(tuple(args)), **as_array(kwargs))


def array_wrap(self: Tensor, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
    """What functions of NumPy make of their result for a tensor. As `torch.Tensor.__array_wrap__`."""
    return _as_tensor(np.asarray(array))


__array_ufunc__, __array_function__, __array_wrap__ = array_ufunc, array_function, array_wrap
