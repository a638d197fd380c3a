"""Forms: what a symbolic size is, in terms of named sizes; and conditions on those. Values without behaviour.

An integer is a polynomial over atoms: named sizes ("s0"), and Operations that no polynomial expresses (`s0 // 2`).
Equal polynomials are equal values. A float is an Operation.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, final

LEAST = 2  # of a named size: 0 and 1 mean something else (nothing, broadcasting), and are traced by themselves


class Operation(NamedTuple):
    """A form: a function of OPERATIONS applied to forms and numbers."""

    name: str
    operands: tuple[Any, ...]


class Polynomial(NamedTuple):
    """A form, of an integer: (atoms, coefficient) of each term, in order. An atom is a named size or an Operation."""

    terms: tuple[tuple[tuple[Any, ...], int], ...]


Form = Operation | Polynomial | int | float
OPERATIONS: dict[str, Callable[..., Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "**": operator.pow, "<<": operator.lshift, ">>": operator.rshift, "&": operator.and_,
    "|": operator.or_, "^": operator.xor, "neg": operator.neg, "abs": abs, "round": round, "floor": math.floor,
    "ceil": math.ceil, "trunc": math.trunc,
}  # fmt: skip
RELATIONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


_OPPOSITE = {"==": "!=", "<": ">="}


def value_of(form: Any, sizes: Mapping[str, int]) -> Any:
    """What Python would have computed for these sizes."""
    if isinstance(form, str):
        return sizes[form]
    if isinstance(form, Polynomial):
        return sum(math.prod(value_of(atom, sizes) for atom in atoms) * n for atoms, n in form.terms)
    if isinstance(form, Operation):
        return OPERATIONS[form.name](*[value_of(x, sizes) for x in form.operands])
    return form


def names_in(form: Any) -> set[str]:
    """The named sizes in a form."""
    if isinstance(form, str):
        return {form}
    if isinstance(form, Polynomial):
        return {name for atoms, _ in form.terms for atom in atoms for name in names_in(atom)}
    return {name for x in form.operands for name in names_in(x)} if isinstance(form, Operation) else set()


def text_of(form: Any) -> str:
    """A form as Python would write it."""
    if isinstance(form, Polynomial):
        if not form.terms:
            return "0"
        if len(form.terms) == 1 and len(form.terms[0][0]) == form.terms[0][1] == 1:
            return text_of(form.terms[0][0][0])
        text = " + ".join(_term(atoms, n) for atoms, n in form.terms)
        return text.replace("+ -", "- ")
    if isinstance(form, Operation):
        parts = [f"({text})" if " " in text or "*" in text else text for text in map(text_of, form.operands)]
        if len(parts) == 2 and not form.name.isalpha():
            return f"{parts[0]} {form.name} {parts[1]}"
        return f"{form.name}({', '.join(map(text_of, form.operands))})"
    return str(form)


def _term(atoms: tuple[Any, ...], n: int) -> str:
    factors = [f"({text})" if " " in text else text for text in map(text_of, atoms)]
    if n == -1 and factors:
        return "-" + "*".join(factors)
    return "*".join(factors if n == 1 and factors else [str(n), *factors])


def polynomial(terms: Mapping[tuple[Any, ...], int]) -> Polynomial:
    return Polynomial(tuple(sorted(((atoms, n) for atoms, n in terms.items() if n), key=_order)))


def _order(term: tuple[tuple[Any, ...], int]) -> Any:
    return -len(term[0]), repr(term[0])


def constant(n: int) -> Polynomial:
    return polynomial({(): int(n)})


def added(a: Polynomial, b: Polynomial, sign: int = 1) -> Polynomial:
    terms = dict(a.terms)
    for atoms, n in b.terms:
        terms[atoms] = terms.get(atoms, 0) + sign * n
    return polynomial(terms)


def _product(a: Polynomial, b: Polynomial) -> Polynomial:
    terms: dict[tuple[Any, ...], int] = {}
    for x, n in a.terms:
        for y, m in b.terms:
            atoms = tuple(sorted((*x, *y), key=repr))
            terms[atoms] = terms.get(atoms, 0) + n * m
    return polynomial(terms)


def _quotient(a: Polynomial, b: Polynomial) -> Polynomial | None:
    """a / b for a b of one term, if that is a polynomial."""
    if len(b.terms) != 1:
        return constant(1) if a == b else None
    divisor, m = b.terms[0]
    found: dict[tuple[Any, ...], int] = {}
    for atoms, n in a.terms:
        rest = list(atoms)
        for atom in divisor:
            if atom not in rest:
                return None
            rest.remove(atom)
        if n % m:
            return None
        found[tuple(rest)] = n // m
    return polynomial(found)


def _least(form: Polynomial) -> float:
    """A number below which the value of `form` never is."""
    total = 0.0
    for atoms, n in form.terms:
        least = math.prod(map(_least_atom, atoms))
        if (n < 0 and atoms) or math.isnan(least):
            return -math.inf
        total += n * least
    return total


def _least_atom(atom: Any) -> float:
    if isinstance(atom, str):
        return LEAST
    if (
        isinstance(atom, Operation)
        and atom.name in ("//", "%")
        and all(isinstance(x, Polynomial) for x in atom.operands)
    ):
        a, b = atom.operands
        if _least(b) > 0:
            if atom.name == "%":
                return 0
            least, divisor = _least(a), short(b)
            if least >= 0:
                return least // divisor if isinstance(divisor, int) else 0
    return math.nan


def short(form: Any) -> Any:
    """A polynomial that is a constant as a number."""
    if isinstance(form, Polynomial) and all(not atoms for atoms, _ in form.terms):
        return form.terms[0][1] if form.terms else 0
    return form


def integer_form(name: str, forms: list[Any]) -> Polynomial:
    """The form of an integer that is the result of an operation."""
    if all(isinstance(form, Polynomial) for form in forms):
        a, b = (*forms, constant(0))[:2]
        if name in ("+", "-", "neg"):
            return added(a, b, 1 if name == "+" else -1) if name != "neg" else added(b, a, -1)
        if name == "*":
            return _product(a, b)
        if (name in ("round", "floor", "ceil", "trunc") and len(forms) == 1) or (name == "abs" and _least(a) >= 0):
            return a
        if name in ("//", "%") and (exact := _quotient(a, b)) is not None:
            return exact if name == "//" else constant(0)
        if name in ("//", "%") and _least(a) >= 0 and _least(added(b, a, -1)) > 0:  # 0 <= a < b
            return constant(0) if name == "//" else a
        if name in ("//", "%") and _least(added(constant(0), a, -1)) > 0 and _least(added(a, b)) >= 0:  # -b <= a < 0
            return constant(-1) if name == "//" else added(a, b)
        power = short(b)
        if name == "**" and isinstance(power, int) and 0 <= power <= 8:
            return functools.reduce(_product, [a] * power, constant(1))
    return polynomial({(Operation(name, tuple(forms)),): 1})


@final
class Condition(NamedTuple):
    """That `left relation right` is `truth`; the relation is == or <."""

    relation: str
    left: Any
    right: Any
    truth: bool

    def names(self) -> set[str]:
        """The named sizes in it."""
        return names_in(self.left) | names_in(self.right)

    def holds(self, sizes: Mapping[str, int]) -> bool:
        """Whether it does for these sizes."""
        try:
            return RELATIONS[self.relation](value_of(self.left, sizes), value_of(self.right, sizes)) is self.truth
        except ArithmeticError:
            return False

    def __str__(self) -> str:
        relation = self.relation if self.truth else _OPPOSITE[self.relation]
        return f"{text_of(self.left)} {relation} {text_of(self.right)}"


def condition_of(relation: str, left: Any, right: Any, truth: bool) -> Condition:
    """The condition in its normal form."""
    if relation in ("==", "!="):
        if not isinstance(left, Polynomial) or (isinstance(right, Polynomial) and repr(left) > repr(right)):
            left, right = right, left
        return Condition("==", left, right, truth is (relation == "=="))
    if relation in (">", "<="):
        left, right = right, left
    return Condition("<", left, right, truth is (relation in ("<", ">")))


def known_for_all(relation: str, difference: Polynomial) -> bool | None:
    """Whether `difference relation 0` for all sizes; None if that depends."""
    if all(not atoms for atoms, _ in difference.terms):
        return RELATIONS[relation](difference.terms[0][1] if difference.terms else 0, 0)
    low, high = _least(difference), -_least(added(constant(0), difference, -1))
    if relation in ("==", "!="):
        return None if low <= 0 <= high else relation == "!="
    if low > 0 or high < 0:
        return RELATIONS[relation](low if low > 0 else high, 0)
    if low == 0 and relation in (">=", "<"):
        return relation == ">="
    if high == 0 and relation in ("<=", ">"):
        return relation == "<="
    return None
