"""One factorization of a square matrix for all that a program asks of its inverse and its determinant.

JAX's own functions would each factorize, and always by elimination. Here a matrix that is symmetric is tried by
Cholesky's factorization first, which takes half the time and fails unless it is positive definite; whether it is
symmetric is known from the graph, or tested: a first row that is not the first column says no at once.

    A[:, order] = L U, in `packed`: L its lower triangle, U its upper one, with ones on the diagonal

Both ways end there, so that what is computed from factors need not ask. LAPACK reads columns, to which a matrix that
lies in rows is its transpose: A^T is what it is given, and what it returns is transposed, so that nothing is copied.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from graphc.facts.known import Facts
from graphc.ir.graph import Node
from graphc.ir.matrices import transposes
from graphc.ops import OPS
from graphc.ops.dtypes import is_half

LEAST = 64  # rows of a matrix: with fewer, what is saved is less than asking
_SOLVE, _INV, _SLOGDET, _DET = FACTORED = tuple([OPS[name] for name in ("solve", "inv", "slogdet", "det")])


def matrix_of(node: Node, nodes: Mapping[int, Node]) -> tuple[int, bool] | None:
    """The matrix to factorize for a node, and whether the node is about its transpose; None for other nodes."""
    if node.op not in FACTORED:
        return None
    x = nodes[node.inputs[0]]
    sizes = x.shape[-2:]
    if not all(type(n) is int for n in x.shape) or sizes[0] < LEAST or 0 in x.shape or is_half(x.dtype):
        return None
    return (x.inputs[0], True) if transposes(x) else (x.id, False)


def is_symmetric(id: int, nodes: Mapping[int, Node]) -> bool:
    """Whether a matrix is known to be symmetric but for rounding."""
    return len(nodes[id].shape) == 2 and Facts(nodes).symmetric(id)


def use(node: Node, factors: str, turned: bool, names: Mapping[int, str]) -> str:
    """Python source for a node that needs these factors."""
    if node.op is _SOLVE:
        return f"ops.solve_factored({factors}, {names[node.inputs[1]]}, turned={turned})"
    if node.op is _INV:
        return f"ops.invert_factored({factors}, turned={turned})"
    return f"ops.{'logs' if node.op is _SLOGDET else 'determinant'}_of_factors({factors})"


class Factors(NamedTuple):
    """See above. parity: 0 or 1, that of `order`"""

    packed: Any
    order: Any
    parity: Any


def _turned(x: Any) -> Any:
    return jnp.swapaxes(x, -1, -2)


def factorize(x: Any, symmetric: bool) -> Factors:
    """The factors of square matrices. symmetric: whether they are known to be."""
    n = x.shape[-1]

    def eliminate(x: Any) -> Factors:
        factors, swaps, order = lax.linalg.lu(_turned(x))
        parity = (swaps != jnp.arange(n, dtype=swaps.dtype)).sum(axis=-1, dtype=np.int32) % 2
        return Factors(_turned(factors), order, parity)

    def halve(x: Any) -> Factors:
        factor = jnp.linalg.cholesky(_turned(x), symmetrize_input=False)
        order = jnp.broadcast_to(jnp.arange(n, dtype=np.int32), x.shape[:-1])
        none = jnp.zeros(x.shape[:-2], np.int32)

        def done(x: Any, factor: Any) -> Factors:  # C C^T = (C d) (C / d)^T, d the diagonal of C
            d = jnp.diagonal(factor, axis1=-2, axis2=-1)
            lower, upper = factor * d[..., None, :], _turned(factor) / d[..., :, None]
            rows, columns = (lax.broadcasted_iota(np.dtype(np.int32), (n, n), k) for k in range(2))
            return Factors(jnp.where(rows < columns, upper, lower), order, none)

        failed = jnp.isnan(factor[..., -1, -1]).any()  # nan anywhere reaches the last element
        return lax.cond(failed, lambda x, factor: eliminate(x), done, x, factor)

    if x.dtype.kind == "c":
        return eliminate(x)
    if symmetric:
        return halve(x)
    return lax.cond(_is_mirrored(x), halve, eliminate, x)


def _is_mirrored(x: Any) -> Any:
    """Whether all matrices are equal to their transposes."""

    def equal(x: Any, y: Any) -> Any:
        # without the barrier XLA reads the transpose in the loop of the reduction, four times as slowly
        return lax.optimization_barrier(jnp.where(x == _turned(y), np.int8(1), np.int8(0))).all()

    def whole(x: Any, splits: int = 2) -> Any:
        if not splits:
            return equal(x, x)
        k = x.shape[-1] // 2
        corners = equal(x[..., :k, k:], x[..., k:, :k])
        return corners & whole(x[..., :k, :k], splits - 1) & whole(x[..., k:, k:], splits - 1)

    return lax.cond((x[..., 0, :] == x[..., :, 0]).all(), whole, lambda x: jnp.bool_(False), x)


def solve_factored(factors: Factors, y: Any, turned: bool) -> Any:
    """A^-1 y, or A^-T y."""
    packed, order = _turned(factors.packed), factors.order  # A^T[order] = L U, in LAPACK's columns

    def substitute(y: Any, **how: Any) -> Any:
        return lax.linalg.triangular_solve(packed, y, left_side=True, **how)

    if turned:
        return substitute(substitute(_rows(y, order), lower=True, unit_diagonal=True), lower=False)
    y = substitute(y, lower=False, transpose_a=True)
    y = substitute(y, lower=True, unit_diagonal=True, transpose_a=True)
    return _rows(y, jnp.argsort(order, axis=-1))


def _rows(y: Any, order: Any) -> Any:
    return jnp.take_along_axis(y, order[..., None], axis=-2, mode="promise_in_bounds")


def invert_factored(factors: Factors, turned: bool) -> Any:
    """A^-1, or A^-T."""
    one = jnp.eye(factors.packed.shape[-1], dtype=factors.packed.dtype)
    return solve_factored(factors, jnp.broadcast_to(one, factors.packed.shape), turned)


def _pivots(factors: Factors) -> Any:
    return jnp.diagonal(factors.packed, axis1=-2, axis2=-1)


def logs_of_factors(factors: Factors) -> tuple[Any, Any]:
    """The sign, or phase, of the determinant, and the logarithm of its size."""
    d = _pivots(factors)
    return jnp.sign(d).prod(axis=-1) * _sign(factors).astype(d.dtype), jnp.log(jnp.abs(d)).sum(axis=-1)


def determinant_of_factors(factors: Factors) -> Any:
    """The determinant."""
    d = _pivots(factors)
    return d.prod(axis=-1) * _sign(factors).astype(d.dtype)


def _sign(factors: Factors) -> Any:
    return 1 - 2 * factors.parity


def regular_factors(factors: Factors, checked: bool = True, **params: Any) -> Any:
    """Whether no matrix is singular."""
    return (_pivots(factors) != 0).all() if checked else True


KERNELS = {
    f.__name__: f for f in (
        factorize, solve_factored, invert_factored, logs_of_factors, determinant_of_factors, regular_factors,
    )
}  # fmt: skip
