"""What makes any object again: as `pickle` has it in protocol 2, under PyTorch's names for what is PyTorch's."""

from __future__ import annotations

import copyreg
import functools
import pickle
from dataclasses import dataclass
from types import BuiltinFunctionType, FunctionType
from typing import Any, final

from eager.core import homes

NO_SETTER = "Can't pickle {kind} object: its __reduce__ gives a function that sets its state"
SETTER = 5  # where in what `__reduce__` gives


@final
@dataclass(frozen=True)
class Global:
    """A name that a pickle refers to: "module name"."""

    name: str


@final
@dataclass(frozen=True)
class Call:
    """What makes a value when it is loaded: a function, its arguments, then members, items that are set, and a state.

    function  its name, or what is emitted as one
    new       whether it is a class, of which a new object is made that is not initialized
    """

    function: Any
    arguments: tuple[Any, ...]
    items: Any = ()
    state: Any = None
    members: Any = ()
    new: bool = False


def is_named(value: Any) -> bool:
    """Whether `pickle` keeps a value by its name."""
    return (
        isinstance(value, (type, FunctionType))
        or hasattr(value, "__wrapped__")
        or (isinstance(value, BuiltinFunctionType) and not hasattr(type(value.__self__), value.__name__))
    )


def global_of(value: Any) -> Global | Call:
    """The name of a class or function. Raises what `pickle` raises for one that its name does not lead to."""
    if value in _SINGLE_TYPES:
        return Call("builtins type", (_SINGLE_TYPES[value],))
    module, name = value.__module__, value.__qualname__
    if homes.is_ours(module) and homes.found(*(names := homes.pytorch_name(value))) == value:
        return _by_parts(*names)
    pickle.dumps(value, 2)
    return _by_parts(pickle.whichmodule(value, name), name)


_SINGLE_TYPES: dict[Any, Any] = {type(x): x for x in (None, NotImplemented, ...)}


def _by_parts(module: str, name: str) -> Global | Call:
    """Protocol 2 has no names with dots in them."""
    outer, _, inner = name.rpartition(".")
    return Call("builtins getattr", (_by_parts(module, outer), inner)) if outer else Global(f"{module} {name}")


def call_of(value: Any) -> Call | Global:
    """What makes `value` again, by its `__reduce_ex__`. Raises what `pickle` raises for one that has no such thing."""
    if is_named(value):
        return global_of(value)
    reduce = copyreg.dispatch_table.get(type(value))
    found: Any = reduce(value) if reduce is not None else value.__reduce_ex__(2)
    if isinstance(found, str):
        return _by_parts(pickle.whichmodule(value, found), found)
    if len(found) > SETTER and found[SETTER] is not None:
        raise pickle.PicklingError(NO_SETTER.format(kind=type(value).__name__))
    parts: tuple[Any, ...] = (*found[:SETTER], None, None, None)
    function, arguments, state, members, items = parts[:SETTER]
    if state is not None and hasattr(type(value), "_as_pytorch_has_it"):
        state = value._as_pytorch_has_it(state)
    rest = {"items": items or (), "members": members or (), "state": state}
    name = getattr(function, "__name__", "")
    if name == "__newobj__":
        return Call(arguments[0], tuple(arguments[1:]), new=True, **rest)
    if name == "__newobj_ex__":
        kind, positional, keywords = arguments
        return Call(functools.partial(kind.__new__, kind, *positional, **keywords), (), **rest)
    return Call(function, tuple(arguments), **rest)
