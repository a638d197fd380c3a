"""Other names that PyTorch takes for keyword arguments: NumPy's for dims, and those of overloads."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

NUMPY = {"axis": "dim", "keepdims": "keepdim"}
# public name -> other name=the parameter's name here ("*": the value is what is given by position)
OTHERS = {
    **dict.fromkeys(("swapaxes", "swapaxes_"), "axis0=dim0 axis1=dim1"),
    **dict.fromkeys(("det", "inverse", "matrix_exp", "matrix_power"), "input=A"),
    **dict.fromkeys(("hsplit", "vsplit", "dsplit"), "sections=* indices=*"),
    "tensor_split": "sections=indices_or_sections indices=indices_or_sections "
    "tensor_indices_or_sections=indices_or_sections",
    "split": "split_size_or_sections=split_size",
    "unsafe_split": "tensor=input split_size=split_size_or_sections",
    "cholesky_inverse": "input=L",
    "cholesky_solve": "input=B input2=L",
    "lu_solve": "input=b",
    "triangular_solve": "input=b",
    "orgqr": "input=A input2=tau",
    "ormqr": "input2=tau input3=other",
    "smm": "mat2=mat",
    "isin": "element=elements test_element=test_elements",
    "get_device": "input=self",
    "is_same_size": "input=self",
    "resize_as_sparse_": "input=self",
    "searchsorted": "values=input self=input",
    **dict.fromkeys(("grid_sampler", "grid_sampler_2d", "grid_sampler_3d"), "grid=grid_"),
    **dict.fromkeys(("sum_to_size", "view_copy"), "size=*"),
}


def names_of(name: str, function: Callable[..., Any]) -> dict[str, str]:
    """Other name -> the parameter of `function`, the public function or method `name`."""
    known = {n for n, p in inspect.signature(function).parameters.items() if p.kind is not p.VAR_POSITIONAL}
    found = {other: own for other, own in NUMPY.items() if own in known and other not in known}
    found |= dict(entry.split("=") for entry in OTHERS.get(name, "").split())
    return {other: own for other, own in found.items() if other not in known}
