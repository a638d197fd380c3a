"""Reductions and scans: `dim` as an int, a tuple or None; `axis` and `keepdims` are accepted as NumPy's names."""

from __future__ import annotations

from typing import Any

import numpy as np

from eager import return_types
from eager.core.dtypes import to_numpy
from eager.core.interpreter import on_arrays
from eager.core.operands import not_of_kind
from eager.core.state import grad_enabled, sequence
from eager.core.tensor import Tensor
from eager.core.warned import warn
from eager.engine.conversion import cast_to, converted
from eager.engine.inplace import has_history
from eager.engine.language import E
from eager.engine.node_names import enclosed, named, whole
from eager.functional.arguments import ALL_AXES, axes_of, axis_of, constant, lifted, shape_of
from eager.functional.counted import sum_of_selected
from eager.functional.naming import called
from eager.functional.outputs import into
from eager.functional.parsing import no_overload
from graphc.ops.dtypes import BOOL, FLOAT32, UINT8, default_float, is_floating, is_half, is_inexact
from graphc.ops.reduce import count
from graphc.ops.rules import torch_name

NEEDS_DIM = (
    "{name}(): Expected reduction dim to be specified for input.numel() == 0. "
    "Specify the reduction dim with the 'dim' argument."
)
NO_FREEDOM = (
    "{}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor (input numel "
    "divided by output numel)."
)
MEAN_DTYPE = (
    "{}(): could not infer output dtype. Optional dtype must be either a floating point or complex dtype. Got: {}"
)


def sum(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, axis: Any = None,
        keepdims: bool = False, out: Any = None) -> Tensor:  # fmt: skip
    """The sum over `dim`, over everything if None; integers and bools are summed in int64. As `torch.sum`."""
    if out is not None:
        dtype = dtype or getattr(out, "dtype", None)
        return into(out, "sum", sum, input, dim, keepdim, dtype=dtype, axis=axis, keepdims=keepdims)
    if dim is None and not on_arrays() and axis is dtype is None and not (keepdim or keepdims):
        total = sum_of_selected(input)
        if total is not None:
            return total
    shape = shape_of(input, "sum")
    if axis is not None:
        dim = axis
    if dtype is not None:
        input = accumulated_in(input, dtype)
        total = E.sum(input, axis=axes_of(dim, len(shape), keepdim or keepdims), keepdims=keepdim or keepdims)
        return named(converted(total, input._dtype()), f"SumBackward{0 if dim is None else 1}")
    if dim is None:
        return E.sum(input, axis=ALL_AXES[len(shape)], keepdims=keepdim or keepdims)
    return named(
        E.sum(input, axis=axes_of(dim, len(shape), keepdim or keepdims), keepdims=keepdim or keepdims), "SumBackward1"
    )


def accumulated_in(input: Tensor, dtype: Any) -> Tensor:
    """`input` in the dtype of a sum or product, if one is given. RuntimeError if a gradient is due that it has not."""
    if dtype is not None and has_history(input) and grad_enabled() and not is_inexact(to_numpy(dtype)):
        raise RuntimeError(f"Autograd not support dtype: {torch_name(to_numpy(dtype))}")
    return cast_to(input, dtype)


def mean(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, axis: Any = None,
         keepdims: bool = False, out: Any = None) -> Tensor:  # fmt: skip
    """The mean over `dim`, over everything if None. As `torch.mean`. RuntimeError for integers without `dtype`."""
    if out is not None:
        return into(out, "mean", mean, input, dim, keepdim, dtype=dtype, axis=axis, keepdims=keepdims)
    if dim is None and not on_arrays() and axis is dtype is None and not (keepdim or keepdims):
        found = sum_of_selected(input, mean=True)
        if found is not None:
            return found
    shape = shape_of(input, "mean")
    if dtype is not None:
        if not is_inexact(to_numpy(dtype)):
            raise RuntimeError(MEAN_DTYPE.format("mean", torch_name(to_numpy(dtype))))
        input = cast_to(input, dtype)
    if axis is not None:
        dim = axis
    if dim is None:
        return E.mean(input, axis=ALL_AXES[len(shape)], keepdims=keepdim or keepdims)
    return named(
        E.mean(input, axis=axes_of(dim, len(shape), keepdim or keepdims), keepdims=keepdim or keepdims), "MeanBackward1"
    )


def prod(
    input: Tensor, dim: int | None = None, keepdim: bool = False, *, dtype: Any = None, axis: Any = None
) -> Tensor:
    """The product over `dim`, over everything if None. As `torch.prod`."""
    shape = shape_of(input, "prod")
    dim = dim if axis is None else axis
    if isinstance(dim, (tuple, list)):
        raise no_overload("prod", (input, dim))
    input = accumulated_in(input, dtype)
    result = E.prod(input, axis=axes_of(dim, len(shape), keepdim), keepdims=keepdim)
    if dtype is not None:
        result = converted(result, input._dtype())
    return named(result, f"ProdBackward{0 if dim is None else 1}")


def _check_not_empty(input: Tensor, dim: Any, name: str) -> None:
    if (dim is None or dim == ()) and 0 in shape_of(input, name):
        raise RuntimeError(NEEDS_DIM.format(name=name))


def amax(input: Tensor, dim: Any = (), keepdim: bool = False, *, axis: Any = None) -> Tensor:
    """The largest element over `dim`; ties share the gradient. As `torch.amax`. IndexError for an empty reduction."""
    _check_not_empty(input, dim if axis is None else axis, "amax")
    return E.amax(
        input, axis=axes_of(dim if axis is None else axis, len(shape_of(input, "amax")), keepdim), keepdims=keepdim
    )


def amin(input: Tensor, dim: Any = (), keepdim: bool = False, *, axis: Any = None) -> Tensor:
    """The smallest element over `dim`; ties share the gradient. As `torch.amin`. IndexError for an empty reduction."""
    _check_not_empty(input, dim if axis is None else axis, "amin")
    return E.amin(
        input, axis=axes_of(dim if axis is None else axis, len(shape_of(input, "amin")), keepdim), keepdims=keepdim
    )


def _extreme(name: str, all_of: str, pairwise: str) -> Any:
    title = name.capitalize()

    @called(
        name,
        f"The {name} of all elements; over `dim`, a named tuple (values, indices), whose gradient goes to the element "
        "picked; of two tensors, elementwise.",
        "torch",
    )
    def reduce(input: Tensor, dim: Any = None, keepdim: bool = False, *, axis: Any = None, other: Any = None) -> Any:
        if dim is not None and not isinstance(input, Tensor):
            raise no_overload(name, (input, dim))
        shape = shape_of(input, name)
        dim = other if other is not None else axis if axis is not None else dim
        if not isinstance(dim, Tensor) and input._dtype().kind == "c":
            if dim is None:
                raise NotImplementedError(f"\"{name}_all\" not implemented for '{torch_name(input._dtype())}'")
            raise RuntimeError(f"{name}(): does not support complex input")
        if dim is None:
            if 0 in shape:
                raise RuntimeError(NEEDS_DIM.format(name=name))
            return named(getattr(E, all_of)(input, axis=ALL_AXES[len(shape)], keepdims=False), f"{title}Backward1")
        if isinstance(dim, Tensor):
            return getattr(E, pairwise)(input, dim)
        along = axis_of(dim, len(shape), keepdim)
        if shape and not shape[along]:
            raise IndexError(f"{name}(): Expected reduction dim {along} to have non-zero size.")
        return getattr(return_types, name)(*getattr(E, f"{name}_dim")(input, axis=along, keepdims=keepdim))

    return reduce


max = _extreme("max", "amax", "maximum")
min = _extreme("min", "amin", "minimum")


def _arg_extreme(name: str) -> Any:
    @called(name, "The index of the first extreme element along `dim`, in the flattened tensor if None.", "torch")
    def reduce(input: Tensor, dim: int | None = None, keepdim: bool = False, *, axis: Any = None) -> Tensor:
        shape = shape_of(input, name)
        if input._dtype() == BOOL:
            raise RuntimeError(f"{name}(): does not support bool input")
        dim = dim if axis is None else axis
        if dim is not None:
            return getattr(E, name)(input, axis=axis_of(dim, len(shape), keepdim), keepdims=keepdim)
        size = count(shape, ALL_AXES[len(shape)])
        if not size:
            raise IndexError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0.")
        at = getattr(E, name)(E.reshape(input, shape=(size,)), axis=0, keepdims=False)
        return E.reshape(at, shape=(1,) * len(shape)) if keepdim else at

    return reduce


argmax = _arg_extreme("argmax")
argmin = _arg_extreme("argmin")


def _quantifier(name: str, what: str) -> Any:
    @called(name, f"Whether {what} over `dim` is nonzero, as bool, or as uint8 for uint8.", "torch")
    def reduce(input: Tensor, dim: Any = None, keepdim: bool = False, *, axis: Any = None) -> Tensor:
        axes = axes_of(dim if axis is None else axis, len(shape_of(input, name)), keepdim)
        found = getattr(E, name)(input, axis=axes, keepdims=keepdim)
        return E.cast(found, dtype=UINT8) if input._dtype() == UINT8 else found

    return reduce


any = _quantifier("any", "some element")
all = _quantifier("all", "every element")


def count_nonzero(input: Tensor, dim: Any = None) -> Tensor:
    """How many elements over `dim` are nonzero, as int64. As `torch.count_nonzero`."""
    return E.sum(E.ne(input, 0), axis=axes_of(dim, len(shape_of(input, "count_nonzero"))), keepdims=False)


def _variance(
    input: Tensor, dim: Any, unbiased: Any, correction: Any, keepdim: bool, name: str
) -> tuple[Tensor, tuple[int, ...]]:
    """The variance, and the axes it is over."""
    shape = shape_of(input, name)
    if isinstance(dim, bool):  # std(x, unbiased)
        dim, unbiased = None, dim
    if not is_inexact(input._dtype()):
        both = "std and var only support" if name in ("std", "var") else f"{name} only support"
        raise RuntimeError(f"{both} floating point and complex dtypes")
    if unbiased is not None and not isinstance(unbiased, (bool, np.bool)):
        raise not_of_kind(unbiased, "bool", "unbiased")  # a second dim, as in x.std(0, 1)
    if correction is None:
        correction = 1 if unbiased is None or unbiased else 0
    axes = axes_of(dim, len(shape), keepdim)
    if count(shape, axes) <= correction:
        warn(NO_FREEDOM.format(name))
    return E.var(input, axis=axes, keepdims=keepdim, correction=correction), axes


def _deviation(input: Tensor, *options: Any) -> tuple[Tensor, tuple[int, ...]]:
    """The square root of `_variance`; of 16-bit floats, what is under the root is not rounded."""
    dtype = input._dtype() if isinstance(input, Tensor) else None
    if dtype is None or not is_half(dtype):
        spread, axes = _variance(input, *options)
        return root(spread), axes
    spread, axes = _variance(converted(input, FLOAT32), *options)
    return converted(root(spread), dtype), axes


def root(square: Tensor) -> Tensor:
    """The square root, with gradient 0 at 0 (PyTorch's convention for std and norm)."""
    zero = E.eq(square, 0)
    return E.where(zero, constant(0, square), E.sqrt(E.where(zero, constant(1, square), square)))


@whole("VarBackward0")
def var(input: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: Any = None,
        axis: Any = None) -> Tensor:  # fmt: skip
    """The variance over `dim`, its divisor n - correction (1). As `torch.var`. RuntimeError for integers."""
    return _variance(input, dim if axis is None else axis, unbiased, correction, keepdim, "var")[0]


@whole("StdBackward0")
def std(input: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: Any = None,
        axis: Any = None) -> Tensor:  # fmt: skip
    """The standard deviation over `dim`, divisor n - correction (1). As `torch.std`. RuntimeError for integers."""
    return _deviation(input, dim if axis is None else axis, unbiased, correction, keepdim, "std")[0]


def _with_mean(name: str, spread_of: Any, node: str, what: str) -> Any:
    @called(name, f"({what}, mean) over `dim`.", "torch")
    def function(input: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *,
                 correction: Any = None) -> tuple[Tensor, Tensor]:  # fmt: skip
        since = next(sequence)
        spread, axes = spread_of(input, dim, unbiased, correction, keepdim, name)
        center = E.mean(input, axis=axes, keepdims=keepdim)
        return enclosed(spread, node, since), enclosed(center, node, since)

    return function


var_mean = _with_mean("var_mean", _variance, "VarMeanBackward0", "variance")
std_mean = _with_mean("std_mean", _deviation, "StdMeanBackward0", "standard deviation")


def logsumexp(input: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    """log(sum(exp(input))) over `dim`, without overflow. As `torch.logsumexp`."""
    axes = axes_of(dim, len(shape_of(input, "logsumexp")), keepdim)
    if not is_inexact(input._dtype()):
        input = E.cast(input, dtype=default_float())
    return E.logsumexp(input, axis=axes, keepdims=keepdim)


_SOFTMAX = ("softmax", "log_softmax")


def _scanned_in(function: Any, name: str, input: Tensor, dim: int, dtype: Any) -> Tensor:
    if to_numpy(dtype) == BOOL:
        raise NotImplementedError(f"\"{name}_out_cpu\" not implemented for 'Bool'")
    input = accumulated_in(input, dtype)
    return converted(function(input, dim), input._dtype())


def _along(name: str, op: str, what: str) -> Any:
    @called(name, f"{what} along `dim`, in `dtype` if given.", "torch")
    def function(input: Tensor, dim: int, dtype: Any = None) -> Tensor:
        shape = shape_of(input, name)
        if dtype is not None:
            if name not in _SOFTMAX:
                return _scanned_in(function, name, input, dim, dtype)
            input = cast_to(input, dtype)
        axis = axis_of(dim, len(shape))
        if name in _SOFTMAX and not is_floating(input._dtype()):
            if 0 in shape:
                return E.stop_gradient(E.clone(input))
            kernel = f"{name}_{'lastdim_' if axis >= len(shape) - 1 else ''}kernel_impl"
            raise NotImplementedError(f"\"{kernel}\" not implemented for '{torch_name(input._dtype())}'")
        if not shape:
            since = next(sequence)
            return enclosed(E.reshape(getattr(E, op)(lifted(input), axis=0), shape=()), node, since)
        return getattr(E, op)(input, axis=axis)

    node = f"{''.join(part.capitalize() for part in name.split('_'))}Backward0"
    return function


softmax = _along("softmax", "softmax", "exp(input) normalized to sum 1")
log_softmax = _along("log_softmax", "log_softmax", "log(softmax(input))")


cumsum = _along("cumsum", "cumsum", "The running sum")
cumprod = _along("cumprod", "cumprod", "The running product")


def _check_real(input: Tensor) -> None:
    if input._dtype().kind == "c":
        raise RuntimeError("nansum on CPU does not support complex inputs")


@whole("NansumBackward0")
def nansum(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The sum over `dim`, nan counting as 0. As `torch.nansum`. RuntimeError for complex numbers."""
    axes = axes_of(dim, len(shape_of(input, "nansum")), keepdim)
    _check_real(input)
    input = accumulated_in(input, dtype)
    numbers = E.where(E.isnan(input), 0, input) if is_inexact(input._dtype()) else input
    total = E.sum(numbers, axis=axes, keepdims=keepdim)
    return total if dtype is None else converted(total, input._dtype())


def nanmean(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The mean over `dim` of what is not nan. As `torch.nanmean`. RuntimeError for integers and complex numbers."""
    axes = axes_of(dim, len(shape_of(input, "nanmean")), keepdim)
    if not is_inexact(input._dtype()):
        raise RuntimeError(
            "nanmean(): expected input to have floating point or complex dtype but got " + torch_name(input._dtype())
        )
    if dtype is not None and not is_inexact(to_numpy(dtype)):
        raise RuntimeError(MEAN_DTYPE.format("nanmean", torch_name(to_numpy(dtype))))
    _check_real(input)
    count = E.sum(E.logical_not(E.isnan(input)), axis=axes, keepdims=keepdim)
    return E.div(nansum(input, dim, keepdim, dtype=dtype), count)


def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False) -> Any:
    """The smallest and the largest element, over `dim` or all, as a named tuple (min, max). As `torch.aminmax`.

    RuntimeError or IndexError for an empty reduction, NotImplementedError for complex numbers.
    """
    shape = tuple(shape_of(input, "aminmax"))
    if input._dtype().kind == "c":
        raise NotImplementedError(f"\"aminmax_cpu\" not implemented for '{torch_name(input._dtype())}'")
    if dim is None:
        axes = axes_of(None, len(shape))
        if 0 in shape:
            raise RuntimeError(
                "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity."
            )
    else:
        axis = axis_of(dim, len(shape))
        axes = (axis,) if shape else ()
        if shape and not shape[axis]:
            raise IndexError(f"aminmax: Expected reduction dim {axis} to have non-zero size.")
    results = (getattr(E, name)(input, axis=axes, keepdims=keepdim) for name in ("amin", "amax"))
    return return_types.aminmax(*(named(r, "AminmaxBackward0") for r in results))
