"""Graphs in files: a line of header, and the graph's text. There is nothing in a file that could be run.

    # graphc graph 1 sha256=...
    def loss(w: f32[3,1], x: f32[8,3]):
        ...

The checksum, which may be left out, finds damage; it vouches for nothing. What a forged file may say is decided by
the alphabet (graphc.ir.lexical), the parser and the checker. The history of passes is not kept.
"""

from __future__ import annotations

import hashlib
import os
import re

from graphc.errors import GraphError, ParseError
from graphc.files import writing
from graphc.files.contents import FileLike, Refuse, contents
from graphc.files.json_text import NOT_UTF8
from graphc.ir.graph import Graph
from graphc.ir.lexical import LARGEST
from graphc.ir.parsing import parse
from graphc.ir.text import show

VERSION = 1
_HEADER = re.compile(rb"# graphc graph (\d{1,9})(?: sha256=([0-9a-f]{64}))?\n")
_HEADER_SIZE = 128  # bytes, at most

NO_HEADER = (
    "not a graph file: it does not start with '# graphc graph <version>'. Remedy: Graph.save writes one; commands take "
    "the function of a program as file.py:function"
)
NEWER = "a graph file of version {version}, and this graphc reads version 1. Remedy: update graphc"
DAMAGED = (
    "the file is damaged: its text is not the one that was saved (sha256 differs).\n"
    "Remedy: get it again; or, if the text was edited on purpose, take ' sha256=...' out of the first line."
)
NOT_KEPT = (
    "the graph does not read back from its text as it was: {problem}.\n"
    "Remedy: return only tensors, numbers, strings, None, and tuples, named tuples, lists and dicts of them."
)


def save(graph: Graph, file: FileLike) -> None:
    """Write `graph` to `file`, a path or a binary file object. `load` reads an equal graph with the same locations.

    Raises GraphError if the graph is not well formed, or holds something that a text cannot: nothing is written then.
    A path is replaced in one step, so that no half of a file is ever seen.
    """
    text = show(graph.check())
    try:
        read = parse(text)
    except ParseError as error:
        raise GraphError(NOT_KEPT.format(problem=error)) from None
    if read != graph:
        raise GraphError(NOT_KEPT.format(problem="another result, or another parameter"))
    body = text.encode()
    data = f"# graphc graph {VERSION} sha256={hashlib.sha256(body).hexdigest()}\n".encode() + body
    if not isinstance(file, (str, os.PathLike)):
        file.write(data)
        return
    writing.write(file, data)


def load(file: FileLike) -> Graph:
    """The graph that `save` wrote to `file`, a path or a binary file object, checked.

    Raises ParseError, which says what is wrong and in which line, for any other content. No file can run code, and
    memory and time are in proportion to its size. A file has at most 2**30 bytes and 1.5 million tokens, brackets up to
    90 deep and numbers of up to 40 digits.
    """
    where = os.fspath(file) if isinstance(file, (str, os.PathLike)) else str(getattr(file, "name", "graph file"))
    refuse = ParseError.of(where)
    return _loads(contents(file, LARGEST + _HEADER_SIZE, refuse), refuse)


def _loads(data: bytes, refuse: Refuse) -> Graph:
    header = _HEADER.match(data)
    if header is None:
        raise refuse(NO_HEADER, "")
    if int(header[1]) != VERSION:
        raise refuse(NEWER.format(version=int(header[1])), "")
    body = data[header.end() :]
    if header[2] is not None and hashlib.sha256(body).hexdigest().encode() != header[2]:
        raise refuse(DAMAGED, "")
    try:
        return parse(body.decode())
    except UnicodeDecodeError as error:
        raise refuse(NOT_UTF8, f"line {body.count(10, 0, error.start) + 1} after the header") from None
    except ParseError as error:
        raise refuse(error.problem, error.place and f"{error.place} after the header") from None
