"""The elementary laws of linear algebra, each as a table's line: what an expression is equal to.

A law is told the operands of an operation, and, where it names one, those of an operand's own operation. Its right side
calls `F.<operation>(operands, parameters)`, which is None where shapes do not fit. The laws say only where to look:
whether both sides are equal is asked of their values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

Right = Callable[..., Any]


class Law(NamedTuple):
    """inner  the place of an operand and its operation; or () for a law of one operation, two for one of two."""

    operation: str
    inner: tuple[tuple[int, str], ...]
    right: Right  # (F, outer, *inner), each with `args` and `params`


LAWS: list[Law] = []


def _law(operation: str, *inner: tuple[int, str]) -> Callable[[Right], Right]:
    def add(right: Right) -> Right:
        LAWS.append(Law(operation, inner, right))
        return right

    return add


def _of(operation: str, *inner: tuple[int, str], right: Right) -> None:
    LAWS.append(Law(operation, inner, right))


# associative, commutative; what a vector is on the left of a matrix it is on the right of the transposed one
_of("mm", (0, "mm"), right=lambda F, o, i: F.mm(i.args[0], F.mm(i.args[1], o.args[1])))
_of("mm", (1, "mm"), right=lambda F, o, i: F.mm(F.mm(o.args[0], i.args[0]), i.args[1]))
_of("mm", right=lambda F, o: F.mm(o.args[1], F.t(o.args[0])) if F.ndim(o.args[1]) == 1 else None)
_of("mm", right=lambda F, o: F.mm(F.t(o.args[1]), o.args[0]) if F.ndim(o.args[0]) == 1 else None)
_of("mm", right=lambda F, o: F.mm(o.args[1], o.args[0]) if F.ndim(o.args[0]) == F.ndim(o.args[1]) == 1 else None)
_of("add", right=lambda F, o: F.add(o.args[1], o.args[0]))
_of("had", right=lambda F, o: F.had(o.args[1], o.args[0]))
_of("add", (0, "add"), right=lambda F, o, i: F.add(i.args[0], F.add(i.args[1], o.args[1])))
_of("had", (0, "had"), right=lambda F, o, i: F.had(i.args[0], F.had(i.args[1], o.args[1])))
_of("add", right=lambda F, o: F.scale(o.args[0], 2) if o.args[0] == o.args[1] else None)
_of("add", (0, "scale"), right=lambda F, o, i: F.scale(o.args[1], i.params[0] + 1) if i.args[0] == o.args[1] else None)
_of(
    "add",
    (0, "scale"),
    (1, "scale"),
    right=lambda F, o, i, j: F.scale(i.args[0], i.params[0] + j.params[0]) if i.args == j.args else None,
)
_of(
    "add",
    (0, "scale"),
    (1, "scale"),
    right=lambda F, o, i, j: F.scale(F.add(i.args[0], j.args[0]), *i.params) if i.params == j.params else None,
)

# numbers in front of products and sums
for _k in (0, 1):
    _of("mm", (_k, "scale"), right=lambda F, o, i, k=_k: F.scale(F.mm(*F.put(o.args, k, i.args[0])), *i.params))
    _of("mm", (_k, "times"), right=lambda F, o, i, k=_k: F.times(i.args[0], F.mm(*F.put(o.args, k, i.args[1]))))
    _of("had", (_k, "scale"), right=lambda F, o, i, k=_k: F.scale(F.had(*F.put(o.args, k, i.args[0])), *i.params))
    _of("had", (_k, "times"), right=lambda F, o, i, k=_k: F.times(i.args[0], F.had(*F.put(o.args, k, i.args[1]))))
    _of("times", (_k, "scale"), right=lambda F, o, i, k=_k: F.scale(F.times(*F.put(o.args, k, i.args[0])), *i.params))
    for _product in ("mm", "outer", "rows", "cols", "kron"):
        _of(
            "scale",
            (0, _product),
            right=lambda F, o, i, k=_k, p=_product: F(p, *F.put(i.args, k, F.scale(i.args[k], *o.params))),
        )
        _of(
            _product,
            (_k, "scale"),
            right=lambda F, o, i, k=_k, p=_product: F.scale(F(p, *F.put(o.args, k, i.args[0])), *i.params),
        )
        _of(
            "times",
            (1, _product),
            right=lambda F, o, i, k=_k, p=_product: F(p, *F.put(i.args, k, F.times(o.args[0], i.args[k]))),
        )
        if _product != "mm":
            _of(
                _product,
                (_k, "times"),
                right=lambda F, o, i, k=_k, p=_product: F.times(i.args[0], F(p, *F.put(o.args, k, i.args[1]))),
            )
_of("scale", (0, "scale"), right=lambda F, o, i: F.scale(i.args[0], o.params[0] * i.params[0]))
_of("scale", (0, "times"), right=lambda F, o, i: F.times(F.scale(i.args[0], *o.params), i.args[1]))
_of("times", (1, "times"), right=lambda F, o, i: F.times(F.had(o.args[0], i.args[0]), i.args[1]))
_of("scale", (0, "add"), right=lambda F, o, i: F.add(*[F.scale(a, *o.params) for a in i.args]))
_of("times", right=lambda F, o: F.had(*o.args) if F.ndim(o.args[1]) == 0 else None)

# distributive, both ways
for _product in ("mm", "had", "outer", "rows", "cols", "times", "kron"):
    for _k in (0, 1):
        _of(
            _product,
            (_k, "add"),
            right=lambda F, o, i, k=_k, p=_product: F.add(*[F(p, *F.put(o.args, k, a)) for a in i.args]),
        )
        _of(
            "add",
            (0, _product),
            (1, _product),
            right=lambda F, o, i, j, k=_k, p=_product: (
                F(p, *F.put(i.args, k, F.add(i.args[k], j.args[k]))) if i.args[1 - k] == j.args[1 - k] else None
            ),
        )
_of(
    "add",
    (0, "cat"),
    (1, "cat"),
    right=lambda F, o, i, j: (
        F.cat(F.add(i.args[0], j.args[0]), F.add(i.args[1], j.args[1]), *i.params) if i.params == j.params else None
    ),
)

# transposes
_of("t", (0, "t"), right=lambda F, o, i: i.args[0])
_of("t", (0, "mm"), right=lambda F, o, i: F.mm(F.t(i.args[1]), F.t(i.args[0])))
for _k in (0, 1):
    _of("mm", (_k, "t"), right=lambda F, o, i: F.t(F.mm(F.t(o.args[1]), F.t(o.args[0]))))
for _linear in ("add", "had"):
    _of("t", (0, _linear), right=lambda F, o, i, p=_linear: F(p, *[F.t(a) for a in i.args]))
_of("t", (0, "scale"), right=lambda F, o, i: F.scale(F.t(i.args[0]), *i.params))
_of("t", (0, "times"), right=lambda F, o, i: F.times(i.args[0], F.t(i.args[1])))
_of("t", (0, "f"), right=lambda F, o, i: F.f(F.t(i.args[0])))
_of("f", (0, "t"), right=lambda F, o, i: F.t(F.f(i.args[0])))
_of("t", (0, "rows"), right=lambda F, o, i: F.cols(F.t(i.args[1]), i.args[0]))
_of("t", (0, "cols"), right=lambda F, o, i: F.rows(i.args[1], F.t(i.args[0])))
_of("t", (0, "outer"), right=lambda F, o, i: F.outer(*i.args[::-1]))
_of("t", (0, "diagm"), right=lambda F, o, i: F.diagm(*i.args))
_of(
    "t",
    (0, "cat"),
    right=lambda F, o, i: F.cat(*[F.t(a) for a in i.args], 1 - i.params[0]) if F.ndim(o.args[0]) == 2 else None,
)
_of("t", (0, "kron"), right=lambda F, o, i: F.kron(*[F.t(a) for a in i.args]))
_of("t", (0, "inv"), right=lambda F, o, i: F.inv(F.t(*i.args)))
_of("inv", (0, "t"), right=lambda F, o, i: F.t(F.inv(*i.args)))
_of(
    "t",
    (0, "cut"),
    right=lambda F, o, i: F.cut(F.t(*i.args), 1 - i.params[0], *i.params[1:]) if F.ndim(o.args[0]) == 2 else None,
)

# diagonal matrices, and outer products
_of("mm", (0, "diagm"), right=lambda F, o, i: F.either(F.rows(i.args[0], o.args[1]), F.had(i.args[0], o.args[1])))
_of("mm", (1, "diagm"), right=lambda F, o, i: F.either(F.cols(o.args[0], i.args[0]), F.had(o.args[0], i.args[0])))
_of(
    "mm",
    (0, "rows"),
    right=lambda F, o, i: (lambda r: F.either(F.rows(i.args[0], r), F.had(i.args[0], r)))(F.mm(i.args[1], o.args[1])),
)
_of(
    "mm",
    (1, "cols"),
    right=lambda F, o, i: (lambda r: F.either(F.cols(r, i.args[1]), F.had(r, i.args[1])))(F.mm(o.args[0], i.args[0])),
)
_of(
    "mm",
    (0, "cols"),
    right=lambda F, o, i: F.mm(i.args[0], F.either(F.rows(i.args[1], o.args[1]), F.had(i.args[1], o.args[1]))),
)
_of(
    "mm",
    (1, "rows"),
    right=lambda F, o, i: F.mm(F.either(F.cols(o.args[0], i.args[0]), F.had(o.args[0], i.args[0])), i.args[1]),
)
_of("rows", (1, "mm"), right=lambda F, o, i: F.mm(F.rows(o.args[0], i.args[0]), i.args[1]))
_of("cols", (0, "mm"), right=lambda F, o, i: F.mm(i.args[0], F.cols(i.args[1], o.args[1])))
_of("rows", (1, "cols"), right=lambda F, o, i: F.cols(F.rows(o.args[0], i.args[0]), i.args[1]))
_of("rows", (1, "diagm"), right=lambda F, o, i: F.diagm(F.had(o.args[0], i.args[0])))
_of("cols", (0, "diagm"), right=lambda F, o, i: F.diagm(F.had(o.args[1], i.args[0])))
_of("rows", (1, "rows"), right=lambda F, o, i: F.rows(F.had(o.args[0], i.args[0]), i.args[1]))
_of("cols", (0, "cols"), right=lambda F, o, i: F.cols(i.args[0], F.had(i.args[1], o.args[1])))
_of(
    "mm",
    (0, "outer"),
    right=lambda F, o, i: (lambda r: F.either(F.outer(i.args[0], r), F.times(r, i.args[0])))(
        F.mm(i.args[1], o.args[1])
    ),
)
_of(
    "mm",
    (1, "outer"),
    right=lambda F, o, i: (lambda r: F.either(F.outer(r, i.args[1]), F.times(r, i.args[1])))(
        F.mm(o.args[0], i.args[0])
    ),
)
_of(
    "had",
    (0, "outer"),
    (1, "outer"),
    right=lambda F, o, i, j: F.outer(F.had(i.args[0], j.args[0]), F.had(i.args[1], j.args[1])),
)
_of("had", (0, "outer"), right=lambda F, o, i: F.rows(i.args[0], F.cols(o.args[1], i.args[1])))
_of("rows", (1, "outer"), right=lambda F, o, i: F.outer(F.had(o.args[0], i.args[0]), i.args[1]))
_of("cols", (0, "outer"), right=lambda F, o, i: F.outer(i.args[0], F.had(i.args[1], o.args[1])))
_of("had", (0, "diagm"), right=lambda F, o, i: F.diagm(F.had(i.args[0], F.diagv(o.args[1]))))
for _k, _way in ((0, "rows"), (1, "cols")):
    _of(
        "had",
        (0, _way),
        right=lambda F, o, i, k=_k, w=_way: F(w, *F.put(i.args, 1 - k, F.had(i.args[1 - k], o.args[1]))),
    )

# parts: slices, rows, elements
for _part in ("cut", "pick"):
    _of(_part, (0, "mm"), right=lambda F, o, i, p=_part: F.part_of_product(p, o, i))
    for _linear in ("add", "had"):
        _of(_part, (0, _linear), right=lambda F, o, i, p=_part, f=_linear: F(f, *[F(p, a, *o.params) for a in i.args]))
    _of(_part, (0, "scale"), right=lambda F, o, i, p=_part: F.scale(F(p, i.args[0], *o.params), *i.params))
    _of(_part, (0, "times"), right=lambda F, o, i, p=_part: F.times(i.args[0], F(p, i.args[1], *o.params)))
    _of(_part, (0, "f"), right=lambda F, o, i, p=_part: F.f(F(p, i.args[0], *o.params)))
    _of(
        _part,
        (0, "t"),
        right=lambda F, o, i, p=_part: (
            F(p, i.args[0], 1 - o.params[0], *o.params[1:]) if F.ndim(o.args[0]) == 2 else None
        ),
    )
    _of(_part, (0, "cat"), right=lambda F, o, i, p=_part: F.part_of_joined(p, o, i))
    _of(
        _part,
        (0, "sum"),
        right=lambda F, o, i, p=_part: (
            F("sum", F(p, i.args[0], 1 - i.params[0], *o.params[1:]), *i.params)
            if F.ndim(i.args[0]) == 2 and p == "cut"
            else None
        ),
    )
    _of(
        _part,
        (0, "sum"),
        right=lambda F, o, i, p=_part: (
            F("sum", F(p, i.args[0], 1 - i.params[0], *o.params[1:]), None)
            if F.ndim(i.args[0]) == 2 and p == "pick"
            else None
        ),
    )
_of(
    "cut",
    (0, "rows"),
    right=lambda F, o, i: F.rows(
        F.cut(i.args[0], *o.params) if o.params[0] == 0 else i.args[0], F.cut(i.args[1], *o.params)
    ),
)
_of(
    "cut",
    (0, "cols"),
    right=lambda F, o, i: F.cols(
        F.cut(i.args[0], *o.params), F.cut(i.args[1], 0, *o.params[1:]) if o.params[0] == 1 else i.args[1]
    ),
)
_of(
    "cut",
    (0, "outer"),
    right=lambda F, o, i: F.outer(*F.put(i.args, o.params[0], F.cut(i.args[o.params[0]], 0, *o.params[1:]))),
)
_of(
    "cut",
    (0, "cut"),
    right=lambda F, o, i: (
        F.cut(i.args[0], i.params[0], i.params[1] + o.params[1], i.params[1] + o.params[2])
        if o.params[0] == i.params[0]
        else F.cut(F.cut(i.args[0], *o.params), *i.params)
    ),
)
_of(
    "pick",
    (0, "cut"),
    right=lambda F, o, i: (
        F.pick(i.args[0], o.params[0], i.params[1] + o.params[1])
        if o.params[0] == i.params[0]
        else F.cut(F.pick(i.args[0], *o.params), 0, *i.params[1:])
    ),
)
_of(
    "cut",
    (0, "pick"),
    right=lambda F, o, i: (
        F.pick(F.cut(i.args[0], 1 - i.params[0], *o.params[1:]), *i.params) if F.ndim(i.args[0]) == 2 else None
    ),
)
_of(
    "pick",
    (0, "rows"),
    right=lambda F, o, i: (
        F.times(F.pick(i.args[0], *o.params), F.pick(i.args[1], *o.params))
        if o.params[0] == 0
        else F.had(i.args[0], F.pick(i.args[1], *o.params))
    ),
)
_of(
    "pick",
    (0, "cols"),
    right=lambda F, o, i: (
        F.had(F.pick(i.args[0], *o.params), i.args[1])
        if o.params[0] == 0
        else F.times(F.pick(i.args[1], 0, o.params[1]), F.pick(i.args[0], *o.params))
    ),
)
_of(
    "pick",
    (0, "outer"),
    right=lambda F, o, i: F.times(F.pick(i.args[o.params[0]], 0, o.params[1]), i.args[1 - o.params[0]]),
)
_of("pick", (0, "diagv"), right=lambda F, o, i: F.pick(F.pick(i.args[0], 0, o.params[1]), 0, o.params[1]))
_of(
    "pick",
    (0, "kron"),
    right=lambda F, o, i: F.kron(
        F.pick(i.args[0], o.params[0], o.params[1] // F.shape(i.args[1])[o.params[0]]),
        F.pick(i.args[1], o.params[0], o.params[1] % F.shape(i.args[1])[o.params[0]]),
    ),
)

# sums
for _axis in (0, 1, None):
    for _linear in ("add", "scale", "times"):
        _of(
            "sum",
            (0, _linear),
            right=lambda F, o, i, f=_linear: F(
                f, *[F.sum(a, *o.params) if f != "times" or k else a for k, a in enumerate(i.args)], *i.params
            ),
        )
_of("sum", (0, "mm"), right=lambda F, o, i: F.sum_of_product(o, i))
_of(
    "sum",
    right=lambda F, o: (
        F.either(F.sum(F.sum(o.args[0], 0), None), None) if o.params == (None,) and F.ndim(o.args[0]) == 2 else None
    ),
)
_of(
    "sum",
    right=lambda F, o: (
        F.either(F.sum(F.sum(o.args[0], 1), None), None) if o.params == (None,) and F.ndim(o.args[0]) == 2 else None
    ),
)
_of("sum", (0, "sum"), right=lambda F, o, i: F.sum(i.args[0], None) if F.ndim(i.args[0]) == 2 else None)
_of(
    "sum",
    (0, "t"),
    right=lambda F, o, i: (
        F.sum(i.args[0], None if o.params == (None,) else 1 - o.params[0]) if F.ndim(i.args[0]) == 2 else None
    ),
)
_of("sum", (0, "had"), right=lambda F, o, i: F.mm(*i.args) if F.ndim(i.args[0]) == 1 else None)
_of(
    "sum",
    (0, "had"),
    right=lambda F, o, i: (
        F.trace(F.mm(i.args[0], F.t(i.args[1]))) if F.ndim(i.args[0]) == 2 and o.params == (None,) else None
    ),
)
_of(
    "sum",
    (0, "had"),
    right=lambda F, o, i: (
        F.diagv(F.mm(i.args[0], F.t(i.args[1]))) if F.ndim(i.args[0]) == 2 and o.params == (1,) else None
    ),
)
_of(
    "sum",
    (0, "had"),
    right=lambda F, o, i: (
        F.diagv(F.mm(F.t(i.args[0]), i.args[1])) if F.ndim(i.args[0]) == 2 and o.params == (0,) else None
    ),
)
_of(
    "sum",
    (0, "outer"),
    right=lambda F, o, i: (
        F.had(*[F.sum(a, None) for a in i.args])
        if o.params == (None,)
        else F.times(F.sum(i.args[o.params[0]], None), i.args[1 - o.params[0]])
    ),
)
_of(
    "sum",
    (0, "rows"),
    right=lambda F, o, i: (
        F.mm(i.args[0], i.args[1])
        if o.params == (0,)
        else F.had(i.args[0], F.sum(i.args[1], 1))
        if o.params == (1,)
        else F.mm(i.args[0], F.sum(i.args[1], 1))
    ),
)
_of(
    "sum",
    (0, "cols"),
    right=lambda F, o, i: (
        F.mm(i.args[0], i.args[1])
        if o.params == (1,)
        else F.had(F.sum(i.args[0], 0), i.args[1])
        if o.params == (0,)
        else F.mm(F.sum(i.args[0], 0), i.args[1])
    ),
)
_of("sum", (0, "diagm"), right=lambda F, o, i: F.sum(i.args[0], None) if o.params == (None,) else i.args[0])
_of("sum", (0, "diagv"), right=lambda F, o, i: F.trace(i.args[0]))
_of(
    "sum",
    (0, "kron"),
    right=lambda F, o, i: F("had" if o.params == (None,) else "kron", *[F.sum(a, *o.params) for a in i.args]),
)
_of("sum", (0, "cat"), right=lambda F, o, i: F.sum_of_joined(o, i))

# diagonals, traces
_of("trace", (0, "mm"), right=lambda F, o, i: F.sum(F.had(i.args[0], F.t(i.args[1])), None))
_of("trace", (0, "mm"), right=lambda F, o, i: F.trace(F.mm(i.args[1], i.args[0])))
_of("diagv", (0, "mm"), right=lambda F, o, i: F.sum(F.had(i.args[0], F.t(i.args[1])), 1))
_of("trace", right=lambda F, o: F.sum(F.diagv(o.args[0]), None))
for _what in ("trace", "diagv"):
    _of(_what, (0, "add"), right=lambda F, o, i, w=_what: F.add(*[F(w, a) for a in i.args]))
    _of(_what, (0, "scale"), right=lambda F, o, i, w=_what: F.scale(F(w, i.args[0]), *i.params))
    _of(_what, (0, "times"), right=lambda F, o, i, w=_what: F.times(i.args[0], F(w, i.args[1])))
    _of(_what, (0, "t"), right=lambda F, o, i, w=_what: F(w, i.args[0]))
    _of(
        _what,
        (0, "kron"),
        right=lambda F, o, i, w=_what: F("had" if w == "trace" else "kron", *[F(w, a) for a in i.args]),
    )
_of("trace", (0, "outer"), right=lambda F, o, i: F.mm(*i.args))
_of("diagv", (0, "outer"), right=lambda F, o, i: F.had(*i.args))
_of("trace", (0, "rows"), right=lambda F, o, i: F.mm(i.args[0], F.diagv(i.args[1])))
_of("trace", (0, "cols"), right=lambda F, o, i: F.mm(F.diagv(i.args[0]), i.args[1]))
_of("diagv", (0, "rows"), right=lambda F, o, i: F.had(i.args[0], F.diagv(i.args[1])))
_of("diagv", (0, "cols"), right=lambda F, o, i: F.had(F.diagv(i.args[0]), i.args[1]))
_of("diagv", (0, "diagm"), right=lambda F, o, i: i.args[0])
_of("trace", (0, "diagm"), right=lambda F, o, i: F.sum(i.args[0], None))
_of("diagv", (0, "had"), right=lambda F, o, i: F.had(*[F.diagv(a) for a in i.args]))
_of("diagv", (0, "f"), right=lambda F, o, i: F.f(F.diagv(i.args[0])))
_of("diagm", (0, "had"), right=lambda F, o, i: F.rows(i.args[0], F.diagm(i.args[1])))
for _what in ("trace", "diagv"):
    _of(_what, (0, "cat"), right=lambda F, o, i, w=_what: F.diagonal_of_joined(w, i))

# matrices side by side
_of("mm", (0, "cat"), right=lambda F, o, i: F.joined_times(o, i))
_of("mm", (1, "cat"), right=lambda F, o, i: F.times_joined(o, i))
for _k in (0, 1):
    _of(
        "cat",
        (0, "mm"),
        (1, "mm"),
        right=lambda F, o, i, j, k=_k: (
            F.mm(*F.put(i.args, k, F.cat(i.args[k], j.args[k], *o.params))) if i.args[1 - k] == j.args[1 - k] else None
        ),
    )
for _function in ("f", "scale"):
    _of(
        "cat",
        (0, _function),
        (1, _function),
        right=lambda F, o, i, j, f=_function: (
            F(f, F.cat(i.args[0], j.args[0], *o.params), *i.params) if i.params == j.params else None
        ),
    )
    _of(
        _function,
        (0, "cat"),
        right=lambda F, o, i, f=_function: F.cat(*[F(f, a, *o.params) for a in i.args], *i.params),
    )

# Kronecker products
_of(
    "mm",
    (0, "kron"),
    (1, "kron"),
    right=lambda F, o, i, j: F.kron(F.mm(i.args[0], j.args[0]), F.mm(i.args[1], j.args[1])),
)
_of(
    "kron",
    (0, "mm"),
    (1, "mm"),
    right=lambda F, o, i, j: F.mm(F.kron(i.args[0], j.args[0]), F.kron(i.args[1], j.args[1])),
)
_of("mm", (0, "kron"), right=lambda F, o, i: F.kronecker_times_vector(o.args[1], *i.args))
_of("mm", (1, "kron"), right=lambda F, o, i: F.kronecker_times_vector(o.args[0], *[F.t(a) for a in i.args]))
_of(
    "had",
    (0, "kron"),
    (1, "kron"),
    right=lambda F, o, i, j: F.kron(F.had(i.args[0], j.args[0]), F.had(i.args[1], j.args[1])),
)

# inverses
_of("inv", (0, "mm"), right=lambda F, o, i: F.mm(F.inv(i.args[1]), F.inv(i.args[0])))
_of("inv", (0, "inv"), right=lambda F, o, i: i.args[0])
_of("inv", (0, "kron"), right=lambda F, o, i: F.kron(*[F.inv(a) for a in i.args]))
_of("mm", (0, "inv"), right=lambda F, o, i: F.solve(i.args[0], o.args[1]))
_of(
    "mm",
    (1, "inv"),
    right=lambda F, o, i: (
        F.solve(F.t(i.args[0]), o.args[0]) if F.ndim(o.args[0]) == 1 else F.t(F.solve(F.t(i.args[0]), F.t(o.args[0])))
    ),
)
