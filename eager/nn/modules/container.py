"""Modules of modules: Sequential, ModuleList, ModuleDict."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any, Self, overload

from eager.nn.module import Module, indented, typename

__all__ = ["ModuleDict", "ModuleList", "Sequential"]


def _shown(value: Any) -> str:
    return f"<class '{typename(type(value))}'>"


class _Numbered(Module):
    """Submodules in order."""

    def _part(self, members: list[tuple[str, Module]]) -> Any:
        """A container of some of these, named as here."""
        make: Any = type(self)
        return make([module for _, module in members])

    def _name_at(self, index: Any) -> str:
        index = operator.index(index)
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} is out of range")
        return next(islice(self._modules, index % len(self), None))

    @overload
    def __getitem__(self, index: int) -> Module: ...

    @overload
    def __getitem__(self, index: slice) -> Self: ...

    def __getitem__(self, index: int | slice) -> Any:
        """The module at a position, or a container of those in a slice. Raises IndexError."""
        if isinstance(index, slice):
            return self._part(list(self._modules.items())[index])
        return self._modules[self._name_at(index)]

    def __setitem__(self, index: int, module: Module) -> None:
        """Put another module at a position. Raises IndexError."""
        setattr(self, self._name_at(index), module)

    def __delitem__(self, index: int | slice) -> None:
        """Remove the module at a position, or those in a slice; the rest is renumbered. Raises IndexError."""
        for name in list(self._modules)[index] if isinstance(index, slice) else [self._name_at(index)]:
            delattr(self, name)
        self._renumber(self._modules.values())

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def append(self, module: Module) -> Any:
        """Add a module at the end. Returns the container."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Any:
        """Add modules at the end. Returns the container."""
        for module in list(modules):
            self.append(module)
        return self

    def _renumber(self, modules: Iterable[Module]) -> None:
        listed = list(modules)
        self._modules.clear()
        for module in listed:
            self.append(module)

    def pop(self, key: int | slice) -> Any:
        """Remove and return the module at `key`."""
        found = self[key]
        del self[key]
        return found


class Sequential(_Numbered):
    """Modules called one after the other: `Sequential(a, b)`, or named by `Sequential(OrderedDict(x=a, y=b))`."""

    def __init__(self, *modules: Any):
        super().__init__()
        if len(modules) == 1 and isinstance(modules[0], OrderedDict):
            for name, module in modules[0].items():
                self.add_module(name, module)
        else:
            for i, module in enumerate(modules):
                self.add_module(str(i), module)

    def forward(self, input: Any) -> Any:
        """The result of the last module."""
        for module in self._modules.values():
            input = module(input)
        return input

    def _part(self, members: list[tuple[str, Module]]) -> Any:
        return type(self)(OrderedDict(members))

    def insert(self, index: int, module: Module) -> Sequential:
        """Put `module` before position `index`. Returns the container."""
        if not -len(self) <= index <= len(self):
            raise IndexError(f"Index out of range: {index}")
        modules = list(self)
        modules.insert(index, module)
        self._renumber(modules)
        return self

    def __add__(self, other: Any) -> Sequential:
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
        return Sequential(*self, *other)

    def __iadd__(self, other: Any) -> Sequential:
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
        return self.extend(other)

    def __mul__(self, other: Any) -> Sequential:
        return Sequential(*self.__repeated(other))

    __rmul__ = __mul__

    def __imul__(self, other: Any) -> Sequential:
        return self.extend(self.__repeated(other)[len(self) :])

    def __repeated(self, times: Any) -> list[Module]:
        if not isinstance(times, int):
            raise TypeError(f"unsupported operand type(s) for *: {_shown(self)} and {_shown(times)}")
        if times <= 0:
            raise ValueError(f"Non-positive multiplication factor {times} for {_shown(self)}")
        return [*self] * times


class ModuleList(_Numbered):
    """A list of modules whose parameters are found. It is not called."""

    def __init__(self, modules: Iterable[Module] | None = None):
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def extend(self, modules: Iterable[Module]) -> ModuleList:
        """Add modules at the end. Returns the list."""
        if not isinstance(modules, Iterable):
            raise TypeError(f"ModuleList.extend should be called with an iterable, but got {type(modules).__name__}")
        return super().extend(modules)

    def insert(self, index: int, module: Module) -> None:
        """Put `module` before position `index`."""
        modules = list(self)
        modules.insert(index, module)
        self._renumber(modules)

    def __iadd__(self, modules: Iterable[Module]) -> ModuleList:
        return self.extend(modules)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList(chain(self, other))

    def __repr__(self) -> str:
        runs: list[tuple[int, int, str]] = []
        for i, text in enumerate(map(repr, self)):
            if runs and runs[-1][2] == text:
                runs[-1] = (runs[-1][0], i, text)
            else:
                runs.append((i, i, text))
        if not runs:
            return f"{self._get_name()}()"
        lines = [
            f"({first}): {text}" if first == last else f"({first}-{last}): {last - first + 1} x {text}"
            for first, last, text in runs
        ]
        return f"{self._get_name()}(\n  " + "\n  ".join(map(indented, lines)) + "\n)"


class ModuleDict(Module):
    """Modules by name whose parameters are found. It is not called."""

    def __init__(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] | None = None):
        super().__init__()
        if modules is not None:
            self.update(modules)

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Add or replace the modules of a mapping, or of pairs."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                "ModuleDict.update should be called with an iterable of key/value pairs, but got "
                + type(modules).__name__
            )
        pairs: Any = modules.items() if isinstance(modules, (Mapping, ModuleDict)) else modules
        for k, pair in enumerate(pairs):
            if not isinstance(pair, Iterable):
                raise TypeError(f"ModuleDict update sequence element #{k} should be Iterable; is{type(pair).__name__}")
            found = tuple(pair)
            if len(found) != 2:
                raise ValueError(f"ModuleDict update sequence element #{k} has length {len(found)}; 2 is required")
            self[found[0]] = found[1]

    def __getitem__(self, name: str) -> Module:
        return self._modules[name]

    def __setitem__(self, name: str, module: Module) -> None:
        self.add_module(name, module)

    def __delitem__(self, name: str) -> None:
        del self._modules[name]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, name: str) -> bool:
        return name in self._modules

    def pop(self, key: str) -> Module:
        """Remove and return the module at `key`."""
        found = self[key]
        del self[key]
        return found

    def clear(self) -> None:
        """Remove all modules."""
        self._modules.clear()

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._modules.keys()

    def items(self) -> Iterable[tuple[str, Module]]:
        """The names with their modules."""
        return self._modules.items()

    def values(self) -> Iterable[Module]:
        """The modules."""
        return self._modules.values()
