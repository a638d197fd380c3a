"""Symbolic sizes: integers that stand for the size of a dimension, while a function is traced for any size.

A `Dim` has a value, the size in the call that is being traced, and a form, a polynomial over named sizes. Arithmetic
gives other Dims. What needs to know more is decided by the value and kept as a condition on the named sizes: a
comparison as it is (`s0 > 10`), and whatever takes the plain number (`range`, an f-string, a key of a dict) as an
equation (`s0 == 32`). So the trace is right for all sizes that meet the conditions, whatever Python did with them.

A Dim is no `int`: C code that takes an integer has to ask for it, and that is a condition. `isinstance` takes it for one.
"""

from __future__ import annotations

import contextlib
import functools
import math
import operator
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, final

import numpy as np

from graphc import errors

LEAST = 2  # of a named size: 0 and 1 mean something else (nothing, broadcasting), and are traced by themselves
recordings: list[Sizes] = []  # those that are open; while there are none, there is nothing to look for


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


# --- polynomials


def _polynomial(terms: Mapping[tuple[Any, ...], int]) -> Polynomial:
    return Polynomial(tuple(sorted(((atoms, n) for atoms, n in terms.items() if n), key=_order)))


def _order(term: tuple[tuple[Any, ...], int]) -> Any:
    return -len(term[0]), repr(term[0])


def _constant(n: int) -> Polynomial:
    return _polynomial({(): int(n)})


def _sum(a: Polynomial, b: Polynomial, sign: int = 1) -> Polynomial:
    terms = dict(a.terms)
    for atoms, n in b.terms:
        terms[atoms] = terms.get(atoms, 0) + sign * n
    return _polynomial(terms)


def _product(a: Polynomial, b: Polynomial) -> Polynomial:
    terms: dict[tuple[Any, ...], int] = {}
    for x, n in a.terms:
        for y, m in b.terms:
            atoms = tuple(sorted((*x, *y), key=repr))
            terms[atoms] = terms.get(atoms, 0) + n * m
    return _polynomial(terms)


def _quotient(a: Polynomial, b: Polynomial) -> Polynomial | None:
    """a / b for a b of one term, if that is a polynomial."""
    if len(b.terms) != 1:
        return _constant(1) if a == b else None
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
    return _polynomial(found)


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
            least, divisor = _least(a), _short(b)
            if least >= 0:
                return least // divisor if isinstance(divisor, int) else 0
    return math.nan


# --- conditions


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


@final
class Sizes:
    """The named sizes of one trace.

    real        whether there is a call that is traced; else the values stand for any, and cannot be taken
    hints       name -> the size in that call
    conditions  under which the trace is right, and the line that asked for each
    taken       the lines that took a size as a plain number: "model.py:7" -> the condition
    """

    def __init__(self, locate: Callable[[], str] = str, known: bool = True):
        self.real = known
        self.hints: dict[str, int] = {}
        self.conditions: dict[Condition, str] = {}
        self.taken: dict[str, Condition] = {}
        self._locate = locate
        self._open = 0
        self._now: Mapping[str, int] | None = None
        self._lock = threading.RLock()

    def new(self, hint: int, name: str = "") -> Dim:
        """A new named size. ValueError for one that is less than 2, which cannot be left open."""
        if hint < LEAST:
            raise ValueError(f"the size {hint} cannot be symbolic: 0 and 1 are sizes of their own")
        name = name or f"s{len(self.hints)}"
        self.hints[name] = int(hint)
        return Dim(self, _polynomial({(name,): 1}), int(hint))

    @contextlib.contextmanager
    def recording(self) -> Iterator[Sizes]:
        """Keep what is asked of the sizes as conditions; outside of this they act as plain numbers."""
        self._open += 1
        recordings.append(self)
        try:
            yield self
        finally:
            self._open -= 1
            recordings.remove(self)

    @contextlib.contextmanager
    def at(self, sizes: Mapping[str, int]) -> Iterator[None]:
        """Let the Dims of this trace, after it, have the values for other sizes. One thread at a time."""
        with self._lock, self.asking():
            self._now = sizes
            try:
                yield
            finally:
                self._now = None

    @contextlib.contextmanager
    def asking(self) -> Iterator[None]:
        """Inside, what is asked of the sizes is about the call that is being traced: the trace does not depend on it."""
        before, self._open = self._open, 0
        try:
            yield
        finally:
            self._open = before

    def broken(self, sizes: Mapping[str, int]) -> Condition | None:
        """The first condition that does not hold for `sizes`, of those on sizes that are given."""
        if self.real and any(n < LEAST for n in sizes.values()):
            name = min(sizes, key=lambda name: sizes[name])
            return Condition("<", _polynomial({(name,): 1}), LEAST, False)
        known = sizes.keys()
        return next((c for c in self.conditions if c.names() <= known and not c.holds(sizes)), None)

    def fixed(self) -> set[str]:
        """The named sizes that a condition equates with a number, or that were taken as one."""
        found: set[str] = set()
        for condition in self.conditions:
            if condition in self.taken.values():
                found |= names_in(condition.left)
            elif condition.relation == "==" and condition.truth and isinstance(condition.right, int):
                names = names_in(condition.left)
                found |= names if len(names) == 1 else set()
        return found

    def known(self, dim: Dim) -> Any:
        """The value of a Dim of this trace."""
        return dim._hint if self._now is None else value_of(dim._form, self._now)

    def take(self, dim: Dim) -> Any:
        """The plain number of a Dim, which the trace depends on from now on."""
        value = self.known(dim)
        if not self.real and self._now is None:
            raise errors.CaptureError(errors.SIZE_UNKNOWN.format(size=dim.text, used=self._locate()))
        if self._open:
            condition = self._add(_condition("==", dim._form, value, True))
            self.taken.setdefault(self.conditions[condition], condition)
        return value

    def decide(self, relation: str, a: Any, b: Any) -> bool:
        """Whether `a relation b`, for Dims and numbers; kept as a condition unless it is so for all sizes."""
        x, y = plain(a), plain(b)
        truth = RELATIONS[relation](x, y)
        if self._open:
            left, right = form_of(a), form_of(b)
            whole = isinstance(left, Polynomial) and isinstance(right, Polynomial)
            if not whole or _known(relation, _sum(left, right, -1)) is None:
                self._add(_condition(relation, _short(left), _short(right), truth))
        return truth

    def _add(self, condition: Condition) -> Condition:
        if condition not in self.conditions:
            self.conditions[condition] = self._locate()
        return condition


def _condition(relation: str, left: Any, right: Any, truth: bool) -> Condition:
    """The condition in its normal form."""
    if relation in ("==", "!="):
        if not isinstance(left, Polynomial) or (isinstance(right, Polynomial) and repr(left) > repr(right)):
            left, right = right, left
        return Condition("==", left, right, truth is (relation == "=="))
    if relation in (">", "<="):
        left, right = right, left
    return Condition("<", left, right, truth is (relation in ("<", ">")))


def _known(relation: str, difference: Polynomial) -> bool | None:
    """Whether `difference relation 0` for all sizes; None if that depends."""
    if all(not atoms for atoms, _ in difference.terms):
        return RELATIONS[relation](difference.terms[0][1] if difference.terms else 0, 0)
    low, high = _least(difference), -_least(_sum(_constant(0), difference, -1))
    if relation in ("==", "!="):
        return None if low <= 0 <= high else relation == "!="
    if low > 0 or high < 0:
        return RELATIONS[relation](low if low > 0 else high, 0)
    if low == 0 and relation in (">=", "<"):
        return relation == ">="
    if high == 0 and relation in ("<=", ">"):
        return relation == "<="
    return None


# --- the numbers


@final
class Dim:
    """See above. Also a float that was computed from sizes, as `1 / n` is."""

    __slots__ = ("_form", "_hint", "_sizes")
    __array_ufunc__ = None  # NumPy's scalars leave arithmetic to the methods below

    def __init__(self, sizes: Sizes, form: Form, hint: Any):
        self._sizes = sizes
        self._form = form
        self._hint = hint

    @property
    def __class__(self) -> Any:
        return type(self._hint)

    @property
    def form(self) -> Any:
        """The form, over named sizes."""
        return self._form

    @property
    def is_name(self) -> bool:
        """Whether it is a named size itself."""
        return self.text in self._sizes.hints

    @property
    def sizes(self) -> Sizes:
        """The trace that it belongs to."""
        return self._sizes

    @property
    def known(self) -> Any:
        """The value in the call that is traced. Nothing depends on it."""
        return self._sizes.known(self)

    @property
    def text(self) -> str:
        """The form as text: "2*s0"."""
        return text_of(self._form)

    def __hash__(self) -> int:
        return hash(self._sizes.take(self) if self._sizes.real else self._form)

    def __repr__(self) -> str:
        return repr(self._sizes.take(self)) if self._sizes.real else self.text

    def __format__(self, spec: str) -> str:
        return format(self._sizes.take(self), spec) if self._sizes.real else format(self.text, spec)

    def __bool__(self) -> bool:
        return self._sizes.decide("!=", self, 0)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.asarray(self._sizes.take(self), dtype)

    def __getattr__(self, name: str) -> Any:
        kind = type(self._hint)
        if not hasattr(kind, name):
            raise AttributeError(f"'{kind.__name__}' object has no attribute '{name}'")
        return getattr(self._sizes.take(self), name)

    def __reduce__(self) -> Any:
        return type(self._hint), (self._sizes.take(self),)

    def __copy__(self) -> Dim:
        return self

    def __deepcopy__(self, memo: Any) -> Dim:
        return self

    def __pos__(self) -> Dim:
        return self

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __round__(self, digits: Any = None) -> Any:
        return _applied("round", self) if digits is None else _applied("round", self, digits)


def is_dim(x: Any) -> bool:
    """Whether `x` is a Dim."""
    return type(x) is Dim


def form_of(x: Any) -> Any:
    """The form of a Dim or a number."""
    if type(x) is Dim:
        return x._form
    return _constant(x) if isinstance(x, int) else x


def _applied(name: str, *operands: Any) -> Any:
    """The result of an operation on Dims and numbers."""
    sizes = next(x._sizes for x in operands if type(x) is Dim)
    if type(operands[-1]) is Dim and len(operands) == 2:
        if name in ("//", "%", "/"):
            sizes.decide("==", operands[1], 0)
        elif name == "**":
            sizes.decide("<", operands[1], 0)  # of which the type depends
    hint = OPERATIONS[name](*map(plain, operands))
    forms = [form_of(x) for x in operands]
    if not isinstance(hint, int):
        return Dim(sizes, Operation(name, tuple(map(_short, forms))), hint)
    form = _integer(name, forms)
    return Dim(sizes, form, hint) if isinstance(_short(form), Polynomial) else hint


def _short(form: Any) -> Any:
    """A polynomial that is a constant as a number."""
    if isinstance(form, Polynomial) and all(not atoms for atoms, _ in form.terms):
        return form.terms[0][1] if form.terms else 0
    return form


def _integer(name: str, forms: list[Any]) -> Polynomial:
    """The form of an integer that is the result of an operation."""
    if all(isinstance(form, Polynomial) for form in forms):
        a, b = (*forms, _constant(0))[:2]
        if name in ("+", "-", "neg"):
            return _sum(a, b, 1 if name == "+" else -1) if name != "neg" else _sum(b, a, -1)
        if name == "*":
            return _product(a, b)
        if (name in ("round", "floor", "ceil", "trunc") and len(forms) == 1) or (name == "abs" and _least(a) >= 0):
            return a
        if name in ("//", "%") and (exact := _quotient(a, b)) is not None:
            return exact if name == "//" else _constant(0)
        if name in ("//", "%") and _least(a) >= 0 and _least(_sum(b, a, -1)) > 0:  # 0 <= a < b
            return _constant(0) if name == "//" else a
        if name in ("//", "%") and _least(_sum(_constant(0), a, -1)) > 0 and _least(_sum(a, b)) >= 0:  # -b <= a < 0
            return _constant(-1) if name == "//" else _sum(a, b)
        power = _short(b)
        if name == "**" and isinstance(power, int) and 0 <= power <= 8:
            return functools.reduce(_product, [a] * power, _constant(1))
    return _polynomial({(Operation(name, tuple(forms)),): 1})


def _install() -> None:
    names = {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**",
             "lshift": "<<", "rshift": ">>", "and": "&", "or": "|", "xor": "^"}  # fmt: skip
    for method, name in names.items():
        setattr(Dim, f"__{method}__", _binary(name, False))
        setattr(Dim, f"__r{method}__", _binary(name, True))
    for method, name in (("neg", "neg"), ("abs", "abs"), ("floor", "floor"), ("ceil", "ceil"), ("trunc", "trunc")):
        setattr(Dim, f"__{method}__", _unary(name))
    for method, name in (("eq", "=="), ("ne", "!="), ("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">=")):
        setattr(Dim, f"__{method}__", _comparison(name))
    for method in ("index", "int", "float", "complex", "invert"):
        setattr(Dim, f"__{method}__", _taking(f"__{method}__"))


def _binary(name: str, reflected: bool) -> Callable[[Dim, Any], Any]:
    def method(self: Dim, other: Any) -> Any:
        if type(other) is Dim or type(other) in (int, float, bool):
            return _applied(name, other, self) if reflected else _applied(name, self, other)
        if isinstance(other, (complex, np.generic)):
            value = self._sizes.take(self)
            return OPERATIONS[name](*((other, value) if reflected else (value, other)))
        return NotImplemented

    return method


def _unary(name: str) -> Callable[[Dim], Any]:
    return lambda self: _applied(name, self)


def _comparison(name: str) -> Callable[[Dim, Any], Any]:
    def method(self: Dim, other: Any) -> Any:
        if self is other:
            return RELATIONS[name](0, 0)
        if type(other) is Dim or type(other) in (int, float, bool):
            return self._sizes.decide(name, self, other)
        if isinstance(other, (complex, np.generic)):
            return RELATIONS[name](self._sizes.take(self), other)
        return NotImplemented

    return method


def _taking(method: str) -> Callable[..., Any]:
    """A method that needs the number itself."""
    return lambda self, *args: _method(self._sizes.take(self), method)(*args)


def _method(value: Any, method: str) -> Callable[..., Any]:
    if method == "__complex__":
        return lambda: complex(value)
    return getattr(value, method)


_install()


# --- what the rest of graphc and eager asks


def index(n: Any) -> Any:
    """`operator.index`, which keeps a Dim. TypeError for what is no integer."""
    return n if type(n) is Dim and isinstance(n, int) else operator.index(n)


def indices(part: slice, size: Any) -> tuple[Any, Any, Any]:
    """`part.indices(size)`, which keeps Dims."""
    start, stop, step = part.start, part.stop, 1 if part.step is None else part.step
    if not recordings or type(step) is not int or step <= 0 or not any(type(x) is Dim for x in (start, stop, size)):
        return part.indices(size)
    return *(_within(at, size, edge) for at, edge in ((start, 0), (stop, size))), step


def _within(at: Any, size: Any, missing: Any) -> Any:
    if at is None:
        return missing
    at = index(at)
    return max(at + size, 0) if at < 0 else min(at, size)


def negative(sizes: tuple[Any, ...]) -> Any:
    """The least of `sizes` if that is negative, else 0: sizes that are symbolic are not compared with one another."""
    if recordings and has_dim(sizes):
        return min((n for n in sizes if n < 0), default=0)
    return min((0, *sizes))


def has_dim(value: Any) -> bool:
    """Whether `value` is a Dim, or a tuple or list with one inside."""
    if type(value) is Dim:
        return True
    return isinstance(value, (tuple, list)) and any(map(has_dim, value))


def plain(value: Any) -> Any:
    """`value` with the numbers in place of Dims, inside tuples and lists too. Nothing depends on them."""
    return substituted(value, None)


def substituted(value: Any, sizes: Mapping[str, int] | None) -> Any:
    """`value` with what Dims are for `sizes`, or are now, in place of them, inside tuples and lists too."""
    if type(value) is Dim:
        return value.known if sizes is None else value_of(value.form, sizes)
    if isinstance(value, (tuple, list)) and has_dim(value):
        parts = [substituted(part, sizes) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value


def shown(extent: Any) -> str:
    """An extent as graphs are printed: "5", "2*s0"."""
    return extent.text if type(extent) is Dim else str(extent)


def cached(maxsize: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`functools.lru_cache` for functions of shapes: what has Dims is computed anew, and not kept."""

    def decorate(fn: Callable[..., Any]) -> Callable[..., Any]:
        kept = functools.lru_cache(maxsize)(fn)

        @functools.wraps(fn)
        def call(*args: Any) -> Any:
            return fn(*args) if recordings and has_dim(args) else kept(*args)

        return call

    return decorate
