"""Attribute lookup as Python does it, without running anything: what `a.b` is, and every place that decides it."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from types import FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any

from eager.nn.module import Module
from graphc.capture.state.objects import NOWHERE, TABLES, has_later, is_special, namespace, of_library
from graphc.capture.state.owners import is_user_class, is_user_code, is_user_module
from graphc.capture.state.places import Attribute, ClassAttribute, Path
from graphc.capture.state.snapshots import MISSING
from graphc.capture.state.worklist import Method, Worklist


def asked_for_missing(kind: type) -> list[str]:
    """The methods of a user's class that give attributes which an object does not have."""
    found = ("__getattr__", "__getattribute__")
    return [name for name in found if any(is_user_class(k) and name in vars(k) for k in kind.__mro__)]


class Lookup(Worklist):
    """The part of the walk that takes attributes."""

    def _attribute(self, value: Any, name: str, path: Path, guarded: bool = True, probe: bool = False) -> Any:
        """What `value.name` is, with a place for everything that decides it. MISSING for what is not known."""
        if isinstance(value, ModuleType):
            if is_user_module(value):
                return self._entry(vars(value), name, path, guarded)
            return of_library(value, name)
        if isinstance(value, type):
            found = self._class_attribute(value, value.__mro__, name, path, guarded, probe, None)
            meta: type = type(value)
            if found is MISSING and is_user_class(meta):
                found = self._class_attribute(meta, meta.__mro__, name, path, guarded, probe, value)
            return found
        if isinstance(value, MethodType):
            return self._attribute(value.__func__, name, path, guarded, probe)
        kind = type(value)
        if is_user_class(kind):
            self._place(Attribute, value, "__class__", path.holder.attribute("__class__"))
        space = namespace(value)
        entry = next((vars(k)[name] for k in kind.__mro__ if name in vars(k)), MISSING)
        if isinstance(entry, MemberDescriptorType):
            return self._place(Attribute, value, name, path, guarded).before
        if isinstance(value, Module):
            for table in TABLES:
                if name in space.get(table, ()):
                    return self._entry(space[table], name, path, guarded)
            if not guarded or (probe and entry is MISSING and name not in space):
                for table in TABLES:  # where what is put there may go
                    if table in space:
                        self._entry(space[table], name, path, guarded)
        if name in space:
            return self._entry(space, name, path, guarded)
        if entry is MISSING:
            for special in () if is_special(name) else asked_for_missing(kind):
                self._reach(value, special, path.holder)
                probe = True
            if probe:
                if space is not NOWHERE:
                    self._entry(space, name, path, guarded)
                self._class_attribute(kind, kind.__mro__, name, path, guarded, True, value)
            return MISSING
        if space is not NOWHERE and not is_special(name):
            self._entry(space, name, path, guarded)
        return self._class_attribute(kind, kind.__mro__, name, path, guarded, probe, value)

    def _class_attribute(
        self, cls: type, mro: Iterable[type], name: str, path: Path, guarded: bool, probe: bool, owner: Any
    ) -> Any:
        """`name` in the namespaces of a class and its bases; for `owner`, or for the class itself."""
        found = MISSING
        for k in mro:
            value = vars(k).get(name, MISSING)
            if (
                is_user_class(k)
                and (value is not MISSING or found is MISSING)
                and (value is not MISSING or probe or has_later(mro, k, name))
            ):
                shown = path if owner is None else Path(path.shown, path.name)
                self._place(ClassAttribute, k, name, shown, guarded)
            if value is not MISSING:
                bound = self._bound(value, cls, path, owner)
                found = bound if found is MISSING else found
        return found

    def _bound(self, value: Any, cls: type, path: Path, owner: Any) -> Any:
        """What the entry of a class gives when it is taken from `owner`; the code that this runs is reached."""
        if isinstance(value, staticmethod):
            return value.__func__
        if isinstance(value, classmethod):
            function: Any = value.__func__
            self._later_function(function, path, (cls, Path(cls.__name__, cls.__name__)))
            return Method(function)
        if isinstance(value, FunctionType):
            self._later_function(value, path, (cls if owner is None else owner, path.holder))
            return Method(value)
        if isinstance(value, property):
            for function in (value.fget, value.fset):
                if isinstance(function, FunctionType) and owner is not None:
                    self._later_function(function, path, (owner, path.holder))
            return MISSING
        if isinstance(value, functools.cached_property):
            if owner is not None and isinstance(value.func, FunctionType):
                self._later_function(value.func, path, (owner, path.holder))
            return MISSING
        if owner is not None and hasattr(type(value), "__get__"):
            if callable(value):
                return Method(value)
            self._escape_later(value, path)
            self._escape_later(owner, path.holder)
            return MISSING
        return value

    def _reach(self, value: Any, name: str, path: Path, probe: bool = False) -> None:
        inner = path.attribute(name)
        found = self._attribute(value, name, inner, probe=probe)
        if isinstance(found, Method):
            self._escape_if_foreign(found, value, inner)
        else:
            self._escape_later(found, inner)

    def _escape_if_foreign(self, method: Method, owner: Any, path: Path) -> None:
        function = method.function
        if not (isinstance(function, FunctionType) and is_user_code(function.__code__)):
            self._escape_later(owner, path.holder)
