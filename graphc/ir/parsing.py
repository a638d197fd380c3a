"""A graph from its text: see `graphc.ir.text`. The alphabet is checked first (`graphc.ir.lexical`)."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from graphc.errors import GraphError, ParseError
from graphc.files.contents import check_keys
from graphc.ir.calling import Call
from graphc.ir.graph import INPUT, Graph, Node, Ref
from graphc.ir.lexical import scan
from graphc.ir.named import named_tuple
from graphc.ir.sizes import SizesOfText
from graphc.ir.text_values import WORDS, aval_of, literal_of, problem_at, sizes, value_of
from graphc.ops import OPS

_CONSTANT = OPS["constant"]
_PROVENANCE = re.compile(r"  # (?:\{[^}]*\} ?)?(?P<where>[^\[]*?)(?: \[(?P<scope>[^\]]*)\])?")
_INNER_NAME = re.compile(r"_v\d+(_\d+)?\Z")
_NODE_NAME = re.compile(r"v(\d+)")


def parse(text: str) -> Graph:
    """The graph that `text` describes. Raises ParseError, with the line, for text that is not one."""
    text = text.replace("\r\n", "\n")
    scan(text)
    sizes.set(SizesOfText())
    try:
        module = ast.parse(text, "<graph>")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ParseError(f"not a graph: {error}") from None
    if len(module.body) != 1 or not isinstance(module.body[0], ast.FunctionDef):
        raise ParseError("not a graph: expected a single 'def'")
    try:
        return _parse_function(module.body[0], module.body[0].name, text.split("\n"))
    except RecursionError:
        raise ParseError("not a graph: too many graphs within graphs") from None


def _parse_function(function: ast.FunctionDef, name: str, lines: list[str]) -> Graph:
    signature = function.args
    if signature.defaults or signature.posonlyargs or signature.kwonlyargs or signature.vararg or signature.kwarg:
        raise problem_at(function, "expected inputs of the form 'name: type'")
    ids: dict[str, int] = {}
    nodes: dict[int, Node] = {}
    body = function.body
    targets = (s.target for s in body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name))
    reserved = {n for n in map(_number_of, targets) if n is not None}
    free = max(reserved, default=-1) + 1
    inputs = []
    inner: dict[str, Graph] = {}
    for position, argument in enumerate(signature.args):
        if argument.arg in ids:
            raise problem_at(argument, f"input '{argument.arg}' is named twice")
        id = position if position not in reserved else free + position
        ids[argument.arg] = id
        nodes[id] = Node(id, INPUT, (), {"name": argument.arg}, (aval_of(argument.annotation, argument),))
        inputs.append(id)
    call: Call | None = None
    for statement in body[:-1]:
        if _is_call(statement):
            call = _parse_call(statement, ids, inputs)
        elif isinstance(statement, ast.FunctionDef):
            own = _INNER_NAME.sub("", statement.name)
            inner[statement.name] = _parse_function(statement, own, lines)
        elif not _parse_input(statement, lines, ids, nodes):
            _parse_node(statement, lines, ids, nodes, inner)
            inner.clear()  # they are that node's: graphs form a tree, which is as large as its text
    last = body[-1]
    if not isinstance(last, ast.Return):
        raise problem_at(last, "expected 'return' as the last line")
    try:
        return Graph(name, nodes, tuple(inputs), _parse_result(last.value, ids), call=call).check()
    except ParseError:
        raise
    except GraphError as error:
        raise ParseError(str(error)) from None


def _number_of(target: ast.Name) -> int | None:
    match = _NODE_NAME.fullmatch(target.id)
    return int(match[1]) if match and len(match[1]) < 10 else None


def _parse_input(statement: ast.stmt, lines: list[str], ids: dict[str, int], nodes: dict[int, Node]) -> bool:
    """Whether `statement` gives an input's own name and place, which are then entered."""
    if not isinstance(statement, ast.AnnAssign) or statement.value is not None:
        return False
    target, own = statement.target, statement.annotation
    if isinstance(target, ast.Name) and target.id == "where" and isinstance(own, ast.Tuple):
        try:
            sizes.get().conditions(own)
        except ValueError as error:
            raise problem_at(statement, str(error)) from None
        return True
    id = ids.get(target.id) if isinstance(target, ast.Name) else None
    if id is None or nodes[id].op is not INPUT or not isinstance(own, ast.Constant) or not isinstance(own.value, str):
        raise problem_at(statement, "expected the name of an input and its own name, a string")
    nodes[id] = Node(id, INPUT, (), {"name": own.value}, nodes[id].results, *_place(statement, lines))
    return True


def _is_call(statement: ast.stmt) -> bool:
    """Whether `statement` says how the function is called: "call: (given, parameters, defaults)"."""
    return (
        isinstance(statement, ast.AnnAssign)
        and isinstance(statement.target, ast.Name)
        and statement.target.id == "call"
        and statement.value is None
        and isinstance(statement.annotation, ast.Tuple)
    )


def _parse_call(statement: Any, ids: dict[str, int], inputs: list[int]) -> Call:
    problem = "expected 'call: ({parameter: value, ...}, (parameter, ...), {parameter: default, ...})'"
    try:
        given, parameters, defaults = _parse_result(statement.annotation, ids)
        call = Call(parameters, defaults, given, Ref)
        if (
            type(parameters) is not tuple
            or not all(isinstance(p, str) for p in parameters)
            or given.keys() != call.signature.parameters.keys()
        ):
            raise problem_at(statement, problem)
        for name, p in call.signature.parameters.items():
            rest = {p.VAR_POSITIONAL: tuple, p.VAR_KEYWORD: dict}.get(p.kind)
            if rest is not None and type(given[name]) is not rest:
                raise problem_at(statement, problem)
    except (AttributeError, TypeError, ValueError) as error:
        raise error if isinstance(error, ParseError) else problem_at(statement, problem) from None
    if len(set(call.leaves)) != len(call.leaves) or not set(call.leaves) <= set(inputs):
        raise problem_at(statement, "a call gives each input once, and nothing else")
    return call


def _place(statement: ast.stmt, lines: list[str]) -> tuple[str, str]:
    """(where, scope): the comment behind a statement."""
    line = lines[(statement.end_lineno or statement.lineno) - 1]
    end = statement.end_col_offset or 0
    rest = line[end:] if line.isascii() else line.encode()[end:].decode()
    match = _PROVENANCE.fullmatch(rest)
    return (unquote(match["where"]), unquote(match["scope"] or "")) if match else ("", "")


def _parse_node(
    statement: ast.stmt, lines: list[str], ids: dict[str, int], nodes: dict[int, Node], inner: Mapping[str, Graph]
) -> None:
    if not (isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
            and isinstance(statement.value, ast.Call) and isinstance(statement.value.func, ast.Name)):  # fmt: skip
        raise problem_at(statement, "expected 'name: type = op(operands, parameters)'")
    name, call = statement.target.id, statement.value
    assert isinstance(call.func, ast.Name)
    op = OPS.get(call.func.id)
    if op is None:
        raise problem_at(statement, f"unknown op '{call.func.id}'")
    annotation = statement.annotation
    if isinstance(annotation, ast.Tuple) != op.several:
        raise problem_at(statement, f"{op.name} is not an operation with these results")
    parts = annotation.elts if isinstance(annotation, ast.Tuple) else [annotation]
    results = tuple(aval_of(part, statement) for part in parts)
    operands = []
    for argument in call.args:
        if not isinstance(argument, ast.Name) or argument.id not in ids:
            raise problem_at(statement, f"{op.name}: an operand is not the name of an earlier value")
        operands.append(ids[argument.id])
    params = {
        k.arg: literal_of(k.value, results[0]) if op is _CONSTANT else value_of(k.value, inner)
        for k in call.keywords
        if k.arg is not None
    }
    if len(params) != len(call.keywords) or params.keys() != op.params.keys():
        raise problem_at(statement, f"{op.name} takes parameters {list(op.params)}, got {list(params)}")
    if name in ids:
        raise problem_at(statement, f"'{name}' is assigned twice")
    id = _number_of(statement.target)
    if id is None or id in nodes:
        raise problem_at(statement, f"'{name}' is not a free node name")
    ids[name] = id
    nodes[id] = Node(id, op, tuple(operands), {p: params[p] for p in op.params}, results, *_place(statement, lines))


def _parse_result(node: ast.expr | None, ids: dict[str, int]) -> Any:
    if isinstance(node, ast.Name) and node.id not in WORDS:
        if node.id not in ids:
            raise problem_at(node, f"the result names '{node.id}', which is not a value")
        return Ref(ids[node.id])
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.keywords:
        return _parse_named_tuple(node, node.func.id, ids)
    if isinstance(node, ast.Tuple):
        return tuple(_parse_result(element, ids) for element in node.elts)
    if isinstance(node, ast.List):
        return [_parse_result(element, ids) for element in node.elts]
    if isinstance(node, ast.Dict):
        keys = [value_of(key) for key in node.keys if key is not None]
        check_keys(keys, f"line {node.lineno}", lambda problem, place: ParseError(problem, place=place))
        found = dict(zip(keys, (_parse_result(value, ids) for value in node.values), strict=True))
        if len(found) != len(keys):
            raise problem_at(node, "two entries with the same key")
        return found
    if node is None:
        return None
    return value_of(node)


def _parse_named_tuple(call: ast.Call, name: str, ids: dict[str, int]) -> Any:
    fields = tuple(k.arg or "" for k in call.keywords)
    if call.args or any(field.startswith("_") or not field for field in fields):
        raise problem_at(call, f"expected {name}(field=value, ...)")
    return named_tuple(name, fields)(*(_parse_result(k.value, ids) for k in call.keywords))
