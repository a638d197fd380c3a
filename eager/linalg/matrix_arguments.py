"""What functions of matrices ask of their arguments, in PyTorch's words; and parts of their results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from eager.core import operands
from eager.core.tensor import Tensor
from eager.core.views import not_a_view
from eager.engine.language import E
from eager.engine.node_names import enclosed, enclosed_each
from eager.functional.arguments import not_implemented, shape_of, unrecorded_arrays
from eager.functional.gathering import numel
from graphc.ops.dtypes import is_half, is_inexact
from graphc.ops.matrices import adjoint
from graphc.ops.rules import broadcast_shapes, torch_name
from graphc.ops.solving import OTHER_DTYPE

NOT_FLOATING = "{name}: Expected a floating point or complex tensor as input. Got {kind}"
LOW_PRECISION = "{name}: Low precision dtypes not supported. Got {kind}"
# functions whose kernel is missing for other dtypes, rather than that these are refused
KERNELS = {
    "cholesky": "cholesky_cpu", "cholesky_inverse": "cholesky_inverse_out_cpu", "cholesky_solve": "cholesky_solve_cpu",
    "geqrf": "geqrf_cpu", "linalg.solve_triangular": "triangular_solve_cpu", "ormqr": "ormqr_cpu",
    "torch.linalg.householder_product": "orgqr_cpu", "triangular_solve": "triangular_solve_cpu",
}  # fmt: skip
# the same for 16-bit floats only
KERNELS_OF_HALVES = {
    "linalg.cholesky": "cholesky_cpu", "linalg.det": "lu_cpu", "linalg.qr": "geqrf_cpu", "linalg.solve": "lu_cpu",
    "linalg.svd": "linalg_svd_cpu", "torch.linalg.ldl_factor_ex": "ldl_factor_kernel_cpu",
}  # fmt: skip


def check_floating(x: Tensor, name: str) -> None:
    """Raise PyTorch's error unless `x` is a float or complex tensor of 32 bits or more."""
    dtype = x._dtype()
    if is_inexact(dtype) and not is_half(dtype):
        return
    if name in KERNELS:
        raise not_implemented(KERNELS[name], x)
    if not is_inexact(dtype):
        raise RuntimeError(NOT_FLOATING.format(name=name, kind=torch_name(dtype)))
    if name in KERNELS_OF_HALVES:
        raise not_implemented(KERNELS_OF_HALVES[name], x)
    raise RuntimeError(LOW_PRECISION.format(name=name, kind=torch_name(dtype)))


def check_matrix(x: Tensor, name: str, argument: str = "A") -> tuple[int, ...]:
    """The shape of `x`. Raises PyTorch's RuntimeError unless it has two dims."""
    shape = tuple(shape_of(x, name.replace(".", "_"), argument))
    if len(shape) < 2:
        raise RuntimeError(f"{name}: The input tensor {argument} must have at least 2 dimensions.")
    return shape


def check_square(x: Tensor, name: str) -> tuple[int, ...]:
    """The shape of `x`. Raises PyTorch's RuntimeError unless it holds square matrices."""
    shape = check_matrix(x, name)
    if shape[-1] != shape[-2]:
        raise RuntimeError(
            f"{name}: A must be batches of square matrices, but they are {shape[-2]} by {shape[-1]} matrices"
        )
    return shape


def check_same_dtype(a: Tensor, b: Tensor, name: str) -> None:
    """Raise PyTorch's RuntimeError unless both have one dtype."""
    if operands.kind_of(a) != operands.kind_of(b):
        raise RuntimeError(OTHER_DTYPE.format(name, torch_name(a._dtype()), torch_name(b._dtype())))


def expanded(x: Tensor, batch: tuple[int, ...]) -> Tensor:
    """The matrices `x` repeated to the batch dims `batch`."""
    shape = (*batch, *x._d.shape[-2:])
    return x if tuple(x._d.shape) == shape else E.broadcast_to(x, shape=shape)


def aligned(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Matrices with their batch dims broadcast to the same."""
    batch = broadcast_shapes([tuple(b._d.shape[:-2]), tuple(a._d.shape[:-2])])
    return expanded(a, batch), expanded(b, batch)


def hermitian(x: Tensor, upper: bool = False) -> Tensor:
    """The Hermitian matrix of which `x` has the lower (or upper) triangle; its gradient goes to all of `x`.

    The ops take the Hermitian part of their operand, which differs where the triangles do.
    """
    if unrecorded_arrays((x,)):
        return Tensor._wrap(_mirrored(x._array(), upper))
    still = E.stop_gradient(x)
    strict = E.triu(still, diagonal=1) if upper else E.tril(still, diagonal=-1)
    return passed_through(E.add(triangle(still, upper), adjoint(E, strict)), x)


def triangle(x: Tensor, upper: bool) -> Tensor:
    """The upper or lower triangle with the diagonal, beside zeros."""
    return E.triu(x, diagonal=0) if upper else E.tril(x, diagonal=0)


def passed_through(value: Tensor, x: Tensor) -> Tensor:
    """`value`, with its gradient passed on to `x` as it is."""
    moved = E.sub(x, E.stop_gradient(x))
    return E.add(value, E.where(E.eq(moved, 0), moved, 0))  # also where x is not finite


def _mirrored(x: np.ndarray, upper: bool) -> np.ndarray:
    half, strict = (np.triu(x), np.triu(x, 1)) if upper else (np.tril(x), np.tril(x, -1))
    return half + np.conj(np.swapaxes(strict, -1, -2))


def result(x: Tensor, node: str, since: int) -> Tensor:
    """The result of a function whose ops were recorded after number `since`."""
    return not_a_view(enclosed(x, node, since))


def results(parts: Sequence[Tensor], node: str, since: int) -> tuple[Tensor, ...]:
    """The results of a function whose ops were recorded after number `since`."""
    return tuple(map(not_a_view, enclosed_each(parts, node, since)))


def independent(value: Tensor, *inputs: Tensor) -> Tensor:
    """`value` as a function of `inputs` on which it does not depend: their gradients are 0."""
    for x in inputs:
        line = E.reshape(x, shape=(numel(x._d.shape),))
        nothing = E.sum(E.slice(line, start=(0,), stop=(0,), step=(1,)), axis=(0,), keepdims=False)
        nothing = nothing if value._dtype().kind == "c" else real_of(nothing)
        value = E.add(value, nothing)
    return value


def row(x: Tensor) -> Tensor:
    """Matrices of one row as vectors."""
    shape = tuple(x._d.shape)
    return E.reshape(x, shape=(*shape[:-2], shape[-1]))


def real_of(x: Tensor) -> Tensor:
    """The real part, of a real tensor itself."""
    return E.real(x) if x._dtype().kind == "c" else x


def numbers(*shape: int, dtype: Any = np.int64) -> Tensor:
    """0, 1, ... in the given shape, one of whose sizes is not 1."""
    return Tensor._wrap(np.arange(int(np.prod(shape)), dtype=dtype).reshape(shape))


def tolerance(name: str, A: Tensor, value: Any) -> Tensor | None:
    """A tolerance as a tensor of the real dtype of `A`. RuntimeError for a complex one."""
    if value is None:
        return None
    real = A._dtype() if A._dtype().kind == "f" else np.dtype(f"f{A._dtype().itemsize // 2}")
    if not isinstance(value, Tensor):
        return Tensor._wrap(np.array(value, real))
    if value._dtype().kind == "c":
        raise RuntimeError(f"torch.linalg.{name}: atol tensor of complex type is not supported.")
    return E.cast(E.stop_gradient(value), dtype=real)


def tolerances(name: str, A: Tensor, atol: Any, rtol: Any) -> tuple[Tensor, Tensor]:
    """(atol, rtol) with PyTorch's defaults: 0, and eps times the larger size where no atol is given."""
    real = A._dtype() if A._dtype().kind == "f" else np.dtype(f"f{A._dtype().itemsize // 2}")
    absolute, relative = tolerance(name, A, atol), tolerance(name, A, rtol)
    default = float(np.finfo(real).eps) * max(A._d.shape[-2:])
    if relative is None:
        used = Tensor._wrap(np.array(default, real))
        relative = used if absolute is None else E.where(E.gt(absolute, 0), Tensor._wrap(np.zeros((), real)), used)
    return Tensor._wrap(np.zeros((), real)) if absolute is None else absolute, relative
