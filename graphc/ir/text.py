"""A graph as text, and back. The text is Python syntax: annotated assignments under a `def`.

    def loss(head_weight: f32[3,1], x: f32[8,3]):
        head_weight: 'head.weight'  # model.py:9
        v2: f32[8,1] = matmul(x, head_weight)  # model.py:12 [head]
        return v2

A graph that a node runs is a `def` above the line of the node, named after both:

    def total(xs: f32[8]):
        v1: f32 = constant(value=0.0)
        def body_v2(c: f32, x: f32):
            v2: f32 = add(c, x)
            return (v2,)
        v2: (f32,) = scan(v1, xs, body=body_v2, consts=0, carries=1, length=8, reverse=False, unroll=1)
        v3: f32 = item(v2, index=0)
        return v3

The line of an input is there if its own name is no identifier, or its place is known. Parsing checks the alphabet
(graphc.ir.lexical), goes through `ast` and builds nodes; it evaluates nothing.
"""

from __future__ import annotations

import ast
import base64
import binascii
import keyword
import math
import re
import unicodedata
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any
from urllib.parse import quote, unquote

import numpy as np

from graphc.errors import GraphError, ParseError
from graphc.files.contents import check_keys
from graphc.ir.calling import Call
from graphc.ir.dimensions import sizes_in
from graphc.ir.graph import INPUT, Graph, Node, Ref
from graphc.ir.lexical import scan
from graphc.ir.named import fields_of, named_tuple
from graphc.ir.sizes import NAME, SizesOfText, conditions, written
from graphc.ir.structure import bodies
from graphc.ops import OPS, Literal
from graphc.ops.aval import Aval
from graphc.ops.dims import has_dim, is_dim
from graphc.ops.dtypes import BOOL, SHORT_NAMES, kind, of_short_name

_CONSTANT = OPS["constant"]
INLINE = 16  # constants up to this many elements are written as numbers
LARGE = 4096  # bytes of a constant that a text for people leaves out
_PROVENANCE = re.compile(r"  # (?:\{[^}]*\} ?)?(?P<where>[^\[]*?)(?: \[(?P<scope>[^\]]*)\])?")
_QUOTED = re.compile(r"[%\[\]{]|\s(?=\s|$)|^\s|[^\S ]|[\x00-\x1f\x7f]|[\ud800-\udfff]")  # of a place: what would end it
_INNER_NAME = re.compile(r"_v\d+(_\d+)?\Z")
_NO_GRAPHS: Mapping[Graph, str] = MappingProxyType({})
_sizes: ContextVar[SizesOfText] = ContextVar("sizes")  # of the text that is being read
_NODE_NAME = re.compile(r"v(\d+)")
_WORDS = {"nan", "inf", "complex", *SHORT_NAMES.values()}  # names that are values


# --- printing


def names_of(graph: Graph, reserved: Callable[[str], bool] = _WORDS.__contains__) -> dict[int, str]:
    """A unique identifier for each node: its own name for an input, unless that is `reserved`; v<id> for the others."""
    names: dict[int, str] = {}
    taken = {f"v{id}" for id in graph.nodes}
    used: dict[str, int] = {}  # stem -> the last suffix
    for id in graph.inputs:
        stem = _identifier(graph.nodes[id].params["name"])
        name, suffix = stem, used.get(stem, 1)
        while name in taken or reserved(name):
            suffix += 1
            name = f"{stem}_{suffix}"
        used[stem] = suffix
        taken.add(name)
        names[id] = name
    for id in graph.nodes:
        names.setdefault(id, f"v{id}")
    return names


def _identifier(name: str) -> str:
    """`name` as Python reads a name."""
    stem = re.sub(r"\W", "_", unicodedata.normalize("NFKC", name)) or "x"
    if not stem.isascii() and not f"_{stem}".isidentifier():
        stem = re.sub(r"\W", "_", stem, flags=re.ASCII)
    return stem if stem.isidentifier() and not keyword.iskeyword(stem) else f"_{stem}"


def show(graph: Graph, most: float = math.inf) -> str:
    """The text of `graph`. most: bytes beyond which a constant is left out; then the text cannot be read back"""
    return "\n".join(_show_lines(graph, graph.name, most)) + "\n"


def _show_lines(graph: Graph, name: str, most: float) -> list[str]:
    names = names_of(graph)
    signature = ", ".join(f"{names[id]}: {_show_aval(graph.nodes[id].aval)}" for id in graph.inputs)
    lines = [f"def {name}({signature}):"]
    kept = sizes_in(graph)
    if kept is not None and (line := conditions(kept)):
        lines.append(f"    {line}")
    for id in graph.inputs:
        node = graph.nodes[id]
        place = _show_place(node, graph.shardings)
        if node.params["name"] != names[id] or place:
            lines.append(f"    {names[id]}: {node.params['name']!r}{place}")
    if (
        graph.call is not None
        and graph.call.is_written
        and not graph.call.goes_without_saying([(id, names[id]) for id in graph.inputs])
    ):
        parts = (graph.call.given, graph.call.parameters, graph.call.defaults)
        lines.append(f"    call: {_show_result(parts, names)}")
    for node in graph.operations():
        inner = _inner_names(node)
        for body, inner_name in inner.items():
            lines += [f"    {line}" for line in _show_lines(body, inner_name, most)]
        arguments = [names[i] for i in node.inputs]
        arguments += [f"{name}={show_value(value, inner, most)}" for name, value in node.params.items()]
        lines.append(
            f"    {names[node.id]}: {_show_type(node)} = {node.op.name}({', '.join(arguments)})"
            f"{_show_place(node, graph.shardings)}"
        )
    lines.append(f"    return {_show_result(graph.result, names)}")
    return lines


def _show_type(node: Node) -> str:
    if not node.op.several:
        return _show_aval(node.aval)
    return f"({', '.join(map(_show_aval, node.results))}{',' if len(node.results) == 1 else ''})"


def _show_aval(aval: Aval) -> str:
    if not has_dim(aval.shape):
        return str(aval)
    return f"{SHORT_NAMES[aval.dtype]}[{','.join(map(written, aval.shape))}]"


def _inner_names(node: Node) -> Mapping[Graph, str]:
    """A name for each graph that `node` runs."""
    if not node.op.structured:
        return _NO_GRAPHS
    distinct = dict.fromkeys(bodies(node))
    return {body: f"{body.name}_v{node.id}" + (f"_{k}" if k else "") for k, body in enumerate(distinct)}


def _show_place(node: Node, shardings: Mapping[Any, Any]) -> str:
    lies = f"{shardings[node.id]} " if node.id in shardings else ""  # "{data, -} ", which is read over
    if not lies and not node.where and not node.scope:
        return ""
    return f"  # {lies}{_quote(node.where)}".rstrip() + (f" [{_quote(node.scope)}]" if node.scope else "")


def _quote(place: str) -> str:
    return _QUOTED.sub(lambda m: quote(m[0], safe="", errors="surrogatepass"), place)


def show_value(value: Any, inner: Mapping[Graph, str] = MappingProxyType({}), most: float = math.inf) -> str:
    """A parameter as `show` writes it. inner: the names of graphs among its values"""
    if is_dim(value):
        return written(value)
    if isinstance(value, Graph):
        return inner[value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, complex):
        return f"complex({value.real!r}, {value.imag!r})"
    if isinstance(value, np.dtype):
        return SHORT_NAMES[value]
    if isinstance(value, Literal):
        return f"'<{value.array.nbytes:,} bytes>'" if value.array.nbytes > most else _show_literal(value)
    if isinstance(value, tuple):
        parts = ", ".join(show_value(part, inner, most) for part in value)
        return f"({parts},)" if len(value) == 1 else f"({parts})"
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
        items = (f"{show_value(key)}: {_show_result(value, names)}" for key, value in result.items())
        return "{" + ", ".join(items) + "}"
    if (record := fields_of(result)) is not None:
        fields = record.items()
        return f"{type(result).__name__}({', '.join(f'{f}={_show_result(v, names)}' for f, v in fields)})"
    if isinstance(result, (tuple, list)):
        inner = ", ".join(_show_result(value, names) for value in result)
        if isinstance(result, list):
            return f"[{inner}]"
        return f"({inner},)" if len(result) == 1 else f"({inner})"
    return show_value(result)


# --- parsing


def parse(text: str) -> Graph:
    """The graph that `text` describes. Raises ParseError, with the line, for text that is not one."""
    text = text.replace("\r\n", "\n")
    scan(text)
    _sizes.set(SizesOfText())
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
        raise _error(function, "expected inputs of the form 'name: type'")
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
            raise _error(argument, f"input '{argument.arg}' is named twice")
        id = position if position not in reserved else free + position
        ids[argument.arg] = id
        nodes[id] = Node(id, INPUT, (), {"name": argument.arg}, (_aval(argument.annotation, argument),))
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
        raise _error(last, "expected 'return' as the last line")
    try:
        return Graph(name, nodes, tuple(inputs), _parse_result(last.value, ids), call=call).check()
    except ParseError:
        raise
    except GraphError as error:
        raise ParseError(str(error)) from None


def _number_of(target: ast.Name) -> int | None:
    match = _NODE_NAME.fullmatch(target.id)
    return int(match[1]) if match and len(match[1]) < 10 else None


def _error(at: ast.AST, what: str) -> ParseError:
    return ParseError(what, place=f"line {getattr(at, 'lineno', '?')}")


def _parse_input(statement: ast.stmt, lines: list[str], ids: dict[str, int], nodes: dict[int, Node]) -> bool:
    """Whether `statement` gives an input's own name and place, which are then entered."""
    if not isinstance(statement, ast.AnnAssign) or statement.value is not None:
        return False
    target, own = statement.target, statement.annotation
    if isinstance(target, ast.Name) and target.id == "where" and isinstance(own, ast.Tuple):
        try:
            _sizes.get().conditions(own)
        except ValueError as error:
            raise _error(statement, str(error)) from None
        return True
    id = ids.get(target.id) if isinstance(target, ast.Name) else None
    if id is None or nodes[id].op is not INPUT or not isinstance(own, ast.Constant) or not isinstance(own.value, str):
        raise _error(statement, "expected the name of an input and its own name, a string")
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
            raise _error(statement, problem)
        for name, p in call.signature.parameters.items():
            rest = {p.VAR_POSITIONAL: tuple, p.VAR_KEYWORD: dict}.get(p.kind)
            if rest is not None and type(given[name]) is not rest:
                raise _error(statement, problem)
    except (AttributeError, TypeError, ValueError) as error:
        raise error if isinstance(error, ParseError) else _error(statement, problem) from None
    if len(set(call.leaves)) != len(call.leaves) or not set(call.leaves) <= set(inputs):
        raise _error(statement, "a call gives each input once, and nothing else")
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
        raise _error(statement, "expected 'name: type = op(operands, parameters)'")
    name, call = statement.target.id, statement.value
    assert isinstance(call.func, ast.Name)
    op = OPS.get(call.func.id)
    if op is None:
        raise _error(statement, f"unknown op '{call.func.id}'")
    annotation = statement.annotation
    if isinstance(annotation, ast.Tuple) != op.several:
        raise _error(statement, f"{op.name} is not an operation with these results")
    parts = annotation.elts if isinstance(annotation, ast.Tuple) else [annotation]
    results = tuple(_aval(part, statement) for part in parts)
    operands = []
    for argument in call.args:
        if not isinstance(argument, ast.Name) or argument.id not in ids:
            raise _error(statement, f"{op.name}: an operand is not the name of an earlier value")
        operands.append(ids[argument.id])
    params = {
        k.arg: _literal(k.value, results[0]) if op is _CONSTANT else _value(k.value, inner)
        for k in call.keywords
        if k.arg is not None
    }
    if len(params) != len(call.keywords) or params.keys() != op.params.keys():
        raise _error(statement, f"{op.name} takes parameters {list(op.params)}, got {list(params)}")
    if name in ids:
        raise _error(statement, f"'{name}' is assigned twice")
    id = _number_of(statement.target)
    if id is None or id in nodes:
        raise _error(statement, f"'{name}' is not a free node name")
    ids[name] = id
    nodes[id] = Node(id, op, tuple(operands), {p: params[p] for p in op.params}, results, *_place(statement, lines))


def _aval(annotation: ast.expr | None, at: ast.AST) -> Aval:
    if isinstance(annotation, ast.Name) and (dtype := of_short_name(annotation.id)) is not None:
        return Aval((), dtype)
    if not isinstance(annotation, ast.Subscript) or not isinstance(annotation.value, ast.Name):
        raise _error(at, "expected a type such as f32[2,3]")
    dtype = of_short_name(annotation.value.id)
    extents = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]
    shape: Any = tuple(e.value if isinstance(e, ast.Constant) else _size(e) for e in extents)
    if dtype is None or not all(is_dim(n) or type(n) is int for n in shape):
        raise _error(at, "expected a type such as f32[2,3]")
    return Aval(shape, dtype)


def _size(node: ast.expr) -> Any:
    try:
        return _sizes.get().read(node)
    except ValueError as error:
        raise _error(node, f"not a size: {error}") from None


def _value(node: ast.expr, inner: Mapping[str, Graph] = MappingProxyType({})) -> Any:
    if isinstance(node, ast.Name):
        if node.id in inner:
            return inner[node.id]
        if (dtype := of_short_name(node.id)) is not None:
            return dtype
        if node.id in ("nan", "inf"):
            return float(node.id)
        if NAME.fullmatch(node.id):
            return _size(node)
    if isinstance(node, ast.Tuple):
        return tuple(_value(element, inner) for element in node.elts)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        number = _value(node.operand)
        if type(number) in (int, float):
            return -number
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "complex":
        parts = [_value(argument) for argument in node.args]
        if len(parts) == 2 and not node.keywords and all(type(part) in (int, float) for part in parts):
            return complex(*parts)
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float, str, bool, type(None))):
        return node.value
    if isinstance(node, ast.Call):
        return _size(node)
    raise _error(node, "a parameter must be a number, a string, a dtype or a tuple of them")


def _literal(node: ast.expr, aval: Aval) -> Literal:
    """The constant of type `aval` that `node` writes out: numbers, or base64 of the bytes."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        if node.value.startswith("<"):
            raise _error(node, "a constant that the text leaves out. Remedy: graph.text() and graph.save(file) have it")
        try:
            data = base64.b64decode(node.value, validate=True)
            if aval.dtype == BOOL and data.strip(b"\0\1"):
                raise ValueError("a byte that is neither 0 nor 1")
            return Literal(np.frombuffer(data, aval.dtype).reshape(aval.shape))
        except (binascii.Error, ValueError) as error:
            raise _error(node, f"not the bytes of a {aval}: {error}") from None
    return Literal(_array(node, aval))


def _array(node: ast.expr, aval: Aval) -> np.ndarray:
    if aval.shape:
        if not isinstance(node, ast.List) or len(node.elts) != aval.shape[0]:
            raise _error(node, f"expected a list of {aval.shape[0]}")
        rest = Aval(aval.shape[1:], aval.dtype)
        return np.array([_array(element, rest) for element in node.elts], aval.dtype).reshape(aval.shape)
    if kind(aval.dtype) != "f":
        number = _value(node)
        if not isinstance(number, int) or isinstance(number, bool) != (aval.dtype == BOOL):
            raise _error(node, f"not a value of {aval}")
        try:
            return np.array(number, aval.dtype)
        except (OverflowError, TypeError):
            raise _error(node, f"not a value of {aval}") from None
    # through text, so that the shortest decimal of a float32 gives back its bits; -0.0 keeps its sign
    negative = False
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        negative, node = True, node.operand
    number = _value(node)
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        raise _error(node, f"not a value of {aval}")
    try:
        magnitude = aval.dtype.type(repr(number))
    except (OverflowError, TypeError, ValueError):
        raise _error(node, f"not a value of {aval}") from None
    return np.array(-magnitude if negative else magnitude, aval.dtype)


def _parse_result(node: ast.expr | None, ids: dict[str, int]) -> Any:
    if isinstance(node, ast.Name) and node.id not in _WORDS:
        if node.id not in ids:
            raise _error(node, f"the result names '{node.id}', which is not a value")
        return Ref(ids[node.id])
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.keywords:
        return _parse_named_tuple(node, node.func.id, ids)
    if isinstance(node, ast.Tuple):
        return tuple(_parse_result(element, ids) for element in node.elts)
    if isinstance(node, ast.List):
        return [_parse_result(element, ids) for element in node.elts]
    if isinstance(node, ast.Dict):
        keys = [_value(key) for key in node.keys if key is not None]
        check_keys(keys, f"line {node.lineno}", lambda problem, place: ParseError(problem, place=place))
        found = dict(zip(keys, (_parse_result(value, ids) for value in node.values), strict=True))
        if len(found) != len(keys):
            raise _error(node, "two entries with the same key")
        return found
    if node is None:
        return None
    return _value(node)


def _parse_named_tuple(call: ast.Call, name: str, ids: dict[str, int]) -> Any:
    fields = tuple(k.arg or "" for k in call.keywords)
    if call.args or any(field.startswith("_") or not field for field in fields):
        raise _error(call, f"expected {name}(field=value, ...)")
    return named_tuple(name, fields)(*(_parse_result(k.value, ids) for k in call.keywords))
