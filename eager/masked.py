"""Reductions and normalizations of the elements that a mask leaves. As `torch.masked`.

`mask` is True where an element counts; it is broadcast to the input. What is left out is filled with the identity of
the operation, so that everything else is the function of the same name, in both modes. Where nothing is left, the
result is that identity; nan for means, variances, medians and softmax.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np

from eager.core.dtypes import dtype as Dtype
from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.functional import reductions, shapes
from eager.functional.arguments import axes_of
from eager.functional.arithmetic import clamp_min, sub
from eager.functional.casts import to
from eager.functional.naming import called
from eager.functional.sorting import median as _median
from eager.functional.sorting import nanmedian
from eager.linalg.norms import vector_norm
from graphc.ops.dtypes import BOOL, INT64, default_float, is_floating, is_inexact

__all__ = [
    "amax", "amin", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logaddexp", "logsumexp", "mean", "median",
    "norm", "normalize", "prod", "softmax", "softmin", "std", "sum", "var",
]  # fmt: skip


def _lowest(dtype: np.dtype) -> Any:
    return -np.inf if is_floating(dtype) else 0 if dtype == BOOL else np.iinfo(dtype).min


def _highest(dtype: np.dtype) -> Any:
    return np.inf if is_floating(dtype) else 1 if dtype == BOOL else np.iinfo(dtype).max


def _in_dtype(input: Tensor, dtype: Dtype | None, whole: bool = False) -> Tensor:
    """`input` in `dtype`; by default in its own, integers in int64 if they are added up (`whole`)."""
    if dtype is not None:
        return to(input, dtype)
    return E.cast(input, dtype=INT64) if whole and not is_inexact(input._dtype()) else input


def _checked(mask: Tensor | None, input: Tensor) -> Tensor | None:
    """The mask in the shape of `input`."""
    if mask is None:
        return None
    if len(mask._d.shape) > len(input._d.shape):
        raise IndexError("_input_mask expected broadcastable mask (got mask dimensionality higher than of the input)")
    counted: Any = mask if mask._dtype() == BOOL else E.ne(mask, 0)
    return shapes.broadcast_to(counted, tuple(input._d.shape))


def _filled(input: Tensor, mask: Tensor | None, value: Any) -> Tensor:
    """`input`, with `value` where it does not count."""
    mask = _checked(mask, input)
    return input if mask is None else E.where(mask, input, value)


def _hidden(input: Tensor, mask: Tensor | None) -> Tensor:
    """`input`, with the least number there is where it does not count."""
    return _filled(input, mask, _lowest(input._dtype()))


def _axes(input: Tensor, dim: Any) -> tuple[int, ...]:
    """The dims to reduce: all for None, none for ()."""
    return () if dim == () else axes_of(dim, len(input._d.shape))


def _count(input: Tensor, mask: Tensor | None, axes: tuple[int, ...], keepdim: bool) -> Any:
    """How many elements count in each place of the result: a number if all do."""
    mask = _checked(mask, input)
    if mask is None:
        return int(np.prod([input._d.shape[a] for a in axes], initial=1))
    return E.sum(E.cast(mask, dtype=INT64), axis=axes, keepdims=keepdim)


def _fold(name: str, of_none: str, identity: Callable[[np.dtype], Any], adds_up: bool = False) -> Any:
    @called(name, f"`{name}` of the elements that count; {of_none} of none.", "torch.masked")
    def function(
        input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Dtype | None = None, mask: Tensor | None = None
    ) -> Tensor:
        input = _in_dtype(input, dtype, adds_up)
        if not adds_up:
            _check_identity(name, input, mask)
        filled = _filled(input, mask, identity(input._dtype()))
        return getattr(E, name)(filled, axis=_axes(input, dim), keepdims=keepdim)

    return function


sum, prod = _fold("sum", "0", lambda dtype: 0, True), _fold("prod", "1", lambda dtype: 1, True)
amax, amin = _fold("amax", "its identity", _lowest), _fold("amin", "its identity", _highest)


def _check_identity(name: str, input: Tensor, mask: Tensor | None) -> None:
    if mask is not None and input._dtype() == BOOL:
        raise NotImplementedError(f"identity of {name} on torch.bool input")


def _place(name: str, identity: Any) -> Any:
    @called(name, f"`{name}` of the elements that count.", "torch.masked")
    def function(
        input: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype: Dtype | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:  # fmt: skip
        input = _in_dtype(input, dtype)
        _check_identity(name, input, mask)
        found = getattr(reductions, name)(_filled(input, mask, identity(input._dtype())), dim, bool(keepdim))
        return E.cast(found, dtype=input._dtype())  # of all dtypes it has that of the input in PyTorch

    return function


argmax, argmin = _place("argmax", _lowest), _place("argmin", _highest)


def mean(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Dtype | None = None, mask: Tensor | None = None
) -> Tensor:
    """The mean of the elements that count; nan of none. As `torch.masked.mean`."""
    input = _in_dtype(input, dtype)
    if not is_inexact(input._dtype()):
        raise ValueError(
            "mean(): Could not infer output dtype. Input dtype must be either a floating point or complex dtype. "
            f"Got: {input.dtype}"
        )
    axes = _axes(input, dim)
    return E.div(E.sum(_filled(input, mask, 0), axis=axes, keepdims=keepdim), _count(input, mask, axes, keepdim))


def median(
    input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype: Dtype | None = None, mask: Tensor | None = None
) -> Tensor:
    """The lower median of the elements that count; nan of none. As `torch.masked.median`."""
    input = _in_dtype(input, dtype)
    if mask is None and not is_inexact(input._dtype()):
        return _median(input, dim, bool(keepdim)).values
    if not is_floating(input._dtype()):
        raise ValueError(f"input must be a floating point tensor, got {input.dtype}")
    return nanmedian(_filled(input, mask, np.nan), dim, bool(keepdim)).values


def norm(
    input: Tensor, ord: float | str | None = 2.0, dim: Any = None, *, keepdim: bool = False,
    dtype: Dtype | None = None, mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The vector norm of the elements that count. As `torch.masked.norm`."""
    input = _in_dtype(input, dtype)
    order = 2.0 if ord is None else float(ord)
    if order < 0 and mask is not None and not is_inexact(input._dtype()):
        raise AssertionError(f"input must be floating point, got {input.dtype}")
    identity = np.inf if order < 0 else 0
    return vector_norm(_filled(input, mask, identity), order, _axes(input, dim), bool(keepdim))


def _moments(
    input: Tensor, dim: Any, unbiased: bool, keepdim: bool, dtype: Dtype | None, mask: Tensor | None
) -> Tensor:
    input = _in_dtype(input, dtype)
    if not is_inexact(input._dtype()):
        sub(input, input)  # which is not for bool
        input = E.cast(input, dtype=default_float())
    axes = _axes(input, dim)
    count = _count(input, mask, axes, True)
    centre = E.div(E.sum(_filled(input, mask, 0), axis=axes, keepdims=True), count)
    away = _filled(E.sub(input, centre), mask, 0)
    squares = E.mul(away, away) if is_floating(input._dtype()) else E.square(E.abs(away))
    total = E.sum(squares, axis=axes, keepdims=keepdim)
    count = _count(input, mask, axes, keepdim)
    if not unbiased:
        return E.div(total, count)
    if isinstance(count, int):
        return E.div(total, builtins.max(count - 1, 0))
    return E.div(total, clamp_min(E.sub(count, 1), 0))


def var(
    input: Tensor, dim: Any = None, unbiased: bool | None = None, *, correction: int | None = None,
    keepdim: bool = False, dtype: Dtype | None = None, mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The variance of the elements that count. As `torch.masked.var`."""
    return _moments(input, dim, unbiased is not False and correction != 0, bool(keepdim), dtype, mask)


def std(
    input: Tensor, dim: Any = None, unbiased: bool | None = None, *, correction: int | None = None,
    keepdim: bool = False, dtype: Dtype | None = None, mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The standard deviation of the elements that count. As `torch.masked.std`."""
    return E.sqrt(_moments(input, dim, unbiased is not False and correction != 0, bool(keepdim), dtype, mask))


def cumsum(input: Tensor, dim: int, *, dtype: Dtype | None = None, mask: Tensor | None = None) -> Tensor:
    """Running sums of the elements that count. As `torch.masked.cumsum`."""
    return reductions.cumsum(_filled(_in_dtype(input, dtype), mask, 0), dim, dtype=dtype or input.dtype)


def cumprod(input: Tensor, dim: int, *, dtype: Dtype | None = None, mask: Tensor | None = None) -> Tensor:
    """Running products of the elements that count. As `torch.masked.cumprod`."""
    return reductions.cumprod(_filled(_in_dtype(input, dtype), mask, 1), dim, dtype=dtype or input.dtype)


def softmax(input: Tensor, dim: int, *, dtype: Dtype | None = None, mask: Tensor | None = None) -> Tensor:
    """`softmax` of the elements that count, 0 elsewhere; nan if none does. As `torch.masked.softmax`."""
    return reductions.softmax(_hidden(_in_dtype(input, dtype), mask), dim)


def log_softmax(input: Tensor, dim: int, *, dtype: Dtype | None = None, mask: Tensor | None = None) -> Tensor:
    """`log_softmax` of the elements that count, -inf elsewhere. As `torch.masked.log_softmax`."""
    return reductions.log_softmax(_hidden(_in_dtype(input, dtype), mask), dim)


def softmin(input: Tensor, dim: int, *, dtype: Dtype | None = None, mask: Tensor | None = None) -> Tensor:
    """`softmax` of the negatives of the elements that count. As `torch.masked.softmin`."""
    return reductions.softmax(_hidden(E.neg(_in_dtype(input, dtype)), mask), dim)


def logsumexp(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Dtype | None = None, mask: Tensor | None = None
) -> Tensor:
    """`logsumexp` of the elements that count; -inf of none. As `torch.masked.logsumexp`."""
    input = _in_dtype(input, dtype)
    found = reductions.logsumexp(_hidden(input, mask), _axes(input, dim), bool(keepdim))
    return E.cast(found, dtype=input._dtype())


def logaddexp(
    input: Tensor, other: Tensor, *, dtype: Dtype | None = None, input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """log(exp(input) + exp(other)), of what counts. As `torch.masked.logaddexp`."""
    left, right = _in_dtype(input, dtype), _in_dtype(other, dtype)
    found = E.logaddexp(_hidden(left, input_mask), _hidden(right, other_mask))
    return E.cast(found, dtype=left._dtype())


def normalize(
    input: Tensor, ord: float, dim: int, *, eps: float = 1e-12, dtype: Dtype | None = None, mask: Tensor | None = None
) -> Tensor:
    """The elements that count over their norm, which is at least `eps`. As `torch.masked.normalize`."""
    input = _in_dtype(input, dtype)
    size = norm(input, ord, dim, keepdim=True, mask=mask)
    return E.div(_filled(input, mask, 0), clamp_min(size, eps))
