"""Schemas: what each field of a file may hold. A schema is a value, and says by `check` where other values break it.

>>> from graphc.errors import FileError
>>> Record({"name": Text(), "sizes": Row(Whole(0, 9))}).check(
...     {"name": "a", "sizes": [1, True]}, "", lambda problem, place: FileError(problem, place=place))
Traceback (most recent call last):
graphc.errors.FileError: sizes[1]: true, where a whole number from 0 to 9 is expected
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from graphc.files.contents import Refuse

EXPECTED = "{found}, where {expected} is expected"
MISSING = "the entry {name} is missing"
UNKNOWN = "an unknown entry {name}"
HEX_DIGEST = r"[0-9a-f]{64}"
INT64 = -(2**63), 2**63 - 1
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_SHOWN = 40  # characters of a text in a message


class _Misfit(Exception):
    """A value is not as it should be. What contains it puts its own part in front of `place` on the way out."""

    def __init__(self, problem: str, place: str = ""):
        super().__init__(problem)
        self.problem, self.place = problem, place


def _wrong(value: Any, expected: str) -> _Misfit:
    return _Misfit(EXPECTED.format(found=shown(value), expected=expected))


def shown(value: Any) -> str:
    """How a message names a JSON value: short, whatever it is."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return "the text " + ascii(value if len(value) <= _SHOWN else f"{value[:_SHOWN]}...")
    if isinstance(value, (int, float)):
        return f"the number {value}"
    return {list: "a list", dict: "an object"}.get(type(value), type(value).__name__)


def _entry(name: str) -> str:
    """The part of a place that names an object's entry."""
    return f".{name}" if len(name) <= _SHOWN and name.isprintable() else f".{name[:_SHOWN]!a}"


class Schema(ABC):
    """What a value may be."""

    def check(self, value: Any, place: str, refuse: Refuse) -> None:
        """Raise what `refuse` makes of (problem, place) unless `value`, which is at `place`, is as it should be."""
        try:
            self.fit(value)
        except _Misfit as misfit:
            where = place + misfit.place if place else misfit.place.removeprefix(".")
            raise refuse(misfit.problem, where) from None

    @abstractmethod
    def fit(self, value: Any) -> None:
        """Raise _Misfit unless `value` is as it should be."""


@dataclass(frozen=True)
class Anything(Schema):
    """Any value."""

    def fit(self, value: Any) -> None:
        pass


@dataclass(frozen=True)
class Text(Schema):
    """A text that can be encoded, all of which matches `pattern`. `about` is what messages call it."""

    pattern: str = ""
    about: str = "a text"
    most: int = 10_000

    def fit(self, value: Any) -> None:
        if not isinstance(value, str) or len(value) > self.most or _SURROGATE.search(value):
            raise _wrong(value, f"{self.about} of at most {self.most:,} characters")
        if self.pattern and not re.fullmatch(self.pattern, value):
            raise _wrong(value, self.about)


@dataclass(frozen=True)
class Whole(Schema):
    """An integer from `low` to `high`; true and false are none."""

    low: int = INT64[0]
    high: int = INT64[1]

    def fit(self, value: Any) -> None:
        if type(value) is not int or not self.low <= value <= self.high:
            raise _wrong(value, f"a whole number from {self.low} to {self.high}")


@dataclass(frozen=True)
class Number(Schema):
    """A finite number, not below `low`."""

    low: float = -math.inf

    def fit(self, value: Any) -> None:
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not number or not math.isfinite(value) or value < self.low:
            bound = "" if self.low == -math.inf else f" of at least {self.low}"
            raise _wrong(value, f"a finite number{bound}")


@dataclass(frozen=True)
class Flag(Schema):
    """True or false."""

    def fit(self, value: Any) -> None:
        if not isinstance(value, bool):
            raise _wrong(value, "true or false")


@dataclass(frozen=True)
class OneOf(Schema):
    """One of a few values, of the same type."""

    values: tuple[Any, ...]

    def fit(self, value: Any) -> None:
        if not any(type(value) is type(v) and value == v for v in self.values):
            raise _wrong(value, f"one of {', '.join(map(repr, self.values))}")


@dataclass(frozen=True)
class Maybe(Schema):
    """Null, or what `inner` takes."""

    inner: Schema

    def fit(self, value: Any) -> None:
        if value is not None:
            self.inner.fit(value)


@dataclass(frozen=True)
class Either(Schema):
    """What one of two schemas takes: `text` for texts, `other` for all else."""

    text: Schema
    other: Schema

    def fit(self, value: Any) -> None:
        (self.text if isinstance(value, str) else self.other).fit(value)


@dataclass(frozen=True)
class Row(Schema):
    """A list of values of one kind."""

    inner: Schema
    least: int = 0
    most: int = 1_000_000

    def fit(self, value: Any) -> None:
        if not isinstance(value, list) or not self.least <= len(value) <= self.most:
            raise _wrong(value, f"a list of {self.least} to {self.most:,} entries")
        if not isinstance(self.inner, Anything):
            _fit_each(enumerate(value), lambda k: self.inner)


@dataclass(frozen=True)
class Tuple(Schema):
    """A list of as many values as there are schemas."""

    inner: tuple[Schema, ...]

    def fit(self, value: Any) -> None:
        if not isinstance(value, list) or len(value) != len(self.inner):
            raise _wrong(value, f"a list of {len(self.inner)} entries")
        _fit_each(enumerate(value), self.inner.__getitem__)


@dataclass(frozen=True)
class Table(Schema):
    """An object with names of one kind and values of one kind."""

    name: Schema
    inner: Schema

    def fit(self, value: Any) -> None:
        if not isinstance(value, dict):
            raise _wrong(value, "an object")
        for name in value:
            try:
                self.name.fit(name)
            except _Misfit as misfit:
                raise _Misfit(misfit.problem, ", the name of an entry") from None
        _fit_each(value.items(), lambda name: self.inner)


@dataclass(frozen=True)
class Record(Schema):
    """An object with these entries, all of `fields` and some of `optional`, and no others."""

    fields: Mapping[str, Schema]
    optional: Mapping[str, Schema] = field(default_factory=dict)

    def fit(self, value: Any) -> None:
        if not isinstance(value, dict):
            raise _wrong(value, "an object")
        if missing := [name for name in self.fields if name not in value]:
            raise _Misfit(MISSING.format(name=f"'{missing[0]}'"))
        if unknown := [name for name in value if name not in self.fields and name not in self.optional]:
            raise _Misfit(UNKNOWN.format(name=shown(unknown[0]).removeprefix("the text ")))
        _fit_each(value.items(), lambda name: self.fields.get(name) or self.optional[name])


def _fit_each(parts: Iterable[tuple[Any, Any]], schema_of: Callable[[Any], Schema]) -> None:
    key: Any = None
    try:
        for key, item in parts:
            schema_of(key).fit(item)
    except _Misfit as misfit:
        misfit.place = (_entry(key) if isinstance(key, str) else f"[{key}]") + misfit.place
        raise
