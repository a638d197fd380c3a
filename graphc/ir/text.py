"""A graph as text, and back. The text is Python syntax: annotated assignments under a `def`.

    def loss(w: f32[3,1], x: f32[8,3]):
        v2: f32[8,1] = matmul(x, w)  # model.py:12 [head]
        return v2

Parsing goes through `ast` and builds nodes; it evaluates nothing.
"""

from __future__ import annotations

import ast
import base64
import binascii
import keyword
import re
from typing import Any

import numpy as np

from graphc.errors import GraphError, ParseError
from graphc.ir.graph import INPUT, Graph, Node, Ref
from graphc.ops import OPS, Literal
from graphc.ops.aval import Aval
from graphc.ops.dtypes import SHORT_NAMES, of_short_name

_CONSTANT = OPS["constant"]
INLINE = 16  # constants up to this many elements are written as numbers
_PROVENANCE = re.compile(r"  # (?P<where>[^\[]*?)(?: \[(?P<scope>[^\]]*)\])?$")
_NODE_NAME = re.compile(r"v(\d+)$")


# --- printing


def names_of(graph: Graph) -> dict[int, str]:
    """A unique identifier for each node: its own name for an input, v<id> for the others."""
    names: dict[int, str] = {}
    taken = {f"v{id}" for id in graph.nodes}
    for id in graph.inputs:
        stem = re.sub(r"\W", "_", graph.nodes[id].params["name"]) or "x"
        if stem[0].isdigit() or keyword.iskeyword(stem):
            stem = f"_{stem}"
        name, suffix = stem, 1
        while name in taken:
            suffix += 1
            name = f"{stem}_{suffix}"
        taken.add(name)
        names[id] = name
    for id in graph.nodes:
        names.setdefault(id, f"v{id}")
    return names


def show(graph: Graph) -> str:
    """The text of `graph`."""
    names = names_of(graph)
    signature = ", ".join(f"{names[id]}: {graph.nodes[id].aval}" for id in graph.inputs)
    lines = [f"def {graph.name}({signature}):"]
    for node in graph.operations():
        arguments = [names[i] for i in node.inputs]
        arguments += [f"{name}={_show_value(value)}" for name, value in node.params.items()]
        place = f"  # {node.where}" + (f" [{node.scope}]" if node.scope else "") if node.where or node.scope else ""
        lines.append(f"    {names[node.id]}: {node.aval} = {node.op.name}({', '.join(arguments)}){place}")
    lines.append(f"    return {_show_result(graph.result, names)}")
    return "\n".join(lines) + "\n"


def _show_value(value: Any) -> str:
    if isinstance(value, np.dtype):
        return SHORT_NAMES[value]
    if isinstance(value, Literal):
        return _show_literal(value)
    if isinstance(value, tuple):
        inner = ", ".join(map(_show_value, value))
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    return repr(value)


def _show_literal(literal: Literal) -> str:
    array = literal.array
    if array.size <= INLINE and array.dtype.kind in "biuf" and array.size:
        text = _numbers(array)
        try:
            if _literal(ast.parse(text, mode="eval").body, Aval(array.shape, array.dtype)) == literal:
                return text
        except (ParseError, OverflowError):
            pass  # a bit pattern that decimal text does not reach (a nan with a payload): written as bytes below
    return f"'{base64.b64encode(array.tobytes()).decode()}'"


def _numbers(array: np.ndarray) -> str:
    if array.ndim:
        return "[" + ", ".join(_numbers(row) for row in array) + "]"
    return str(array[()])


def _show_result(result: Any, names: dict[int, str]) -> str:
    if isinstance(result, Ref):
        return names[result.id]
    if isinstance(result, dict):
        return "{" + ", ".join(f"{key!r}: {_show_result(value, names)}" for key, value in result.items()) + "}"
    if isinstance(result, (tuple, list)):
        inner = ", ".join(_show_result(value, names) for value in result)
        if isinstance(result, list):
            return f"[{inner}]"
        return f"({inner},)" if len(result) == 1 else f"({inner})"
    return repr(result)


# --- parsing


def parse(text: str) -> Graph:
    """The graph that `text` describes. Raises ParseError, with the line, for text that is not one."""
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ParseError(f"not a graph: {error}") from None
    if len(module.body) != 1 or not isinstance(module.body[0], ast.FunctionDef):
        raise ParseError("not a graph: expected a single 'def'")
    function = module.body[0]
    lines = text.splitlines()
    ids: dict[str, int] = {}
    nodes: dict[int, Node] = {}
    body = function.body
    reserved = [_number_of(s.target) for s in body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)]
    free = max((n for n in reserved if n is not None), default=-1) + 1
    inputs = []
    for position, argument in enumerate(function.args.args):
        if argument.arg in ids:
            raise _error(argument, f"input '{argument.arg}' is named twice")
        id = position if position not in reserved else free + position
        ids[argument.arg] = id
        nodes[id] = Node(id, INPUT, (), {"name": argument.arg}, _aval(argument.annotation, argument))
        inputs.append(id)
    for statement in body[:-1]:
        _parse_node(statement, lines, ids, nodes)
    last = body[-1]
    if not isinstance(last, ast.Return):
        raise _error(last, "expected 'return' as the last line")
    try:
        return Graph(function.name, nodes, tuple(inputs), _parse_result(last.value, ids)).check()
    except ParseError:
        raise
    except GraphError as error:
        raise ParseError(str(error)) from None


def _number_of(target: ast.Name) -> int | None:
    match = _NODE_NAME.match(target.id)
    return int(match[1]) if match and len(match[1]) < 10 else None


def _error(at: ast.AST, what: str) -> ParseError:
    return ParseError(f"line {getattr(at, 'lineno', '?')}: {what}")


def _parse_node(statement: ast.stmt, lines: list[str], ids: dict[str, int], nodes: dict[int, Node]) -> None:
    if not (isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
            and isinstance(statement.value, ast.Call) and isinstance(statement.value.func, ast.Name)):  # fmt: skip
        raise _error(statement, "expected 'name: type = op(operands, parameters)'")
    name, call = statement.target.id, statement.value
    assert isinstance(call.func, ast.Name)
    op = OPS.get(call.func.id)
    if op is None:
        raise _error(statement, f"unknown op '{call.func.id}'")
    aval = _aval(statement.annotation, statement)
    operands = []
    for argument in call.args:
        if not isinstance(argument, ast.Name) or argument.id not in ids:
            raise _error(statement, f"{op.name}: an operand is not the name of an earlier value")
        operands.append(ids[argument.id])
    read = _literal if op is _CONSTANT else _value
    params = {k.arg: read(k.value, aval) for k in call.keywords if k.arg is not None}
    if params.keys() != op.params.keys():
        raise _error(statement, f"{op.name} takes parameters {list(op.params)}, got {list(params)}")
    if name in ids:
        raise _error(statement, f"'{name}' is assigned twice")
    id = _number_of(statement.target)
    if id is None or id in nodes:
        raise _error(statement, f"'{name}' is not a free node name")
    match = _PROVENANCE.search(lines[(statement.end_lineno or statement.lineno) - 1])
    ids[name] = id
    where, scope = (match["where"], match["scope"] or "") if match else ("", "")
    nodes[id] = Node(id, op, tuple(operands), {p: params[p] for p in op.params}, aval, where, scope)


def _aval(annotation: ast.expr | None, at: ast.AST) -> Aval:
    if isinstance(annotation, ast.Name) and (dtype := of_short_name(annotation.id)) is not None:
        return Aval((), dtype)
    if not isinstance(annotation, ast.Subscript) or not isinstance(annotation.value, ast.Name):
        raise _error(at, "expected a type such as f32[2,3]")
    dtype = of_short_name(annotation.value.id)
    extents = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]
    shape = tuple(e.value for e in extents if isinstance(e, ast.Constant) and type(e.value) is int)
    if dtype is None or len(shape) != len(extents):
        raise _error(at, "expected a type such as f32[2,3]")
    return Aval(shape, dtype)


def _value(node: ast.expr, aval: Aval) -> Any:
    if isinstance(node, ast.Name):
        if (dtype := of_short_name(node.id)) is not None:
            return dtype
        if node.id in ("nan", "inf"):
            return float(node.id)
    if isinstance(node, ast.Tuple):
        return tuple(_value(element, aval) for element in node.elts)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand, aval)
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float, str, bool, type(None))):
        return node.value
    raise _error(node, "a parameter must be a number, a string, a dtype or a tuple of them")


def _literal(node: ast.expr, aval: Aval) -> Literal:
    """The constant of type `aval` that `node` writes out: numbers, or base64 of the bytes."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            data = base64.b64decode(node.value, validate=True)
            return Literal(np.frombuffer(data, aval.dtype).reshape(aval.shape))
        except (binascii.Error, ValueError) as error:
            raise _error(node, f"not the bytes of a {aval}: {error}") from None
    return Literal(_array(node, aval))


def _array(node: ast.expr, aval: Aval) -> np.ndarray:
    if aval.shape:
        if not isinstance(node, ast.List) or len(node.elts) != aval.shape[0]:
            raise _error(node, f"expected a list of {aval.shape[0]}")
        rest = Aval(aval.shape[1:], aval.dtype)
        return np.array([_array(element, rest) for element in node.elts], aval.dtype)
    if aval.dtype.kind != "f":
        number = _value(node, aval)
        if not isinstance(number, int):
            raise _error(node, f"not a value of {aval}")
        return np.array(number, aval.dtype)
    # through text, so that the shortest decimal of a float32 gives back its bits; -0.0 keeps its sign
    negative = False
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        negative, node = True, node.operand
    number = _value(node, aval)
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        raise _error(node, f"not a value of {aval}")
    magnitude = aval.dtype.type(repr(number))
    return np.array(-magnitude if negative else magnitude, aval.dtype)


def _parse_result(node: ast.expr | None, ids: dict[str, int]) -> Any:
    if isinstance(node, ast.Name):
        if node.id not in ids:
            raise _error(node, f"the result names '{node.id}', which is not a value")
        return Ref(ids[node.id])
    if isinstance(node, ast.Tuple):
        return tuple(_parse_result(element, ids) for element in node.elts)
    if isinstance(node, ast.List):
        return [_parse_result(element, ids) for element in node.elts]
    if isinstance(node, ast.Dict):
        return {
            _value(key, _ANY): _parse_result(value, ids)
            for key, value in zip(node.keys, node.values, strict=True)
            if key
        }
    if node is None:
        return None
    return _value(node, _ANY)


_ANY = Aval((), np.dtype(np.float64))
