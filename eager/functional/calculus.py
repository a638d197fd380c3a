"""Differences, integrals and slopes of sampled functions: diff, trapezoid, cumulative_trapezoid, gradient."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

from eager.core import operands
from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.engine.node_names import named
from eager.functional.arguments import axes_of, axis_of, shape_of
from eager.functional.joining import cat, cut, select
from eager.functional.reductions import cumsum
from eager.functional.reductions import sum as sum_over
from eager.functional.shapes import reshape
from graphc.ops.dtypes import BOOL

NO_DIMS = "Dimension specified as {dim} but tensor has no dimensions"
DIFF_SHAPE = (
    "diff expects the shape of tensor to prepend or append to match that of input except along the differencing "
    "dimension; input.size({i}) = {a}, but got tensor.size({i}) = {b}"
)


def _check_end(input: tuple[int, ...], end: tuple[int, ...], axis: int) -> None:
    if len(end) != len(input):
        raise RuntimeError("diff expects prepend or append to be the same dimension as input")
    for i, (a, b) in enumerate(zip(input, end, strict=True)):
        if i != axis and a != b:
            raise RuntimeError(DIFF_SHAPE.format(i=i, a=a, b=b))


def _neighbours(x: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """All elements along `axis` but the last, and all but the first."""
    size = x._d.shape[axis]
    return cut(x, axis, 0, max(size - 1, 0)), cut(x, axis, min(1, size), size)


def diff(
    input: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    """The n-th differences of neighbours along `dim`, of bools whether they differ. As `torch.diff`.

    RuntimeError for a negative n, a 0-d tensor, or a `prepend` or `append` of other sizes.
    """
    shape = tuple(shape_of(input, "diff"))
    if not shape:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    axis = axis_of(dim, len(shape))
    for end in (prepend, append):
        if end is not None:
            _check_end(shape, tuple(end._d.shape), axis)
    if not n:
        return named(E.clone(input), "CopyBackwards")
    parts = [x for x in (prepend, input, append) if x is not None]
    result = cat(parts, axis) if len(parts) > 1 else input
    for _ in range(min(n, result._d.shape[axis])):
        before, after = _neighbours(result, axis)
        result = E.logical_xor(after, before) if result._dtype() == BOOL else E.sub(after, before)
    return result


def _sample_axis(y: Tensor, x: Tensor | None, dim: int, name: str) -> int:
    shape = shape_of(y, name, "y")
    if not shape:
        raise IndexError(NO_DIMS.format(dim=dim))
    kinds = [operands.kind_of(each) for each in (y, x) if each is not None]
    if BOOL in kinds:
        which = "`y`" if x is None else "`x` or `y`"
        raise RuntimeError(f"{name}: received a bool input for {which}, but bool is not supported")
    return axis_of(dim, len(shape))


def _widths(y: Tensor, x: Tensor, axis: int, name: str) -> Tensor:
    """The distances of neighbouring sample points, in dims that broadcast with those of `y`."""
    ndim, points = len(y._d.shape), tuple(x._d.shape)
    if len(points) == 1:
        if points[0] != y._d.shape[axis]:
            raise RuntimeError(f"{name}: There must be one `x` value for each sample point")
        x = reshape(x, [points[0] if i == axis else 1 for i in range(ndim)])
    elif len(points) < ndim:
        x = reshape(x, (1,) * (ndim - len(points)) + points)
    before, after = _neighbours(x, axis)
    return E.sub(after, before)


def _either(name: str, x: Any, dx: Any) -> None:
    if x is not None and dx is not None:
        raise TypeError(
            f"{name}() received an invalid combination of arguments - got (Tensor, Tensor, dx={type(dx).__name__}), but"
            " expected one of:\n * (Tensor y, Tensor x, *, int dim = -1)\n * (Tensor y, *, Number dx = 1, int dim = -1)"
            "\n"
        )


def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Any = None, dim: int = -1) -> Tensor:
    """The integral of samples `y` along `dim`, taken at points `x` or `dx` apart. As `torch.trapezoid`.

    RuntimeError for bools, and for another number of points than samples.
    """
    _either("trapezoid", x, dx)
    axis = _sample_axis(y, x, dim, "trapezoid")
    shape = tuple(y._d.shape)
    if not shape[axis]:
        return E.full(shape=shape[:axis] + shape[axis + 1 :], value=0.0, dtype=y._dtype())
    if x is None:
        ends = E.mul(E.add(select(y, axis, 0), select(y, axis, -1)), 0.5)
        total = E.mul(E.sub(sum_over(y, axis), ends), 1.0 if dx is None else float(dx))
        return named(total, "MulBackward1")
    before, after = _neighbours(y, axis)
    areas = E.mul(E.add(before, after), _widths(y, x, axis, "trapezoid"))
    return named(E.div(sum_over(areas, axis), 2.0), "DivBackward1")


trapz = trapezoid


def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Any = None, dim: int = -1) -> Tensor:
    """The running integral of samples `y` along `dim`. As `torch.cumulative_trapezoid`; errors as `trapezoid`."""
    _either("cumulative_trapezoid", x, dx)
    axis = _sample_axis(y, x, dim, "cumulative_trapezoid")
    before, after = _neighbours(y, axis)
    if x is None:
        return cumsum(E.mul(E.add(after, before), (1.0 if dx is None else float(dx)) / 2), axis)
    areas = E.mul(E.add(before, after), _widths(y, x, axis, "cumulative_trapezoid"))
    return named(E.div(cumsum(areas, axis), 2.0), "DivBackward1")


SPACING = (
    "torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal to 'self.dim() = {ndim}', "
    "since dim argument was not given, but got a list of length {count}"
)
SPACING_OF_DIMS = (
    "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim arguments to have the same "
    "length, but got a spacing argument of length {count} and a dim argument of length {dims}."
)

SPACING_KIND = (
    "gradient() received an invalid combination of arguments - got (Tensor, spacing=Tensor), but expected one of:\n"
    " * (Tensor input, *, tuple of ints dim, int edge_order = 1)\n"
    " * (Tensor input, *, Number spacing, tuple of ints dim, int edge_order = 1)\n"
    " * (Tensor input, *, Number spacing = None, int dim = None, int edge_order = 1)\n"
    " * (Tensor input, *, tuple of Scalars spacing, int dim = None, int edge_order = 1)\n"
    " * (Tensor input, *, tuple of Scalars spacing, tuple of ints dim, int edge_order = 1)\n"
    " * (Tensor input, *, tuple of Tensors spacing, int dim = None, int edge_order = 1)\n"
    " * (Tensor input, *, tuple of Tensors spacing, tuple of ints dim, int edge_order = 1)\n"
)


def _spacings(spacing: Any, axes: tuple[int, ...], ndim: int, dim: Any) -> Sequence[Any]:
    if spacing is None:
        return (1.0,) * len(axes)
    if isinstance(spacing, Tensor) and not spacing._d.shape:
        spacing = spacing.item()
    if isinstance(spacing, (int, float, builtins.complex)):
        return (spacing,) * len(axes)
    if isinstance(spacing, Tensor):
        raise TypeError(SPACING_KIND)
    if len(spacing) != len(axes):
        if dim is None:
            raise RuntimeError(SPACING.format(ndim=ndim, count=len(spacing)))
        raise RuntimeError(SPACING_OF_DIMS.format(count=len(spacing), dims=len(axes)))
    return spacing


def _weighted(x: Tensor, axis: int, starts: Sequence[int], length: int, weights: Sequence[Any]) -> Tensor:
    """The sum of the pieces of `x` that begin at `starts`, each times its weight."""
    total = None
    for start, weight in zip(starts, weights, strict=True):
        term = E.mul(cut(x, axis, start, start + length), weight)
        total = term if total is None else E.add(total, term)
    assert total is not None
    return total


def _even_slopes(x: Tensor, axis: int, h: Any, edge_order: int) -> Tensor:
    n = x._d.shape[axis]

    def piece(start: int, stop: int) -> Tensor:
        return cut(x, axis, start, stop)

    inside = E.div(E.mul(E.sub(piece(min(2, n), n), piece(0, max(n - 2, 0))), 0.5), h)
    if edge_order == 1:
        first = E.div(E.sub(piece(1, 2), piece(0, 1)), h)
        last = E.div(E.sub(piece(n - 1, n), piece(n - 2, n - 1)), h)
    else:
        first = E.div(_weighted(x, axis, (0, 1, 2), 1, (-1.5, 2.0, -0.5)), h)
        last = E.div(_weighted(x, axis, (n - 3, n - 2, n - 1), 1, (0.5, -2.0, 1.5)), h)
    return cat([first, inside, last], axis)


def _uneven_slopes(x: Tensor, axis: int, points: Any, edge_order: int) -> Tensor:
    ndim, n = len(x._d.shape), x._d.shape[axis]
    before, after = _neighbours(points, 0)
    width = E.sub(after, before)
    count = width._d.shape[0]

    def laid(v: Tensor) -> Any:
        return reshape(v, [-1 if i == axis else 1 for i in range(ndim)])

    def at(i: int) -> Any:
        return laid(cut(width, 0, i % count, i % count + 1))

    left, right = (laid(w) for w in _neighbours(width, 0))
    both = left + right
    inner = (-right / (left * both), (right - left) / (left * right), left / (right * both))
    inside = _weighted(x, axis, (0, 1, 2), n - 2, inner)
    if edge_order == 1:
        first = E.div(E.sub(cut(x, axis, 1, 2), cut(x, axis, 0, 1)), at(0))
        last = E.div(E.sub(cut(x, axis, n - 1, n), cut(x, axis, n - 2, n - 1)), at(-1))
        return cat([first, inside, last], axis)
    a, b = at(0), at(1)
    first = _weighted(x, axis, (0, 1, 2), 1, (-(2.0 * a + b) / (a * (a + b)), (a + b) / (a * b), -a / (b * (a + b))))
    a, b = at(-2), at(-1)
    ends = (b / (a * (a + b)), -(a + b) / (a * b), (2.0 * b + a) / (b * (a + b)))
    return cat([first, inside, _weighted(x, axis, (n - 3, n - 2, n - 1), 1, ends)], axis)


def gradient(input: Tensor, *, spacing: Any = None, dim: Any = None, edge_order: int = 1) -> tuple[Tensor, ...]:
    """The slopes of samples along each of `dim`, by central differences. As `torch.gradient`.

    `spacing`: the distance of samples, one for each dim, or 1-d tensors of coordinates. RuntimeError for an
    `edge_order` other than 1 and 2, too few samples, or another number of spacings than dims.
    """
    shape = tuple(shape_of(input, "gradient"))
    axes = () if dim in ([], ()) else axes_of(dim, len(shape))  # no dims are none here, not all
    spacings = _spacings(spacing, axes, len(shape), dim)
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    if any(shape[axis] < edge_order + 1 for axis in axes):
        raise RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1")
    return tuple(
        (_uneven_slopes if isinstance(h, Tensor) else _even_slopes)(input, axis, h, edge_order)
        for axis, h in zip(axes, spacings, strict=True)
    )
