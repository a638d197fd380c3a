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

The line of an input is there if its own name is no identifier, or its place is known. `graphc.ir.parsing` reads it,
and evaluates nothing.
"""

from __future__ import annotations

import ast
import base64
import keyword
import math
import re
import unicodedata
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

import numpy as np

from graphc.errors import ParseError
from graphc.ir.dimensions import sizes_in
from graphc.ir.graph import Graph, Node, Ref
from graphc.ir.named import fields_of
from graphc.ir.sizes import conditions, written
from graphc.ir.structure import bodies
from graphc.ir.text_values import WORDS, literal_of
from graphc.ops import Literal
from graphc.ops.aval import Aval
from graphc.ops.dims import has_dim, is_dim
from graphc.ops.dtypes import SHORT_NAMES

INLINE = 16  # constants up to this many elements are written as numbers
LARGE = 4096  # bytes of a constant that a text for people leaves out
_QUOTED = re.compile(r"[%\[\]{]|\s(?=\s|$)|^\s|[^\S ]|[\x00-\x1f\x7f]|[\ud800-\udfff]")  # of a place: what would end it
_NO_GRAPHS: Mapping[Graph, str] = MappingProxyType({})


def names_of(graph: Graph, reserved: Callable[[str], bool] = WORDS.__contains__) -> dict[int, str]:
    """A unique identifier for each node: its own name for an input, unless that is `reserved`; v<id> for the others."""
    names: dict[int, str] = {}
    taken = {f"v{id}" for id in graph.nodes}
    used: dict[str, int] = {}  # stem -> the last suffix
    for id in graph.inputs:
        stem = _identifier(graph.nodes[id].params["name"])
        stem = f"_{stem}" if reserved(f"{stem}_0") else stem  # no suffix would help
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
            if literal_of(ast.parse(text, mode="eval").body, Aval(array.shape, array.dtype)) == literal:
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
