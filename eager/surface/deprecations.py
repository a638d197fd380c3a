"""Functions that PyTorch calls deprecated: it says so once, at their first call."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from eager.core.warned import warn_once
from eager.functional.checking import checking
from eager.surface.entries import found
from eager.surface.keywords import names_of

# public name -> PyTorch's warning
DEPRECATED = {
    "chain_matmul": "torch.chain_matmul is deprecated and will be removed in a future PyTorch release. Use "
    "torch.linalg.multi_dot instead, which accepts a list of two or more tensors rather than multiple parameters.",
    "qr": "torch.qr is deprecated in favor of torch.linalg.qr and will be removed in a future PyTorch release.\n"
    "The boolean parameter 'some' has been replaced with a string parameter 'mode'.\nQ, R = torch.qr(A, some)\n"
    "should be replaced with\nQ, R = torch.linalg.qr(A, 'reduced' if some else 'complete')",
    "cholesky": "torch.cholesky is deprecated in favor of torch.linalg.cholesky and will be removed in a future "
    "PyTorch release.\nL = torch.cholesky(A)\nshould be replaced with\nL = torch.linalg.cholesky(A)\nand\n"
    "U = torch.cholesky(A, upper=True)\nshould be replaced with\nU = torch.linalg.cholesky(A).mH\nThis transform will "
    "produce equivalent results for all valid (symmetric positive definite) inputs.",
    "lu": "torch.lu is deprecated in favor of torch.linalg.lu_factor / torch.linalg.lu_factor_ex and will be removed "
    "in a future PyTorch release.\nLU, pivots = torch.lu(A, compute_pivots)\nshould be replaced with\n"
    "LU, pivots = torch.linalg.lu_factor(A, compute_pivots)\nand\n"
    "LU, pivots, info = torch.lu(A, compute_pivots, get_infos=True)\nshould be replaced with\n"
    "LU, pivots, info = torch.linalg.lu_factor_ex(A, compute_pivots)",
    "triangular_solve": "torch.triangular_solve is deprecated in favor of torch.linalg.solve_triangularand will be "
    "removed in a future PyTorch release.\ntorch.linalg.solve_triangular has its arguments reversed and does not "
    "return a copy of one of the inputs.\nX = torch.triangular_solve(B, A).solution\nshould be replaced with\n"
    "X = torch.linalg.solve_triangular(A, B).",
    "storage": "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the only "
    "storage class. This should only matter to you if you are using storages directly.  To access UntypedStorage "
    "directly, use tensor.untyped_storage() instead of tensor.storage()",
    "set_default_tensor_type": "torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use "
    "torch.set_default_dtype() and torch.set_default_device() as alternatives.",
}


def offered(name: str, where: tuple[str, str], method: bool = False) -> Callable[..., Any]:
    """The public function or method `name`, which is at the entry `where` of the tables.

    It takes PyTorch's other names of arguments, says what PyTorch says of wrong arguments, and gives its warning.
    """
    function = found(*where)
    if method and name.startswith("__"):  # Python calls it
        return function
    # what is no function, such as a class, is neither
    others = names_of(name, function) if callable(function) and not isinstance(function, type) else {}
    taking = checking(name, function, method, others=others, home="" if method else "eager")
    if name not in DEPRECATED:
        return taking

    @functools.wraps(taking)
    def warning(*values: Any, **named: Any) -> Any:
        warn_once(DEPRECATED[name])
        return taking(*values, **named)

    return warning
