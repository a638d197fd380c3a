"""The text of a sparse tensor, to the character PyTorch's."""

from __future__ import annotations

from typing import Any

from eager.core.dtypes import BY_NUMPY
from eager.core.interpreter import current_interpreter
from eager.core.sparse import Sparse
from eager.core.tensor import Tensor
from graphc.ops.dtypes import BOOL, INT64, complex_of, default_float

NAMES = {
    "sparse_coo": ("indices",), "sparse_csr": ("crow_indices", "col_indices"),
    "sparse_csc": ("ccol_indices", "row_indices"), "sparse_bsr": ("crow_indices", "col_indices"),
    "sparse_bsc": ("ccol_indices", "row_indices"),
}  # fmt: skip


def sparse_text(t: Tensor, array_text: Any, history: list[str], joined: Any) -> str:
    """What `repr(t)` shows. `array_text`, `history` and `joined` are what texts of strided tensors are made with."""
    data: Sparse = t._d
    prefix = "tensor("
    shown: list[str] = []
    for name, part in zip((*NAMES[data.layout], "values"), data.parts, strict=True):
        head = f"{name}=tensor("
        array = current_interpreter().values_shown(part) if not getattr(part._d, "captured", False) else None
        if array is None:
            shown.append(f"{head}<traced>)")
            continue
        text = array_text(array, len(prefix) + len(head))
        shown.append(f"{head}{text}" + (f", size={array.shape})" if not array.size else ")"))
    usual = (default_float(), complex_of(default_float()), INT64, BOOL)
    about = [f"size={data.shape}", f"nnz={data.parts[-2]._d.shape[-1]}"]
    if t._dtype() not in usual:
        about.append(f"dtype={BY_NUMPY[t._dtype()]}")
    about = [*about, f"layout=torch.{data.layout}", *history]
    if data.layout == "sparse_coo":
        first, second = shown
        return joined(f"{prefix}{first},\n       {second},\n       {about[0]}", about[1:], len(prefix))
    return joined(prefix + ",\n       ".join(shown), about, len(prefix))
