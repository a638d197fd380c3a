"""Contexts in which a part of the library is another one. At their end everything is as before, also after errors."""

from __future__ import annotations

import functools
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from types import MappingProxyType
from typing import Any

from eager.engine.language import double, refresh, single
from graphc.ops import OPS, Op
from graphc.ops.interpret import F
from graphc.scoped import attribute

Plant = Callable[[], AbstractContextManager[None]]


def wrapped(owner: Any, name: str, wrap: Callable[[Any], Any]) -> Plant:
    """`owner.name` is `wrap` of what it was."""
    return lambda: attribute(owner, name, wrap(vars(owner)[name]))


def edited(owner: Any, name: str, *changes: tuple[str, str]) -> Plant:
    """The function `owner.name` is compiled from its source with other text: (what stands there once, what instead)."""

    def plant() -> AbstractContextManager[None]:
        sound = vars(owner)[name]
        source = textwrap.dedent(inspect.getsource(sound))
        for before, after in changes:
            assert source.count(before) == 1, f"'{before}' does not stand once in {name}"
            source = source.replace(before, after)
        made: dict[str, Any] = {}
        exec(compile(source, inspect.getfile(sound), "exec"), inspect.unwrap(sound).__globals__, made)
        return attribute(owner, name, made[name])

    return plant


def together(*plants: Plant) -> Plant:
    """All of them at once."""

    @contextmanager
    def planted() -> Iterator[None]:
        with ExitStack() as stack:
            for plant in plants:
                stack.enter_context(plant())
            yield

    return planted


@contextmanager
def entry(table: MutableMapping[Any, Any], key: Any, value: Any) -> Iterator[None]:
    """`table[key]` is `value`."""
    before = dict(table)
    table[key] = value
    try:
        yield
    finally:
        if key in before:
            table[key] = before[key]
        else:
            del table[key]
        assert list(table) == list(before)


@contextmanager
def declared(op: Op, **fields: Any) -> Iterator[None]:
    """The declaration of `op` has these `fields`, and everything made from it follows."""
    before = {name: getattr(op, name) for name in fields}
    followers = _followers(op)
    try:
        _set(op, fields)
        _follow(op, followers)
        yield
    finally:
        followers |= _followers(op)
        _set(op, before)
        _follow(op, followers)


def with_rule(op: Op, argument: str, rule: Any) -> Any:
    """The gradient rules of `op` with another one for `argument`."""
    return MappingProxyType({**op.vjp, argument: rule})


def _set(op: Op, fields: Mapping[str, Any]) -> None:
    for name, value in fields.items():
        setattr(op, name, value)


def _followers(op: Op) -> set[str]:
    """The ops whose generated code calls the kernel of `op`: its own, and that of gradient rules."""
    kernels = {f"np_{getattr(op.kernel, '__name__', op.name)}", f"k_{op.name}"}
    found = [n for m in (single, double) for n, known in m.generated.items() if kernels & _kernels_in(known.source)]
    return {op.name, *found}


@functools.cache
def _kernels_in(source: str) -> frozenset[str]:
    """The names of the kernels that generated code calls, with and without the number that tells namesakes apart."""
    called = re.findall(r"\b((?:np|k)_\w+)\(", source)
    return frozenset(called) | {re.sub(r"_\d+$", "", name) for name in called}


def _follow(op: Op, followers: set[str]) -> None:
    vars(F).pop(op.name, None)
    for name in followers:
        if name in OPS:
            refresh(OPS[name])
