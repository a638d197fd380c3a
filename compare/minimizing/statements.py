"""Text as statements: what each defines, reads and writes; programs with some of them left out; what functions do."""

from __future__ import annotations

import ast
import builtins
import itertools
import symtable
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from compare.fuzzing.program import Input, Program, Statement, names
from eager.core.tensor import Tensor

FUNCTIONS = (ast.Lambda, ast.FunctionDef)
_APART = (ast.Call, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Subscript)  # expressions that get a statement of their own
_GIVEN = {*names(), *vars(builtins)}


class MinimizeError(ValueError):
    """There is nothing to minimize, or no program that can be written as text shows the same."""


def statement(text: str) -> Statement:
    """`text`, one statement of Python or several, with the names that it makes, reads and writes to in place."""
    tree = ast.parse(text)
    makes, reads = _names(symtable.symtable(text, "", "exec"))
    attributes = (n for n in ast.walk(tree) if isinstance(n, ast.Attribute))
    ops = tuple(n.attr for n in attributes if isinstance(n.value, ast.Name) and n.value.id == "E")
    return Statement(text, tuple(makes), tuple(reads), ops, tuple(dict.fromkeys(_written(tree))))


def statements(text: str) -> list[Statement]:
    """The statements that `text` consists of."""
    return [statement(ast.unparse(node)) for node in ast.parse(text).body]


def _names(table: symtable.SymbolTable) -> tuple[list[str], list[str]]:
    """(names that are assigned, names that are read here or in functions)."""
    symbols = table.get_symbols()
    makes = [s.get_name() for s in symbols if s.is_assigned()] if table.get_type() == "module" else []
    outer = table.get_type() == "module"
    reads = [s.get_name() for s in symbols if s.is_referenced() and (outer or s.is_global())]
    for child in table.get_children():
        reads += [n for n in _names(child)[1] if n not in reads]
    return makes, [n for n in reads if n not in _GIVEN]


def _written(tree: ast.AST) -> Iterator[str]:
    """The variables whose memory a statement writes to: `x[0] = y`, `x.add_(y)`, `x[0].mul_(y)`."""
    for node in ast.walk(tree):
        target: ast.expr | None = None
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            target = node.value
        elif isinstance(node, ast.AugAssign):
            target = node.target
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name = node.func.attr
            target = node.func.value if name.endswith("_") and not name.startswith("_") else None
        while isinstance(target, (ast.Subscript, ast.Attribute, ast.Call)):
            target = target.func if isinstance(target, ast.Call) else target.value
        if isinstance(target, ast.Name) and target.id not in _GIVEN:
            yield target.id


def bound_by(node: ast.AST) -> Iterator[str]:
    """The name that a node of a tree gives a meaning: a variable, a parameter or a function."""
    match node:
        case ast.Name(name, ast.Store()) | ast.arg(name) | ast.FunctionDef(name):
            yield name
        case _:
            pass


def identifiers(program: Program) -> set[str]:
    """Every name that the program gives a meaning."""
    found = {i.name for i in program.inputs}
    for s in program.statements:
        found.update(n for node in ast.walk(ast.parse(s.text)) for n in bound_by(node))
    return found


def fresh_names(taken: Collection[str], prefix: str) -> Iterator[str]:
    """`prefix`1, `prefix`2, ... without those that are taken."""
    return (n for k in itertools.count(1) if (n := f"{prefix}{k}") not in taken)


class Rename(ast.NodeTransformer):
    """Other names for variables."""

    def __init__(self, names: Mapping[str, str]):
        self.names = names

    def visit_Name(self, node: ast.Name) -> Any:
        return ast.Name(self.names.get(node.id, node.id), node.ctx)

    def visit_arg(self, node: ast.arg) -> Any:
        return ast.arg(self.names.get(node.arg, node.arg))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        node.name = self.names.get(node.name, node.name)
        return self.generic_visit(node)


def renamed(program: Program, names: Mapping[str, str]) -> Program:
    """The program with other names."""

    def new(name: str) -> str:
        return names.get(name, name)

    rename = Rename(names)
    text = [ast.unparse(rename.visit(ast.parse(s.text))) for s in program.statements]
    inputs = [
        i._replace(name=new(i.name), view=ast.unparse(rename.visit(ast.parse(i.view, mode="eval"))) if i.view else "")
        for i in program.inputs
    ]
    return program.replace(inputs=inputs, statements=[*map(statement, text)], results=[*map(new, program.results)])


def apart(program: Program) -> Program:
    """The program with a statement for each call, operator and subscript of its tensors, and a name for each value."""
    new = fresh_names(identifiers(program), "t")
    made = {i.name for i in program.inputs} | {n for s in program.statements for n in s.makes}
    given = {i.name for i in program.inputs}
    now: dict[str, str] = {}  # of a variable that is assigned again, the name of its latest value
    found: list[Statement] = []
    for node in (n for s in program.statements for n in ast.parse(s.text).body):
        if isinstance(node, (ast.Assign, ast.Expr)):
            split = _Apart(new, made)
            node.value = split.root(Rename(now).visit(node.value))
            found += [statement(text) for text in split.before]
        if isinstance(node, ast.Assign):
            stored = {n for target in node.targets for part in ast.walk(target) for n in bound_by(part)}
            now |= {name: next(new) for name in sorted(stored & given)}
            made |= {now.get(name, name) for name in stored}
            node.targets = [Rename(now).visit(t) for t in node.targets]
        elif not isinstance(node, ast.Expr):
            node = Rename(now).visit(node)
        found.append(statement(ast.unparse(ast.fix_missing_locations(node))))
        given |= {*found[-1].makes}
    return program.replace(statements=found, results=[now.get(r, r) for r in program.results])


class _Apart(ast.NodeTransformer):
    """Takes the operands of an expression out of it; `before`: the statements that they become."""

    def __init__(self, new: Iterator[str], variables: Collection[str]):
        self._new = new
        self._variables = variables
        self.before: list[str] = []

    def root(self, node: ast.expr) -> ast.expr:
        return self.generic_visit(node) if isinstance(node, _APART) else node  # type: ignore[return-value]

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, FUNCTIONS) or not isinstance(node, ast.expr):
            return node if isinstance(node, FUNCTIONS) else self.generic_visit(node)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            return node
        node = self.generic_visit(node)  # type: ignore[assignment]
        used = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        if not isinstance(node, _APART) or not used & {*self._variables}:
            return node
        name = next(self._new)
        self._variables = {*self._variables, name}
        self.before.append(f"{name} = {ast.unparse(node)}")
        return ast.Name(name, ast.Load())


def run(program: Program) -> Iterator[tuple[Statement, dict[str, Any]]]:
    """Each statement with all variables after it has run, eagerly. Raises what the program raises."""
    scope = names() | program.given()
    for s in program.statements:
        exec(s.text, scope)
        yield s, scope


def values_of(program: Program) -> Mapping[str, Input]:
    """The tensors when they have just been made, as inputs that could stand in their place."""
    found: dict[str, Input] = {}
    for s, scope in run(program):
        for name in s.makes:
            value = scope[name]
            if isinstance(value, Tensor):
                found[name] = Input.of(name, value._array(), value.requires_grad)
    return found


def with_aliases(program: Program) -> Program:
    """The program, whose statements know all variables that see what they write: views of the same memory too."""
    if not any(s.writes for s in program.statements):
        return program
    found: list[Statement] = []
    try:
        for s, scope in run(program):
            arrays = {n: v._array() for n, v in scope.items() if isinstance(v, Tensor)}
            written = [arrays[n] for n in s.writes if n in arrays]
            seen = [n for n, a in arrays.items() if any(np.may_share_memory(a, w) for w in written)]
            found.append(s._replace(writes=tuple(dict.fromkeys((*s.writes, *seen)))))
    except Exception:  # a program whose bug is that it raises
        return program
    return program.replace(statements=found)


def live(program: Program, results: Sequence[str]) -> Program:
    """The program for `results` only, with the statements and inputs that they need; writes to inputs stay."""
    needed, kept = {*results}, list[Statement]()
    given = {i.name for i in program.inputs}
    for s in reversed(program.statements):
        if needed & {*s.makes, *s.writes} or given & {*s.writes}:
            needed.update(s.reads)
            kept.append(s)
    for i in reversed(program.inputs):  # whose memory others lie in is needed for them
        needed |= i.reads() if i.name in needed else set()
    inputs = [i for i in program.inputs if i.name in needed]
    return program.replace(inputs=inputs, statements=kept[::-1], results=results)


def cut(
    program: Program, away: Collection[int], values: Mapping[str, Input], wanted: Sequence[str] = ()
) -> Program | None:
    """The program without the statements `away`, with inputs for what they make.

    It returns `wanted`, or what is left of the results. None if nothing is left, or no tensor can stand for it.
    """
    left = [s for k, s in enumerate(program.statements) if k not in away]
    if not left:
        return None
    made = {n for s in left for n in s.makes}
    results = [*wanted] or [r for r in program.results if r in made] or list(left[-1].makes or left[-1].writes)
    needed = {r for s in left for r in s.reads} | {*results}
    there = made | {i.name for i in program.inputs}
    gone = [n for k in sorted(away) for n in program.statements[k].makes if n in needed and n not in there]
    if not all(n in values for n in gone):
        return None
    written = {n for s in left for n in s.writes}
    stands = [values[n] for n in dict.fromkeys(gone)]
    inputs = [i._replace(requires_grad=i.requires_grad and i.name not in written) for i in stands]
    return live(program.replace(inputs=[*program.inputs, *inputs], statements=left), results)


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
