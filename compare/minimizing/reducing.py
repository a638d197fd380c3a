"""Ways to make a program smaller, besides leaving statements out: each gives candidates, simplest first."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from compare.fuzzing.program import Program, names
from compare.minimizing.statements import Rename, cut, statement
from graphc.capture.suggesting import Replacing

_DEPTHS = (0, 1, 2, 4)  # of what a statement is computed from


def around(program: Program, line: int, op: str, values: Mapping[str, Any]) -> Iterator[Program]:
    """Only the statement in line number `line` of the source, or those that call `op`, with more and more before them.

    line  0 if it is not known
    """
    found: list[int] = []
    last = 1  # the line of the def
    for k, s in enumerate(program.statements):
        first, last = last + 1, last + 1 + s.text.count("\n")
        if first <= line <= last:
            found.insert(0, k)
        elif op and _calls(s.text, op):
            found.append(k)
    for depth in _DEPTHS:
        for k in found:
            kept = _before(program, k, depth)
            others = {j for j in range(len(program.statements)) if j not in kept}
            smaller = cut(program, others, values, program.statements[k].makes)
            if smaller is not None:
                yield smaller


def _calls(text: str, op: str) -> bool:
    """Whether `text` calls a function or method named after an op, perhaps that which works in place."""
    called = (n.func for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Call))
    return any(isinstance(f, ast.Attribute) and f.attr in (op, f"{op}_") for f in called)


def _before(program: Program, k: int, depth: int) -> set[int]:
    """The statement number `k`, and those that it is computed from in so many steps."""
    kept, wanted = {k}, {*program.statements[k].reads}
    for _ in range(depth):
        new = {j for j in range(k) if wanted & {*program.statements[j].makes}}
        wanted |= {n for j in new for n in program.statements[j].reads}
        kept |= new
    return kept


def simpler_expressions(program: Program) -> Iterator[Program]:
    """An operand in place of an operation, and smaller numbers, also in functions inside the program."""
    for k, s in enumerate(program.statements):
        for at, node in enumerate(ast.walk(ast.parse(s.text))):
            for choice in _choices(node):
                tree = ast.parse(s.text)
                old = list(ast.walk(tree))[at]
                new = ast.unparse(ast.fix_missing_locations(Replacing(old, choice).visit(tree)))
                yield _without_copies(program, k, new)


def _choices(node: ast.AST) -> list[ast.expr]:
    """What may stand in place of an expression."""
    match node:
        case ast.Call(func, args, _):
            base = [func.value] if isinstance(func, ast.Attribute) and not _is_module(func.value) else []
            return [*base, *(a for a in args if not isinstance(a, (ast.Lambda, ast.Constant, ast.Starred)))]
        case ast.BinOp(left, _, right):
            return [left, right]
        case ast.UnaryOp(_, operand) if not isinstance(operand, ast.Constant):
            return [operand]
        case ast.Constant(value) if type(value) is int and value > 1:
            return [ast.Constant(1), *([ast.Constant(2)] if value > 2 else [])]
    return []


def _is_module(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id in names()


def _without_copies(program: Program, k: int, text: str) -> Program:
    """The program with `text` for statement number `k`, and without statements `a = b` there."""
    tree = ast.parse(text)
    for function in (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)):
        function.body, _ = _propagated(function.body)
        _drop_unused(function)
    body, same = _propagated(tree.body)
    made = [statement(ast.unparse(ast.fix_missing_locations(n))) for n in body]
    after = [statement(ast.unparse(Rename(same).visit(ast.parse(s.text)))) for s in program.statements[k + 1 :]]
    results = [same.get(r, r) for r in program.results]
    return program.replace(statements=[*program.statements[:k], *made, *after], results=results)


def _propagated(body: Sequence[ast.stmt]) -> tuple[list[ast.stmt], dict[str, str]]:
    """`body` without its statements `a = b`, and what to read in place of each such a."""
    kept: list[ast.stmt] = []
    same: dict[str, str] = {}
    for node in body:
        node = Rename(same).visit(node)
        match node:
            case ast.Assign([ast.Name(name)], ast.Name(other)):
                same[name] = other
            case _:
                kept.append(node)
    return kept, same


def _drop_unused(function: ast.FunctionDef) -> None:
    needed: set[str] = set()
    kept: list[ast.stmt] = []
    for node in reversed(function.body):
        s = statement(ast.unparse(node)) if not isinstance(node, ast.Return) else None
        if s is None or not s.makes or needed & {*s.makes} or s.writes:
            kept.append(node)
            needed.update(n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
    function.body = kept[::-1]
