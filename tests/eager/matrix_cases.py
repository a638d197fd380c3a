"""Calls of functions of matrices; see tests/eager/function_cases.py."""

from __future__ import annotations

from typing import Any


def definite(t: Any, x: Any) -> Any:
    """Positive definite matrices with distinct eigenvalues, made of any."""
    return x @ x.mT + t.diag(t.arange(1, x.shape[-1] + 1)).to(x.dtype)


CASES = {
    "linalg_inv": (((3, 3),), lambda t, x: t.linalg.inv(definite(t, x))),
    "linalg_det": (((2, 3, 3),), lambda t, x: t.linalg.det(x)),
    "linalg_slogdet": (((3, 3),), lambda t, x: t.linalg.slogdet(x).logabsdet),
    "logdet": (((3, 3),), lambda t, x: t.logdet(definite(t, x))),
    "linalg_solve": (((3, 3), (3,)), lambda t, x, y: t.linalg.solve(definite(t, x), y)),
    "linalg_solve_right": (((2, 3, 3), (4, 3)), lambda t, x, y: t.linalg.solve(definite(t, x), y, left=False)),
    "linalg_solve_triangular": (
        ((3, 3), (3, 2)), lambda t, x, y: t.linalg.solve_triangular(definite(t, x), y, upper=True)),
    "linalg_cholesky": (((3, 3),), lambda t, x: t.linalg.cholesky(definite(t, x))),
    "linalg_cholesky_upper": (((2, 3, 3),), lambda t, x: t.linalg.cholesky(definite(t, x), upper=True)),
    "cholesky_solve": (((3, 3), (3, 1)), lambda t, x, y: t.cholesky_solve(y, t.linalg.cholesky(definite(t, x)))),
    "cholesky_inverse": (((3, 3),), lambda t, x: t.cholesky_inverse(t.linalg.cholesky(definite(t, x)))),
    "linalg_qr": (((4, 2),), lambda t, x: t.cat([part.flatten() for part in t.linalg.qr(x)])),
    "linalg_qr_wide": (((2, 4),), lambda t, x: t.cat([part.flatten() for part in t.linalg.qr(x)])),
    "linalg_eigh": (((3, 3),), lambda t, x: t.linalg.eigh(definite(t, x)).eigenvectors.abs()),
    "linalg_eigvalsh": (((3, 3),), lambda t, x: t.linalg.eigvalsh(definite(t, x), UPLO="U")),
    "linalg_eigvals": (((3, 3),), lambda t, x: t.linalg.eigvals(definite(t, x)).real.sum()),
    "linalg_svdvals": (((2, 3),), lambda t, x: t.linalg.svdvals(x)),
    "linalg_svd": (((2, 3),), lambda t, x: t.linalg.svd(x, full_matrices=False).Vh.abs()),
    "linalg_pinv": (((4, 2),), lambda t, x: t.linalg.pinv(x)),
    "linalg_lstsq": (((4, 2), (4, 1)), lambda t, x, y: t.linalg.lstsq(x, y).solution),
    "linalg_lu": (((3, 3),), lambda t, x: t.cat([part.flatten() for part in t.linalg.lu(x)[1:]])),
    "linalg_lu_solve": (
        ((3, 3), (3, 2)), lambda t, x, y: t.linalg.lu_solve(*t.linalg.lu_factor(x), y, adjoint=True)),
    "lu_unpack": (((2, 4),), lambda t, x: t.lu_unpack(*t.linalg.lu_factor(x))[2]),
    "linalg_matrix_exp": (((3, 3),), lambda t, x: t.linalg.matrix_exp(x)),
    "linalg_matrix_power": (((3, 3),), lambda t, x: t.linalg.matrix_power(x, 5)),
    "linalg_multi_dot": (((2, 3), (3, 4), (4,)), lambda t, x, y, z: t.linalg.multi_dot([x, y, z])),
    "linalg_norm": (((3, 4),), lambda t, x: t.linalg.norm(x)),
    "linalg_norm_nuc": (((3, 4),), lambda t, x: t.linalg.norm(x, "nuc")),
    "linalg_norm_2": (((2, 3, 4),), lambda t, x: t.linalg.matrix_norm(x, 2, keepdim=True)),
    "linalg_norm_1": (((2, 3, 4),), lambda t, x: t.linalg.matrix_norm(x, -1, dim=(0, 2))),
    "linalg_vector_norm": (((3, 4),), lambda t, x: t.linalg.vector_norm(x, 3, dim=1)),
    "linalg_vector_norm_half": (((3, 4),), lambda t, x: t.linalg.vector_norm(x, 0.5, dim=0)),
    "linalg_vector_norm_negative": (((3, 4),), lambda t, x: t.linalg.vector_norm(x, -2.5, keepdim=True)),
    "linalg_vector_norm_zeros": (((3, 4),), lambda t, x: t.linalg.vector_norm(x * (x > 0), 1.5)),
    "linalg_vector_norm_complex": (((3, 4),), lambda t, x: t.linalg.vector_norm(t.complex(x, x + 1), 3, dim=1)),
    "norm_complex": (((3, 4),), lambda t, x: t.norm(t.complex(x, x + 1))),
    "linalg_norm_empty": (((3, 4),), lambda t, x: t.linalg.norm(x[:0], 1)),
    "linalg_eigh_upper": (
        ((3, 3),), lambda t, x: t.linalg.eigh(definite(t, x) + x.tril(-1), UPLO="U").eigenvectors.abs()),
    "linalg_pinv_hermitian": (((3, 3),), lambda t, x: t.linalg.pinv(definite(t, x), hermitian=True)),
    "linalg_cholesky_complex": (
        ((3, 3), (3, 3)), lambda t, x, y: t.linalg.cholesky(definite(t, x) + 0.1j * (y - y.mT), upper=True).imag),
    "cholesky_solve_upper": (
        ((3, 3), (3, 1)), lambda t, x, y: t.cholesky_solve(y, x.triu() + 3 * t.eye(3), upper=True)),
    "linalg_matrix_power_0": (((3, 3),), lambda t, x: t.linalg.matrix_power(x, 0)),
    "linalg_svd_empty": (((3, 3),), lambda t, x: t.linalg.svd(x[:0]).Vh),
    "linalg_lstsq_broadcast": (
        ((2, 4, 3), (2, 4)), lambda t, x, y: t.linalg.lstsq(x + t.eye(4, 3), y).solution),
    "linalg_det_1": (((2, 1, 1),), lambda t, x: t.linalg.det(x)),
    "linalg_cond": (((3, 3),), lambda t, x: t.linalg.cond(definite(t, x))),
    "linalg_cond_1": (((3, 3),), lambda t, x: t.linalg.cond(definite(t, x.detach()), 1)),
    "linalg_householder_product": (((3, 2), (2,)), lambda t, x, y: t.linalg.householder_product(x, y)),
    "linalg_tensorinv": (((2, 3, 6),), lambda t, x: t.linalg.tensorinv(x)),
    "linalg_tensorsolve": (((2, 3, 6), (2, 3)), lambda t, x, y: t.linalg.tensorsolve(x, y)),
    "linalg_vander": (((3,),), lambda t, x: t.linalg.vander(x, N=4)),
    "linalg_vecdot": (((2, 3), (2, 3)), lambda t, x, y: t.linalg.vecdot(x, y)),
    "linalg_cross": (((2, 3), (2, 3)), lambda t, x, y: t.linalg.cross(x, y)),
    "matrix_rank": (((3, 3),), lambda t, x: t.linalg.matrix_rank(x)),
}  # fmt: skip
