"""Named tuples that are read from texts, or stand for the records of a function's arguments."""

from __future__ import annotations

import dataclasses
from functools import lru_cache
from operator import itemgetter
from typing import Any, Self


class Named(tuple[Any, ...]):
    """What they have in common."""

    __slots__ = ()
    _fields: tuple[str, ...] = ()

    def __new__(cls, *values: Any) -> Self:
        return super().__new__(cls, values)

    def _asdict(self) -> dict[str, Any]:
        return dict(zip(self._fields, self, strict=True))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self._asdict().items())})"


def fields_of(value: Any) -> dict[str, Any] | None:
    """The fields of a named tuple or a dataclass, by name; None for anything else."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return dict(zip(value._fields, value, strict=True))  # type: ignore[attr-defined]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if hasattr(value, f.name)}
    return None


@lru_cache(maxsize=256)
def named_tuple(name: str, fields: tuple[str, ...]) -> Any:
    """A class like `collections.namedtuple(name, fields)`, which would compile source."""
    about: dict[str, Any] = {field: property(itemgetter(k)) for k, field in enumerate(fields)}
    return type(name, (Named,), {"__slots__": (), "_fields": fields, **about})
