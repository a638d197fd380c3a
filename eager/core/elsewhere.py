"""Names that PyTorch has in modules where this package has them not: in files that are not here, or a second time.

A table, `elsewhere.txt`, says where they are here. A module that is no file is made of them when it is imported.
"""

from __future__ import annotations

import os
from functools import cache
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, final

from eager.core import homes

FILE = os.path.join(os.path.dirname(__file__), "elsewhere.txt")
ALL = "*"  # every name of the module here
ITSELF = "."  # the module here
TOP = "."


@cache
def table() -> dict[str, dict[str, tuple[str, str]]]:
    """Module of PyTorch, without "torch" -> name there -> (module here, name here).

    A line is "module here > modules there: names", with "there=here" for a name that differs, "there=." for the module
    itself, and "." for the top.
    """
    found: dict[str, dict[str, tuple[str, str]]] = {}
    with open(FILE, encoding="utf-8") as file:
        lines = [line for line in file.read().splitlines() if line and not line.startswith("#")]
    for line in lines:
        here, _, rest = line.partition(" > ")
        there, _, names = rest.partition(": ")
        for module in there.split():
            pairs = (name.partition("=") for name in names.split())
            found.setdefault(module, {}).update({name: (here, other or name) for name, _, other in pairs})
    for (here, name), (there, _) in homes.rows():
        module = there.partition(".")[2] or TOP
        found.setdefault(module, {}).setdefault(name, (here.partition(".")[2], name))
    return found


@cache
def packages() -> frozenset[str]:
    """The packages that modules of the table are in."""
    paths = (path.split(".") for path in table())
    return frozenset(".".join(parts[:count]) for parts in paths for count in range(1, len(parts)))


def value(module: str, name: str) -> Any:
    """What a module ("nn.modules.activation") has by that name only in PyTorch. AttributeError if nothing is said."""
    names = table().get(module or TOP, {})
    if name in names:
        here, own = names[name]
        return homes.opened(here) if own == ITSELF else getattr(homes.opened(here), own)
    if ALL in names and not name.startswith("__"):  # what a module says of itself is its own
        return getattr(homes.opened(names[ALL][0]), name)
    path = f"{module}.{name}" if module else name
    if path in table() or path in packages():  # PyTorch has imported all of its modules
        return homes.opened(path)
    raise AttributeError(name)


@final
class Elsewhere:
    """Makes a module of the names that the table has for it. A Loader, without what `importlib.abc` would import."""

    def create_module(self, spec: ModuleSpec) -> None:
        """None: a plain module."""

    def exec_module(self, module: ModuleType) -> None:
        """Let the module look its names up."""
        path = module.__name__.partition(".")[2]

        def __getattr__(name: str) -> Any:
            try:
                return value(path, name)
            except AttributeError:
                text = f"module '{module.__name__}' has no attribute '{name}'"
            raise AttributeError(text, name=name, obj=module)

        vars(module).update(__getattr__=__getattr__, __all__=[n for n in table().get(path, ()) if n != ALL])


def find(fullname: str) -> ModuleSpec | None:
    """The module "eager.nn.modules.upsampling", if it is one of the table. Its package must have a `__path__`."""
    path = fullname.partition(".")[2]
    if path not in table() and path not in packages():
        return None
    return ModuleSpec(fullname, Elsewhere(), is_package=path in packages())  # type: ignore[arg-type]
