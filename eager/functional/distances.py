"""Distances, products of vectors, and statistics of observations: dist, cdist, renorm, vdot, cross, cov, corrcoef."""

from __future__ import annotations

import math
from typing import Any

from eager.core.interpreter import on_arrays
from eager.core.state import sequence
from eager.core.tensor import Tensor
from eager.core.warned import warn
from eager.engine.language import E
from eager.engine.node_names import enclosed, whole
from eager.functional.arguments import ALL_AXES, axis_of, shape_of
from eager.functional.arithmetic import clamp, clamp_min
from eager.functional.complexes import complex, conj, imag, real
from eager.functional.joining import roll
from eager.functional.linear import dot
from eager.functional.norms import vector_norm
from eager.functional.reductions import root
from eager.functional.shapes import diag, matrix_transpose, reshape, squeeze, t, unsqueeze
from eager.functional.updates import in_place_of
from graphc.ops.dtypes import BOOL, is_floating, is_half, is_inexact
from graphc.ops.rules import torch_name


@whole("DistBackward0")
def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """The p-norm of input - other. As `torch.dist`. RuntimeError for integers."""
    shape_of(input, "dist")
    shape_of(other, "dist", "other", 2)
    apart = E.sub(input, other)
    if not is_inexact(apart._dtype()):
        raise RuntimeError(
            f"norm(): input dtype should be either floating point or complex. Got {torch_name(apart._dtype())} instead."
        )
    if p == 0 and is_floating(apart._dtype()):  # counted so that the gradient is 0
        return E.sum(E.abs(E.sign(apart)), axis=ALL_AXES[len(apart._d.shape)], keepdims=False)
    return vector_norm(apart, p)


MODES = (
    "use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist",
)  # fmt: skip


def _largest(size: Tensor, axis: int) -> Tensor:
    """The maximum over `axis`; all of the gradient goes to each of those that have it."""
    fixed = E.stop_gradient(size)
    top = E.amax(fixed, axis=(axis,), keepdims=True)
    hit = E.logical_and(E.eq(fixed, top), E.isfinite(fixed))
    moved = E.sum(E.where(hit, E.sub(size, fixed), 0), axis=(axis,), keepdims=False)
    return E.add(E.reshape(top, shape=tuple(top._d.shape[:-1])), moved)


def _by_products(x1: Tensor, x2: Tensor) -> Tensor:
    """Euclidean distances from inner products: less memory, more rounding."""
    last = len(x1._d.shape) - 1, len(x2._d.shape) - 1
    squares = [E.sum(E.square(x), axis=(axis,), keepdims=True) for x, axis in zip((x1, x2), last, strict=True)]
    product = E.matmul(x1, matrix_transpose(x2))
    total = E.add(E.sub(squares[0], E.mul(product, 2.0)), matrix_transpose(squares[1]))
    return root(clamp_min(total, 0))


def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str | None = MODES[0]) -> Tensor:
    """The p-norm distances of all rows of `x1` (B, P, M) to all of `x2` (B, R, M), as (B, P, R). As `torch.cdist`.

    `compute_mode` says whether Euclidean distances come from a matrix product: by default if P or R exceeds 25.
    """
    shapes = [tuple(shape_of(x, "cdist", f"x{i}", i)) for i, x in enumerate((x1, x2), 1)]
    if compute_mode is not None and compute_mode not in MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    for i, shape in enumerate(shapes, 1):
        if len(shape) < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, X{i} got: {len(shape)}D")
    if shapes[0][-1] != shapes[1][-1]:
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {shapes[0][-1]} X2: {shapes[1][-1]}")
    for i, x in enumerate((x1, x2), 1):
        if not is_floating(x._dtype()):
            raise RuntimeError(f"cdist only supports floating-point dtypes, X{i} got: {torch_name(x._dtype())}")
    if x1._dtype() != x2._dtype():
        names = torch_name(x1._dtype()), torch_name(x2._dtype())
        raise RuntimeError(f"expected scalar type {names[0]} but found {names[1]}")
    if is_half(x1._dtype()):
        raise NotImplementedError(f"\"cdist\" not implemented for '{torch_name(x1._dtype())}'")
    if p < 0:
        raise RuntimeError("cdist only supports non-negative p values")
    many = max(shapes[0][-2], shapes[1][-2]) > 25
    since = next(sequence)
    if p == 2 and (compute_mode == MODES[1] or (compute_mode != MODES[2] and many)):
        return enclosed(_by_products(x1, x2), "ViewBackward0", since)
    apart = E.sub(unsqueeze(x1, -2), unsqueeze(x2, -3))
    axis = len(apart._d.shape) - 1
    if not shapes[0][-1]:
        return E.sum(apart, axis=(axis,), keepdims=False)
    if p == 0:  # counted so that the gradient is 0
        result = E.sum(E.abs(E.sign(apart)), axis=(axis,), keepdims=False)
    else:
        result = _largest(E.abs(apart), axis) if p == math.inf else vector_norm(apart, p, axis)
    return enclosed(result, "CdistBackward0", since)


@whole("RenormBackward0")
def renorm(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """The slices along `dim` whose p-norm exceeds `maxnorm` scaled down to it. As `torch.renorm`.

    RuntimeError for p <= 0, a negative maxnorm, or fewer than two dims.
    """
    ndim = len(shape_of(input, "renorm"))
    if p <= 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm:g}")
    if ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {ndim} dimensions")
    axis = axis_of(dim, ndim)
    size = vector_norm(input, p, tuple(i for i in ALL_AXES[ndim] if i != axis), keepdim=True)
    return E.mul(input, E.where(E.gt(size, maxnorm), E.div(maxnorm, E.add(size, 1e-7)), 1.0))


METHODS = {"renorm_": in_place_of("renorm", renorm, check=None)}


@whole("VdotBackward0")
def vdot(input: Tensor, other: Tensor) -> Tensor:
    """The inner product of two vectors, the first one conjugated. As `torch.vdot`."""
    shape_of(input, "vdot")
    shape_of(other, "vdot", "other", 2)
    return dot(conj(input) if input._dtype().kind == "c" else input, other)


@whole("LinalgCrossBackward0")
def cross_along(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """The cross products of vectors along `dim`. As `torch.linalg.cross`. RuntimeError for lengths other than 3."""
    a, b = shape_of(input, "linalg_cross"), shape_of(other, "linalg_cross", "other", 2)
    if len(a) != len(b):
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    axis = axis_of(dim, len(a))
    if a[axis] != 3 or b[axis] != 3:
        raise RuntimeError(f"linalg.cross: inputs dimension {dim} must have length 3. Got {a[axis]} and {b[axis]}")
    if input._dtype() != other._dtype():
        names = torch_name(input._dtype()), torch_name(other._dtype())
        raise RuntimeError(f"expected scalar type {names[0]} but found {names[1]}")
    if input._dtype() == BOOL:
        raise NotImplementedError("\"cross\" not implemented for 'Bool'")
    left = E.mul(roll(input, -1, axis), roll(other, -2, axis))
    return E.sub(left, E.mul(roll(input, -2, axis), roll(other, -1, axis)))


def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """The cross products of vectors of length 3 along `dim`, the first of that size if None. As `torch.cross`."""
    if dim is not None:
        return cross_along(input, other, dim=dim)
    shape = tuple(shape_of(input, "cross"))
    if len(shape) != len(shape_of(other, "cross", "other", 2)):
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    warn(
        "Using torch.cross without specifying the dim arg is deprecated.\nPlease either pass the dim explicitly or "
        "simply use torch.linalg.cross.\nThe default value of dim will change to agree with that of linalg.cross in a "
        "future release."
    )
    if 3 not in shape:
        raise RuntimeError("no dimension of size 3 in input")
    return cross_along(input, other, dim=shape.index(3))


def _check_weights(weights: Tensor | None, count: int, name: str, floating: bool) -> None:
    if weights is None:
        return
    shape = tuple(weights._d.shape)
    if len(shape) > 1:
        raise RuntimeError(
            f"cov(): expected {name} to have one or fewer dimensions but got {name} with {len(shape)} dimensions"
        )
    if is_floating(weights._dtype()) != floating:
        wanted = "floating point" if floating else "integral"
        raise RuntimeError(
            f"cov(): expected {name} to have {wanted} dtype but got {name} with {torch_name(weights._dtype())} dtype"
        )
    if math.prod(shape) != count:
        raise RuntimeError(
            f"cov(): expected {name} to have the same numel as there are observations in the input but got "
            f"{math.prod(shape)} != {count}"
        )
    if on_arrays(weights) and (weights._array() < 0).any():
        raise RuntimeError(f"cov(): {name} cannot be negative")


def cov(
    input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
) -> Tensor:
    """The covariances of variables (rows) over observations (columns). As `torch.cov`.

    `fweights`: how often each observation was made; `aweights`: how much it counts. RuntimeError for bools, more than
    two dims, and weights of other sizes, dtypes or signs.
    """
    shape = tuple(shape_of(input, "cov"))
    if len(shape) > 2:
        raise RuntimeError(
            f"cov(): expected input to have two or fewer dimensions but got an input with {len(shape)} dimensions"
        )
    if input._dtype() == BOOL:
        raise RuntimeError("cov(): bool dtype is not supported for input")
    rows = reshape(input, (1, -1)) if len(shape) < 2 else input
    count = rows._d.shape[1]
    _check_weights(fweights, count, "fweights", False)
    _check_weights(aweights, count, "aweights", True)
    weights = fweights if aweights is None else aweights if fweights is None else E.mul(fweights, aweights)
    if weights is None:
        total: Any = count
        divisor: Any = max(count - correction, 0)
        mean = E.div(E.sum(rows, axis=(1,), keepdims=True), float(count))
    else:
        total = E.sum(weights, axis=ALL_AXES[len(weights._d.shape)], keepdims=False)
        if on_arrays(total) and not total._array():
            raise RuntimeError("cov(): weights sum to zero, can't be normalized")
        lost: Any = correction
        if aweights is not None and correction:
            squares = E.mul(weights, aweights)
            lost = E.div(E.mul(E.sum(squares, axis=ALL_AXES[len(squares._d.shape)], keepdims=False), correction), total)
        divisor = clamp_min(E.sub(total, lost), 0)
        mean = E.div(E.sum(E.mul(rows, weights), axis=(1,), keepdims=True), total)
    if on_arrays(rows) and not (divisor if isinstance(divisor, int) else divisor._array()):
        warn("cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of observations.")
    centered = E.sub(rows, mean)
    other = centered if weights is None else E.mul(centered, weights)
    turned = t(other)
    product = E.matmul(centered, conj(turned) if turned._dtype().kind == "c" else turned)
    return squeeze(E.div(product, float(divisor) if isinstance(divisor, int) else divisor))


def corrcoef(input: Tensor) -> Tensor:
    """The correlations of variables (rows) over observations (columns). As `torch.corrcoef`."""
    shape = tuple(shape_of(input, "corrcoef"))
    if len(shape) > 2:
        raise RuntimeError(
            f"corrcoef(): expected input to have two or fewer dimensions but got an input with {len(shape)} dimensions"
        )
    covariance = cov(input)
    if not covariance._d.shape:
        return E.div(covariance, covariance)
    variances = diag(covariance)
    spread = E.sqrt(real(variances) if variances._dtype().kind == "c" else variances)
    scaled = E.div(E.div(covariance, reshape(spread, (-1, 1))), reshape(spread, (1, -1)))
    if scaled._dtype().kind == "c":
        return complex(clamp(real(scaled), -1, 1), clamp(imag(scaled), -1, 1))
    return clamp(scaled, -1, 1)
