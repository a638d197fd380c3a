"""Graphs in files: what is kept, and what a damaged or hostile file can do (nothing)."""

from __future__ import annotations

import hashlib
import io
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import graphc
from graphc.errors import GraphError, ParseError
from graphc.ir import Builder, Graph, Ref
from graphc.ir.files import VERSION, load, save
from graphc.ops import OPS
from graphc.ops.aval import Aval
from graphc.ops.dtypes import FLOAT32
from graphc.passes import optimize
from tests.ir import graphs
from tests.readers.watch import nothing_runs
from tests.work import lines_run

LINES = 1000  # of Python that may run for each byte of a file, or for each node of a graph that is read
WINDOWS = ("conv2d", "max_pool2d", "conv1d_input", "max_pool1d_spread", "avg_pool2d_spread")
OTHERS = ("fft", "irfft", "searchsorted", "scatter_reduce", "standardize", "cumsum", "power_norm", "qr", "pow_scalar")
MADE: dict[str, Callable[[], Graph]] = {
    "network": graphs.network,
    "scatterings": graphs.scatterings,
    "gradient": graphs.gradient,
    "windows": lambda: graphs.sampled(WINDOWS),
    "others": lambda: graphs.sampled(OTHERS),
    "constant": lambda: graphs.sampled(
        (*OTHERS, "as_strided", "pad_zeros", "index", "gather", *WINDOWS), constant=True
    ),
    "structured": graphs.structured,
    "deep": lambda: graphs.deep(2, 6),
}


def saved(graph: Graph) -> bytes:
    file = io.BytesIO()
    save(graph, file)
    return file.getvalue()


def forged(text: str | bytes, checksum: bool = True) -> bytes:
    """A file that says `text`, with the right checksum."""
    body = text.encode() if isinstance(text, str) else text
    header = f"# graphc graph {VERSION}" + (f" sha256={hashlib.sha256(body).hexdigest()}" if checksum else "")
    return header.encode() + b"\n" + body


def read(data: bytes) -> Graph | None:
    """The graph in `data`, checked and usable; None if that is refused by name. Anything else is raised."""
    try:
        graph = load(io.BytesIO(data))
    except ParseError as error:
        assert str(error)
        graph = None
    else:
        graph.check()
        assert load(io.BytesIO(saved(graph))) == graph
        try:
            optimize(graph).check()
        except GraphError as error:
            raise AssertionError(f"accepted, but cannot be optimized:\n{graph}") from error
    return graph


# --- what is kept


@pytest.mark.parametrize("name", MADE)
def test_a_file_keeps_the_graph(name: str, tmp_path: Path):
    graph = MADE[name]()
    graph.save(tmp_path / "a.graph")
    for loaded in (graphc.load(tmp_path / "a.graph"), Graph.load(str(tmp_path / "a.graph"))):
        assert loaded == graph and hash(loaded) == hash(graph)
        assert str(loaded) == str(graph)
        assert loaded.input_names == graph.input_names
        places = [(n.where, n.scope) for n in graph.nodes.values()]
        assert sorted((n.where, n.scope) for n in loaded.nodes.values()) == sorted(places)
    assert os.listdir(tmp_path) == ["a.graph"]  # no drafts are left


def test_results_keep_their_structure_and_bits():
    graph = graphs.network()
    result = load(io.BytesIO(saved(graph))).result
    pair = result["rest"][0]
    assert type(pair).__name__ == "Pair" and pair._fields == ("first", "second")
    static = pair.second
    assert np.signbit(static[3]) and np.isnan(static[2]) and static[4] == 1 + 2j and static[6] is True


@pytest.mark.parametrize(
    "where", ["a [b].py:3", "c:\\x y.py:1", "50%.py", "ü  # 3", " lead", "trail ", "a\nb", "\u2028"]
)
def test_places_are_kept_whatever_they_contain(where: str):
    b = Builder()
    b.where, b.scope = where, where
    x = b.input(where, Aval((2,), FLOAT32))
    graph = b.graph("f", Ref(b.language.exp(x).id))
    nodes = list(load(io.BytesIO(saved(graph))).nodes.values())
    assert [(n.where, n.scope) for n in nodes] == [(where, where)] * 2
    assert nodes[0].params["name"] == where


@pytest.mark.parametrize("name", ["nan", "f32", "def", "lambda", "v1", "ﬁ", "λ", "²", "1", "", "a.b", "a_b", "complex"])
def test_inputs_keep_their_own_names(name: str):
    b = Builder()
    x, y = b.input(name, Aval((2,), FLOAT32)), b.input("a_b", Aval((), FLOAT32))
    graph = b.graph("f", (Ref((x + y).id), Ref(x.id), float("nan")))
    assert load(io.BytesIO(saved(graph))) == graph
    assert Graph.parse(str(graph)).input_names == (name, "a_b")


def test_constants_of_numbers_compare_by_bits():
    def full(value: float) -> Graph:
        b = Builder()
        return b.graph("f", Ref(b.language.full(shape=(), value=value, dtype=FLOAT32).id))

    assert full(0.0) != full(-0.0)
    assert full(float("nan")) == full(float("nan"))
    assert load(io.BytesIO(saved(full(-0.0)))) == full(-0.0)


def test_what_a_file_cannot_keep_is_refused_before_anything_is_written(tmp_path: Path):
    b = Builder()
    graph = b.graph("f", (Ref(b.input("x", Aval((), FLOAT32)).id), object()))
    (tmp_path / "a.graph").write_text("before")
    with pytest.raises(GraphError, match="does not read back"):
        graph.save(tmp_path / "a.graph")
    assert (tmp_path / "a.graph").read_text() == "before"


def test_large_constants_and_many_nodes():
    b = Builder()
    x = b.input("x", Aval((1000, 300), FLOAT32)) * b.constant(np.random.default_rng(0).normal(size=(1000, 300)))
    for _ in range(3000):
        x = b.language.tanh(x)
    graph = b.graph("f", Ref(x.id))
    data = saved(graph)
    assert lines_run(lambda: load(io.BytesIO(data))) < LINES * len(graph.nodes)
    assert load(io.BytesIO(data)) == graph


# --- files that are no graphs


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not a graph file"),
        (b"PK\x03\x04", "not a graph file"),
        (b"\x80\x04cos\nsystem\n", "not a graph file"),
        (b"# graphc graph 2\n", "version 2"),
        (b"# graphc graph 1 sha256=" + b"0" * 64 + b"\ndef f():\n    return None\n", "damaged"),
        (b"# graphc graph 1\n\xff\n", "not UTF-8"),
        (b"# graphc graph 1\ndef f(:\n", "not a graph"),
    ],
)
def test_other_files_are_named(data: bytes, message: str):
    with pytest.raises(ParseError, match=message):
        load(io.BytesIO(data))


def test_a_missing_file_is_an_oserror(tmp_path: Path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none")


def test_every_flipped_bit_is_found():
    data = saved(graphs.loss())
    for position in range(0, len(data), 7):
        damaged = bytearray(data)
        damaged[position] ^= 1 << position % 8
        with pytest.raises(ParseError):
            load(io.BytesIO(damaged))


HOSTILE = {
    "call": "v1: f32[2] = __import__('os').system('touch PWNED')",
    "nested call": "v1: f32[2] = exp(__import__('os'))",
    "attribute": "v1: f32[2] = x.__class__",
    "dunder": "__builtins__: f32[2] = exp(x)",
    "f-string": "v1: f32[2] = required(x, x, message=f'{open(1)}')",
    "bytes": "v1: f32[2] = constant(value=b'')",
    "walrus": "v1: f32[2] = exp((y := x))",
    "star": "v1: f32[2] = add(*x)",
    "double star": "v1: f32[2] = add(**x)",
    "lambda": "v1: f32[2] = exp(lambda: x)",
    "comprehension": "v1: f32[2] = exp([x for x in x])",
    "import": "import os",
    "expression": "exp(x)",
    "class": "class A: pass",
    "conditional": "v1: f32[2] = exp(x if x else x)",
    "subscript": "v1: f32[2] = exp(x[0])",
    "comment that ends": "v1: f32[2] = exp(x)  # a\r    import os",
    "encoding": "# -*- coding: utf-7 -*-\n    v1: f32[2] = exp(x)\f",
    "semicolon": "v1: f32[2] = exp(x); import os",
    "continuation": "v1: f32[2] = exp(\\\n    x)",
    "concatenation": "v1: f32[2] = required(x, x, message='a' 'b')",
    "operator": "v1: f32[2] = pow_scalar(x, exponent=9**9**9)",
    "name": "v1: f32[2] = exp(open)",
    "parameter": "v1: f32[2] = cast(x, dtype=eval)",
    "own name of an operation": "v1: f32[2] = exp(x)\n    v1: 'eval'",
    "other target": "x.y: f32[2] = exp(x)",
    "named tuple": "v1: f32[2] = exp(Pair(a=x))",
    "yield": "v1: f32[2] = exp((yield))",
}
HOSTILE_HEADS = {
    "decorator": "@print\ndef f(x: f32[2]):\n    return x\n",
    "default": "def f(x: f32[2] = print()):\n    return x\n",
    "default constant": "def f(x: f32[2] = 1):\n    return x\n",
    "star argument": "def f(*x: f32[2]):\n    return x\n",
    "keyword only": "def f(*, x: f32[2]):\n    return x\n",
    "positional only": "def f(x: f32[2], /):\n    return x\n",
    "return annotation": "def f(x: f32[2]) -> print():\n    return x\n",
    "annotation": "def f(x: print()):\n    return x\n",
    "async": "async def f(x: f32[2]):\n    return x\n",
    "two functions": "def f(x: f32[2]):\n    return x\ndef g(x: f32[2]):\n    return x\n",
    "docstring": "'a'\ndef f(x: f32[2]):\n    return x\n",
    "no return": "def f(x: f32[2]):\n    v1: f32[2] = exp(x)\n",
    "returned call": "def f(x: f32[2]):\n    return print(x)\n",
    "returned class": "def f(x: f32[2]):\n    return __class__(__init__=x)\n",
    "keyword as name": "def True(x: f32[2]):\n    return x\n",
    "null": "def f(x: f32[2]):\n    return x\0\n",
    "surrogate": b"def f(x: f32[2]):\n    return '\xed\xa0\x80'\n",
    "twice": "def f(x: f32[2], x: f32[2]):\n    return x\n",
}
BODY = "def f(x: f32[2]):\n    {}\n    return x\n"


def load_watched(data: bytes) -> Graph | None:
    """`load`, and None for what it refuses."""
    with nothing_runs():
        try:
            return load(io.BytesIO(data))
        except ParseError:
            return None


def test_the_watch_sees_code():
    for run in (lambda: exec("1"), lambda: eval("1"), lambda: __import__("this"), lambda: open(os.devnull).close()):
        with pytest.raises(AssertionError), nothing_runs():
            run()


@pytest.mark.parametrize("name", [*HOSTILE, *HOSTILE_HEADS])
def test_no_file_runs_code(name: str):
    read(saved(graphs.network()))  # what loads late is loaded
    text = HOSTILE_HEADS[name] if name in HOSTILE_HEADS else BODY.format(HOSTILE[name])
    assert load_watched(forged(text)) is None


BOMBS = {
    "brackets": lambda n: "(" * n,
    "lists": lambda n: "def f(x: f32[2]):\n    return " + "[" * n + "]" * n + "\n",
    "pairs": lambda n: "def f(x: f32[2]):\n    return " + "(1, " * n + "2" + ")" * n + "\n",
    "calls": lambda n: "def f(x: f32[2]):\n    return " + "P(a=" * n + "2" + ")" * n + "\n",
    "chained calls": lambda n: "def f(x: f32[2]):\n    return f" + "()" * n + "\n",
    "chained subscripts": lambda n: "def f(x: f32" + "[2]" * n + "):\n    return x\n",
    "signs": lambda n: "def f(x: f32[2]):\n    return " + "-" * n + "1\n",
    "nots": lambda n: "def f(x: f32[2]):\n    return " + "not " * n + "1\n",
    "differences": lambda n: "def f(x: f32[2]):\n    return 1" + "-1" * n + "\n",
    "attributes": lambda n: "def f(x: f32[2]):\n    return x" + ".a" * n + "\n",
    "lambdas": lambda n: "def f(x: f32[2]):\n    return " + "lambda: " * n + "1\n",
    "dicts": lambda n: "def f(x: f32[2]):\n    return " + "{1: " * n + "1" + "}" * n + "\n",
    "conditionals": lambda n: "def f(x: f32[2]):\n    return " + "1 if 1 else " * n + "1\n",
    "functions": lambda n: "".join(f"{' ' * k}def f():\n" for k in range(min(n, 2000))),
    "digits": lambda n: "def f(x: f32[2]):\n    return " + "9" * n + "\n",
    "extent": lambda n: "def f(x: f32[" + "9" * min(n, 4000) + "]):\n    return x\n",
    "string": lambda n: "def f(x: f32[2]):\n    return '" + "a" * n + "\n",
    "names": lambda n: "a " * n,
    "equal names": lambda n: "def f(" + ", ".join(f"x{k}: f32" for k in range(n // 30)) + "):\n"
        + "".join(f"    x{k}: 'x'\n" for k in range(n // 30)) + "    return x0\n",
}  # fmt: skip


@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.parametrize("size", [100, 3_000, 100_000])
def test_deep_and_long_files_take_linear_work(name: str, size: int):
    data = forged(BOMBS[name](size))
    assert lines_run(lambda: read(data)) < LINES * len(data)


def test_graphs_in_graphs_do_not_multiply():
    """Each level runs the level below in two branches: as a tree it has 2**depth graphs."""
    lines = ["def f(i: i64, x: f32):"]
    depth = 12
    for level in range(depth):
        lines.append("    " * (level + 1) + f"def b{level}(i: i64, x: f32):")
    lines.append("    " * (depth + 1) + "return (x,)")
    for level in reversed(range(depth)):
        pad = "    " * (level + 1)
        lines.append(f"{pad}v2: (f32,) = switch(i, i, x, branches=(b{level}, b{level}))")
        lines.append(f"{pad}v3: f32 = item(v2, index=0)")
        lines.append(f"{pad}return (v3,)")
    read(forged("\n".join(lines) + "\n"))


FORGED = {
    "elements": ("f32[8,3]", f"f32[{10**30}]"),
    "rank": ("f32[8,3]", "f32[" + ",".join("1" * 65) + "]"),
    "size": ("f32[8,3]", f"f32[{2**40},{2**40}]"),
    "negative": ("f32[8,3]", "f32[-8,3]"),
    "float extent": ("f32[8,3]", "f32[8.0,3]"),
    "true extent": ("f32[8,3]", "f32[True,3]"),
    "dtype": ("f32[8,3]", "f33[8,3]"),
    "other dtype": ("f32[8,3]", "f64[8,3]"),
    "shape": ("f32[8,2]", "f32[8,4]"),
    "axis": ("axis=1", "axis=7"),
    "axis of another kind": ("axis=1", "axis='a'"),
    "true axis": ("axis=1", "axis=True"),
    "axes": ("axis=(0, 1)", "axis=(0, 0)"),
    "far axes": ("axis=(0, 1)", "axis=(0, 5)"),
    "huge axis": ("axis=1", f"axis={10**30}"),
    "keepdims": ("keepdims=False", "keepdims=0"),
    "missing parameter": (", keepdims=False", ""),
    "more parameters": ("keepdims=False", "keepdims=False, more=1"),
    "parameter twice": ("keepdims=False", "keepdims=False, keepdims=False"),
    "op": ("matmul", "matmull"),
    "input as op": ("matmul", "input"),
    "cycle": ("matmul(x, w)", "matmul(x, v3)"),
    "itself": ("matmul(x, w)", "matmul(x, v2)"),
    "operands": ("matmul(x, w)", "matmul(x, w, w)"),
    "no operands": ("matmul(x, w)", "matmul()"),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_fields_are_refused(name: str):
    old, new = FORGED[name]
    text = str(graphs.loss())
    assert old in text
    with pytest.raises(ParseError):
        load(io.BytesIO(forged(text.replace(old, new))))


@pytest.mark.parametrize(
    "line",
    [
        f"v1: f32[{10**12}] = full(shape=({10**12},), value=1, dtype=f32)",
        f"v1: i64[{2**62}] = arange(shape=({2**62},), start=0, step=1, dtype=i64)",
        "v1: f32[2] = constant(value='')",
        "v1: bool[2] = constant(value='AgI=')",
        "v1: u8[2] = constant(value=[300, 1])",
        "v1: u8[2] = constant(value=[True, 1])",
        "v1: f32[1] = constant(value=[x])",
        "v1: f32 = cat(axis=0)",
        "v1: f32 = add()",
        "v1: f32[2] = expand(x, shape=(2,))",
        f"v1: f32[1] = as_strided(x, size=(1,), stride=(1,), offset=0, layout=(({2**62},), 0))",
        f"v1: f32[2] = fft(x, axes=(0,), inverse=False, norm='{'a' * 10}')",
        f"v1: f32[{10**9},{10**9}] = broadcast_to(x, shape=({10**9},{10**9}))",
    ],
)
def test_lines_that_promise_too_much(line: str):
    read(forged(BODY.format(line)))


# --- mutations


TOKENS = ["0", "-1", "1", "2", "7", "999999999999", "1e400", "nan", "None", "True", "'a'", "()", "(0,)", "(1, 2)",
          "f32", "i64", "bool", "c64", "x", "v3", "(", ")", "[", ",", "\n", "    ", "#", "'",
          "=", ":", "\\", "\0", "é", "f32[0,3]",
          "sum", "add", "cast", "reshape", "constant", "full", "matmul", "return", "def f():"]  # fmt: skip


VALUES = ["0", "1", "2", "3", "-1", "5", "1.5", "-0.0", "nan", "None", "True", "False", "f64", "1000000000000", "(1,)",
          "'a'"]  # fmt: skip


def mutated(data: bytes, rng: random.Random) -> bytes:
    """`data` with one to four random changes."""
    body = data[data.index(b"\n") + 1 :]
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        kind, at = rng.randrange(12), rng.randrange(len(body) or 1)
        to = min(len(body), at + rng.randint(1, 12))
        if kind == 0:
            body = body[:at] + bytes([body[at] ^ 1 << rng.randrange(8)]) + body[at + 1 :] if body else body
        elif kind == 1:
            body = body[:at]
        elif kind == 2:
            body = body[:at] + body[to:]
        elif kind == 3:
            body = body[:at] + body[at:to] * rng.randint(2, 50) + body[to:]
        elif kind >= 8:  # a parameter, or part of one: what the checker has to find
            text = body.decode(errors="replace")
            spots = [match.span(1) for match in re.finditer(r"=\(?(?:[\w-]+, )*([\w.-]+)", text)]
            if spots:
                start, end = rng.choice(spots)
                body = (text[:start] + rng.choice(VALUES) + text[end:]).encode()
        else:  # one token for another: from the file itself, or from the list
            text = body.decode(errors="replace")
            words = _words(text)
            if not words:
                continue
            start, end = rng.choice(words)
            a, b = rng.choice(words)
            other = text[a:b] if kind < 6 else rng.choice(TOKENS)
            body = (text[:start] + other + text[end:]).encode()
    choice = rng.random()
    return forged(body) if choice < 0.9 else data[: data.index(b"\n") + 1] + body


def _words(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in re.finditer(r"\w+|[^\w\s]", text)]


@pytest.mark.parametrize("count", [60, pytest.param(400, marks=pytest.mark.deep)])
@pytest.mark.parametrize("name", MADE)
def test_mutated_files_are_graphs_or_named_errors(name: str, count: int):
    data, rng, accepted = saved(MADE[name]()), random.Random(name), 0
    read(data)  # what loads late is loaded
    for _ in range(count):
        other = mutated(data, rng)
        load_watched(other)
        accepted += read(other) is not None
    assert accepted > count / 80, "the mutations are too wild to say anything about the checker"


def test_the_fuzzer_notices_a_parser_that_breaks(monkeypatch: pytest.MonkeyPatch):
    from graphc.ir import parsing

    monkeypatch.setattr(parsing, "scan", lambda text: None)
    with pytest.raises((AssertionError, Exception)) as caught:
        for name in BOMBS:
            read(forged(BOMBS[name](3_000)))
        for bomb in HOSTILE.values():
            assert read(forged(BODY.format(bomb))) is None
    assert not isinstance(caught.value, ParseError)


def test_hostile_files_in_a_process_of_their_own_end_well(tmp_path: Path):
    """The parser's stack is the process's: a crash would take the tests with it."""
    code = "import sys, graphc.ir.files as f\n"
    for name, bomb in BOMBS.items():
        (tmp_path / name).write_bytes(forged(bomb(1_000_000)))
        code += f"try: f.load({str(tmp_path / name)!r})\nexcept f.ParseError: print({name!r}, flush=True)\n"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, f"after {done.stdout.split()}: {done.stderr[-300:]}"


def test_every_op_survives_a_file():
    structured = {op.name for op in OPS.values() if op.structured or op.definition is not None}
    graph = graphs.sampled(tuple(name for name in OPS if name not in structured))
    assert load(io.BytesIO(saved(graph))) == graph
