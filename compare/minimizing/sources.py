"""The source of a function as a program: with views, in-place writes and draws, which a graph does not show."""

from __future__ import annotations

import ast
import builtins
import inspect
import textwrap
from collections.abc import Callable, Mapping
from types import FunctionType, ModuleType
from typing import Any

from compare.cases.case import Case
from compare.fuzzing.program import Input, Program, Statement, names
from compare.minimizing.statements import MinimizeError, bound_by, fresh_names, results_of, statement, steps_of
from eager.core.homes import name_of
from eager.core.tensor import Tensor


def source_of(case: Case) -> Program:
    """The source of a case's function as a program on the tensors that it is given or reaches. Raises MinimizeError.

    Only a plain function whose one `return` is its end, of tensors, numbers, functions like it, and this library.
    """
    fn = inspect.unwrap(case.fn)
    node = _definition(fn, case.name)
    steps = steps_of(node)
    if steps is None:
        raise MinimizeError(f"the source of {case.name} returns in several places")
    given = inspect.signature(fn).bind(*case.args, **case.kwargs)
    given.apply_defaults()
    place = _Scope()
    for name, value in given.arguments.items():
        place.put(name, value)
    place.around(node, fn, {*given.arguments})
    taken = {n for part in ast.walk(node) for n in bound_by(part)} | {*place.known}
    results, ends = results_of(steps[1], fresh_names(taken, "r"))
    body = [statement(ast.unparse(n)) for n in steps[0] if not _is_text(n)]
    return Program("program", place.inputs, [*place.before, *body, *ends], results)


def _definition(fn: Callable[..., Any], name: str) -> Any:
    """The def, or lambda, of a function."""
    if not isinstance(fn, FunctionType):
        raise MinimizeError(f"{name} is no plain function, whose source could be made smaller")
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(fn)))
    except (OSError, SyntaxError) as error:
        raise MinimizeError(f"the source of {name} cannot be read by itself") from error
    found = [n for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.Lambda))
             and (fn.__name__ == "<lambda>" if isinstance(n, ast.Lambda) else n.name == fn.__name__)]  # fmt: skip
    if not found or (fn.__name__ == "<lambda>" and len(found) > 1):
        raise MinimizeError(f"the source of {name} is not the only one in its line")
    return _Unannotated().visit(found[0])


class _Unannotated(ast.NodeTransformer):
    """Without annotations, which may name anything."""

    def visit_arg(self, node: ast.arg) -> Any:
        return ast.arg(node.arg)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        node.returns = None
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        return ast.Pass() if node.value is None else ast.copy_location(ast.Assign([node.target], node.value), node)


class _Scope:
    """Where a function is written down anew: what comes before it, so that it finds what it reaches."""

    def __init__(self):
        self.inputs: list[Input] = []
        self.before: list[Statement] = []
        self.known: dict[str, Any] = {}

    def put(self, name: str, value: Any) -> None:
        """Make `name` stand for `value`."""
        if name in self.known:
            if self.known[name] is not value:
                raise MinimizeError(f"'{name}' stands for different things in the source")
            return
        self.known[name] = value
        if isinstance(value, Tensor) and value.is_leaf:
            self.inputs.append(Input.of(name, value._array(), value.requires_grad))
        elif isinstance(value, ModuleType):
            self.before.append(statement(f"{name} = {_path(value)}"))
        elif isinstance(value, FunctionType) and value.__module__.partition(".")[0] not in ("eager", "graphc", "numpy"):
            node = _definition(value, name)
            self.around(node, value, {a.arg for a in node.args.args})
            if isinstance(node, ast.Lambda):
                self.before.append(statement(f"{name} = {ast.unparse(node)}"))
            else:
                node.decorator_list, node.name = [], name
                self.before.append(statement(ast.unparse(node)))
        elif isinstance(value, (tuple, list)):
            parts = [f"{name}_{k}" for k in range(len(value))]
            for part, item in zip(parts, value, strict=True):
                self.put(part, item)
            self.before.append(statement(f"{name} = {type(value)(parts)!r}".replace("'", "")))
        elif _is_literal(value):
            self.before.append(statement(f"{name} = {value!r}"))
        else:
            raise MinimizeError(f"'{name}' in the source is a {type(value).__name__}, which no script can make")

    def around(self, node: ast.AST, fn: FunctionType, own: set[str]) -> None:
        """Put down what the function `fn`, whose definition is `node`, reaches by itself."""
        around: Mapping[str, Any] = {**fn.__globals__, **inspect.getclosurevars(fn).nonlocals}
        stored = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        inner = {n.arg for n in ast.walk(node) if isinstance(n, ast.arg)}
        for n in ast.walk(node):
            if isinstance(n, ast.Name) and n.id in around and n.id not in own | stored | inner:
                same = names().get(n.id)
                if same is not around[n.id]:
                    self.put(n.id, around[n.id])
            elif isinstance(n, ast.Name) and n.id not in own | stored | inner and not hasattr(builtins, n.id):
                raise MinimizeError(f"'{n.id}' in the source is not defined")


def _path(module: ModuleType) -> str:
    """What a module of this library is called where only `names()` are known."""
    package, _, rest = name_of(module).partition(".")
    short = {"eager": "torch", "numpy": "np", "graphc": "graphc"}.get(package)
    if short is None:
        raise MinimizeError(f"the source uses the module {module.__name__}")
    return f"{short}.{rest}" if rest else short


def _is_literal(value: Any) -> bool:
    try:
        return bool(ast.literal_eval(repr(value)) == value)
    except (ValueError, SyntaxError):
        return False


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
