"""Python objects as source that stands by itself: functions with everything that they refer to, by value.

A function's source is taken from its file. Each name in it that is bound outside (a global, a variable of an
enclosing function, a default) is looked up now, and what it stands for is written too: other functions and classes
from their sources, numbers and arrays by value, modules and what they offer as imports. Where the name does not stand
for that in the new file, the function is made by another one that has it as a parameter:

    def _with_fill(np, table):
        def fill(x):
            return np.where(x, table["double"], 0)
        return fill
    fill = _with_fill(numpy, table_2)
"""

from __future__ import annotations

import ast
import base64
import builtins
import functools
import inspect
import itertools
import math
import sys
import textwrap
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import CellType, FunctionType, ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.linalg
import jax.scipy.special
import numpy as np
import scipy.special
from jax import lax

from graphc.capture.state.bytecode import ATTRIBUTE, GLOBAL, MODULE, all_codes, reads_of
from graphc.errors import GraphError
from graphc.ops import Literal

OURS = ("graphc", "eager")  # packages whose modules are written out instead of imported
# modules with short names, and the statements that give them these
ALIASES = {"numpy": "np", "jax.numpy": "jnp", "jax.lax": "lax"}
STATEMENTS = {"np": "import numpy as np", "jnp": "import jax.numpy as jnp", "lax": "from jax import lax"}
# where functions and classes without source are looked for
_OFFERING: tuple[ModuleType, ...] = (
    builtins, math, itertools, functools, np, np.linalg, np.fft, jnp, jnp.linalg, jnp.fft, lax, lax.linalg, jax,
    jax.scipy.special, jax.scipy.linalg, scipy.special,
)  # fmt: skip
INLINE = 16  # elements of arrays that are written as numbers

NOT_WRITABLE = (
    "{what} cannot be written as source that stands by itself: {why}.\n"
    "Remedy: give the op a kernel that is a function in a file, and that refers to functions, numbers and arrays."
)


def _ours(module: str | None) -> bool:
    return (module or "").partition(".")[0] in OURS


# the attributes that are taken of a value, one after the other
_Way = tuple[str, ...]


class Bundle:
    """Source under construction.

    imports      the import statements
    definitions  the statements that define what `name_of` was asked for, dependencies first
    """

    def __init__(self, reserved: tuple[str, ...] = ()):
        self.imports: dict[str, None] = {}
        self.definitions: list[str] = []
        self._taken = {*reserved, *ALIASES.values(), *dir(builtins)}
        self._known: dict[int, str] = {}
        self._kept: list[Any] = []  # what ids refer to must stay
        self._begun: set[str] = set()  # what has a name, and no definition yet

    def unique(self, wanted: str) -> str:
        """A name close to `wanted` that nothing else has."""
        stem = "".join(c if c.isalnum() else "_" for c in wanted) or "value"
        name, number = stem, 1
        while name in self._taken:
            number += 1
            name = f"{stem}_{number}"
        self._taken.add(name)
        return name

    def name_of(self, value: Any, hint: str) -> str:
        """An expression for `value`; its definition is written if it needs one, under a name like `hint`.

        Raises GraphError for what has no source.
        """
        if isinstance(value, ModuleType):
            return self._module(value)
        atom = _atom(value)
        if atom is not None:
            return atom
        if id(value) in self._known:
            return self._known[id(value)]
        self._kept.append(value)
        offered = self._offered(value)
        if offered is None:
            return self._define(value, hint)
        self._known[id(value)] = offered
        return offered

    def _module(self, module: ModuleType) -> str:
        path = module.__name__
        if _ours(path):
            raise GraphError(NOT_WRITABLE.format(what=path, why="a module of this project, as a value"))
        name = ALIASES.get(path, path)
        self.imports[STATEMENTS.get(name, f"import {path}")] = None
        self._taken.add(path.partition(".")[0])
        return name

    def _offered(self, value: Any) -> str | None:
        """An expression for a function or class of another package."""
        name, owner = getattr(value, "__name__", None), getattr(value, "__self__", None)
        if isinstance(owner, np.ufunc):
            return f"{self._offered(owner)}.{name}"
        if not isinstance(name, str) or _ours(getattr(value, "__module__", None)):
            return None
        home = sys.modules.get(getattr(value, "__module__", None) or "")
        for module in (*_OFFERING, *([home] if home is not None else [])):
            if getattr(module, name, None) is value:
                return name if module is builtins else f"{self._module(module)}.{name}"
        return None

    def _begin(self, value: Any, wanted: str) -> str:
        """A name for `value`, whose definition is about to be written."""
        name = self._known[id(value)] = self.unique(wanted)
        self._begun.add(name)
        return name

    def _finish(self, name: str, definition: str) -> None:
        self.definitions.append(definition)
        self._begun.discard(name)

    def _define(self, value: Any, hint: str) -> str:
        if isinstance(value, FunctionType):
            return self._function(value, hint)
        if isinstance(value, type):
            return self._class(value)
        name = self._begin(value, hint)
        self._finish(name, f"{name} = {self._construction(value, hint)}")
        if isinstance(value, jax.custom_jvp) and value.jvp is not None:
            self.definitions.append(f"{name}.defjvp({self.name_of(value.jvp, f'{hint}_jvp')})")
        return name

    def _construction(self, value: Any, hint: str) -> str:
        """An expression that makes an object like `value`."""

        def inner(part: Any) -> str:
            return self.name_of(part, hint)

        if isinstance(value, np.ndarray):
            return self._array(value)
        if isinstance(value, Literal):
            self.imports["import types"] = None
            return f"types.SimpleNamespace(array={self._array(value.array)})"
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return f"{inner(type(value))}({', '.join(map(inner, value))})"
        if isinstance(value, tuple):
            return f"({', '.join(map(inner, value))}{',' if len(value) == 1 else ''})"
        if isinstance(value, list):
            return f"[{', '.join(map(inner, value))}]"
        if isinstance(value, (set, frozenset)):
            return f"{type(value).__name__}([{', '.join(sorted(map(inner, value)))}])"
        if isinstance(value, Mapping):
            return "{" + ", ".join(f"{inner(k)}: {inner(v)}" for k, v in value.items()) + "}"
        if isinstance(value, functools.partial):
            self.imports["import functools"] = None
            arguments = [inner(value.func), *map(inner, value.args)]
            return (
                f"functools.partial({', '.join([*arguments, *(f'{k}={inner(v)}' for k, v in value.keywords.items())])})"
            )
        if isinstance(value, jax.custom_jvp):
            self._module(jax)
            return f"jax.custom_jvp({inner(value.fun)}, nondiff_argnums={tuple(value.nondiff_argnums)!r})"
        if hasattr(value, "cache_info") and hasattr(value, "__wrapped__"):
            self.imports["import functools"] = None
            return f"functools.cache({inner(value.__wrapped__)})"
        raise GraphError(NOT_WRITABLE.format(what=f"a {type(value).__name__} ({hint})", why="it has no source"))

    def _array(self, array: np.ndarray) -> str:
        self._module(np)
        dtype = f"np.dtype('{array.dtype}')"
        if array.dtype.name == "bfloat16":
            self._module(jnp)
            dtype = "np.dtype(jnp.bfloat16)"
        if array.size <= INLINE and array.dtype.kind in "biu":
            return f"np.array({array.tolist()!r}, {dtype}).reshape({array.shape})"
        self.imports["import base64"] = None
        text = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
        return f"np.frombuffer(base64.b64decode({text!r}), {dtype}).reshape({array.shape})"

    def _class(self, made: type) -> str:
        if not _ours(made.__module__):
            raise GraphError(NOT_WRITABLE.format(what=made.__qualname__, why=f"a class of {made.__module__}"))
        module = sys.modules[made.__module__]
        found = [n for n in ast.walk(_tree(module.__file__ or "")) if isinstance(n, ast.ClassDef)]
        node = next((n for n in found if n.name == made.__qualname__), None)
        if node is None:
            raise GraphError(NOT_WRITABLE.format(what=made.__qualname__, why="its source is not found"))
        name = self._begin(made, made.__qualname__)
        self._write(name, made, node, vars(module))
        if made.__name__ != made.__qualname__:
            self.definitions.append(f"{name}.__name__ = {made.__name__!r}")
        return name

    def _function(self, function: FunctionType, hint: str) -> str:
        node = _copy(_node_of(function))
        cells: tuple[CellType, ...] = function.__closure__ or ()
        enclosing = {n: c.cell_contents for n, c in zip(function.__code__.co_freevars, cells, strict=True)}
        name = self._begin(function, getattr(node, "name", hint))
        defaults, keywords = function.__defaults__ or (), function.__kwdefaults__ or {}
        arguments = node.args
        arguments.defaults = [_expression(self.name_of(value, f"{hint}_default")) for value in defaults]
        arguments.kw_defaults = [
            _expression(self.name_of(keywords[a.arg], f"{hint}_{a.arg}")) if a.arg in keywords else None
            for a in arguments.kwonlyargs
        ]
        if isinstance(node, ast.FunctionDef):
            node.decorator_list = []  # what decorators made of it is what refers to it
        self._write(name, function, node, {**function.__globals__, **enclosing})
        return name

    def _write(self, name: str, made: Any, node: Any, names: Mapping[str, Any]) -> None:
        """Write the definition `node` of `made` as `name`. `names`: what is bound around it."""
        outside = _outside(node, names)
        own: Any = getattr(node, "name", None)
        if own in outside and names[own] is made:
            del outside[own]
        elif own:
            node.name = own = name
        given = {n: self._as_used(names[n], n, ways) for n, ways in outside.items()}
        # a function that calls this one is there when it is called
        given = {n: f"lambda *args: {e}(*args)" if e in self._begun else e for n, e in given.items() if n != e}
        text = ast.unparse(node)
        if not given and own in (name, None):
            self._finish(name, text if own else f"{name} = {text}")
            return
        maker = self.unique(f"_with_{name}")
        body = f"{text}\nreturn {own}" if own else f"return {text}"
        self.definitions.append(f"def {maker}({', '.join(given)}):\n{textwrap.indent(body, '    ')}")
        self._finish(name, f"{name} = {maker}({', '.join(given.values())})")

    def _as_used(self, value: Any, hint: str, ways: Collection[_Way]) -> str:
        """An expression for `value`, of which no more is used than what `ways` lead to."""
        if isinstance(value, ModuleType) and not _ours(value.__name__):
            for way in ways:
                self._module(_innermost(value, way))
        if () in ways or not _is_looked_through(value):
            return self.name_of(value, hint)
        inside: dict[str, list[_Way]] = {}
        for first, *rest in ways:
            inside.setdefault(first, []).append(tuple(rest))
        self.imports["import types"] = None
        parts = [f"{n}={self._as_used(getattr(value, n), n, rest)}" for n, rest in inside.items()]
        return f"types.SimpleNamespace({', '.join(parts)})"


def _is_looked_through(owner: Any) -> bool:
    """Whether attributes of `owner` are looked up now: it is an object of ours that is no function or class."""
    if isinstance(owner, ModuleType):
        return _ours(owner.__name__)
    return _ours(type(owner).__module__) and not isinstance(owner, (Literal, type))


def _innermost(module: ModuleType, way: Sequence[str]) -> ModuleType:
    """The part of a package that the first steps of `way` lead to."""
    for step in way:
        if not isinstance(part := getattr(module, step), ModuleType):
            break
        module = part
    return module


def _outside(node: ast.AST, names: Collection[str]) -> dict[str, set[_Way]]:
    """Those of `names` that a definition reads from around it, and which attributes it takes of each."""
    code = compile(f"from __future__ import annotations\n{ast.unparse(node)}", "<definition>", "exec")
    found: dict[str, set[_Way]] = {}
    for chain in (chain for inner in all_codes(code) for chain in reads_of(inner).chains):
        if chain.root == MODULE and _ours(chain.name):
            raise GraphError(NOT_WRITABLE.format(what=chain.name, why="a function imports it when it is called"))
        if chain.root == GLOBAL and chain.name in names and chain.name != "__name__":
            attributes = itertools.takewhile(lambda step: step.kind == ATTRIBUTE, chain.steps)
            found.setdefault(chain.name, set()).add(tuple(step.key for step in attributes))
    return found


def _atom(value: Any) -> str | None:
    """`value` as an expression that can stand in every place where it is read: an immutable value."""
    if value is None or value is Ellipsis or type(value) in (bool, int, str, bytes):
        return repr(value)
    if isinstance(value, np.dtype):
        return "np.dtype(jnp.bfloat16)" if value.name == "bfloat16" else f"np.dtype('{value}')"
    if isinstance(value, np.generic) and value.dtype.kind in "biufc":
        return f"np.{value.dtype.name}({_atom(value.item())})"
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else f"float('{value}')"
    if isinstance(value, complex):
        return f"complex({_atom(value.real)}, {_atom(value.imag)})"
    if type(value) is tuple:
        parts = [_atom(part) for part in value]
        if None not in parts:
            return f"({', '.join(map(str, parts))}{',' if len(parts) == 1 else ''})"
    return None


def _expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _copy(node: Any) -> Any:
    return ast.parse(ast.unparse(node)).body[0] if isinstance(node, ast.stmt) else _expression(ast.unparse(node))


@functools.lru_cache(maxsize=128)
def _tree(file: str) -> ast.Module:
    return ast.parse(Path(file).read_text(encoding="utf-8"))


@functools.lru_cache(maxsize=128)
def _functions(file: str) -> dict[int, list[ast.FunctionDef | ast.Lambda]]:
    """The functions of a file by the line where their code starts."""
    found: dict[int, list[ast.FunctionDef | ast.Lambda]] = {}
    for node in ast.walk(_tree(file)):
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
            found.setdefault(min([node.lineno, *(d.lineno for d in decorators)]), []).append(node)
    return found


def _node_of(function: FunctionType) -> ast.FunctionDef | ast.Lambda:
    """The syntax of `function`. Of several lambdas in a line, the innermost that its instructions lie in."""
    code = function.__code__
    file = inspect.getsourcefile(function)
    what = f"{function.__module__}.{function.__qualname__}"
    if file is None or not Path(file).exists():
        raise GraphError(NOT_WRITABLE.format(what=what, why="it was not read from a file"))
    nodes = [n for n in _functions(file).get(code.co_firstlineno, []) if getattr(n, "name", "<lambda>") == code.co_name]
    spans = [
        ((line, column), (end_line, end_column))
        for line, end_line, column, end_column in itertools.islice(code.co_positions(), 1, None)
        if line and end_line and column is not None and end_column is not None and (line, column) != (end_line, 0)
    ]
    lambdas = [n for n in nodes if isinstance(n, ast.Lambda) and all(_inside(s, n.body) for s in spans if s[0] != s[1])]
    if lambdas:
        return min(lambdas, key=lambda n: (_end(n.body)[0] - n.body.lineno, _end(n.body)[1] - n.body.col_offset))
    named = [n for n in nodes if isinstance(n, ast.FunctionDef)]
    if len(named) != 1:
        raise GraphError(NOT_WRITABLE.format(what=what, why="its source is not found"))
    return named[0]


def _end(node: ast.expr) -> tuple[int, int]:
    return node.end_lineno or 0, node.end_col_offset or 0


def _inside(span: tuple[tuple[int, int], tuple[int, int]], node: ast.expr) -> bool:
    return (node.lineno, node.col_offset) <= span[0] and span[1] <= _end(node)
