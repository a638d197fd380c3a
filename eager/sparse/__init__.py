"""Sparse tensors: COO, and the compressed layouts CSR, CSC, BSR and BSC. As `torch.sparse`.

A sparse tensor is a Tensor made of strided ones, of indices and of values, and an op on it is ops on these: so
gradients flow to the values, and compiled programs take sparse tensors among their arguments.
"""

from __future__ import annotations

from eager.sparse import forms as _forms  # noqa: F401  (what the engine does with sparse operands)
from eager.sparse.construction import from_scipy, to_scipy
from eager.sparse.invariants import check_sparse_tensor_invariants
from eager.sparse.products import addmm, mm, sampled_addmm, spdiags
from eager.sparse.reductions import log_softmax, softmax, sum

__all__ = [
    "addmm", "check_sparse_tensor_invariants", "from_scipy", "log_softmax", "mm", "sampled_addmm", "softmax", "spdiags",
    "sum", "to_scipy",
]  # fmt: skip
