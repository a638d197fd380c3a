"""Which stubs there are, and what is in each."""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

import eager
from eager import nn, return_types
from eager.core.tensor import Tensor
from eager.nn.layer import NOT_KEPT, Layer
from eager.surface import names
from graphc.ops.operators import BINARY, COMPARISON, UNARY
from tests.stubs import signatures
from tests.stubs.forms import OPEN, Shown, forms, text
from tests.stubs.parameters import OPERAND
from tests.stubs.writing import Writer, functions_stub, made_there, put, summary

INDEX = "int | slice | EllipsisType | None | Tensor | ndarray | list[Any] | tuple[Any, ...]"
_OPERATOR = {
    **{f"__{name}__": f"__{name}__(other: {OPERAND}) -> Tensor" for name in BINARY},
    **{f"__r{name}__": f"__r{name}__(other: {OPERAND}) -> Tensor" for name in BINARY},
    **{f"__i{name}__": f"__i{name}__(other: {OPERAND}) -> Tensor" for name in BINARY},
    **{f"__{name}__": f"__{name}__(other: Any) -> Tensor" for name in COMPARISON},
    **{f"__{name}__": f"__{name}__() -> Tensor" for name in (*UNARY, "pos")},
    "__matmul__": "__matmul__(other: Tensor) -> Tensor",
    "__rmatmul__": "__rmatmul__(other: Tensor) -> Tensor",
    "__div__": f"__div__(other: {OPERAND}) -> Tensor",
    "__rdiv__": f"__rdiv__(other: {OPERAND}) -> Tensor",
    "__idiv__": f"__idiv__(other: {OPERAND}) -> Tensor",
}
_HIDDEN = frozenset(
    "__array_ufunc__ __array_function__ __array_priority__ __array_wrap__ __delitem__ __reduce__".split()
)


def torch_stub() -> str:
    """`import eager as torch`: every function, constant, class and module."""
    public = [name for name in dir(eager) if not name.startswith("__") or name == "__version__"]
    writer = Writer(eager.__doc__ or "", made_there(eager, public))
    for name in public:
        value = getattr(eager, name)
        if isinstance(value, type(eager.FloatTensor)):
            writer.constant(name, "type[Tensor]")
        else:
            put(writer, eager, name, (signatures.TORCH,))
    return writer.text()


def tensor_stub() -> str:
    """The methods that Tensor gets from the tables of names and the registry."""
    tree = ast.parse(inspect.getsource(Tensor))
    body = tree.body[0]
    assert isinstance(body, ast.ClassDef)
    own = {node.name for node in body.body if isinstance(node, ast.FunctionDef)}
    missing = names.MISSING_METHODS.split()
    public = [name for name in sorted(dir(Tensor)) if _is_method(name) and name not in (*own, *missing)]
    writer = Writer("What `eager.core.tensor.Tensor` gets from the tables of names and the op registry.", public)
    writer.line(f"Index = {INDEX}\n")
    writer.need(INDEX)
    writer.line("class TensorMethods:")
    operators = "\n".join(_OPERATOR[name] for name in public if name in _OPERATOR)
    for name in public:
        value = getattr(Tensor, name)
        if isinstance(value, property):
            result = inspect.signature(value.fget).return_annotation  # type: ignore[arg-type]
            writer.line("@property", 1)
            form = inspect.Signature(return_annotation="Any" if result in OPEN else result)
            writer.need(form.return_annotation)
            writer.line(text(name, form, writer.shadowed, True) + ":", 1)
            writer.docstring(inspect.getdoc(value) or "", 2)
            writer.lines.append("")
        elif isinstance(value, bool):
            writer.line(f"{name}: bool".replace("bool", "_bool" if "bool" in writer.shadowed else "bool"), 1)
            writer.need("bool")
        else:
            also = getattr(eager, name, None) if not name.startswith("__") else None
            writer.function(name, value, (operators, signatures.TENSOR, signatures.TORCH), 1, "out", also)
    return writer.text()


def _is_method(name: str) -> bool:
    if name.startswith("__"):
        given = name in _OPERATOR or name in {n for text in (*names.METHODS.values(),) for n in _names(text)}
        return (given and name not in _HIDDEN and name not in ("__repr__", "__init__")) or name == "__init__"
    return not name.startswith("_")


def _names(entries: str) -> list[str]:
    return [entry.partition("=")[0] for entry in entries.split()]


def module_stub(name: str, tables: tuple[str, ...] = ()) -> str:
    """A module of functions that its `dir` lists."""
    module = importlib.import_module(name)
    return functions_stub(module, [n for n in dir(module) if not n.startswith("_")], tables)


def facade_stub(name: str) -> str:
    """A package that loads its names when they are first used: each from where it is defined."""
    module = importlib.import_module(name)
    writer = Writer((module.__doc__ or "").strip(), ())
    for public in [n for n in dir(module) if not n.startswith("_")]:
        value = getattr(module, public)
        home = getattr(value, "__module__", name)
        if isinstance(value, ModuleType) or home == name:
            put(writer, module, public, (signatures.AUTOGRAD,))
        else:
            writer.again(public, home, getattr(value, "__name__", public))
    if hasattr(module, "__version__"):
        writer.constant("__version__", "str")
    return writer.text()


def results_stub() -> str:
    """The named tuples that functions with several results return."""
    writer = Writer(summary(return_types), ())
    writer.imports["typing"].add("NamedTuple")
    writer.need("Tensor")
    for name, fields in sorted(return_types.FIELDS.items()):
        writer.line(f"class {name}(NamedTuple):")
        for field in fields.split():
            several = (name, field) == ("histogramdd", "bin_edges")
            writer.line(f"{field}: {'tuple[Tensor, ...]' if several else 'Tensor'}", 1)
        writer.lines.append("")
    return writer.text()


def modules_stub() -> str:
    """The layers: those that only take arguments and compute are written out, others come from where they are."""
    public = nn.modules.__all__
    writer = Writer(summary(nn.modules), ())
    writer.need("Module", "Any")
    for name in sorted(public):
        layer = getattr(nn, name)
        if not issubclass(layer, Layer) or _extra_methods(layer):
            writer.again(name, layer.__module__)
            continue
        base = next((b.__name__ for b in layer.__mro__[1:] if b.__name__ in public), "Module")
        writer.line(f"class {name}({base}):")
        writer.docstring(inspect.getdoc(layer) or "", 1)
        found = forms(name, layer)[0]
        for p in found.parameters.values():
            if p.name not in NOT_KEPT and p.kind is not p.VAR_KEYWORD and p.kind is not p.VAR_POSITIONAL:
                writer.line(f"{p.name}: {p.annotation}", 1)
        made = inspect.getsource(layer.__init__)
        for name_of in [n for n in ("weight", "bias") if f"{n}=(" in made and "add_parameters" in made]:
            writer.line(f"{name_of}: Parameter", 1)
            writer.need("Parameter")
        _method(writer, "__init__", found.replace(return_annotation="None"))
        _method(writer, "forward", _forward_form(layer))
        writer.lines.append("")
    writer.line(f"__all__ = {sorted(public)!r}")
    return writer.text()


def _extra_methods(layer: type) -> list[str]:
    """The public methods of a layer beside those that every layer has."""
    usual = {*dir(Layer), "reset_parameters", "rank"}
    return [
        name for name in dir(layer) if not name.startswith("_") and name not in usual and callable(getattr(layer, name))
    ]


def _method(writer: Writer, name: str, form: inspect.Signature) -> None:
    writer.need(form.return_annotation, *(p.annotation for p in form.parameters.values()))
    writer.line(text(name, form, frozenset(), True) + ": ...", 1)


def _forward_form(layer: type[Layer]) -> inspect.Signature:
    runtime = inspect.signature(layer.forward)
    function: Any = getattr(layer, "_function", None)
    returns = runtime.return_annotation
    if returns in OPEN and function is not None:
        returns = inspect.signature(function).return_annotation
    known = {} if function is None else inspect.signature(function).parameters
    parameters = []
    for p in list(runtime.parameters.values())[1:]:
        annotation = p.annotation
        if annotation is p.empty:
            annotation = known[p.name].annotation if p.name in known else "Tensor"
        annotation = "Tensor" if annotation in OPEN and p.default is p.empty else annotation
        plain = p.default is p.empty or p.default is None or isinstance(p.default, (bool, int, float, str))
        parameters.append(p.replace(annotation=annotation, default=p.default if plain else Shown()))
    return inspect.Signature(
        parameters, return_annotation="Any" if returns in OPEN or not isinstance(returns, str) else returns
    )


_F = (signatures.FUNCTIONAL,)
STUBS: dict[str, Callable[[], str]] = {
    "eager/__init__.pyi": torch_stub,
    "eager/core/tensor_methods.pyi": tensor_stub,
    "eager/return_types.pyi": results_stub,
    "eager/nn/modules/__init__.pyi": modules_stub,
    "eager/nn/functional.pyi": partial(module_stub, "eager.nn.functional", _F),
    "eager/special.pyi": partial(module_stub, "eager.special"),
    "eager/fft.pyi": partial(module_stub, "eager.fft"),
    "eager/linalg/__init__.pyi": partial(module_stub, "eager.linalg", (signatures.LINALG,)),
    "eager/autograd/__init__.pyi": partial(facade_stub, "eager.autograd"),
    "eager/func/__init__.pyi": partial(facade_stub, "eager.func"),
    "eager/distributions/__init__.pyi": partial(facade_stub, "eager.distributions"),
    "eager/utils/__init__.pyi": partial(facade_stub, "eager.utils"),
    "graphc/__init__.pyi": partial(facade_stub, "graphc"),
    "compare/__init__.pyi": partial(facade_stub, "compare"),
}
