"""The alphabet of graph texts, checked before Python's parser sees them.

A graph needs names, numbers, strings, brackets and `: , = -`, and nothing that nests without brackets. So a text that
passes cannot take the parser's stack, and takes time and memory in proportion to its length.
"""

from __future__ import annotations

import keyword
import re

from graphc.errors import ParseError
from graphc.files.contents import DIGITS

LARGEST = 1 << 30  # characters of a text
TOKENS = 1_500_000  # about 25 for a node; they become up to 600 bytes each, of Python's syntax tree and of the graph
DEPTH = 90  # brackets within brackets; Python's parser gives up at 200
INDENTATION = 64  # columns, four for each graph within a graph; Python's parser gives up at 100 levels

_TOKEN = re.compile(
    r"""
      (?P<space>[ ]+)
    | (?P<comment>\#[^\n]*)
    | (?P<newline>\n)
    | (?P<name>[^\W\d]\w*)
    | (?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)
    | (?P<string>'(?:[^'\\\n]++|\\(?:[\\'"nrt]|x..|u.{4}|U.{8}))*+'
                |"(?:[^"\\\n]++|\\(?:[\\'"nrt]|x..|u.{4}|U.{8}))*+")
    | (?P<open>[(\[{])
    | (?P<close>[)\]}])
    | (?P<mark>[:,=])
    | (?P<minus>-)
    """,
    re.VERBOSE,
)
_UNEXPECTED = "unexpected {}: expected 'name: type = op(operands, parameters)'"
_VALUES = {"None", "True", "False"}
_STATEMENTS = {"def", "return"}
_ENDS = {"name", "number", "string", "close"}  # kinds after which no operand can start


def scan(text: str) -> None:
    """Raise ParseError, with the line, unless `text` consists of what graphs consist of, within the limits above."""
    if len(text) > LARGEST:
        raise ParseError(f"not a graph: {len(text):,} characters, at most {LARGEST:,} are read")
    at, depth, before, count = 0, 0, "newline", 0
    for token in _TOKEN.finditer(text):
        start = token.start()
        if start != at:
            break
        at, kind = token.end(), token.lastgroup
        if kind == "space":
            if before == "newline" and at - start > INDENTATION and not depth:
                raise _error(text, start, f"more than {INDENTATION} columns of indentation")
            continue
        count += 1
        if count > TOKENS:
            raise _error(text, start, f"more than {TOKENS:,} tokens")
        if kind == "comment":
            continue
        if kind == "newline":
            before = before if depth else "newline"
            continue
        if kind in ("name", "number", "string"):
            if before in _ENDS:
                raise _error(text, start, _UNEXPECTED.format(_shown(token[0])))
            if kind == "number" and at - start > DIGITS:
                raise _error(text, start, f"a number of more than {DIGITS} characters")
            if kind == "name" and keyword.iskeyword(token[0]) and token[0] not in _VALUES:
                if token[0] not in _STATEMENTS or before != "newline":
                    raise _error(text, start, _UNEXPECTED.format(repr(token[0])))
                kind = "mark"
        elif kind == "open":
            # a call of a name, a subscript of a name, or a display; never of a result: chains nest without brackets
            if before in _ENDS and (before != "name" or token[0] == "{"):
                raise _error(text, start, _UNEXPECTED.format(repr(token[0])))
            depth += 1
            if depth > DEPTH:
                raise _error(text, start, f"more than {DEPTH} brackets within brackets")
        elif kind == "close":
            depth -= 1
        elif kind == "minus" and before not in ("mark", "open"):
            raise _error(text, start, _UNEXPECTED.format("'-'"))
        before = kind
    if at != len(text):
        raise _error(text, at, _UNEXPECTED.format(_shown(text[at])))


def _shown(token: str) -> str:
    return repr(token if len(token) <= 20 else f"{token[:20]}...")


def _error(text: str, at: int, what: str) -> ParseError:
    return ParseError(what, place=f"line {text.count(chr(10), 0, at) + 1}")
