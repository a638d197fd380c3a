"""Whether a value is only shown: `print(f"{loss.item():.3f}")` must not make a program for each loss, a key must."""

from __future__ import annotations

import ast
import functools
import linecache
import sysconfig

from graphc.capture.location import span_of, user_frame

_LIBRARY = sysconfig.get_paths()["stdlib"]

# calls that take text for people to read, and whose result nobody uses
_SHOWING = frozenset(
    ("print", "debug", "info", "warning", "warn", "error", "critical", "exception", "log", "write", "set_description",
     "set_postfix", "set_postfix_str")
)  # fmt: skip


def is_only_shown() -> bool:
    """Whether the user's innermost statement is a call like `print(...)`. False where there is no source to tell."""
    frame = user_frame(skip=(_LIBRARY,))  # logging formats its messages itself
    if frame is None or (at := span_of(frame)) is None:
        return False
    line, _, column, _ = at
    source = "".join(linecache.getlines(frame.f_code.co_filename, frame.f_globals))
    return any(first <= (line, column) < last for first, last in _showing_statements(source))


@functools.lru_cache(maxsize=64)
def _showing_statements(source: str) -> tuple[tuple[tuple[int, int], tuple[int, int]], ...]:
    """Where the statements that show something begin and end."""
    try:
        tree = ast.parse(source)
    except SyntaxError:  # what is shown as a file is not always one
        return ()
    return tuple(
        ((node.lineno, node.col_offset), (node.end_lineno or node.lineno, node.end_col_offset or 0))
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and _name(node.value.func) in _SHOWING
    )


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""
