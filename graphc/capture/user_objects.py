"""Objects of the user's classes, as `Output(loss, logits)`, modules and functions in results: a call returns its own.

Only those are taken apart that the function has made, and that hold what is traced; any other is returned as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from types import FunctionType, MemberDescriptorType, SimpleNamespace
from typing import Any, TypeGuard

from eager.core.tensor import Tensor
from eager.nn.module import Module
from graphc import errors
from graphc.capture import closures
from graphc.capture.hooks import is_traced_handle
from graphc.capture.number import Number
from graphc.capture.state.objects import namespace
from graphc.capture.state.owners import is_user_class, is_user_code
from graphc.capture.tree import Opened, children, is_leaf
from graphc.ir import Symbol


def attributes(value: Any) -> list[tuple[str, Any]] | None:
    """(name, value) of what an object keeps in itself.

    None for all but modules, plain objects of users' classes, and users' functions.
    """
    kind: Any = type(value)
    if _is_user_function(value):
        return closures.parts(value)
    known = kind is SimpleNamespace or isinstance(value, Module)
    if not known and (not is_user_class(kind) or isinstance(value, (type, BaseException))):
        return None
    if kind is not SimpleNamespace and kind.__new__ is not object.__new__:
        return None  # only its own __new__ can make one
    own = [vars(k) for k in kind.__mro__ if is_user_class(k)]
    slots = [n for space in own for n, v in space.items() if isinstance(v, MemberDescriptorType)]
    return [*namespace(value).items(), *((n, getattr(value, n)) for n in slots if hasattr(value, n))]


def _is_user_function(value: Any) -> TypeGuard[FunctionType]:
    return type(value) is FunctionType and is_user_code(value.__code__)


def holds(value: Any, wanted: Callable[[Any], bool]) -> bool:
    """Whether a leaf that is `wanted` is in `value`, or in what that holds."""
    seen: set[int] = set()

    def leaves(tree: Any) -> Iterator[Any]:
        if is_leaf(tree):
            yield tree
        elif id(tree) not in seen:
            seen.add(id(tree))
            for _, part in children(tree) or attributes(tree) or ():
                yield from leaves(part)

    return any(map(wanted, leaves(value)))


def has_leaves(value: Any) -> bool:
    """Whether a tensor or a traced number is in `value`, or in what that holds."""
    return holds(value, lambda leaf: True)


def is_traced(leaf: Any) -> bool:
    """Whether a leaf stands for a value that a graph computes."""
    return type(leaf) is Number or (isinstance(leaf, Tensor) and leaf._d.__class__ is Symbol)


def opener(
    wanted: Callable[[Any], bool], there: Collection[int] | None = None
) -> Callable[[Any, dict[int, Any]], Opened | None]:
    """For `map_leaves`: takes objects apart that hold leaves that are `wanted`, and functions made in the call.

    there   ids of objects, or of their namespaces, that are to be left as they are; None if what is taken apart has
            been made by an `opener` before
    """

    def opened(value: Any, known: dict[int, Any]) -> Opened | None:
        if there is not None and (id(namespace(value)) in there or id(value) in there):
            return None
        if is_traced_handle(value):
            raise errors.CaptureError(errors.HANDLE_LEAVES)
        if _is_user_function(value) and closures.is_made(value, there):
            return closures.opened(value, known, there)
        found = attributes(value)
        if not found or not holds(value, wanted):
            return None
        if _is_user_function(value):  # with defaults of its own
            return closures.opened(value, known, there)
        new = SimpleNamespace() if type(value) is SimpleNamespace else object.__new__(type(value))
        return new, [(new, *entry) for entry in found]

    return opened
