"""Names of a package whose modules are loaded on first use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

from graphc import forking


class _Package(ModuleType):
    """A package with a module that has something of its own name: that is what the package has by this name.

    Python makes each module that is imported an attribute of its package.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, ModuleType) and value.__name__ == f"{self.__name__}.{name}":
            value = getattr(value, name, value)
        super().__setattr__(name, value)


def lazy(
    package: str, where: Mapping[str, str], modules: Collection[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of `package`.

    where    name -> the module that has it
    modules  names of modules of the package itself
    """
    names = vars(sys.modules[package])
    if any(f"{package}.{name}" == place for name, place in where.items()):
        sys.modules[package].__class__ = _Package

    def __getattr__(name: str) -> Any:
        if name in modules:
            return import_module(f"{package}.{name}")
        if name not in where:
            raise AttributeError(f"module '{package}' has no attribute '{name}'{_meant(name, [*where, *modules])}")
        forking.refuse_import(where[name])
        names[name] = found = getattr(import_module(where[name]), name)
        return found

    return __getattr__, listing(package, [name for name in (*where, *modules) if name[0] != "_"])


def families(package: str, modules: str) -> dict[str, Any]:
    """The public names of `modules` of `package`, a family each: what `from module import *` of each would bring."""
    loaded = [import_module(f"{package}.{module}") for module in modules.split()]
    return {name: getattr(module, name) for module in loaded for name in module.__all__}


def ask_then(names: dict[str, Any], otherwise: Callable[[str], Any]) -> None:
    """Let a module, by its `vars`, ask `otherwise` for what it has not, and what its `__getattr__` has not."""
    known = names.get("__getattr__")

    def __getattr__(name: str) -> Any:
        if known is not None:
            try:
                return known(name)
            except AttributeError:
                pass
        return otherwise(name)

    names["__getattr__"] = __getattr__


def _meant(name: str, known: Collection[str]) -> str:
    import difflib

    close = difflib.get_close_matches(name, [other for other in known if other[0] != "_"], 2, 0.7)
    return f". Did you mean: {' or '.join(map(repr, close))}?" if close and name[0] != "_" else ""


def listing(module: str, also: Collection[str] = ()) -> Callable[[], list[str]]:
    """`__dir__` of a module: the names in its `__all__`, its version, and those that it has `also`.

    What it imports for itself is left out: help and completion show what the module is for.
    """
    names = vars(sys.modules[module])

    def __dir__() -> list[str]:
        own = (name for name in names if name.startswith("__"))
        return sorted({*own, *names.get("__all__", ()), *also})

    return __dir__
