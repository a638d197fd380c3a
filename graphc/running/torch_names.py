"""`import torch` means `import eager`: for a script (`graphc run`), a notebook or a REPL."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import Distribution, DistributionFinder
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import Any, final

from eager.core import elsewhere, missing
from graphc.running import placeholders

NAME, ENGINE = "torch", "eager"
FORMER = "functorch"  # a library of its own, before it became torch.func
CHILDREN = Path(__file__).resolve().parent / "children"  # has a package `torch` that calls torch_names()


def torch_names() -> TorchNames:
    """`torch` means `eager` from here on; as a context manager, until its block ends.

        >>> import graphc, sys
        >>> with graphc.torch_names():
        ...     import torch
        ...     from torch.nn.functional import relu
        >>> torch.__name__, relu(torch.tensor([-1.0, 2.0])), sys.modules.get("torch") is torch
        ('eager', tensor([0., 2.]), False)

    That holds for each way to import: statements, `importlib`, imports of installed packages. The version that
    `importlib.metadata` knows is `torch.__version__`. If PyTorch has been imported, its modules are set aside, and come
    back with `uninstall()` of the result, or at the end of the block. Packages that were imported meanwhile keep eager.
    """
    return TorchNames()


@final
class TorchNames:
    """What `torch_names` has changed, and how to undo it. It changes nothing where `torch` means `eager` already."""

    def __init__(self) -> None:
        self._finder = None if any(isinstance(finder, _Finder) for finder in sys.meta_path) else _Finder()
        if self._finder is not None:
            self._aside = _take_out()
            sys.meta_path.insert(0, self._finder)
            self._told = _name_of(NAME, NAME)
            # multiprocessing gives the path to processes that it spawns; the first entry is the script's folder
            sys.path.insert(1, str(CHILDREN))

    def uninstall(self) -> None:
        """Let `torch` mean what it did before. A second call changes nothing."""
        if self._finder is not None:
            sys.meta_path.remove(self._finder)
            _name_of(*self._told)
            sys.path.remove(str(CHILDREN))
            _forget_placeholders(_take_out())
            sys.modules.update(self._aside)
            self._finder = None

    def __enter__(self) -> TorchNames:
        return self

    def __exit__(self, *error: object) -> None:
        self.uninstall()


def _name_of(module: str, tensor: str) -> tuple[str, str]:
    """Let the module and the class of tensors say that they are of these modules; libraries ask. Returns the former."""
    engine = importlib.import_module(ENGINE)
    before = engine.__name__, engine.Tensor.__module__
    engine.__name__, engine.Tensor.__module__ = module, tensor
    return before


def _take_out() -> dict[str, ModuleType]:
    """Remove the modules of that name from `sys.modules`, and return them."""
    return {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] in (NAME, FORMER)}


def _forget_placeholders(taken: Mapping[str, ModuleType]) -> None:
    """Remove from eager what it has only while `torch` means `eager`. taken: the modules of that name."""
    for name, module in taken.items():
        if isinstance(module.__loader__, (placeholders.Placeholders, elsewhere.Elsewhere)):
            here = ENGINE + name.removeprefix(NAME)
            package, _, own = here.rpartition(".")
            sys.modules.pop(here, None)
            if package in sys.modules:
                vars(sys.modules[package]).pop(own, None)


@final
class _Finder(MetaPathFinder):
    """Finds `torch` and what is below it, also for `importlib.metadata`."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        top, _, rest = fullname.partition(".")
        if fullname == FORMER:
            return ModuleSpec(fullname, _Same(f"{ENGINE}._functorch"))
        if top not in (NAME, ENGINE):
            return None
        is_package = rest in placeholders.modules()
        # `from torch.nn import modules` asks for eager.nn.modules: the package's own name is that of eager
        own = _spec(fullname, path) if top == ENGINE else _found(rest)
        if own is None and placeholders.known(rest):
            made = placeholders.Placeholders(rest) if top == NAME else _Same(f"{NAME}.{rest}")
            return ModuleSpec(fullname, made, is_package=is_package)
        if top == ENGINE:
            return None
        if own is None:
            package, _, name = f"{ENGINE}.{rest}".rpartition(".")
            more = missing.about(package, name)  # not one of PyTorch's, either
            raise ModuleNotFoundError(f"No module named '{fullname}'{'.' if more else ''}{more}", name=fullname)
        return ModuleSpec(fullname, _Same(own.name), is_package=own.submodule_search_locations is not None)

    def find_distributions(self, context: DistributionFinder.Context | None = None) -> Iterator[Distribution]:
        """What `importlib.metadata` asks for: the distribution `torch`."""
        if context is None or context.name is None or context.name.lower() == NAME:
            yield _Version()


@final
class _Same(Loader):
    """Makes `torch.nn` the very module `eager.nn`, and `eager.ao` the placeholder `torch.ao`."""

    def __init__(self, name: str):
        self._name = name

    def exec_module(self, module: ModuleType) -> None:
        found = sys.modules[module.__name__] = _opened(importlib.import_module(self._name))  # the import returns it
        for name in vars(found).get("__all__", ()):  # what is loaded on first use: libraries read `vars(module)`
            getattr(found, name, None)
        # An import of what has been imported would write the module over a function of its name, as `scan.scan`'s.
        for name in [name for name in sys.modules if name.startswith(f"{self._name}.")]:
            sys.modules.setdefault(module.__name__ + name.removeprefix(self._name), _opened(sys.modules[name]))


def _opened(module: ModuleType) -> ModuleType:
    """A file here that is a package in PyTorch as a package: only those have modules."""
    if module.__name__.removeprefix(f"{ENGINE}.") in placeholders.modules():
        vars(module).setdefault("__path__", [])
    if isinstance(module.__loader__, elsewhere.Elsewhere):
        placeholders.fill(module, module.__name__.removeprefix(f"{ENGINE}."))
    return module


def _spec(name: str, path: Sequence[str] | None) -> ModuleSpec | None:
    """A file of eager, or a module that it makes of names that are elsewhere."""
    return PathFinder.find_spec(name, path) or elsewhere.find(name)


def _found(path: str) -> ModuleSpec | None:
    """The module of eager by the path that it has below `torch`. None if it, or a package of it, is not there."""
    if not path:
        return importlib.util.find_spec(ENGINE)
    parent = _found(path.rpartition(".")[0])
    if parent is None:
        return None
    opened = _opened(importlib.import_module(parent.name))
    return _spec(f"{ENGINE}.{path}", vars(opened).get("__path__", []))


@final
class _Version(Distribution):
    """Says that PyTorch is installed, in the version that eager is like."""

    def read_text(self, filename: str) -> str | None:
        version = importlib.import_module(f"{ENGINE}.version").__version__
        metadata = f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {version}\n"
        return {"METADATA": metadata, "top_level.txt": NAME}.get(filename)

    def locate_file(self, path: str | PathLike[str]) -> Any:
        return CHILDREN / path
