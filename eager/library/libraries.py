"""Operations that are declared by a schema, "(Tensor x, float y=2.0) -> Tensor", and get their functions one by one."""

from __future__ import annotations

import ast
import inspect
import re
import typing
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

from eager.autograd.custom_ops import NAME, CustomOpDef, definition, ops
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


KINDS = ("DEF", "IMPL", "FRAGMENT")
NO_KERNEL = (
    "Could not run '{}' with arguments from the 'CPU' backend. Remedy: torch.library.impl(\"{}\", \"cpu\") registers a "
    "function."
)
TWICE = (
    "Tried to register an operator ({}) with the same name and overload name multiple times. Each overload's schema "
    "should only be registered with a single call to def()."
)
# what a key says of the function: that it runs without gradients, has those of what it calls, or gives shapes
RUNS = ("CPU", "CompositeExplicitAutograd")
DIFFERENTIABLE = ("CompositeImplicitAutograd", "Autograd", "AutogradCPU")
SHAPES = ("Meta",)


class Library:
    """Operations of the namespace `ns`. As `torch.library.Library`.

    kind          "DEF" and "FRAGMENT" declare operations, "IMPL" gives functions for those of others
    dispatch_key  of `impl`, where it gets none

    ValueError for another kind, and for names of PyTorch's own ("prim").

    >>> import eager as torch
    >>> library = torch.library.Library("shop", "DEF")
    >>> name = library.define("twice(Tensor x) -> Tensor")
    >>> library.impl(name, lambda x: x * 2, "CPU")
    >>> torch.ops.shop.twice(torch.ones(2))
    tensor([2., 2.])
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = ""):
        if kind not in KINDS:
            raise ValueError(f"Unsupported kind: {kind}")
        if ns == "prim" or (ns == "aten" and kind != "IMPL"):
            raise ValueError(f"{ns} is a reserved namespace")
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Declare "name(Tensor x) -> Tensor". Returns the name. RuntimeError if it is declared, or for another form."""
        name, signature = signature_of(schema)
        if name in dir(getattr(ops, self.ns)):
            raise RuntimeError(TWICE.format(f"{self.ns}::{schema}"))

        def absent(*args: Any, **kwargs: Any) -> NoReturn:
            raise NotImplementedError(NO_KERNEL.format(*[f"{self.ns}::{name}"] * 2))

        CustomOpDef(f"{self.ns}::{name}", absent, signature)
        return name

    def impl(self, op_name: Any, fn: Callable[..., Any], dispatch_key: str = "", **options: Any) -> None:
        """Give the function of an operation for a key: "CPU", "Meta", "CompositeImplicitAutograd", ...

        Those of other devices are never called. RuntimeError for an operation that nobody has declared.
        """
        key = dispatch_key or self.dispatch_key or DIFFERENTIABLE[0]
        name = op_name._qualname if isinstance(op_name, CustomOpDef) else str(op_name)
        found = definition(name if "::" in name else f"{self.ns}::{name}")
        if key in RUNS:
            found.register_kernel("cpu", fn)
        elif key in DIFFERENTIABLE:
            found.register_composite(fn)
        elif key in SHAPES:
            found.register_fake(fn)


def define(qualname: str, schema: str, *, lib: Library | None = None, tags: Any = ()) -> None:
    """Declare the operation "namespace::name" by "(Tensor x) -> Tensor". As `torch.library.define`.

    ValueError for a name of another form, RuntimeError for another schema.
    """
    namespace, separator, name = qualname.partition("::")
    if not separator:
        raise ValueError(NAME.format(name=qualname))
    (lib or Library(namespace, "FRAGMENT")).define(name + schema, tags=tags)


def impl(
    qualname: Any, types: Any, func: Any = None, *, lib: Library | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]] | None:
    """Give the function of "namespace::name" for types of devices: "cpu", "default", ... As `torch.library.impl`.

    A decorator without `func`. The older form `impl(library, name, key)` is one, too. RuntimeError for an operation
    that nobody has declared.
    """
    if isinstance(qualname, Library):
        library, name, key = qualname, types, func or ""

        def older(fn: Callable[..., Any]) -> Callable[..., Any]:
            library.impl(name, fn, key)
            return fn

        return older
    found = definition(qualname)
    kinds: Iterable[str] = (types,) if isinstance(types, str) else types

    def register(fn: Callable[..., Any]) -> Callable[..., Any]:
        if {"default", "cpu", "CPU", *RUNS} & set(kinds):
            found.register_kernel("cpu", fn)
        return fn

    if func is None:
        return register
    register(func)
    return None
