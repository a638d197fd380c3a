"""Whose code it is: the user's, which is read, or a library's, taken as constant. And what no guard can hold."""

from __future__ import annotations

import functools
import sys
import sysconfig
from types import CodeType, ModuleType
from typing import Any

from graphc.capture.location import shown_file

_LIBRARY_FOLDERS = ("site-packages", "dist-packages")
_STANDARD = sysconfig.get_paths()["stdlib"]

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


@functools.lru_cache(maxsize=4096)
def is_user_file(path: str) -> bool:
    """Whether a source file belongs to neither the standard library nor an installed package."""
    if path.startswith("<frozen") or any(folder in path for folder in _LIBRARY_FOLDERS):
        return False
    return not path.startswith(_STANDARD)


def is_user_code(code: CodeType) -> bool:
    """Whether the user has written `code`; not eager, graphc, the standard library or an installed package."""
    return shown_file(code) is not None and is_user_file(code.co_filename)


def is_user_module(module: ModuleType) -> bool:
    """Whether the user has written `module`."""
    name = module.__name__
    if name.partition(".")[0] in ("eager", "graphc") or name in sys.builtin_module_names:
        return False
    file = getattr(module, "__file__", None)
    if file is None:
        return getattr(getattr(module, "__spec__", None), "origin", None) not in ("built-in", "frozen")
    return is_user_file(file)


@functools.lru_cache(maxsize=4096)
def is_user_class(cls: type) -> bool:
    """Whether the user has written `cls`."""
    name = cls.__module__
    if name.partition(".")[0] in ("eager", "graphc", "builtins"):
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
