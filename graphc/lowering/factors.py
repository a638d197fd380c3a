"""One factorization of a square matrix for all that a program asks of its inverse and its determinant.

JAX's own functions would each factorize, and always by elimination. Here a matrix that is symmetric is tried by
Cholesky's factorization first, which takes half the time and fails unless it is positive definite; whether it is
symmetric is known from the graph, or tested: a first row that is not the first column says no at once.

    A^T[order] = L U, in `packed`: L below the diagonal, with ones on it, U above;    A = C C^T, where it is `halved`

LAPACK reads columns, to which a matrix that lies in rows is its transpose: A^T is what it is given, so that nothing is
copied; of few rows, A itself. Which of the two it was is asked where factors are used, unless it is known: a matrix
that its user has assumed to be positive definite is factorized in one way only, and that this succeeds is the check
of what was assumed.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from graphc.facts.known import DEFINITE, Facts
from graphc.ir.graph import Node
from graphc.ir.matrices import transposes
from graphc.ops import OPS, matrices
from graphc.ops.assumptions import KINDS
from graphc.ops.determinants import by_singular_values
from graphc.ops.dtypes import is_half

LEAST = 4  # rows of a matrix: JAX has formulas for determinants of fewer
# rows: with fewer, Cholesky's factorization saves less than asking whether it failed takes; and before that, where it
# is not known, whether a matrix is symmetric
FEWEST, ASKED = 20, 64
_SOLVE, _INV, _SLOGDET, _DET, _COFACTOR, _QUADRATIC = FACTORED = tuple(
    [OPS[name] for name in ("solve", "inv", "slogdet", "det", "cofactor", "quadratic")]
)
BY_COLUMNS = (
    *FACTORED,
    *[OPS[name] for name in ("solve_triangular", "cholesky", "qr", "eigh", "svd")],
)  # what LAPACK does


def _base(id: int, nodes: Mapping[int, Node]) -> tuple[int, bool]:
    """The matrix that a node is as it is, or is the transpose of; and whether it is that."""
    turned = False
    while nodes[id].op.passes or transposes(nodes[id]):
        turned ^= transposes(nodes[id])
        id = nodes[id].inputs[0]
    return id, turned


def _is_square(x: Node) -> bool:
    sizes = x.shape[-2:]
    whole = all(type(n) is int for n in x.shape)
    return whole and len(sizes) == 2 and sizes[0] >= LEAST and 0 not in x.shape and not is_half(x.dtype)


def matrix_of(node: Node, nodes: Mapping[int, Node]) -> tuple[int, bool] | None:
    """The matrix to factorize for a node, and whether the node is about its transpose; None for other nodes."""
    if node.op not in FACTORED or not _is_square(nodes[node.inputs[0]]):
        return None
    return _base(node.inputs[0], nodes)


def promised(node: Node, nodes: Mapping[int, Node]) -> int | None:
    """The matrix to factorize for the check of a node, which is that the matrix is definite; None for other nodes."""
    claims = node.op.claims is not None and node.op.passes and node.op.claims(node.params, 0)
    return _base(node.id, nodes)[0] if claims and DEFINITE in claims and _is_square(node) else None


def known_of(id: int, nodes: Mapping[int, Node]) -> str:
    """What is known of a matrix: that it is "definite", as somebody checks, "symmetric" but for rounding, or ""."""
    alike = [n for n in nodes.values() if n.op.passes and _base(n.id, nodes)[0] == id]
    if any(promised(n, nodes) is not None for n in alike):
        return "definite"
    facts = Facts(nodes)
    return (
        "symmetric" if any(nodes[k].aval.ndim == 2 and facts.symmetric(k) for k in (id, *[n.id for n in alike])) else ""
    )


def use(node: Node, factors: str, turned: bool, names: Mapping[int, str]) -> str:
    """Python source for a node that needs these factors."""
    if node.op is _SOLVE:
        return f"ops.solve_factored({factors}, {names[node.inputs[1]]}, turned={turned})"
    if node.op is _QUADRATIC:
        return f"ops.quadratic_forms_of_factors({factors}, {names[node.inputs[1]]})"
    if node.op is _INV:
        return f"ops.invert_factored({factors}, turned={turned})"
    if node.op is _COFACTOR:
        return f"ops.cofactors_of_factors({factors}, {names[node.inputs[0]]}, turned={turned})"
    return f"ops.{'logs' if node.op is _SLOGDET else 'determinant'}_of_factors({factors})"


class Factors(NamedTuple):
    """See above.

    parity   0 or 1, that of `order`
    halved   True, False, or which of the two when the program runs
    """

    packed: Any
    order: Any
    parity: Any
    halved: Any


def _turned(x: Any) -> Any:
    return jnp.swapaxes(x, -1, -2)


def eliminate(x: Any) -> Factors:
    """The factors of square matrices by elimination, which passes over nan: a matrix that has one is all nan before."""
    x = matrices.nan_unless(matrices.known(x), x)
    factors, swaps, order = lax.linalg.lu(_turned(x) if _by_columns(x.shape[-1]) else x)
    parity = (swaps != jnp.arange(x.shape[-1], dtype=swaps.dtype)).sum(axis=-1, dtype=np.int32) % 2
    return Factors(factors, order, parity, False)


def _by_columns(n: int) -> bool:
    """Whether the factors are those of A^T. Of few rows a copy is cheap, and XLA runs what each step waits for the one
    before in one thread: rows are put in order before they are substituted, not beside that."""
    return n >= ASKED


def factorize(x: Any, known: str) -> Factors:
    """The factors of square matrices. known: see `known_of`"""
    n = x.shape[-1]

    def unordered(x: Any) -> tuple[Any, Any]:
        return jnp.broadcast_to(jnp.arange(n, dtype=np.int32), x.shape[:-1]), jnp.zeros(x.shape[:-2], np.int32)

    def halve(x: Any) -> Factors:
        return Factors(jnp.linalg.cholesky(_turned(x), symmetrize_input=False), *unordered(x), True)

    def attempt(x: Any) -> Factors:
        found = _decided(halve(x))
        failed = jnp.isnan(found.packed[..., -1]).any()  # nan anywhere reaches the last element
        return lax.cond(failed, lambda x, found: _decided(eliminate(x)), lambda x, found: found, x, found)

    if x.dtype.kind == "c" or (n < (FEWEST if known else ASKED) and known != "definite"):
        return eliminate(x)
    if known == "definite":
        return halve(x)
    found = attempt(x) if known else lax.cond(_is_mirrored(x), attempt, lambda x: _decided(eliminate(x)), x)
    return found._replace(packed=_square(found.packed))


def _decided(factors: Factors) -> Factors:
    return factors._replace(packed=_flat(factors.packed), halved=jnp.bool_(factors.halved))


def _flat(packed: Any) -> Any:
    """Matrices as branches had better take and give them: as they lie in memory. Else XLA would lay them out anew."""
    return _turned(packed).reshape((*packed.shape[:-2], -1))


def _square(flat: Any) -> Any:
    n = math.isqrt(flat.shape[-1])
    return _turned(flat.reshape((*flat.shape[:-1], n, n)))


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


def _substitute(packed: Any, y: Any, **how: Any) -> Any:
    return lax.linalg.triangular_solve(packed, y, left_side=True, **how)


def _eliminated(packed: Any, order: Any, y: Any, turned: bool) -> Any:
    if turned == _by_columns(packed.shape[-1]):
        return _substitute(packed, _substitute(packed, _rows(y, order), lower=True, unit_diagonal=True), lower=False)
    y = _substitute(packed, y, lower=False, transpose_a=True)
    y = _substitute(packed, y, lower=True, unit_diagonal=True, transpose_a=True)
    return _put(order, y)


def _either(factors: Factors, y: Any, by_halves: Callable[..., Any], by_elimination: Callable[..., Any]) -> Any:
    """What f(packed, order, y) gives, of the two that is for these factors."""
    packed, order, _, halved = factors
    if isinstance(halved, bool):
        return (by_halves if halved else by_elimination)(packed, order, y)
    branches = [lambda packed, *others, by=by: by(_square(packed), *others) for by in (by_halves, by_elimination)]
    return lax.cond(halved, *branches, _flat(packed), order, y)


def solve_factored(factors: Factors, y: Any, turned: bool) -> Any:
    """A^-1 y, or A^-T y."""

    def by_halves(packed: Any, order: Any, y: Any) -> Any:
        return _substitute(packed, _substitute(packed, y, lower=True), lower=True, transpose_a=True)

    return _either(factors, y, by_halves, functools.partial(_eliminated, turned=turned))


def quadratic_forms_of_factors(factors: Factors, y: Any) -> Any:
    """y^T A^-1 y, for each column: |C^-1 y|^2."""

    def by_halves(packed: Any, order: Any, y: Any) -> Any:
        return jnp.square(_substitute(packed, y, lower=True)).sum(-2)

    def by_elimination(packed: Any, order: Any, y: Any) -> Any:
        return (_eliminated(packed, order, y, turned=False) * y).sum(-2)

    return _either(factors, y, by_halves, by_elimination)


@functools.partial(jnp.vectorize, signature="(n),(n,k)->(n,k)")
def _put(order: Any, y: Any) -> Any:
    """Row i of `y` in place of row order[i]: the inverse of `_rows`."""
    return y.at[order].set(y, unique_indices=True, mode="promise_in_bounds")


def _rows(y: Any, order: Any) -> Any:
    return jnp.take_along_axis(y, order[..., None], axis=-2, mode="promise_in_bounds")


def invert_factored(factors: Factors, turned: bool) -> Any:
    """A^-1, or A^-T."""
    one = jnp.eye(factors.packed.shape[-1], dtype=factors.packed.dtype)
    return solve_factored(factors, jnp.broadcast_to(one, factors.packed.shape), turned)


def _pivots(factors: Factors) -> Any:
    """Their roots, of what is halved."""
    return jnp.diagonal(factors.packed, axis1=-2, axis2=-1)


def logs_of_factors(factors: Factors) -> tuple[Any, Any]:
    """The sign, or phase, of the determinant, and the logarithm of its size."""
    d = _pivots(factors)
    singular = (d == 0).any(axis=-1)  # also where other pivots are infinite, or nan of those
    logs = jnp.where(singular, -np.inf, jnp.log(jnp.abs(d)).sum(axis=-1))
    sign = jnp.sign(d).prod(axis=-1) * _sign(factors).astype(d.dtype)
    return jnp.where(singular, 0, sign), jnp.where(factors.halved, 2 * logs, logs)


def determinant_of_factors(factors: Factors) -> Any:
    """The determinant."""
    pivots = _pivots(factors)
    d = jnp.where((pivots == 0).any(axis=-1), 0, pivots.prod(axis=-1))
    return jnp.where(factors.halved, d * d, d) * _sign(factors).astype(d.dtype)


def cofactors_of_factors(factors: Factors, x: Any, turned: bool) -> Any:
    """det(A) A^-T, or det(A) A^-1, which is asked as that of `x`: in another way of matrices near singular ones."""
    inverse = invert_factored(factors, turned=not turned)
    norms = [jnp.linalg.norm(each, axis=(-2, -1)) for each in (x, inverse)]
    plain = (norms[0] * norms[1] < x.shape[-1] * np.finfo(x.dtype).eps ** -0.5).all()  # half of the digits are right
    found = determinant_of_factors(factors)[..., None, None] * inverse
    return lax.cond(plain, lambda x, found: found, lambda x, _: by_singular_values(x), x, found)


def _sign(factors: Factors) -> Any:
    return 1 - 2 * factors.parity


def regular_factors(factors: Factors) -> Any:
    """Whether no matrix is singular."""
    return (_pivots(factors) != 0).all()


def definite_factors(factors: Factors, x: Any) -> Any:
    """Whether matrices, whose factors these are, are symmetric but for rounding, and positive definite."""
    return jnp.isfinite(_pivots(factors)[..., -1]).all() & KINDS["symmetric"].holds(jnp, x).all()


KERNELS = {
    f.__name__: f for f in (
        factorize, solve_factored, invert_factored, logs_of_factors, determinant_of_factors, regular_factors,
        definite_factors, cofactors_of_factors, quadratic_forms_of_factors,
    )
}  # fmt: skip
