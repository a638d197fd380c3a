"""Which dims of operands and results run together: what ops declare as `Op.dims` where nothing else says it.

Written as an einsum with a word for each dim: `"n c *, o c * -> n o *"` of a convolution. A dim with the same word in
several places is computed part by part; one that is in no result is summed over. A word that starts with @ is of
a dim whose elements are picked by number: of each part, by whoever has it. `.` is a dim that is needed whole, `*`
at the end any number of such, and `...` in front any number of dims that broadcast. An operand with `+` in front is
added to what the others sum up to. Of a last operand `_`, no element is read: it may lie as it likes. Sharding is
derived from this.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

Shapes = Sequence[tuple[int, ...]]
Dims = str | Callable[[Shapes, Mapping[str, Any]], str]
SAME = "... -> ..."
FIRST = "..., * -> ..."  # the first operand as it is, whatever the others are
TRIANGLES = "... @i @j -> ... @i @j"


class Words(NamedTuple):
    """A word, or None for a whole dim, for each dim of each operand that is read, and each result; which are added."""

    operands: tuple[tuple[str | None, ...], ...]
    results: tuple[tuple[str | None, ...], ...]
    added: frozenset[int]


def words(dims: Dims, operands: Shapes, results: Shapes, params: Mapping[str, Any]) -> Words:
    """What `dims` says for operands and results of these shapes. The last operand's text holds for those after it."""
    text = dims if isinstance(dims, str) else dims(operands, params)
    left, right = text.split("->")
    added = frozenset(k for k, term in enumerate(left.split(",")) if "+" in term.split())
    return Words(_each(left.replace("+", ""), operands), _each(right, results), added)


def _each(text: str, shapes: Shapes) -> tuple[tuple[str | None, ...], ...]:
    """The words of each term; the last term stands for all arrays that follow."""
    terms = [term.split() for term in text.split(",")]
    if terms[-1] == ["_"]:
        terms, shapes = terms[:-1], shapes[: len(terms) - 1]
    terms += [terms[-1]] * (len(shapes) - len(terms))
    return tuple(_term(term, len(shape)) for term, shape in zip(terms, shapes, strict=False))


def _term(term: list[str], rank: int) -> tuple[str | None, ...]:
    own = [w for w in term if w not in ("...", "*")]
    free = rank - len(own)
    if "..." in term:
        # numbered from the right, as they broadcast
        return (*[f"batch {free - k}" for k in range(free)], *[None if w == "." else w for w in own])
    return (*[None if w == "." else w for w in own], *[None] * free)


def along_axis(shapes: Shapes, params: Mapping[str, Any]) -> str:
    """Of ops that take elements along an axis of their first operand, which `index` numbers."""
    whole, index = shapes[0], shapes[1]
    axis = params["axis"] % max(len(whole), 1)
    alike = [d != axis and n == m for d, (n, m) in enumerate(zip(whole, index, strict=True))]
    taken = " ".join(f"d{d}" if a or d == axis else "." for d, a in enumerate(alike))
    return f"{_but(alike)}, {taken} -> {taken}"


def adding_along_axis(shapes: Shapes, params: Mapping[str, Any]) -> str:
    """Of ops that add to elements along an axis of their first operand, which `index` numbers."""
    whole, index, source = shapes
    axis = params["axis"] % max(len(whole), 1)
    alike = [d != axis and n == m == s for d, (n, m, s) in enumerate(zip(whole, index, source, strict=True))]
    adds = "reduce" not in params and "distinct" not in params and index == source
    taken = " ".join(f"d{d}" if a or (d == axis and adds) else "." for d, a in enumerate(alike))
    return f"+ {_but(alike)}, {taken}, {taken} -> {_but(alike)}"


def placed(shapes: Shapes, params: Mapping[str, Any]) -> str:
    """Of ops that put one element along an axis among zeros."""
    axis = params["axis"] % max(len(shapes[0]), 1)
    own = " ".join("." if d == axis else f"d{d}" for d in range(len(shapes[0])))
    return f"{own}, {own} -> {own}"


def _but(alike: Sequence[bool]) -> str:
    return " ".join(f"d{d}" if a else "." for d, a in enumerate(alike))


def _picked(shape: tuple[int, ...], spec: Sequence[int | None], rank: int) -> tuple[str, str, str]:
    """The dims of an indexed array, of an index array of `rank` dims, and of what is picked out."""
    full = [*spec, *[None] * (len(shape) - len(spec))]
    places = [axis for axis, s in enumerate(full) if s is not None]
    adjacent = places == [*range(places[0], places[-1] + 1)]
    rest = [f"r{axis}" for axis, s in enumerate(full) if s is None]
    at = places[0] if adjacent else 0
    picked = [f"p{k}" for k in range(rank, 0, -1)]
    picks = "@v" if len(places) == 1 else "."
    whole = [f"r{axis}" if s is None else picks for axis, s in enumerate(full)]
    return " ".join(whole), " ".join(picked), " ".join([*rest[:at], *picked, *rest[at:]])


def indexed(shapes: Shapes, params: Mapping[str, Any]) -> str:
    """Of input[indices]."""
    rank = max(map(len, shapes[1:]))
    whole, _, result = _picked(shapes[0], params["spec"], rank)
    places = ["".join(f"p{k} " for k in range(len(s), 0, -1)) for s in shapes[1:]]
    return f"{whole}, {', '.join(places)} -> {result}"


def put(shapes: Shapes, params: Mapping[str, Any]) -> str:
    """Of input[indices] = values, or +=."""
    rank = max(map(len, shapes[2:]))
    whole, _, result = _picked(shapes[0], params["spec"], rank)
    places = ["".join(f"p{k} " for k in range(len(s), 0, -1)) for s in shapes[2:]]
    if not params["accumulate"]:  # the last one wins, which no device knows alone
        result = " ".join("." if w[0] == "p" else w for w in result.split())
        places = [" ".join("." for _ in s) for s in shapes[2:]]
    if len(shapes[1]) != len(result.split()):
        result = " ".join("." for _ in shapes[1])
    return f"+ {whole}, {result}, {', '.join(places)} -> {whole}"


def rows(shapes: Shapes, params: Mapping[str, Any]) -> str:
    """Of ops that treat each row along `axis` by itself."""
    axis = params["axis"] % max(len(shapes[0]), 1)
    own = " ".join("." if d == axis else f"d{d}" for d in range(len(shapes[0])))
    return f"{own} -> {own}"


def reduced_rows(shapes: Shapes, params: Mapping[str, Any]) -> str:
    """Of ops that make one element, in each of their results, of each row along `axis`."""
    axis = params["axis"] % max(len(shapes[0]), 1)
    own = [f"d{d}" for d in range(len(shapes[0]))]
    left = ["." if d == axis else w for d, w in enumerate(own)]
    kept = left if params["keepdims"] else [w for d, w in enumerate(own) if d != axis]
    return f"{' '.join(left)} -> {' '.join(kept)}, {' '.join(kept)}"


def ungrouped(text: str, grouped: str) -> Dims:
    """`text` for convolutions of one group, `grouped` for those of several."""
    return lambda shapes, params: text if params["groups"] == 1 else grouped
