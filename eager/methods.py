"""Giving Tensor its methods, and the package its functions: by the tables in `eager.names`, each at its first use."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, final

from eager import names
from eager.dtypes import type_name
from eager.tensor import Tensor


def _entries(table: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """(public name, module, attribute) of each entry."""
    for module, text in table.items():
        for entry in text.split():
            name, _, attribute = entry.partition("=")
            yield name, module, attribute or name


FUNCTIONS = {name: (m, a) for table in (names.BOTH, names.FUNCTIONS) for name, m, a in _entries(table)}
METHODS = {name: (m, a) for table in (names.BOTH, names.METHODS) for name, m, a in _entries(table)}
PROPERTIES = {name: (m, a) for name, m, a in _entries(names.PROPERTIES)}
WITH_OUT = frozenset(names.OUT.split())


def _found(module: str, attribute: str) -> Any:
    """The object behind an entry: an attribute of the module, or an entry of its table METHODS."""
    loaded = importlib.import_module(f"eager.{module}")
    table = getattr(loaded, "METHODS", {})
    return table[attribute] if attribute in table else getattr(loaded, attribute)


def function(name: str) -> Any:
    """torch.<name>. KeyError if no table has it."""
    found = _found(*FUNCTIONS[name])
    if name in WITH_OUT:
        from eager.outputs import with_out

        return with_out(name, found)
    return found


def in_place_function(name: str) -> Callable[..., Any]:
    """torch.<name>, the method of that name as a function."""

    def function(input: Tensor, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(input, Tensor):
            raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type_name(input)}")
        return getattr(input, name)(*args, **kwargs)

    function.__name__ = name
    function.__doc__ = f"`input.{name}(...)`. As `torch.{name}`."
    return function


@final
class _Later:
    """An attribute of Tensor that puts the real one in its own place when it is first looked up."""

    __slots__ = ("name", "resolve")

    def __init__(self, name: str, resolve: Callable[[], Any]):
        self.name = name
        self.resolve = resolve

    def __get__(self, instance: Any, owner: type) -> Any:
        real = self.resolve()
        setattr(Tensor, self.name, real)
        return real.__get__(instance, owner)


def install() -> None:
    """Give Tensor what the tables say. Runs after `eager.install`, whose plain forms some of these replace."""
    for name, where in METHODS.items():
        setattr(Tensor, name, _Later(name, lambda where=where: _found(*where)))
    for name, where in PROPERTIES.items():
        setattr(Tensor, name, _Later(name, lambda where=where: property(_found(*where))))
    for name, target in names.ALIASES.items():
        setattr(Tensor, name, _alias(target))
        if hasattr(Tensor, f"{target}_"):
            setattr(Tensor, f"{name}_", _alias(f"{target}_"))
    for name, value in names.ALIKE.items():
        setattr(Tensor, name, value)


def _alias(target: str) -> Callable[..., Any]:
    def method(self: Tensor, *operands: Any) -> Any:
        return getattr(self, target)(*operands)

    method.__name__ = target
    return method
