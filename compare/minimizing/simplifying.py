"""Simpler inputs for a program, and shorter names: candidates, simplest first."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

import numpy as np

from compare.fuzzing.program import Input, Program
from compare.layouts.layout import stepped
from compare.minimizing.statements import bound_by, renamed, statement
from graphc.ops.dtypes import is_inexact

_DIGITS = (0, 1, 2)


def smaller_shapes(program: Program) -> Iterator[Program]:
    """All dims of one size shorter, in all inputs at once: with that number in the text as it is, and replaced."""
    sizes = sorted({n for i in program.inputs for n in i.array.shape if n > 1}, reverse=True)
    for size, new in itertools.product(sizes, (1, 2)):
        if new < size:
            smaller = program.replace(inputs=[_smaller(i, size, new) for i in program.inputs])
            yield smaller
            texts = [_with_number(s.text, size, new) for s in program.statements]
            if texts != [s.text for s in program.statements]:
                yield smaller.replace(statements=[*map(statement, texts)])


def _smaller(i: Input, size: int, new: int) -> Input:
    array = i.array[tuple(slice(new) if n == size else slice(None) for n in i.array.shape)].copy()
    return i._replace(array=array, view=_with_number(i.view, size, new) if i.view else "")


def _with_number(text: str, old: int, new: int) -> str:
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and type(node.value) is int and node.value == old:
            node.value = new
    return ast.unparse(tree)


def without_gradients(program: Program) -> Iterator[Program]:
    """No input that requires grad, then one fewer."""
    live = [k for k, i in enumerate(program.inputs) if i.requires_grad]
    for away in ([live] if len(live) > 1 else []) + [[k] for k in live]:
        inputs = [i._replace(requires_grad=False) if k in away else i for k, i in enumerate(program.inputs)]
        yield program.replace(inputs=inputs)


def plainer_memory(program: Program) -> Iterator[Program]:
    """An input with memory of its own, and one that lies more as a new array does: aligned, or with shorter steps."""
    for k, given in enumerate(program.inputs):
        for plainer in _plainer(given):
            yield program.replace(inputs=[*program.inputs[:k], plainer, *program.inputs[k + 1 :]])


def _plainer(given: Input) -> Iterator[Input]:
    if given.view:
        yield given._replace(view="")
    if given.layout is None:
        return
    yield given._replace(layout=None)
    yield given._replace(layout=given.layout._replace(offset=0, shift=0))
    yield given._replace(layout=given.layout._replace(offset=0))
    yield given._replace(layout=given.layout._replace(shift=0))
    shape = given.array.shape
    for step in (1, 2, 3, 4, 8, -1):
        yield given._replace(layout=stepped(shape, step))
    yield given._replace(layout=stepped(shape, 1, range(len(shape) - 1, -1, -1)))


def simpler_values(program: Program, k: int) -> Iterator[Program]:
    """Input number `k` with ones, or with fewer digits."""
    given = program.inputs[k]
    for array in _simpler(given.array):
        if array.tobytes() != given.array.tobytes():
            new = given._replace(array=array)
            yield program.replace(inputs=[*program.inputs[:k], new, *program.inputs[k + 1 :]])


def _simpler(array: np.ndarray) -> Iterator[np.ndarray]:
    yield np.ones_like(array)
    if is_inexact(array.dtype):
        for digits in _DIGITS:
            with np.errstate(all="ignore"):
                yield np.round(array, digits).astype(array.dtype) + 0.0  # no -0.0 from rounding


def with_short_names(program: Program) -> Program:
    """Inputs x, y, z, ..., then a, b, c, ... in the order in which they are met; functions f, g, h, ..."""
    given = [i.name for i in program.inputs]
    nodes = [node for s in program.statements for node in ast.walk(ast.parse(s.text))]
    met = [n for node in nodes for n in bound_by(node)]
    functions = {n.name for n in nodes if isinstance(n, ast.FunctionDef)}
    new: dict[str, str] = {}
    for letters, names in (
        ("xyzuw", given),
        ("fgh", [n for n in met if n in functions and n not in given]),
        ("abcdeijkmnopqrst", [n for n in met if n not in functions and n not in given]),
    ):
        free = itertools.chain(letters, (f"{letter}{k}" for k in itertools.count(1) for letter in letters))
        new.update(zip(dict.fromkeys(names), free, strict=False))
    return renamed(program, new)
