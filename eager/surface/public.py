"""PyTorch's public functions by name: from the tables of names, and the pointwise ops of the registry."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from eager.core.dtypes import type_name
from eager.core.tensor import Tensor
from eager.core.warned import warn_once
from eager.engine.language import E
from eager.functional.checking import checking
from eager.surface import names, operators
from graphc.ops import BUILT_IN


def _entries(table: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """(public name, module, attribute) of each entry."""
    for module, text in table.items():
        for entry in text.split():
            name, _, attribute = entry.partition("=")
            yield name, module, attribute or name


FUNCTIONS = {name: (m, a) for table in (names.BOTH, names.FUNCTIONS) for name, m, a in _entries(table)}
METHODS = {name: (m, a) for table in (names.BOTH, names.METHODS) for name, m, a in _entries(table)}
PROPERTIES = {name: (m, a) for name, m, a in _entries(names.PROPERTIES)}


def found(module: str, attribute: str) -> Any:
    """The object behind an entry: an attribute of the module, or an entry of its table METHODS."""
    loaded = importlib.import_module(f"eager.{module}")
    table = vars(loaded).get("METHODS", {})
    return table[attribute] if attribute in table else getattr(loaded, attribute)


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


_WITH_OUT = frozenset(names.OUT.split())


def named(name: str) -> Any:
    """torch.<name>. LookupError if there is none."""
    if name in FUNCTIONS:
        return _of_table(name)
    op = names.ALIASES.get(name, name)
    if op in operators.functions:
        if op != name:
            return checking(name, getattr(E, op), home="eager")
        return operators.public(op) if op in BUILT_IN else operators.functions[op]
    if name in names.IN_PLACE:
        return _in_place(name)
    raise LookupError(name)


def every_name() -> set[str]:
    """The names that `named` knows, now."""
    return {*operators.functions, *FUNCTIONS, *names.ALIASES, *names.IN_PLACE}


def is_fixed(name: str) -> bool:
    """Whether `named(name)` is the same for as long as the program runs: what users declare may be declared anew."""
    op = names.ALIASES.get(name, name)
    return op in BUILT_IN or op not in operators.functions


def _of_table(name: str) -> Any:
    """A function of the tables, with `out` if its entry says so."""
    function = offered(name, FUNCTIONS[name])
    if name in _WITH_OUT:
        from eager.functional.outputs import with_out

        return with_out(name, function)
    return function


def _in_place(name: str) -> Callable[..., Any]:
    """torch.<name>, the method of that name as a function."""
    from eager.functional.naming import signature_of

    def function(input: Tensor, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(input, Tensor):
            raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type_name(input)}")
        return getattr(input, name)(*args, **kwargs)

    function.__name__ = function.__qualname__ = name
    method = getattr(Tensor, name)
    function.__doc__ = f"`input.{name}(...)`. {method.__doc__} As `torch.{name}`."
    function.__signature__ = signature_of(method, "input")  # type: ignore[attr-defined]
    return checking(name, function, home="eager")
