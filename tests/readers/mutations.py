"""Mutations of files: of bytes, of JSON (as values, and as text that no JSON writer makes), of tokens."""

from __future__ import annotations

import copy
import json
import random
import re
from typing import Any

Path = tuple[Any, ...]


class Raw(str):
    """JSON text that is written as it is."""


class Pairs(list[tuple[str, Any]]):
    """An object whose names need not be distinct."""


def dumps(value: Any) -> str:
    """`json.dumps`, also of `Raw` and `Pairs`."""
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, (dict, Pairs)):
        items = value.items() if isinstance(value, dict) else value
        return "{" + ", ".join(f"{json.dumps(name)}: {dumps(item)}" for name, item in items) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(dumps, value)) + "]"
    return json.dumps(value)


STRANGE: list[Any] = [
    None, True, False, 0, 1, -1, 2, 7, 2**31, 2**53, 2**63 - 1, 2**63, -(2**63) - 1, 2**64, 2**70, 10**39, -(10**39),
    0.0, 0.5, -1.5, 1e300, "", "a", "0", "1", "nan", "inf", "\ud800", "\0", "\u202e", "../../etc/passwd", "x" * 20_000,
    [], {}, [[]], [0], [None], {"": 0}, {"a": {}}, [1, 2, 3], "f32[2,3]", "float32", "F32", "BOOL", "I64", "BF16", "U8",
    "tensor", "identical", "bug", "0" * 64, "eager", "graph", {"list": []}, {"again": 0}, {"int": "9" * 6000},
    {"tuple": [1, 2]}, {"float": "nan"}, {"bytes": "AAAA"}, {"dtype": "bool"}, {"size": [-1]}, {"device": "cuda"},
    {"range": [0, 10**18, 1]}, {"slice": [0, 1, 0]}, {"complex": ["0x1p0", "nan"]}, {"set": [1, 1]}, [10**30] * 3,
    Raw("NaN"), Raw("Infinity"), Raw("-Infinity"), Raw("1e999"), Raw("9" * 6000), Raw("1" + "0" * 41), Raw("01"),
    Raw("'a'"), Raw(""), Raw("[1,]"), Raw("{1: 2}"), Raw("0x10"), Raw('"\\x"'), Raw('"\x01"'), Raw('"open'), Raw("nul"),
    Raw("[" * 20), Raw("[" * 3000), Raw("[" * 60 + "]" * 60), Raw("[" * 3000 + "]" * 3000), Raw("-" * 50),
    Raw('{"a":' * 3000 + "1" + "}" * 3000), Raw('{"a": 1, "a": 2}'), Raw("\ufeff0"),
]  # fmt: skip


def places(value: Any, at: Path = ()) -> list[Path]:
    """Where the parts of a JSON value are."""
    found = [at]
    if isinstance(value, dict):
        for name, item in value.items():
            found += places(item, (*at, name))
    elif isinstance(value, list):
        for k, item in enumerate(value):
            found += places(item, (*at, k))
    return found


def _got(value: Any, at: Path) -> Any:
    for key in at:
        value = value[key]
    return value


def changed_json(value: Any, rng: random.Random) -> Any:
    """A copy of a JSON value with one change at a random place: for `dumps`."""
    value = copy.deepcopy(value)
    spots = [place for place in places(value) if place]
    if not spots or rng.random() < 0.01:
        return rng.choice(STRANGE)
    at = rng.choice(spots)
    parent, key = _got(value, at[:-1]), at[-1]
    kind = rng.randrange(11)
    if kind == 0:
        del parent[key]
    elif kind == 1:  # another place's value
        parent[key] = copy.deepcopy(_got(value, rng.choice(spots)))
    elif kind == 2 and isinstance(parent, dict):
        names = [place[-1] for place in spots if isinstance(place[-1], str)]
        parent[rng.choice([*names, "", "x", "a" * 3000, "\ud800", key + " "])] = parent.pop(key)
    elif kind == 3 and isinstance(parent, dict) and len(at) > 1:  # twice
        pairs = Pairs([*parent.items(), (key, rng.choice([parent[key], None, 1]))])
        _got(value, at[:-2])[at[-2]] = pairs
    elif kind == 3 and isinstance(parent, list):
        parent.insert(key, copy.deepcopy(parent[key]))
    elif kind == 4 and isinstance(parent[key], (int, float)) and not isinstance(parent[key], bool):
        parent[key] = rng.choice([parent[key] + 1, parent[key] - 1, -parent[key], parent[key] * 2, float(parent[key])])
    elif kind == 5 and isinstance(parent[key], str) and parent[key]:
        text = parent[key]
        k = rng.randrange(len(text))
        parent[key] = rng.choice([text[:k], text[k:], text + text, text[:k] + rng.choice("0aZ[ -") + text[k + 1 :]])
    elif kind == 6:  # deeper
        for _ in range(rng.choice([1, 2, 20, 100])):
            parent[key] = rng.choice([[parent[key]], {"a": parent[key]}, {"list": [parent[key]]}])
    elif kind == 7 and isinstance(parent[key], list):
        parent[key] = parent[key] * rng.choice([0, 2, 100])
    else:
        parent[key] = copy.deepcopy(rng.choice(STRANGE))
    return value


def changed_bytes(data: bytes, rng: random.Random, others: list[bytes]) -> bytes:
    """`data` with one change: bits, bytes, pieces cut, doubled, moved or taken from `others`."""
    kind, at = rng.randrange(9), rng.randrange(len(data) + 1)
    to = min(len(data), at + rng.choice([1, 1, 2, 8, 64, 1000]))
    if kind == 0 and at < len(data):
        return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]
    if kind == 1:
        return data[:at]
    if kind == 2:
        return data[:at] + data[to:]
    if kind == 3:
        return data[:at] + data[at:to] * rng.choice([2, 3, 100]) + data[to:]
    if kind == 4:
        return data[:at] + rng.randbytes(to - at) + data[to:]
    if kind == 5:
        return data[:at] + rng.choice([b"\0", b"\xff", b"[", b'"', b"{", b"\n", b"\\", b"9" * 50, b" "]) + data[at:]
    other = rng.choice(others)
    if kind == 6:  # the head of one and the tail of another
        return data[:at] + other[rng.randrange(len(other) + 1) :]
    if kind == 7:
        return data + rng.choice([other, b"\0", b" ", b"\n"])
    start = rng.randrange(len(data) + 1)
    return data[:at] + data[start : start + (to - at)] + data[to:]


_WORDS = """
0 -1 1 2 7 999999999999 1e400 nan None True 'a' () (0,) (1,2) f32 i64 bool c64 x v3 ( ) [ , : = # ' \\ é f32[0,3]
sum add cast reshape constant full matmul return def
"""
TOKENS = [*_WORDS.split(), "\n", "    ", "\0", "def f():", "9" * 50]
_TOKEN = re.compile(r"\w+|[^\w\s]")
_PARAMETER = re.compile(r"=\(?(?:[\w-]+, )*([\w.-]+)")


def changed_tokens(text: str, rng: random.Random) -> str:
    """`text` with one token exchanged for another, or the value of a parameter for another."""
    spots = [match.span() for match in _TOKEN.finditer(text)]
    if rng.random() < 0.4:
        spots = [match.span(1) for match in _PARAMETER.finditer(text)] or spots
    if not spots:
        return text + rng.choice(TOKENS)
    start, end = rng.choice(spots)
    a, b = rng.choice(spots)
    return text[:start] + rng.choice([text[a:b], rng.choice(TOKENS)]) + text[end:]
