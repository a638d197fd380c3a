"""Number lines: arange, range, linspace, logspace. Like all new tensors they are concrete, also under a trace."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from eager.core.tensor import Tensor
from eager.core.warned import warn
from eager.engine.language import E
from eager.functional.arguments import fitting
from eager.functional.creation import delivered, dtype_or
from eager.functional.parsing import no_overload
from graphc.ops import dims
from graphc.ops.dtypes import BOOL, COMPLEX128, FLOAT64, INT64, complex_of, default_float, is_inexact
from graphc.ops.rules import c_name, torch_name

LARGEST = 2**63


def _bounds(*values: Any) -> list[Any]:
    return [x.item() if isinstance(x, (Tensor, np.generic)) else x for x in values]


def _refuse(name: str, dtype: np.dtype, kinds: str) -> None:
    if dtype.kind in kinds:
        raise NotImplementedError(f"\"{name}_cpu\" not implemented for '{torch_name(dtype)}'")


def arange(*bounds: Any, start: Any = 0, end: Any = None, step: Any = 1, out: Tensor | None = None, dtype: Any = None,
           layout: Any = None, device: Any = None, pin_memory: bool = False,
           requires_grad: bool = False) -> Tensor:  # fmt: skip
    """start, start + step, ... below `end`; int64 for integers. As `torch.arange`; RuntimeError for a bad step.

    In a dtype of integers start and step lose what is behind the point; how many there are is told by the numbers
    given, in int64 by what is left of them.
    """
    if len(bounds) > 3 or (not bounds and end is None):
        raise no_overload("arange", bounds)
    if len(bounds) == 1 and end is None:
        end = bounds[0]
    else:
        start, end, step = (*bounds, *(start, end, step)[len(bounds) :])
    start, end, step = _bounds(start, end, step)
    for value in (end, start, step):
        if not isinstance(value, (int, float)):
            raise TypeError(f"arange(): argument 'end' (position 1) must be Number, not {type(value).__name__}")
    integers = all(isinstance(x, int) for x in (start, end, step))
    wanted = dtype_or(dtype, INT64 if integers else default_float(), "arange", out)
    _refuse("arange", wanted, "bc")
    _check_line(start, end, step)
    if wanted == INT64 and not integers:
        start, end, step, integers = int(start), int(end), int(step), True
        if not step:
            raise ValueError("step must be nonzero")
    if integers and dims.recordings and dims.has_dim((start, end, step)):
        whole = E.arange(shape=(-((start - end) // step),), start=start, step=step, dtype=INT64)
        return delivered(E.cast(whole, dtype=wanted), "arange", out, layout, device, requires_grad, pin_memory)
    if integers and wanted.kind in "iu":
        return delivered(np.arange(start, end, step).astype(wanted, copy=False), "arange", out, layout, device,
                         requires_grad, pin_memory)  # fmt: skip
    count = math.ceil((end - start) / step)
    if count >= LARGEST:
        raise RuntimeError("invalid size, possible overflow?")
    if wanted.kind in "iu":
        start, step = int(start), int(step)
    array = (start + step * np.arange(count)).astype(wanted)
    return delivered(array, "arange", out, layout, device, requires_grad, pin_memory)


def _check_line(start: Any, end: Any, step: Any) -> None:
    if not (step > 0 or step < 0):
        raise RuntimeError("step must be nonzero")
    if not all(dims.is_dim(x) or math.isfinite(x) for x in (start, end)):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")


def range(start: Any = 0, end: Any = None, step: Any = 1, *, out: Tensor | None = None, dtype: Any = None,
          layout: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """start, start + step, ... up to and including `end`; deprecated: use `arange`. As `torch.range`."""

    warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with "
        "Python's range builtin. Instead, use torch.arange, which produces values in [start, end)."
    )
    start, end, step = _bounds(*((0, start, step) if end is None else (start, end, step)))
    _check_line(start, end, step)
    array = start + step * np.arange(math.floor((end - start) / step) + 1)
    array = array.astype(dtype_or(dtype, default_float(), "range", out))
    return delivered(array, "range", out, layout, device, requires_grad)


def linspace(start: Any, end: Any, steps: Any = None, *, out: Tensor | None = None, dtype: Any = None,
             layout: Any = None, device: Any = None, pin_memory: bool = False,
             requires_grad: bool = False) -> Tensor:  # fmt: skip
    """`steps` values evenly spaced from `start` to `end`, both included. As `torch.linspace`."""
    first, last, wanted = _ends("linspace", start, end, steps, dtype, out)
    array = _even(first, last, steps, wanted if is_inexact(wanted) else FLOAT64).astype(wanted)
    return delivered(array, "linspace", out, layout, device, requires_grad, pin_memory)


def _ends(name: str, start: Any, end: Any, steps: Any, dtype: Any, out: Tensor | None) -> tuple[Any, Any, np.dtype]:
    """The ends of a line, as numbers of its dtype, and that dtype. Raises PyTorch's errors."""
    if steps.__class__ is bool or not hasattr(steps, "__index__"):
        raise no_overload(name, [x for x in (start, end, steps) if x is not None])
    given = [(n, x) for n, x in (("start", start), ("end", end)) if isinstance(x, Tensor)]
    if any(x._d.shape for _, x in given):
        found = " and ".join(f"{n} with {len(x._d.shape)} dimension(s)" for n, x in given)
        raise RuntimeError(f"{name} only supports 0-dimensional start and end tensors, but got {found}.")
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    start, end = _bounds(start, end)
    default = default_float()
    if isinstance(start, complex) or isinstance(end, complex):
        default = complex_of(default)
    wanted = dtype_or(dtype, default, name, out)
    if default.kind == "c" and wanted.kind != "c":
        raise RuntimeError(
            f"torch.{name}(): inferred dtype {c_name(default)} can't be safely cast to passed dtype "
            f"{torch_name(wanted)}"
        )
    if wanted == BOOL:
        _refuse(name, wanted, "b")
    kind = wanted.type
    first, last = (fitting(x, wanted).item() if wanted.kind in "iu" else kind(x) for x in (start, end))
    return first, last, wanted


def _even(first: Any, last: Any, steps: int, kind: np.dtype) -> np.ndarray:
    """The line in at least float64; its step is of dtype `kind`."""
    steps = steps.__index__()
    first, last = kind.type(first), kind.type(last)
    if steps < 2:
        return np.full(steps, first)
    step = (last - first) / kind.type(steps - 1)
    # From the nearer end: both ends are exact. PyTorch fuses products and sums: here they are not rounded to float32.
    index = np.arange(steps, dtype=COMPLEX128 if kind.kind == "c" else FLOAT64)
    first, last, step = (index.dtype.type(x) for x in (first, last, step))
    return np.where(index.real < steps // 2, first + step * index, last - step * (steps - 1 - index))


def logspace(start: Any, end: Any, steps: Any = None, base: Any = 10.0, *, out: Tensor | None = None,
             dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
             requires_grad: bool = False) -> Tensor:  # fmt: skip
    """`base` to the powers `linspace(start, end, steps)`. As `torch.logspace`."""
    if not isinstance(base, (int, float)):
        raise no_overload("logspace", (start, end, steps, base))
    first, last, wanted = _ends("logspace", start, end, steps, dtype, out)
    if is_inexact(wanted):
        first, last = _bounds(start, end)
    exponents = _even(first, last, steps, COMPLEX128 if wanted.kind == "c" else FLOAT64)
    array = np.power(float(base), exponents).astype(wanted)
    return delivered(array, "logspace", out, layout, device, requires_grad, pin_memory)
