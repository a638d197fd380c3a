"""JSON from outside: its size, nesting, digits and values are bounded before the parser sees it."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

import numpy as np

from graphc.files.contents import DIGITS, Refuse

NOT_UTF8 = "a byte that is not UTF-8"
TOO_LARGE = "{found:,} bytes of JSON, at most {most:,} are read"
TOO_MANY = "{found:,} values, at most {most:,} are read"
TOO_DEEP = "lists and objects {found:,} deep, at most {most} are read"
LONG_NUMBER = f"a number of more than {DIGITS} characters"
NO_NUMBER = "{name} is no JSON"
TWICE = "an object has two entries named {name}"

# The closing quote may be missing, and nothing is tried twice: so this is linear in any text.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_LONG_NUMBER = re.compile(rb"[-+.0-9eE]{%d,}" % (DIGITS + 1))
_BRACKETS = b"[]{}"
_NO_BRACKETS = bytes(set(range(256)) - set(_BRACKETS))


class Limits(NamedTuple):
    """size in bytes; depth of lists and objects in each other; values: entries of all lists and objects."""

    size: int
    depth: int = 16
    values: int = 1_000_000


class _Refused(Exception):
    """Raised in the parser's hooks."""


def parsed(text: bytes | str, limits: Limits, refuse: Refuse) -> Any:
    """What a JSON text says: dict, list, str, int, finite or infinite float, bool, None. Raises what `refuse` makes.

    Not accepted are names that occur twice in an object, NaN and Infinity, other encodings than UTF-8, and whatever is
    beyond `limits`. Memory and time are in proportion to the text.
    """
    data = check(text, limits, refuse)
    try:
        # read as text, since the parser guesses at the encoding of bytes
        whole = text if isinstance(text, str) else text.decode()
        return json.loads(whole, object_pairs_hook=_object, parse_constant=_constant)
    except UnicodeDecodeError as error:
        raise refuse(NOT_UTF8, _line(data, error.start)) from None
    except json.JSONDecodeError as error:
        raise refuse(f"not JSON: {error.msg}", f"line {error.lineno}, column {error.colno}") from None
    except _Refused as error:
        raise refuse(str(error), "") from None
    except RecursionError:  # a caller that has used up the stack
        raise refuse(TOO_DEEP.format(found=limits.depth, most="fewer"), "") from None


def check(text: bytes | str, limits: Limits, refuse: Refuse) -> bytes:
    """The bytes of a text. Raises what `refuse` makes if `parsed` would find it beyond `limits`."""
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    if len(data) > limits.size:
        raise refuse(TOO_LARGE.format(found=len(data), most=limits.size), "")
    bare = _STRING.sub(b'"', data)
    if (count := bare.count(b",") + bare.count(b"[") + bare.count(b"{")) > limits.values:
        raise refuse(TOO_MANY.format(found=count, most=limits.values), "")
    if found := _LONG_NUMBER.search(bare):
        raise refuse(LONG_NUMBER, _line(bare, found.start()))
    brackets = np.frombuffer(bare.translate(None, _NO_BRACKETS), np.uint8)
    steps = np.where((brackets == ord("[")) | (brackets == ord("{")), 1, -1)
    if (depth := int(np.cumsum(steps).max(initial=0))) > limits.depth:
        raise refuse(TOO_DEEP.format(found=depth, most=limits.depth), "")
    return data


def _line(data: bytes, at: int) -> str:
    return f"line {data.count(10, 0, at) + 1}"


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        raise _Refused(TWICE.format(name=next(repr(n[:40]) for n, _ in pairs if n in seen or seen.add(n))))
    return made


def _constant(name: str) -> Any:
    raise _Refused(NO_NUMBER.format(name=name))
