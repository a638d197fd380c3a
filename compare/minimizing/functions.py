"""Definitions of functions as statements: what they do, then what they return."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from compare.fuzzing.program import Statement
from compare.minimizing.statements import FUNCTIONS, statement


def steps_of(node: ast.FunctionDef | ast.Lambda) -> tuple[list[ast.stmt], ast.expr | None] | None:
    """(what a function does, the expression that it returns); None if it returns in the middle, or yields."""
    if isinstance(node, ast.Lambda):
        return [], node.body
    *rest, last = node.body
    end = last.value if isinstance(last, ast.Return) else None
    steps = rest if isinstance(last, ast.Return) else node.body
    if any(isinstance(n, (ast.Return, ast.Yield, ast.YieldFrom)) for n in _own(steps)):
        return None
    return list(steps), end


def _own(nodes: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """The nodes in `nodes`, without those in functions there."""
    for node in nodes:
        yield node
        if not isinstance(node, FUNCTIONS):
            yield from _own(list(ast.iter_child_nodes(node)))


def results_of(end: ast.expr | None, fresh: Iterator[str]) -> tuple[list[str], list[Statement]]:
    """(variables that are the leaves of what is returned, statements that make those which have no name)."""
    results: list[str] = []
    made: list[Statement] = []
    for part in _leaves(end):
        results.append(part.id if isinstance(part, ast.Name) else next(fresh))
        if not isinstance(part, ast.Name):
            made.append(statement(f"{results[-1]} = {ast.unparse(part)}"))
    return list(dict.fromkeys(results)), made


def _leaves(node: ast.expr | None) -> Iterator[ast.expr]:
    match node:
        case ast.Tuple(parts) | ast.List(parts) | ast.Dict(_, parts):
            for part in parts:
                yield from _leaves(part)
        case None | ast.Constant():
            return
        case _:
            yield node
