"""Values that escape: they are used in a way that the code does not show, so that whatever is in them counts."""

from __future__ import annotations

import contextvars
import functools
import os
import weakref
from collections import deque
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from eager.core.tensor import Tensor
from eager.nn.calling import EveryModule
from eager.nn.hooks import HookTable
from eager.nn.module import Module
from eager.optim.optimizer import STEP_HOOKS, Optimizer
from graphc.capture.state.lookup import Lookup, asked_for_missing
from graphc.capture.state.objects import (
    NOWHERE,
    TABLES,
    attribute_names,
    framework_names,
    has_settings,
    hook_tables,
    is_iterator,
    is_of_users,
    is_special,
    is_state,
    namespace,
    private_names,
)  # fmt: skip
from graphc.capture.state.owners import is_user_class, is_user_code, is_user_module
from graphc.capture.state.places import (
    Attribute,
    ClassAttribute,
    Inside,
    Missing,
    Path,
    Reading,
    RequiresGrad,
    Size,
    Table,
)
from graphc.capture.state.settings import READERS, Setting
from graphc.capture.state.snapshots import CONTAINERS, MISSING, Contents, is_flat

MOST = 100_000  # elements of containers that are looked into; those of later ones are told apart by identity alone
_CACHING = type(functools.lru_cache(len))
_PARTIALS = (functools.partial, functools.partialmethod)
# special methods that a program does not come to by computing with an object
_UNUSED = frozenset(
    ("__init__", "__new__", "__del__", "__repr__", "__str__", "__reduce__", "__reduce_ex__", "__getstate__",
     "__setstate__", "__init_subclass__", "__class_getitem__", "__dir__", "__sizeof__", "__copy__", "__deepcopy__",
     "__subclasshook__", "__getattribute__", "extra_repr", "state_dict", "load_state_dict", "train", "eval")
)  # fmt: skip
_CREATING = frozenset(("__init__", "__new__", "__post_init__"))


class EscapeAnalysis(Lookup):
    """The part of the walk that looks into values."""

    def __init__(self) -> None:
        super().__init__()
        self._applied: dict[int, set[str]] = {}  # attributes of escaped objects that have been reached
        self._scanned: tuple[object, ...] | None = None  # what was loose at the last look at all of them
        self._elements = 0
        self._modules = False  # whether one has been met
        self.caches: list[Any] = []  # functions under functools.lru_cache

    def _escape(self, value: Any, path: Path) -> None:
        """A value that is used in a way that the code does not show: whatever is in it counts."""
        if isinstance(value, Tensor):
            self.names.setdefault(id(value), path.name)
            self._place(RequiresGrad, value, "", path.attribute("requires_grad"))
        elif isinstance(value, np.ndarray):
            self._place(Inside, value, "", path)
        elif isinstance(value, FunctionType):
            if value is os.getenv:
                self._escape_later(os.environ, Path("os.environ", "environ"))
            if value in READERS:
                self._setting(READERS[value], guarded=True)
            self._function(value, path, None)
        elif isinstance(value, MethodType):
            self._function_of(value, path)
        elif isinstance(value, _PARTIALS):
            for part, inner in (
                (value.func, path),
                (value.args, path.attribute("args")),
                (value.keywords, path.attribute("keywords")),
            ):
                self._escape_later(part, inner)
        elif isinstance(value, contextvars.ContextVar):
            read = functools.partial(_value_in_context, value)
            self._escape_later(self._place(Reading, read, value.set, path).before, path)
        elif isinstance(value, type):
            self._escape_class(value, path)
        elif isinstance(value, weakref.ReferenceType):
            self._escape_later(value(), Path(f"{path.shown}()", path.name))
        elif not isinstance(value, (ModuleType, BuiltinFunctionType)):
            self._escape_object(value, path)
        self._reach_named(value, path)

    def _setting(self, setting: Setting, guarded: bool) -> None:
        self._place(Reading, setting.read, setting.write, Path(setting.shown, ""), guarded)

    def _function_of(self, method: MethodType, path: Path) -> None:
        owner = method.__self__
        if isinstance(method.__func__, FunctionType):
            self._function(method.__func__, path, (owner, path.holder))
        if not isinstance(method.__func__, FunctionType) or not is_user_code(method.__func__.__code__):
            self._escape_later(owner, path.holder)

    def _escape_class(self, cls: type, path: Path) -> None:
        """A class that may be instantiated, or that a library calls."""
        for k in cls.__mro__:
            if is_user_class(k):
                for name, value in list(vars(k).items()):
                    used = name in _CREATING or (is_special(name) and name not in _UNUSED) or self._overrides(cls, name)
                    if used and isinstance(value, (FunctionType, staticmethod, classmethod)):
                        inner = path.attribute(name)
                        self._place(ClassAttribute, k, name, inner)
                        self._escape_later(self._bound(value, cls, inner, None), inner)
        self._special_methods(cls, path)

    def _overrides(self, cls: type, name: str) -> bool:
        """Whether a library that knows a base of `cls` may call its method `name`."""
        if name in _UNUSED or is_special(name):
            return False
        return any(name in vars(k) for k in cls.__mro__ if not is_user_class(k) and k is not object)

    def _escape_object(self, value: Any, path: Path) -> None:
        if isinstance(value, CONTAINERS):
            self._container(value, path)
        kind = type(value)
        if isinstance(value, _CACHING):
            self.caches.append(value)
        wrapped = namespace(value).get("__wrapped__")
        if wrapped is not None:
            self._escape_later(wrapped, path)
        if isinstance(value, Module):
            self._module(value, path)
        elif isinstance(value, Optimizer):
            self._optimizer(value, path)
        elif is_state(kind):
            for name in list(namespace(value)):
                self._reach(value, name, path)
        elif is_iterator(value) and id(value) not in self._noted:
            self.impure[f"`{path.shown}` is an iterator: it is advanced once, when the function is traced"] = None
        self._special_methods(value, path)

    def _special_methods(self, value: Any, path: Path) -> None:
        """What Python, or a library, may call of an object of a user's class, or of a user's metaclass."""
        kind = type(value)
        if any(is_user_class(k) for k in kind.__mro__):
            self._place(Attribute, value, "__class__", path.attribute("__class__"))
            for name in dict.fromkeys(n for k in kind.__mro__ if is_user_class(k) for n in vars(k)):
                if (is_special(name) and name not in _UNUSED) or self._overrides(kind, name):
                    entry = next(vars(k)[name] for k in kind.__mro__ if name in vars(k))
                    if isinstance(entry, (FunctionType, staticmethod, classmethod)):
                        self._reach(value, name, path)

    def _container(self, value: Any, path: Path) -> None:
        if isinstance(value, (list, set, dict, deque)):
            kept = self._place(Inside, value, "", path).kept
            items = kept.items if isinstance(kept, Contents) else []
        else:
            items = list(value)
        if is_flat(items):
            return
        self._elements += len(items)
        if self._elements > MOST:
            return
        names: Any = getattr(value, "_fields", None)
        keys: Any = names or (value if isinstance(value, dict) else range(len(items)))
        for key, item in zip(list(keys), items, strict=True):
            self._escape_later(item, path.attribute(key) if names else path.item(key))

    def _module(self, module: Module, path: Path) -> None:
        """A module: its mode, settings, parameters, buffers, children and hooks. Its `forward` is an override."""
        space = module.__dict__
        if not self._modules:
            self._modules = True
            for name, table in vars(EveryModule).items():
                if isinstance(table, HookTable):
                    self._hooks(table, Path(f"global {name} hooks", name))
        self._entry(space, "training", path.attribute("training"))
        for name in TABLES:
            table = space.get(name)
            if table is not None:
                self._place(Table if name == "_modules" else Size, table, "", path)
                for key in table:
                    inner = path.attribute(key)
                    self._escape_later(self._entry(table, key, inner), inner)
        for name in hook_tables(type(module)):
            if name in space:
                self._hooks(self._entry(space, name, path.attribute(name)), path.attribute(name))
                self._escape_later(module, path)  # hooks are given it
        if "forward" in space:
            inner = path.attribute("forward")
            self._escape_later(self._entry(space, "forward", inner), inner)
        missing = tuple(name for name in (*hook_tables(type(module)), "forward") if name not in space)
        self._place(Missing, space, missing, path)
        if has_settings(type(module)):
            for name in list(space):
                if not name.startswith("_"):
                    self._reach(module, name, path)

    def _hooks(self, table: Any, path: Path) -> None:
        self._place(Inside, table, "", path)
        for hook in table.values():
            self._escape_later(hook, path)

    def _optimizer(self, optimizer: Optimizer, path: Path) -> None:
        """Its parameters, settings and hooks.

        `Optimizer.step` guards the state itself; another `step` keeps what it likes.
        """
        groups = optimizer.param_groups
        if type(optimizer).step is not Optimizer.step:
            self._reach(optimizer, "state", path)
        self._place(Inside, groups, "", path.attribute("param_groups"))
        for i, group in enumerate(groups):
            for name in group:
                inner = path.attribute("param_groups").item(i).item(name)
                value = self._entry(group, name, inner)
                if isinstance(value, list):
                    self._place(Inside, value, "", inner)
        tables = optimizer._tables
        for kind in STEP_HOOKS & tables.keys():
            self._hooks(tables[kind], path.attribute(f"{kind} hooks"))
        self._place(Missing, tables, tuple(sorted(STEP_HOOKS - tables.keys())), path)

    def _apply_loose(self) -> bool:
        """Reach the attributes of escaped objects that the code names. Whether there was anything new."""
        known = (len(self._loose), len(self._probed), len(self._stored), self._reflective)
        if known == self._scanned:
            return False
        self._scanned = known
        for value, path in list(self._escaped.values()):
            self._reach_named(value, path)
        return True

    def _reach_named(self, value: Any, path: Path) -> None:
        done = self._applied.setdefault(id(value), set())
        if isinstance(value, Tensor):
            for name in self._stored:
                if is_of_users(value, name, stored=True):
                    self._entry(vars(value), name, path.attribute(name), guarded=False)
        for name in sorted(self._named(value) - done):
            done.add(name)
            self._reach(value, name, path, probe=name in self._probed)
        if self._reflective and not isinstance(value, (FunctionType, ModuleType)) and _may_get_names(value):
            space = namespace(value)
            if space is not NOWHERE:
                self._place(Size, space, "", path)  # `vars` shows names that are added later, too

    def _named(self, value: Any) -> set[str]:
        if isinstance(value, Tensor):
            absent = {name for name in self._probed if is_of_users(value, name)}  # and may be given later
            return (vars(value).keys() & self._loose) | absent
        if isinstance(value, np.ndarray) or (isinstance(value, ModuleType) and not is_user_module(value)):
            return set()
        available = set(attribute_names(value))
        if self._reflective and not isinstance(value, (FunctionType, ModuleType)):
            named = {name for name in available if not is_special(name)}
            named -= framework_names(type(value)) - self._loose
        else:
            named = available & self._loose
        if self._probed and namespace(value) is not NOWHERE and _may_get_names(value):
            named |= self._probed
        if asked_for_missing(type(value)):
            named |= {name for name in self._loose if not is_special(name)}
        return named - private_names(type(value))


def _may_get_names(value: Any) -> bool:
    """Whether users give attributes to an object like `value`, so that it matters which it does not have."""
    if isinstance(value, FunctionType):
        return is_user_code(value.__code__)
    if isinstance(value, ModuleType):
        return is_user_module(value)
    return is_user_class(value if isinstance(value, type) else type(value)) or isinstance(value, SimpleNamespace)


def _value_in_context(variable: contextvars.ContextVar[Any]) -> Any:
    try:
        return variable.get()
    except LookupError:
        return MISSING
