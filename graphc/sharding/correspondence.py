"""Which dims of the operands and results of a node run together, read off what its op declares.

Pointwise ops broadcast; ops that are multilinear say it by their normal form (`Op.lifting`), whose labels it is; those
that compute parts from parts by `Op.parts`, which is asked for halves of each dim; the rest by `Op.dims`. An op that
declares none of these is computed whole.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, final

from graphc.ir import Node
from graphc.normal.affine import Index, Unsolved
from graphc.normal.form import Algebra, Form, atom
from graphc.ops import Op
from graphc.ops.labels import FIRST, SAME, words
from graphc.ops.parts import POINTWISE, Box, Parts, whole

Label = Any
MASKED = "masked"  # each device has the elements of its part, and zeros for the others: their sum is the result
Side = tuple[tuple[Label | None, ...], ...]


@final
class Correspondence(NamedTuple):
    """A label, or None for a dim that is needed whole, for each dim of each operand that is read, and each result.

    sizes     of each label: that of the dim, or of the major part of one that a reshape splits or joins
    reduced   labels of operands that are in no result: "sum" over them, or another reduction, gives the result
    added     operands that are added to what such sums are, once
    """

    operands: Side
    results: Side
    sizes: Mapping[Label, int]
    reduced: Mapping[Label, str]
    added: frozenset[int] = frozenset()


def is_elementwise(node: Node) -> bool:
    """Whether each element of the result is computed from the elements of the operands in its place."""
    op = node.op
    return not op.several and (op.pointwise or op.passes or op.parts is POINTWISE)


def correspondence(node: Node, nodes: Mapping[int, Node]) -> Correspondence:
    """That of a node of sizes that are numbers."""
    operands = [nodes[i].results[0].shape if not nodes[i].op.several else () for i in node.inputs]
    results = [aval.shape for aval in node.results]
    op = node.op
    if op.dims is None and is_elementwise(node):
        return _of_words(FIRST if op.passes else SAME, operands, results, node.params)
    if op.dims is not None:
        return _of_words(op.dims, operands, results, node.params)
    if op.lifting is not None and node.inputs and (found := _of_form(node, operands)) is not None:
        return found
    if op.parts is not None and node.inputs:
        return _of_parts(op.parts, operands, results, node.params)
    return Correspondence(
        tuple((None,) * len(s) for s in operands), tuple((None,) * len(s) for s in results), {}, {}
    )  # fmt: skip


def _of_words(dims: Any, operands: list[Any], results: list[Any], params: Mapping[str, Any]) -> Correspondence:
    found = words(dims, operands, results, params)
    return _checked(found.operands, found.results, operands, results)._replace(added=found.added)


def _checked(left: Side, right: Side, operands: list[Any], results: list[Any], kind: str = "sum") -> Correspondence:
    """Without labels of dims that are of size 1 while others of the label are not, and of those of other sizes."""
    sizes: dict[Label, int] = {}
    operands = operands[: len(left)]
    for labels, shape in zip((*left, *right), (*operands, *results), strict=True):
        for name, n in zip(labels, shape, strict=True):
            if name is not None:
                sizes[name] = max(sizes.get(name, 0), n)

    def kept(side: Side, shapes: list[Any]) -> Side:
        return tuple(
            tuple(w if w is not None and sizes[w] == n else None for w, n in zip(labels, shape, strict=True))
            for labels, shape in zip(side, shapes, strict=True)
        )

    left, right = kept(left, operands), kept(right, results)
    there = {w for labels in right for w in labels}
    reduced = {
        w: MASKED if w.startswith("@") else kind for labels in left for w in labels if w is not None and w not in there
    }
    return Correspondence(left, right, sizes, reduced)


def _of_form(node: Node, operands: list[Any]) -> Correspondence | None:
    """The labels that occur alike in every term; None if there is no form."""
    algebra = Algebra()
    try:
        assert node.op.lifting is not None
        form: Form = node.op.lifting(algebra, *[atom(k, s) for k, s in enumerate(operands)], **node.params)
    except Unsolved:
        return None
    result: list[set[Label | None]] = [set() for _ in node.shape]
    left: list[list[set[Label | None]]] = [[set() for _ in s] for s in operands]
    sizes: dict[Label, int] = {}
    for t, term in enumerate(form.terms):
        names: dict[int, Label | None] = {}
        for d, place in enumerate(term.places):  # the same dim of the result is the same label in all terms
            major = _major(place, term.sizes, node.shape[d])
            if major is not None:
                names.setdefault(major, ("result", d))
        for place in term.places:  # what moves through a dim of the result, but not in equal parts, is whole
            names.update((k, None) for k in place.labels if k not in names)
        for f in term.factors:
            for d, place in enumerate(f.places):
                minor = set(place.labels) - {_major(place, term.sizes, operands[f.atom][d])}
                names.update((k, None) for k in minor)
        for f in term.factors:
            for d, place in enumerate(f.places):
                major = _major(place, term.sizes, operands[f.atom][d])
                if major is not None:
                    names.setdefault(major, ("sum", t, major))
                left[f.atom][d].add(None if major is None else names[major])
        for d, place in enumerate(term.places):
            major = _major(place, term.sizes, node.shape[d])
            result[d].add(None if major is None else names.get(major))
        for k, name in names.items():
            if name is None:
                continue
            sizes[name] = math.gcd(sizes.get(name, 0), term.sizes[k])
    right = (tuple(_only(found) for found in result),)
    own: Side = tuple(tuple(_only(found) for found in dims) for dims in left)
    # several dims of one array with the same label are a diagonal, which is needed whole
    right, own = tuple(map(_once, right)), tuple(map(_once, own))
    there = {*right[0]}
    reduced = {w: "sum" for dims in own for w in dims if w is not None and w not in there}
    summing = {k for k, dims in enumerate(own) for w in dims if w in reduced}
    joined = {f.atom for t in form.terms for f in t.factors if any(g.atom in summing for g in t.factors)}
    added = frozenset(range(len(operands))) - joined if reduced else frozenset()
    return Correspondence(own, right, sizes, reduced, added)


def coefficient(op: Op, shapes: Sequence[Any], params: Mapping[str, Any]) -> Any:
    """The number that an op multiplies its sum of products with, exact: 1 / n of a mean, 1 of what has no such form."""
    if op.lifting is None:
        return Fraction(1)
    try:
        terms = op.lifting(Algebra(), *[atom(k, s) for k, s in enumerate(shapes)], **params).terms
    except Unsolved:
        return Fraction(1)
    value = terms[0].coefficient if len(terms) == 1 else 1
    return Fraction(value) if value and not isinstance(value, complex) else Fraction(1)


def _major(place: Index, sizes: tuple[int, ...], size: int) -> int | None:
    """The label whose value says in which of equal parts of an axis of this `size` the place lies."""
    if not place.steps or place.offset:
        return None
    left = size
    for label, stride in place.steps:
        if stride * sizes[label] != left:  # the labels count through the axis, each within a step of the one before
            return None
        left = stride
    return place.steps[0][0] if left == 1 else None


def _only(found: set[Label | None]) -> Label | None:
    return next(iter(found)) if len(found) == 1 else None


def _once(labels: tuple[Label | None, ...]) -> tuple[Label | None, ...]:
    return tuple(None if w is not None and labels.count(w) > 1 else w for w in labels)


def _of_parts(parts: Parts, operands: list[Any], results: list[Any], params: Mapping[str, Any]) -> Correspondence:
    """Asked for each half of each dim of the result, which parts of the operands are read?"""
    shape = results[0]
    left: list[list[Label | None]] = [[None] * len(s) for s in operands]
    right: list[Label | None] = [None] * len(shape)
    moved: set[tuple[int, int]] = set()
    for d, n in enumerate(shape):
        if n < 2:
            continue
        right[d] = f"d{d}"
        for half in ((0, n // 2), (n // 2, n)):
            box: Box = (*whole(shape)[:d], half, *whole(shape)[d + 1 :])
            if parts.least(box, operands[0] if operands else shape, params) != box:
                moved |= {(k, d) for k, s in enumerate(operands) if len(s) == len(shape)}
                right[d] = None
            for k, own in enumerate(operands):
                for e, (part, m) in enumerate(zip(parts.reads(box, own, params), own, strict=True)):
                    if part == half and m == n:
                        left[k][e] = f"d{d}"
                    elif part != (0, m):
                        right[d] = None
                        moved.add((k, e))
        if right[d] is None:
            for labels in left:
                labels[:] = [None if w == f"d{d}" else w for w in labels]
    for k, own in enumerate(operands):
        for e, n in enumerate(own):
            if left[k][e] is None and n > 1 and (k, e) not in moved:
                left[k][e] = f"whole {k} {e}"  # what the result has no dim for is reduced
    return _checked(tuple(map(tuple, left)), tuple(tuple(right) for _ in results), operands, results, "other")
