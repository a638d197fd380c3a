"""The named tuples that functions with several results return. As `torch.return_types`."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

# the fields of each result type, by its name
FIELDS = {
    **dict.fromkeys("cummax cummin kthvalue max median min mode nanmedian sort topk".split(), "values indices"),
    "_lu_with_info": "LU pivots info",
    "aminmax": "min max",
    "frexp": "mantissa exponent",
    "geqrf": "a tau",
    "histogram": "hist bin_edges",
    "histogramdd": "hist bin_edges",
    "linalg_cholesky_ex": "L info",
    "linalg_eig": "eigenvalues eigenvectors",
    "linalg_eigh": "eigenvalues eigenvectors",
    "linalg_inv_ex": "inverse info",
    "linalg_ldl_factor": "LD pivots",
    "linalg_ldl_factor_ex": "LD pivots info",
    "linalg_lstsq": "solution residuals rank singular_values",
    "linalg_lu": "P L U",
    "linalg_lu_factor": "LU pivots",
    "linalg_lu_factor_ex": "LU pivots info",
    "linalg_qr": "Q R",
    "linalg_slogdet": "sign logabsdet",
    "linalg_solve_ex": "result info",
    "linalg_svd": "U S Vh",
    "lu_unpack": "P L U",
    "qr": "Q R",
    "slogdet": "sign logabsdet",
    "svd": "U S V",
    "triangular_solve": "solution cloned_coefficient",
}


def _show(self: Any) -> str:
    fields = ",\n".join(f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True))
    return f"torch.return_types.{type(self).__name__}(\n{fields})"


def _made(cls: Any, results: Any, *rest: Any) -> Any:
    """An instance of the results, given one by one or, as in PyTorch, in one sequence."""
    found, count = ((results, *rest) if rest else tuple(results)), len(cls._fields)
    if len(found) != count:
        raise TypeError(f"torch.return_types.{cls.__name__}() takes a {count}-sequence ({len(found)}-sequence given)")
    return tuple.__new__(cls, found)


def __getattr__(name: str) -> Any:
    if name not in FIELDS:
        raise AttributeError(f"module 'torch.return_types' has no attribute '{name}'")
    fields = namedtuple(name, FIELDS[name])  # type: ignore[misc]
    about = {"__slots__": (), "__new__": _made, "__repr__": _show, "__module__": "torch.return_types"}
    made = globals()[name] = type(name, (fields,), about)
    return made


def __dir__() -> list[str]:
    return sorted(FIELDS)
