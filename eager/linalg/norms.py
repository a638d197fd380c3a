"""Norms of vectors and matrices, and condition numbers."""

from __future__ import annotations

import functools
from typing import Any

from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.engine.node_names import named
from eager.functional import norms, reductions
from eager.functional.arguments import axis_of, shape_of
from eager.functional.gathering import numel
from eager.functional.outputs import with_out
from eager.functional.parsing import no_overload
from eager.functional.shapes import movedim
from eager.linalg.matrix_arguments import check_matrix
from eager.linalg.solving import inv_ex
from eager.linalg.spectra import singular_values
from graphc.ops.dtypes import real_of

INF = float("inf")
ORDERS = ("fro", "nuc", 1, -1, 2, -2, INF, -INF)


@functools.partial(with_out, "linalg_vector_norm")
def vector_norm(x: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The norm of order `ord` over `dim`, over all elements if None. As `torch.linalg.vector_norm`."""
    return norms.vector_norm(x, ord, dim, keepdim, dtype)


def _two_dims(A: Tensor, dim: Any) -> tuple[int, int]:
    dims = tuple(dim)
    if len(dims) != 2:
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {' '.join(map(str, dims))}")
    first, second = (axis_of(d, len(A._d.shape)) for d in dims)
    if first == second:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got ({dims[0]}, {dims[1]})")
    return first, second


@functools.partial(with_out, "linalg_matrix_norm")
def matrix_norm(
    A: Tensor, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """The norm of matrices: "fro", "nuc", 1, -1, 2, -2, inf or -inf. As `torch.linalg.matrix_norm`."""
    shape_of(A, "linalg_matrix_norm")
    if not isinstance(ord, (str, int, float, complex, Tensor)) or isinstance(dim, int):
        raise no_overload("linalg_matrix_norm", (A, ord, dim, keepdim))
    ord = ord if isinstance(ord, str) else norms.order_of("matrix_norm", ord)
    if ord not in ORDERS:
        shown = ord if isinstance(ord, str) else norms.spelled(ord)
        raise RuntimeError(f"linalg.matrix_norm: Order {shown} not supported.")
    check_matrix(A, "linalg.matrix_norm")
    first, second = _two_dims(A, dim)
    A = norms.in_dtype("matrix_norm", A, dtype, low_precision=ord not in ("nuc", 2, -2))
    if ord == "fro":
        return vector_norm(A, 2, (first, second), keepdim)
    extreme = reductions.amin if ord in (-1, -2, -INF) else _largest
    if ord in ("nuc", 2, -2):
        values = singular_values(movedim(A, (first, second), (-2, -1)))
        axis = (len(A._d.shape) - 2,)
        if ord == "nuc":
            found = named(E.sum(values, axis=axis, keepdims=False), "SumBackward1")
        else:
            found = extreme(values, axis, False)
        if not keepdim:
            return found
        return E.reshape(found, shape=tuple(1 if i in (first, second) else n for i, n in enumerate(A._d.shape)))
    summed, other = (first, second) if ord in (1, -1) else (second, first)
    total = vector_norm(A, 1, summed, keepdim)
    return extreme(total, (other - (not keepdim and other > summed),), keepdim)


def _largest(x: Tensor, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    """The largest of norms, 0 if there are none."""
    if all(x._d.shape[d] for d in dims):
        return reductions.amax(x, dims, keepdim)
    return E.sum(x, axis=dims, keepdims=keepdim)


@functools.partial(with_out, "linalg_norm")
def norm(A: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """A vector norm over one dim, a matrix norm over two; of order 2 over everything without either.

    As `torch.linalg.norm`.
    """
    shape = shape_of(A, "linalg_norm")
    if dim is not None:
        dims = (dim,) if isinstance(dim, int) else tuple(dim)
        if len(dims) not in (1, 2):
            raise RuntimeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dims)}")
    elif ord is not None and len(shape) not in (1, 2):
        raise RuntimeError(
            f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {len(shape)}D."
        )
    else:
        dims = tuple(range(len(shape)))
    if ord is not None and (len(dims) == 2 or isinstance(ord, str)):
        return matrix_norm(A, ord, dims if dim is not None else (-2, -1), keepdim, dtype=dtype)
    return vector_norm(A, 2 if ord is None else ord, dims if dim is not None else None, keepdim, dtype=dtype)


@functools.partial(with_out, "linalg_cond")
def cond(A: Tensor, p: Any = None) -> Tensor:
    """The condition number in a norm; inf for a singular matrix. As `torch.linalg.cond`."""
    shape = tuple(shape_of(A, "linalg_cond"))
    if len(shape) < 2:
        raise RuntimeError("linalg.cond: The input tensor must have at least 2 dimensions.")
    if p is not None and p not in ORDERS:
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    batch = shape[:-2]
    if not numel(shape):
        return E.full(shape=batch, value=0, dtype=real_of(A._dtype()))
    if p is None or p in (2, -2):
        values = singular_values(A)
        ends = values[..., :1], values[..., -1:]
        high, low = ends if p != -2 else ends[::-1]
        return _squeezed(E.div(high, low))
    if shape[-1] != shape[-2]:
        raise RuntimeError(
            f"linalg.cond(ord={p}): A must be batches of square matrices, but they are {shape[-2]} by {shape[-1]} "
            "matrices"
        )
    if p == "nuc":
        values = singular_values(A)
        axis = (len(batch),)
        return E.mul(E.sum(values, axis=axis, keepdims=False), E.sum(E.reciprocal(values), axis=axis, keepdims=False))
    inverse, info = inv_ex(A)
    found = E.mul(matrix_norm(A, p), matrix_norm(inverse, p))
    return E.where(E.logical_or(E.gt(info, 0), E.isnan(found)), INF, found)


def _squeezed(x: Tensor) -> Tensor:
    return named(E.reshape(x, shape=tuple(x._d.shape[:-1])), "SqueezeBackward1")
