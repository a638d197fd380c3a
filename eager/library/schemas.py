"""Schemas, "(Tensor x, float y=2.0) -> Tensor": read as signatures, and written of functions."""

from __future__ import annotations

import ast
import inspect
import re
import typing
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

from eager.core.devices import device
from eager.core.dtypes import dtype
from eager.core.tensor import Tensor

ONLY_A_NAME = "Tried to parse a function schema but only the operator name was given"
# type of a parameter -> its name; each is also optional, and in lists
NAMES: dict[Any, str] = {
    Tensor: "Tensor", int: "SymInt", float: "float", bool: "bool", str: "str", int | float | bool: "Scalar",
    dtype: "ScalarType", device: "Device",
}  # fmt: skip
IN_LISTS = (Tensor, int, float, bool, int | float | bool)
_ARGUMENT = re.compile(r"(?P<type>.+?)\s+(?P<name>\w+)\s*(=\s*(?P<default>.+))?$")


def signature_of(schema: str) -> tuple[str, inspect.Signature]:
    """The name before "(", and the signature. RuntimeError for another form."""
    found = re.fullmatch(r"\s*([\w:.]*)\s*\((.*)\)\s*->\s*(.+)", schema, re.DOTALL)
    if found is None:
        raise RuntimeError(ONLY_A_NAME if "(" not in schema else f"cannot read the schema {schema!r}")
    parameters, kind = [], inspect.Parameter.POSITIONAL_OR_KEYWORD
    for text in filter(None, map(str.strip, re.split(r",(?![^\[(]*[\])])", found[2]))):
        if text == "*":
            kind = inspect.Parameter.KEYWORD_ONLY
            continue
        argument = _ARGUMENT.fullmatch(text)
        if argument is None:
            raise RuntimeError(f"cannot read the argument {text!r} of the schema {schema!r}")
        default = inspect.Parameter.empty if argument["default"] is None else _value(argument["default"])
        parameters.append(inspect.Parameter(argument["name"], kind, default=default))
    return found[1], inspect.Signature(parameters)


def _value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except ValueError:
        return text  # a name of PyTorch's own, as `contiguous_format`


def infer_schema(
    prototype_function: Callable[..., Any], /, *, mutates_args: str | Iterable[str], op_name: str | None = None,
    tags: Any = (),
) -> str:  # fmt: skip
    """The schema of a function with annotations. As `torch.library.infer_schema`.

    mutates_args: the names of what the function writes into, or "unknown": all tensors. ValueError for a parameter
    without an annotation, of another type, or with a default that no schema can say.

    >>> import eager as torch
    >>> def scaled(x: torch.Tensor, by: float = 2.0) -> torch.Tensor: ...
    >>> torch.library.infer_schema(scaled, mutates_args=())
    '(Tensor x, float by=2.0) -> Tensor'
    """
    signature = inspect.signature(prototype_function)
    types = typing.get_type_hints(prototype_function)

    def refuse(what: str) -> NoReturn:
        raise ValueError(f"infer_schema(func): {what} Got func with signature {signature})")

    written, named = [], False
    for k, (name, parameter) in enumerate(signature.parameters.items()):
        if parameter.kind is parameter.KEYWORD_ONLY and not named:
            written, named = [*written, "*"], True
        if name not in types:
            refuse(f"Parameter {name} must have a type annotation.")
        kind = _name(types[name])
        if kind is None:
            refuse(f"Parameter {name} has unsupported type {types[name]}. The valid types are: {NAMES.keys()}.")
        if kind.startswith("Tensor") and (mutates_args == "unknown" or name in mutates_args):
            kind = kind.replace("Tensor", f"Tensor(a{k}!)", 1)
        written.append(f"{kind} {name}{_default(parameter, refuse)}")
    for name in () if mutates_args == "unknown" else mutates_args:
        if name not in signature.parameters:
            refuse(f"{name} in mutates_args is no parameter.")
    return f"{op_name or ''}({', '.join(written)}) -> {_results(types.get('return'), refuse)}"


def _name(kind: Any) -> str | None:
    options = typing.get_args(kind)
    if kind in NAMES:
        return NAMES[kind]
    if type(None) in options:
        rest = typing.Union[tuple(x for x in options if x is not type(None))]  # noqa: UP007
        inner = _name(rest)
        return None if inner is None else f"{inner}?"
    if typing.get_origin(kind) in (list, Sequence) and options[0] in IN_LISTS:
        return f"{NAMES[options[0]]}[]"
    return None


def _default(parameter: inspect.Parameter, refuse: Callable[[str], NoReturn]) -> str:
    value = parameter.default
    if value is parameter.empty:
        return ""
    if value is not None and not isinstance(value, (int, float, bool, str, dtype, device)):
        refuse(f"Parameter {parameter.name} has an unsupported default value type {type(value)}.")
    return f'="{value}"' if isinstance(value, str) else f"={str(value).removeprefix('torch.')}"


def _results(kind: Any, refuse: Callable[[str], NoReturn]) -> str:
    if kind is None or kind is type(None):
        return "()"
    kinds = typing.get_args(kind) if typing.get_origin(kind) is tuple else (kind,)
    names = [_name(each) for each in kinds]
    if None in names:
        refuse(f"Return has unsupported type {kind}.")
    return str(names[0]) if len(names) == 1 else f"({', '.join(map(str, names))})"
