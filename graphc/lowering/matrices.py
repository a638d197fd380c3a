"""JAX kernels of the ops in `graphc.ops.solving` and `graphc.ops.factorizations` that NumPy leaves to SciPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import jax.scipy.linalg
import numpy as np
from jax import lax

from graphc.lowering.factors import Factors, cofactors_of_factors, determinant_of_factors, eliminate, logs_of_factors
from graphc.ops.determinants import by_singular_values
from graphc.ops.dtypes import complex_of
from graphc.ops.matrices import half_sum, of_known
from graphc.ops.solving import EXP_NORM, SQUARINGS

FEW = 3  # rows of a matrix, up to which JAX has determinants without elimination
SCALED = 30  # binary exponents of the largest element beyond which a matrix is scaled


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


@of_known
def matrix_exp(x: Any) -> Any:
    # JAX scales by a power of two too few, and its approximant's denominator is ill-conditioned near its limit
    if not x.size:
        return x
    if x.shape[-1] == 1:
        return jnp.exp(x)
    norm = jnp.abs(x).sum(axis=-2).max(axis=-1, initial=0)
    times = jnp.clip(jnp.ceil(jnp.log2(norm / EXP_NORM)), 0, SQUARINGS)[..., None, None]
    scaled = jax.scipy.linalg.expm(x * jnp.exp2(-times).astype(x.dtype), max_squarings=1)

    def square(power: Any, step: Any) -> tuple[Any, None]:
        return jnp.where(step < times, power @ power, power), None

    return lax.scan(square, scaled, jnp.arange(SQUARINGS, dtype="int32"))[0]


@of_known
def lu(x: Any) -> tuple[Any, ...]:
    factors, swaps, order = lax.linalg.lu(x)
    return factors, order.astype("int64"), swaps + 1


def eig(x: Any) -> tuple[Any, ...]:
    if not x.size:  # XLA's CPU compiler aborts the process
        dtype = complex_of(x.dtype)
        return jnp.zeros(x.shape[:-1], dtype), jnp.zeros(x.shape, dtype)
    # LAPACK scales large and small matrices itself; SciPy's, which XLA calls, forgets that in the eigenvalues
    _, exponent = jnp.frexp(jnp.maximum(jnp.abs(x.real), jnp.abs(x.imag)).max(axis=(-2, -1), keepdims=True))
    scale = jnp.ldexp(jnp.ones((), x.real.dtype), jnp.where(jnp.abs(exponent) > SCALED, exponent, 0))
    values, vectors = lax.linalg.eig(x / scale, compute_left_eigenvectors=False, enable_eigvec_derivs=True)
    return values * scale[..., 0], vectors


def _unless_finite(found: Any, asked: Any, x: Any, of_factors: Callable[[Factors], Any]) -> Any:
    # JAX's sums of products of a few elements overflow where elimination does not, and make nan of infinities. It is
    # of the matrix as it is, as NumPy has it: of its transpose other pivots may overflow
    def by_elimination(x: Any, found: Any) -> Any:
        return of_factors(eliminate(jnp.swapaxes(x, -1, -2)))

    if x.shape[-1] > FEW or not x.size:
        return found
    return lax.cond(jnp.isfinite(asked).all(), lambda x, found: found, by_elimination, x, found)


@of_known
def slogdet(x: Any) -> tuple[Any, ...]:
    found = jnp.linalg.slogdet(x)
    sign, logs = _unless_finite(tuple(found), found[1], x, logs_of_factors)
    return jnp.where(jnp.isnan(logs), np.nan, jnp.where(sign == 0, 0, sign)).astype(sign.dtype), logs


@of_known
def det(x: Any) -> Any:
    found = jnp.linalg.det(x)
    return _unless_finite(found, found, x, determinant_of_factors)


def cofactor(x: Any) -> Any:
    if x.shape[-1] < 2 or not x.size:
        return by_singular_values(x)
    return cofactors_of_factors(eliminate(jnp.swapaxes(x, -1, -2)), x, turned=True)  # the factors that `det` has


def regular(x: Any, *others: Any, checked: bool, asked: str) -> Any:
    return jnp.all(slogdet(x)[0] != 0) if checked else True


def permutation(swaps: Any, size: int) -> Any:
    return lax.linalg.lu_pivots_to_permutation(swaps.astype("int32"), size).astype("int64")


OVERRIDES = {
    f.__name__: f for f in (cholesky, cofactor, det, eig, lu, matrix_exp, permutation, slogdet, solve_triangular)
}
CHECKS = {"cholesky": definite, "inv": regular, "solve": regular}  # by what the overrides compute
