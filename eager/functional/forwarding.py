"""Functions that pass their arguments on, and say of a call that fails what it was given."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from inspect import Parameter
from types import CodeType
from typing import Any

from eager.engine.codegen import ABSENT

Failed = Callable[[Exception | None, tuple[Any, ...], dict[str, Any]], Any]


def forwarding(function: Callable[..., Any], failed: Failed, flags: Sequence[tuple[str, int]] = (),
               ask: frozenset[str] = frozenset(), written: bool = True) -> Callable[..., Any]:  # fmt: skip
    """`function`, called as it is; `failed(error, values, named)` is returned for what it, or the call, raises.

    failed: with None for the error, a call that may be wrong: with a name of those to `ask` for, or a flag that is
    no bool; flags: (parameter, position); written: whether it is to cost little at each call, and not when it is made.
    """
    parameters = [*inspect.signature(function).parameters.values()]
    if written and all(p.kind is p.KEYWORD_ONLY if p.default is not p.empty else p.kind is p.POSITIONAL_OR_KEYWORD
                       for p in parameters):  # fmt: skip
        return _written(function, parameters, failed)
    text = f"""
def call(*values, **named):
    try:
        if {_plain(flags, bool(ask))}:
            return _function(*values, **named)
        _error = None
    except Exception as raised:
        _error = raised
    try:
        return _failed(_error, values, named)
    finally:
        del _error
"""
    return _made(function, text, {"_function": function, "_failed": failed, "_ask": ask})


def _plain(flags: Sequence[tuple[str, int]], asks: bool) -> str:
    """The test that a call is not one to ask about: its flags are bools, and no name is one of those to ask for."""
    by_name = [f"named.get({name!r}, True).__class__ is bool" for name, _ in flags]
    named = " and ".join([*by_name, *(["_ask.isdisjoint(named)"] if asks else [])])
    positions = [f"(len(values) <= {at} or values[{at}].__class__ is bool)" for _, at in flags]
    return " and ".join([*([f"(not named or {named})"] if named else []), *positions]) or "True"


def _written(function: Callable[..., Any], parameters: Sequence[Parameter], failed: Failed) -> Callable[..., Any]:
    """`forwarding`, written out with the parameters of the function: `*args, **kwargs` would cost two times as much.

    What is optional is given by name alone. So the arguments that are not there tell how a call was made.
    """
    own = [p.name for p in parameters if p.default is p.empty]
    by_name = {p.name: p.default for p in parameters if p.default is not p.empty}
    head = [*(f"{name}=ABSENT" for name in own), "*rest", *(f"{name}=d_{name}" for name in by_name), "**named"]
    tests = ["not (rest or named)", *(f"{name} is not ABSENT" for name in own[-1:])]  # else the function fails
    text = f"""
def call({", ".join(head)}):
    try:
        if {" and ".join(tests)}:
            return _function({", ".join([*own, *(f"{name}={name}" for name in by_name)])})
        _error = None
    except Exception as raised:
        _error = raised
    try:
        return _failed(_error, *_given([{", ".join(own)}], rest, named, [{", ".join(by_name)}]))
    finally:
        del _error
"""

    def given(values: list[Any], rest: tuple[Any, ...], named: dict[str, Any], optional: list[Any]) -> Any:
        there = [value is not ABSENT for value in values]
        count = len(values) if all(there) else there.index(False)  # what follows was given by name
        named |= {name: value for name, value in zip(own[count:], values[count:], strict=True) if value is not ABSENT}
        for (name, default), value in zip(by_name.items(), optional, strict=True):
            if value is not default:
                named[name] = value
        return (*values[:count], *rest), named

    scope = {"_function": function, "_failed": failed, "_given": given, "ABSENT": ABSENT}
    scope |= {f"d_{name}": value for name, value in by_name.items()}
    return _made(function, text, scope)


@functools.cache
def _compiled(text: str) -> CodeType:
    return compile(text, "<generated call>", "exec")


def _made(function: Callable[..., Any], text: str, scope: dict[str, Any]) -> Callable[..., Any]:
    """The function `call` that `text` defines, in the place of `function`."""
    exec(_compiled(text), scope)
    call = scope["call"]
    call.__globals__["__name__"] = function.__module__  # whose line a warning is about
    return functools.wraps(function)(call)
