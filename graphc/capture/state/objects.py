"""How objects keep their attributes: in themselves, in their class, in slots, in the tables of a module."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable, Iterator
from types import FunctionType, GeneratorType, MemberDescriptorType, ModuleType
from typing import Any

from eager.core.homes import name_of
from eager.nn.calling import Called
from eager.nn.hooks import HookTable
from eager.nn.module import Module
from eager.optim.optimizer import Optimizer
from graphc.capture.state.owners import is_user_class
from graphc.capture.state.snapshots import MISSING, SCALARS, SEQUENCES

TABLES = ("_parameters", "_buffers", "_modules")
NOWHERE: dict[str, Any] = {}  # the namespace of what has none


def namespace(value: Any) -> dict[str, Any]:
    """The attributes that are kept in an object itself."""
    try:
        found = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return NOWHERE
    return found if isinstance(found, dict) else NOWHERE


def attribute_names(value: Any) -> Iterator[str]:
    if isinstance(value, type):
        for k in value.__mro__:
            if is_user_class(k):
                yield from vars(k)
        return
    space = namespace(value)
    yield from space
    if isinstance(value, ModuleType):
        return
    if isinstance(value, Module):
        for table in TABLES:
            yield from space.get(table, ())
    for k in type(value).__mro__:
        if is_user_class(k):
            yield from vars(k)
        else:
            yield from (name for name, entry in vars(k).items() if isinstance(entry, MemberDescriptorType))


def of_library(module: ModuleType, name: str) -> Any:
    """What a library's module has by this name: its submodule, if it is loaded, or what `eager` loads when asked."""
    if name in vars(module):
        return vars(module)[name]
    if name_of(module).partition(".")[0] == "eager":
        return getattr(module, name, MISSING)
    return sys.modules.get(f"{module.__name__}.{name}", MISSING)


def has_later(mro: Iterable[type], cls: type, name: str) -> bool:
    """Whether a class after `cls` has `name`, so that one added to `cls` would hide it."""
    order = list(mro)
    return any(name in vars(k) for k in order[order.index(cls) + 1 :])


def is_of_users(tensor: Any, name: str, stored: bool = False) -> bool:
    """Whether `tensor.name` is an attribute that users have given it, or may give it; if `stored`, whether they do."""
    kind = getattr(type(tensor), name, MISSING)
    return kind is MISSING or name in vars(tensor) or (stored and not hasattr(type(kind), "__set__"))


def has_item(value: Any, key: Any) -> bool:
    if is_user_class(type(value)):
        return False  # its own __getitem__ decides
    if isinstance(value, dict):
        return isinstance(key, SCALARS)
    return isinstance(value, SEQUENCES) and type(key) is int and -len(value) <= key < len(value)


def is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


@functools.lru_cache(maxsize=1024)
def hook_tables(cls: type) -> tuple[str, ...]:
    """The attributes in which a module of this class keeps the hooks that its calls run."""
    return tuple(n for k in cls.__mro__ if k is Called for n, v in vars(k).items() if isinstance(v, HookTable))


@functools.lru_cache(maxsize=1024)
def framework_names(cls: type) -> frozenset[str]:
    """The attributes in which eager keeps what is guarded as what it is: a module's tables, an optimizer's state."""
    if issubclass(cls, Module):
        return frozenset(vars(Module())) - {"training"}
    return frozenset(("state", "param_groups")) if issubclass(cls, Optimizer) else frozenset()


@functools.lru_cache(maxsize=1024)
def private_names(cls: type) -> frozenset[str]:
    """The private attributes that a class of the standard library uses by itself: what a logger has looked up."""
    own = [k for k in cls.__mro__ if k.__module__.partition(".")[0] in sys.stdlib_module_names and k is not object]
    code = [f.__code__ for k in own for f in vars(k).values() if isinstance(f, FunctionType)]
    return frozenset(n for c in code for n in c.co_names if n.startswith("_") and not is_special(n))


@functools.lru_cache(maxsize=1024)
def has_settings(cls: type) -> bool:
    """Whether a module's `forward`, or a base's that it calls, is eager's and reads attributes of its own."""
    return any("forward" in vars(k) for k in cls.__mro__ if not is_user_class(k) and k is not Module)


@functools.lru_cache(maxsize=1024)
def is_state(cls: type) -> bool:
    """Whether an object is all state: a schedule or a scaler of eager, or a collection with its data in attributes."""
    if any(k.__module__.startswith(("eager.optim", "eager.amp")) for k in cls.__mro__):
        return True
    return cls.__module__ in ("collections", "os") and not is_user_class(cls)


def is_iterator(value: Any) -> bool:
    """Whether `value` gives another element each time that it is asked."""
    kind = type(value)
    return isinstance(value, GeneratorType) or (
        hasattr(kind, "__next__") and hasattr(kind, "__iter__") and not is_user_class(kind)
    )
