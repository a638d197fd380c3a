"""Symbolic sizes: integers that stand for the size of a dimension, while a function is traced for any size.

A `Dim` has a value, the size in the call that is being traced, and a form, a polynomial over named sizes. Arithmetic
gives other Dims. What needs to know more is decided by the value and kept as a condition on the named sizes: a
comparison as it is (`s0 > 10`), and whatever takes the plain number (`range`, an f-string, a key of a dict) as an
equation (`s0 == 32`). So the trace is right for all sizes that meet the conditions, whatever Python did with them.

A Dim is no `int`: C code that takes an integer has to ask for it, and that is a condition. To `isinstance` it is one.
"""

from __future__ import annotations

import contextlib
import functools
import operator
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, final

import numpy as np

from graphc import errors, forking
from graphc.ops.forms import (
    LEAST,
    OPERATIONS,
    RELATIONS,
    Condition,
    Form,
    Operation,
    Polynomial,
    added,
    condition_of,
    constant,
    integer_form,
    known_for_all,
    names_in,
    polynomial,
    short,
    text_of,
    value_of,
)
from graphc.scoped import attribute

recordings: list[Sizes] = []  # those that are open; while there are none, there is nothing to look for


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
        self._lock = forking.renewed(threading.RLock())

    def new(self, hint: int, name: str = "") -> Dim:
        """A new named size. ValueError for one that is less than 2, which cannot be left open."""
        if hint < LEAST:
            raise ValueError(f"the size {hint} cannot be symbolic: 0 and 1 are sizes of their own")
        name = name or f"s{len(self.hints)}"
        self.hints[name] = int(hint)
        return Dim(self, polynomial({(name,): 1}), int(hint))

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
        with self._lock, self.asking(), attribute(self, "_now", sizes):
            yield

    def asking(self) -> contextlib.AbstractContextManager[None]:
        """Inside, what is asked is about the call that is being traced: the trace does not depend on it."""
        return attribute(self, "_open", 0)

    def broken(self, sizes: Mapping[str, int]) -> Condition | None:
        """The first condition that does not hold for `sizes`, of those on sizes that are given."""
        if self.real and any(n < LEAST for n in sizes.values()):
            name = min(sizes, key=lambda name: sizes[name])
            return Condition("<", polynomial({(name,): 1}), LEAST, False)
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
            condition = self._add(condition_of("==", dim._form, value, True))
            self.taken.setdefault(self.conditions[condition], condition)
        return value

    def decide(self, relation: str, a: Any, b: Any) -> bool:
        """Whether `a relation b`, for Dims and numbers; kept as a condition unless it is so for all sizes."""
        x, y = plain(a), plain(b)
        truth = RELATIONS[relation](x, y)
        if self._open:
            left, right = form_of(a), form_of(b)
            whole = isinstance(left, Polynomial) and isinstance(right, Polynomial)
            if not whole or known_for_all(relation, added(left, right, -1)) is None:
                self._add(condition_of(relation, short(left), short(right), truth))
        return truth

    def _add(self, condition: Condition) -> Condition:
        if condition not in self.conditions:
            self.conditions[condition] = self._locate()
        return condition


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
    def __class__(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
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

    def _binary(self, name: str, other: Any, reflected: bool = False) -> Any:
        if type(other) is Dim or type(other) in (int, float, bool):
            return _applied(name, other, self) if reflected else _applied(name, self, other)
        if isinstance(other, (complex, np.generic)):
            value = self._sizes.take(self)
            return OPERATIONS[name](*((other, value) if reflected else (value, other)))
        return NotImplemented

    def _compared(self, name: str, other: Any) -> Any:
        if self is other:
            return RELATIONS[name](0, 0)
        if type(other) is Dim or type(other) in (int, float, bool):
            return self._sizes.decide(name, self, other)
        if isinstance(other, (complex, np.generic)):
            return RELATIONS[name](self._sizes.take(self), other)
        return NotImplemented


def is_dim(x: Any) -> bool:
    """Whether `x` is a Dim."""
    return type(x) is Dim


def form_of(x: Any) -> Any:
    """The form of a Dim or a number."""
    if type(x) is Dim:
        return x._form
    return constant(x) if isinstance(x, int) else x


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
        return Dim(sizes, Operation(name, tuple(map(short, forms))), hint)
    form = integer_form(name, forms)
    return Dim(sizes, form, hint) if isinstance(short(form), Polynomial) else hint


for _method, _name in {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**",
                       "lshift": "<<", "rshift": ">>", "and": "&", "or": "|", "xor": "^"}.items():  # fmt: skip
    setattr(Dim, f"__{_method}__", functools.partialmethod(Dim._binary, _name))
    setattr(Dim, f"__r{_method}__", functools.partialmethod(Dim._binary, _name, reflected=True))
for _name in ("neg", "abs", "floor", "ceil", "trunc"):
    setattr(Dim, f"__{_name}__", lambda self, name=_name: _applied(name, self))
for _method, _name in {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}.items():
    setattr(Dim, f"__{_method}__", functools.partialmethod(Dim._compared, _name))
for _method, _take in {"index": operator.index, "int": int, "float": float, "complex": complex,
                       "invert": operator.invert}.items():  # fmt: skip
    setattr(Dim, f"__{_method}__", lambda self, take=_take: take(self._sizes.take(self)))


def index(n: Any) -> Any:
    """`operator.index`, which keeps a Dim. TypeError for what is no integer."""
    if type(n) is Dim and type(n.known) is int:
        return n
    whole: Any = n
    return operator.index(whole)


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
