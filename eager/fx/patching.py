"""What is changed while a function is traced, and put back after it."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Set
from typing import Any

from eager.fx.node import map_aggregate
from eager.fx.proxy import Proxy

# (id of the globals, name) -> the globals: functions that `wrap` has named
wrapped_functions: dict[tuple[int, str], dict[str, Any]] = {}
wrapped_methods: list[tuple[type, str]] = []
_ABSENT = object()


class Patcher:
    """Changes entries of dicts and attributes of classes, and puts all back at the end of its block."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []
        self._visited: set[int] = set()

    def __enter__(self) -> Patcher:
        return self

    def __exit__(self, *error: object) -> None:
        while self._undo:
            self._undo.pop()()

    def patch(self, scope: dict[str, Any], name: str, value: Any) -> None:
        """Let the entry `name` of globals be `value`."""
        before = scope.get(name, _ABSENT)

        def undo() -> None:
            if before is _ABSENT:
                scope.pop(name, None)
            else:
                scope[name] = before

        self._undo.append(undo)
        scope[name] = value

    def patch_method(self, cls: type, name: str, value: Any, deduplicate: bool = True) -> None:
        """Let the method `name` of a class be `value`. deduplicate: for those who call PyTorch's."""
        before = vars(cls).get(name, _ABSENT)

        def undo() -> None:
            if before is _ABSENT:
                delattr(cls, name)
            else:
                setattr(cls, name, before)

        self._undo.append(undo)
        setattr(cls, name, value)

    def patch_wrapped(self) -> None:
        """Let calls of the functions and methods that `wrap` has named be written down."""
        for (_, name), scope in [*wrapped_functions.items()]:
            function = scope.get(name, getattr(builtins, name, None))
            if function is not None:
                self.patch(scope, name, recording(function))
        for cls, name in wrapped_methods:
            self.patch_method(cls, name, recording_method(cls, name))

    def autowrap(self, scope: dict[str, Any], ids: Set[int]) -> None:
        """Let calls of the functions with these ids that globals name be written down."""
        if id(scope) in self._visited:
            return
        self._visited.add(id(scope))
        for name, value in [*scope.items()]:
            if name[0] != "_" and callable(value) and id(value) in ids:
                self.patch(scope, name, recording(value))


def first_proxy(*values: Any) -> Proxy | None:
    """The first proxy in nests of arguments."""
    found: list[Proxy] = []

    def note(value: Any) -> Any:
        if isinstance(value, Proxy):
            found.append(value)
        return value

    map_aggregate(values, note)
    return found[0] if found else None


def recording(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, whose calls with proxies are written down."""
    if getattr(function, "_fx_already_patched", False):
        return function

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        proxy = first_proxy(args, kwargs)
        if proxy is None:
            return function(*args, **kwargs)
        made = proxy.tracer.create_proxy("call_function", function, args, kwargs)
        made.node.meta["is_wrapped"] = True
        return made

    wrapped._fx_already_patched = True  # type: ignore[attr-defined]
    return wrapped


def recording_method(cls: type, name: str) -> Callable[..., Any]:
    """The method of a class, calls of which with proxies are written down."""
    function = getattr(cls, name)

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        proxy = first_proxy(args, kwargs)
        if proxy is None:
            return function(*args, **kwargs)
        return proxy.tracer.create_proxy("call_method", name, args, kwargs)

    return wrapped
