"""Where PyTorch has the classes and functions that are elsewhere here: their names in files and in `repr`.

What is not in the table has the same path in both, with "torch" for "eager".
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from functools import cache
from typing import Any

# module here > module of PyTorch: names ("." is the top); read at once, since no reader of files opens others meanwhile
with open(os.path.join(os.path.dirname(__file__), "homes.txt"), encoding="utf-8") as _file:
    HOMES = _file.read().splitlines()
OURS, THEIRS = "eager", "torch"
# where functions are public whose file is no module of PyTorch; generated ones are of no file
PUBLIC = ("nn.functional", ".", "special", "linalg", "fft")
NOT_FOUND = "Can't get attribute '{name}' on the module '{module}' of PyTorch: it is not here"
_METHODS_OF = {("torch._C", "_VariableFunctionsClass"): ".", ("torch._C", "TensorBase"): "Tensor"}


def _path(root: str, module: str) -> str:
    return root if module == "." else f"{root}.{module}"


def rows() -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    """(module here, name), (module of PyTorch, name) of the table."""
    for line in HOMES:
        here, _, rest = line.partition(" > ")
        there, _, names = rest.partition(": ")
        for name in names.split():
            yield (_path(OURS, here), name), (_path(THEIRS, there), name)


@cache
def _theirs() -> dict[tuple[str, str], tuple[str, str]]:
    return dict(rows())


@cache
def _ours() -> dict[tuple[str, str], tuple[str, str]]:
    return {there: here for here, there in rows()}


def is_ours(module: Any) -> bool:
    """Whether a `__module__` is one of this package."""
    return isinstance(module, str) and (module == OURS or module.startswith(f"{OURS}."))


def name_of(module: Any) -> str:
    """The name of a module here: `graphc run` calls `eager` itself "torch"."""
    spec = getattr(module, "__spec__", None)
    return getattr(spec, "name", module.__name__)


def pytorch_name(value: Any) -> tuple[str, str]:
    """(module, qualified name) under which PyTorch has a class or function of this package."""
    module, name = value.__module__, value.__qualname__
    if not is_ours(module):  # `graphc run` lets Tensor be of "torch"
        return module, name
    if not isinstance(value, type):
        for place in PUBLIC:
            if getattr(opened(place), name, None) == value:
                return _path(THEIRS, place), name
    return _theirs().get((module, name), (THEIRS + module.removeprefix(OURS), name))


def found(module: str, name: str) -> Any:
    """What stands here for `name` in a module of PyTorch. Raises AttributeError if nothing does."""
    if (module, name) in _METHODS_OF:
        place = _METHODS_OF[module, name]
        return opened(".") if place == "." else getattr(opened("."), place)
    module, name = _ours().get((module, name), (module, name))
    path = module.removeprefix(THEIRS).removeprefix(OURS).removeprefix(".") or "."
    for place in (path, *(PUBLIC if path.startswith("_C") else ())):
        try:
            value: Any = opened(place)
            for part in name.split("."):
                value = getattr(value, part)
        except (ImportError, AttributeError):
            continue
        return value
    raise AttributeError(NOT_FOUND.format(name=name, module=module))


def opened(place: str) -> Any:
    """The module `place` of this package; "." is the top."""
    return importlib.import_module(_path(OURS, place))
