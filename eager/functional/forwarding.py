"""Functions that pass their arguments on, and say of a call that fails what it was given."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence, Set
from inspect import Parameter
from types import CodeType
from typing import Any

from eager.engine.generated_ops import ABSENT

MOST = 6  # parameters of a call that is written out
Failed = Callable[[Exception | None, tuple[Any, ...], dict[str, Any]], Any]


def forwarding(function: Callable[..., Any], failed: Failed, flags: Sequence[tuple[str, int]] = (),
               ask: frozenset[str] = frozenset(), least: int | None = None,
               written: bool = True) -> Callable[..., Any]:  # fmt: skip
    """`function`, called as it is; `failed(error, values, named)` is returned for what it, or the call, raises.

    failed: with None for the error, a call that may be wrong: with a name of those to `ask` for, a flag that is no
    bool, or, if there is a number of arguments that `least` must be there, with fewer, or a None or a string among
    them; flags: (parameter, position); written: whether it is to cost little at each call, and not when it is made.
    """
    known = [*inspect.signature(function).parameters.values()]
    own = [p for p in known if p.kind is p.POSITIONAL_OR_KEYWORD]
    # names that begin with "_": a parameter may be called `values`
    scope = {"_function": function, "_failed": failed, "_ask": ask, "ABSENT": ABSENT}
    head, given = "*_values, **_names", "_values, _names"
    before = call = f"if {_plain(flags, bool(ask))}: return _function(*_values, **_names)"
    if least is not None:
        before = f"""
        for value in _values if len(_values) + len(_names) >= {least} else (None,):
            if value is None or value.__class__ is str:
                break
        else:
            {call}"""
    elif written and 0 < len(own) <= MOST and all(p.kind is not p.VAR_POSITIONAL for p in known):
        head, given, short = _written(own, {name for name, _ in flags})
        before = f"""{short}
        _values, _names = {given}
        {call}"""
        scope |= {f"_d_{p.name}": p.default for p in own} | {"_given": _given([p.name for p in own])}
    text = f"""
def call({head}):
    try:
        {before.strip()}
        _error = None
    except Exception as raised:
        _error = raised
    try:
        return _failed(_error, *({given}))
    finally:
        del _error
"""
    return _made(function, text, scope)


def _plain(flags: Sequence[tuple[str, int]], asks: bool) -> str:
    """The test that a call is not one to ask about: its flags are bools, and no name is one of those to ask for."""
    by_name = [f"_names.get({name!r}, True).__class__ is bool" for name, _ in flags]
    named = " and ".join([*by_name, *(["_ask.isdisjoint(_names)"] if asks else [])])
    positions = [f"(len(_values) <= {at} or _values[{at}].__class__ is bool)" for _, at in flags]
    return " and ".join([*([f"(not _names or {named})"] if named else []), *positions]) or "True"


def _written(own: Sequence[Parameter], flags: Set[str]) -> tuple[str, str, str]:
    """The head of a call with the parameters of the function, how it was made, and the short way through it.

    A parameter has two here: for what is given by position, and by name. Passing on `*args, **kwargs` would cost four
    times as much.
    """
    names, places = [p.name for p in own], [f"_p{k}" for k in range(len(own))]
    head = [*(f"{p}=ABSENT" for p in places), "/", "*_rest", *(f"{name}=ABSENT" for name in names), "**_named"]
    lines, tests = [], []
    for p, place in zip(own, places, strict=True):
        alone = place if p.default is p.empty else f"(_d_{p.name} if {place} is ABSENT else {place})"
        # given twice, it is absent
        lines.append(f"_v{place} = {alone} if {p.name} is ABSENT else {p.name} if {place} is ABSENT else ABSENT")
        tests.append(f"_v{place}.__class__ is bool" if p.name in flags else f"_v{place} is not ABSENT")
    short = "".join(f"\n            {line}" for line in lines)
    short = f"""
        if not (_rest or _named):{short}
            if {" and ".join(tests)}:
                return _function({", ".join(f"_v{place}" for place in places)})"""
    return ", ".join(head), f"_given([{', '.join(places)}], [{', '.join(names)}], _rest, _named)", short


def _given(names: Sequence[str]) -> Callable[..., tuple[tuple[Any, ...], dict[str, Any]]]:
    """What tells how a call was made, of `names`."""

    def given(places: list[Any], named: list[Any], rest: tuple[Any, ...], others: dict[str, Any]) -> Any:
        values = (*(value for value in places if value is not ABSENT), *rest)
        return values, {n: value for n, value in zip(names, named, strict=True) if value is not ABSENT} | others

    return given


@functools.cache
def _compiled(text: str) -> CodeType:
    return compile(text, "<generated call>", "exec")


def _made(function: Callable[..., Any], text: str, scope: dict[str, Any]) -> Callable[..., Any]:
    """The function `call` that `text` defines, in the place of `function`."""
    exec(_compiled(text), scope)
    call = scope["call"]
    call.__globals__["__name__"] = function.__module__  # whose line a warning is about
    return functools.wraps(function)(call)
