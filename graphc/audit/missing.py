"""What the optimizer misses: equations whose sides come to different costs, in classes.

A miss belongs to the smallest part of the term that is missed by itself. What both sides of that have in common becomes
a variable, if the equation needs no assumption then either. Equations that are alike after that are one class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from graphc.audit.costs import Costs
from graphc.audit.equations import Equation
from graphc.audit.licences import behaviour, licence
from graphc.audit.terms import Term, variable
from graphc.audit.values import CHECK, NOTHING, Values
from graphc.audit.vocabulary import letters_of
from graphc.rewrite import ASSUMES

NAMES = ("", "xyzuvw", "ABCDEF")  # of variables, by the number of their axes
EQUAL = 1e-9  # costs that differ by less are equal


class Class(NamedTuple):
    """Equations that are missed for one reason, as far as can be seen.

    equation  the smallest of them
    text      that with what the sides have in common as variables
    missed    what the side that costs more comes to
    possible  what the other side comes to
    cases     the equations
    """

    equation: Equation
    text: str
    missed: float
    possible: float
    cases: tuple[Equation, ...]


def reached(costs: Costs, equation: Equation) -> bool:
    """Whether both sides come to equal cost."""
    left, right = costs.optimized(equation.left), costs.optimized(equation.right)
    return abs(left - right) <= EQUAL * max(left, right)


def ranked(values: Values, costs: Costs, missed: Sequence[Equation], known: Mapping[Term, Equation]) -> list[Class]:
    """The classes of what is missed, the largest first.

    known  the equation of each term that has one without assumptions
    """
    found: dict[str, list[Equation]] = {}
    roots: dict[str, Equation] = {}
    for equation in missed:
        root = _root(costs, equation, known)
        text = _general(values, costs, root)
        found.setdefault(text, []).append(equation)
        if text not in roots or root.left.size < roots[text].left.size:
            roots[text] = root
    made: list[Class] = []
    for text, root in roots.items():
        possible, missed_at = sorted((costs.optimized(root.left), costs.optimized(root.right)))
        made.append(Class(root, text, missed_at, possible, tuple(found[text])))
    return sorted(made, key=lambda c: (-len(c.cases), c.equation.left.size, c.text))


def _root(costs: Costs, equation: Equation, known: Mapping[Term, Equation]) -> Equation:
    """The equation of the smallest part of the side that costs more, if that is missed by itself."""
    left, right = equation.left, equation.right
    worse = left if costs.optimized(left) > costs.optimized(right) else right
    for part in worse.subterms():
        smaller = known.get(part)
        if smaller is not None and smaller.left.size < equation.left.size and not reached(costs, smaller):
            return smaller
    return equation


def _general(values: Values, costs: Costs, equation: Equation) -> str:
    """The equation as text, what both sides have in common as variables as far as it is missed then as well."""
    left, right = equation.left, equation.right
    while True:
        both = [t for t in dict.fromkeys(left.subterms()) if t.size and t in set(right.subterms())]
        for part in sorted(both, key=lambda t: -t.size):
            letters = letters_of(part.aval.shape)
            if letters is None or part.aval.dtype.kind != "f":
                continue
            name = variable(f"t{len(left.variables | right.variables)}", letters)
            new = {part: name}
            wider = equation._replace(left=left.replaced(new), right=right.replaced(new))
            if _holds(values, wider.left, wider.right) and not reached(costs, wider):
                left, right = wider.left, wider.right
                break
        else:
            return _named(left, right)


def _holds(values: Values, left: Term, right: Term) -> bool:
    a, b = values.of(left, CHECK), values.of(right, CHECK)
    if a is NOTHING or b is NOTHING or a.shape != b.shape or not np.allclose(a, b, rtol=1e-7, equal_nan=True):
        return False
    return behaviour(values, left) == behaviour(values, right) or licence(values, left, right).licence < ASSUMES


def _named(left: Term, right: Term) -> str:
    """Both sides with variables named in the order in which they come."""
    names: dict[Term, str] = {}
    for t in (*left.subterms(), *right.subterms()):
        if not t.size and t.variables and t not in names:
            alike = sum(len(o.aval.shape) == len(t.aval.shape) for o in names)
            names[t] = NAMES[len(t.aval.shape)][alike] if t.aval.shape else f"s{alike}"
    return f"{left.written(names)} = {right.written(names)}"
