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
from pathlib import Path
from typing import IO

from graphc.errors import GraphError, ParseError
from graphc.ir.graph import Graph
from graphc.ir.lexical import LARGEST
from graphc.ir.text import parse, show

VERSION = 1
_HEADER = re.compile(rb"# graphc graph (\d{1,9})(?: sha256=([0-9a-f]{64}))?\n")
_HEADER_SIZE = 128  # bytes, at most

NO_HEADER = "{where}: not a graph file: it does not start with '# graphc graph <version>'"
NEWER = "{where}: a graph file of version {version}, and this graphc reads version 1. Remedy: update graphc"
DAMAGED = (
    "{where}: the file is damaged: its text is not the one that was saved (sha256 differs).\n"
    "Remedy: get it again; or, if the text was edited on purpose, take ' sha256=...' out of the first line."
)
TOO_LARGE = "{where}: {size:,} bytes; graph files have at most {limit:,}"
NOT_KEPT = (
    "the graph does not read back from its text as it was: {problem}.\n"
    "Remedy: return only tensors, numbers, strings, None, and tuples, named tuples, lists and dicts of them."
)

Place = str | os.PathLike[str] | IO[bytes]


def save(graph: Graph, file: Place) -> None:
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
    path = Path(file)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_bytes(data)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def load(file: Place) -> Graph:
    """The graph that `save` wrote to `file`, a path or a binary file object, checked.

    Raises ParseError, which says what is wrong and in which line, for any other content. No file can run code, and
    memory and time are in proportion to its size. A file has at most 2**30 bytes and 4 million tokens, brackets up to
    90 deep and numbers of up to 40 digits.
    """
    if isinstance(file, (str, os.PathLike)):
        with open(file, "rb") as opened:
            return _loads(opened.read(LARGEST + _HEADER_SIZE + 1), os.fspath(file))
    return _loads(file.read(LARGEST + _HEADER_SIZE + 1), str(getattr(file, "name", "graph file")))


def _loads(data: bytes, where: str) -> Graph:
    if len(data) > LARGEST + _HEADER_SIZE:
        raise ParseError(TOO_LARGE.format(where=where, size=len(data), limit=LARGEST))
    header = _HEADER.match(data)
    if header is None:
        raise ParseError(NO_HEADER.format(where=where))
    if int(header[1]) != VERSION:
        raise ParseError(NEWER.format(where=where, version=int(header[1])))
    body = data[header.end() :]
    if header[2] is not None and hashlib.sha256(body).hexdigest().encode() != header[2]:
        raise ParseError(DAMAGED.format(where=where))
    try:
        return parse(body.decode())
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        raise ParseError(f"{where}: line {line + 1}: a byte that is not UTF-8") from None
    except ParseError as error:
        raise ParseError(f"{where}, after the header: {error}") from None
