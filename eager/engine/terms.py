"""Gradient rules as expressions: what a rule does with names, traced once, to be written out as source."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphc.ops.operators import OperatorMixin
from graphc.ops.spec import OPS, Op


class Untraceable(Exception):
    """The rule uses more than pointwise ops; it is called instead of being written out."""


class Term(OperatorMixin):
    """A value in a gradient rule under construction: a name, a constant, or an op of other terms."""

    __slots__ = ("constant", "name", "op", "operands")

    def __init__(self, name: str = "", op: Op | None = None, operands: tuple[Term, ...] = (), constant: Any = None):
        self.name = name
        self.op = op
        self.operands = operands
        self.constant = constant

    def _apply(self, name: str, *operands: Any) -> Term:
        return Language.build(OPS[name], operands)


class Language:
    """The op language on Terms. Pointwise ops without parameters only."""

    def __getattr__(self, name: str) -> Callable[..., Term]:
        found = OPS[name]

        def build(*operands: Any, **params: Any) -> Term:
            if params:
                raise Untraceable(name)
            return self.build(found, operands)

        return build

    @staticmethod
    def build(op: Op, operands: tuple[Any, ...]) -> Term:
        if not op.pointwise or op.params:
            raise Untraceable(op.name)
        return Term(op=op, operands=tuple(x if isinstance(x, Term) else Term(constant=x) for x in operands))


def steps(term: Term) -> int:
    """How many ops `term` consists of, an op that is used twice counted twice."""
    return 0 if term.op is None else 1 + sum(map(steps, term.operands))


def names(term: Term) -> list[str]:
    """The names in `term`, each once."""
    found = [term.name] if term.name else [n for x in term.operands for n in names(x)]
    return list(dict.fromkeys(found))


def trace_rule(op: Op, arg: str) -> Term | None:
    """The gradient rule of `arg` as a Term, or None if it cannot be written out."""
    vjp = op.vjp[arg]
    try:
        result = vjp.fn(Language(), *(Term(name=n) for n in vjp.names))
    except (Untraceable, AttributeError, TypeError):
        return None
    return result if isinstance(result, Term) else None
