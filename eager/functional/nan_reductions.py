"""Reductions that leave nan out, and the two extremes at once."""

from __future__ import annotations

from typing import Any

from eager import return_types
from eager.core.dtypes import to_numpy
from eager.core.tensor import Tensor
from eager.engine.conversion import converted
from eager.engine.language import E
from eager.engine.node_names import named, whole
from eager.functional.arguments import axes_of, axis_of, shape_of
from eager.functional.reductions import MEAN_DTYPE, accumulated_in
from graphc.ops.dtypes import is_inexact
from graphc.ops.rules import torch_name


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
