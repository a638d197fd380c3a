"""Linear algebra on matrices in the last two dims, with any number of batch dims before them. As `torch.linalg`."""

from __future__ import annotations

from eager.functional.checking import checking
from eager.linalg.errors import LinAlgError
from eager.linalg.factors import (
    cholesky,
    cholesky_ex,
    householder_product,
    ldl_factor,
    ldl_factor_ex,
    ldl_solve,
    lu,
    lu_factor,
    lu_factor_ex,
    lu_solve,
    qr,
)
from eager.linalg.norms import cond, matrix_norm, norm, vector_norm
from eager.linalg.products import cross, diagonal, matmul, matrix_exp, matrix_power, multi_dot, vander, vecdot
from eager.linalg.solving import (
    det,
    inv,
    inv_ex,
    lstsq,
    pinv,
    slogdet,
    solve,
    solve_ex,
    solve_triangular,
    tensorinv,
    tensorsolve,
)
from eager.linalg.spectra import eig, eigh, eigvals, eigvalsh, matrix_rank, svd, svdvals

__all__ = [
    "LinAlgError", "cholesky", "cholesky_ex", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh",
    "householder_product", "inv", "inv_ex", "ldl_factor", "ldl_factor_ex", "ldl_solve", "lstsq", "lu", "lu_factor",
    "lu_factor_ex", "lu_solve", "matmul", "matrix_exp", "matrix_norm", "matrix_power", "matrix_rank", "multi_dot",
    "norm", "pinv",
    "qr", "slogdet", "solve", "solve_ex", "solve_triangular", "svd", "svdvals", "tensorinv", "tensorsolve",
    "vander", "vecdot", "vector_norm",
]  # fmt: skip
globals().update({name: checking(f"linalg_{name}", globals()[name], home=__name__, written=False) for name in __all__})
