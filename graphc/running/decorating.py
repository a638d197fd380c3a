"""`graphc.compile` on functions of a script, without a change to the script."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Collection
from typing import final

_COMPILE = "__graphc_compile__"


class UnknownFunction(LookupError):
    """The program has no function of a name that is to be compiled."""


def with_compiled(source: bytes, path: str, names: Collection[str]) -> ast.Module:
    """The syntax tree of `source` in which the functions of these names are decorated with `graphc.compile`.

    A name is that of a function, or with the classes and functions around it: "step", "Model.forward", "main.step".
    Raises UnknownFunction for a name that no function has, and SyntaxError.
    """
    tree = ast.parse(source, path)
    visitor = _Decorating(names)
    visitor.visit(tree)
    for name in names:
        if name not in visitor.found:
            near = difflib.get_close_matches(name, visitor.known, 1)
            raise UnknownFunction(f"no function '{name}'" + (f"; did you mean '{near[0]}'?" if near else ""))
    at = next((k for k, x in enumerate(tree.body) if not _must_be_first(x)), len(tree.body))
    tree.body.insert(at, ast.parse(f"from graphc import compile as {_COMPILE}").body[0])
    return tree


def _must_be_first(statement: ast.stmt) -> bool:
    """Whether a statement is a docstring or an import from the future."""
    if isinstance(statement, ast.ImportFrom):
        return statement.module == "__future__"
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


@final
class _Decorating(ast.NodeVisitor):
    def __init__(self, names: Collection[str]):
        self._names = names
        self._around: list[str] = []
        self.known: list[str] = []
        self.found: set[str] = set()

    def _enter(self, node: ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef) -> None:
        self._around.append(node.name)
        if isinstance(node, ast.FunctionDef):
            spellings = {node.name, ".".join(self._around)}
            self.known += sorted(spellings)
            if wanted := spellings.intersection(self._names):
                self.found |= wanted
                place = {"lineno": node.lineno, "end_lineno": node.lineno, "col_offset": 0, "end_col_offset": 0}
                node.decorator_list.append(ast.Name(_COMPILE, ast.Load(), **place))  # the innermost
        self.generic_visit(node)
        self._around.pop()

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = _enter
