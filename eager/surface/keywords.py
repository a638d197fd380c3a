"""Other names that PyTorch takes for keyword arguments: NumPy's for dims, and those of overloads.

A function that is called by position alone passes through at the cost of one call.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from eager.functional.checking import raise_better, strictly

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


def with_other_names(name: str, function: Callable[..., Any], method: bool = False) -> Callable[..., Any]:
    """`function`, called by the other names of its parameters, too; itself if they have none.

    Raises TypeError, as Python does, for a parameter that is given by two names.
    """
    if not callable(function) or isinstance(function, type) or not names_of(name, function):
        return function
    return _taking(name, function if method else strictly(name, function), method)


@functools.cache
def _taking(name: str, function: Callable[..., Any], method: bool) -> Callable[..., Any]:
    others = names_of(name, function)

    @functools.wraps(function)
    def taking(*values: Any, **named: Any) -> Any:
        try:
            return function(*values, **named) if not named else _renamed(name, function, others, values, named)
        except Exception as error:
            return raise_better(error, name, function, values, named, method)

    vars(taking)["other_names"] = others
    return taking


def _renamed(name: str, function: Callable[..., Any], others: Mapping[str, str], values: tuple[Any, ...],
             named: dict[str, Any]) -> Any:  # fmt: skip
    for other in others.keys() & named.keys():
        own = others[other]
        if own == "*":
            values += (named.pop(other),)
        elif own in named:
            raise TypeError(f"{name}() got multiple values for argument '{own}'")
        else:
            named[own] = named.pop(other)
    return function(*values, **named)
