"""Modules of PyTorch that libraries import names from at their top, and use later if at all: each name is a class.

The class is for `isinstance` and as a base class; to make an instance is NotImplementedError. Without them a library
that can also run on many machines could not be imported by those who run it on one. A question, such as `is_available`,
is answered with no.
"""

from __future__ import annotations

from functools import cache
from importlib.abc import Loader
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn, final

from eager.core import missing
from graphc.lazy import ask_then

FILE = Path(__file__).parent / "pytorch_modules.txt"
REFUSED = "torch.{}.{} is a placeholder, which libraries can import: what it does in PyTorch is not here."


@cache
def modules() -> dict[str, list[str]]:
    """Package of PyTorch -> its modules. `python -m tests.samples.names` writes them."""
    lines = [line.partition(":") for line in FILE.read_text(encoding="utf-8").splitlines()]
    return {package: names.split() for package, _, names in lines}


def known(path: str) -> bool:
    """Whether "distributed.optim" is a module of PyTorch."""
    package, _, name = path.rpartition(".")
    return name in modules().get(package, ())


@final
class Placeholders(Loader):
    """Makes a module in which each name is a class."""

    def __init__(self, path: str):
        self._path = path

    def exec_module(self, module: ModuleType) -> None:
        fill(module, self._path)


def fill(module: ModuleType, path: str) -> None:
    """Let the names that a module has not be placeholders. path: what it is in PyTorch, "distributed.optim"."""

    def otherwise(name: str) -> Any:
        if name.startswith("__") or known(f"{path}.{name}"):  # a module is there once it has been imported
            raise AttributeError(f"module '{module.__name__}' has no attribute '{name}'")
        vars(module)[name] = made = _placeholder(path, name)
        return made

    ask_then(vars(module), otherwise)


def _no(*unused: Any, **unused_settings: Any) -> bool:
    """False: nothing is available of what is not here."""
    return False


def _placeholder(path: str, name: str) -> Any:
    if name.startswith("is_"):
        return _no
    text = REFUSED.format(path, name) + missing.about(f"{missing.ROOT}.{path}", name)

    def refuse(cls: type, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(text)

    return type(name, (), {"__new__": refuse, "__doc__": text, "__module__": f"torch.{path}"})
