"""JAX kernels of the ops in `graphc.ops.solving` and `graphc.ops.factorizations` that NumPy leaves to SciPy."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import jax.scipy.linalg
from jax import lax

from graphc.ops.dtypes import complex_of
from graphc.ops.matrices import half_sum
from graphc.ops.solving import EXP_NORM, SQUARINGS


def cholesky(x: Any) -> Any:
    # LAPACK reads columns: of the mirror image, which is the same matrix, it needs no copy. Without the barrier XLA
    # would lay out, or compute again, all that `x` is made of as LAPACK wants it
    mirrored = jnp.swapaxes(half_sum(jnp, lax.optimization_barrier(x)), -1, -2).conj()
    return jnp.linalg.cholesky(mirrored, symmetrize_input=False)


def definite(x: Any) -> Any:
    # nan anywhere reaches the last element
    return ~jnp.any(jnp.isnan(cholesky(x)[..., -1, -1])) if x.size else jnp.bool_(True)


def solve_triangular(x: Any, y: Any, upper: bool, unit: bool) -> Any:
    return lax.linalg.triangular_solve(x, y, left_side=True, lower=not upper, unit_diagonal=unit)


def matrix_exp(x: Any) -> Any:
    # JAX scales by a power of two too few, and its approximant's denominator is ill-conditioned near its limit
    if not x.size:
        return x
    norm = jnp.abs(x).sum(axis=-2).max(axis=-1, initial=0)
    times = jnp.clip(jnp.ceil(jnp.log2(norm / EXP_NORM)), 0, SQUARINGS)[..., None, None]
    scaled = jax.scipy.linalg.expm(x * jnp.exp2(-times).astype(x.dtype), max_squarings=1)

    def square(power: Any, step: Any) -> tuple[Any, None]:
        return jnp.where(step < times, power @ power, power), None

    return lax.scan(square, scaled, jnp.arange(SQUARINGS, dtype="int32"))[0]


def lu(x: Any) -> tuple[Any, ...]:
    factors, swaps, order = lax.linalg.lu(x)
    return factors, order.astype("int64"), swaps + 1


def eig(x: Any) -> tuple[Any, ...]:
    if not x.size:  # XLA's CPU compiler aborts the process
        dtype = complex_of(x.dtype)
        return jnp.zeros(x.shape[:-1], dtype), jnp.zeros(x.shape, dtype)
    return tuple(lax.linalg.eig(x, compute_left_eigenvectors=False, enable_eigvec_derivs=True))


def permutation(swaps: Any, size: int) -> Any:
    return lax.linalg.lu_pivots_to_permutation(swaps.astype("int32"), size).astype("int64")


OVERRIDES = {f.__name__: f for f in (cholesky, eig, lu, matrix_exp, permutation, solve_triangular)}
CHECKS = {"cholesky": definite}  # of ops whose check would else compute anew what XLA finds in the override
