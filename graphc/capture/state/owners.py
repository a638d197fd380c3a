"""Whose code it is: the user's, which is read, or a library's, taken as constant. And what no guard can hold.

An installed package is read like the user's code if it is written for tensors: if `eager` (under whatever name), or
something of it, is among the globals of one of its modules, or the code there imports it. Layers and functions of such
packages keep options, caches and state as the user's do. Any other package cannot know a tensor from an array of its
own, and is taken as constant.
"""

from __future__ import annotations

import functools
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import PurePath
from types import CodeType, FunctionType, ModuleType
from typing import Any

from eager.core.homes import name_of
from graphc.capture.location import shown_file

_LIBRARY_FOLDERS = ("site-packages", "dist-packages")
_STANDARD = sysconfig.get_paths()["stdlib"]
_OWN = ("eager", "graphc")
_FOUNDATION = ("numpy", "scipy", "jax", "jaxlib", "networkx")  # what eager and graphc are made with

# functions whose results change from call to call though nothing of the program does: module -> names, None for all
_IMPURE: dict[str, frozenset[str] | None] = {
    "random": None,
    "secrets": None,
    "numpy.random": None,
    "time": frozenset(
        ("time", "time_ns", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "process_time",
         "process_time_ns", "thread_time", "thread_time_ns", "localtime", "gmtime", "ctime", "strftime", "sleep")
    ),
    "datetime": frozenset(("now", "today", "utcnow")),
    "uuid": frozenset(("uuid1", "uuid4")),
    "os": frozenset(("urandom", "getpid", "getloadavg", "times", "listdir", "stat", "getcwd")),
    "builtins": frozenset(("input", "open")),
}  # fmt: skip
_PUBLIC = {"_io": "builtins", "_random": "random", "nt": "os", "posix": "os"}  # where their functions are documented


def is_user_file(path: str) -> bool:
    """Whether a source file is read: one of neither the standard library nor an installed package without tensors."""
    package = _package_of(path)
    if package is None:
        return _is_outside(path)
    return package in _with_tensors or (package not in _FOUNDATION and _uses_tensors(package, len(sys.modules)))


@functools.lru_cache(maxsize=4096)
def _package_of(path: str) -> str | None:
    """The name of the installed package, or module, that a source file is of; None if it is not installed."""
    if not any(folder in path for folder in _LIBRARY_FOLDERS):
        return None
    parts = PurePath(path).parts
    at = next((k for k in reversed(range(len(parts))) if parts[k] in _LIBRARY_FOLDERS), None)
    return None if at is None or at + 1 == len(parts) else parts[at + 1].removesuffix(".py")


@functools.lru_cache(maxsize=4096)
def _is_outside(path: str) -> bool:
    return not path.startswith(("<frozen", _STANDARD))


_with_tensors: set[str] = set()  # a package that has come to know tensors goes on to


@functools.lru_cache(maxsize=256)
def _uses_tensors(package: str, loaded: int) -> bool:
    """Whether one of the modules of a package knows `eager`; `loaded` modules may be more the next time."""
    names = {name for name, module in list(sys.modules.items()) if _is_own_module(module)}
    top = {name.partition(".")[0] for name in names}  # also "torch", where users call it that
    found = any(_knows(module, top) for module in _modules_of(package))
    if found:
        _with_tensors.add(package)
    return found


def _modules_of(package: str) -> Iterator[ModuleType]:
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == package and isinstance(module, ModuleType):
            yield module


def _is_own_module(value: Any) -> bool:
    return isinstance(value, ModuleType) and name_of(value).partition(".")[0] in _OWN


def _knows(module: ModuleType, top: set[str]) -> bool:
    """Whether a module has something of `eager`, or code that imports it by one of the names `top`."""
    for value in list(vars(module).values()):
        if _is_own_module(value):
            return True
        owner = getattr(value, "__module__", None) if isinstance(value, (type, FunctionType)) else None
        if isinstance(owner, str) and owner.partition(".")[0] in top:
            return True
        inside = vars(value).values() if isinstance(value, type) else (value,)
        if any(isinstance(f, FunctionType) and not top.isdisjoint(f.__code__.co_names) for f in inside):
            return True
    return False


def is_user_code(code: CodeType) -> bool:
    """Whether the user has written `code`, or a package for tensors; not eager, graphc or the standard library."""
    return shown_file(code) is not None and is_user_file(code.co_filename)


def is_installed(code: CodeType) -> bool:
    """Whether `code` is of an installed package."""
    return _package_of(code.co_filename) is not None


def is_user_module(module: ModuleType) -> bool:
    """Whether the user has written `module`, or it is of a package for tensors."""
    name = name_of(module)
    if name.partition(".")[0] in _OWN or name in sys.builtin_module_names:
        return False
    file = getattr(module, "__file__", None)
    if file is None:
        return getattr(getattr(module, "__spec__", None), "origin", None) not in ("built-in", "frozen")
    return is_user_file(file)


_MADE_BY_CODE = 1 << 9  # of the flags of a class: a class statement, or a call of `type`, has made it


def is_user_class(cls: type) -> bool:
    """Whether the user has written `cls`, or it is of a package for tensors."""
    name = cls.__module__
    if name == "builtins":  # as for `exec` in a namespace without a name
        return bool(cls.__flags__ & _MADE_BY_CODE)
    if name.partition(".")[0] in _OWN:
        return False
    module = sys.modules.get(name)
    return module is None or is_user_module(module)


def is_impure(value: Any) -> bool:
    """Whether `value` is a function that gives another result at each call, as `random.random` and `time.time`."""
    owner = getattr(value, "__self__", getattr(value, "__objclass__", None))
    if owner is None or isinstance(owner, ModuleType):
        module = getattr(value, "__module__", None)
    else:
        module = getattr(owner if isinstance(owner, type) else type(owner), "__module__", None)
    if not isinstance(module, str) or not callable(value) or isinstance(value, type):
        return False
    if module.startswith("numpy.random"):
        module = "numpy.random"
    names = _IMPURE.get(_PUBLIC.get(module, module), frozenset())
    return names is None or getattr(value, "__name__", "") in names
