"""What is inside control flow, in place of it: the body of a branch, or what a function does at its first call."""

from __future__ import annotations

import ast
import copy
import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from compare.fuzzing.program import Input, Program, Statement, names
from compare.minimizing.statements import (
    FUNCTIONS,
    Rename,
    apart,
    bound_by,
    fresh_names,
    identifiers,
    live,
    results_of,
    statement,
    steps_of,
)
from eager.core.tensor import Tensor
from graphc.ops.dtypes import is_inexact

LOOPS = (*FUNCTIONS, ast.While)  # what may be run any number of times
_STEPS = 500


def opened(program: Program) -> Iterator[Program]:
    """A body in place of a branch of Python's, or of a `with`."""
    for k, s in enumerate(program.statements):
        (node,) = ast.parse(s.text).body if s.text else (None,)
        for field in ("body", "orelse"):
            body = getattr(node, field, None)
            if isinstance(body, list) and body and not isinstance(node, FUNCTIONS):
                inner = [statement(ast.unparse(n)) for n in body]
                yield program.replace(statements=[*program.statements[:k], *inner, *program.statements[k + 1 :]])


class _Called(NamedTuple):
    """A function inside the program: where it is written, and what it was called with first."""

    k: int
    node: Any
    arguments: tuple[Any, ...]


def inside(program: Program) -> Iterator[Program]:
    """What a function inside the program does at its first call, as a program on what it was called with."""
    for called in _calls(program):
        found = _as_program(program, called)
        if found is not None:
            yield found


class TooLong(Exception):
    """A loop goes on and on."""


def goes_on(program: Program) -> bool:
    """Whether loops of the program take more steps than can be waited for: a smaller one may never end."""
    if not any(isinstance(n, LOOPS) for s in program.statements for n in ast.walk(ast.parse(s.text))):
        return False
    try:
        _calls(program)
    except TooLong:
        return True
    except Exception:  # that it raises may be what is looked for
        return False
    return False


def _calls(program: Program) -> list[_Called]:
    """The functions inside the program that are called, when it is run eagerly. Raises TooLong."""
    found: dict[int, _Called] = {}
    watched: list[Statement] = []
    scope = names()
    steps = itertools.count()

    def tick() -> None:
        if next(steps) > _STEPS:
            raise TooLong

    def watch(fn: Callable[..., Any], key: int, k: int, node: Any) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            tick()
            found.setdefault(key, _Called(k, node, arguments))
            return fn(*arguments)

        return call

    scope["_tick"] = tick
    for k, s in enumerate(program.statements):
        tree = ast.parse(s.text)
        watcher = _Watch(k, scope, watch)
        tree = ast.fix_missing_locations(watcher.visit(tree))
        watched.append(s._replace(text=ast.unparse(tree)))
    scope |= program.given()
    for s in watched:
        exec(s.text, scope)
    return list(found.values())


class _Watch(ast.NodeTransformer):
    """Puts the outermost functions of a statement into the scope's hands: `watch(fn, ...)` in place of `fn`.

    So it does with the steps of Python's loops that have no known end.
    """

    def __init__(self, k: int, scope: dict[str, Any], watch: Callable[..., Any]):
        self._k, self._scope, self._watch = k, scope, watch

    def _name(self, node: Any) -> str:
        name = f"_watch{len(self._scope)}"
        node = copy.deepcopy(node)
        self._scope[name] = lambda fn: self._watch(fn, id(node), self._k, node)
        return name

    def visit_While(self, node: ast.While) -> Any:
        node.body.insert(0, ast.Expr(ast.Call(ast.Name("_tick", ast.Load()), [], [])))
        return self.generic_visit(node)

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        return ast.Call(ast.Name(self._name(node), ast.Load()), [node], [])

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        name = ast.Name(self._name(node), ast.Load())
        call = ast.Call(name, [ast.Name(node.name, ast.Load())], [])
        return [node, ast.Assign([ast.Name(node.name, ast.Store())], call)]


def _as_program(program: Program, called: _Called) -> Program | None:
    """What the function does with these arguments, after the statements before it."""
    parameters = [a.arg for a in called.node.args.args]
    steps = steps_of(called.node)
    if steps is None or len(parameters) != len(called.arguments):
        return None
    body, end = steps
    fresh = fresh_names(identifiers(program), "b")
    own = {*parameters, *(n for step in body for node in ast.walk(step) for n in bound_by(node))}
    rename = Rename({name: next(fresh) for name in sorted(own)})
    inputs: list[Input] = []
    before: list[Statement] = []

    def bind(name: str, value: Any) -> str:
        if isinstance(value, Tensor):
            array = value._array()
            inputs.append(Input.of(name, array, value.requires_grad and is_inexact(array.dtype)))
        elif isinstance(value, (tuple, list)):
            parts = "".join(f"{bind(next(fresh), part)}, " for part in value)
            before.append(statement(f"{name} = ({parts})"))
        else:
            before.append(statement(f"{name} = {value!r}"))
        return name

    for parameter, value in zip(parameters, called.arguments, strict=True):
        bind(rename.names[parameter], value)
    lines = [statement(ast.unparse(rename.visit(copy.deepcopy(step)))) for step in body]
    results, made = results_of(None if end is None else rename.visit(copy.deepcopy(end)), fresh)
    new = [*program.statements[: called.k], *before, *lines, *made]
    given = [*program.inputs, *inputs]
    if {*results} <= {i.name for i in given}:
        return None
    return apart(live(program.replace(inputs=given, statements=new), results))
