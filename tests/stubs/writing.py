"""The text of a stub: imports, then a definition with its docstring for each name."""

from __future__ import annotations

import inspect
import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

from eager.core.tensor import Tensor
from tests.stubs.forms import forms, spelled, text

HEAD = "# Written by `python -m tests.stubs`: change the sources or the tables there, and run it again.\n"
# where what annotations name comes from
ORIGIN = {
    **dict.fromkeys("Any Literal NoReturn ParamSpec TypeIs TypeVar overload".split(), "typing"),
    **dict.fromkeys("Callable Iterable Iterator Mapping Sequence".split(), "collections.abc"),
    **dict.fromkeys("bool complex float int".split(), "builtins"),
    "AbstractContextManager": "contextlib", "EllipsisType": "types", "ndarray": "numpy",
    "Device": "eager.types", "FileLike": "eager.types", "Number": "eager.types",
    "Tensor": "eager.core.tensor", "Parameter": "eager.core.parameter", "device": "eager.core.devices",
    "dtype": "eager.core.dtypes", "Size": "eager.core.dtypes", "layout": "eager.core.layouts",
    "memory_format": "eager.core.layouts", "Generator": "eager.rng.generator", "Module": "eager.nn.module",
    "RemovableHandle": "eager.nn.hooks", "UntypedStorage": "eager.storage", "TypedStorage": "eager.storage",
    "Op": "graphc.ops.spec", "Operations": "eager.autograd.custom_ops",
    "return_types": "eager", "PackedSequence": "eager.nn.modules.packed",
}  # fmt: skip
ORIGIN["TypeIs"] = "typing_extensions"
_BUILT_IN = frozenset("None True False str bytes tuple list dict set type object bytearray slice frozenset".split())
_LITERAL = re.compile(r"\"[^\"]*\"|'[^']*'")


class Writer:
    """Collects the definitions of a stub. `names`: what it defines, which shadows the types of those names."""

    def __init__(self, about: str, names: Iterable[str]):
        self.about = about
        self.shadowed = frozenset(names) & ORIGIN.keys()
        self.lines: list[str] = []
        self.needed: set[str] = set()
        self.imports: dict[str, set[str]] = defaultdict(set)

    def function(self, name: str, function: Callable[..., Any], tables: tuple[str, ...], depth: int = 0,
                 drop: str = "", also: Any = None) -> None:  # fmt: skip
        """A function or, with `depth`, a method, whose parameter `drop` is left out."""
        first = next(iter(inspect.signature(function).parameters), "") if depth else ""
        found = forms(name, function, tables, (first, drop))
        doc = inspect.getdoc(function) or (inspect.getdoc(also) if also is not None else "") or ""
        for form in found:
            if len(found) > 1:
                self.line("@overload", depth)
                self.needed.add("overload")
            self.need(form.return_annotation, *(p.annotation for p in form.parameters.values()))
            override = "  # type: ignore[override]" if name in ("__eq__", "__ne__") else ""
            head = text(name, form, self.shadowed, bool(depth))
            if doc and form is not found[0]:
                self.line(f"{head}: ...{override}", depth)
                continue
            self.line(f"{head}:{override}" if doc else f"{head}: ...{override}", depth)
            self.docstring(doc, depth + 1)
        self.lines.append("")

    def need(self, *annotations: str) -> None:
        """Note what these annotations have to have imported."""
        for annotation in annotations:
            plain = spelled(_LITERAL.sub("", annotation), frozenset())
            self.needed.update(set(re.findall(r"(?<![\w.])[A-Za-z_]\w*", plain)) - _BUILT_IN)

    def line(self, text: str, depth: int = 0) -> None:
        self.lines.append("    " * depth + text)

    def docstring(self, doc: str, depth: int) -> None:
        """A docstring, at a depth."""
        if not doc:
            return
        quote = 'r"""' if "\\" in doc else '"""'
        first, *rest = doc.replace('"""', "'''").splitlines()
        if not rest and not first.endswith('"'):
            self.line(f'{quote}{first}"""', depth)
            return
        self.line(f"{quote}{first}", depth)
        self.lines.extend("    " * depth + line if line else "" for line in rest)
        self.line('"""', depth)

    def constant(self, name: str, annotation: str) -> None:
        self.need(annotation)
        self.line(f"{name}: {spelled(annotation, self.shadowed)}")

    def again(self, name: str, module: str, attribute: str = "") -> None:
        """A name that another module defines."""
        self.imports[module].add(f"{attribute or name} as {name}")

    def text(self) -> str:
        unknown = self.needed - ORIGIN.keys() - {"_P", "_R", "Index"}
        if unknown:
            raise ValueError(f"where do {sorted(unknown)} come from? Add them to ORIGIN in tests/stubs/writing.py")
        variables: list[str] = []
        taken: dict[str, set[str]] = defaultdict(set, {module: set(found) for module, found in self.imports.items()})
        if {"_P", "_R"} & self.needed:
            variables = ['_P = ParamSpec("_P")', '_R = TypeVar("_R")', ""]
            self.needed |= {"ParamSpec", "TypeVar"}
        for name in sorted(self.needed & ORIGIN.keys()):
            if ORIGIN[name] == "builtins" and name not in self.shadowed:
                continue
            if f"{name} as {name}" not in taken[ORIGIN[name]]:
                taken[ORIGIN[name]].add(f"{name} as _{name}" if name in self.shadowed else name)
        lines = [f"from {module} import {', '.join(sorted(found))}" for module, found in sorted(taken.items()) if found]
        body = "\n".join([*lines, "", *variables, *self.lines])
        return f'{HEAD}"""{self.about}"""\n\n{body.rstrip()}\n'


def summary(module: ModuleType) -> str:
    return (module.__doc__ or "").strip().splitlines()[0]


def functions_stub(module: ModuleType, names: Iterable[str], tables: tuple[str, ...]) -> str:
    """The stub of a module of functions and classes."""
    names = list(names)
    writer = Writer(summary(module), made_there(module, names))
    for name in names:
        put(writer, module, name, tables)
    return writer.text()


def made_there(module: ModuleType, names: Iterable[str]) -> set[str]:
    """Those of `names` that are no classes or modules: the stub defines them, so annotations cannot name others."""
    return {name for name in names if not isinstance(getattr(module, name), (type, ModuleType))}


def put(writer: Writer, module: ModuleType, name: str, tables: tuple[str, ...] = ()) -> None:
    """What `module` has as `name`."""
    value = getattr(module, name)
    if isinstance(value, ModuleType):
        writer.again(name, value.__name__.rpartition(".")[0])
    elif inspect.isclass(value):
        writer.again(name, value.__module__, value.__name__)
    elif callable(value) and not isinstance(value, type(Tensor)) and hasattr(value, "__name__"):
        writer.function(name, value, tables)
    else:
        writer.constant(name, "None" if value is None else type(value).__name__)
