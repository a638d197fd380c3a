"""Types, numbers and constants of a graph's text, read from its syntax tree. Nothing is evaluated."""

from __future__ import annotations

import ast
import base64
import binascii
from collections.abc import Mapping
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any

import numpy as np

from graphc.errors import ParseError
from graphc.ir.graph import Graph
from graphc.ir.sizes import NAME, SizesOfText
from graphc.ops import Literal
from graphc.ops.aval import Aval
from graphc.ops.dims import is_dim
from graphc.ops.dtypes import BOOL, SHORT_NAMES, kind, of_short_name

WORDS = {"nan", "inf", "complex", *SHORT_NAMES.values()}  # names that are values
sizes: ContextVar[SizesOfText] = ContextVar("sizes")  # of the text that is being read


def problem_at(at: ast.AST, what: str) -> ParseError:
    """What is wrong with the text, and where."""
    return ParseError(what, place=f"line {getattr(at, 'lineno', '?')}")


def aval_of(annotation: ast.expr | None, at: ast.AST) -> Aval:
    """The shape and dtype that a type such as f32[2,3] is. Raises ParseError."""
    if isinstance(annotation, ast.Name) and (dtype := of_short_name(annotation.id)) is not None:
        return Aval((), dtype)
    if not isinstance(annotation, ast.Subscript) or not isinstance(annotation.value, ast.Name):
        raise problem_at(at, "expected a type such as f32[2,3]")
    dtype = of_short_name(annotation.value.id)
    extents = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]
    shape: Any = tuple(e.value if isinstance(e, ast.Constant) else _size(e) for e in extents)
    if dtype is None or not all(is_dim(n) or type(n) is int for n in shape):
        raise problem_at(at, "expected a type such as f32[2,3]")
    return Aval(shape, dtype)


def _size(node: ast.expr) -> Any:
    try:
        return sizes.get().read(node)
    except ValueError as error:
        raise problem_at(node, f"not a size: {error}") from None


def value_of(node: ast.expr, inner: Mapping[str, Graph] = MappingProxyType({})) -> Any:
    """The parameter that `node` writes out. inner: graphs by name. Raises ParseError."""
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
        return tuple(value_of(element, inner) for element in node.elts)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        number = value_of(node.operand)
        if type(number) in (int, float):
            return -number
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "complex":
        parts = [value_of(argument) for argument in node.args]
        if len(parts) == 2 and not node.keywords and all(type(part) in (int, float) for part in parts):
            return complex(*parts)
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float, str, bool, type(None))):
        return node.value
    if isinstance(node, ast.Call):
        return _size(node)
    raise problem_at(node, "a parameter must be a number, a string, a dtype or a tuple of them")


def literal_of(node: ast.expr, aval: Aval) -> Literal:
    """The constant of type `aval` that `node` writes out: numbers, or base64 of the bytes. Raises ParseError."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        if node.value.startswith("<"):
            raise problem_at(
                node, "a constant that the text leaves out. Remedy: graph.text() and graph.save(file) have it"
            )
        try:
            data = base64.b64decode(node.value, validate=True)
            if aval.dtype == BOOL and data.strip(b"\0\1"):
                raise ValueError("a byte that is neither 0 nor 1")
            return Literal(np.frombuffer(data, aval.dtype).reshape(aval.shape))
        except (binascii.Error, ValueError) as error:
            raise problem_at(node, f"not the bytes of a {aval}: {error}") from None
    return Literal(_array(node, aval))


def _array(node: ast.expr, aval: Aval) -> np.ndarray:
    if aval.shape:
        if not isinstance(node, ast.List) or len(node.elts) != aval.shape[0]:
            raise problem_at(node, f"expected a list of {aval.shape[0]}")
        rest = Aval(aval.shape[1:], aval.dtype)
        return np.array([_array(element, rest) for element in node.elts], aval.dtype).reshape(aval.shape)
    if kind(aval.dtype) != "f":
        number = value_of(node)
        if not isinstance(number, int) or isinstance(number, bool) != (aval.dtype == BOOL):
            raise problem_at(node, f"not a value of {aval}")
        try:
            return np.array(number, aval.dtype)
        except (OverflowError, TypeError):
            raise problem_at(node, f"not a value of {aval}") from None
    # through text, so that the shortest decimal of a float32 gives back its bits; -0.0 keeps its sign
    negative = False
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        negative, node = True, node.operand
    number = value_of(node)
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        raise problem_at(node, f"not a value of {aval}")
    try:
        magnitude = aval.dtype.type(repr(number))
    except (OverflowError, TypeError, ValueError):
        raise problem_at(node, f"not a value of {aval}") from None
    return np.array(-magnitude if negative else magnitude, aval.dtype)
