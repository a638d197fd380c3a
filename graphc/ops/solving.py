"""Inverses, equations and exponentials of square matrices. Operands have the same batch dims."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from graphc.errors import LinAlgError
from graphc.ops import exact
from graphc.ops.aval import Aval
from graphc.ops.linalg import swap_last
from graphc.ops.matrices import FLOATING, columns, of_known, rows, square
from graphc.ops.rounding import ELIMINATES, Rounding, largest, norm
from graphc.ops.rules import accepting, torch_name
from graphc.ops.samples import Definite, Regular, Sample
from graphc.ops.spec import Check, Op, Rule, Trait, op
from graphc.ops.threads import small_alone

SINGULAR = (
    "linalg.inv: {batch}The diagonal element {at} is zero, the inversion could not be completed because the input "
    "matrix is singular."
)
UNSOLVABLE = "torch.linalg.solve: {batch}The solver failed because the input matrix is singular."


def _pivots_of(x: np.ndarray) -> np.ndarray:
    """The diagonals of U in x = P L U."""
    from scipy.linalg import lapack

    (getrf,) = lapack.get_lapack_funcs(("getrf",), (x,))
    flat = x.reshape(-1, *x.shape[-2:])
    return np.array([np.diagonal(getrf(m)[0]) for m in flat]).reshape(x.shape[:-1])


def zero_pivots(x: np.ndarray) -> np.ndarray:
    """The number, from 1, of the first pivot that is zero, 0 if none is; one number a matrix."""
    zero = _pivots_of(x) == 0 if x.size else np.zeros(x.shape[:-1], bool)
    return np.where(zero.any(-1), zero.argmax(-1) + 1 if x.shape[-1] else 0, 0).astype(np.int32)


def failure(message: str, info: np.ndarray) -> LinAlgError:
    """The error for the first matrix whose `info` is not 0."""
    first = int(np.flatnonzero(info)[0])
    batch = f"(Batch element {first}): " if info.ndim else ""
    return LinAlgError(message.format(batch=batch, at=int(info.ravel()[first])))


@small_alone("numpy")
@of_known
def _np_inv(x: np.ndarray, checked: bool, asked: str = "inv") -> np.ndarray:
    try:
        return np.linalg.inv(x)
    except np.linalg.LinAlgError:
        one = np.broadcast_to(np.eye(x.shape[-1], dtype=x.dtype), x.shape)
        return _eliminated(x, one, _DETAILED[asked] if checked else "")


@small_alone("numpy")
@of_known
def _np_solve(x: np.ndarray, y: np.ndarray, checked: bool, asked: str = "solve") -> np.ndarray:
    try:
        return np.linalg.solve(x, y)
    except np.linalg.LinAlgError:
        return _eliminated(x, y, _DETAILED[asked] if checked else "")


def _eliminated(x: np.ndarray, y: np.ndarray, message: str) -> np.ndarray:
    """Solutions where some pivots are 0: divided by it, unless there is a `message` to raise."""
    from scipy.linalg import lapack

    info = zero_pivots(x)
    if message and info.any():
        raise failure(message, info)
    result = np.empty_like(y)
    getrf, getrs = lapack.get_lapack_funcs(("getrf", "getrs"), (x, y))
    for at in np.ndindex(x.shape[:-2]):
        factors, swaps, _ = getrf(x[at])
        result[at] = getrs(factors, swaps, y[at])[0]
    return result


_DETAILED = {"inv": SINGULAR, "solve": UNSOLVABLE}
_MESSAGES = {
    "inv": "linalg.inv: The inversion could not be completed because the input matrix is singular.",
    "solve": UNSOLVABLE.format(batch=""),
}


def _regular(xp: Any, x: Any, *others: Any, checked: bool, asked: str) -> Any:
    return True if xp is np or not checked else xp.all(xp.linalg.slogdet(x)[0] != 0)  # NumPy's kernel raises by itself


OTHER_DTYPE = "{}: Expected A and B to have the same dtype, but found A of type {} and B of type {} instead"


def _solution(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    x, y = avals
    square(op, avals, params)
    if x.dtype != y.dtype:
        raise RuntimeError(OTHER_DTYPE.format(op.name, torch_name(x.dtype), torch_name(y.dtype)))
    if x.shape[:-2] != y.shape[:-2] or x.shape[-1] != y.shape[-2]:
        raise RuntimeError(f"{op.name}: Incompatible shapes of A and B for the equation AX = B")
    return y


def singular_message(asked: str) -> str:
    """What is said of a singular matrix to whoever `asked`, for its inverse ("inv") or for a solution ("solve")."""
    return _MESSAGES[asked]


_REGULAR = Check(_regular, LinAlgError, lambda params: singular_message(params["asked"]), asked="checked")


def _eliminations(avals: list[Aval], result: Aval, params: Mapping[str, Any]) -> int:
    """Of a factorization, and of substitutions for each column of the result."""
    n = result.shape[-2]
    return 2 * n * result.size + 2 * n * avals[0].size // 3


def _solve_left(F, g, r, input, checked, asked):
    return -(F.solve(swap_last(F, input), g, checked=checked, asked=asked) @ swap_last(F, r))


def _inv_vjp(F, g, r):
    t = swap_last(F, r)
    return -(t @ g @ t)


inv = op(
    "inv", "input", params={"checked": True, "asked": "inv"},
    impl=lambda xp, x, checked, asked: of_known(xp.linalg.inv)(x), numpy=_np_inv,
    rule=Rule(square, accepts=FLOATING), traits=Trait.HOLOMORPHIC, label="LinalgInvEx",
    rounding=ELIMINATES, ref=exact.inverse, symmetric=True, inverts=True, flops=_eliminations,
    band=lambda shape, params, x: tuple([0 if x[k] == 0 else shape[-1] - 1 for k in range(2)]),
    check=_REGULAR,
    samples=(Sample(Regular((3, 3)), checked=True), Sample(Regular((2, 2, 2)), checked=False, asked="solve")),
    vjp=dict(input=_inv_vjp),
)  # fmt: skip
solve = op(
    "solve", "input other", params={"checked": True, "asked": "solve"},
    impl=lambda xp, x, y, checked, asked: of_known(xp.linalg.solve)(x, y), numpy=_np_solve,
    rule=Rule(_solution, accepts=FLOATING), traits=Trait.HOLOMORPHIC, label="LinalgSolveEx",
    rounding=ELIMINATES, ref=exact.solution, flops=_eliminations,
    check=_REGULAR,
    samples=(Sample(Regular((3, 3)), (3, 2), checked=True),
             Sample(Regular((2, 2, 2)), (2, 2, 1), checked=False, asked="inv")),
    vjp=dict(input=_solve_left,
             other=lambda F, g, input, checked, asked: F.solve(swap_last(F, input), g, checked=checked, asked=asked)),
)  # fmt: skip


def _quadratic_aval(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    y = _solution(op, avals, params)
    return Aval((*y.shape[:-2], y.shape[-1]), y.dtype)


def _quadratic_vjp_input(F, g, input, other, checked, asked):
    x, z = (F.solve(a, other, checked=checked, asked=asked) for a in (input, swap_last(F, input)))
    return -(_in_columns(F, g) * z) @ swap_last(F, x)


def _quadratic_vjp_other(F, g, input, other, checked, asked):
    x, z = (F.solve(a, other, checked=checked, asked=asked) for a in (input, swap_last(F, input)))
    return _in_columns(F, g) * (x + z)


def _in_columns(F, g):
    return F.reshape(g, shape=(*g.shape[:-1], 1, g.shape[-1]))


quadratic = op(  # y^T x^-1 y for each column y: half of a factorization is enough where x is definite
    "quadratic", "input other", params={"checked": True, "asked": "solve"},
    impl=lambda xp, x, y, checked, asked: (of_known(xp.linalg.solve)(x, y) * y).sum(-2),
    numpy=lambda x, y, **params: (_np_solve(x, y, **params) * y).sum(-2),
    rule=Rule(_quadratic_aval, accepts=FLOATING), traits=Trait.HOLOMORPHIC,
    rounding=ELIMINATES, ref=exact.quadratic_forms,
    flops=lambda avals, result, params: avals[0].shape[-1] * (2 * avals[1].size + 2 * avals[0].size // 3),
    check=_REGULAR,
    samples=(Sample(Regular((3, 3)), (3, 2), checked=True),
             Sample(Regular((2, 2, 2)), (2, 2, 1), checked=False, asked="inv")),
    vjp=dict(input=_quadratic_vjp_input, other=_quadratic_vjp_other),
)  # fmt: skip


@small_alone("scipy")
def _np_solve_triangular(x, y, upper, unit):
    from scipy.linalg import lapack

    if x.shape[:-2] != y.shape[:-2] or x.shape[-2] != x.shape[-1] or x.shape[-1] != y.shape[-2]:
        raise ValueError(f"a system of shape {x.shape} and right sides of shape {y.shape}")
    if not y.size:
        return y.copy()
    (trtrs,) = lapack.get_lapack_funcs(("trtrs",), (x, y))
    if x.ndim == 2:
        return _triangular(trtrs, x, y, upper, unit)
    result = np.empty_like(y)
    for at in np.ndindex(x.shape[:-2]):
        result[at] = _triangular(trtrs, x[at], y[at], upper, unit)
    return result


def _triangular(trtrs, x, y, upper, unit):
    # LAPACK reads columns: what lies in rows is to it the transpose, and needs no copy
    turned = x.flags.c_contiguous
    found, info = trtrs(x.T if turned else x, y, lower=upper == turned, trans=int(turned), unitdiag=unit)
    return np.ascontiguousarray(found) if not info else _substituted(x, y, upper, unit)


def _substituted(x, y, upper, unit):
    # a zero on the diagonal, which LAPACK refuses to divide by
    result = y.copy()
    order = range(len(x))[::-1] if upper else range(len(x))
    for k in order:
        if not unit:
            result[k] /= x[k, k]
        rest = slice(None, k) if upper else slice(k + 1, None)
        result[rest] -= np.outer(x[rest, k], result[k])
    return result


def _triangular_vjp(F, g, r, input, upper, unit):
    d = -(F.solve_triangular(swap_last(F, input), g, upper=not upper, unit=unit) @ swap_last(F, r))
    return F.triu(d, diagonal=int(unit)) if upper else F.tril(d, diagonal=-int(unit))


solve_triangular = op(
    "solve_triangular", "input other", params={"upper": False, "unit": False}, impl=_np_solve_triangular,
    numpy=_np_solve_triangular,
    rule=Rule(_solution, accepts=accepting("fc", "\"triangular_solve_cpu\" not implemented for '{dtype}'")),
    traits=Trait.HOLOMORPHIC, label="LinalgSolveTriangular",
    rounding=ELIMINATES, ref=exact.triangular_solution,
    flops=lambda avals, result, params: result.shape[-2] * result.size,
    samples=(Sample(Definite((3, 3)), (3, 2), upper=True, unit=False),
             Sample(Definite((3, 3)), (3, 1), upper=False, unit=True),
             Sample(Definite((2, 2, 2)), (2, 2, 1), upper=False, unit=False)),
    vjp=dict(input=_triangular_vjp, other=lambda F, g, input, upper, unit: F.solve_triangular(
        swap_last(F, input), g, upper=not upper, unit=unit)),
)  # fmt: skip


EXP_NORM = 2.0  # the 1-norm beyond which SciPy 1.17 loses up to 4 digits, and JAX one (docs/findings.md)
SQUARINGS = 32  # beyond, all is 0 or infinite


@small_alone("scipy")
@small_alone("numpy")
@of_known
def _np_matrix_exp(x):
    from scipy.linalg import expm

    if not x.size:
        return x.copy()
    norm = np.abs(x).sum(axis=-2).max(axis=-1)
    with np.errstate(all="ignore"):
        times = np.nan_to_num(np.clip(np.ceil(np.log2(norm / EXP_NORM)), 0, SQUARINGS))[..., None, None]
        power = expm(x * np.exp2(-times)).astype(x.dtype, copy=False)
        for step in range(int(times.max())):
            power = np.where(step < times, power @ power, power)
    return power


def _ref_matrix_exp(x):
    if np.abs(x).sum(-1).max(initial=0) > 12:
        raise ValueError("too large for the series")
    total, term = np.zeros_like(x), np.broadcast_to(np.eye(x.shape[-1]), x.shape)
    for k in range(1, 120):
        total = total + term
        term = term @ x / k
    return total


def _matrix_exp_vjp(F, g, input):
    # the upper right block of exp([[x^T, g], [0, x^T]]): Mathias, "A Chain Rule for Matrix Functions", 1996
    t = swap_last(F, input)
    n = t.shape[-1]
    axis = len(t.shape) - 2
    upper = F.cat(t, g, axis=axis + 1)
    lower = F.cat(t * 0, t, axis=axis + 1)
    return columns(F, rows(F, F.matrix_exp(F.cat(upper, lower, axis=axis)), 0, n), n, 2 * n)


def _squared(r: np.ndarray, x: np.ndarray) -> np.ndarray:
    return largest(r, (-2, -1)) * (1 + np.abs(x).sum(axis=(-2, -1), keepdims=True))


matrix_exp = op(
    "matrix_exp", "input", impl=_np_matrix_exp, numpy=_np_matrix_exp, rule=Rule(square, accepts=FLOATING),
    traits=Trait.HOLOMORPHIC,
    label="LinalgMatrixExp", rounding=Rounding(terms=_squared, operand=norm), ref=_ref_matrix_exp,
    samples=(Sample((3, 3)), Sample((2, 2, 2))),
    vjp=dict(input=_matrix_exp_vjp),
)  # fmt: skip
