"""What is said of a name that is not here: why PyTorch has it alone, what to use instead, or what was meant."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from functools import cache, partial
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any, final

from eager.core import elsewhere
from graphc.lazy import ask_then, listing

FILE = os.path.join(os.path.dirname(__file__), "pytorch_names.txt")  # PyTorch's public names by place, without modules
REASONS = os.path.join(os.path.dirname(__file__), "missing_names.toml")
ROOT = "eager"


@cache
def recorded() -> dict[str, list[str]]:
    """PyTorch's names by place, as recorded."""
    with open(FILE, encoding="utf-8") as file:
        lines = [line.split(": ", 1) for line in file.read().splitlines()]
    return {place: names.split() for place, names in lines}


@cache
def patterns() -> list[tuple[str, str, str]]:
    """(why, what to use instead, pattern of whole names, anywhere or in "place: name"): the first that holds counts."""
    return [(row["why"], row["instead"], "|".join(row["patterns"])) for row in _reasons()["names"]]


@cache
def modules() -> dict[str, str]:
    """Module of PyTorch -> what to use instead of it, or of what this package has not of it."""
    return {name: row["instead"] for row in _reasons()["modules"] for name in row["names"].split()}


def _reasons() -> dict[str, Any]:
    import tomllib

    with open(REASONS, "rb") as file:
        return tomllib.load(file)


def reason(place: str, name: str) -> tuple[str, str] | None:
    """Why a name of PyTorch is missing in a place ("torch.nn"), and what to use instead. None if no table says it."""
    for why, instead, pattern in patterns():
        if re.fullmatch(pattern, name) or re.fullmatch(pattern, f"{place}: {name}"):
            return why, instead
    return None


@cache
def about(module: str, name: str) -> str:
    """What there is to say of `name`, which `module` ("eager.nn") has not: "" or sentences with a space before them."""
    place = "torch" + module.removeprefix(ROOT)
    if name in recorded().get(place, ()) and (found := reason(place, name)) is not None:
        why, instead = found
        return f" PyTorch has it; not here: {why}." + (f" Use instead: {instead}." if instead else "")
    path = f"{place}.{name}".removeprefix("torch.")
    if path in modules():
        return f" PyTorch has the module; not here. Use instead: {modules()[path]}."
    if close := _similar(module, name):
        return f" Did you mean: {' or '.join(map(repr, close))}?"
    inside = next((known for known in modules() if f"{path}.".startswith(f"{known}.")), None)
    return f" Use instead: {modules()[inside]}." if inside is not None else ""


def _similar(module: str, name: str) -> list[str]:
    import difflib

    loaded = sys.modules.get(module)
    known = [] if loaded is None else [other for other in dir(loaded) if other[0] != "_" and other != name]
    return difflib.get_close_matches(name, known, 2, 0.75)


def explain(module: ModuleType) -> None:
    """Give a module of this package its `__dir__`, and let its `__getattr__` say more of a name that it has not.

    It is set here, not in the module, where a type checker would take any attribute to be there.
    """
    place = module.__name__

    def otherwise(name: str) -> Any:
        try:
            return elsewhere.value(place.partition(".")[2], name)
        except AttributeError:
            pass
        more = "" if name.startswith("__") else about(place, name)
        text = f"module '{place}' has no attribute '{name}'{'.' if more else ''}{more}"
        if "Did you mean" in more:
            raise AttributeError(text)  # with a name, Python would ask it a second time
        raise AttributeError(text, name=name, obj=module) from None

    names = vars(module)
    ask_then(names, otherwise)
    if "__all__" in names:
        names.setdefault("__dir__", listing(place))


@final
class MissingMethod:
    """A method of PyTorch's Tensor that is not here, in its place."""

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def __get__(self, instance: Any, owner: type) -> Any:
        text = f"'{owner.__name__}' object has no attribute '{self.name}'.{about('eager.Tensor', self.name)}"
        raise AttributeError(text, name=self.name, obj=instance)


@final
class Finder:
    """Asked last, for what no other finder has found: an import of a module, or of a name, that is missing here.

    The error has no `name`: with one, `from eager import ...` would drop it, and say only that there is no such name.
    """

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """A module that is only PyTorch's, or ModuleNotFoundError if there is something to say of the name."""
        if fullname.startswith(f"{ROOT}.") and (made := elsewhere.find(fullname)) is not None:
            return made
        module, _, name = fullname.rpartition(".")
        within = getattr(sys.modules.get(module), "__path__", path)
        if not fullname.startswith(f"{ROOT}.") or name.startswith("__") or PathFinder.find_spec(fullname, within):
            return None  # some ask each finder, also for what another one finds
        if more := about(module, name):
            raise ModuleNotFoundError(f"No module named '{fullname}', and no name '{name}' in '{module}'.{more}")
        return None


@final
class Explaining:
    """Asked first, for modules of this package, and of no other."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Where Python finds a module of this package, with a loader that explains it."""
        if not fullname.startswith(f"{ROOT}."):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader.exec_module = partial(_explained, spec.loader.exec_module)  # type: ignore[method-assign]
        return spec


def _explained(run: Callable[[ModuleType], None], module: ModuleType) -> None:
    run(module)
    explain(module)


def install() -> None:
    """Let modules of this package, and imports of what is missing, say what to use instead."""
    for name, module in list(sys.modules.items()):
        if f"{name}.".startswith(f"{ROOT}."):
            explain(module)
    sys.meta_path.insert(0, Explaining())
    sys.meta_path.append(Finder())
