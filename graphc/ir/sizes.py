"""Symbolic sizes in the text of a graph: `s0`, `mul(2, s0)`, and the conditions under which the graph is right.

    def f(x: f32[s0,3]):
        where: (lt(10, s0),)
        v1: f32[mul(3, s0)] = reshape(x, shape=(mul(3, s0),))
        return v1

Calls instead of operators: nothing in a text nests without brackets (see `lexical`).
"""

from __future__ import annotations

import ast
import functools
import re
from typing import Any

from graphc.ops.dims import Dim, Sizes, form_of, is_dim
from graphc.ops.forms import OPERATIONS, Condition, Operation, Polynomial, short

NAME = re.compile(r"s\d{1,9}")
ANY = 5040  # the value of a size of which nothing is known: a multiple of most numbers that shapes are divided by
_CALLS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "lshift": "<<",
    "rshift": ">>", "and_": "&", "or_": "|", "xor": "^",
    **{name: name for name in ("neg", "abs", "round", "floor", "ceil", "trunc")},
}  # fmt: skip
_READ = _CALLS.keys() - {"pow", "lshift"}  # what could take long is only written
LARGEST = 1000  # parts of a size that is read
_NAMES = {operation: name for name, operation in _CALLS.items()}
_RELATIONS = {"eq": ("==", True), "ne": ("==", False), "lt": ("<", True), "ge": ("<", False)}


def written(x: Any) -> str:
    """A Dim, a form or a number as text."""
    form = x.form if is_dim(x) else x
    if isinstance(form, Polynomial):
        terms = [
            _call("mul", [*([str(n)] if n != 1 or not atoms else []), *map(written, atoms)]) for atoms, n in form.terms
        ]
        return _call("add", terms)
    if isinstance(form, Operation):
        return f"{_NAMES[form.name]}({', '.join(map(written, form.operands))})"
    return str(form)


def _call(name: str, parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{name}({', '.join(parts)})"


def conditions(sizes: Sizes) -> str:
    """The line of the conditions; "" if there are none."""
    names = {value: name for name, value in _RELATIONS.items()}
    parts = [f"{names[c.relation, c.truth]}({written(c.left)}, {written(c.right)})" for c in sizes.conditions]
    return f"where: ({', '.join(parts)}{',' if len(parts) == 1 else ''})" if parts else ""


class SizesOfText:
    """The named sizes of one text, as they are met."""

    def __init__(self):
        self._sizes = Sizes(known=False)
        self._dims: dict[str, Dim] = {}

    def read(self, node: ast.expr) -> Any:
        """The Dim, or the number, that `node` is. ValueError if it is none."""
        if isinstance(node, ast.Name) and NAME.fullmatch(node.id):
            if node.id not in self._dims:
                self._dims[node.id] = self._sizes.new(ANY, node.id)
            return self._dims[node.id]
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            return node.value
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -self.read(node.operand)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _READ and node.args:
            operation = OPERATIONS[_CALLS[node.func.id]]
            operands = [self.read(argument) for argument in node.args]
            if any(map(is_dim, operands)):
                try:
                    if len(operands) == 1:
                        return operation(*operands)
                    return functools.reduce(functools.partial(_combined, operation), operands[1:], operands[0])
                except (ArithmeticError, TypeError) as error:
                    raise ValueError(str(error)) from None
        raise ValueError("a size is a name such as s0, a number, or mul(2, s0)")

    def conditions(self, node: ast.expr) -> None:
        """Take the conditions that `node` lists. ValueError for what is none."""
        for part in node.elts if isinstance(node, ast.Tuple) else [node]:
            if not isinstance(part, ast.Call) or not isinstance(part.func, ast.Name) or len(part.args) != 2:
                raise ValueError("a condition is written as lt(10, s0)")
            relation, truth = _RELATIONS.get(part.func.id, ("", False))
            if not relation:
                raise ValueError(f"unknown relation '{part.func.id}'")
            left, right = (short(form_of(self.read(argument))) for argument in part.args)
            self._sizes.conditions[Condition(relation, left, right, truth)] = ""


def _combined(operation: Any, a: Any, b: Any) -> Any:
    result = operation(a, b)
    if _parts(form_of(result), LARGEST) < 0:
        raise ValueError(f"a size of more than {LARGEST} parts")
    return result


def _parts(form: Any, left: int) -> int:
    """What is left of `left` after each part of `form` has taken one; less than 0 if that is not enough."""
    inside = form.operands if isinstance(form, Operation) else ()
    if isinstance(form, Polynomial):
        inside = [atom for atoms, _ in form.terms for atom in atoms]
        left -= len(form.terms)
    for part in inside:
        if left < 0:
            break
        left = _parts(part, left)
    return left - 1
