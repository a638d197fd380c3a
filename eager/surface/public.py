"""PyTorch's public functions by name: from the tables of names, and the pointwise ops of the registry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eager.core.dtypes import type_name
from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.functional.checking import checking
from eager.surface import names, operators
from eager.surface.deprecations import offered
from eager.surface.entries import FUNCTIONS
from graphc.ops import BUILT_IN

_WITH_OUT = frozenset(names.OUT.split())


def named(name: str) -> Any:
    """torch.<name>. LookupError if there is none."""
    if name in FUNCTIONS:
        return _of_table(name)
    op = names.ALIASES.get(name, name)
    if op in operators.functions:
        if op != name:
            return checking(name, getattr(E, op), home="eager")
        return operators.public(op) if op in BUILT_IN else operators.functions[op]
    if name in names.IN_PLACE:
        return _in_place(name)
    raise LookupError(name)


def every_name() -> set[str]:
    """The names that `named` knows, now."""
    return {*operators.functions, *FUNCTIONS, *names.ALIASES, *names.IN_PLACE}


def is_fixed(name: str) -> bool:
    """Whether `named(name)` is the same for as long as the program runs: what users declare may be declared anew."""
    op = names.ALIASES.get(name, name)
    return op in BUILT_IN or op not in operators.functions


def _of_table(name: str) -> Any:
    """A function of the tables, with `out` if its entry says so."""
    function = offered(name, FUNCTIONS[name])
    if name in _WITH_OUT:
        from eager.functional.outputs import with_out

        return with_out(name, function)
    return function


def _in_place(name: str) -> Callable[..., Any]:
    """torch.<name>, the method of that name as a function."""
    from eager.functional.naming import signature_of

    def function(input: Tensor, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(input, Tensor):
            raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type_name(input)}")
        return getattr(input, name)(*args, **kwargs)

    function.__name__ = function.__qualname__ = name
    method = getattr(Tensor, name)
    function.__doc__ = f"`input.{name}(...)`. {method.__doc__} As `torch.{name}`."
    function.__signature__ = signature_of(method, "input")  # type: ignore[attr-defined]
    return checking(name, function, home="eager")
