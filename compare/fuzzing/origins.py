"""Ops that are not graphc's own: how a script in a fresh process comes by them."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Iterator
from types import FunctionType
from typing import Any

import graphc
from graphc.ops import OPS, Op

_OURS = os.path.dirname(os.path.abspath(str(graphc.__file__))) + os.sep
_GUARD = """if "{name}" not in OPS:
    print("op '{name}' is not declared here{place}; declare it at the top of this file", file=sys.stderr)
    raise SystemExit(2)
"""


def declarations_for(source: str) -> str:
    """Statements that declare the ops that `source` calls: the user's own file is run, or the function that does it.

    Where that cannot be done (a function with arguments, an interpreter's prompt), the script ends with exit code 2 and
    says so. "" if graphc has all the ops.
    """
    names = dict.fromkeys(re.findall(r"\bE\.(\w+)\(", source))
    codes = {name: _code_of(OPS[name]) for name in names if name in OPS}
    codes = {name: fn for name, fn in codes.items() if fn is not None}
    if not codes:
        return ""
    runs = dict.fromkeys(run for fn in codes.values() if (run := _run(fn)))
    checks = [
        _GUARD.format(name=name, place=f" ({fn.__code__.co_filename}:{fn.__code__.co_firstlineno})".replace("\\", "/"))
        for name, fn in codes.items()
    ]
    lines = ["import runpy", "import sys", "", "from graphc.ops import OPS", "", *runs, *checks]
    return "\n".join(lines) + "\n"


def _code_of(op: Op) -> FunctionType | None:
    """A function of the op's declaration that is not graphc's; None if there is none."""
    for found in _functions(op):
        if isinstance(found, FunctionType) and not os.path.abspath(found.__code__.co_filename).startswith(_OURS):
            return found
    return None


def _functions(op: Op) -> Iterator[Any]:
    yield from (op.impl, op.numpy)
    yield from (rule.fn for rule in op.vjp.values())


def _run(fn: FunctionType) -> str:
    """The statement that makes the declaration which `fn` is part of; "" if there is none."""
    path = os.path.abspath(fn.__code__.co_filename)
    if not os.path.exists(path):
        return ""
    outer, inside, _ = fn.__qualname__.partition(".<locals>.")
    if not inside:
        return f"runpy.run_path({path!r})"
    around = fn.__globals__.get(outer)
    if not isinstance(around, FunctionType) or any(_required(p) for p in inspect.signature(around).parameters.values()):
        return ""
    return f"runpy.run_path({path!r})[{outer!r}]()"


def _required(parameter: inspect.Parameter) -> bool:
    return parameter.default is parameter.empty and parameter.kind not in (
        parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD,
    )  # fmt: skip
