"""The typed signatures of a function: its forms in the table of `signatures`, or what the function itself says."""

from __future__ import annotations

import ast
import inspect
import math
import re
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from inspect import Parameter, Signature
from typing import Any

import eager
from eager import return_types
from graphc.ops.spec import OPS
from tests.stubs import signatures
from tests.stubs.parameters import BY_NAME, OPERAND

OPEN = ("Any", Parameter.empty)
used: set[str] = set()  # the entries of the tables that were needed


class Shown:
    """A default value that has no short text."""

    def __repr__(self) -> str:
        return "..."


def parsed(text: str) -> tuple[str, Signature]:
    """The name and the signature of a line of the table."""
    line = f"def {text}: ...".replace("{", "").replace("}", "")
    found = ast.parse(line).body[0]
    assert isinstance(found, ast.FunctionDef)
    parameters, arguments = [], found.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + list(arguments.defaults)

    def add(node: ast.arg, kind: Any, default: ast.expr | None = None) -> None:
        value = (
            Parameter.empty if default is None else Shown() if default.__class__ is ast.Attribute else _literal(default)
        )
        annotation = Parameter.empty if node.annotation is None else ast.unparse(node.annotation)
        parameters.append(Parameter(node.arg, kind, default=value, annotation=annotation))

    for k, (node, default) in enumerate(zip(positional, defaults, strict=True)):
        first = k < len(arguments.posonlyargs)
        add(node, Parameter.POSITIONAL_ONLY if first else Parameter.POSITIONAL_OR_KEYWORD, default)
    if arguments.vararg:
        add(arguments.vararg, Parameter.VAR_POSITIONAL)
    for node, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        add(node, Parameter.KEYWORD_ONLY, default)
    if arguments.kwarg:
        add(arguments.kwarg, Parameter.VAR_KEYWORD)
    assert found.returns is not None
    return found.name, Signature(parameters, return_annotation=ast.unparse(found.returns))


def _literal(node: ast.expr) -> Any:
    return ast.literal_eval(node)


@cache
def table(text: str) -> dict[str, list[Signature]]:
    """The forms of each function in a table."""
    found: dict[str, list[Signature]] = defaultdict(list)
    for line in text.strip().splitlines():
        for name, value in signatures.MACROS.items():
            line = line.replace(f"{{{name}}}", value)
        for rank in ("1d", "2d", "3d") if "{rank}" in line else ("",):
            name, signature = parsed(line.replace("{rank}", rank))
            found[name].append(signature)
    return dict(found)


def forms(
    name: str, function: Callable[..., Any], tables: tuple[str, ...] = (), without: tuple[str, ...] = ()
) -> list[Signature]:
    """The typed signatures of `function`, public as `name`: of its parameters but those `without`.

    ValueError for a parameter whose type neither the function nor a table gives.
    """
    runtime = inspect.signature(function)
    runtime = _without(runtime, without)
    for text in tables:
        if name in table(text):
            found = [_without(form, without) for form in table(text)[name]]
            return [positional_where_unnamed(form, runtime) for form in found]
    return [typed(name, function, runtime)]


def _without(form: Signature, names: tuple[str, ...]) -> Signature:
    return form.replace(parameters=[p for p in form.parameters.values() if p.name not in names])


def positional_where_unnamed(form: Signature, runtime: Signature) -> Signature:
    """`form`, whose parameters are positional only as far as the function does not know them by name."""
    if any(p.kind is Parameter.VAR_KEYWORD for p in runtime.parameters.values()):
        return form
    parameters = list(form.parameters.values())
    known = {p.name for p in runtime.parameters.values() if p.kind is not Parameter.VAR_POSITIONAL}
    unnamed = [k for k, p in enumerate(parameters)
               if p.kind is Parameter.POSITIONAL_OR_KEYWORD and p.name not in known]  # fmt: skip
    for k in range(max(unnamed, default=-1) + 1):
        parameters[k] = parameters[k].replace(kind=Parameter.POSITIONAL_ONLY)
    return form.replace(parameters=parameters)


def typed(name: str, function: Callable[..., Any], runtime: Signature) -> Signature:
    """The signature of `function`, with types for what it leaves open."""
    parameters = []
    for p in runtime.parameters.values():
        if p.name.startswith("_"):
            continue
        annotation = p.annotation if isinstance(p.annotation, str) else OPEN[0]
        if annotation in OPEN:
            annotation = parameter_type(name, p.name, function)
        if p.default is None and annotation not in ("Any", "Device") and "None" not in annotation:
            annotation += " | None"
        default = p.default if p.default is Parameter.empty or _is_plain(p.default) else Shown()
        parameters.append(p.replace(annotation=annotation, default=default))
    returns = runtime.return_annotation
    if returns in OPEN or not isinstance(returns, str):
        returns = "None" if inspect.isclass(function) else result_type(name)
    return Signature(parameters, return_annotation=returns)


def parameter_type(name: str, parameter: str, function: Callable[..., Any]) -> str:
    """The type of a parameter of a function, from the tables."""
    if parameter in ("input", "other") and is_pointwise(name):
        return OPERAND if takes_number(function, parameter) else "Tensor"
    for key in (f"{name}.{parameter}", parameter):
        if key in BY_NAME:
            used.add(key)
            return BY_NAME[key]
    raise ValueError(f"{name}: no type for parameter '{parameter}': add it to tests/stubs/parameters.py")


def is_pointwise(name: str) -> bool:
    op = OPS.get(_op_name(name))
    return op is not None and op.pointwise


def _op_name(name: str) -> str:
    from eager.surface import names

    name = name.rstrip("_")
    found = names.ALIASES.get(name, name)
    return found if found in OPS else f"special_{found}"


def takes_number(function: Callable[..., Any], parameter: str) -> bool:
    """Whether a pointwise function of two operands takes a Python number as one of them."""
    if len([p for p in inspect.signature(function).parameters if p != "out"]) < 2:
        return False
    for x, number in ((eager.ones(1), 1.0), (eager.ones(1, dtype=eager.int64), 1)):
        try:
            function(*((number, x) if parameter == "input" else (x, number)))
            return True
        except (TypeError, AttributeError, NotImplementedError, RuntimeError):
            continue
    return False


def result_type(name: str) -> str:
    for place in (name, f"linalg_{name}"):
        if place in return_types.FIELDS:
            return f"return_types.{place}"
    if is_pointwise(name) or name in _TENSORS:
        return "Tensor"
    raise ValueError(f"{name}: no type of its result: add its forms to tests/stubs/signatures.py")


_TENSORS = frozenset(
    "gammaln expit psi gru_cell rnn_relu_cell rnn_tanh_cell addmv_ as_strided_ fill_ index_put_ zero_ resize_as_ "
    "detach_".split()
)


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, (bool, int, str)) or (isinstance(value, float) and math.isfinite(value))


def text(name: str, form: Signature, shadowed: frozenset[str], method: bool = False) -> str:
    """`def name(...) -> result`, without the colon. Names of types that mean something else there get an underscore."""
    parts, star, slash = ["self"] if method else [], False, False
    for p in form.parameters.values():
        if slash and p.kind is not Parameter.POSITIONAL_ONLY:
            parts.append("/")
        slash = p.kind is Parameter.POSITIONAL_ONLY
        if p.kind is Parameter.KEYWORD_ONLY and not star:
            star = True
            parts.append("*")
        stars = {Parameter.VAR_POSITIONAL: "*", Parameter.VAR_KEYWORD: "**"}.get(p.kind, "")
        star = star or bool(stars)
        default = "" if p.default is Parameter.empty else f" = {p.default!r}"
        parts.append(f"{stars}{p.name}: {spelled(p.annotation, shadowed)}{default}")
    if slash:
        parts.append("/")
    return f"def {name}({', '.join(parts)}) -> {spelled(form.return_annotation, shadowed)}"


def spelled(annotation: str, shadowed: frozenset[str]) -> str:
    """An annotation as it is to be written where `shadowed` names are other things."""
    annotation = annotation.replace("dtypes.", "").replace("np.ndarray", "ndarray")
    return re.sub(r"(?<![\w.])([A-Za-z]\w*)", lambda m: f"_{m[1]}" if m[1] in shadowed else m[1], annotation)
