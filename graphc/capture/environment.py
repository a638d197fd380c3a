"""What a function can see besides its arguments: its own object, closure variables and the globals that it names.

Tensors found there get their names from here. Python values found there are built into a graph, so they are guarded:
numbers and strings, lists and dicts of them, and those among the attributes of objects and modules.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from eager.tensor import Tensor
from graphc.capture.location import shown_file
from graphc.capture.tracer import Guard

SCALARS = (bool, int, float, complex, str, bytes, type(None))
MOST = 64  # elements of a container, attributes of an object, functions followed
_MISSING = object()


class Visible(NamedTuple):
    """A variable that a function can see: its name, its value, and how to read it again."""

    name: str
    value: Any
    read: Callable[[], Any]


def visible(fn: Callable[..., Any]) -> list[Visible]:
    """The variables of `fn`, and of the user's functions that it can see, each once."""
    found: list[Visible] = []
    seen: set[int] = set()
    stack = [fn]
    while stack and len(seen) < MOST:
        function = stack.pop()
        code = getattr(_plain(function), "__code__", None)
        if id(function) in seen or (function is not fn and (code is None or shown_file(code) is None)):
            continue
        seen.add(id(function))
        for variable in _variables(function):
            found.append(variable)
            if isinstance(variable.value, (types.FunctionType, types.MethodType)):
                stack.append(variable.value)
    return found


def _plain(fn: Any) -> Any:
    return inspect.unwrap(getattr(fn, "__func__", fn))


def _variables(fn: Callable[..., Any]) -> Iterator[Visible]:
    owner = getattr(fn, "__self__", fn if not isinstance(fn, types.FunctionType) else None)
    if owner is not None:
        yield Visible("", owner, lambda: owner)
    function = _plain(fn)
    code = getattr(function, "__code__", None)
    if code is None:
        return
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield Visible(name, cell.cell_contents, lambda cell=cell: cell.cell_contents)
        except ValueError:
            continue  # a variable that is not assigned yet
    names = function.__globals__
    for name in code.co_names:
        if name in names:
            yield Visible(name, names[name], lambda name=name, names=names: names.get(name, _MISSING))


# --- names of tensors


def tensor_names(fn: Callable[..., Any]) -> dict[int, str]:
    """id of tensor -> the variable, or the module's attribute path, by which `fn` knows it."""
    names: dict[int, str] = {}
    for name, value, _ in visible(fn):
        for path, tensor in _tensors(value):
            names.setdefault(id(tensor), f"{name}.{path}" if name and path else name or path)
    return names


def _tensors(value: Any) -> Iterator[tuple[str, Tensor]]:
    if isinstance(value, Tensor):
        yield "", value
    elif hasattr(value, "named_parameters") and not isinstance(value, type):
        yield from value.named_parameters()
        yield from value.named_buffers()
    elif isinstance(value, (list, tuple)):
        yield from ((str(i), item) for i, item in enumerate(value[:MOST]) if isinstance(item, Tensor))


# --- guards on Python values


def guards_of(fn: Callable[..., Any]) -> list[Guard]:
    """Guards on the Python values that `fn` can see: a call after one has changed traces again."""
    guards: list[Guard] = []
    seen: set[int] = set()
    for _, value, read in visible(fn):
        if isinstance(value, SCALARS):
            guards.append(Guard(read, value))
        elif id(value) not in seen:
            seen.add(id(value))
            guards += _guards_inside(value, read)
    return guards


def _guards_inside(value: Any, read: Callable[[], Any]) -> Iterator[Guard]:
    if isinstance(value, (list, tuple, set, frozenset)):
        if len(value) <= MOST and all(isinstance(item, SCALARS) for item in value):
            yield Guard(read, type(value)(value))
    elif isinstance(value, dict):
        if len(value) <= MOST and all(isinstance(item, SCALARS) for item in value.values()):
            yield Guard(read, dict(value))
    elif hasattr(value, "named_modules") and not isinstance(value, type):
        for _, module in value.named_modules():
            yield from _attributes(module)
    elif not isinstance(value, (type, types.ModuleType, types.FunctionType, types.MethodType, Tensor)):
        yield from _attributes(value)


def _attributes(owner: Any) -> Iterator[Guard]:
    """One guard on all scalar attributes of an object."""
    attributes = getattr(owner, "__dict__", {})
    scalars = {k: v for k, v in attributes.items() if isinstance(v, SCALARS) and not k.startswith("_")}
    if scalars and len(scalars) <= MOST:
        names = tuple(scalars)
        yield Guard(lambda: [attributes.get(name, _MISSING) for name in names], list(scalars.values()))
